#include "executor/node.h"

#include "executor/aggregate.h"
#include "executor/append.h"
#include "executor/apply.h"
#include "executor/chain.h"
#include "executor/completion.h"
#include "executor/cte_scan.h"
#include "executor/distinct.h"
#include "executor/filter.h"
#include "executor/foreign_scan.h"
#include "executor/function_scan.h"
#include "executor/gather.h"
#include "executor/gather_merge.h"
#include "executor/hash_join.h"
#include "executor/limit.h"
#include "executor/materialize.h"
#include "executor/merge_append.h"
#include "executor/modify.h"
#include "executor/nest_loop.h"
#include "executor/project.h"
#include "executor/recursive_union.h"
#include "executor/result.h"
#include "executor/set_op.h"
#include "executor/sort.h"
#include "executor/values_scan.h"
#include "executor/view_scan.h"
#include "executor/virtual_scan.h"
#include "executor/window_agg.h"
#include "shm/process_table.h"

namespace sluice {

void Node::Next(Batch* batch) {
  NodeStatistics& statistics = Statistics();
  if (between_loops_) {
    statistics.loops++;
    between_loops_ = false;
  }
  if (state_.context->instrument) {
    int64_t start = MonotonicUs();
    NextBatch(batch);
    int64_t took = MonotonicUs() - start;
    if (statistics.batches == 0) statistics.startup_us += took;
    statistics.total_us += took;
  } else {
    NextBatch(batch);
  }
  statistics.rows += batch->rows;
  statistics.batches++;
  between_loops_ = batch->rows == 0;
}

namespace {

template <typename NodeType, typename PlanType>
std::unique_ptr<Node> Make(const Plan& plan, ExecutionState& state) {
  return std::make_unique<NodeType>(static_cast<const PlanType&>(plan), state);
}

}  // namespace

std::unique_ptr<Node> MakeNode(const Plan& plan, ExecutionState& state) {
  switch (plan.kind) {
    case PlanKind::kResult:
      return Make<ResultNode, ResultPlan>(plan, state);
    case PlanKind::kForeignScan:
      return Make<ForeignScan, ForeignScanPlan>(plan, state);
    case PlanKind::kAppend:
      if (state.shared_states == nullptr) return Make<Chain, AppendPlan>(plan, state);
      return Make<Append, AppendPlan>(plan, state);
    case PlanKind::kMergeAppend:
      return Make<MergeAppend, MergeAppendPlan>(plan, state);
    case PlanKind::kProject:
      return Make<Project, ProjectPlan>(plan, state);
    case PlanKind::kFilter:
      return Make<Filter, FilterPlan>(plan, state);
    case PlanKind::kAggregate:
      return Make<Aggregate, AggregatePlan>(plan, state);
    case PlanKind::kHashJoin:
      return Make<HashJoin, HashJoinPlan>(plan, state);
    case PlanKind::kNestLoop:
      return Make<NestLoop, NestLoopPlan>(plan, state);
    case PlanKind::kApply:
      return Make<Apply, ApplyPlan>(plan, state);
    case PlanKind::kRecursiveUnion:
      return Make<RecursiveUnion, RecursiveUnionPlan>(plan, state);
    case PlanKind::kWorkTableScan:
      return Make<WorkTableScan, WorkTableScanPlan>(plan, state);
    case PlanKind::kWindowAgg:
      return Make<WindowAgg, WindowAggPlan>(plan, state);
    case PlanKind::kSort:
      return Make<Sort, SortPlan>(plan, state);
    case PlanKind::kLimit:
      return Make<Limit, LimitPlan>(plan, state);
    case PlanKind::kDistinct:
      return Make<Distinct, DistinctPlan>(plan, state);
    case PlanKind::kSetOp:
      return Make<SetOp, SetOpPlan>(plan, state);
    case PlanKind::kValuesScan:
      return Make<ValuesScan, ValuesScanPlan>(plan, state);
    case PlanKind::kFunctionScan:
      return Make<FunctionScan, FunctionScanPlan>(plan, state);
    case PlanKind::kVirtualScan:
      return Make<VirtualScan, VirtualScanPlan>(plan, state);
    case PlanKind::kViewScan:
      return Make<ViewScan, ViewScanPlan>(plan, state);
    case PlanKind::kMaterialize:
      return Make<Materialize, MaterializePlan>(plan, state);
    case PlanKind::kGather:
      return Make<Gather, GatherPlan>(plan, state);
    case PlanKind::kGatherMerge:
      return Make<GatherMerge, GatherMergePlan>(plan, state);
    case PlanKind::kCompletion:
      return Make<Completion, CompletionPlan>(plan, state);
    case PlanKind::kCteScan:
      return Make<CteScan, CteScanPlan>(plan, state);
    case PlanKind::kModify:
      return Make<Modify, ModifyPlan>(plan, state);
  }
  Throw(sqlstate::kInternalError, "unknown plan node {}", static_cast<int>(plan.kind));
}

void PrepareShared(const Plan& plan, ExecutionState& state) {
  if (plan.kind == PlanKind::kHashJoin)
    state.shared_states[plan.id] =
        PrepareHashJoinShared(static_cast<const HashJoinPlan&>(plan), state);
  for (const Plan* child : plan.children) PrepareShared(*child, state);
}

}  // namespace sluice
