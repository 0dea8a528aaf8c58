#include "executor/hash_join_shared.h"

#include "executor/node.h"
#include "shm/latch.h"
#include "shm/shared_memory.h"
#include "shm/wait_event.h"

namespace sluice {
namespace {

class SpinGuard {
 public:
  explicit SpinGuard(std::atomic<uint32_t>* lock) : lock_(lock) {
    while (lock_->exchange(1, std::memory_order_acquire) != 0) __builtin_ia32_pause();
  }
  ~SpinGuard() { lock_->store(0, std::memory_order_release); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  std::atomic<uint32_t>* lock_;
};

}  // namespace

void* PrepareHashJoinShared(const HashJoinPlan& plan, ExecutionState& state) {
  if (!plan.shared_build) return nullptr;
  Arena& arena = *state.context->shared_arena;
  auto* shared = new (arena.Allocate(sizeof(HashJoinShared), 64)) HashJoinShared{};
  shared->participants_max = state.participants_max;
  size_t bytes = sizeof(std::atomic<ProcNumber>) * state.participants_max;
  shared->processes = static_cast<std::atomic<ProcNumber>*>(arena.Allocate(bytes, 64));
  for (uint32_t i = 0; i < state.participants_max; i++) {
    new (&shared->processes[i]) std::atomic<ProcNumber>(kNoProc);
  }
  return shared;
}

SharedBuild::SharedBuild(HashJoinShared* shared, uint32_t participant) : shared_(shared) {
  SLUICE_ASSERT(participant < shared->participants_max);
  shared->processes[participant].store(my_proc_number, std::memory_order_seq_cst);
}

bool SharedBuild::Attach() {
  SpinGuard guard(&shared_->lock);
  if (shared_->phase.load(std::memory_order_relaxed) != HashJoinShared::Phase::kBuilding) return false;
  shared_->attached++;
  return true;
}

bool SharedBuild::Arrive(uint64_t row_count, uint64_t inner_rows, bool null_key) {
  {
    SpinGuard guard(&shared_->lock);
    shared_->row_count += row_count;
    shared_->inner_rows += inner_rows;
    shared_->inner_null_key |= null_key;
    if (++shared_->arrived == shared_->attached) {
      shared_->phase.store(HashJoinShared::Phase::kAllocating, std::memory_order_release);
      return true;
    }
  }
  WaitFor(HashJoinShared::Phase::kInserting);
  return false;
}

void SharedBuild::PublishBuckets(uint64_t* buckets, uint64_t count) {
  {
    SpinGuard guard(&shared_->lock);
    shared_->buckets = buckets;
    shared_->bucket_count = count;
    shared_->phase.store(HashJoinShared::Phase::kInserting, std::memory_order_release);  // J1
  }
  WakeAll();
}

void SharedBuild::FinishInserting() {
  {
    SpinGuard guard(&shared_->lock);
    if (++shared_->inserted < shared_->attached) return;
    shared_->phase.store(HashJoinShared::Phase::kProbing, std::memory_order_release);  // J1
  }
  WakeAll();
}

void SharedBuild::WaitForProbing() { WaitFor(HashJoinShared::Phase::kProbing); }

void SharedBuild::WaitFor(HashJoinShared::Phase phase) {
  for (;;) {
    ResetLatch(&my_proc->latch);
    if (shared_->phase.load(std::memory_order_acquire) >= phase) return;  // J1
    WaitInterruptibly(WaitEvent::kHashBuild);
  }
}

void SharedBuild::WakeAll() {
  for (uint32_t i = 0; i < shared_->participants_max; i++) {
    ProcNumber process = shared_->processes[i].load(std::memory_order_seq_cst);
    if (process != kNoProc && process != my_proc_number) {
      SetLatch(&shared_memory->processes.slots[process].latch);
    }
  }
}

}  // namespace sluice
