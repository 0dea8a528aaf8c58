// Subqueries in expressions: EXISTS, IN and their negations among WHERE's conjuncts become semi and
// anti joins, correlated scalar aggregates left joins on the grouped subquery, uncorrelated ones
// are computed once, and what is left becomes sub plans (apply.cc).
#include "common/error.h"
#include "optimizer/evaluable.h"
#include "optimizer/planning.h"

namespace sluice {
namespace {

// Refers to the query directly around it, and how: at depth 0 of the subquery's own expressions.
bool RefersUp(const Expr* expr) {
  return AnyExpr(expr, [](const Expr& e, int depth) {
    return e.kind == ExprKind::kColumn && e.levels_up > depth;
  });
}

bool RefersHere(const Expr* expr) {
  return AnyExpr(expr, [](const Expr& e, int depth) {
    return e.kind == ExprKind::kColumn && e.levels_up == depth;
  });
}

bool IsSimpleExists(const Query& query) {
  return query.set_op == nullptr && query.from != nullptr && !query.has_aggregates &&
         query.windows.empty() && query.having == nullptr && query.limit == nullptr &&
         query.grouping_sets.empty() && query.offset == nullptr && query.group_by.empty();
}

// A correlated expression of the subquery as the enclosing query sees it.
const Expr* OneLevelUp(const Expr* expr, Arena* arena) {
  return RewriteExpr(expr, arena, [&](const Expr& e, int depth) -> const Expr* {
    if (e.kind != ExprKind::kColumn || e.levels_up <= depth) return nullptr;
    Expr* column = arena->New<Expr>(e);
    column->levels_up--;
    return column;
  });
}

}  // namespace

const Expr* Planner::AddInitPlan(const Expr& sublink) {
  auto found = init_plan_params_.find(&sublink);
  if (found != init_plan_params_.end()) return found->second;
  const Query* query = sublink.subquery;
  if (sublink.sublink == SublinkKind::kExists && query->limit == nullptr) {
    Query* first = scratch_.New<Query>(*query);  // one row says all
    first->limit = MakeInt8(1, &scratch_);
    query = first;
  }
  Local plan = PlanAny(*query, false);
  int param = exec_param_count_++;
  init_plans_.push_back({plan.plan, param, sublink.sublink, sublink.type});
  return init_plan_params_[&sublink] = NewExecParam(param, sublink);
}

Expr* Planner::NewExecParam(int number, const Expr& value) {
  Expr* param = scratch_.New<Expr>();
  param->kind = ExprKind::kExecParam;
  param->param = number;
  param->type = value.type;
  param->typmod = value.typmod;
  param->collation = value.collation;
  return param;
}

// Replaces the sublinks in an expression. `may_join`: it is evaluated before aggregation, so that a
// join may deliver the value.
const Expr* Planner::ReplaceSublinks(Select& select, const Expr* expr, bool may_join) {
  if (!HasSubquery(expr)) return expr;
  if (joins_sublinks()) {
    if (!may_join)
      Refuse(
          "a subquery in JOIN … ON, LIMIT, VALUES or a function's argument in FROM is not "
          "supported in a live view");
    return JoinSublinks(select, expr);
  }
  return RewriteExpr(expr, &scratch_, [&](const Expr& e, int) -> const Expr* {
    if (e.kind != ExprKind::kSubquery) return nullptr;
    bool once = e.sublink == SublinkKind::kScalar || e.sublink == SublinkKind::kExists ||
                e.sublink == SublinkKind::kArray;
    bool fixed = !IsCorrelated(*e.subquery) && !DependsOnRow(*e.subquery);
    // In a live view this runs within Apply, anew with each change: nothing is computed before.
    if (once && fixed) return request_.for_view ? MakeSubPlan(select, e) : AddInitPlan(e);
    if (may_join && e.sublink == SublinkKind::kScalar)
      if (const Expr* joined = DecorrelateScalar(select, e)) return joined;
    return MakeSubPlan(select, e);
  });
}

void Planner::ConvertSublinks(Select& select) {
  std::vector<const Expr*> where = std::move(select.where);
  select.where.clear();
  for (const Expr* conjunct : where)
    if (!HasSubquery(conjunct) || !ConvertConjunct(select, conjunct))
      select.where.push_back(ReplaceSublinks(select, conjunct, true));
  auto above = [&](const Expr* expr) {
    if (select.has_aggregates && joins_sublinks()) return ReplaceBelowGroups(select, expr);
    return ReplaceSublinks(select, expr, !select.has_aggregates);
  };
  for (const Expr*& qual : select.having) qual = above(qual);
  for (Target& target : select.targets) target.expr = above(target.expr);
  for (SortKey& key : select.order_by)
    if (key.expr != nullptr) key.expr = above(key.expr);
  for (WindowClause& window : select.windows) {
    window.start_offset = ReplaceSublinks(select, window.start_offset, false);
    window.end_offset = ReplaceSublinks(select, window.end_offset, false);
  }
  auto in_on = [&](auto& self, JoinNode* node) -> void {
    if (node == nullptr || node->rel >= 0) return;
    for (const Expr*& on : node->on) on = ReplaceSublinks(select, on, false);
    self(self, node->left);
    self(self, node->right);
  };
  in_on(in_on, select.from);
  for (QueryRel& rel : select.rels) {
    rel.function = ReplaceSublinks(select, rel.function, false);
    std::span<std::span<const Expr* const>> rows = scratch_.CopyArray(rel.values);
    for (auto& row : rows) {
      std::span<const Expr*> values = scratch_.CopyArray(row);
      for (const Expr*& value : values) value = ReplaceSublinks(select, value, false);
      row = values;
    }
    rel.values = rows;
  }
  if (select.limit != nullptr) select.limit = ReplaceSublinks(select, select.limit, false);
  if (select.offset != nullptr) select.offset = ReplaceSublinks(select, select.offset, false);
}

// Whether the conjunct as a whole became a join.
bool Planner::ConvertConjunct(Select& select, const Expr* conjunct) {
  bool negated = conjunct->kind == ExprKind::kNot;
  const Expr& inner = negated ? *conjunct->args[0] : *conjunct;
  if (inner.kind != ExprKind::kSubquery || select.from == nullptr) return false;
  switch (inner.sublink) {
    case SublinkKind::kExists:
      if (!IsSimpleExists(*inner.subquery)) return false;
      if (!IsCorrelated(*inner.subquery) && !joins_sublinks()) return false;  // an init plan
      ConvertExists(select, *inner.subquery, negated);
      return true;
    case SublinkKind::kAny:
      return ConvertAny(select, inner, negated);
    case SublinkKind::kAll: {
      // x <> ALL (…) is NOT (x = ANY (…)).
      if (negated || inner.args.size() != 1 || inner.sublink_operators.size() != 1) return false;
      const OperatorInfo* oper = FindOperator(inner.sublink_operators[0]);
      if (oper == nullptr || oper->negator == kInvalidOid) return false;
      Expr* any = scratch_.New<Expr>(inner);
      any->sublink = SublinkKind::kAny;
      std::vector<Oid> operators = {oper->negator};
      any->sublink_operators = scratch_.CopyArray(operators);
      return ConvertAny(select, *any, true);
    }
    default:
      return false;
  }
}

void Planner::ConvertExists(Select& select, const Query& subquery, bool negated) {
  Query bare = subquery;  // what it selects, and in which order, doesn't matter
  bare.targets = {};
  bare.order_by = {};
  bare.distinct = false;
  bare.distinct_on = {};
  Select sub = Prepare(*scratch_.New<Query>(bare));
  Graft(select, sub);
  JoinNode* node = NewJoinNode();
  node->type = negated ? JoinType::kAnti : JoinType::kSemi;
  node->left = select.from;
  node->right = sub.from;
  node->on = sub.where;
  select.from = node;
}

// Whether it became a join.
bool Planner::ConvertAny(Select& select, const Expr& sublink, bool negated) {
  const Query& query = *sublink.subquery;
  for (const Expr* arg : sublink.args)
    if (HasSubquery(arg)) return false;
  bool correlated = IsCorrelated(query);
  bool simple = !negated && IsSimpleExists(query) && !query.distinct && query.distinct_on.empty();
  if ((correlated || negated || DependsOnRow(query)) && !simple) {
    const OperatorInfo* oper = FindOperator(sublink.sublink_operators[0]);
    bool hashed = oper != nullptr && oper->name == "=" && oper->can_hash;
    if (correlated || DependsOnRow(query) || sublink.args.size() != 1 || !hashed) return false;
    const Expr* column = nullptr;
    for (const Target& target : query.targets)
      if (column == nullptr && !target.junk) column = target.expr;
    const Expr* left = sublink.args[0];
    const Expr* equality = MakeOperator(sublink.sublink_operators[0], left, column, &scratch_);
    if (negated && !AlignHashKeys(*equality, &left, &column, &scratch_)) return false;
  }
  for (const Expr* target : sublink.args)
    if (RunsPerRow(target)) return false;
  JoinNode* node = NewJoinNode();
  node->type = negated ? JoinType::kAnti : JoinType::kSemi;
  node->null_aware = negated;
  std::vector<const Expr*> right;
  if (simple) {
    Select sub = Prepare(query);
    Graft(select, sub);
    node->right = sub.from;
    node->on = sub.where;
    for (const Target& target : sub.targets)
      if (!target.junk) right.push_back(target.expr);
  } else {
    int rel = static_cast<int>(select.rels.size());
    QueryRel derived{};
    derived.kind = RelKind::kSubquery;
    derived.subquery = &query;
    std::vector<QueryColumn> columns;
    for (const Target& target : query.targets) {
      if (target.junk) continue;
      right.push_back(MakeColumn(rel, static_cast<int>(columns.size()), target.expr->type,
                                 target.expr->typmod, target.expr->collation, &scratch_));
      columns.push_back(
          {target.name, target.expr->type, target.expr->typmod, target.expr->collation});
    }
    derived.columns = scratch_.CopyArray(columns);
    select.rels.push_back(derived);
    node->right = NewJoinNode();
    node->right->rel = rel;
  }
  if (right.size() < sublink.args.size() || sublink.sublink_operators.size() != sublink.args.size())
    Throw(sqlstate::kInternalError, "IN compares what the subquery does not give");
  for (size_t i = 0; i < sublink.args.size(); i++)
    node->on.push_back(
        MakeOperator(sublink.sublink_operators[i], sublink.args[i], right[i], &scratch_));
  node->left = select.from;
  select.from = node;
  return true;
}

const Expr* Planner::Correlation::Condition(size_t i, const Expr* key_column, Arena* arena) const {
  Expr* equality = arena->New<Expr>(*operators_of[i]);
  std::vector<const Expr*> args = {key_column, outer_sides[i]};
  if (operators_of[i]->args[0] != keys[i]) std::swap(args[0], args[1]);
  equality->args = arena->CopyArray(args);
  return equality;
}

std::optional<Planner::Correlation> Planner::FindCorrelation(const Query& query) {
  Correlation found;
  std::vector<const Expr*> conjuncts;
  SplitConjuncts(query.where, &conjuncts);
  for (const Expr* conjunct : conjuncts) {
    if (!RefersUp(conjunct)) {
      found.own.push_back(conjunct);
      continue;
    }
    const Expr *inner, *outer;
    if (!IsEquality(conjunct, &inner, &outer)) return std::nullopt;
    if (RefersUp(inner)) std::swap(inner, outer);
    if (RefersUp(inner) || RefersHere(outer) || HasSubquery(conjunct)) return std::nullopt;
    found.keys.push_back(inner);
    found.outer_sides.push_back(OneLevelUp(outer, &scratch_));
    found.operators_of.push_back(conjunct);
  }
  return found;
}

// (SELECT f(agg(x)…) FROM t WHERE t.k = outer.k AND …) → LEFT JOIN (SELECT k, agg(x)… GROUP BY k)
// ON …, and f over its columns, where count is 0 for a key that has no rows. nullptr: not of this
// shape.
const Expr* Planner::DecorrelateScalar(Select& select, const Expr& sublink) {
  const Query& query = *sublink.subquery;
  if (query.set_op != nullptr || query.from == nullptr || !query.windows.empty() ||
      !query.group_by.empty() || !query.grouping_sets.empty() || query.having != nullptr ||
      query.limit != nullptr || query.offset != nullptr || query.distinct ||
      !query.distinct_on.empty() || query.targets.empty() || !HasAggregate(query.targets[0].expr) ||
      RefersUp(query.targets[0].expr) || HasSubquery(query.targets[0].expr) ||
      HasVolatile(query.targets[0].expr) || select.from == nullptr)
    return nullptr;
  std::optional<Correlation> correlation = FindCorrelation(query);
  if (!correlation || correlation->keys.empty()) return nullptr;
  const std::vector<const Expr*>& keys = correlation->keys;
  std::vector<const Expr*> aggregates;
  AnyExpr(query.targets[0].expr, [&](const Expr& e, int) {
    if (e.kind == ExprKind::kAggregate) AddUnique(&e, &aggregates);
    return false;
  });
  Query grouped = query;
  grouped.where = MakeAnd(correlation->own, &scratch_);
  grouped.order_by = {};
  grouped.has_aggregates = true;
  std::vector<Target> targets;
  std::vector<int> group_by;
  for (const Expr* key : keys) {
    group_by.push_back(static_cast<int>(targets.size()));
    targets.push_back({key, "key", false});
  }
  for (const Expr* aggregate : aggregates) targets.push_back({aggregate, "aggregate", false});
  grouped.targets = scratch_.CopyArray(targets);
  grouped.group_by = scratch_.CopyArray(group_by);
  const Query* subquery = scratch_.New<Query>(grouped);
  if (IsCorrelated(*subquery)) return nullptr;

  int rel = static_cast<int>(select.rels.size());
  QueryRel derived{};
  derived.kind = RelKind::kSubquery;
  derived.subquery = subquery;
  std::vector<QueryColumn> columns;
  std::vector<const Expr*> column_exprs;
  for (const Target& target : targets) {
    column_exprs.push_back(MakeColumn(rel, static_cast<int>(columns.size()), target.expr->type,
                                      target.expr->typmod, target.expr->collation, &scratch_));
    columns.push_back(
        {target.name, target.expr->type, target.expr->typmod, target.expr->collation});
  }
  derived.columns = scratch_.CopyArray(columns);
  select.rels.push_back(derived);
  JoinNode* node = NewJoinNode();
  node->type = JoinType::kLeft;
  node->left = select.from;
  node->right = NewJoinNode();
  node->right->rel = rel;
  for (size_t i = 0; i < keys.size(); i++)
    node->on.push_back(correlation->Condition(i, column_exprs[i], &scratch_));
  select.from = node;
  return RewriteExpr(query.targets[0].expr, &scratch_, [&](const Expr& e, int) -> const Expr* {
    if (e.kind != ExprKind::kAggregate) return nullptr;
    for (size_t i = 0; i < aggregates.size(); i++) {
      if (!EqualExpr(aggregates[i], &e)) continue;
      const Expr* column = column_exprs[keys.size() + i];
      const ProcInfo* proc = FindProc(e.function);
      if (proc != nullptr && proc->name == "count")
        return MakeTyped(ExprKind::kCoalesce, kInt8Oid, {column, MakeInt8(0, &scratch_)},
                         &scratch_);
      return column;
    }
    return nullptr;
  });
}

}  // namespace sluice
