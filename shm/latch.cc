#include "shm/latch.h"

#include <cerrno>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/assert.h"
#include "shm/lease.h"
#include "shm/process_table.h"

namespace sluice {
namespace {

constexpr size_t kFdsMax = 63;

void ShowWait(WaitEvent event) {
  if (my_proc != nullptr) my_proc->wait_event.store(event, std::memory_order_relaxed);
}

// What poll reported. A wake-up by an eventfd that was written for an earlier set counts as one by
// the latch: the callers' loops look for work and come back.
Woken Report(Latch* latch, const pollfd& event, std::span<const pollfd> fds) {
  if (latch->is_set.load(std::memory_order_seq_cst) != 0) return Woken::kLatch;
  for (const pollfd& fd : fds)
    if (fd.revents != 0) return Woken::kFd;
  return event.revents != 0 ? Woken::kLatch : Woken::kTimeout;
}

}  // namespace

void InitLatch(Latch* latch) {
  latch->is_set.store(0, std::memory_order_relaxed);
  latch->sleeping.store(0, std::memory_order_relaxed);
  latch->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

void DestroyLatch(Latch* latch) {
  if (latch->event_fd >= 0) close(latch->event_fd);
  latch->event_fd = -1;
}

void SetLatch(Latch* latch) {
  // The exchange publishes (release part) whatever the caller did before it to the owner's
  // ResetLatch.
  if (latch->is_set.exchange(1, std::memory_order_seq_cst) != 0) return;  // the first setter wakes
  if (latch->sleeping.load(std::memory_order_seq_cst) == 0) return;
  int saved_errno = errno;  // may be called in a signal handler
  uint64_t one = 1;
  ssize_t written;
  do {
    written = write(latch->event_fd, &one, sizeof one);
  } while (written < 0 &&
           errno == EINTR);  // EAGAIN: the counter is full, so it is readable already
  errno = saved_errno;
}

void ResetLatch(Latch* latch) {
  // An exchange, not a store: it reads from the last SetLatch, so what that setter did is visible
  // to the caller's look for work.
  latch->is_set.exchange(0, std::memory_order_seq_cst);
}

bool BeginSleep(Latch* latch) {
  latch->sleeping.store(1, std::memory_order_seq_cst);
  if (latch->is_set.load(std::memory_order_seq_cst) == 0) return true;
  latch->sleeping.store(0, std::memory_order_relaxed);
  return false;
}

void EndSleep(Latch* latch) {
  latch->sleeping.store(0, std::memory_order_relaxed);
  uint64_t count;
  while (read(latch->event_fd, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

Woken WaitLatch(Latch* latch, std::span<pollfd> fds, int timeout_ms, WaitEvent event) {
  SLUICE_ASSERT(fds.size() <= kFdsMax);
  // Wherever a process sleeps, others must get what it holds and does not use.
  if (on_leases_recalled != nullptr && TakeLeaseRecall()) on_leases_recalled();
  pollfd polled[kFdsMax + 1];
  polled[0] = {latch->event_fd, POLLIN, 0};
  for (size_t i = 0; i < fds.size(); i++) polled[i + 1] = {fds[i].fd, fds[i].events, 0};

  int64_t deadline_us = timeout_ms < 0 ? 0 : MonotonicUs() + int64_t{timeout_ms} * 1000;
  ShowWait(event);
  bool slept = BeginSleep(latch);
  int ready = 0;
  while (slept) {
    ready = poll(polled, fds.size() + 1, timeout_ms);
    if (ready >= 0 || errno != EINTR) break;
    if (latch->is_set.load(std::memory_order_seq_cst) != 0) break;  // by the signal's handler
    if (timeout_ms < 0) continue;
    timeout_ms = static_cast<int>(std::max<int64_t>(0, (deadline_us - MonotonicUs() + 999) / 1000));
  }
  if (slept && polled[0].revents != 0) {
    EndSleep(latch);
  } else {
    latch->sleeping.store(0, std::memory_order_relaxed);
  }
  ShowWait(WaitEvent::kNone);
  for (size_t i = 0; i < fds.size(); i++) fds[i].revents = ready > 0 ? polled[i + 1].revents : 0;
  return Report(latch, polled[0], fds);
}

}  // namespace sluice
