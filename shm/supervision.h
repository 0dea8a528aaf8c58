// The page through which the postmaster tells its children why they must quit. It is not part of
// the shared memory that the crash rule throws away (postmaster/child_process.h makes it).
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice {

enum class QuitReason : uint32_t { kNone, kCrash, kImmediateShutdown };

struct Supervision {
  // V1: stored by the postmaster before it sends SIGQUIT, loaded in the children's handler.
  std::atomic<QuitReason> quit_reason;
  // V2: statistics, stored by the postmaster. µs since 2000-01-01 UTC.
  std::atomic<int64_t> started_at;
  std::atomic<int64_t> reloaded_at;
  std::atomic<uint32_t> crash_restarts;
};

}  // namespace sluice
