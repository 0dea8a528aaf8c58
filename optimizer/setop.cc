// UNION, INTERSECT, EXCEPT.
#include "common/error.h"
#include "optimizer/evaluable.h"
#include "optimizer/planning.h"

namespace sluice {

// Appends spliced into one: all their scans are ready at once, and claimed alike.
void Planner::FlattenUnion(const Query& query, const SetOpTree& tree, bool all,
                           std::vector<Local>* children) {
  bool same = tree.leaf == nullptr && tree.kind == SetOpKind::kUnion && (tree.all || !all);
  if (same) {
    FlattenUnion(query, *tree.left, all, children);
    FlattenUnion(query, *tree.right, all, children);
    return;
  }
  Local child = PlanSetOpTree(query, tree);
  if (child.plan->kind != PlanKind::kAppend) {
    children->push_back(std::move(child));
    return;
  }
  for (const sluice::Plan* part : child.plan->children)
    children->push_back({const_cast<sluice::Plan*>(part), child.provides});
}

Local Planner::PlanSetOpTree(const Query& query, const SetOpTree& tree) {
  std::vector<const Expr*> provides;
  for (const Target& target : query.targets)
    if (!target.junk) provides.push_back(target.expr);
  if (tree.leaf != nullptr) {
    Local leaf = PlanAny(*tree.leaf, false);
    if (leaf.provides.size() < provides.size()) Refuse("this set operation is not supported");
    std::vector<const Expr*> own(
        leaf.provides.begin(),
        leaf.provides.begin() + static_cast<std::ptrdiff_t>(provides.size()));
    for (size_t i = 0; i < own.size(); i++)
      if (own[i]->type != provides[i]->type)
        Refuse("a set operation of {} and {} is not supported", FormatType(own[i]->type),
               FormatType(provides[i]->type));
    if (own.size() < leaf.provides.size()) {
      // Two equal columns lower to the first of them: the same value.
      leaf = Project(std::move(leaf), own);
    }
    return {leaf.plan, provides};
  }
  if (tree.kind == SetOpKind::kUnion) {
    std::vector<Local> children;
    FlattenUnion(query, tree, tree.all, &children);
    for (Local& child : children) child.provides = provides;
    Local all = MakeAppend(std::move(children));
    return tree.all ? all : Deduplicate(std::move(all));
  }
  Local left = PlanSetOpTree(query, *tree.left);
  Local right = PlanSetOpTree(query, *tree.right);
  for (const Expr* column : provides)
    if (!CanGroupBy(column->type, column->collation))
      Refuse("INTERSECT or EXCEPT of {} here is not supported", FormatType(column->type));
  auto* node = NewNode<SetOpPlan>(PlanKind::kSetOp);
  node->op = tree.kind;
  node->all = tree.all;
  SetChildren(node, {left.plan, right.plan});
  node->output = left.plan->output;
  node->rows = tree.kind == SetOpKind::kExcept ? left.plan->rows
                                               : std::min(left.plan->rows, right.plan->rows);
  return {node, provides};
}

// WITH RECURSIVE r AS (first UNION [ALL] recursive).
Local Planner::PlanRecursive(const Query& query) {
  std::vector<const Expr*> provides;
  for (const Target& target : query.targets)
    if (!target.junk) provides.push_back(target.expr);
  const SetOpTree& tree = *query.set_op;
  for (const Expr* column : provides)
    if (!tree.all && !CanGroupBy(column->type, column->collation))
      Refuse("UNION of {} here is not supported", FormatType(column->type));
  const Select* outer_naming = std::exchange(naming_, nullptr);
  auto* node = NewNode<RecursiveUnionPlan>(PlanKind::kRecursiveUnion);
  node->all = tree.all;
  node->work_table = exec_param_count_++;
  Local first = PlanSetOpTree(query, *tree.left);
  work_table_params_[query.work_table] = node->work_table;
  Local recursive = PlanSetOpTree(query, *tree.right);
  naming_ = outer_naming;
  SetChildren(node, {first.plan, recursive.plan});
  node->output = first.plan->output;
  constexpr double kRounds = 10;  // a guess, as Postgres's
  node->rows = first.plan->rows + kRounds * recursive.plan->rows;
  return {node, provides};
}

Local Planner::PlanSetOp(const Query& query) {
  if (query.work_table >= 0) return PlanRecursive(query);
  Select select;
  select.targets.assign(query.targets.begin(), query.targets.end());
  select.order_by.assign(query.order_by.begin(), query.order_by.end());
  select.limit = query.limit;
  select.offset = query.offset;
  select.with_ties = query.with_ties;
  if (select.limit != nullptr) select.limit = ReplaceSublinks(select, select.limit, false);
  if (select.offset != nullptr) select.offset = ReplaceSublinks(select, select.offset, false);
  const Select* outer_naming = std::exchange(naming_, nullptr);
  Local rows = PlanSetOpTree(query, *query.set_op);
  Local finished = FinishLocal(select, std::move(rows), false, false);
  naming_ = outer_naming;
  return finished;
}

}  // namespace sluice
