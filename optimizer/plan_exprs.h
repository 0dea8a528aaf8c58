// Every expression of one plan node, its children's aside.
#pragma once

#include "optimizer/plan.h"

namespace sluice {

template <typename Fn>
void ForEachPlanExpr(const Plan& plan, Fn&& given) {
  auto fn = [&](const Expr* expr) {
    if (expr != nullptr) given(*expr);
  };
  auto all = [&](std::span<const Expr* const> exprs) {
    for (const Expr* expr : exprs) fn(expr);
  };
  auto aggregate = [&](const AggregateCall& call) {
    all(call.args);
    fn(call.filter);
    for (const SortKey& key : call.order_by) fn(key.expr);
  };
  switch (plan.kind) {
    case PlanKind::kResult: {
      const auto& node = static_cast<const ResultPlan&>(plan);
      all(node.expressions);
      return fn(node.one_time_filter);
    }
    case PlanKind::kValuesScan:
      for (auto row : static_cast<const ValuesScanPlan&>(plan).rows_of_expressions) all(row);
      return;
    case PlanKind::kFunctionScan:
      return fn(static_cast<const FunctionScanPlan&>(plan).call);
    case PlanKind::kForeignScan:
      return all(static_cast<const ForeignScanPlan&>(plan).params);
    case PlanKind::kProject:
      return all(static_cast<const ProjectPlan&>(plan).expressions);
    case PlanKind::kFilter:
      return fn(static_cast<const FilterPlan&>(plan).condition);
    case PlanKind::kAggregate: {
      const auto& node = static_cast<const AggregatePlan&>(plan);
      all(node.group_by);
      for (const AggregateCall& call : node.calls) aggregate(call);
      return;
    }
    case PlanKind::kWindowAgg: {
      const auto& node = static_cast<const WindowAggPlan&>(plan);
      for (const Expr* expr :
           {node.start_offset, node.end_offset, node.range_key, node.range_start, node.range_end})
        fn(expr);
      for (const WindowCall& call : node.calls) aggregate(call.aggregate);
      return;
    }
    case PlanKind::kHashJoin: {
      const auto& node = static_cast<const HashJoinPlan&>(plan);
      all(node.outer_keys);
      all(node.inner_keys);
      return fn(node.condition);
    }
    case PlanKind::kNestLoop:
      return fn(static_cast<const NestLoopPlan&>(plan).condition);
    case PlanKind::kApply: {
      const auto& node = static_cast<const ApplyPlan&>(plan);
      all(node.arguments);
      return fn(node.condition);
    }
    case PlanKind::kSort:
      return fn(static_cast<const SortPlan&>(plan).bound);
    case PlanKind::kLimit: {
      const auto& node = static_cast<const LimitPlan&>(plan);
      fn(node.limit);
      return fn(node.offset);
    }
    case PlanKind::kCompletion:
      return all(static_cast<const CompletionPlan&>(plan).params);
    case PlanKind::kModify: {
      const auto& node = static_cast<const ModifyPlan&>(plan);
      all(node.keys);
      return all(node.returning);
    }
    case PlanKind::kCteScan:
    case PlanKind::kRecursiveUnion:
    case PlanKind::kWorkTableScan:
    case PlanKind::kVirtualScan:
    case PlanKind::kViewScan:
    case PlanKind::kAppend:
    case PlanKind::kMergeAppend:
    case PlanKind::kMaterialize:
    case PlanKind::kDistinct:
    case PlanKind::kSetOp:
    case PlanKind::kGather:
    case PlanKind::kGatherMerge:
      return;
  }
}

}  // namespace sluice
