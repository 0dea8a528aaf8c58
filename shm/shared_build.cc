#include "shm/shared_build.h"

#include "common/assert.h"
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

SharedBuildState* MakeSharedBuildState(uint32_t participants_max, Arena* arena) {
  auto* shared = new (arena->Allocate(sizeof(SharedBuildState), 64)) SharedBuildState{};
  shared->participants_max = participants_max;
  size_t bytes = sizeof(std::atomic<ProcNumber>) * participants_max;
  shared->processes = static_cast<std::atomic<ProcNumber>*>(arena->Allocate(bytes, 64));
  for (uint32_t i = 0; i < participants_max; i++) {
    new (&shared->processes[i]) std::atomic<ProcNumber>(kNoProc);
  }
  shared->file_rows = arena->NewRaw<SharedBuildState::FileRows>(participants_max);
  std::memset(shared->file_rows, 0, sizeof(SharedBuildState::FileRows) * participants_max);
  return shared;
}

template <typename Condition>
void SharedBuild::WaitUntil(Condition&& condition) {
  for (;;) {
    ResetLatch(&my_proc->latch);
    if (condition()) return;
    WaitInterruptibly(WaitEvent::kHashBuild);
  }
}

SharedBuild::SharedBuild(SharedBuildState* shared, uint32_t participant) : shared_(shared) {
  SLUICE_ASSERT(participant < shared->participants_max);
  shared->processes[participant].store(my_proc_number, std::memory_order_seq_cst);
}

bool SharedBuild::Attach() {
  SpinGuard guard(&shared_->lock);
  if (CurrentPhase() != Phase::kBuilding) return false;
  shared_->attached++;
  return true;
}

bool SharedBuild::Arrive(uint64_t row_count, uint64_t inner_rows, bool null_key) {
  bool last = true, spilled = false;
  {
    SpinGuard guard(&shared_->lock);
    shared_->row_count += row_count;
    shared_->inner_rows += inner_rows;
    shared_->inner_null_key |= null_key;
    if (++shared_->arrived < shared_->attached) {
      last = false;
    } else if (shared_->spill.load(std::memory_order_relaxed) != 0) {  // J3
      shared_->outer_attached = shared_->attached;
      shared_->phase.store(Phase::kPartitioning, std::memory_order_release);  // J1
      spilled = true;
    } else {
      shared_->phase.store(Phase::kAllocating, std::memory_order_release);
    }
  }
  if (spilled) {
    WakeAll();
  } else if (!last) {
    WaitUntil([&] { return CurrentPhase() >= Phase::kInserting; });
  }
  return last && !spilled;
}

void SharedBuild::PublishBuckets(uint64_t* buckets, uint64_t count) {
  {
    SpinGuard guard(&shared_->lock);
    shared_->buckets = buckets;
    shared_->bucket_count = count;
    shared_->phase.store(Phase::kInserting, std::memory_order_release);  // J1
  }
  WakeAll();
}

void SharedBuild::FinishInserting() {
  {
    SpinGuard guard(&shared_->lock);
    if (++shared_->inserted < shared_->attached) return;
    shared_->phase.store(Phase::kProbing, std::memory_order_release);  // J1
  }
  WakeAll();
}

void SharedBuild::WaitForTable() {
  WaitUntil([&] { return CurrentPhase() >= Phase::kProbing; });
}

bool SharedBuild::NoteMemory(uint64_t bytes, uint64_t bytes_max) {
  uint64_t total = shared_->memory_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;  // J2
  if (total > bytes_max) shared_->spill.store(1, std::memory_order_relaxed);                   // J3
  return shared_->spill.load(std::memory_order_relaxed) != 0;
}

bool SharedBuild::AttachPartitioning(bool built) {
  if (built) return true;  // counted from the start
  SpinGuard guard(&shared_->lock);
  if (CurrentPhase() != Phase::kPartitioning) return false;
  shared_->outer_attached++;
  return true;
}

void SharedBuild::ArrivePartitioned() {
  bool last;
  {
    SpinGuard guard(&shared_->lock);
    last = ++shared_->outer_arrived == shared_->outer_attached;
    if (last) shared_->phase.store(Phase::kPartitions, std::memory_order_release);  // J1
  }
  if (last) {
    WakeAll();
  } else {
    WaitUntil([&] { return CurrentPhase() >= Phase::kPartitions; });
  }
}

size_t SharedBuild::ClaimPartition() {
  SpinGuard guard(&shared_->lock);
  if (shared_->next_partition == SharedBuildState::kPartitionCount) return shared_->next_partition;
  return shared_->next_partition++;
}

void SharedBuild::OpenedPartition() {
  {
    SpinGuard guard(&shared_->lock);
    if (++shared_->opened_partitions < SharedBuildState::kPartitionCount) return;
  }
  WakeAll();
}

void SharedBuild::WaitForAllOpened() {
  WaitUntil([&] {
    SpinGuard guard(&shared_->lock);
    return shared_->opened_partitions == SharedBuildState::kPartitionCount;
  });
}

SharedBuildState::Phase SharedBuild::CurrentPhase() const {
  return shared_->phase.load(std::memory_order_acquire);  // J1
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
