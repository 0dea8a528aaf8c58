// The streams of a plan: one StreamGroup for all foreign scans of a tree, submitted at once, and
// the shared state of its scans and Appends. All of it lies in the query's arena, so workers use it
// in place.
//
// Which queue a scan feeds: under an Append the Append's (one queue for all its children: whatever
// is ready is taken first); elsewhere, below an ordered merge or where children are claimed whole,
// one of its own.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "common/assert.h"
#include "executor/node.h"
#include "shm/claim.h"
#include "shm/stream.h"

namespace sluice {

// A scan with a queue of its own. Usually there is one copy, which all participants share; a scan
// that every participant of a Gather repeats (not partial) has one copy for each.
struct ScanShared {
  struct Copy {
    uint32_t stream;
    ReadyQueue* queue;
  };
  StreamGroup* group;
  std::span<Copy> copies;
  const Copy& Mine(const ExecutionState& state) const {
    return copies[copies.size() == 1 ? 0 : state.participant];
  }
};

// A child of a Parallel Append that is run here and is not partial: one participant produces its
// rows, a chunk at a time, and all take them.
struct ScatterShared {
  OnceClaim producer;  // who runs it
  uint16_t child;
  // Accounts for its chunks; `producer` in it is set by the claimer. Never seen by the io worker.
  Stream stream;
};

struct AppendShared {
  struct Copy {
    ReadyQueue* queue;      // null where children are claimed whole
    uint32_t first_stream;  // of the children that are scans, in their order
  };
  StreamGroup* group;
  std::span<Copy> copies;
  std::span<const uint16_t> scans;  // children that are foreign scans
  std::span<ScatterShared> scatters;
  std::span<ScanShared*> whole;  // claim_whole: by child, null where it is no scan
  TakeANumber next_child;        // claim_whole: the next child to claim
  // Per participant × child. Written by that participant only; read when it has let go. Below a
  // child that one participant runs for all there is one row of it, whichever participant that is.
  std::span<Executor::ClaimCount> claims;
  // The same, one a participant: for how long it slept while the queue held something.
  std::span<int64_t> idle_us;
  uint32_t children;

  const Copy& Mine(const ExecutionState& state) const {
    return copies[copies.size() == 1 ? 0 : state.participant];
  }
  size_t RowOf(const ExecutionState& state) const {
    return claims.size() == children ? 0 : state.participant;
  }
  Executor::ClaimCount& Claimed(const ExecutionState& state, size_t child) {
    size_t row = RowOf(state);
    SLUICE_ASSERT(child < children && row * children + child < claims.size());
    return claims[row * children + child];
  }
};

// Slices of a Scatter carry the index of its child and this bit.
inline constexpr uint16_t kScatterSlice = 0x8000;
inline constexpr uint32_t kScatterChunks = 4;
inline constexpr uint32_t kResultChunks = 4;  // of a Gather, per worker

// Values of a remote statement's parameters, and the formats to ask for, as the io worker wants
// them.
std::span<const StreamParam> MakeStreamParams(std::span<const Expr* const> exprs,
                                              ExecutionState& state);
std::span<const int16_t> MakeResultFormats(std::span<const bool> binary, Arena* arena);

class PlanStreams {
 public:
  // Makes the shared states of `root`'s scans and Appends in state.shared_states and opens the
  // streams. Parameters of remote statements are evaluated here: init plans must have run.
  PlanStreams(const Plan& root, ExecutionState& state);
  // Cancels what still runs. No participant may be using the streams.
  ~PlanStreams();
  PlanStreams(const PlanStreams&) = delete;
  PlanStreams& operator=(const PlanStreams&) = delete;

  // How many streams on each server (of Postgres) that would be.
  static std::map<Oid, uint32_t> Count(const Plan& root, ExecutionState& state);

  // Where rows of local children or workers will take chunks too: waits until these are promised.
  // Throws the error of a group that is not admitted.
  void AwaitAdmission();

  StreamGroup* group() { return group_; }
  std::span<const Executor::StreamInfo> infos() const { return infos_; }

 private:
  friend class StreamsBuilder;
  StreamGroup* group_ = nullptr;
  uint32_t reserved_here_ = 0;  // where there is no stream whose admission could reserve
  std::vector<Executor::StreamInfo> infos_;
};

}  // namespace sluice
