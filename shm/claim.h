// Work that participants of a Gather divide among themselves without a queue.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice {

// Something that one participant takes for good.
struct OnceClaim {
  // K1: 0, or 1 + the participant that has it; by compare-and-swap. What the claimer then does is
  // published by other means (a ready queue), so only that there is one matters.
  std::atomic<uint32_t> taken_by;

  bool TryTake(uint32_t participant) {
    if (taken_by.load(std::memory_order_relaxed) != 0) return false;  // without writing the line
    uint32_t nobody = 0;
    return taken_by.compare_exchange_strong(nobody, participant + 1, std::memory_order_acq_rel);
  }
};

// Numbers from 0, each given out once.
struct TakeANumber {
  // K2: raised by every taker; relaxed: a number carries nothing with it.
  std::atomic<uint32_t> next;

  uint32_t Take() { return next.fetch_add(1, std::memory_order_relaxed); }
};

}  // namespace sluice
