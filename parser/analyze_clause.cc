// GROUP BY, ORDER BY, DISTINCT: clauses that refer to the select list by name, number or
// expression, and add hidden columns to it where they must.
#include "common/sqlstate_query.h"
#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {
namespace {

const Expr* FindKind(const Expr& expr, ExprKind kind) {
  if (expr.kind == kind && expr.aggregate_levels_up == 0) return &expr;
  const Expr* found = nullptr;
  ForEachChild(expr, [&](const Expr& child) {
    if (found == nullptr) found = FindKind(child, kind);
  });
  return found;
}

int CheckGroupTarget(ParseState& p, int index, Clause clause) {
  if (clause != Clause::kGroupBy) return index;
  const Expr& expr = *p.targets[static_cast<size_t>(index)].expr;
  if (const Expr* aggregate = FindKind(expr, ExprKind::kAggregate))
    ThrowAt(p, aggregate->location, sqlstate::kGroupingError,
            "aggregate functions are not allowed in GROUP BY");
  if (const Expr* window = FindKind(expr, ExprKind::kWindow))
    ThrowWindowNotAllowed(p, clause, window->location);
  return index;
}

// An output column of that name; -1: none. Two of them are one if they are equal.
int FindByName(ParseState& p, std::string_view name, Clause clause, int location) {
  int found = -1;
  for (size_t i = 0; i < p.targets.size(); i++) {
    if (p.targets[i].junk || p.targets[i].name != name) continue;
    if (found < 0)
      found = static_cast<int>(i);
    else if (!EqualExprs(p.targets[static_cast<size_t>(found)].expr, p.targets[i].expr))
      ThrowAt(p, location, sqlstate::kAmbiguousColumn, "{} \"{}\" is ambiguous", ClauseName(clause),
              name);
  }
  return found;
}

int FindByPosition(ParseState& p, const PgQuery__AConst& constant, Clause clause) {
  int location = p.Location(constant.location);
  if (constant.isnull || constant.val_case != PG_QUERY__A__CONST__VAL_IVAL)
    ThrowAt(p, location, sqlstate::kSyntaxError, "non-integer constant in {}", ClauseName(clause));
  int wanted = constant.ival->ival, position = 0;
  for (size_t i = 0; i < p.targets.size(); i++)
    if (!p.targets[i].junk && ++position == wanted) return static_cast<int>(i);
  ThrowAt(p, location, sqlstate::kInvalidColumnReference, "{} position {} is not in select list",
          ClauseName(clause), wanted);
}

void CoerceUnknownTarget(ParseState& p, int index) {
  TargetEntry& target = p.targets[static_cast<size_t>(index)];
  if (target.expr->type == kUnknownOid)
    target.expr = CoerceType(p, target.expr, kTextOid, -1, CoercionContext::kImplicit, false, -1);
}

[[noreturn]] void ThrowNoOperator(ParseState& p, const char* what, Oid type, int location) {
  Error e = MakeError(sqlstate::kUndefinedFunction, "could not identify an {} operator for type {}",
                      what, TypeText(type));
  if (std::string_view(what) == "ordering")
    e.Hint("Use an explicit ordering operator or modify the query.");
  throw QueryError(e.At(ErrorPosition(p, location)));
}

// The members (indexes into groups) that the item stands for are appended.
void AddGroupItem(ParseState& p, const RawNode* node, std::vector<int>* groups,
                  std::vector<int>* members) {
  if (node->node_case == PG_QUERY__NODE__NODE_ROW_EXPR &&
      node->row_expr->row_format == PG_QUERY__COERCION_FORM__COERCE_IMPLICIT_CAST) {
    for (size_t i = 0; i < node->row_expr->n_args; i++)
      AddGroupItem(p, node->row_expr->args[i], groups, members);
    return;
  }
  int index = FindTargetSql92(p, node, Clause::kGroupBy);
  auto found = std::find(groups->begin(), groups->end(), index);
  int member = static_cast<int>(found - groups->begin());
  if (std::find(members->begin(), members->end(), member) == members->end())
    members->push_back(member);
  if (found != groups->end()) return;
  CoerceUnknownTarget(p, index);
  const Expr& expr = *p.targets[static_cast<size_t>(index)].expr;
  CheckEqualityOperator(p, expr, RawLocation(p, node));
  groups->push_back(index);
}

using GroupingSets = std::vector<std::vector<int>>;

constexpr size_t kGroupingSetsMax = 4096, kCubeMax = 12;

void AppendMembers(const std::vector<int>& from, std::vector<int>* to) {
  for (int member : from)
    if (std::find(to->begin(), to->end(), member) == to->end()) to->push_back(member);
}

[[noreturn]] void ThrowTooManySets(ParseState& p, int location) {
  ThrowAt(p, location, sqlstate::kStatementTooComplex,
          "too many grouping sets present (maximum {})", kGroupingSetsMax);
}

// The sets that one item of GROUP BY stands for: a plain expression for one.
GroupingSets SetsOf(ParseState& p, const RawNode* node, std::vector<int>* groups) {
  if (node->node_case != PG_QUERY__NODE__NODE_GROUPING_SET) {
    GroupingSets one(1);
    AddGroupItem(p, node, groups, &one[0]);
    return one;
  }
  const PgQuery__GroupingSet& raw = *node->grouping_set;
  int location = p.Location(raw.location);
  std::vector<GroupingSets> parts;
  for (size_t i = 0; i < raw.n_content; i++) parts.push_back(SetsOf(p, raw.content[i], groups));
  GroupingSets sets;
  switch (raw.kind) {
    case PG_QUERY__GROUPING_SET_KIND__GROUPING_SET_ROLLUP:
      for (size_t length = parts.size() + 1; length-- > 0;) {
        sets.emplace_back();
        for (size_t i = 0; i < length; i++) AppendMembers(parts[i][0], &sets.back());
      }
      return sets;
    case PG_QUERY__GROUPING_SET_KIND__GROUPING_SET_CUBE:
      if (parts.size() > kCubeMax)
        ThrowAt(p, location, sqlstate::kTooManyColumns, "CUBE is limited to {} elements", kCubeMax);
      for (size_t held = size_t{1} << parts.size(); held-- > 0;) {
        sets.emplace_back();
        for (size_t i = 0; i < parts.size(); i++)
          if (held >> i & 1) AppendMembers(parts[i][0], &sets.back());
      }
      return sets;
    case PG_QUERY__GROUPING_SET_KIND__GROUPING_SET_SETS:
      for (GroupingSets& part : parts) sets.insert(sets.end(), part.begin(), part.end());
      if (sets.size() > kGroupingSetsMax) ThrowTooManySets(p, location);
      return sets;
    default:  // ()
      return {{}};
  }
}

void TransformGroupingSets(ParseState& p, const PgQuery__SelectStmt& statement,
                           std::vector<int>* groups, Query* query) {
  GroupingSets sets = {{}};
  for (size_t i = 0; i < statement.n_group_clause; i++) {
    GroupingSets item = SetsOf(p, statement.group_clause[i], groups);
    if (sets.size() * item.size() > kGroupingSetsMax) ThrowTooManySets(p, -1);
    GroupingSets product;
    for (const std::vector<int>& left : sets)
      for (const std::vector<int>& right : item) {
        product.push_back(left);
        AppendMembers(right, &product.back());
      }
    sets = std::move(product);
  }
  if (statement.group_distinct) {
    GroupingSets distinct;
    for (const std::vector<int>& set : sets) {
      bool repeated = std::any_of(distinct.begin(), distinct.end(), [&](const auto& other) {
        return std::is_permutation(set.begin(), set.end(), other.begin(), other.end());
      });
      if (!repeated) distinct.push_back(set);
    }
    sets = std::move(distinct);
  }
  p.has_aggregates = true;  // GROUP BY () groups too
  if (sets.size() == 1 && sets[0].size() == groups->size()) return;
  auto result = p.a.arena->NewArray<std::span<const int>>(sets.size());
  for (size_t i = 0; i < sets.size(); i++) result[i] = p.a.arena->CopyArray(sets[i]);
  query->grouping_sets = result;
}

void TransformDistinctOn(ParseState& p, const PgQuery__SelectStmt& statement,
                         const std::vector<SortKey>& order, Query* query) {
  std::vector<int> wanted, result;
  {
    ClauseScope scope(p, Clause::kDistinctOn);
    for (size_t i = 0; i < statement.n_distinct_clause; i++) {
      int index = FindTargetSql92(p, statement.distinct_clause[i], Clause::kDistinctOn);
      CoerceUnknownTarget(p, index);
      wanted.push_back(index);
    }
  }
  auto mismatch = [&](int index) {
    auto item = std::find(wanted.begin(), wanted.end(), index) - wanted.begin();
    ThrowAt(p, RawLocation(p, statement.distinct_clause[item]), sqlstate::kInvalidColumnReference,
            "SELECT DISTINCT ON expressions must match initial ORDER BY expressions");
  };
  bool skipped = false;
  for (const SortKey& key : order) {
    if (std::find(wanted.begin(), wanted.end(), key.target) == wanted.end()) {
      skipped = true;
    } else {
      if (skipped) mismatch(key.target);
      result.push_back(key.target);
    }
  }
  for (int index : wanted) {
    if (std::find(result.begin(), result.end(), index) != result.end()) continue;
    if (skipped) mismatch(index);
    const Expr& expr = *p.targets[static_cast<size_t>(index)].expr;
    CheckEqualityOperator(p, expr, ExprLocation(expr));
    result.push_back(index);
  }
  query->distinct_on = p.a.arena->CopyArray(result);
}

}  // namespace

int FindTargetSql92(ParseState& p, const RawNode* node, Clause clause) {
  if (node->node_case == PG_QUERY__NODE__NODE_COLUMN_REF && node->column_ref->n_fields == 1) {
    std::string_view name = RawString(node->column_ref->fields[0]);
    int location = p.Location(node->column_ref->location);
    // In GROUP BY the column of a table comes before an output column of the same name.
    bool is_column = clause == Clause::kGroupBy && !name.empty() &&
                     FindColumnByName(p, name, true, location) != nullptr;
    if (!name.empty() && !is_column)
      if (int found = FindByName(p, name, clause, location); found >= 0)
        return CheckGroupTarget(p, found, clause);
  }
  if (node->node_case == PG_QUERY__NODE__NODE_A_CONST)
    return CheckGroupTarget(p, FindByPosition(p, *node->a_const, clause), clause);
  return FindTargetSql99(p, node, clause);
}

int FindTargetSql99(ParseState& p, const RawNode* node, Clause clause) {
  ClauseScope scope(p, clause);
  Expr* expr = TransformExpr(p, node);
  for (size_t i = 0; i < p.targets.size(); i++)
    if (EqualExprs(expr, p.targets[i].expr)) return static_cast<int>(i);
  p.targets.push_back({expr, {}, true});
  return static_cast<int>(p.targets.size()) - 1;
}

void CheckEqualityOperator(ParseState& p, const Expr& expr, int location) {
  if (FindOrderOperators(expr.type).equal != kInvalidOid) return;
  // xid and the like can be hashed, not ordered.
  for (const OperatorInfo* oper : FindOperators("="))
    if (oper->left == expr.type && oper->right == expr.type && oper->can_hash) return;
  ThrowNoOperator(p, "equality", expr.type, location);
}

SortKey MakeSortKey(ParseState& p, const Expr* expr, const PgQuery__SortBy* sort, int location) {
  SortKey key{};
  key.expr = expr;
  key.target = -1;
  key.descending = sort->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_DESC;
  OrderOperators operators = FindOrderOperators(expr->type);
  if (sort->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_USING) {
    std::string_view name =
        OperatorName(p, sort->use_op, sort->n_use_op, p.Location(sort->location));
    if (name != "<" && name != ">")
      RefuseAt(p, p.Location(sort->location), "ORDER BY USING {}", name);
    key.descending = name == ">";
  }
  key.less_operator = key.descending ? operators.greater : operators.less;
  if (key.less_operator == kInvalidOid) ThrowNoOperator(p, "ordering", expr->type, location);
  key.nulls_first =
      sort->sortby_nulls == PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_FIRST ||
      (sort->sortby_nulls == PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_DEFAULT && key.descending);
  return key;
}

std::vector<int> TransformPartitionBy(ParseState& p, RawNode** list, size_t count) {
  std::vector<int> columns;
  for (size_t i = 0; i < count; i++) {
    int index = FindTargetSql99(p, list[i], Clause::kWindowPartition);
    if (std::find(columns.begin(), columns.end(), index) != columns.end()) continue;
    CoerceUnknownTarget(p, index);
    CheckEqualityOperator(p, *p.targets[static_cast<size_t>(index)].expr, RawLocation(p, list[i]));
    columns.push_back(index);
  }
  return columns;
}

std::vector<SortKey> TransformOrderBy(ParseState& p, RawNode** list, size_t count, Clause clause) {
  std::vector<SortKey> keys;
  for (size_t i = 0; i < count; i++) {
    const PgQuery__SortBy& sort = *list[i]->sort_by;
    int index = clause == Clause::kOrderBy ? FindTargetSql92(p, sort.node, clause)
                                           : FindTargetSql99(p, sort.node, clause);
    CoerceUnknownTarget(p, index);
    const Expr& expr = *p.targets[static_cast<size_t>(index)].expr;
    SortKey key = MakeSortKey(p, &expr, &sort, RawLocation(p, sort.node));
    key.expr = nullptr;
    key.target = index;
    bool repeated = std::any_of(keys.begin(), keys.end(),
                                [&](const SortKey& other) { return other.target == index; });
    if (!repeated) keys.push_back(key);
  }
  return keys;
}

void TransformGroupBy(ParseState& p, const PgQuery__SelectStmt& statement, Query* query) {
  ClauseScope scope(p, Clause::kGroupBy);
  std::vector<int> groups, members;
  bool sets = std::any_of(
      statement.group_clause, statement.group_clause + statement.n_group_clause,
      [](const RawNode* node) { return node->node_case == PG_QUERY__NODE__NODE_GROUPING_SET; });
  if (sets) {
    TransformGroupingSets(p, statement, &groups, query);
  } else {
    for (size_t i = 0; i < statement.n_group_clause; i++)
      AddGroupItem(p, statement.group_clause[i], &groups, &members);
  }
  query->group_by = p.a.arena->CopyArray(groups);
}

void TransformDistinct(ParseState& p, const PgQuery__SelectStmt& statement,
                       const std::vector<SortKey>& order, Query* query) {
  if (statement.n_distinct_clause == 0) return;
  // Plain DISTINCT is a list of one empty node.
  if (statement.distinct_clause[0]->node_case != PG_QUERY__NODE__NODE__NOT_SET)
    return TransformDistinctOn(p, statement, order, query);
  query->distinct = true;
  for (const SortKey& key : order) {
    const TargetEntry& target = p.targets[static_cast<size_t>(key.target)];
    if (target.junk)
      ThrowAt(p, ExprLocation(*target.expr), sqlstate::kInvalidColumnReference,
              "for SELECT DISTINCT, ORDER BY expressions must appear in select list");
  }
  bool any = false;
  for (size_t i = 0; i < p.targets.size(); i++) {
    if (p.targets[i].junk) continue;
    any = true;
    CoerceUnknownTarget(p, static_cast<int>(i));
    CheckEqualityOperator(p, *p.targets[i].expr, ExprLocation(*p.targets[i].expr));
  }
  if (!any) ThrowAt(p, -1, sqlstate::kSyntaxError, "SELECT DISTINCT must have at least one column");
}

}  // namespace sluice
