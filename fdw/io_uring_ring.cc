// The seam on io_uring. One enter() a round both submits and waits, so that a request and the wait
// for its answer cost one system call.
#include <cerrno>
#include <liburing.h>
#include <poll.h>
#include <sys/socket.h>

#include "common/assert.h"
#include "fdw/io_ring.h"

namespace sluice {
namespace {

constexpr unsigned kSubmissionEntries = 1024;
constexpr unsigned kCompletionEntries = 16384;

class IoUringRing final : public IoRing {
 public:
  explicit IoUringRing(const io_uring& ring) : ring_(ring) {}
  ~IoUringRing() override { io_uring_queue_exit(&ring_); }

  void Receive(IoOperation* operation, int fd, char* to, size_t size_bytes) override {
    io_uring_sqe* entry = Begin(operation, IoOperation::Kind::kReceive);
    io_uring_prep_recv(entry, fd, to, size_bytes, 0);
    io_uring_sqe_set_data(entry, operation);
  }

  void Send(IoOperation* operation, int fd, const char* from, size_t size_bytes) override {
    io_uring_sqe* entry = Begin(operation, IoOperation::Kind::kSend);
    io_uring_prep_send(entry, fd, from, size_bytes, MSG_NOSIGNAL);
    io_uring_sqe_set_data(entry, operation);
  }

  void Poll(IoOperation* operation, int fd, short events) override {
    io_uring_sqe* entry = Begin(operation, IoOperation::Kind::kPoll);
    io_uring_prep_poll_add(entry, fd, static_cast<unsigned>(events));
    io_uring_sqe_set_data(entry, operation);
  }

  void Cancel(IoOperation* operation) override {
    if (!operation->in_flight) return;
    io_uring_sqe* entry = NextEntry();
    io_uring_prep_cancel(entry, operation, 0);
    io_uring_sqe_set_data(entry, nullptr);  // its own completion tells nothing
  }

  void Wait(int64_t timeout_us) override {
    if (has_completions() || io_uring_cq_ready(&ring_) != 0) timeout_us = 0;
    int rc;
    if (timeout_us == 0) {
      rc = io_uring_submit_and_get_events(&ring_);
    } else if (timeout_us < 0) {
      rc = io_uring_submit_and_wait(&ring_, 1);
    } else {
      __kernel_timespec timeout{timeout_us / 1000000, (timeout_us % 1000000) * 1000};
      io_uring_cqe* entry = nullptr;
      rc = io_uring_submit_and_wait_timeout(&ring_, &entry, 1, &timeout, nullptr);
    }
    // -ETIME, -EINTR: nothing came. -EBUSY, -EAGAIN: reap first, the rest is submitted next time.
    SLUICE_ASSERT(rc >= 0 || rc == -ETIME || rc == -EINTR || rc == -EBUSY || rc == -EAGAIN);
    Reap();
  }

  bool needs_blocking_sockets() const override { return true; }
  const char* name() const override { return "io_uring"; }

 private:
  io_uring_sqe* Begin(IoOperation* operation, IoOperation::Kind kind) {
    SLUICE_ASSERT(!operation->in_flight);
    operation->in_flight = true;
    operation->kind = kind;
    return NextEntry();
  }

  io_uring_sqe* NextEntry() {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    while (entry == nullptr) {  // full: hand over what is there
      io_uring_submit(&ring_);
      entry = io_uring_get_sqe(&ring_);
      if (entry == nullptr) Reap();
    }
    return entry;
  }

  void Reap() {
    io_uring_cqe* entry;
    unsigned head, count = 0;
    io_uring_for_each_cqe(&ring_, head, entry) {
      count++;
      if (auto* operation = static_cast<IoOperation*>(io_uring_cqe_get_data(entry))) {
        Enqueue(operation, entry->res);
      }
    }
    io_uring_cq_advance(&ring_, count);
  }

  io_uring ring_;
};

}  // namespace

Result<std::unique_ptr<IoRing>> MakeIoUringRing() {
  // The best that the kernel has: completions run only when this process asks for them (6.1), or at
  // least without an interrupt of it (5.19), or plain.
  const unsigned choices[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                              IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN,
                              IORING_SETUP_COOP_TASKRUN, 0};
  int rc = 0;
  for (unsigned flags : choices) {
    io_uring ring;
    io_uring_params params{};
    params.flags = flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    params.cq_entries = kCompletionEntries;
    rc = io_uring_queue_init_params(kSubmissionEntries, &ring, &params);
    if (rc != 0) {
      if (rc == -EINVAL) continue;
      break;
    }
    // Timeouts as an argument of enter(), fast poll for sockets, and no lost completions.
    constexpr unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_FAST_POLL | IORING_FEAT_NODROP |
                                IORING_FEAT_SUBMIT_STABLE;
    if ((params.features & needed) == needed) return std::unique_ptr<IoRing>(new IoUringRing(ring));
    io_uring_queue_exit(&ring);
    rc = -ENOSYS;
    break;
  }
  return MakeError(sqlstate::kFeatureNotSupported, "io_uring is not available: {}",
                   std::strerror(-rc));
}

}  // namespace sluice
