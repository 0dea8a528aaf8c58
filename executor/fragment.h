// A plan fragment that several processes run: what a Gather's leader leaves in shared memory for
// its workers, and what a worker does with it.
#pragma once

#include <memory>

#include "executor/node.h"
#include "shm/parallel_query.h"
#include "shm/stream.h"

namespace sluice {

struct Fragment {
  const PlannedStatement* statement;
  const Plan* plan;
  // Of the ExecutorContext, what can lie in shared memory.
  const SessionSettings* settings;
  int64_t work_mem_bytes;
  uint32_t chunks_per_stream;
  bool instrument;
  std::string_view temp_directory, query_text;
  std::span<const Column> params;
  std::span<Column> exec_params;
  void** shared_states;
  uint32_t participants_max;
  uint32_t launched;  // workers; written by the leader
  // By participant (0, the leader, uses its own): written before the participant's kEnd, read after
  // it.
  std::span<std::span<NodeStatistics>> statistics;
  // Where a participant's rows go: its stream accounts for the chunks.
  std::span<ReadyQueue*> queues;
  std::span<Stream> results;
};

// Worker: runs the fragment to its end or until it is stopped; reports an error; lets go of
// `query`.
void RunFragment(ParallelQuery* query);

// The leader's side, shared by Gather and GatherMerge: launches, stops, raises what workers
// reported.
class Workers {
 public:
  // `ordered`: a queue for each worker's rows rather than one for all.
  Workers(const Plan& gather, int32_t workers, bool ordered, ExecutionState& state);
  // Stops those who still run and waits until they have let go.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void Launch();
  // The leader's own share runs in this state.
  ExecutionState& leader_state() { return leader_state_; }
  uint32_t wanted() const { return wanted_; }
  uint32_t launched() const { return launched_; }
  ReadyQueue* queue(uint32_t worker) const { return fragment_->queues[worker + 1]; }
  // Raises the first error that a worker reported.
  void CheckError() const;
  // Runs `fn` such that the leader stops with the workers' error if one fails.
  template <typename Fn>
  void Guarded(Fn&& fn) {
    StopFlag flag(&query_->stop);
    try {
      fn();
    } catch (const QueryError&) {
      CheckError();
      throw;
    }
  }
  // After all workers' kEnd, or Stop: adds up what they counted.
  void CollectStatistics();
  // Ends their part of the statement: returns when all have let go.
  void Stop();

 private:
  // While it lives, CheckForInterrupts heeds the flag.
  class StopFlag {
   public:
    explicit StopFlag(decltype(interrupt_stop_flag) flag) : before_(interrupt_stop_flag) {
      interrupt_stop_flag = flag;
    }
    ~StopFlag() { interrupt_stop_flag = before_; }

   private:
    decltype(interrupt_stop_flag) before_;
  };
  void MakeFragment(const Plan& gather, bool ordered);
  void WakeWorkers() const;

  ExecutionState& state_;
  ExecutionState leader_state_;
  Fragment* fragment_;
  ParallelQuery* query_;
  uint32_t wanted_;
  uint32_t launched_ = 0;
  bool collected_ = false;
};

}  // namespace sluice
