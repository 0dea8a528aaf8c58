// Subqueries in a live view's expressions. Their values change with their tables' rows, so nothing
// is computed once:
//
//   one value for the whole query       a join with it
//   one value for each key              a left join on the keys (EXISTS: on their numbers of rows)
//   anything else                       the whole expression is computed for each distinct row of
//                                       what it refers to, anew when a table below changes (Apply)
//
// Over aggregates they stand in a query around the grouped one.
#include "common/error.h"
#include "optimizer/evaluable.h"
#include "optimizer/planning.h"

namespace sluice {
namespace {

constexpr Oid kCountStar = 2803, kInt8Greater = 413;

bool GivesOneRow(const Query& query) {
  return query.set_op == nullptr && query.group_by.empty() && query.grouping_sets.empty() &&
         query.having == nullptr && query.limit == nullptr && query.offset == nullptr &&
         (query.from == nullptr ? query.where == nullptr : query.has_aggregates);
}

bool IsLimitedToOneRow(const Query& query) {
  return query.limit != nullptr && query.limit->kind == ExprKind::kConst && !query.limit->is_null &&
         !query.with_ties && query.limit->value == std::string_view("\0\0\0\0\0\0\0\1", 8);
}

// Of plain rows: no grouping, no set operation, nothing cut off but by LIMIT.
bool IsPlain(const Query& query) {
  return query.set_op == nullptr && query.from != nullptr && !query.has_aggregates &&
         query.windows.empty() && query.having == nullptr && query.grouping_sets.empty() &&
         query.group_by.empty() && query.offset == nullptr && !query.distinct &&
         query.distinct_on.empty();
}

const Expr* CountOfRows(Arena* arena) {
  Expr* count = arena->New<Expr>();
  count->kind = ExprKind::kAggregate;
  count->type = kInt8Oid;
  count->function = kCountStar;
  count->star = true;
  return count;
}

// `expr` as it reads one query further down.
const Expr* OneLevelDown(const Expr* expr, Arena* arena) {
  return RewriteExpr(expr, arena, [&](const Expr& e, int depth) -> const Expr* {
    if (e.kind != ExprKind::kColumn || e.rel < 0 || e.levels_up < depth) return nullptr;
    Expr* column = arena->New<Expr>(e);
    column->levels_up++;
    return column;
  });
}

const JoinTree* OnlyRel(Arena* arena) {
  JoinTree* from = arena->New<JoinTree>();
  from->is_leaf = true;
  from->rel = 0;
  return from;
}

}  // namespace

// A rel of the select for `query`'s columns.
int Planner::AddDerived(Select& select, const Query& query) {
  QueryRel derived{};
  derived.kind = RelKind::kSubquery;
  derived.subquery = &query;
  std::vector<QueryColumn> columns;
  for (const Target& target : query.targets)
    if (!target.junk)
      columns.push_back(
          {target.name, target.expr->type, target.expr->typmod, target.expr->collation});
  derived.columns = scratch_.CopyArray(columns);
  select.rels.push_back(derived);
  return static_cast<int>(select.rels.size()) - 1;
}

const Expr* Planner::ColumnOfRel(const Select& select, int rel, int column) {
  const QueryColumn& c = select.rels[static_cast<size_t>(rel)].columns[static_cast<size_t>(column)];
  return MakeColumn(rel, column, c.type, c.typmod, c.collation, &scratch_);
}

JoinNode* Planner::JoinRel(Select& select, int rel, JoinType type) {
  JoinNode* leaf = NewJoinNode();
  leaf->rel = rel;
  if (select.from == nullptr) {
    if (type == JoinType::kInner) return select.from = leaf;
    std::vector<QueryColumn> columns = {{"one", kInt4Oid, -1, kInvalidOid}};
    std::vector<const Expr*> row = {MakeInt4(1, &scratch_)};
    std::vector<std::span<const Expr* const>> rows = {scratch_.CopyArray(row)};
    QueryRel one{};
    one.kind = RelKind::kValues;
    one.columns = scratch_.CopyArray(columns);
    one.values = scratch_.CopyArray(rows);
    select.rels.push_back(one);
    select.from = NewJoinNode();
    select.from->rel = static_cast<int>(select.rels.size()) - 1;
  }
  JoinNode* node = NewJoinNode();
  node->type = type;
  node->left = select.from;
  node->right = leaf;
  return select.from = node;
}

// SELECT target FROM (query) LIMIT limit.
const Query* Planner::QueryOver(const Query& query, const Expr* target, int64_t limit) {
  Query* outer = scratch_.New<Query>();
  Select rels;
  AddDerived(rels, query);
  outer->rels = scratch_.CopyArray(rels.rels);
  outer->from = OnlyRel(&scratch_);
  std::vector<Target> targets = {
      {target != nullptr ? target : ColumnOfRel(rels, 0, 0), "value", false}};
  outer->targets = scratch_.CopyArray(targets);
  outer->has_aggregates = HasAggregate(targets[0].expr);
  if (limit > 0) outer->limit = MakeInt8(limit, &scratch_);
  return outer;
}

// CASE WHEN count > 1 THEN the error that two rows are ELSE value END.
const Expr* Planner::OnlyValue(const Expr* several, const Expr* value) {
  Query* two = scratch_.New<Query>();
  QueryRel rel{};
  rel.kind = RelKind::kValues;
  std::vector<QueryColumn> columns = {{"value", value->type, value->typmod, value->collation}};
  std::vector<const Expr*> row = {MakeNull(value->type, &scratch_)};
  std::vector<std::span<const Expr* const>> rows(2, scratch_.CopyArray(row));
  rel.columns = scratch_.CopyArray(columns);
  rel.values = scratch_.CopyArray(rows);
  std::vector<QueryRel> rels = {rel};
  two->rels = scratch_.CopyArray(rels);
  two->from = OnlyRel(&scratch_);
  std::vector<Target> targets = {
      {MakeColumn(0, 0, value->type, value->typmod, value->collation, &scratch_), "value", false}};
  two->targets = scratch_.CopyArray(targets);
  Expr* sublink = scratch_.New<Expr>();
  sublink->kind = ExprKind::kSubquery;
  sublink->type = value->type;
  sublink->typmod = value->typmod;
  sublink->collation = value->collation;
  sublink->sublink = SublinkKind::kScalar;
  sublink->subquery = two;
  Select none;
  const Expr* error = MakeSubPlan(none, *sublink);
  Expr* result = const_cast<Expr*>(
      MakeTyped(ExprKind::kCase, value->type, {several, error, value}, &scratch_));
  result->typmod = value->typmod;
  result->collation = value->collation;
  return result;
}

// The value of one that refers to no row. nullptr: only Apply can.
const Expr* Planner::JoinUncorrelated(Select& select, const Expr& sublink) {
  const Query* query = sublink.subquery;
  auto more_than = [&](const Query& of, int64_t number) {
    // So many rows tell: more of them change nothing.
    const Query* some = of.limit == nullptr && of.offset == nullptr
                            ? QueryOver(of, MakeInt4(1, &scratch_), number + 1)
                            : &of;
    const Expr* more =
        MakeOperator(kInt8Greater, CountOfRows(&scratch_), MakeInt8(number, &scratch_), &scratch_);
    int rel = AddDerived(select, *QueryOver(*some, more, 0));
    JoinRel(select, rel, JoinType::kInner);
    return ColumnOfRel(select, rel, 0);
  };
  if (sublink.sublink == SublinkKind::kExists) return more_than(*query, 0);
  if (sublink.sublink != SublinkKind::kScalar) return nullptr;
  if (GivesOneRow(*query)) {
    int rel = AddDerived(select, *query);
    JoinRel(select, rel, JoinType::kInner);
    return ColumnOfRel(select, rel, 0);
  }
  bool one = IsLimitedToOneRow(*query);
  const Query* first = one ? query : QueryOver(*query, nullptr, 1);
  int rel = AddDerived(select, *first);
  JoinRel(select, rel, JoinType::kLeft);
  const Expr* value = ColumnOfRel(select, rel, 0);
  return one ? value : OnlyValue(more_than(*query, 1), value);
}

// Correlated by equalities only: (SELECT v FROM t WHERE t.k = outer.k [ORDER BY … LIMIT 1]), and
// EXISTS in an expression. nullptr: not of this shape.
const Expr* Planner::JoinByKeys(Select& select, const Expr& sublink) {
  const Query& query = *sublink.subquery;
  if (select.from == nullptr || !IsPlain(query)) return nullptr;
  auto counted = [&](const Query& of) -> const Expr* {
    Query* counting = scratch_.New<Query>(of);
    counting->order_by = {};
    counting->limit = nullptr;
    std::vector<Target> targets = {{CountOfRows(&scratch_), "count", false}};
    counting->targets = scratch_.CopyArray(targets);
    counting->has_aggregates = true;
    Expr* scalar = scratch_.New<Expr>(sublink);
    scalar->sublink = SublinkKind::kScalar;
    scalar->type = kInt8Oid;
    scalar->subquery = counting;
    return DecorrelateScalar(select, *scalar);
  };
  auto more_than = [&](const Expr* count, int64_t number) {
    return MakeOperator(kInt8Greater, count, MakeInt8(number, &scratch_), &scratch_);
  };
  if (sublink.sublink == SublinkKind::kExists) {
    if (query.limit != nullptr) return nullptr;
    const Expr* count = counted(query);
    return count == nullptr ? nullptr : more_than(count, 0);
  }
  bool one = IsLimitedToOneRow(query);
  if (sublink.sublink != SublinkKind::kScalar || (query.limit != nullptr && !one) ||
      HasVolatile(query.targets[0].expr))
    return nullptr;
  // The first row of each key: SELECT DISTINCT ON (keys) value, keys… ORDER BY keys, its order.
  std::optional<Correlation> correlation = FindCorrelation(query);
  if (!correlation || correlation->keys.empty()) return nullptr;
  Query* firsts = scratch_.New<Query>(query);
  firsts->limit = nullptr;
  firsts->where = MakeAnd(correlation->own, &scratch_);
  std::vector<Target> targets(query.targets.begin(), query.targets.end());
  std::vector<int> key_targets;
  std::vector<SortKey> order;
  for (const Expr* key : correlation->keys) {
    int target = static_cast<int>(targets.size());
    key_targets.push_back(target);
    order.push_back(
        {nullptr, target, FindOrderOperators(key->type).less, false, false, key->collation});
    targets.push_back({key, "key", false});
  }
  order.insert(order.end(), query.order_by.begin(), query.order_by.end());
  for (const SortKey& key : query.order_by)
    if (key.target < 0) return nullptr;
  firsts->targets = scratch_.CopyArray(targets);
  firsts->distinct_on = scratch_.CopyArray(key_targets);
  firsts->order_by = scratch_.CopyArray(order);
  if (IsCorrelated(*firsts) || DependsOnRow(*firsts)) return nullptr;
  const Expr* several = nullptr;
  if (!one) {
    const Expr* count = counted(query);
    if (count == nullptr) return nullptr;
    several = more_than(count, 1);
  }
  int rel = AddDerived(select, *firsts);
  JoinNode* node = JoinRel(select, rel, JoinType::kLeft);
  int first_key = 0;
  for (const Target& target : query.targets) first_key += target.junk ? 0 : 1;
  for (size_t i = 0; i < correlation->keys.size(); i++)
    node->on.push_back(correlation->Condition(
        i, ColumnOfRel(select, rel, first_key + static_cast<int>(i)), &scratch_));
  const Expr* value = ColumnOfRel(select, rel, 0);
  return one ? value : OnlyValue(several, value);
}

// What stands for the expression when its subqueries are joined.
const Expr* Planner::JoinSublinks(Select& select, const Expr* expr) {
  std::vector<QueryRel> rels = select.rels;
  JoinNode* from = select.from;
  bool all = true;
  const Expr* joined = RewriteExpr(expr, &scratch_, [&](const Expr& e, int) -> const Expr* {
    if (e.kind != ExprKind::kSubquery || !all) return nullptr;
    bool fixed = !IsCorrelated(*e.subquery) && !DependsOnRow(*e.subquery);
    const Expr* value = nullptr;
    if (fixed)
      value = JoinUncorrelated(select, e);
    else if (e.sublink == SublinkKind::kScalar)
      value = DecorrelateScalar(select, e);
    if (!fixed && value == nullptr) value = JoinByKeys(select, e);
    all = all && value != nullptr;
    return value == nullptr ? &e : value;
  });
  if (all) return joined;
  select.rels = std::move(rels);
  select.from = from;
  // … JOIN LATERAL (SELECT expr) ON true
  Query* query = scratch_.New<Query>();
  std::vector<Target> targets = {{OneLevelDown(expr, &scratch_), "value", false}};
  query->targets = scratch_.CopyArray(targets);
  query->has_sublinks = true;
  int rel = AddDerived(select, *query);
  if (select.from == nullptr) {
    JoinRel(select, rel, JoinType::kLeft);
    select.from->type = JoinType::kInner;
  } else {
    JoinRel(select, rel, JoinType::kInner);
  }
  select.from->right->apply = true;
  return ColumnOfRel(select, rel, 0);
}

namespace {

bool HasSubqueryAbove(const Expr* expr, const std::vector<const Expr*>& groups) {
  if (expr == nullptr || expr->kind == ExprKind::kAggregate) return false;
  if (expr->kind == ExprKind::kSubquery) return true;
  for (const Expr* group : groups)
    if (EqualExpr(group, expr)) return false;
  for (const Expr* arg : expr->args)
    if (HasSubqueryAbove(arg, groups)) return true;
  return HasSubqueryAbove(expr->filter, groups);
}

}  // namespace

// A grouped query with subqueries over its groups: SELECT … FROM (the grouped one) WHERE having.
const Query* Planner::SplitAboveGroups(const Query& query) {
  std::vector<const Expr*> leaves;
  for (int group : query.group_by) leaves.push_back(query.targets[static_cast<size_t>(group)].expr);
  bool above = HasSubqueryAbove(query.having, leaves);
  for (const Target& target : query.targets) above |= HasSubqueryAbove(target.expr, leaves);
  for (const SortKey& key : query.order_by) above |= HasSubqueryAbove(key.expr, leaves);
  if (!above) return &query;
  if (!query.grouping_sets.empty())
    Refuse("a subquery over GROUPING SETS is not supported in a live view");
  std::vector<int> group_by;
  for (size_t i = 0; i < leaves.size(); i++) group_by.push_back(static_cast<int>(i));
  auto shifted = [&](const Expr* leaf, int depth) {
    return RewriteExpr(leaf, &scratch_, [&](const Expr& e, int d) -> const Expr* {
      if (depth == 0 || e.levels_up < d) return nullptr;
      if (e.kind == ExprKind::kColumn && e.rel >= 0) {
        Expr* column = scratch_.New<Expr>(e);
        column->levels_up += depth;
        return column;
      }
      return nullptr;
    });
  };
  // As the query itself sees what a subquery of it, `depth` levels down, refers to.
  auto raised = [&](const Expr& expr, int depth) {
    const Expr* up = RewriteExpr(&expr, &scratch_, [&](const Expr& e, int d) -> const Expr* {
      if (e.kind != ExprKind::kColumn || e.rel < 0 || e.levels_up < depth + d) return nullptr;
      Expr* column = scratch_.New<Expr>(e);
      column->levels_up -= depth;
      return column;
    });
    if (up->kind != ExprKind::kAggregate || depth == 0) return up;
    Expr* own = scratch_.New<Expr>(*up);
    own->aggregate_levels_up -= depth;
    return static_cast<const Expr*>(own);
  };
  auto column_of = [&](size_t leaf, int depth) {
    const Expr& e = *leaves[leaf];
    Expr* column = const_cast<Expr*>(
        MakeColumn(0, static_cast<int>(leaf), e.type, e.typmod, e.collation, &scratch_));
    column->levels_up = depth;
    return static_cast<const Expr*>(column);
  };
  DepthRewriter replace = [&](const Expr& e, int depth) -> const Expr* {
    for (size_t i = 0; i < group_by.size(); i++)
      if (EqualExpr(&e, shifted(leaves[i], depth))) return column_of(i, depth);
    bool aggregate = e.kind == ExprKind::kAggregate && e.aggregate_levels_up == depth;
    bool column = e.kind == ExprKind::kColumn && e.rel >= 0 && e.levels_up == depth;
    if (!aggregate && !column) return nullptr;
    const Expr* leaf = raised(e, depth);
    size_t at = 0;
    while (at < leaves.size() && !EqualExpr(leaves[at], leaf)) at++;
    if (at == leaves.size()) leaves.push_back(leaf);
    return column_of(at, depth);
  };
  auto rewrite = [&](const Expr* expr) {
    return expr == nullptr ? nullptr : RewriteExpr(expr, &scratch_, replace);
  };
  Query* outer = scratch_.New<Query>(query);
  std::vector<Target> targets(query.targets.begin(), query.targets.end());
  for (Target& target : targets) target.expr = rewrite(target.expr);
  std::vector<SortKey> order(query.order_by.begin(), query.order_by.end());
  for (SortKey& key : order) key.expr = rewrite(key.expr);
  outer->where = rewrite(query.having);
  outer->targets = scratch_.CopyArray(targets);
  outer->order_by = scratch_.CopyArray(order);
  outer->having = nullptr;
  outer->has_aggregates = false;
  outer->group_by = {};

  Query* grouped = scratch_.New<Query>();
  grouped->rels = query.rels;
  grouped->from = query.from;
  grouped->where = query.where;
  grouped->has_aggregates = true;
  grouped->group_by = scratch_.CopyArray(group_by);
  std::vector<Target> inner;
  for (const Expr* leaf : leaves) inner.push_back({leaf, "leaf", false});
  grouped->targets = scratch_.CopyArray(inner);
  Select rels;
  AddDerived(rels, *Deeper(*grouped, 1));
  outer->rels = scratch_.CopyArray(rels.rels);
  outer->from = OnlyRel(&scratch_);
  return outer;
}

// In a grouped query: subqueries within aggregates and what is grouped by, which are computed
// before.
const Expr* Planner::ReplaceBelowGroups(Select& select, const Expr* expr) {
  if (!HasSubquery(expr)) return expr;
  for (int group : select.group_by)
    if (EqualExpr(select.targets[static_cast<size_t>(group)].expr, expr))
      return JoinSublinks(select, expr);
  if (expr->kind == ExprKind::kSubquery)
    Refuse("this subquery over aggregates is not supported in a live view");
  Expr* copy = scratch_.New<Expr>(*expr);
  bool below = expr->kind == ExprKind::kAggregate;
  auto replace = [&](const Expr* e) {
    if (e == nullptr || !HasSubquery(e)) return e;
    return below ? JoinSublinks(select, e) : ReplaceBelowGroups(select, e);
  };
  std::vector<const Expr*> args;
  for (const Expr* arg : expr->args) args.push_back(replace(arg));
  copy->args = scratch_.CopyArray(args);
  copy->filter = replace(expr->filter);
  std::vector<SortKey> order(expr->order_by.begin(), expr->order_by.end());
  for (SortKey& key : order) key.expr = replace(key.expr);
  copy->order_by = scratch_.CopyArray(order);
  return copy;
}

}  // namespace sluice
