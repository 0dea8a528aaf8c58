// Lending the socket to a backend at a protocol boundary, and taking it back at the next: see
// shm/lease.h.
#include <cerrno>
#include <sys/socket.h>

#include "common/assert.h"
#include "fdw/connection.h"
#include "fdw/pool.h"
#include "shm/lease.h"
#include "shm/shared_memory.h"
#include "shm/transaction_table.h"

namespace sluice {
namespace {

// Sends the descriptor together with the lease's address, by which its receiver knows it.
bool SendDescriptor(int through, const Lease* lease, int fd) {
  auto address = reinterpret_cast<uintptr_t>(lease);
  iovec data{&address, sizeof address};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)]{};
  msghdr message{};
  message.msg_name = const_cast<sockaddr_un*>(&lease->address);
  message.msg_namelen = lease->address_bytes;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return sendmsg(through, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof address;
}

int LendingSocket() {
  static const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return fd.get();
}

}  // namespace

// A TLS connection's state cannot be shared, a connection without a cancel key not be interrupted.
bool Connection::CanBeLent() const {
  return libpq_ != nullptr && PQsslInUse(libpq_) == 0 && backend_pid_ != 0 && hold_ == nullptr &&
         generation_ == pool_->generation() && pool_->MayLend() && !socket_.busy() &&
         statements_.to_close.empty();
}

// REQUIRES: it is free.
bool Connection::Lend(Lease* lease) {
  if (!CanBeLent() || LendingSocket() < 0) return false;
  if (!SendDescriptor(LendingSocket(), lease, socket_.fd())) return false;
  lend_to_ = nullptr;
  lent_to_ = lease;
  lent_shown_ = ShowLent(lease->backend, pool_->server_name());
  ShowPin();
  lease->connection = this;
  lease->state.store(LeaseState::kLent, std::memory_order_release);  // L3
  return true;
}

void Connection::TakeBack() {
  SLUICE_ASSERT(lent_to_ != nullptr && state_ == State::kOpen);
  Lease* lease = lent_to_;
  for (uint32_t i = 0; i < lease->statements; i++)
    statements_.to_close.push_back(fmt::format("lent_{}", i));
  bool cancel = lease->end == LeaseEnd::kCancel, pinned = lease->end == LeaseEnd::kPinned;
  uint64_t pin = lease->pin;
  if (pinned) transaction_status_ = lease->transaction_status;
  EndLease(&lent_to_);
  if (pinned) {
    worker_->pools->Pin(pin, this);
    return ShowPin();
  }
  if (cancel) {
    // Bytes of its answer are lost: the connection is of no use. What runs is cancelled, and where
    // the request comes too early the shard sees that the socket is closed.
    close_when_free_ = true;
    cancel_deadline_us_ = worker_->now_us + worker_->config.cancel_timeout_us;
    SendCancel();
    cancel_timer_.Arm(cancel_deadline_us_);
  }
  BecomeFree();
}

void Connection::EndLease(Lease** lease) {
  if (*lease == nullptr) return;
  if (lease == &lent_to_) {
    HideStream(lent_shown_);
    HidePin();
  }
  ProcNumber backend = (*lease)->backend;
  (*lease)->state.store(LeaseState::kNone, std::memory_order_release);  // L3: the last touch
  *lease = nullptr;
  SetLatch(&shared_memory->processes.slots[backend].latch);
}

}  // namespace sluice
