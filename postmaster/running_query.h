// One execution of a query: its arena in shared memory, the plan in it, and the executor.
// Everything it holds here and on the shards is given back by the destructor.
#pragma once

#include <deque>
#include <memory>
#include <poll.h>
#include <span>
#include <string_view>

#include "executor/executor.h"
#include "executor/row_store.h"
#include "executor/slice_file.h"
#include "optimizer/planner.h"
#include "parser/query.h"
#include "postmaster/row_sink.h"
#include "shm/query_arena.h"
#include "stream/view_store.h"

namespace sluice {

class Catalog;
class DistributedTransaction;
class Settings;

class BorrowedConnection;
class LeaseSet;
class PlanCache;
class StatementSnapshots;

// What the session is, as far as running a query is concerned.
struct QuerySession {
  std::shared_ptr<const Catalog> catalog;  // kept as long as a query runs on it
  const Settings* settings;
  const SessionSettings* session_settings;
  std::string user, database;
  std::string temp_directory, data_directory;
  DistributedTransaction* transaction = nullptr;  // the session's; null: none, all runs by itself
  std::shared_ptr<const ViewSnapshot> view_snapshot;  // views are read at; null: the newest epoch
  LeaseSet* leases = nullptr;  // null: point queries go through the io worker too
};

struct QueryOptions {
  std::span<const PlanRequest::Param> params;
  std::span<const int16_t> formats;
  bool allow_pass_through = true;
  bool instrument = false;
  std::string_view copy_options;     // PlanRequest's
  std::shared_ptr<PlanCache> plans;  // the prepared statement's
  std::string_view text;
};

class RunningQuery {
 public:
  RunningQuery(const QuerySession& session, const Query& query, const QueryOptions& options);
  ~RunningQuery();

  // Plans that do not come from PlanQuery: made in arena() by `plan`.
  using Planner = std::function<const PlannedStatement*(Arena* arena)>;
  RunningQuery(const QuerySession& session, const Planner& plan, const QueryOptions& options);

  // Gives up to `rows_max` (0: all) further rows to the sink; returns how many.
  uint64_t Run(RowSink* sink, uint64_t rows_max);
  bool done() const { return done_; }
  // Gives back what is held on the shards and in the chunk pool; further runs give no rows.
  void Finish();

  // Whether it holds chunks and connections that others could use while nobody reads its rows; see
  // SpillSuspended.
  bool holds_unread() const { return spill_delay_ms_ >= 0 && spillable(); }
  // Puts the rows that nobody fetches now aside, until `client` is ready. An error is told by the
  // Run that gets there.
  void SpillSuspended(pollfd client);

  // What a plan needs of the world, for running what is no plan.
  const ExecutorContext& context() const { return context_; }
  const PlannedStatement& plan() const { return *plan_; }
  // INSERT, UPDATE, DELETE, once they have run.
  uint64_t rows_modified() { return modified_ ? *modified_ : executor().rows_modified(); }
  // Starts the executor (without it, EXPLAIN shows the plan).
  Executor& executor();

 private:
  void MakeContext(const QueryOptions& options);
  bool spillable() const;
  void Spill(pollfd client);  // until that is ready, or all is in the file
  void SpillSlices(pollfd client);
  void SpillBatches(pollfd client);
  void SpillBehind(ClientSocket* client);
  void LetGo();
  Claim TryTakeSlice(Slice* slice);
  void NextBatch();

  uint64_t RunBatches(RowSink* sink, uint64_t rows_max);
  uint64_t RunSlices(RowSink* sink, uint64_t rows_max);
  void JoinServers();
  const ForeignScanPlan* OnlyStatement() const;
  std::optional<uint64_t> RunBorrowed(const ForeignScanPlan& scan, RowSink* sink);
  std::optional<uint64_t> RunHeld(const ForeignScanPlan& scan, RowSink* sink);
  std::optional<uint64_t> RunOn(BorrowedConnection* connection, std::string_view server_name,
                                const ForeignScanPlan& scan, std::string_view begin_sql,
                                RowSink* sink);

  SharedBlocks blocks_;
  Arena arena_{blocks_, 64 * 1024};
  ExecutorContext context_;
  QuerySession session_;
  std::shared_ptr<PlanCache> plans_;  // the plan may lie there
  const PlannedStatement* plan_ = nullptr;
  std::shared_ptr<const ViewSnapshot> view_snapshot_;  // once a live view is read
  std::unique_ptr<StatementSnapshots> snapshots_;      // where parts are read one after the other
  std::unique_ptr<Executor> executor_;
  bool done_ = false;
  std::optional<uint64_t> modified_;  // on a lent connection
  uint64_t settings_version_ = 0;
  // What was claimed beyond the last Run's limit.
  Batch batch_;
  size_t batch_next_ = 0;
  std::optional<Slice> slice_;
  size_t slice_next_bytes_ = 0;
  // What was put aside, and comes before all that is still to come (running_query_spill.cc).
  int spill_delay_ms_ = -1;
  std::unique_ptr<SliceFile> slice_file_;
  bool slice_is_filed_ = false;  // slice_ came from there
  std::deque<std::unique_ptr<RowStore>> row_files_;
  bool batch_is_filed_ = false;
  size_t skip_rows_ = 0;         // rows of the first of them that were given already
  bool let_go_ = false;          // there is nothing else to come
  std::optional<Error> failed_;  // … because of this
};

struct RemoteSession;
RemoteSession RemoteSessionOf(const QuerySession& session);
PlannerSettings PlannerSettingsOf(const Settings& settings);
// How the session reaches a server (or a foreign table that has a socket of its own), in `arena`.
const ConnectionSpec* ConnectionSpecFor(const QuerySession& session, Oid server, Arena* arena);

}  // namespace sluice
