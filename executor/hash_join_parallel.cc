// A participant's part in a table built together, and in partitions where that does not fit.
#include <unistd.h>

#include "executor/hash_join.h"
#include "shm/parallel_query.h"
#include "shm/process_table.h"
#include "shm/shared_memory.h"

namespace sluice {

static_assert(SharedBuildState::kPartitionCount == SpillPartitions::kPartitions);

void* PrepareHashJoinShared(const HashJoinPlan& plan, ExecutionState& state) {
  if (!plan.shared_build) return nullptr;
  return MakeSharedBuildState(state.participants_max, state.context->shared_arena);
}

void HashJoin::BuildShared() {
  SharedBuild build(shared_, state_.participant);
  bool built = build.Attach();
  if (built) {
    uint64_t bytes_max = work_mem_bytes() * shared_->participants_max;
    size_t noted = 0;
    Batch input;
    for (inner_->Next(&input); input.rows > 0; inner_->Next(&input)) {
      CheckForInterrupts();
      AddInner(input);
      size_t more = std::max(memory_bytes(), noted) - noted;
      noted += more;
      if (build.NoteMemory(more, bytes_max)) SpillInnerShared();
    }
    uint64_t in_memory = rows_->rows().size();
    if (build.Arrive(in_memory, inner_rows_, inner_null_key_)) {
      size_t count = JoinBuckets::CountFor(shared_->row_count);
      size_t bytes = count * sizeof(uint64_t);
      auto* buckets = reinterpret_cast<uint64_t*>(shared_blocks_->Acquire(bytes).data);
      std::memset(buckets, 0, bytes);
      build.PublishBuckets(buckets, count);
    }
    if (!build.spills()) InsertShared(&build);
  }
  build.WaitForTable();
  inner_rows_ = shared_->inner_rows;
  inner_null_key_ = shared_->inner_null_key != 0;
  if (build.spills()) {
    PartitionShared(&build, built);
  } else {
    buckets_ = JoinBuckets(shared_->buckets, shared_->bucket_count);
    NoteMemory();
  }
}

void HashJoin::InsertShared(SharedBuild* build) {
  JoinBuckets buckets(shared_->buckets, shared_->bucket_count);
  std::span<char* const> rows = rows_->rows();
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < rows.size(); i++) {
    if (i + kAhead < rows.size()) buckets.Prefetch(HeaderOf(rows[i + kAhead])->hash);
    buckets.InsertShared(rows[i]);
  }
  build->FinishInserting();
}

// Unique among running statements: the query lies in the leader's arena.
std::string HashJoin::SharedPath(uint32_t participant, size_t side) const {
  const ProcSlot& leader = shared_memory->processes.slots[state_.parallel->leader];
  return fmt::format("{}/spill_join_{}_{}_{}_{}_{}", state_.context->temp_directory,
                     leader.pid.load(std::memory_order_relaxed),
                     static_cast<const void*>(state_.parallel), plan_.id, participant, side);
}

void HashJoin::SpillInnerShared() {
  if (spilling_inner_ != nullptr) return;
  SpillInner(std::make_unique<SpillPartitions>(
      layout_.get(), SharedPath(state_.participant, SharedBuildState::kInnerSide)));
}

// Both sides' rows of this participant go to files for whoever claims their partition.
void HashJoin::PartitionShared(SharedBuild* build, bool built) {
  shared_spilled_ = true;
  auto publish = [this](SpillPartitions* partitions, size_t side) {
    Statistics().spilled_bytes += partitions->bytes();
    auto files = partitions->TakeFiles();
    for (size_t i = 0; i < files.size(); i++) {
      files[i]->Publish();
      shared_->file_rows[state_.participant][side][i] = files[i]->row_count();
    }
  };
  if (built) {
    SpillInnerShared();
    publish(spilling_inner_.get(), SharedBuildState::kInnerSide);
    spilling_inner_ = nullptr;
  }
  // What was in shared memory stays there until the statement ends; from here on memory is our own.
  rows_ = MakePrivateRows();
  if (!build->AttachPartitioning(built)) return;
  SpillPartitions outer(outer_layout_.get(),
                        SharedPath(state_.participant, SharedBuildState::kOuterSide));
  SpillOuter(&outer);
  publish(&outer, SharedBuildState::kOuterSide);
  build->ArrivePartitioned();
}

bool HashJoin::ClaimSharedPartition() {
  SharedBuild build(shared_, state_.participant);
  size_t claimed = build.ClaimPartition();
  if (claimed == SharedBuildState::kPartitionCount) {
    build.WaitForAllOpened();
    return false;
  }
  Partition partition{{}, {}, 1};
  for (uint32_t p = 0; p < shared_->participants_max; p++) {
    for (size_t side : {SharedBuildState::kInnerSide, SharedBuildState::kOuterSide}) {
      uint64_t rows = shared_->file_rows[p][side][claimed];
      if (rows == 0) continue;
      bool inner = side == SharedBuildState::kInnerSide;
      auto& files = inner ? partition.inner : partition.outer;
      files.push_back(
          SpillFile::OpenPublished(inner ? layout_.get() : outer_layout_.get(),
                                   SpillPartitions::PathOf(SharedPath(p, side), claimed), rows));
    }
  }
  build.OpenedPartition();
  AddPartition(std::move(partition));
  return true;
}

HashJoin::~HashJoin() {
  // Ended early: nobody will open what is left of our files.
  if (shared_ == nullptr || shared_->spill.load(std::memory_order_relaxed) == 0) return;
  for (size_t side : {SharedBuildState::kInnerSide, SharedBuildState::kOuterSide}) {
    std::string path = SharedPath(state_.participant, side);
    for (size_t i = 0; i < SharedBuildState::kPartitionCount; i++) {
      ::unlink(SpillPartitions::PathOf(path, i).c_str());
    }
  }
}

}  // namespace sluice
