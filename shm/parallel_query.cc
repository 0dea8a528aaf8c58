#include "shm/parallel_query.h"

#include "common/assert.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

bool TryLaunch(ProcSlot* slot, ParallelQuery* query) {
  if (slot->pid.load(std::memory_order_relaxed) == 0 ||
      slot->terminate_requested.load(std::memory_order_relaxed) != 0 ||
      slot->assignment.load(std::memory_order_relaxed) != nullptr)
    return false;
  // W2 goes up first: the worker may be through before we look again. Only the leader raises it.
  query->running.fetch_add(1, std::memory_order_relaxed);
  ParallelQuery* none = nullptr;
  // P3: release: the worker sees the query as it is now.
  if (slot->assignment.compare_exchange_strong(none, query, std::memory_order_acq_rel)) {
    SetLatch(&slot->latch);
    return true;
  }
  query->running.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

}  // namespace

uint32_t LaunchWorkers(ParallelQuery* query, uint32_t wanted) {
  ProcessTable& table = shared_memory->processes;
  query->participants.store(1, std::memory_order_relaxed);
  uint32_t launched = 0;
  for (uint32_t i = 0; i < table.parallel_workers && launched < wanted; i++)
    if (TryLaunch(&table.slots[table.first_parallel_worker + i], query)) launched++;
  return launched;
}

ParallelQuery* TakeAssignment() {
  return my_proc->assignment.load(std::memory_order_acquire);
}

void FinishAssignment(ParallelQuery* query) {
  ProcNumber leader = query->leader;  // `query` is gone after the decrement
  my_proc->assignment.store(nullptr, std::memory_order_release);
  query->running.fetch_sub(1, std::memory_order_acq_rel);  // W2
  SetLatch(&shared_memory->processes.slots[leader].latch);
}

void ReportError(ParallelQuery* query, const Error& error) {
  uint32_t none = 0;
  if (!query->error_state.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) return;
  query->error.Store(error);
  query->error_state.store(2, std::memory_order_release);  // W4
  // Only now: who sees W3 set by an error finds the error.
  query->stop.store(1, std::memory_order_seq_cst);
  SetLatch(&shared_memory->processes.slots[query->leader].latch);
}

}  // namespace sluice
