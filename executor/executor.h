// Runs a plan in a backend: starts streams and workers, hands out batches, cleans up.
#pragma once

#include <functional>
#include <memory>
#include <poll.h>
#include <span>
#include <string_view>

#include "executor/row_source.h"
#include "optimizer/plan.h"
#include "shm/stream.h"
#include "types/column.h"
#include "types/kernel.h"

namespace sluice {

// Of rows' partition keys (ModifyPlan::keys): the index of the target where each row belongs.
using RouteRows = std::function<void(const Batch& keys, std::span<uint32_t> targets)>;

// In which transaction a stream is to run on its server: a pin and the SQL that begins it there
// (Stream::begin_sql). Pin 0: none, on any pooled connection.
struct StreamTransaction {
  uint64_t pin = 0;
  std::string_view begin_sql;
};

// So many streams read on a server at once.
struct ServerStreams {
  Oid server;
  uint32_t streams;
};

// What a plan needs of the world; given by the session (postmaster/), so that the executor knows
// neither catalog nor settings files.
struct ExecutorContext {
  Arena* shared_arena;  // the query's, in shared memory; the plan lies there too
  const SessionSettings* settings;
  int64_t work_mem_bytes = 64 << 20;
  uint32_t chunks_per_stream = 8;
  std::string_view temp_directory;  // for spilling
  // The transaction that takes part on a server, its text living as long as shared_arena; a null
  // function: none does.
  std::function<StreamTransaction(Oid server)> transaction;
  // Takes one snapshot a server for all parts of a statement that are read one after the other;
  // what it gives says where a part's nth stream on a server runs (pin 0: where it would anyway).
  // Null: each part reads by itself.
  using Snapshots = std::function<StreamTransaction(Oid server, uint32_t nth)>;
  std::function<Snapshots(std::span<const ServerStreams> servers)> share_snapshots;
  Snapshots snapshots;  // … after that; set by the executor
  // A read over several servers takes its snapshots under the commit gate (StreamGate::kSnapshot).
  bool gate_snapshots = false;
  std::string_view query_text;
  int64_t admission_timeout_us = 0;  // for connections and chunks; 0 = no end
  int64_t silence_timeout_us = 0;    // of a stream that is not held back; 0 = no end
  Lease* lease = nullptr;            // of the only stream: Stream::lease
  bool instrument = false;           // EXPLAIN ANALYZE: time every node
  // Bound parameters, one one-row column each.
  std::span<const Column> params;
  // How to reach a server, with the session's role and settings; results live in shared_arena.
  std::function<const ConnectionSpec*(Oid server)> connect;
  // The statement is about to write on these servers: from then on what runs there is in its
  // transaction. `one_statement`: each gets one remote statement, and no other server any.
  std::function<void(std::span<const Oid> servers, bool one_statement)> join_for_write;
  // The partition rule of a table, by catalog oid.
  std::function<RouteRows(Oid relation)> partition_rule;
  // Rows of a virtual table: calls `row` with text values (nullopt = NULL), one a column of the
  // table.
  std::function<void(std::string_view name,
                     const std::function<void(std::span<const std::optional<std::string>>)>& row)>
      scan_virtual;
  // Rows of a live view, all of a statement's at one epoch.
  std::function<std::unique_ptr<RowSource>(const ViewScanPlan&)> scan_view;
};

inline StreamTransaction TransactionOn(const ExecutorContext& context, Oid server) {
  return context.transaction == nullptr ? StreamTransaction{} : context.transaction(server);
}

// What EXPLAIN ANALYZE shows of a node, summed over participants.
struct NodeStatistics {
  uint64_t loops = 0, rows = 0, batches = 0;
  int64_t startup_us = 0, total_us = 0;
  uint64_t memory_bytes_max = 0, spilled_bytes = 0;
  uint64_t rows_modified = 0;  // by INSERT, UPDATE, DELETE
};

class Executor {
 public:
  Executor(const PlannedStatement& statement, const ExecutorContext& context);
  // Stops what still runs: cancels remote statements, waits for workers and for the io worker's
  // release.
  ~Executor();

  // The next batch, or rows == 0 at the end. Valid until the next call. Throws QueryError.
  void Next(Batch* batch);

  // pass_through plans: the next slice of DataRow (or oversized) messages, or false at the end; the
  // caller writes the bytes to the client and then calls ReleaseSlice.
  bool NextSlice(Slice* slice);
  // The same without sleeping: kEmpty means that NextSlice would wait.
  Claim TryNextSlice(Slice* slice);

  // Waits for the next slice, but no longer than until `fd` is ready: then kEmpty.
  Claim NextSliceUnless(pollfd fd, Slice* slice);

  // After the end: how many rows the statement has written.
  uint64_t rows_modified() const;

  // For EXPLAIN ANALYZE, after the end: workers that still run are stopped.
  NodeStatistics Statistics(int32_t node_id) const;
  // Streams of the statement, with the plan node each belongs to; for EXPLAIN's per-shard lines.
  struct StreamInfo {
    int32_t node_id;
    const Stream* stream;
  };
  std::vector<StreamInfo> Streams() const;
  // How many workers took part in a Gather or GatherMerge node.
  int32_t WorkersLaunched(int32_t gather_node_id) const;
  // Slices and rows claimed: [participant][stream index] of an Append node.
  struct ClaimCount {
    uint64_t slices, rows;
  };
  std::vector<std::vector<ClaimCount>> Claims(int32_t append_node_id) const;
  // For how long an Append's queue held something that could be claimed, and for how much of that
  // each participant slept.
  struct ReadyTime {
    int64_t ready_us = 0;
    std::vector<int64_t> idle_us;
  };
  ReadyTime Ready(int32_t append_node_id) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The main function of a parallel worker process: waits for assignments, runs them, until
// terminated. `before_query` is called before each: what a session does to be up to date (user
// types, collations).
[[noreturn]] void ParallelWorkerMain(const std::function<void()>& before_query = {});

}  // namespace sluice
