// The one way to sleep. A latch belongs to one process, which alone waits on it; anyone sets it.
//
// The only correct loop (Postgres's latch.h):
//     for (;;) {
//       ResetLatch();
//       if (there is work) { do it; continue; }
//       WaitLatch(…);
//     }
// Reset before looking, so that a set that arrives while looking is not lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <poll.h>
#include <span>

#include "shm/wait_event.h"

namespace sluice {

struct Latch {
  // L1: set by any process (seq_cst), after it made its news visible; loaded by the owner in
  // WaitLatch.
  std::atomic<uint32_t> is_set;
  // L2: stored by the owner before it re-checks is_set (seq_cst, pairs with L1: either the setter
  // sees the sleeper and writes the eventfd, or the sleeper sees is_set).
  std::atomic<uint32_t> sleeping;
  int event_fd;  // made by the postmaster before the first fork, so every child has it
};

void InitLatch(Latch* latch);     // postmaster only
void DestroyLatch(Latch* latch);  // postmaster only
void SetLatch(Latch* latch);      // any process; async-signal-safe; never blocks
void ResetLatch(Latch* latch);    // owner only

// For the io worker, which sleeps in its ring (or epoll) with `event_fd` polled there instead of in
// WaitLatch. BeginSleep returns false if the latch is set already: then do not sleep. After it
// returned true, EndSleep must follow the sleep; it also empties the eventfd.
bool BeginSleep(Latch* latch);
void EndSleep(Latch* latch);

// Sleeps until the latch is set, one of `fds` is ready (revents filled), or `timeout_ms` (-1: none)
// has passed. Shows `event` in this process's row of pg_stat_activity meanwhile. Signals do not
// wake it but through the latch that their handlers set.
enum class Woken { kLatch, kFd, kTimeout };
Woken WaitLatch(Latch* latch, std::span<pollfd> fds, int timeout_ms, WaitEvent event);

}  // namespace sluice
