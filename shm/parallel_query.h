// One plan fragment run by several processes: what a Gather gives its workers.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/error.h"
#include "shm/process_table.h"
#include "shm/query_arena.h"
#include "shm/ready_queue.h"
#include "shm/stream.h"

namespace sluice {

struct ParallelQuery {
  // const for workers
  ProcNumber leader;
  uint64_t query_id;
  const void* fragment;       // executor's: the plan below the Gather
  const void* query_context;  // executor's: settings, parameters, stream groups
  void* node_states;          // executor's: shared state of parallel-aware nodes, by plan node id
  ReadyQueue* results;        // batches for the leader; one "stream" a worker
  char query_text[256];       // for pg_stat_activity

  // W1: next participant number (workers start at 1; the leader is 0).
  std::atomic<uint32_t> participants;
  // W2: workers that have not let go; the decrement (release) is a worker's last touch; leader
  // waits for 0.
  std::atomic<uint32_t> running;
  // W3: set once: workers stop as soon as they look (early stop, error, cancel).
  std::atomic<uint32_t> stop;
  // W4: the first error wins: claimed by compare-and-swap 0→1, filled, then 2 (release).
  std::atomic<uint32_t> error_state;
  ErrorRecord error;
  SharedExtentList extents;
};

// Hands `query` to up to `wanted` idle parallel workers; returns how many took it.
uint32_t LaunchWorkers(ParallelQuery* query, uint32_t wanted);
// Worker: the assignment of this process, or null.
ParallelQuery* TakeAssignment();
void FinishAssignment(ParallelQuery* query);
void ReportError(ParallelQuery* query, const Error& error);

}  // namespace sluice
