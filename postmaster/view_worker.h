// The view worker: the one process that writes the view store. It follows the catalog (which views
// there are to be), the shards' changes (feeds) and backfills (leaves), and turns what came into
// epochs of the view graph.
//
//   catalog ─► Reconcile ─► sources, leaves, feeds, views     What is durable is the catalog, which
//   slots ─► ShardFeed ─┐                                     says what is wanted, and the store,
//   tables ─► ViewLeaf ─┴─► Epoch ─► ViewGraph ─► store       which says how far it is. Everything
//                                                             here is made from them at start.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog/connection.h"
#include "executor/row_decoder.h"
#include "postmaster/catalog_follower.h"
#include "postmaster/settings.h"
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
  };
  // Where a table's rows go.
  struct Route {
    ViewSource* source;
    ViewLeaf* leaf;
    std::vector<int> columns;
  };

  // --- view_worker.cc
  void Load();
  void Reconcile();
  void RestoreSource(const RelationInfo& info);
  void MakeLeaves(ViewSource* source);
  void PrepareDecoder(ViewSource* source);
  bool TryAdd(const Relation& relation, std::set<Oid>* needed);
  bool PrepareSource(const Relation& table);
  void FailJob(Oid view, const Error& error);
  void SetAside(Oid relation, const Error& error);
  void DropFromStore(std::set<Oid> views);
  std::vector<Oid> InputsOf(const LiveView& view) const;
  std::set<Oid> WithReaders(std::set<Oid> views) const;
  void DropUnwanted();
  void DropUnneededSources(const std::set<Oid>& needed);
  void LeavePublication(const ViewLeaf& leaf);
  void PublishGeneration();
  ShardFeed* FeedOf(Oid server, const std::string& user);
  const ConnectionSpec* Connect(Oid server, const std::string& user, bool replication,
                                Arena* arena);
  bool PollAll(int64_t now_us);
  uint64_t PieceRows(const ViewSource& source, int64_t now_us);
  int TimeoutMs(int64_t now_us) const;

  // --- view_epoch.cc
  bool EpochIsDue(int64_t now_us) const;
  // Pieces of backfills wait so long for those of other shards, to share an epoch with them.
  static constexpr int64_t kPieceWaitUs = 30'000;
  bool MoreToShare(int64_t now_us) const;
  void RunEpoch(int64_t now_us);
  std::map<ShardFeed*, size_t> Cut(int64_t now_us);
  void Gather(const std::map<ShardFeed*, size_t>& cut, Input* input);
  void TakeTransaction(ShardFeed* feed, const ShardTransaction& transaction, Input* input);
  void TakeMark(ShardFeed* feed, const std::string& mark, Input* input);
  void AddChange(const Route& route, ChangeKind kind, std::span<const WireValue> old_row,
                 std::span<const WireValue> new_row, Input* input);
  std::vector<Route>& RoutesOf(ShardFeed* feed, const PublishedTable* table);
  void Execute(const Input& input, ViewGraph::Epoch* epoch);
  void InsertRows(const Step& step, ViewGraph::Epoch* epoch);
  void WriteRecords(const Input& input, ViewGraph::Epoch* epoch);
  void Committed(const Input& input, int64_t now_us);
  bool AdvanceEdges(ViewGraph::Epoch* epoch, int64_t now_us);
  bool AddWaiting(ViewGraph::Epoch* epoch);

  const std::string directory_;
  Settings* const settings_;
  SessionSettings session_settings_;
  CatalogFollower follower_;
  std::shared_ptr<const Catalog> catalog_;
  uint64_t reconciled_generation_ = ~uint64_t{0};
  std::unique_ptr<ViewStore> store_;
  std::unique_ptr<ViewGraph> graph_;
  std::string instance_;

  std::map<Oid, std::unique_ptr<ShardFeed>> feeds_;  // by server
  std::map<Oid, std::unique_ptr<ViewSource>> sources_;
  std::map<Oid, LiveView> views_;
  std::map<Oid, JobFailure> failed_;  // views that are not in the store: until dropped or refreshed
  std::map<std::pair<ShardFeed*, const PublishedTable*>, std::vector<Route>> routes_;
  size_t ready_left_ = 0;  // transactions that the last epoch could not take in
  std::map<std::string, int64_t> missing_halves_;  // gid → since when its other part is waited for

  // Until the next epoch.
  std::vector<Oid> drop_views_, drop_sources_;
  std::vector<std::string> dropped_leaves_;
  std::vector<Oid> new_failures_, forgotten_failures_;
  std::vector<std::unique_ptr<RemoteTask>> farewells_;
  uint64_t published_generation_ = ~uint64_t{0};
  bool reconcile_again_ = false;
  int64_t reconcile_at_us_ = 0;
  bool edges_open_ = true;             // some edge is not at its end, as far as is known
  std::map<ShardFeed*, Lsn> durable_;  // applied before the last epoch, which made it durable
  int64_t last_epoch_us_ = 0;
  std::map<Oid, int64_t> edge_next_us_;  // rate-limited views: when they go on
  std::map<Oid, int64_t> source_next_us_;
};

}  // namespace sluice
