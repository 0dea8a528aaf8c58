#include "shm/lease.h"

namespace sluice {

constinit thread_local LeaseRecallHandler on_leases_recalled = nullptr;

void RecallLeases(ProcSlot* slot) {
  slot->recall_requested.store(1, std::memory_order_relaxed);  // L4: the latch publishes it
  SetLatch(&slot->latch);
}

bool TakeLeaseRecall() {
  if (my_proc->recall_requested.load(std::memory_order_relaxed) == 0) return false;
  my_proc->recall_requested.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace sluice
