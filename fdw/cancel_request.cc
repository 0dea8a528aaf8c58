#include "fdw/cancel_request.h"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>

#include "common/assert.h"
#include "common/bytes.h"

namespace sluice {
namespace {
constexpr uint32_t kCancelRequestCode = 1234 << 16 | 5678;
}

CancelRequest::CancelRequest(IoRing* ring, const sockaddr_storage& address, socklen_t address_bytes,
                             uint32_t pid, uint32_t key, std::function<void()> done)
    : ring_(ring),
      address_(address),
      address_bytes_(address_bytes),
      done_(std::move(done)),
      operation_([](void* self, int rc) { static_cast<CancelRequest*>(self)->OnDone(rc); }, this) {
  StoreBig<uint32_t>(packet_, sizeof packet_);
  StoreBig<uint32_t>(packet_ + 4, kCancelRequestCode);
  StoreBig<uint32_t>(packet_ + 8, pid);
  StoreBig<uint32_t>(packet_ + 12, key);
}

CancelRequest::~CancelRequest() {
  SLUICE_ASSERT(!busy());
}

bool CancelRequest::Start() {
  fd_.Reset(socket(address_.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_.valid()) return false;
  int rc = connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address_), address_bytes_);
  if (rc < 0 && errno != EINPROGRESS) return false;
  ring_->Poll(&operation_, fd_.get(), POLLOUT);
  return true;
}

void CancelRequest::Abort() {
  if (fd_.valid()) shutdown(fd_.get(), SHUT_RDWR);
  ring_->Cancel(&operation_);
}

void CancelRequest::OnDone(int result) {
  bool again = result == -EINTR || result == -EAGAIN;
  if (result < 0 && !again) {
    lost_ = stage_ != Stage::kConnect;
    return Finish();
  }
  switch (stage_) {
    case Stage::kConnect:
      if (again) return ring_->Poll(&operation_, fd_.get(), POLLOUT);
      if (ring_->needs_blocking_sockets()) {
        fcntl(fd_.get(), F_SETFL, fcntl(fd_.get(), F_GETFL) & ~O_NONBLOCK);
      }
      stage_ = Stage::kSend;
      break;
    case Stage::kSend:
      if (!again) sent_ += static_cast<size_t>(result);
      if (sent_ == sizeof packet_) stage_ = Stage::kWaitForEnd;
      break;
    case Stage::kWaitForEnd:
      if (!again && result == 0) return Finish();
      break;
  }
  if (stage_ == Stage::kSend) {
    ring_->Send(&operation_, fd_.get(), packet_ + sent_, sizeof packet_ - sent_);
  } else {
    ring_->Receive(&operation_, fd_.get(), answer_, sizeof answer_);
  }
}

}  // namespace sluice
