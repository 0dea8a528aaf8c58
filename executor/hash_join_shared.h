// One hash table built by all participants of a Gather.
//
//   building    each participant that attaches puts its share of the inner rows into memory of its own
//   allocating  all attached have arrived: the last one makes the bucket array
//   inserting   each one that built inserts its rows
//   probing     all rows are in: nothing changes any more
//
// Participants may come late or never. Who comes after `building` finds no inner rows left (all were claimed by
// those attached) and only waits for `probing`. Nobody waits while it has something to give to others, and
// who is stopped (error, cancel, early end of the statement) leaves its wait by CheckForInterrupts.
//
// The table stays in memory whatever work_mem says: it is divided among the participants, who would each
// have needed one; where shared memory has no room the statement ends with 53200.
#pragma once

#include <atomic>

#include "optimizer/plan.h"
#include "shm/process_table.h"

namespace sluice {

struct ExecutionState;

struct HashJoinShared {
  enum class Phase : uint32_t { kBuilding, kAllocating, kInserting, kProbing };

  // Held for a few instructions only; a process that dies with it takes the server down by the crash rule.
  std::atomic<uint32_t> lock;

  // J1: advanced under `lock` (release); loaded by anyone (acquire): who sees kInserting sees `buckets`, who
  // sees kProbing sees every chain.
  std::atomic<Phase> phase;

  // Under `lock`.
  uint32_t attached, arrived, inserted;
  uint64_t row_count;        // of all who arrived, NULL keys not counted
  uint64_t inner_rows;       // the same, counted
  uint32_t inner_null_key;

  // Written by the last to arrive, before kInserting.
  uint64_t* buckets;
  uint64_t bucket_count;

  // Whom to wake: by participant number; stored before a participant looks at `phase`.
  uint32_t participants_max;
  std::atomic<ProcNumber>* processes;
};

// The leader's, before workers start.
void* PrepareHashJoinShared(const HashJoinPlan& plan, ExecutionState& state);

// A participant's side.
class SharedBuild {
 public:
  SharedBuild(HashJoinShared* shared, uint32_t participant);

  // Whether this participant takes part in building.
  bool Attach();
  // After its rows are stored. True: the caller is the last, has to make the buckets (bucket_count for
  // row_count rows) and call PublishBuckets. Otherwise returns when they are there.
  bool Arrive(uint64_t row_count, uint64_t inner_rows, bool null_key);
  void PublishBuckets(uint64_t* buckets, uint64_t count);
  // After its rows are inserted.
  void FinishInserting();
  void WaitForProbing();

 private:
  void WaitFor(HashJoinShared::Phase phase);
  void WakeAll();

  HashJoinShared* shared_;
};

}  // namespace sluice
