// Views of groups that are built: groups are held in memory until all rows have been delivered.
//
// A group is touched by many rows of a table, so a group that is written whenever some of them have
// come is written many times. While a view is *held*, nothing of it changes in the store: no group,
// no row, and its edges stand at the beginning. So it is, at every moment, what the store says: a
// view that has got nothing yet. A process that dies finds it so and reads the inputs' stored rows
// again, which asks no shard. When all its inputs are complete and delivered, it is let go in one
// step: the groups, the rows and the edges at their ends become durable together.
#include "common/log.h"
#include "stream/graph_node.h"

namespace sluice {

void ViewGraph::Impl::Hold(GraphNode* view) {
  Propagate();  // what the view is without rows is durable
  view->held = true;
  view->edges_changed = true;
}

// Memory is short: read again when the inputs are complete, in parts that become durable.
void ViewGraph::Impl::LetGo(GraphNode* view) {
  Log(LogLevel::kLog, "groups of the live view with OID {} take too much memory to be held",
      view->info.oid);
  view->held = false;
  let_go = true;
  for (auto& [input, edge] : view->edges) edge = Edge{};
  view->edges_changed = true;
  CompileView(view, false);
}

// No more of its rows is still to come.
bool ViewGraph::Impl::IsFinal(GraphNode& node) {
  if (node.info.kind == StoredRelationKind::kSource)
    return node.info.state == RelationState::kCreated;
  if (node.held || node.failed()) return false;
  return std::all_of(node.edges.begin(), node.edges.end(), [this](const auto& edge) {
    return edge.second.at_end && IsFinal(Known(edge.first));
  });
}

void ViewGraph::Impl::ReleaseHeld() {
  for (GraphNode* view : ViewsInOrder()) {
    if (!view->held || view->failed()) continue;
    bool complete = std::all_of(view->edges.begin(), view->edges.end(), [this](const auto& edge) {
      return edge.second.at_end && IsFinal(Known(edge.first));
    });
    if (!complete) continue;
    view->held = false;
    view->pushed = true;
    view->edges_changed = true;
  }
}

void ViewGraph::Impl::LimitHeld() {
  size_t bytes = 0;
  for (auto& [oid, view] : nodes)
    if (view.held) bytes += view.compiled->memory_bytes();
  if (bytes <= held_bytes_max) return;
  for (auto& [oid, view] : nodes)
    if (view.held) LetGo(&view);
}

}  // namespace sluice
