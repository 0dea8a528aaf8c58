// UNION, INTERSECT, EXCEPT, and VALUES: columns whose types several queries or rows decide
// together.
#include "parser/analyzer.h"
#include "parser/shift_levels.h"
#include "parser/walk.h"

namespace sluice {
namespace {

struct Arm {
  SetOpTree* tree;
  std::vector<Expr*> columns;  // what its output columns are: their types, collations, places
  std::vector<std::string_view> names;
};

Expr* OutputColumn(ParseState& p, int rel, int column, const QueryColumn& like, int location) {
  Expr* expr = p.New(ExprKind::kColumn, like.type, location);
  expr->rel = rel;
  expr->column = column;
  expr->typmod = like.typmod;
  expr->collation = like.collation;
  return expr;
}

const char* SetOpName(PgQuery__SetOperation op) {
  switch (op) {
    case PG_QUERY__SET_OPERATION__SETOP_UNION:
      return "UNION";
    case PG_QUERY__SET_OPERATION__SETOP_INTERSECT:
      return "INTERSECT";
    default:
      return "EXCEPT";
  }
}

SetOpKind KindOf(PgQuery__SetOperation op) {
  switch (op) {
    case PG_QUERY__SET_OPERATION__SETOP_UNION:
      return SetOpKind::kUnion;
    case PG_QUERY__SET_OPERATION__SETOP_INTERSECT:
      return SetOpKind::kIntersect;
    default:
      return SetOpKind::kExcept;
  }
}

bool IsLeaf(const PgQuery__SelectStmt& statement) {
  return statement.op == PG_QUERY__SET_OPERATION__SETOP_NONE ||
         statement.op == PG_QUERY__SET_OPERATION__SET_OPERATION_UNDEFINED ||
         statement.n_sort_clause > 0 || statement.limit_offset != nullptr ||
         statement.limit_count != nullptr || statement.n_locking_clause > 0 ||
         statement.with_clause != nullptr;
}

constexpr const char* kNotWithSetOperation = "is not allowed with UNION/INTERSECT/EXCEPT";

Arm TransformLeaf(ParseState& p, const PgQuery__SelectStmt& statement) {
  RefuseLocking(p, statement, kNotWithSetOperation);
  // Literals stay unknown: the other arms may decide their types.
  Query* query = TransformSubselect(p, statement, false);
  if (ContainsColumn(*query, 1))
    ThrowAt(p, -1, sqlstate::kInvalidColumnReference,
            "UNION/INTERSECT/EXCEPT member statement cannot refer to other relations of same query "
            "level");
  Arm arm;
  arm.tree = p.a.arena->New<SetOpTree>();
  arm.tree->leaf = query;
  for (const Target& target : query->targets) {
    if (target.junk) continue;
    arm.columns.push_back(const_cast<Expr*>(target.expr));
    arm.names.push_back(target.name);
  }
  return arm;
}

// A query of its own over an inner set operation, so that its output can be cast.
Query* QueryOfTree(ParseState& p, const Arm& arm) {
  Query* query = p.a.arena->New<Query>();
  std::vector<Target> targets;
  for (size_t i = 0; i < arm.columns.size(); i++) {
    const Expr& column = *arm.columns[i];
    QueryColumn like{arm.names[i], column.type, column.typmod, column.collation};
    targets.push_back(
        {OutputColumn(p, kInput, static_cast<int>(i), like, column.location), arm.names[i], false});
  }
  query->targets = p.a.arena->CopyArray(targets);
  ForEachSetOpLeaf(arm.tree, [](const Query& leaf) { ShiftLevels(const_cast<Query&>(leaf), 1); });
  query->set_op = arm.tree;
  return query;
}

void CoerceArm(ParseState& p, Arm* arm, std::span<const QueryColumn> wanted) {
  bool same = true;
  for (size_t i = 0; i < wanted.size(); i++) same = same && arm->columns[i]->type == wanted[i].type;
  if (same) return;
  Query* query =
      arm->tree->leaf != nullptr ? const_cast<Query*>(arm->tree->leaf) : QueryOfTree(p, *arm);
  SetOpTree* leaf = p.a.arena->New<SetOpTree>();
  leaf->leaf = CoerceQueryColumns(p, query, wanted);
  arm->tree = leaf;
}

void CheckSetOpColumn(ParseState& p, const Expr& column) {
  CheckEqualityOperator(p, column, column.location);
}

Arm TransformTree(ParseState& p, const PgQuery__SelectStmt& statement);

Arm Combine(ParseState& p, const PgQuery__SelectStmt& statement, Arm left, Arm right) {
  const char* name = SetOpName(statement.op);
  if (left.columns.size() != right.columns.size())
    ThrowAt(p, right.columns.empty() ? -1 : ExprLocation(*right.columns[0]), sqlstate::kSyntaxError,
            "each {} query must have the same number of columns", name);
  bool union_all = statement.op == PG_QUERY__SET_OPERATION__SETOP_UNION && statement.all;
  Arm result;
  result.names = left.names;
  std::vector<QueryColumn> wanted;
  for (size_t i = 0; i < left.columns.size(); i++) {
    Expr* both[] = {left.columns[i], right.columns[i]};
    Expr* best = nullptr;
    Oid type = SelectCommonType(p, both, name, &best);
    for (Expr* column : both)
      if (!CanCoerce(column->type, type, CoercionContext::kImplicit))
        ThrowAt(p, ExprLocation(*column), sqlstate::kCannotCoerce,
                "{} could not convert type {} to {}", name, TypeText(column->type), TypeText(type));
    // A literal that is none of that type is reported before the next column is looked at.
    for (Expr* column : both)
      if (column->type == kUnknownOid && column->kind == ExprKind::kConst)
        CoerceToCommon(p, column, type, name);
    Expr* column = p.New(ExprKind::kColumn, type, ExprLocation(*best));
    column->rel = kInput;
    column->column = static_cast<int>(i);
    column->typmod = SelectCommonTypmod(both, type);
    if (TypeCollation(type) != kInvalidOid) {
      column->collation =
          SelectCommonCollation(p, std::vector<const Expr*>(both, both + 2), union_all);
      if (column->collation == kInvalidOid && TypeCollation(both[0]->type) == kInvalidOid &&
          TypeCollation(both[1]->type) == kInvalidOid)
        column->collation = TypeCollation(type);  // unknown literals become text
    }
    if (!union_all) CheckSetOpColumn(p, *column);
    wanted.push_back({left.names[i], type, column->typmod, column->collation});
    result.columns.push_back(column);
  }
  CoerceArm(p, &left, wanted);
  CoerceArm(p, &right, wanted);
  result.tree = p.a.arena->New<SetOpTree>();
  result.tree->kind = KindOf(statement.op);
  result.tree->all = statement.all;
  result.tree->left = left.tree;
  result.tree->right = right.tree;
  return result;
}

Arm TransformTree(ParseState& p, const PgQuery__SelectStmt& statement) {
  if (IsLeaf(statement)) {
    if (statement.into_clause != nullptr)
      ThrowAt(p, -1, sqlstate::kSyntaxError,
              "INTO is only allowed on first SELECT of UNION/INTERSECT/EXCEPT");
    return TransformLeaf(p, statement);
  }
  bool except = statement.op == PG_QUERY__SET_OPERATION__SETOP_EXCEPT;
  bool intersect = statement.op == PG_QUERY__SET_OPERATION__SETOP_INTERSECT;
  const char* name = except ? "EXCEPT" : intersect ? "INTERSECT" : nullptr;
  Arm left;
  {
    ForbidRecursion forbid(p.a, statement.all ? name : nullptr);
    left = TransformTree(p, *statement.larg);
  }
  ForbidRecursion forbid(p.a, statement.all || except ? name : nullptr);
  return Combine(p, statement, std::move(left), TransformTree(p, *statement.rarg));
}

void TransformSetOpOrder(ParseState& p, const PgQuery__SelectStmt& statement, const Arm& arm,
                         Query* query) {
  // Only the names of the result can be used, so they are all that is visible.
  NsItem item;
  item.rel_visible = false;
  item.columns = p.a.NewColumnList();
  for (size_t i = 0; i < arm.columns.size(); i++)
    item.columns->push_back({arm.names[i], nullptr, kInput, static_cast<int>(i),
                             arm.columns[i]->type, arm.columns[i]->typmod,
                             arm.columns[i]->collation});
  std::vector<NsItem> saved = std::exchange(p.names, {item});
  size_t columns = p.targets.size();
  std::vector<SortKey> order =
      TransformOrderBy(p, statement.sort_clause, statement.n_sort_clause, Clause::kOrderBy);
  p.names = std::move(saved);
  if (p.targets.size() != columns) {
    QueryError e(
        MakeError(sqlstate::kFeatureNotSupported, "invalid UNION/INTERSECT/EXCEPT ORDER BY clause")
            .Detail("Only result column names can be used, not expressions or functions.")
            .Hint("Add the expression/function to every SELECT, or move the UNION into a FROM "
                  "clause.")
            .At(ErrorPosition(p, ExprLocation(*p.targets[columns].expr))));
    throw e;
  }
  query->order_by = p.a.arena->CopyArray(order);
}

bool CanCastInPlace(const Query& query) {
  return query.set_op == nullptr && !query.distinct && query.distinct_on.empty() &&
         query.group_by.empty() && query.order_by.empty();
}

}  // namespace

Query* CoerceQueryColumns(ParseState& p, Query* query, std::span<const QueryColumn> types) {
  bool same = true;
  size_t n = 0;
  for (const Target& target : query->targets)
    if (!target.junk) same = same && target.expr->type == types[n++].type;
  if (same) return query;
  auto cast = [&](const Expr* expr, Oid type) {
    return CoerceToCommon(p, const_cast<Expr*>(expr), type, "UNION");
  };
  // Unknown literals are given their type where they are written, whatever else refers to them.
  std::span<Target> targets = p.a.arena->CopyArray(query->targets);
  bool in_place = CanCastInPlace(*query);
  n = 0;
  same = true;
  for (Target& target : targets) {
    if (target.junk) continue;
    if (in_place || target.expr->type == kUnknownOid) {
      Expr* value = cast(target.expr, types[n].type);
      AssignExprCollations(p, value);
      target.expr = value;
    }
    same = same && target.expr->type == types[n++].type;
  }
  query->targets = targets;
  if (same) return query;

  ShiftLevels(*query, 1);
  Query* around = p.a.arena->New<Query>();
  QueryRel rel{};
  rel.kind = RelKind::kSubquery;
  rel.alias = "*SELECT*";
  rel.subquery = query;
  std::vector<QueryColumn> columns;
  std::vector<Target> output;
  n = 0;
  for (const Target& target : query->targets) {
    if (target.junk) continue;
    columns.push_back(
        {target.name, target.expr->type, target.expr->typmod, target.expr->collation});
    Expr* column =
        OutputColumn(p, 0, static_cast<int>(n), columns.back(), ExprLocation(*target.expr));
    Expr* value = cast(column, types[n++].type);
    AssignExprCollations(p, value);
    output.push_back({value, target.name, false});
  }
  rel.columns = p.a.arena->CopyArray(columns);
  around->rels = p.a.arena->CopyArray(std::span<const QueryRel>(&rel, 1));
  around->from = LeafTree(p, 0);
  around->targets = p.a.arena->CopyArray(output);
  return around;
}

namespace {

// What a recursive query's references to itself see: the first term's columns.
void SetRecursiveColumns(ParseState& p, const Arm& first) {
  Recursion& recursion = *p.recursion;
  for (size_t i = 0; i < first.columns.size(); i++) {
    const Expr& column = *first.columns[i];
    std::string_view name = first.names[i];
    if (i < recursion.raw->n_aliascolnames)
      name = p.a.arena->CopyString(RawString(recursion.raw->aliascolnames[i]));
    recursion.locations.push_back(ExprLocation(column));
    bool unknown = column.type == kUnknownOid;
    recursion.columns.push_back({name, unknown ? kTextOid : column.type, column.typmod,
                                 unknown ? TypeCollation(kTextOid) : column.collation});
  }
}

}  // namespace

Query* TransformSetOperation(ParseState& p, const PgQuery__SelectStmt& statement) {
  RefuseLocking(p, statement, kNotWithSetOperation);
  Query* query = p.a.arena->New<Query>();
  bool is_union = statement.op == PG_QUERY__SET_OPERATION__SETOP_UNION;
  Recursion* recursion = is_union ? p.recursion : nullptr;
  if (recursion != nullptr) recursion->part = Recursion::Part::kFirst;
  Arm left = TransformTree(p, *statement.larg);
  if (recursion != nullptr) {
    SetRecursiveColumns(p, left);
    recursion->part = Recursion::Part::kRecursive;
  }
  Arm arm = Combine(p, statement, std::move(left), TransformTree(p, *statement.rarg));
  query->set_op = arm.tree;
  for (size_t i = 0; i < arm.columns.size(); i++)
    p.targets.push_back({arm.columns[i], arm.names[i], false});
  TransformSetOpOrder(p, statement, arm, query);
  TransformLimit(p, statement, query);
  return FinishQuery(p, query);
}

Query* TransformValues(ParseState& p, const PgQuery__SelectStmt& statement) {
  std::vector<std::vector<Expr*>> rows;
  rows.reserve(statement.n_values_lists);
  {
    ClauseScope scope(p, Clause::kValues);
    for (size_t i = 0; i < statement.n_values_lists; i++) {
      const PgQuery__List& list = *statement.values_lists[i]->list;
      rows.push_back(TransformList(p, list.items, list.n_items));
      if (rows.back().size() != rows[0].size())
        ThrowAt(p, rows.back().empty() ? -1 : ExprLocation(*rows.back()[0]), sqlstate::kSyntaxError,
                "VALUES lists must all be the same length");
    }
  }
  QueryRel rel{};
  rel.kind = RelKind::kValues;
  rel.alias = "*VALUES*";
  std::vector<QueryColumn> columns;
  std::vector<Expr*> column(rows.size());
  for (size_t c = 0; c < rows[0].size(); c++) {
    for (size_t r = 0; r < rows.size(); r++) column[r] = rows[r][c];
    Oid type = SelectCommonType(p, column, "VALUES");
    for (size_t r = 0; r < rows.size(); r++)
      column[r] = rows[r][c] = CoerceToCommon(p, column[r], type, "VALUES");
    Oid collation = TypeCollation(type) == kInvalidOid
                        ? kInvalidOid
                        : SelectCommonCollation(
                              p, std::vector<const Expr*>(column.begin(), column.end()), true);
    columns.push_back({p.a.arena->CopyString(fmt::format("column{}", c + 1)), type,
                       SelectCommonTypmod(column, type), collation});
  }
  std::span<std::span<const Expr* const>> values =
      p.a.arena->NewArray<std::span<const Expr* const>>(rows.size());
  for (size_t r = 0; r < rows.size(); r++)
    values[r] = p.a.arena->CopyArray(std::vector<const Expr*>(rows[r].begin(), rows[r].end()));
  rel.values = {values.data(), values.size()};
  rel.columns = p.a.arena->CopyArray(columns);

  Query* query = p.a.arena->New<Query>();
  int index = AddRel(p, rel);
  NsItem item = MakeNsItem(p, index, nullptr);
  query->from = LeafTree(p, index);
  for (const NsColumn& c : *item.columns)
    p.targets.push_back({MakeColumnExpr(p, c, 0, -1), c.name, false});
  p.names.push_back(item);
  std::vector<SortKey> order =
      TransformOrderBy(p, statement.sort_clause, statement.n_sort_clause, Clause::kOrderBy);
  TransformLimit(p, statement, query);
  query->order_by = p.a.arena->CopyArray(order);
  FinishQuery(p, query);
  CheckAggregates(p, *query);
  return query;
}

}  // namespace sluice
