// The shape of every executor node: constructor, Next, Rescan, destructor. A plan is const; what
// changes while it runs is in the node, process-local, or in NodeShared, shared by a query's
// participants.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "executor/executor.h"
#include "optimizer/plan.h"
#include "shm/parallel_query.h"
#include "types/column.h"

namespace sluice {

class RowStore;       // executor/row_store.h
class SubPlanRunner;  // executor/sub_plan.h
class Workers;        // executor/fragment.h
struct WorkTable;     // executor/recursive_union.h

// What the nodes of one process running one statement share.
struct ExecutionState {
  const PlannedStatement* statement;
  const ExecutorContext* context;     // in workers: a copy without the callbacks
  ParallelQuery* parallel = nullptr;  // inside a Gather
  uint32_t participant = 0;           // 0 = leader
  uint32_t participants_max = 1;
  // Shared state by node id, null where a node has none: of scans and appends
  // (executor/plan_streams.h) and of parallel-aware nodes, made by the leader before workers start
  // (PrepareShared below).
  void** shared_states = nullptr;
  // By param number: results of init plans, evaluated before use; per-row ones are views of the row
  // that whoever sets them is at.
  std::span<Column> exec_params;
  // Rows of data-modifying WITH queries, a store for each of their scans.
  std::vector<std::vector<std::unique_ptr<RowStore>>>* cte_rows = nullptr;
  // By sub plan number, made when first compiled; null in workers, which run none.
  std::vector<std::unique_ptr<SubPlanRunner>>* sub_plans = nullptr;
  std::map<int, WorkTable*> work_tables;  // of recursive queries, by parameter
  std::vector<NodeStatistics>* statistics;
  std::vector<Workers*>* gathers = nullptr;  // the leader's, so that their workers can be stopped
};

class Node {
 public:
  explicit Node(const Plan& plan, ExecutionState& state) : plan_(plan), state_(state) {}
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // The next batch; rows == 0 means the end. The batch's columns are valid until the next call of
  // Next or Rescan on this node. (Counts and times around NextBatch.)
  void Next(Batch* batch);
  // Start over. Nodes over streams buffer what they need for it, or are wrapped in a Materialize.
  virtual void Rescan() = 0;

 protected:
  virtual void NextBatch(Batch* batch) = 0;
  NodeStatistics& Statistics() { return (*state_.statistics)[plan_.id]; }

  const Plan& plan_;
  ExecutionState& state_;

 private:
  bool between_loops_ = true;
};

std::unique_ptr<Node> MakeNode(const Plan& plan, ExecutionState& state);

// Leader, before launching workers: makes the shared state of `plan`'s parallel-aware nodes in the
// query's arena. One function a node kind that has such state, called by executor/gather.cc.
void PrepareShared(const Plan& plan, ExecutionState& state);

}  // namespace sluice
