// Inside stream/: what the view graph holds of each stored relation, and of the epoch that runs.
#pragma once

#include <algorithm>
#include <map>

#include "stream/change_log.h"
#include "stream/compiled_view.h"
#include "stream/store_record.h"
#include "stream/stored_relation.h"
#include "stream/view_graph.h"
#include "stream/view_index.h"

namespace sluice {

struct GraphNode {
  RelationInfo info;
  uint64_t sequence = 0;  // of creation: inputs have smaller ones
  std::unique_ptr<StoredRelation> stored;
  bool info_changed = false;
  // Source: its net change since the graph was last run.
  DeltaBuffer source_delta;
  std::unique_ptr<KeyEncoder> key_encoder;
  // View.
  std::unique_ptr<CompiledView> compiled;
  std::vector<std::unique_ptr<ViewIndex>> indexes;  // of info.indexes, in their order
  std::map<Oid, Edge> edges;                        // by input
  bool edges_changed = false;
  bool pushed = false;  // something was pushed that is not finished yet
  // A view that shows the rows of an input as they are: the input, whose table and changes are its
  // own. Such a view is never compiled.
  GraphNode* base = nullptr;
  // A view of groups that is being built: they stay in memory, and nothing of the view is in the
  // store, until all its rows have been delivered (see hold.cc).
  bool held = false;

  DeltaBuffer* delta() {
    if (base != nullptr) return base->delta();
    if (info.kind == StoredRelationKind::kSource) return &source_delta;
    return compiled == nullptr ? nullptr : &compiled->delta();
  }
  bool building() const {
    return std::any_of(edges.begin(), edges.end(),
                       [](const auto& edge) { return !edge.second.at_end; });
  }
  bool failed() const { return info.state == RelationState::kFailed; }
  // Where its rows and changes come from: itself, or what it shows.
  GraphNode& root() { return base == nullptr ? *this : base->root(); }
};

// Who takes rows of a source, or of a view that passes them on, as they are inserted.
struct RowReaders {
  // All others read them later. `input`: the relation, or a view that shows it.
  struct Reader {
    GraphNode* view;
    Oid input;
  };
  std::vector<Reader> direct;
  // Somebody has to see each row's key, or has read part of them: by the net change only.
  bool need_delta = false;
};

struct ViewGraph::Impl {
  explicit Impl(ViewStore* view_store) : store(view_store) {}
  ~Impl() { Abort(); }

  ViewStore* store;
  StoreTransaction transaction;
  LmdbTable meta, feed, errors;
  uint64_t epoch = 0;
  std::map<Oid, std::shared_ptr<const ViewPlan>> plans;  // attached
  // Loaded in the first epoch, and again after one was aborted: handles of tables that it opened
  // are gone, and operators may remember what did not happen.
  bool loaded = false;
  std::map<Oid, GraphNode> nodes;
  uint64_t next_sequence = 1;
  std::map<Oid, ChangeLog> change_logs;
  int64_t begun_at_us = 0;  // the epoch
  size_t held_bytes_max = size_t{64} << 20;
  bool let_go = false;

  // view_graph.cc
  void Begin();
  void Abort();
  void Forget();
  void Commit();
  void Load();
  void CompileView(GraphNode* node, bool create);
  void ShowRowsOf(GraphNode* view, GraphNode* input);
  GraphNode& Known(Oid relation);
  std::vector<GraphNode*> ViewsInOrder();
  void UpdateStates();
  void SaveChanged();
  void RaiseGeneration();
  void DropTables(Oid relation);
  void Fail(GraphNode* node, const Error& error);

  // propagate.cc
  void Propagate();
  bool PropagateOnce();
  size_t PendingBytesMax() const;
  void PropagateIfLarge(const GraphNode& source);
  void Finish(GraphNode* view);
  void NoteChanges(GraphNode* view, std::span<const DeltaBuffer::Entry> changes);
  void Deliver(GraphNode* view, GraphNode& input, std::span<const DeltaBuffer::Entry> rows);
  size_t Backfill(Oid view, Oid input, size_t rows_max);
  RowReaders ReadersOf(GraphNode& relation);
  void PushInserted(const RowReaders& readers, const Batch& rows, const std::string_view* keys);
  void InsertRows(GraphNode* view, const RowReaders& readers, const DeltaBatch& batch);

  // hold.cc
  void Hold(GraphNode* view);
  void LetGo(GraphNode* view);
  bool IsFinal(GraphNode& node);
  void ReleaseHeld();
  void LimitHeld();

  // apply_changes.cc
  void Apply(Oid source, uint32_t shard, const ChangeBatch& changes);
  void Insert(Oid source, uint32_t shard, const Batch& rows);
  void Truncate(Oid source, uint32_t shard);
};

// Runs `fn`; what it throws is the relation's failure, unless the store itself failed.
template <typename Fn>
void AsFailureOf(Oid relation, Fn&& fn) {
  try {
    fn();
  } catch (const ViewFailure&) {
    throw;
  } catch (const QueryError& e) {
    std::string code = SqlStateText(e.error.state);
    if (code.starts_with("53") || code.starts_with("58")) throw;
    throw ViewFailure(relation, e.error);
  }
}

}  // namespace sluice
