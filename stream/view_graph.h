// The view worker's side of the store: the graph of views, and epochs that change it.
//
//   source copies ──► view ──► view      Each arrow is an *edge* with a cursor: the key up to which
//        └───────────► view ─────┘       the input's stored rows were delivered, or its end.
//
// In an epoch, changes of an input's rows at or below an edge's cursor pass along it; Backfill
// moves the cursor on by delivering the next piece of the input's stored rows. So an edge has at
// every moment delivered exactly the input's rows up to its cursor, whether the input still grows
// or not, and a view is, at every moment, exactly its query over what was delivered. When all edges
// are at the end, it is its query over its inputs.
//
// One thread. Nothing here sleeps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "optimizer/view_plan.h"
#include "stream/change_batch.h"
#include "stream/view_store.h"

namespace sluice {

struct SourceDefinition {
  Oid oid;  // the table's
  std::vector<StoredColumn> columns;
  std::vector<int> key_columns;  // primary key; empty: keyless
};

// An operator or the store found its state contradicted (a row retracted that was never there), or
// met an error that is no row's. The epoch is aborted; the caller begins another, calls Fail(view)
// and applies the same changes again.
class ViewFailure : public QueryError {
 public:
  ViewFailure(Oid view_oid, Error e) : QueryError(std::move(e)), view(view_oid) {}
  Oid view;  // or the source
};

// How a view gets the rows of an input that is empty when it is made: as the input is filled;
// always by Backfill; or as it costs least. Then
//   - a view that shows its input's rows as they are has none of its own: it is its input,
//   - one that filters and projects, and UNION ALL, is filled as the input is,
//   - so is one that aggregates them, and its groups are held in memory meanwhile,
//   - all others are filled by Backfill, once a source that they read is complete: in order, and
//     many rows at a time.
enum class FirstRows { kAtOnce, kByBackfill, kCheapest };

class ViewGraph {
 public:
  // `store`: opened as writer; must outlive the graph. Every view of the store must be attached
  // before the first epoch that touches its inputs; one that isn't, is left as it is and Attach
  // later fails.
  explicit ViewGraph(ViewStore* store);
  ~ViewGraph();

  // So much memory may groups take that are held while their views are built (beyond it they are
  // read from the source's copy when that is complete), and net changes on their way.
  void SetHeldBytesMax(size_t bytes);
  // Whether some were let go by an epoch since this was last asked: edges are open again.
  bool TakeLetGo();

  // At start, inputs before their views: gives a stored view its plan again. An Error where the
  // plan is not the one that its state was made by (it must be rebuilt: REFRESH).
  Status Attach(Oid view, std::shared_ptr<const ViewPlan> plan);

  // Whether the view's changes are kept, as of the last epoch.
  bool KeepsChanges(Oid view) const;

  class Epoch;
  // Aborted unless committed. One at a time.
  std::unique_ptr<Epoch> Begin();

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

class ViewGraph::Epoch {
 public:
  ~Epoch();  // not committed: nothing happened

  uint64_t number() const;

  // Changes. A source's rows are known by shard: any number the caller chooses for it for good.
  void AddSource(const SourceDefinition& source);
  void DropSource(Oid source);
  // Old values come from the copy. An insert of a key that is there, a change of one that isn't:
  // ViewFailure of the source.
  void Apply(Oid source, uint32_t shard, const ChangeBatch& changes);
  // Rows of a backfill piece; in key order they are appended. Columns in the source's order.
  void Insert(Oid source, uint32_t shard, const Batch& rows);
  void Truncate(Oid source, uint32_t shard);
  // All shards' rows are in: kCreated (and views on it, where their edges are at the end).
  void SetSourceComplete(Oid source, bool complete);

  // Views. AddView refuses (0A000, by name) what cannot be maintained. A view over inputs that are
  // all empty has its edges at the end at once, unless `first_rows` says that Backfill is to feed
  // it.
  void AddView(Oid view, std::shared_ptr<const ViewPlan> plan, std::string_view definition,
               FirstRows first_rows = FirstRows::kAtOnce);
  // REQUIRES: no view reads it.
  void DropView(Oid view);
  void Fail(Oid view, const Error& error);
  // Delivers up to rows_max of the input's next rows; returns how many. Fewer than rows_max: the
  // edge is at the end. Inputs' changes of this epoch are taken in first.
  size_t Backfill(Oid view, Oid input, size_t rows_max);

  std::optional<RelationInfo> Relation(Oid relation);
  std::vector<RelationInfo> Relations();
  std::vector<EdgeInfo> Edges(Oid view);

  // The indexes that the view is to have (oid and columns): new ones are empty, others go.
  void SetIndexes(Oid view, std::span<const StoredIndex> indexes);
  // Takes further rows into indexes that are not complete; false: all are.
  bool BuildIndexes(size_t rows_max);
  // Subscriptions: from the next epoch on the view's changes are kept (already: somebody still
  // wants them). Those older than `before_us` are forgotten, and all of a view that nobody has
  // wanted since then.
  void KeepChanges(Oid view, int64_t now_us);
  void ForgetChanges(int64_t before_us);

  // The feeding half's own records: LSNs, jobs, backfill positions. Keys up to 500 bytes.
  void Put(std::string_view key, std::string_view value);
  void Delete(std::string_view key);
  std::optional<std::string> Get(std::string_view key);
  void ForEach(std::string_view prefix,
               const std::function<void(std::string_view key, std::string_view value)>& fn);

  // Runs what is outstanding through the graph and makes it durable (one fdatasync). Throws
  // ViewFailure, or 53100 when the disk or the map is full (the map is larger in the next epoch):
  // then nothing happened.
  void Commit();

 private:
  friend class ViewGraph;
  explicit Epoch(ViewGraph::Impl* graph);
  ViewGraph::Impl* graph_;
};

}  // namespace sluice
