// Aggregates: their own clauses, the level they belong to, where they may stand, and which columns
// may stand beside them.
#include "common/sqlstate_query.h"
#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {
namespace {

// The lowest query level that columns and aggregates below an expression come from.
struct LevelSearch {
  int column_level = -1;
  int aggregate_level = -1;
  int aggregate_location = -1;
  int window_location = -1;  // of a window function of the query itself
  bool has_window = false;

  static void Lower(int* level, int found) {
    if (found >= 0 && (*level < 0 || found < *level)) *level = found;
  }

  void Search(const Expr& expr, int depth) {
    if (expr.kind == ExprKind::kColumn) Lower(&column_level, expr.levels_up - depth);
    if (expr.kind == ExprKind::kAggregate) {
      int level = expr.aggregate_levels_up - depth;
      if (level >= 0 && (aggregate_level < 0 || level < aggregate_level)) {
        aggregate_level = level;
        aggregate_location = expr.location;
      }
    }
    if (expr.kind == ExprKind::kWindow && depth == 0 && !has_window) {
      has_window = true;
      window_location = expr.location;
    }
    ForEachChild(expr, [&](const Expr& child) { Search(child, depth); });
    if (expr.subquery != nullptr) Search(*expr.subquery, depth + 1);
  }
  void Search(const Query& query, int depth) {
    ForEachQueryExpr(query, [&](const Expr& e) { Search(e, depth); });
    ForEachSubquery(query, [&](const Query& q) { Search(q, depth + 1); });
  }
};

int AggregateLevel(ParseState& p, const Expr& aggregate) {
  LevelSearch search;
  ForEachChild(aggregate, [&](const Expr& child) { search.Search(child, 0); });
  int level = search.column_level;
  if (level < 0 || (search.aggregate_level >= 0 && search.aggregate_level < level))
    level = search.aggregate_level;
  if (search.aggregate_level >= 0 && level == search.aggregate_level)
    ThrowAt(p, search.aggregate_location, sqlstate::kGroupingError,
            "aggregate function calls cannot be nested");
  if (search.has_window)
    ThrowAt(p, search.window_location, sqlstate::kGroupingError,
            "aggregate function calls cannot contain window function calls");
  return std::max(level, 0);
}

// `what`: "aggregate functions" or "grouping operations".
void CheckAggregateAllowed(ParseState& p, Clause clause, int location,
                           const char* what = "aggregate functions") {
  switch (clause) {
    case Clause::kSelectTarget:
    case Clause::kHaving:
    case Clause::kOrderBy:
    case Clause::kDistinctOn:
    case Clause::kWindowPartition:
    case Clause::kWindowOrder:
    case Clause::kWindowFrame:
      return;
    case Clause::kJoinOn:
    case Clause::kJoinUsing:
      ThrowAt(p, location, sqlstate::kGroupingError, "{} are not allowed in JOIN conditions", what);
    case Clause::kFromSubselect:
      ThrowAt(p, location, sqlstate::kGroupingError,
              "{} are not allowed in FROM clause of their own query level", what);
    case Clause::kFromFunction:
      ThrowAt(p, location, sqlstate::kGroupingError, "{} are not allowed in functions in FROM",
              what);
    default:
      ThrowAt(p, location, sqlstate::kGroupingError, "{} are not allowed in {}", what,
              ClauseName(clause));
  }
}

std::span<const SortKey> AggregateOrder(ParseState& p, const PgQuery__FuncCall& call,
                                        const Expr& aggregate, std::span<Expr* const> written) {
  std::vector<SortKey> keys;
  ClauseScope scope(p, p.clause);
  for (size_t i = 0; i < call.n_agg_order; i++) {
    const PgQuery__SortBy& sort = *call.agg_order[i]->sort_by;
    Expr* expr = TransformExpr(p, sort.node);
    if (expr->type == kUnknownOid)
      expr = CoerceType(p, expr, kTextOid, -1, CoercionContext::kImplicit, false, -1);
    // Written as one of the arguments: then it is that argument, cast as it is.
    for (size_t a = 0; a < std::min(aggregate.args.size(), written.size()); a++) {
      if (!EqualExprs(written[a], expr)) continue;
      expr = const_cast<Expr*>(aggregate.args[a]);
      break;
    }
    bool repeated = false;
    for (const SortKey& key : keys) repeated = repeated || EqualExprs(key.expr, expr);
    if (repeated) continue;
    keys.push_back(MakeSortKey(p, expr, &sort, ExprLocation(*expr)));
  }
  return p.a.arena->CopyArray(keys);
}

void CheckDistinctAggregate(ParseState& p, const Expr& aggregate) {
  if (aggregate.args.empty())
    ThrowAt(p, aggregate.location, sqlstate::kSyntaxError,
            "DISTINCT specified, but {} takes no arguments", FindProc(aggregate.function)->name);
  for (const Expr* arg : aggregate.args) {
    if (FindOrderOperators(arg->type).less == kInvalidOid) {
      QueryError e(MakeError(sqlstate::kUndefinedFunction,
                             "could not identify an equality operator for type {}",
                             TypeText(arg->type))
                       .At(ErrorPosition(p, ExprLocation(*arg))));
      throw e;
    }
  }
  for (const SortKey& key : aggregate.order_by) {
    bool is_arg = false;
    for (const Expr* arg : aggregate.args) is_arg = is_arg || EqualExprs(arg, key.expr);
    if (!is_arg)
      ThrowAt(p, ExprLocation(*key.expr), sqlstate::kInvalidColumnReference,
              "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list");
  }
}

class UngroupedCheck {
 public:
  UngroupedCheck(ParseState& p, const Query& query) : p_(p), query_(query) {
    for (int target : query.group_by)
      groups_.push_back(query.targets[static_cast<size_t>(target)].expr);
    for (size_t i = 0; i < groups_.size(); i++) {
      bool in_all = true;
      for (std::span<const int> set : query.grouping_sets)
        in_all = in_all && std::find(set.begin(), set.end(), static_cast<int>(i)) != set.end();
      if (in_all) always_.push_back(groups_[i]);
    }
  }

  void Check(const Expr& expr, int depth) {
    if (expr.kind == ExprKind::kAggregate && expr.aggregate_levels_up >= depth) return;
    if (expr.kind == ExprKind::kConst || expr.kind == ExprKind::kParam) return;
    if (expr.kind == ExprKind::kGrouping && depth == 0) return CheckGrouping(expr);
    if (depth == 0)
      for (const Expr* group : groups_)
        if (EqualExprs(group, &expr)) return;
    if (expr.kind == ExprKind::kColumn) return CheckColumn(expr, depth);
    ForEachChild(expr, [&](const Expr& child) { Check(child, depth); });
    if (expr.subquery != nullptr) Check(*expr.subquery, depth + 1);
  }
  void Check(const Query& query, int depth) {
    ForEachQueryExpr(query, [&](const Expr& e) { Check(e, depth); });
    ForEachSubquery(query, [&](const Query& q) { Check(q, depth + 1); });
  }

 private:
  void CheckColumn(const Expr& column, int depth) {
    if (column.levels_up != depth || IsGrouped(column.rel, column.column)) return;
    const QueryRel& rel = query_.rels[static_cast<size_t>(column.rel)];
    if (DependsOnGroups(column.rel, rel)) return;
    std::string_view name = rel.columns[static_cast<size_t>(column.column)].name;
    if (depth == 0)
      ThrowAt(
          p_, column.location, sqlstate::kGroupingError,
          "column \"{}.{}\" must appear in the GROUP BY clause or be used in an aggregate function",
          rel.alias, name);
    ThrowAt(p_, column.location, sqlstate::kGroupingError,
            "subquery uses ungrouped column \"{}.{}\" from outer query", rel.alias, name);
  }

  void CheckGrouping(const Expr& grouping) {
    for (const Expr* arg : grouping.args) {
      bool found = false;
      for (const Expr* group : groups_) found = found || EqualExprs(group, arg);
      if (!found)
        ThrowAt(p_, ExprLocation(*arg), sqlstate::kGroupingError,
                "arguments to GROUPING must be grouping expressions of the associated query level");
    }
  }

  bool IsGrouped(int rel, int column) const { return IsAmong(groups_, rel, column); }
  static bool IsAmong(const std::vector<const Expr*>& groups, int rel, int column) {
    for (const Expr* group : groups)
      if (group->kind == ExprKind::kColumn && group->levels_up == 0 && group->rel == rel &&
          group->column == column)
        return true;
    return false;
  }

  // Grouped by its primary key: then all its columns have one value a group.
  bool DependsOnGroups(int index, const QueryRel& rel) const {
    if (rel.kind != RelKind::kTable || rel.table->primary_key.empty()) return false;
    // Children of an INHERITS parent may hold the same key more than once.
    if (rel.table->kind == RelationKind::kInheritsParent) return false;
    for (int column : rel.table->primary_key)
      if (!IsAmong(always_, index, column)) return false;
    return true;
  }

  ParseState& p_;
  const Query& query_;
  std::vector<const Expr*> groups_;
  std::vector<const Expr*> always_;  // those in every grouping set
};

}  // namespace

Expr* TransformAggregate(ParseState& p, Expr* aggregate, std::span<Expr* const> written,
                         const PgQuery__FuncCall& call) {
  if (call.agg_filter != nullptr)
    aggregate->filter = TransformWhere(p, call.agg_filter, Clause::kFilter, "FILTER");
  aggregate->order_by = AggregateOrder(p, call, *aggregate, written);
  if (aggregate->distinct) CheckDistinctAggregate(p, *aggregate);
  int level = AggregateLevel(p, *aggregate);
  aggregate->aggregate_levels_up = level;
  ParseState* owner = &p;
  for (int i = 0; i < level && owner->parent != nullptr; i++) owner = owner->parent;
  owner->has_aggregates = true;
  CheckAggregateAllowed(p, owner->clause, aggregate->location);
  return aggregate;
}

namespace {

int FirstAggregate(const Expr& expr) {
  if (expr.kind == ExprKind::kGrouping ||
      (expr.kind == ExprKind::kAggregate && expr.aggregate_levels_up == 0))
    return expr.location;
  int location = -1;
  ForEachChild(expr, [&](const Expr& child) {
    if (location < 0) location = FirstAggregate(child);
  });
  return location;
}

// Where the first of this level's aggregates is written.
int FirstAggregate(const Query& query) {
  int location = -1;
  for (const Target& target : query.targets)
    if (location < 0) location = FirstAggregate(*target.expr);
  if (location < 0 && query.having != nullptr) location = FirstAggregate(*query.having);
  return location;
}

}  // namespace

Expr* TransformGrouping(ParseState& p, const PgQuery__GroupingFunc& raw) {
  int location = p.Location(raw.location);
  constexpr size_t kArgumentsMax = 31;  // bits of the result
  if (raw.n_args > kArgumentsMax)
    ThrowAt(p, location, sqlstate::kTooManyArguments, "GROUPING must have fewer than 32 arguments");
  Expr* grouping = p.New(ExprKind::kGrouping, kInt4Oid, location);
  std::vector<Expr*> args = TransformList(p, raw.args, raw.n_args);
  grouping->args = p.a.arena->CopyArray(std::vector<const Expr*>(args.begin(), args.end()));
  LevelSearch search;
  ForEachChild(*grouping, [&](const Expr& child) { search.Search(child, 0); });
  if (search.column_level > 0) RefuseAt(p, location, "GROUPING of an outer query's columns");
  p.has_aggregates = true;
  CheckAggregateAllowed(p, p.clause, location, "grouping operations");
  return grouping;
}

void CheckAggregates(ParseState& p, Query& query) {
  if (p.has_aggregates && p.refers_to_itself)
    ThrowAt(p, FirstAggregate(query), sqlstate::kInvalidRecursion,
            "aggregate functions are not allowed in a recursive query's recursive term");
  query.has_aggregates = p.has_aggregates || !query.group_by.empty() || query.having != nullptr;
  if (!query.has_aggregates) return;
  UngroupedCheck check(p, query);
  for (const Target& target : query.targets) check.Check(*target.expr, 0);
  if (query.having != nullptr) check.Check(*query.having, 0);
}

}  // namespace sluice
