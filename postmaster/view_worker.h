// The view worker: the one process that writes the view store. It follows the catalog (which views
// there are to be), the shards' changes (feeds) and backfills (leaves), and turns what came into
// epochs of the view graph.
//
//   catalog ─► Reconcile ─► sources, leaves, feeds, views     What is durable is the catalog, which
//   slots ─► ShardFeed ─┐                                     says what is wanted, and the store,
//   tables ─► ViewLeaf ─┴─► Epoch ─► ViewGraph ─► store       which says how far it is. Everything
//                                                             here is made from them at start.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog/connection.h"
#include "executor/file_blocks.h"
#include "executor/row_decoder.h"
#include "postmaster/catalog_follower.h"
#include "postmaster/settings.h"
#include "postmaster/table_state.h"
#include "postmaster/view_definition.h"
#include "postmaster/view_feed.h"
#include "postmaster/view_leaf.h"
#include "stream/view_graph.h"

namespace sluice {

// The child's main function. REQUIRES: forked, its slot attached. Returns when asked to terminate.
void ViewWorkerMain(const std::string& directory, Settings* settings);

// A table that views read: its copy in the store, and where its rows come from.
struct ViewSource {
  Relation table;  // as the catalog had it when the source was made
  SourceDefinition definition;
  std::vector<std::unique_ptr<ViewLeaf>> leaves;
  bool stored = false;    // AddSource has been committed
  bool complete = false;  // SetSourceComplete, too
  bool broken = false;    // its changes cannot be followed: no view reads it any more
  // Of DataRow messages.
  std::vector<OutputColumn> columns;
  std::unique_ptr<bool[]> binary;
  ForeignScanPlan scan{};
  std::unique_ptr<RowDecoder> decoder;
};

// A view that is in the store (or about to be).
struct LiveView {
  Oid oid;
  std::string definition;  // what the store says it was made by
  std::shared_ptr<const ViewPlan> plan;
  bool stored = false;
};

class ViewWorker {
 public:
  ViewWorker(const std::string& directory, Settings* settings);
  ~ViewWorker();
  [[noreturn]] void Run();

 private:
  // One step of an epoch, in order; made once, executed again if a view fails meanwhile.
  struct Step {
    enum Kind { kApply, kTruncate, kInsert } kind;
    ViewSource* source;
    ViewLeaf* leaf;
    std::unique_ptr<ChangeBatch> batch;
    std::string rows;
  };
  struct Input {
    std::vector<Step> steps;
    std::map<ViewLeaf*, size_t> open_batch;  // index of the leaf's last kApply
    std::map<ShardFeed*, size_t> taken;      // transactions
    std::map<ShardFeed*, Lsn> reached;
    std::map<ShardFeed*, int64_t> commit_time_us;
    // A row's values in the source's order.
    std::vector<WireValue> old_row, new_row;
    std::vector<ChangeMemory> memory;  // of what was kept
    // Rows of batches whose values are not in their source's order where they lie.
    Arena rows, *rows_in = &rows;
    std::optional<Arena> spilled_rows;
  };
  // Where a table's rows go.
  struct Route {
    ViewSource* source;
    ViewLeaf* leaf;
    std::vector<int> columns;
    bool in_order = false;  // they are all of the table's, as they come
  };

  // A server's part of a transaction over several, of which another part has come.
  struct MissingPart {
    ShardFeed* from;
    std::string gid;
    bool wanted = true;
    bool never = false;
    int64_t since_us = 0, ask_at_us = 0, told_at_us = 0;
    std::unique_ptr<RemoteTask> question;
    std::vector<std::vector<RemoteRow>> answer;
    Lsn until = 0;  // it is not prepared there: what has not come by this position never will
  };

  // What a server says of the tables that are read there.
  struct Watch {
    struct Table {
      Oid source, leaf;
      std::string before;
      TableState now;
    };
    std::vector<Table> asked;
    std::unique_ptr<RemoteTask> question;
    std::vector<std::vector<RemoteRow>> answer;
    Lsn until = 0;  // there is something new: views must have come so far
    int64_t ask_at_us = 0;
  };

  // --- view_worker.cc
  void Load();
  void Reconcile();
  void RestoreSource(const RelationInfo& info);
  void PrepareDecoder(ViewSource* source);
  bool TryAdd(const Relation& relation, std::set<Oid>* needed);
  size_t Building() const;
  bool PrepareSource(const Relation& table, const ViewPlan& plan);
  bool HasColumns(const ViewSource& source, const Relation& table, const ViewPlan& plan) const;
  void DropSource(Oid table);
  void FailJob(Oid view, const Error& error);
  void SetAside(Oid relation, const Error& error);
  void DropFromStore(std::set<Oid> views);
  std::vector<Oid> InputsOf(const LiveView& view) const;
  std::set<Oid> WithReaders(std::set<Oid> views) const;
  void DropUnwanted();
  void DropUnneededSources(const std::set<Oid>& needed);
  void PublishGeneration();
  size_t WorkerMemory() const;  // bytes that it may take
  void DivideMemory();
  ShardFeed* FeedOf(Oid server, const std::string& user);
  const ConnectionSpec* Connect(const Catalog& catalog, Oid server, const std::string& user,
                                bool replication, Arena* arena) const;
  bool PollAll(int64_t now_us);
  uint64_t PieceRows(const ViewSource& source, const ViewLeaf& leaf, int64_t now_us);
  int TimeoutMs(int64_t now_us) const;

  // --- view_parts.cc
  static std::string LeafKey(Oid source, Oid leaf);
  std::vector<const Relation*> PartsOf(const Relation& table) const;
  ViewLeaf* AddPart(ViewSource* source, const Relation& part);
  void RestoreParts(ViewSource* source);
  void FollowParts();
  void FollowParts(ViewSource* source, const Relation& table);
  void RequireSameKey(const ViewSource& source, const ViewLeaf& leaf) const;
  void LeavePublication(const ViewLeaf& leaf);

  // --- view_watch.cc
  int64_t WatchAtUs() const;
  void PollWatches(int64_t now_us);
  void AskAboutTables(ShardFeed* feed, Watch* watch);
  void ReadAnswer(Watch* watch);
  void TakeAnswer(Watch* watch);

  // --- view_epoch.cc
  // How many transactions of a shard an epoch takes in.
  using EpochCut = std::map<ShardFeed*, size_t>;
  size_t ReadyOf(ShardFeed& feed) const;
  bool EpochIsDue(int64_t now_us) const;
  // Pieces of backfills wait so long for those of other shards, to share an epoch with them.
  static constexpr int64_t kPieceWaitUs = 4'000;
  bool MoreToShare(int64_t now_us) const;
  void RunEpoch(const EpochCut& cut, int64_t now_us);
  // `exactly`: of these shards so many, if closed.
  EpochCut Cut(int64_t now_us, const EpochCut& exactly = {});
  std::vector<Oid> UsersOf(Oid table, const std::string& column) const;
  bool DropColumns(Route route);
  bool CheckChanges(const EpochCut& cut);
  void Gather(const EpochCut& cut, Input* input);
  void TakeTransaction(ShardFeed* feed, const ShardTransaction& transaction, Input* input);
  void TakeMark(ShardFeed* feed, const std::string& mark, Input* input);
  std::span<const WireValue> CopyRow(std::span<const WireValue> row, Input* input);
  void AddChange(const Route& route, ChangeKind kind, std::span<const WireValue> old_row,
                 std::span<const WireValue> new_row, Input* input);
  std::vector<Route>& RoutesOf(ShardFeed* feed, const PublishedTable* table);
  void Execute(const Input& input, ViewGraph::Epoch* epoch);
  void InsertRows(const Step& step, ViewGraph::Epoch* epoch);
  void WriteRecords(const Input& input, ViewGraph::Epoch* epoch);
  void Committed(const Input& input, int64_t now_us);
  bool AdvanceEdges(ViewGraph::Epoch* epoch, int64_t now_us);
  bool AddWaiting(ViewGraph::Epoch* epoch);
  bool SubscriptionIsNew() const;
  void KeepChanges(ViewGraph::Epoch* epoch);
  bool KeepIndexes(ViewGraph::Epoch* epoch);

  // --- view_missing_part.cc
  MissingPart& MissPart(ShardFeed* from, const std::string& gid, int64_t now_us);
  void PollMissingParts(int64_t now_us);
  void AskForPart(MissingPart* part, int64_t now_us);

  // --- view_hold.cc
  bool Hold(int64_t now_us);
  bool FindMarks(EpochCut* marks, std::map<ShardFeed*, ShardSnapshot>* snapshots) const;
  std::optional<EpochCut> CutOf(const EpochCut& marks,
                                const std::map<ShardFeed*, ShardSnapshot>& snapshots) const;
  void AnswerHold(uint64_t epoch);

  const std::string directory_;
  Settings* const settings_;
  SessionSettings session_settings_;
  CatalogFollower follower_;
  std::shared_ptr<const Catalog> catalog_;
  uint64_t reconciled_generation_ = ~uint64_t{0};
  std::unique_ptr<ViewStore> store_;
  std::unique_ptr<ViewGraph> graph_;
  std::string instance_;

  FileBlocks spilled_;                               // what is too large for memory
  std::map<Oid, std::unique_ptr<ShardFeed>> feeds_;  // by server
  std::map<Oid, std::unique_ptr<ViewSource>> sources_;
  std::map<Oid, LiveView> views_;
  std::map<Oid, JobFailure> failed_;  // views that are not in the store: until dropped or refreshed
  std::map<std::pair<ShardFeed*, const PublishedTable*>, std::vector<Route>> routes_;
  size_t ready_left_ = 0;  // transactions that the last epoch could not take in
  std::map<std::string, MissingPart> missing_parts_;
  std::map<ShardFeed*, Watch> watches_;
  bool part_settled_ = false;  // one will never come

  // Until the next epoch.
  std::vector<Oid> drop_views_, drop_sources_;
  std::vector<std::string> dropped_leaves_;
  std::vector<std::pair<Oid, Oid>> removed_parts_;  // of a source that goes on: their rows go
  bool queued_ = false;                             // views wait for others to be created
  std::vector<Oid> new_failures_, forgotten_failures_;
  std::map<Oid, std::string> new_slots_;  // server → by whom
  std::vector<std::unique_ptr<RemoteTask>> farewells_;
  uint64_t published_generation_ = ~uint64_t{0};
  bool reconcile_again_ = false;
  int64_t reconcile_at_us_ = 0;
  bool edges_open_ = true;             // some edge is not at its end, as far as is known
  std::map<ShardFeed*, Lsn> durable_;  // applied before the last epoch, which made it durable
  int64_t last_epoch_us_ = 0;
  uint64_t last_epoch_ = 0;
  // Transactions that views have taken in last: which of them snapshots may not see yet.
  std::map<ShardFeed*, std::deque<uint32_t>> recent_xids_;
  uint64_t holder_ = 0;  // for whom epochs wait, while hold_until_us_ has not come
  int64_t hold_until_us_ = 0;
  bool hold_answered_ = false;
  std::map<Oid, int64_t> edge_next_us_;  // rate-limited views: when they go on
  std::map<Oid, int64_t> source_next_us_;
};

}  // namespace sluice
