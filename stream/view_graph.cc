#include "stream/view_graph.h"

#include <algorithm>
#include <chrono>

#include "common/assert.h"
#include "common/log.h"
#include "stream/graph_node.h"

namespace sluice {

ViewGraph::ViewGraph(ViewStore* store) : impl_(std::make_unique<Impl>(store)) {}
ViewGraph::~ViewGraph() = default;

void ViewGraph::SetHeldBytesMax(size_t bytes) {
  impl_->held_bytes_max = bytes;
}

bool ViewGraph::TakeLetGo() {
  return std::exchange(impl_->let_go, false);
}

Status ViewGraph::Attach(Oid view, std::shared_ptr<const ViewPlan> plan) {
  SLUICE_ASSERT(impl_->transaction.txn == nullptr);
  std::optional<RelationInfo> info = impl_->store->Snapshot()->Relation(view);
  if (!info || info->kind != StoredRelationKind::kView)
    return MakeError(sqlstate::kUndefinedTable, "there is no live view with OID {}", view);
  if (info->plan_fingerprint != plan->fingerprint)
    return MakeError(sqlstate::kObjectNotInPrerequisiteState,
                     "the view's state was made by another plan")
        .Hint("REFRESH MATERIALIZED VIEW rebuilds it.");
  impl_->plans[view] = std::move(plan);
  impl_->nodes.clear();
  impl_->loaded = false;
  return Ok{};
}

std::unique_ptr<ViewGraph::Epoch> ViewGraph::Begin() {
  impl_->Begin();
  return std::unique_ptr<Epoch>(new Epoch(impl_.get()));
}

void ViewGraph::Impl::Begin() {
  SLUICE_ASSERT(transaction.txn == nullptr);
  store->impl().GrowMap();
  transaction.keeps_cursors = true;
  transaction.cursors.clear();  // the last transaction's are closed
  CheckLmdb(store->impl().BeginTransaction(0, &transaction.txn), "write");
  try {
    if (!loaded) Load();
    epoch = LoadNumber(meta, kEpochKey) + 1;
    begun_at_us = std::chrono::duration_cast<std::chrono::microseconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  } catch (...) {
    Abort();
    throw;
  }
}

void ViewGraph::Impl::Abort() {
  if (transaction.txn == nullptr) return;
  Forget();
  mdb_txn_abort(std::exchange(transaction.txn, nullptr));
}

// What is in memory is not what the store has: it is loaded anew.
void ViewGraph::Impl::Forget() {
  for (const auto& [oid, node] : nodes) let_go |= node.held;
  nodes.clear();
  loaded = false;
}

void ViewGraph::Impl::Load() {
  nodes.clear();
  meta = LmdbTable(&transaction, kMetaTable, true);
  feed = LmdbTable(&transaction, kFeedTable, true);
  errors = LmdbTable(&transaction, kErrorTable, true);
  if (LoadNumber(meta, kGenerationKey) == 0) StoreNumber(meta, kGenerationKey, 1);
  next_sequence = 1;
  ForEachEntry(meta, "R", [&](std::string_view, std::string_view value) {
    uint64_t sequence;
    RelationInfo info = LoadInfo(value, &sequence);
    GraphNode& node = nodes[info.oid];
    node.info = std::move(info);
    node.sequence = sequence;
    next_sequence = std::max(next_sequence, sequence + 1);
  });
  change_logs.clear();
  for (auto& [oid, node] : nodes)
    if (std::optional<std::string_view> mark = meta.Get(ChangeLogMarkKey(oid)))
      change_logs.emplace(oid, ChangeLog(&transaction, oid, LoadMark(*mark), true));
  for (auto& [oid, node] : nodes) {
    node.stored = std::make_unique<StoredRelation>(&transaction, node.info, true);
    for (const StoredIndex& index : node.info.indexes)
      node.indexes.push_back(std::make_unique<ViewIndex>(&transaction, node.info, index, true));
    for (Oid input : node.info.inputs) {
      std::optional<std::string_view> edge = meta.Get(EdgeKey(oid, input));
      if (!edge) Throw(sqlstate::kDataCorrupted, "the view store lacks an edge");
      node.edges[input] = LoadEdge(*edge);
      // Its groups were held when the process died: they are gone.
      if (!node.edges[input].at_end && node.edges[input].cursor.empty())
        node.edges[input].rows_delivered = 0;
    }
    if (node.info.storage != kInvalidOid) node.base = &Known(node.info.inputs.at(0));
  }
  for (GraphNode* view : ViewsInOrder()) {
    if (view->base != nullptr) continue;
    if (view->failed() || !plans.contains(view->info.oid)) continue;
    try {
      CompileView(view, false);
    } catch (const QueryError& e) {
      Fail(view, e.error);
    }
  }
  loaded = true;
}

void ViewGraph::Impl::CompileView(GraphNode* node, bool create) {
  node->compiled = std::make_unique<CompiledView>(
      node->info.oid, plans.at(node->info.oid), &transaction, create,
      [this](Oid input) -> const RelationInfo& { return Known(input).info; },
      [this](Oid input) -> const StoredRelation& { return *Known(input).stored; });
}

GraphNode& ViewGraph::Impl::Known(Oid relation) {
  auto found = nodes.find(relation);
  if (found == nodes.end())
    Throw(sqlstate::kUndefinedTable, "relation with OID {} is not in the view store", relation);
  return found->second;
}

std::vector<GraphNode*> ViewGraph::Impl::ViewsInOrder() {
  std::vector<GraphNode*> views;
  for (auto& [oid, node] : nodes)
    if (node.info.kind == StoredRelationKind::kView) views.push_back(&node);
  std::sort(views.begin(), views.end(),
            [](GraphNode* a, GraphNode* b) { return a->sequence < b->sequence; });
  return views;
}

// creating → caught up → created. A view that gets new rows to read (REFRESH of an input, a
// source's backfill done anew) goes back.
void ViewGraph::Impl::UpdateStates() {
  for (GraphNode* view : ViewsInOrder()) {
    if (view->failed()) continue;
    RelationState state = RelationState::kCreated;
    for (const auto& [input, edge] : view->edges)
      if (Known(input).info.state != RelationState::kCreated) state = RelationState::kCaughtUp;
    for (const auto& [input, edge] : view->edges)
      if (!edge.at_end) state = RelationState::kCreating;
    if (state == view->info.state) continue;
    view->info.state = state;
    view->info_changed = true;
  }
}

void ViewGraph::Impl::SaveChanged() {
  for (auto& [oid, node] : nodes) {
    if (std::exchange(node.info_changed, false))
      meta.Put(RelationKey(oid), StoreInfo(node.info, node.sequence));
    if (std::exchange(node.edges_changed, false))
      for (const auto& [input, edge] : node.edges)
        meta.Put(EdgeKey(oid, input),
                 StoreEdge(node.held ? Edge{false, edge.rows_delivered, {}} : edge));
  }
  StoreNumber(meta, kEpochKey, epoch);
}

void ViewGraph::Impl::Commit() {
  try {
    ReleaseHeld();
    Propagate();
    LimitHeld();
    UpdateStates();
    SaveChanged();
    CheckLmdb(mdb_txn_commit(std::exchange(transaction.txn, nullptr)), "write");
  } catch (const QueryError&) {
    if (transaction.txn == nullptr) Forget();
    Abort();
    throw;
  }
}

void ViewGraph::Impl::RaiseGeneration() {
  StoreNumber(meta, kGenerationKey, LoadNumber(meta, kGenerationKey) + 1);
}

void ViewGraph::Impl::Fail(GraphNode* node, const Error& error) {
  Log(LogLevel::kWarning, "live view with OID {} stopped: {}", node->info.oid, error.message);
  node->info.state = RelationState::kFailed;
  node->info.failure = error;
  node->info_changed = true;
  node->pushed = false;
}

void ViewGraph::Impl::DropTables(Oid relation) {
  std::vector<std::string> names = {"r" + std::to_string(relation)};
  if (auto node = nodes.find(relation); node != nodes.end())
    for (const StoredIndex& index : node->second.info.indexes)
      names.push_back(ViewIndex::TableName(index.oid));
  if (change_logs.erase(relation) != 0) {
    names.push_back(ChangeLogName(relation));
    meta.Delete(ChangeLogMarkKey(relation));
  }
  MDB_dbi main;
  CheckLmdb(mdb_dbi_open(transaction.txn, nullptr, 0, &main), "read");
  MDB_cursor* cursor;
  CheckLmdb(mdb_cursor_open(transaction.txn, main, &cursor), "read");
  std::string prefix = StateTablePrefix(relation);
  MDB_val key{prefix.size(), prefix.data()}, value;
  for (int code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE); code == 0;
       code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
    std::string_view name(static_cast<const char*>(key.mv_data), key.mv_size);
    if (!name.starts_with(prefix)) break;
    names.emplace_back(name);
  }
  mdb_cursor_close(cursor);
  for (const std::string& name : names) LmdbTable(&transaction, name, false).Drop();
}

ViewGraph::Epoch::Epoch(ViewGraph::Impl* graph) : graph_(graph) {}

ViewGraph::Epoch::~Epoch() {
  graph_->Abort();
}

uint64_t ViewGraph::Epoch::number() const {
  return graph_->epoch;
}

void ViewGraph::Epoch::AddSource(const SourceDefinition& source) {
  SLUICE_ASSERT(!graph_->nodes.contains(source.oid));
  RelationInfo info;
  info.oid = source.oid;
  info.kind = StoredRelationKind::kSource;
  info.columns = source.columns;
  info.key_columns = source.key_columns;
  info.keyed = !source.key_columns.empty();
  info.by_shard = true;
  for (int column : source.key_columns)
    if (!CanEncodeKey(info.columns[static_cast<size_t>(column)].type))
      Refuse(
          "a live view on a table whose primary key has the type of column \"{}\" is not "
          "supported",
          info.columns[static_cast<size_t>(column)].name);
  GraphNode& node = graph_->nodes[source.oid];
  node.info = std::move(info);
  node.sequence = graph_->next_sequence++;
  node.stored = std::make_unique<StoredRelation>(&graph_->transaction, node.info, true);
  node.info_changed = true;
  graph_->RaiseGeneration();
}

void ViewGraph::Epoch::DropSource(Oid source) {
  DropView(source);
}

void ViewGraph::Epoch::Apply(Oid source, uint32_t shard, const ChangeBatch& changes) {
  graph_->Apply(source, shard, changes);
}

void ViewGraph::Epoch::Insert(Oid source, uint32_t shard, const Batch& rows) {
  graph_->Insert(source, shard, rows);
}

void ViewGraph::Epoch::Truncate(Oid source, uint32_t shard) {
  graph_->Truncate(source, shard);
}

void ViewGraph::Epoch::SetSourceComplete(Oid source, bool complete) {
  GraphNode& node = graph_->Known(source);
  node.info.state = complete ? RelationState::kCreated : RelationState::kCreating;
  node.info_changed = true;
}

void ViewGraph::Epoch::AddView(Oid view, std::shared_ptr<const ViewPlan> plan,
                               std::string_view definition, FirstRows first_rows) {
  SLUICE_ASSERT(!graph_->nodes.contains(view));
  graph_->Propagate();  // what its inputs hold by now it reads as stored rows
  graph_->plans[view] = plan;
  GraphNode& node = graph_->nodes[view];
  node.info.oid = view;
  node.info.kind = StoredRelationKind::kView;
  node.info.inputs = plan->inputs;
  node.info.definition = definition;
  node.info.plan_fingerprint = plan->fingerprint;
  node.sequence = graph_->next_sequence++;
  try {
    graph_->CompileView(&node, true);
  } catch (const QueryError&) {  // refused
    graph_->nodes.erase(view);
    graph_->plans.erase(view);
    graph_->DropTables(view);
    throw;
  }
  node.info.columns = node.compiled->columns();
  node.info_changed = node.edges_changed = true;
  graph_->RaiseGeneration();
  bool cheapest = first_rows == FirstRows::kCheapest;
  if (cheapest && node.compiled->SameRowsAs() != kInvalidOid)
    return graph_->ShowRowsOf(&node, &graph_->Known(node.compiled->SameRowsAs()));
  node.info.keyed = node.compiled->keyed();
  node.info.key_columns = node.compiled->key_columns();
  node.info.by_shard = node.compiled->keyed_by_shard();
  node.stored = std::make_unique<StoredRelation>(&graph_->transaction, node.info, true);
  bool row_by_row = node.compiled->row_by_row();
  for (Oid input : plan->inputs) {
    GraphNode& from = graph_->Known(input);
    const RelationInfo& root = from.root().info;
    bool incomplete =
        root.kind == StoredRelationKind::kSource && root.state != RelationState::kCreated;
    bool at_once = first_rows == FirstRows::kAtOnce || (cheapest && (row_by_row || !incomplete));
    node.edges[input].at_end = at_once && from.stored->table().entries() == 0;
  }
  AsFailureOf(view, [&] { node.compiled->Start(); });
  node.pushed = true;
  if (cheapest && row_by_row && node.compiled->aggregates()) graph_->Hold(&node);
}

// The view has its input's rows, and none of its own.
void ViewGraph::Impl::ShowRowsOf(GraphNode* view, GraphNode* input) {
  const RelationInfo& from = input->info;
  view->base = input;
  view->info.storage = from.storage == kInvalidOid ? from.oid : from.storage;
  view->info.keyed = from.keyed;
  view->info.by_shard = from.by_shard;
  view->info.key_columns = from.key_columns;
  view->compiled.reset();
  view->stored = std::make_unique<StoredRelation>(&transaction, view->info, true);
  view->edges[from.oid].at_end = true;
}

void ViewGraph::Epoch::DropView(Oid view) {
  graph_->Propagate();
  GraphNode& node = graph_->Known(view);
  for (const auto& [oid, other] : graph_->nodes) SLUICE_ASSERT(!other.edges.contains(view));
  std::vector<std::string> keys;
  ForEachEntry(graph_->errors, ErrorKeyPrefix(view),
               [&](std::string_view key, std::string_view) { keys.emplace_back(key); });
  for (const std::string& key : keys) graph_->errors.Delete(key);
  for (Oid input : node.info.inputs) graph_->meta.Delete(EdgeKey(view, input));
  graph_->meta.Delete(RelationKey(view));
  graph_->DropTables(view);
  graph_->nodes.erase(view);
  graph_->plans.erase(view);
  graph_->RaiseGeneration();
}

void ViewGraph::Epoch::Fail(Oid view, const Error& error) {
  graph_->Fail(&graph_->Known(view), error);
}

size_t ViewGraph::Epoch::Backfill(Oid view, Oid input, size_t rows_max) {
  return graph_->Backfill(view, input, rows_max);
}

std::optional<RelationInfo> ViewGraph::Epoch::Relation(Oid relation) {
  auto found = graph_->nodes.find(relation);
  if (found == graph_->nodes.end()) return std::nullopt;
  graph_->UpdateStates();
  RelationInfo info = found->second.info;
  info.rows = found->second.stored->table().entries();
  return info;
}

std::vector<RelationInfo> ViewGraph::Epoch::Relations() {
  std::vector<RelationInfo> relations;
  for (const auto& [oid, node] : graph_->nodes) relations.push_back(*Relation(oid));
  return relations;
}

std::vector<EdgeInfo> ViewGraph::Epoch::Edges(Oid view) {
  std::vector<EdgeInfo> edges;
  for (const auto& [input, edge] : graph_->Known(view).edges)
    edges.push_back({view, input, edge.at_end, edge.rows_delivered});
  return edges;
}

void ViewGraph::Epoch::SetIndexes(Oid view, std::span<const StoredIndex> wanted) {
  GraphNode& node = graph_->Known(view);
  std::vector<StoredIndex>& have = node.info.indexes;
  auto same = [](std::span<const StoredIndex> set, const StoredIndex& index) {
    return std::any_of(set.begin(), set.end(), [&](const StoredIndex& other) {
      return other.oid == index.oid && other.columns == index.columns;
    });
  };
  bool changed = false;
  for (size_t i = have.size(); i-- > 0;) {
    if (same(wanted, have[i])) continue;
    node.indexes[i]->table().Drop();
    node.indexes.erase(node.indexes.begin() + static_cast<std::ptrdiff_t>(i));
    have.erase(have.begin() + static_cast<std::ptrdiff_t>(i));
    changed = true;
  }
  for (const StoredIndex& index : wanted) {
    if (same(have, index)) continue;
    have.push_back({index.oid, index.columns});
    node.indexes.push_back(
        std::make_unique<ViewIndex>(&graph_->transaction, node.info, have.back(), true));
    changed = true;
  }
  if (!changed) return;
  node.info_changed = true;
  graph_->RaiseGeneration();
}

bool ViewGraph::Epoch::BuildIndexes(size_t rows_max) {
  bool open = false;
  for (auto& [oid, node] : graph_->nodes)
    for (size_t i = 0; i < node.indexes.size(); i++) {
      StoredIndex& index = node.info.indexes[i];
      if (index.complete) continue;
      graph_->Propagate();  // what is to come is in no row that is read here
      node.indexes[i]->Build(*node.stored, rows_max, &index);
      node.info_changed = true;
      open |= !index.complete;
    }
  return open;
}

bool ViewGraph::KeepsChanges(Oid view) const {
  return impl_->change_logs.contains(view);
}

void ViewGraph::Epoch::KeepChanges(Oid view, int64_t now_us) {
  // Written now and then only.
  constexpr int64_t kAgainUs = 10'000'000;
  auto found = graph_->change_logs.find(view);
  bool is_new = found == graph_->change_logs.end();
  if (!is_new && now_us - found->second.mark().wanted_at_us < kAgainUs) return;
  if (is_new) {
    found = graph_->change_logs
                .emplace(view, ChangeLog(&graph_->transaction, view, {graph_->epoch, now_us}, true))
                .first;
    graph_->RaiseGeneration();
  }
  found->second.SetWanted(now_us);
  graph_->meta.Put(ChangeLogMarkKey(view), StoreMark(found->second.mark()));
}

void ViewGraph::Epoch::ForgetChanges(int64_t before_us) {
  auto& logs = graph_->change_logs;
  for (auto log = logs.begin(); log != logs.end();) {
    Oid view = log->first;
    if (log->second.mark().wanted_at_us < before_us) {
      log->second.Drop();
      graph_->meta.Delete(ChangeLogMarkKey(view));
      graph_->RaiseGeneration();
      log = logs.erase(log);
      continue;
    }
    if (log->second.Trim(before_us))
      graph_->meta.Put(ChangeLogMarkKey(view), StoreMark(log->second.mark()));
    ++log;
  }
}

void ViewGraph::Epoch::Put(std::string_view key, std::string_view value) {
  graph_->feed.Put(key, value);
}

void ViewGraph::Epoch::Delete(std::string_view key) {
  graph_->feed.Delete(key);
}

std::optional<std::string> ViewGraph::Epoch::Get(std::string_view key) {
  std::optional<std::string_view> value = graph_->feed.Get(key);
  if (!value) return std::nullopt;
  return std::string(*value);
}

void ViewGraph::Epoch::ForEach(std::string_view prefix,
                               const std::function<void(std::string_view, std::string_view)>& fn) {
  ForEachEntry(graph_->feed, prefix, fn);
}

void ViewGraph::Epoch::Commit() {
  graph_->Commit();
}

}  // namespace sluice
