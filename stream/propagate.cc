// How changes run through the graph: every view once, inputs first.
#include "common/assert.h"
#include "common/error.h"
#include "stream/graph_node.h"

namespace sluice {
namespace {

constexpr size_t kPendingRowsMax = 256 * 1024, kPendingBytesMax = size_t{64} << 20;

}  // namespace

size_t ViewGraph::Impl::PendingBytesMax() const {
  return std::min(kPendingBytesMax, held_bytes_max);
}

void ViewGraph::Impl::PropagateIfLarge(const GraphNode& source) {
  if (source.source_delta.size() > kPendingRowsMax ||
      source.source_delta.memory_bytes() > PendingBytesMax())
    Propagate();
}

void ViewGraph::Impl::Propagate() {
  while (PropagateOnce()) {
  }
}

// False: all is said.
bool ViewGraph::Impl::PropagateOnce() {
  bool more = false;
  for (GraphNode* view : ViewsInOrder()) {
    if (view->failed()) continue;
    if (view->base != nullptr) {
      // Its input has been finished, and its changes are the view's.
      DeltaBuffer* delta = view->delta();
      bool noted = !view->indexes.empty() || change_logs.contains(view->info.oid);
      if (noted && delta != nullptr && !delta->empty())
        AsFailureOf(view->info.oid, [&] { NoteChanges(view, delta->Settle()); });
      continue;
    }
    for (auto& [oid, edge] : view->edges) {
      GraphNode& input = Known(oid);
      DeltaBuffer* delta = input.delta();
      if (delta == nullptr || delta->empty()) continue;
      std::vector<DeltaBuffer::Entry> covered;
      std::span<const DeltaBuffer::Entry> rows = delta->Settle();
      if (!edge.at_end) {
        std::string buffer;
        for (const DeltaBuffer::Entry& entry : rows)
          if (edge.Covers(StoredKey(entry.key, &buffer))) covered.push_back(entry);
        rows = covered;
      }
      if (!rows.empty()) Deliver(view, input, rows);
    }
    if (view->pushed) Finish(view);
    more = more || view->pushed;
  }
  for (auto& [oid, node] : nodes)
    if (DeltaBuffer* delta = node.delta()) delta->Clear();
  return more;
}

void ViewGraph::Impl::Finish(GraphNode* view) {
  view->pushed = false;
  if (view->held) return;
  AsFailureOf(view->info.oid, [&] {
    view->compiled->Finish(view->building());
    view->pushed = view->compiled->more();
    std::span<const DeltaBuffer::Entry> changes = view->compiled->delta().Settle();
    view->stored->Apply(changes);
    NoteChanges(view, changes);
    view->compiled->errors().Apply(errors, view->info.oid);
  });
}

// What its rows have by now, to its indexes and subscribers.
void ViewGraph::Impl::NoteChanges(GraphNode* view, std::span<const DeltaBuffer::Entry> changes) {
  for (size_t i = 0; i < view->indexes.size(); i++)
    view->indexes[i]->Apply(*view->stored, view->info.indexes[i], changes);
  auto log = change_logs.find(view->info.oid);
  if (log != change_logs.end()) log->second.Append(epoch, begun_at_us, changes);
}

void ViewGraph::Impl::Deliver(GraphNode* view, GraphNode& input,
                              std::span<const DeltaBuffer::Entry> rows) {
  if (view->compiled == nullptr) {
    Fail(view, MakeError(sqlstate::kObjectNotInPrerequisiteState,
                         "changes came while the view was not attached"));
    return;
  }
  view->pushed = true;
  AsFailureOf(view->info.oid, [&] {
    BatchBuffer buffer(TypesOf(input.info.columns));
    int64_t weights[kBatchRows];
    std::string_view keys[kBatchRows];
    DeltaBatch batch{{}, weights, input.stored->keyed() ? keys : nullptr};
    for (size_t first = 0; first < rows.size(); first += kBatchRows) {
      size_t count = std::min(kBatchRows, rows.size() - first);
      buffer.Clear();
      for (size_t i = 0; i < count; i++) {
        const DeltaBuffer::Entry& entry = rows[first + i];
        input.stored->codec().Decode(entry.row, i, &buffer);
        weights[i] = entry.weight;
        keys[i] = entry.key;
      }
      buffer.Show(count, &batch.rows);
      view->compiled->Push(input.info.oid, batch);
    }
  });
}

size_t ViewGraph::Impl::Backfill(Oid view_oid, Oid input_oid, size_t rows_max) {
  Propagate();  // afterwards the input's stored rows are what its edges have seen
  GraphNode& view = Known(view_oid);
  GraphNode& input = Known(input_oid);
  Edge& edge = view.edges.at(input_oid);
  if (view.failed() || edge.at_end) return 0;
  size_t delivered = 0;
  view.edges_changed = true;
  while (delivered < rows_max && !edge.at_end) {
    // Copied out: pushing them writes to the store, which may move what the cursor shows.
    Arena arena;
    std::vector<DeltaBuffer::Entry> rows;
    std::string last = edge.cursor;
    {
      LmdbCursor cursor(input.stored->table());
      bool found = cursor.Seek(edge.cursor);
      if (found && cursor.key() == edge.cursor) found = cursor.Next();
      size_t wanted = std::min(kBatchRows, rows_max - delivered);
      for (; found && rows.size() < wanted; found = cursor.Next()) {
        StoredRow row = input.stored->Unpack(cursor.key(), cursor.value());
        rows.push_back({arena.CopyString(row.key), arena.CopyString(row.row),
                        static_cast<int64_t>(row.count)});
        last = cursor.key();
      }
      edge.at_end = !found;
    }
    if (!rows.empty()) Deliver(&view, input, rows);
    edge.cursor = edge.at_end ? std::string() : last;
    delivered += rows.size();
    // The net change is held in memory; the larger it is, the less often is a group written.
    if (delivered % kPendingRowsMax == 0 ||
        (view.compiled != nullptr && view.compiled->delta().memory_bytes() > PendingBytesMax()))
      Propagate();
  }
  edge.rows_delivered += delivered;
  if (edge.at_end) view.pushed = true;  // what waited for all rows
  Propagate();
  return delivered;
}

RowReaders ViewGraph::Impl::ReadersOf(GraphNode& relation) {
  RowReaders readers;
  for (auto& [oid, view] : nodes) {
    if (view.info.kind != StoredRelationKind::kView || view.failed()) continue;
    if (view.base != nullptr) {
      bool noted = !view.indexes.empty() || change_logs.contains(oid);
      readers.need_delta |= noted && &view.root() == &relation;
      continue;
    }
    for (const auto& [input, edge] : view.edges) {
      if (&Known(input).root() != &relation) continue;
      if (edge.at_end)
        readers.direct.push_back({&view, input});
      else
        readers.need_delta |= !edge.cursor.empty();
    }
  }
  return readers;
}

// Rows that were not in the relation before: no old row has to go first, so nothing needs to be
// netted. Views that pass each on, or not, write them at once.
void ViewGraph::Impl::PushInserted(const RowReaders& readers, const Batch& rows,
                                   const std::string_view* keys) {
  static const std::vector<int64_t> ones(kBatchRows, 1);
  for (auto [view, input] : readers.direct) {
    if (view->compiled == nullptr) {
      Deliver(view, Known(input), {});
      continue;
    }
    view->pushed = true;
    Edge& edge = view->edges.at(input);
    edge.rows_delivered += view->held ? rows.rows : 0;
    view->edges_changed |= view->held;
    bool noted = !view->indexes.empty() || change_logs.contains(view->info.oid);
    RowReaders next;
    bool at_once = view->compiled->row_by_row() && !view->compiled->aggregates() &&
                   view->stored->keyed() && keys != nullptr && !noted;
    if (at_once) next = ReadersOf(*view);
    AsFailureOf(view->info.oid, [&, view = view, input = input] {
      DeltaBatch batch{rows, ones.data(), keys};
      if (at_once && !next.need_delta)
        view->compiled->PushTo(input, batch,
                               [&](const DeltaBatch& emitted) { InsertRows(view, next, emitted); });
      else
        view->compiled->Push(input, batch);
    });
    if (view->compiled->delta().memory_bytes() > PendingBytesMax()) Propagate();
  }
}

// What a view emits whose rows are the input's, each with the input's key.
void ViewGraph::Impl::InsertRows(GraphNode* view, const RowReaders& readers,
                                 const DeltaBatch& batch) {
  SLUICE_ASSERT(batch.keys != nullptr);
  std::string row;
  for (size_t i = 0; i < batch.rows.rows; i++) {
    row.clear();
    view->stored->codec().Append(batch.rows.columns, i, &row);
    if (!view->stored->Insert(batch.keys[i], row))
      Throw(sqlstate::kDataCorrupted, "two rows of a view have the same key");
  }
  if (!readers.direct.empty()) PushInserted(readers, batch.rows, batch.keys);
}

}  // namespace sluice
