// What the grammar calls A_Expr: operators, IN, BETWEEN, NULLIF, IS DISTINCT FROM, and rows
// compared.
#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {
namespace {

bool IsRow(const RawNode* node) {
  return node != nullptr && node->node_case == PG_QUERY__NODE__NODE_ROW_EXPR;
}

std::vector<Expr*> TransformRow(ParseState& p, const RawNode* node) {
  CopiesScope copies(p, 2);
  return TransformList(p, node->row_expr->args, node->row_expr->n_args);
}

Expr* CombineBools(ParseState& p, bool all, std::vector<const Expr*> parts, int location) {
  if (parts.size() == 1) return const_cast<Expr*>(parts[0]);
  return MakeBool(p, all ? ExprKind::kAnd : ExprKind::kOr, std::move(parts), location);
}

void CheckRowSizes(ParseState& p, size_t left, size_t right, int location) {
  if (left != right)
    ThrowAt(p, location, sqlstate::kSyntaxError, "unequal number of entries in row expressions");
  if (left == 0)
    ThrowAt(p, location, sqlstate::kFeatureNotSupported, "cannot compare rows of zero length");
}

Expr* MakeRowDistinct(ParseState& p, const std::vector<Expr*>& left,
                      const std::vector<Expr*>& right, int location) {
  if (left.size() != right.size())
    ThrowAt(p, location, sqlstate::kSyntaxError, "unequal number of entries in row expressions");
  if (left.empty()) return MakeBoolConst(p, false, location);
  std::vector<const Expr*> parts;
  for (size_t i = 0; i < left.size(); i++)
    parts.push_back(MakeDistinct(p, left[i], right[i], location));
  return CombineBools(p, false, std::move(parts), location);
}

bool IsNullConst(const RawNode* node) {
  return node != nullptr && node->node_case == PG_QUERY__NODE__NODE_A_CONST &&
         node->a_const->isnull;
}

Expr* TransformOp(ParseState& p, const PgQuery__AExpr& raw) {
  int location = p.Location(raw.location);
  std::string_view name = OperatorName(p, raw.name, raw.n_name, location);
  if (IsRow(raw.lexpr) && IsRow(raw.rexpr)) {
    std::vector<Expr*> left = TransformRow(p, raw.lexpr);
    return MakeRowComparison(p, name, left, TransformRow(p, raw.rexpr), location);
  }
  if (IsRow(raw.lexpr) && raw.rexpr->node_case == PG_QUERY__NODE__NODE_SUB_LINK)
    RefuseAt(p, location, "a row compared with a subquery");
  Expr* left = raw.lexpr == nullptr ? nullptr : TransformExpr(p, raw.lexpr);
  if (raw.rexpr == nullptr)
    ThrowAt(p, location, sqlstate::kSyntaxError, "postfix operators are not supported");
  return MakeOperator(p, name, left, TransformExpr(p, raw.rexpr), location);
}

Expr* TransformDistinct(ParseState& p, const PgQuery__AExpr& raw) {
  int location = p.Location(raw.location);
  bool negate = raw.kind == PG_QUERY__A__EXPR__KIND__AEXPR_NOT_DISTINCT;
  if (IsNullConst(raw.lexpr) || IsNullConst(raw.rexpr)) {
    const RawNode* other = IsNullConst(raw.rexpr) ? raw.lexpr : raw.rexpr;
    if (!IsRow(other))
      return MakeBool(p, negate ? ExprKind::kIsNull : ExprKind::kIsNotNull,
                      {TransformExpr(p, other)}, location);
  }
  Expr* result;
  if (IsRow(raw.lexpr) && IsRow(raw.rexpr)) {
    std::vector<Expr*> left = TransformRow(p, raw.lexpr);
    result = MakeRowDistinct(p, left, TransformRow(p, raw.rexpr), location);
    return negate ? MakeBool(p, ExprKind::kNot, {result}, location) : result;
  }
  Expr* left = TransformExpr(p, raw.lexpr);
  result = MakeDistinct(p, left, TransformExpr(p, raw.rexpr), location);
  if (negate) result->kind = ExprKind::kIsNotDistinct;
  return result;
}

Expr* TransformNullIf(ParseState& p, const PgQuery__AExpr& raw) {
  int location = p.Location(raw.location);
  Expr* left = TransformExpr(p, raw.lexpr);
  Expr* result = MakeOperator(p, "=", left, TransformExpr(p, raw.rexpr), location);
  if (result->type != kBoolOid)
    ThrowAt(p, location, sqlstate::kDatatypeMismatch,
            "NULLIF requires = operator to yield boolean");
  result->kind = ExprKind::kNullIf;
  result->type = result->args[0]->type;
  result->typmod = result->args[0]->typmod;
  return result;
}

// The elements that are no columns of this query, as one array, if they have a common type.
Expr* TransformInArray(ParseState& p, std::string_view name, bool use_or, Expr* left,
                       const std::vector<Expr*>& values, int location) {
  std::vector<Expr*> all{left};
  all.insert(all.end(), values.begin(), values.end());
  Oid type = SelectCommonType(p, all, nullptr);
  if (type == kInvalidOid || type == kRecordOid) return nullptr;
  for (Expr* expr : all)
    if (!CanCoerce(expr->type, type, CoercionContext::kImplicit)) return nullptr;
  const TypeInfo* info = FindType(type);
  if (info == nullptr || info->array == kInvalidOid) return nullptr;
  std::span<const Expr*> elements = p.a.arena->NewArray<const Expr*>(values.size());
  for (size_t i = 0; i < values.size(); i++) elements[i] = CoerceToCommon(p, values[i], type, "IN");
  Expr* array = p.New(ExprKind::kArray, info->array, -1);
  array->args = elements;
  return MakeScalarArrayOperator(p, name, use_or, left, FoldArray(p, array), location);
}

Expr* TransformIn(ParseState& p, const PgQuery__AExpr& raw) {
  int location = p.Location(raw.location);
  std::string_view name = OperatorName(p, raw.name, raw.n_name, location);
  bool use_or = name != "<>";
  const PgQuery__List& list = *raw.rexpr->list;
  std::vector<const Expr*> parts;
  if (IsRow(raw.lexpr)) {
    for (size_t i = 0; i < list.n_items; i++) {
      if (!IsRow(list.items[i])) RefuseAt(p, location, "a row IN a list of anything but rows");
      std::vector<Expr*> left = TransformRow(p, raw.lexpr);
      parts.push_back(MakeRowComparison(p, name, left, TransformRow(p, list.items[i]), location));
    }
    return CombineBools(p, !use_or, std::move(parts), location);
  }
  Expr* left;
  {
    CopiesScope copies(p, list.n_items);
    left = TransformExpr(p, raw.lexpr);
  }
  std::vector<Expr*> values = TransformList(p, list.items, list.n_items);
  std::vector<Expr*> columns, others;
  others.reserve(list.n_items);
  for (Expr* value : values) (ContainsColumn(*value) ? columns : others).push_back(value);
  Expr* array =
      others.size() > 1 ? TransformInArray(p, name, use_or, left, others, location) : nullptr;
  if (array != nullptr) {
    parts.push_back(array);
    values = std::move(columns);
  }
  for (Expr* value : values) {
    Expr* operand = left;
    if (left->kind == ExprKind::kParam && left->type == kUnknownOid) {
      // Each comparison has its own say in the parameter's type.
      operand = p.a.arena->New<Expr>(*left);
      p.a.params.push_back(operand);
    }
    parts.push_back(CoerceToBoolean(p, MakeOperator(p, name, operand, value, location), "IN"));
  }
  return CombineBools(p, !use_or, std::move(parts), location);
}

Expr* TransformBetween(ParseState& p, const PgQuery__AExpr& raw) {
  int location = p.Location(raw.location);
  const RawNode* low = raw.rexpr->list->items[0];
  const RawNode* high = raw.rexpr->list->items[1];
  // Each comparison has its own copy of the operand, as in Postgres.
  bool symmetric = raw.kind == PG_QUERY__A__EXPR__KIND__AEXPR_BETWEEN_SYM ||
                   raw.kind == PG_QUERY__A__EXPR__KIND__AEXPR_NOT_BETWEEN_SYM;
  CopiesScope copies(p, symmetric ? 4 : 2);
  auto compare = [&](const char* name, const RawNode* bound) -> const Expr* {
    Expr* operand = TransformExpr(p, raw.lexpr);
    Expr* result = MakeOperator(p, name, operand, TransformExpr(p, bound), location);
    return CoerceToBoolean(p, result, "AND");
  };
  auto both = [&](bool all, const char* first, const RawNode* a, const char* second,
                  const RawNode* b) -> const Expr* {
    return CombineBools(p, all, {compare(first, a), compare(second, b)}, location);
  };
  switch (raw.kind) {
    case PG_QUERY__A__EXPR__KIND__AEXPR_BETWEEN:
      return const_cast<Expr*>(both(true, ">=", low, "<=", high));
    case PG_QUERY__A__EXPR__KIND__AEXPR_NOT_BETWEEN:
      return const_cast<Expr*>(both(false, "<", low, ">", high));
    case PG_QUERY__A__EXPR__KIND__AEXPR_BETWEEN_SYM:
      return CombineBools(p, false,
                          {both(true, ">=", low, "<=", high), both(true, ">=", high, "<=", low)},
                          location);
    default:
      return CombineBools(
          p, true, {both(false, "<", low, ">", high), both(false, "<", high, ">", low)}, location);
  }
}

Expr* TransformArrayOp(ParseState& p, const PgQuery__AExpr& raw, bool use_or) {
  int location = p.Location(raw.location);
  std::string_view name = OperatorName(p, raw.name, raw.n_name, location);
  Expr* left = TransformExpr(p, raw.lexpr);
  return MakeScalarArrayOperator(p, name, use_or, left, TransformExpr(p, raw.rexpr), location);
}

}  // namespace

// (a, b) < (c, d) is a < c OR (a = c AND b < d): NULLs come out as Postgres's row comparison has
// them, which stops at the first pair that is not equal.
Expr* MakeRowComparison(ParseState& p, std::string_view name, const std::vector<Expr*>& left,
                        const std::vector<Expr*>& right, int location) {
  CheckRowSizes(p, left.size(), right.size(), location);
  auto compare = [&](std::string_view oper, size_t i) -> const Expr* {
    Expr* result = MakeOperator(p, oper, left[i], right[i], location);
    if (result->type != kBoolOid)
      ThrowAt(p, location, sqlstate::kDatatypeMismatch,
              "row comparison operator must yield type boolean, not type {}",
              TypeText(result->type));
    return result;
  };
  size_t count = left.size();
  if (count == 1) return const_cast<Expr*>(compare(name, 0));
  if (name == "=" || name == "<>") {
    std::vector<const Expr*> parts;
    for (size_t i = 0; i < count; i++) parts.push_back(compare(name, i));
    return CombineBools(p, name == "=", std::move(parts), location);
  }
  if (name != "<" && name != "<=" && name != ">" && name != ">=") {
    QueryError e(
        MakeError(sqlstate::kFeatureNotSupported,
                  "could not determine interpretation of row comparison operator {}", name)
            .Hint("Row comparison operators must be associated with btree operator families.")
            .At(ErrorPosition(p, location)));
    throw e;
  }
  std::string_view strict = name.substr(0, 1);
  const Expr* result = compare(name, count - 1);
  for (size_t i = count - 1; i-- > 0;) {
    const Expr* equal = CombineBools(p, true, {compare("=", i), result}, location);
    result = CombineBools(p, false, {compare(strict, i), equal}, location);
  }
  return const_cast<Expr*>(result);
}

Expr* TransformAExpr(ParseState& p, const PgQuery__AExpr& raw) {
  switch (raw.kind) {
    case PG_QUERY__A__EXPR__KIND__AEXPR_OP:
    case PG_QUERY__A__EXPR__KIND__AEXPR_LIKE:
    case PG_QUERY__A__EXPR__KIND__AEXPR_ILIKE:
    case PG_QUERY__A__EXPR__KIND__AEXPR_SIMILAR:
      return TransformOp(p, raw);
    case PG_QUERY__A__EXPR__KIND__AEXPR_OP_ANY:
      return TransformArrayOp(p, raw, true);
    case PG_QUERY__A__EXPR__KIND__AEXPR_OP_ALL:
      return TransformArrayOp(p, raw, false);
    case PG_QUERY__A__EXPR__KIND__AEXPR_DISTINCT:
    case PG_QUERY__A__EXPR__KIND__AEXPR_NOT_DISTINCT:
      return TransformDistinct(p, raw);
    case PG_QUERY__A__EXPR__KIND__AEXPR_NULLIF:
      return TransformNullIf(p, raw);
    case PG_QUERY__A__EXPR__KIND__AEXPR_IN:
      return TransformIn(p, raw);
    case PG_QUERY__A__EXPR__KIND__AEXPR_BETWEEN:
    case PG_QUERY__A__EXPR__KIND__AEXPR_NOT_BETWEEN:
    case PG_QUERY__A__EXPR__KIND__AEXPR_BETWEEN_SYM:
    case PG_QUERY__A__EXPR__KIND__AEXPR_NOT_BETWEEN_SYM:
      return TransformBetween(p, raw);
    default:
      RefuseAt(p, p.Location(raw.location), "this kind of operator expression");
  }
}

}  // namespace sluice
