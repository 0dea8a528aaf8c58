// How the participants of a Gather build one hash table together: whose turn it is for what. The
// table itself is the executor's (executor/hash_join.h).
//
//   building      each participant that attaches puts its share of the inner rows into memory of
//   its own allocating    all attached have arrived: the last one makes the bucket array inserting
//   each one that built inserts its rows probing       all rows are in: nothing changes any more
//
// When the rows pass work_mem × participants, the first to notice says so and everybody spills by
// hash, into files that have names for the others:
//
//   partitioning  (instead of allocating) each one divides its share of the outer rows in the same
//   way partitions    whoever is free claims a partition, opens everybody's files of it and joins
//   it alone
//
// Participants may come late or never. Who comes after `building` finds no inner rows left (all
// were claimed by those attached). No participant has given out a row of this join before the last
// wait of its way, and while the leader waits its Gather puts workers' rows aside, so nobody waits
// in a circle. Who is stopped (error, cancel, early end of the statement) leaves its wait by
// CheckForInterrupts.
#pragma once

#include <atomic>

#include "common/arena.h"
#include "shm/process_table.h"

namespace sluice {

struct SharedBuildState {
  enum class Phase : uint32_t {
    kBuilding,
    kAllocating,
    kInserting,
    kProbing,
    kPartitioning,
    kPartitions
  };
  static constexpr size_t kSides = 2, kInnerSide = 0, kOuterSide = 1;
  static constexpr size_t kPartitionCount = 16;
  using FileRows = uint64_t[kSides][kPartitionCount];

  // Held for a few instructions only; a process that dies with it takes the server down by the
  // crash rule.
  std::atomic<uint32_t> lock;

  // J1: advanced under `lock` (release); loaded by anyone (acquire): who sees kInserting sees
  // `buckets`, who sees kProbing sees every chain.
  std::atomic<Phase> phase;

  // Under `lock`.
  uint32_t attached, arrived, inserted;
  uint32_t outer_attached, outer_arrived;
  uint32_t next_partition, opened_partitions;
  uint64_t row_count;   // of all who arrived, NULL keys not counted
  uint64_t inner_rows;  // the same, counted
  uint32_t inner_null_key;

  // Written by the last to arrive, before kInserting.
  uint64_t* buckets;
  uint64_t bucket_count;

  // J2: bytes of all participants' rows; raised by each for itself (relaxed: only compared with the
  // bound).
  std::atomic<uint64_t> memory_bytes;
  // J3: set once by whoever sees the bound passed, read by all (relaxed): acted on at the latest at
  // the phase change under `lock` that follows the last arrival.
  std::atomic<uint32_t> spill;
  // Rows in each participant's files; written by it before it arrives from `partitioning`.
  FileRows* file_rows;

  // Whom to wake: by participant number; stored before a participant looks at `phase`.
  uint32_t participants_max;
  std::atomic<ProcNumber>* processes;
};

// The leader's, before workers start; lives in `arena`, which is shared.
SharedBuildState* MakeSharedBuildState(uint32_t participants_max, Arena* arena);

// A participant's side.
class SharedBuild {
 public:
  SharedBuild(SharedBuildState* shared, uint32_t participant);

  // Whether this participant takes part in building.
  bool Attach();
  // After its rows are stored. True: the caller is the last, has to make the buckets (bucket_count
  // for row_count rows) and call PublishBuckets. Otherwise returns when they are there, or when all
  // are to spill.
  bool Arrive(uint64_t row_count, uint64_t inner_rows, bool null_key);
  void PublishBuckets(uint64_t* buckets, uint64_t count);
  // After its rows are inserted.
  void FinishInserting();
  // Until the table is complete, or all are to spill.
  void WaitForTable();
  bool spills() const {
    return shared_->phase.load(std::memory_order_acquire) >= SharedBuildState::Phase::kPartitioning;
  }

  // Counts `bytes` more; true: everybody has to spill.
  bool NoteMemory(uint64_t bytes, uint64_t bytes_max);
  // `built`: this participant took part in building. False: too late, the outer rows are divided
  // already.
  bool AttachPartitioning(bool built);
  void ArrivePartitioned();
  // A partition of its own, or kPartitionCount at the end; OpenedPartition follows when its files
  // are open.
  size_t ClaimPartition();
  void OpenedPartition();
  // Until nobody needs the names of files any more.
  void WaitForAllOpened();

 private:
  using Phase = SharedBuildState::Phase;

  Phase CurrentPhase() const;
  template <typename Condition>
  void WaitUntil(Condition&& condition);
  void WakeAll();

  SharedBuildState* shared_;
};

}  // namespace sluice
