// Nodes over what has been planned: lowering expressions, and the small constructors.
#include "common/assert.h"
#include "common/error.h"
#include "optimizer/describe.h"
#include "optimizer/evaluable.h"
#include "optimizer/plan_exprs.h"
#include "optimizer/planning.h"
#include "types/collation.h"
#include "types/kernel_registry.h"
#include "types/object_name.h"

namespace sluice {

// A plan that reads fewer rows than this isn't worth waking workers for.
constexpr double kRowsForWorkersMin = 20000;

void AddUnique(const Expr* expr, std::vector<const Expr*>* to) {
  for (const Expr* have : *to)
    if (EqualExpr(have, expr)) return;
  to->push_back(expr);
}

void CollectColumns(const Expr* expr, std::vector<const Expr*>* columns) {
  AnyExpr(expr, [&](const Expr& e, int depth) {
    if (e.kind == ExprKind::kColumn && depth == 0 && e.levels_up == 0) AddUnique(&e, columns);
    return false;
  });
}

void Planner::SetChildren(sluice::Plan* plan, std::vector<const sluice::Plan*> children) {
  plan->children = arena_.CopyArray(children);
}

// Names are what EXPLAIN calls the columns. Only leaves and computing nodes have new ones.
void Planner::SetOutput(sluice::Plan* plan, const std::vector<const Expr*>& exprs) {
  std::span<OutputColumn> output = arena_.NewArray<OutputColumn>(exprs.size());
  for (size_t i = 0; i < exprs.size(); i++) {
    std::string name = DescribeExpr(*exprs[i], [&](const Expr& column) -> std::string {
      if (naming_ == nullptr || column.rel < 0 ||
          static_cast<size_t>(column.rel) >= naming_->rels.size())
        return fmt::format("column{}", column.column + 1);
      const QueryRel& rel = naming_->rels[static_cast<size_t>(column.rel)];
      std::string_view name = rel.columns[static_cast<size_t>(column.column)].name;
      return rel.alias.empty() ? std::string(name)
                               : std::string(rel.alias) + "." + std::string(name);
    });
    output[i] = {arena_.CopyString(name), exprs[i]->type, exprs[i]->typmod, exprs[i]->collation};
  }
  plan->output = output;
}

const Expr* Planner::Lower(const Expr* expr, const Local& input, const Local* inner) {
  if (expr == nullptr) return nullptr;
  auto find = [&](const Expr& e) -> const Expr* {
    if (IsConstantHere(e)) return nullptr;
    for (int side = 0; side < (inner == nullptr ? 1 : 2); side++) {
      const auto& provides = side == 0 ? input.provides : inner->provides;
      for (size_t i = 0; i < provides.size(); i++) {
        if (!EqualExpr(provides[i], &e)) continue;
        return MakeColumn(side == 0 ? kInput : kInner, static_cast<int>(i), e.type, e.typmod,
                          e.collation, &scratch_);
      }
    }
    return nullptr;
  };
  const Expr* lowered = RewriteExpr(expr, &scratch_, [&](const Expr& e, int) -> const Expr* {
    if (const Expr* found = find(e)) return found;
    if (e.kind == ExprKind::kSubquery) Refuse("this kind of subquery is not supported");
    if (e.kind == ExprKind::kWindow) Refuse("window functions are not supported");
    if (e.kind == ExprKind::kAggregate) Refuse("this use of an aggregate is not supported");
    if (e.kind == ExprKind::kColumn) {
      if (e.levels_up > 0) Refuse("this correlated subquery is not supported");
      Refuse("this column reference is not supported here");
    }
    return nullptr;
  });
  lowered = ComputeOnShard(lowered);
  RequireEvaluable(*lowered);
  return DeepCopyExpr(lowered, &arena_);
}

std::span<const Expr* const> Planner::LowerAll(const std::vector<const Expr*>& exprs,
                                               const Local& input) {
  auto lowered = arena_.NewArray<const Expr*>(exprs.size());
  for (size_t i = 0; i < exprs.size(); i++) lowered[i] = Lower(exprs[i], input);
  return lowered;
}

const Expr* Planner::LowerConjuncts(const std::vector<const Expr*>& conjuncts, const Local& input,
                                    const Local* inner) {
  if (conjuncts.empty()) return nullptr;
  return Lower(MakeAnd(conjuncts, &scratch_), input, inner);
}

Local Planner::Filter(Local input, const std::vector<const Expr*>& conjuncts) {
  if (conjuncts.empty()) return input;
  auto* node = NewNode<FilterPlan>(PlanKind::kFilter);
  node->condition = LowerConjuncts(conjuncts, input);
  SetChildren(node, {input.plan});
  node->output = input.plan->output;
  node->rows = std::max(1.0, input.plan->rows * 0.3);
  return {node, std::move(input.provides)};
}

Local Planner::Project(Local input, const std::vector<const Expr*>& exprs) {
  bool same = exprs.size() == input.provides.size();
  for (size_t i = 0; same && i < exprs.size(); i++) same = EqualExpr(exprs[i], input.provides[i]);
  if (same) return input;
  auto* node = NewNode<ProjectPlan>(PlanKind::kProject);
  node->expressions = LowerAll(exprs, input);
  SetChildren(node, {input.plan});
  SetOutput(node, exprs);
  node->rows = input.plan->rows;
  return {node, exprs};
}

std::span<const SortKey> Planner::CopyKeys(const std::vector<SortKey>& keys) {
  return arena_.CopyArray(keys);
}

Local Planner::Sort(Local input, std::vector<SortKey> keys, std::optional<int64_t> bound) {
  for (SortKey& key : keys) {
    key.expr = nullptr;
    Oid type = input.provides[static_cast<size_t>(key.target)]->type;
    if (!CanSortBy(key, type)) Refuse("sorting by {} here is not supported", FormatType(type));
  }
  auto* node = NewNode<SortPlan>(PlanKind::kSort);
  node->keys = CopyKeys(keys);
  if (bound) node->bound = MakeInt8(*bound, &arena_);
  SetChildren(node, {input.plan});
  node->output = input.plan->output;
  node->rows = bound ? std::min(input.plan->rows, static_cast<double>(*bound)) : input.plan->rows;
  return {node, std::move(input.provides)};
}

Local Planner::Limit(Local input, const Select& select, const std::vector<SortKey>& keys) {
  if (select.limit == nullptr && select.offset == nullptr) return input;
  auto* node = NewNode<LimitPlan>(PlanKind::kLimit);
  node->limit = Lower(select.limit, {});
  node->offset = Lower(select.offset, {});
  node->with_ties = select.with_ties;
  if (select.with_ties) node->keys = CopyKeys(keys);
  SetChildren(node, {input.plan});
  node->output = input.plan->output;
  auto bound = RowBound(select);
  node->rows = bound ? std::min(input.plan->rows, static_cast<double>(*bound)) : input.plan->rows;
  return {node, std::move(input.provides)};
}

Local Planner::DistinctRows(Local input) {
  auto* node = NewNode<DistinctPlan>(PlanKind::kDistinct);
  std::vector<int> columns;
  for (size_t i = 0; i < input.provides.size(); i++) {
    if (!CanGroupBy(input.provides[i]->type, input.provides[i]->collation))
      Refuse("DISTINCT over {} here is not supported", FormatType(input.provides[i]->type));
    columns.push_back(static_cast<int>(i));
  }
  node->columns = arena_.CopyArray(columns);
  SetChildren(node, {input.plan});
  node->output = input.plan->output;
  node->rows = std::max(1.0, input.plan->rows * 0.1);
  return {node, std::move(input.provides)};
}

Local Planner::MakeAppend(std::vector<Local> children) {
  if (children.size() == 1) return children[0];
  auto* node = NewNode<AppendPlan>(PlanKind::kAppend);
  node->claim_whole = settings_.claim_whole;
  std::vector<const sluice::Plan*> plans;
  for (const Local& child : children) {
    plans.push_back(child.plan);
    node->rows += child.plan->rows;
  }
  SetChildren(node, plans);
  node->output = children[0].plan->output;
  return {node, children[0].provides};
}

Local Planner::Gather(Local input) {
  auto* node = NewNode<GatherPlan>(PlanKind::kGather);
  node->workers = settings_.max_parallel_workers_per_gather;
  sluice::Plan* partial = MakeFragment(input.plan);
  SetChildren(node, {partial});
  node->output = partial->output;
  node->rows = partial->rows;
  return {node, std::move(input.provides)};
}

Local Planner::GatherMerge(Local input, const std::vector<SortKey>& keys) {
  auto* node = NewNode<GatherMergePlan>(PlanKind::kGatherMerge);
  node->workers = settings_.max_parallel_workers_per_gather;
  node->keys = CopyKeys(keys);
  sluice::Plan* partial = MakeFragment(input.plan);
  SetChildren(node, {partial});
  node->output = partial->output;
  node->rows = partial->rows;
  return {node, std::move(input.provides)};
}

bool RunsInSession(const Expr& expr) {
  return AnyExpr(&expr, [&](const Expr& e, int) {
    if (e.kind == ExprKind::kCall && NeedsSession(e.function)) return true;
    return &e != &expr && IsObjectName(e.type);
  });
}

bool Planner::CanBePartial(const sluice::Plan& plan) const {
  auto no_gather = [](auto& self, const sluice::Plan& p) -> bool {
    if (p.kind == PlanKind::kGather || p.kind == PlanKind::kGatherMerge ||
        p.kind == PlanKind::kCompletion || p.kind == PlanKind::kVirtualScan ||
        p.kind == PlanKind::kViewScan || p.kind == PlanKind::kModify ||
        p.kind == PlanKind::kCteScan || p.kind == PlanKind::kApply ||
        p.kind == PlanKind::kRecursiveUnion || p.kind == PlanKind::kWorkTableScan ||
        p.kind == PlanKind::kWindowAgg)
      return false;
    bool stays = false;
    ForEachPlanExpr(
        p, [&](const Expr& expr) { stays = stays || RunsPerRow(&expr) || RunsInSession(expr); });
    if (stays) return false;
    for (const sluice::Plan* child : p.children)
      if (!self(self, *child)) return false;
    return true;
  };
  if (!no_gather(no_gather, plan)) return false;
  switch (plan.kind) {
    case PlanKind::kForeignScan:
      return true;
    case PlanKind::kAppend:
      for (const sluice::Plan* child : plan.children)
        if (child->kind != PlanKind::kForeignScan && child->kind != PlanKind::kValuesScan)
          return false;
      return true;
    case PlanKind::kProject:
    case PlanKind::kFilter:
      return CanBePartial(*plan.children[0]);
    case PlanKind::kHashJoin: {
      const auto& join = static_cast<const HashJoinPlan&>(plan);
      // A full join's unmatched inner rows would need all participants' word.
      if (join.type == JoinType::kFull || join.type == JoinType::kRight || join.null_aware)
        return false;
      return CanBePartial(*plan.children[0]);
    }
    default:
      return false;
  }
}

// Makes every participant of the Gather above run a share of `plan`. What cannot be divided itself
// (a stream, a grouped subquery) comes in through an Append of one, whose rows the participants
// divide.
sluice::Plan* Planner::MakePartial(sluice::Plan* plan) {
  auto child = [&](size_t i) { return MakePartial(const_cast<sluice::Plan*>(plan->children[i])); };
  bool divisible = CanBePartial(*plan) && plan->kind != PlanKind::kForeignScan;
  if (!divisible) {
    auto* append = NewNode<AppendPlan>(PlanKind::kAppend);
    append->claim_whole = settings_.claim_whole;
    append->parallel = true;
    append->partial = true;
    append->rows = plan->rows;
    append->output = plan->output;
    SetChildren(append, {plan});
    return append;
  }
  if (plan->kind == PlanKind::kAppend) {
    static_cast<AppendPlan*>(plan)->parallel = true;
  } else if (plan->kind == PlanKind::kHashJoin) {
    SetChildren(plan, {child(0), child(1)});
    static_cast<HashJoinPlan*>(plan)->shared_build = true;
  } else {
    SetChildren(plan, {child(0)});
  }
  plan->partial = true;
  return plan;
}

// The top of a Gather's fragment: a partial aggregate or sort, over what is divided.
sluice::Plan* Planner::MakeFragment(sluice::Plan* plan) {
  if (plan->kind != PlanKind::kAggregate && plan->kind != PlanKind::kSort) return MakePartial(plan);
  SetChildren(plan, {MakePartial(const_cast<sluice::Plan*>(plan->children[0]))});
  plan->partial = true;
  return plan;
}

double Planner::ScannedRows(const sluice::Plan& plan) const {
  if (plan.children.empty()) return plan.rows;
  double rows = 0;
  for (const sluice::Plan* child : plan.children) rows += ScannedRows(*child);
  return rows;
}

bool Planner::WorthWorkers(const sluice::Plan& plan) const {
  return settings_.max_parallel_workers_per_gather > 0 && ScannedRows(plan) > kRowsForWorkersMin &&
         CanBePartial(plan);
}

bool Planner::IsShippable(const Expr* expr) const {
  bool stays = AnyExpr(expr, [](const Expr& e, int depth) {
    return e.kind == ExprKind::kSubquery || e.kind == ExprKind::kWindow ||
           (e.kind == ExprKind::kColumn && e.levels_up > depth);
  });
  return !stays && CanShip(*expr, catalog_);
}

bool Planner::CanComputeHere(const Expr& expr) const {
  return CanEvaluate(expr);
}

bool Planner::AllShippable(const std::vector<const Expr*>& exprs) const {
  for (const Expr* expr : exprs)
    if (!IsShippable(expr)) return false;
  return true;
}

const Server& Planner::ServerOf(Oid server) const {
  auto found = catalog_.servers.find(server);
  if (found == catalog_.servers.end())
    Throw(sqlstate::kUndefinedObject, "server {} does not exist", server);
  return found->second;
}

EvaluationInput Planner::Evaluation(bool with_params) {
  return {request_.session, with_params ? values_ : &scratch_,
          with_params ? request_.params : std::span<const PlanRequest::Param>()};
}

}  // namespace sluice
