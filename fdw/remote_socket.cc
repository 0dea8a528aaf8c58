#include "fdw/remote_socket.h"

#include <cerrno>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include "common/assert.h"

namespace sluice {
namespace {

bool TryAgain(int result) {
  return result == -EINTR || result == -EAGAIN;
}

// What SSL_read or SSL_write wants before it can go on: poll events, or 0 and an errno.
short WantedEvents(SSL* tls, int rc, int* error) {
  switch (SSL_get_error(tls, rc)) {
    case SSL_ERROR_WANT_READ:
      return POLLIN;
    case SSL_ERROR_WANT_WRITE:
      return POLLOUT;
    case SSL_ERROR_ZERO_RETURN:
      *error = 0;
      return 0;
    // An end without close_notify may be an attacker's cut: an error, not an end of file.
    case SSL_ERROR_SYSCALL:
      *error = errno != 0 ? -errno : -ECONNRESET;
      return 0;
    default:
      *error = -EPROTO;
      return 0;
  }
}

}  // namespace

RemoteSocket::RemoteSocket(IoRing* ring, User* user)
    : ring_(ring),
      user_(user),
      receive_([](void* self, int rc) { static_cast<RemoteSocket*>(self)->OnReceiveDone(rc); },
               this),
      send_([](void* self, int rc) { static_cast<RemoteSocket*>(self)->OnSendDone(rc); }, this) {}

RemoteSocket::~RemoteSocket() {
  SLUICE_ASSERT(!busy());
}

void RemoteSocket::Attach(int fd, SSL* tls) {
  fd_ = fd;
  tls_ = tls;
  int flags = fcntl(fd, F_GETFL);
  bool blocking = tls == nullptr && ring_->needs_blocking_sockets();
  fcntl(fd, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

void RemoteSocket::Receive(char* to, size_t room_bytes) {
  SLUICE_ASSERT(!receiving() && !receive_.in_flight && room_bytes > 0);
  room_ = to;
  room_bytes_ = room_bytes;
  cancelled_ = false;
  if (tls_ == nullptr) {
    ring_->Receive(&receive_, fd_, to, room_bytes);
  } else if (SSL_pending(tls_) > 0) {
    ring_->Complete(&receive_, POLLIN);  // a poll would not see what OpenSSL has read already
  } else {
    ring_->Poll(&receive_, fd_, POLLIN);
  }
}

void RemoteSocket::CancelReceive() {
  cancelled_ = true;
  ring_->Cancel(&receive_);
}

void RemoteSocket::EndReceive(int result) {
  room_ = nullptr;
  user_->OnReceived(result);
}

void RemoteSocket::OnReceiveDone(int result) {
  if (TryAgain(result) && !cancelled_) {
    char* to = std::exchange(room_, nullptr);
    return Receive(to, room_bytes_);
  }
  if (TryAgain(result)) result = -ECANCELED;
  if (tls_ == nullptr || result < 0) return EndReceive(result);
  ReceiveTls();
}

void RemoteSocket::ReceiveTls() {
  size_t received = 0;
  int error = 0;
  // A TLS record is 16 KB at most: read on while there is room and OpenSSL gives more.
  while (received < room_bytes_) {
    ERR_clear_error();
    errno = 0;
    int rc = SSL_read(tls_, room_ + received, static_cast<int>(room_bytes_ - received));
    if (rc > 0) {
      received += static_cast<size_t>(rc);
      continue;
    }
    short events = WantedEvents(tls_, rc, &error);
    if (events == 0 || received > 0) break;
    if (cancelled_) return EndReceive(-ECANCELED);
    return ring_->Poll(&receive_, fd_, static_cast<short>(events | POLLIN));
  }
  // An error after some bytes shows again at the next read.
  EndReceive(received > 0 ? static_cast<int>(received) : error);
}

void RemoteSocket::Flush() {
  if (send_.in_flight || sending() || out_.empty()) return;
  sending_.swap(out_);
  sent_ = 0;
  ContinueSend();
}

void RemoteSocket::ContinueSend() {
  if (tls_ == nullptr) {
    return ring_->Send(&send_, fd_, sending_.data() + sent_, sending_.size() - sent_);
  }
  ERR_clear_error();
  errno = 0;
  int rc = SSL_write(tls_, sending_.data() + sent_, static_cast<int>(sending_.size() - sent_));
  if (rc > 0) return ring_->Complete(&send_, rc);
  int error = 0;
  short events = WantedEvents(tls_, rc, &error);
  if (events == 0) return ring_->Complete(&send_, error != 0 ? error : -EPIPE);
  ring_->Poll(&send_, fd_, POLLOUT);
  send_polls_ = true;
}

void RemoteSocket::OnSendDone(int result) {
  bool polled = std::exchange(send_polls_, false);
  if (TryAgain(result)) return ContinueSend();
  if (result < 0) {
    sending_.clear();
    out_.clear();
    return user_->OnSent(result);
  }
  if (!polled) sent_ += static_cast<size_t>(result);
  if (sent_ < sending_.size()) return ContinueSend();
  sending_.clear();
  sent_ = 0;
  if (!out_.empty()) return Flush();
  user_->OnSent(0);
}

int RemoteSocket::TryReceive(char* to, size_t room_bytes) {
  SLUICE_ASSERT(!receiving());
  if (tls_ == nullptr) {
    ssize_t rc = recv(fd_, to, room_bytes, MSG_DONTWAIT);
    return rc < 0 ? -errno : static_cast<int>(rc);
  }
  ERR_clear_error();
  errno = 0;
  int rc = SSL_read(tls_, to, static_cast<int>(room_bytes));
  if (rc > 0) return rc;
  int error = 0;
  return WantedEvents(tls_, rc, &error) != 0 ? -EAGAIN : error;
}

void RemoteSocket::SayGoodbye() {
  constexpr char terminate[] = {'X', 0, 0, 0, 4};
  if (sending()) return;
  ssize_t rc;
  if (tls_ == nullptr) {
    rc = send(fd_, terminate, sizeof terminate, MSG_DONTWAIT | MSG_NOSIGNAL);
  } else {
    ERR_clear_error();
    rc = SSL_write(tls_, terminate, sizeof terminate);
  }
  (void)rc;  // if it did not go out, the shard sees a closed socket instead
}

void RemoteSocket::Shutdown() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

}  // namespace sluice
