// Subqueries in expressions: EXISTS, IN, ANY, ALL, scalar, ARRAY.
#include "common/assert.h"
#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {
namespace {

std::vector<const Target*> OutputColumns(const Query& query) {
  std::vector<const Target*> columns;
  for (const Target& target : query.targets)
    if (!target.junk) columns.push_back(&target);
  return columns;
}

const Expr& OnlyColumn(ParseState& p, const Query& query, int location) {
  std::vector<const Target*> columns = OutputColumns(query);
  if (columns.size() != 1)
    ThrowAt(p, location, sqlstate::kSyntaxError, "subquery must return only one column");
  return *columns[0]->expr;
}

void TransformScalar(ParseState& p, const PgQuery__SubLink& raw, Query* query, Expr* sublink) {
  const Expr& column = OnlyColumn(p, *query, sublink->location);
  sublink->sublink = SublinkKind::kScalar;
  sublink->type = column.type;
  sublink->typmod = column.typmod;
  sublink->collation = column.collation;
  p.a.scalar_sublinks[&raw] = query;
}

void TransformArraySublink(ParseState& p, const Query& query, Expr* sublink) {
  const Expr& column = OnlyColumn(p, query, sublink->location);
  const TypeInfo* info = FindType(column.type);
  sublink->sublink = SublinkKind::kArray;
  sublink->type = info == nullptr                ? kInvalidOid
                  : info->element != kInvalidOid ? column.type
                                                 : info->array;
  if (sublink->type == kInvalidOid)
    ThrowAt(p, sublink->location, sqlstate::kUndefinedObject,
            "could not find array type for data type {}", TypeText(column.type));
  sublink->typmod = column.typmod;
  sublink->collation = column.collation;
}

// x op ANY (SELECT …): the left sides are cast to the operators' types, and so is the subquery's
// output.
void TransformComparison(ParseState& p, const PgQuery__SubLink& raw, Query* query, Expr* sublink) {
  int location = sublink->location;
  std::string_view name =
      raw.n_oper_name == 0 ? "=" : OperatorName(p, raw.oper_name, raw.n_oper_name, location);
  std::vector<Expr*> left =
      raw.testexpr->node_case == PG_QUERY__NODE__NODE_ROW_EXPR
          ? TransformList(p, raw.testexpr->row_expr->args, raw.testexpr->row_expr->n_args)
          : std::vector<Expr*>{TransformExpr(p, raw.testexpr)};
  std::vector<const Target*> right = OutputColumns(*query);
  if (left.size() < right.size())
    ThrowAt(p, location, sqlstate::kSyntaxError, "subquery has too many columns");
  if (left.size() > right.size())
    ThrowAt(p, location, sqlstate::kSyntaxError, "subquery has too few columns");
  bool any = sublink->sublink == SublinkKind::kAny;
  if (left.size() > 1 && name != (any ? "=" : "<>"))
    RefuseAt(p, location, "a row compared by {} {}", name, any ? "ANY" : "ALL");

  std::vector<const Expr*> args;
  std::vector<Oid> operators;
  std::vector<QueryColumn> wanted;
  for (size_t i = 0; i < left.size(); i++) {
    const Expr& column = *right[i]->expr;
    // The subquery's column, to see what the operator makes of it.
    Expr* output = p.New(ExprKind::kColumn, column.type, -1);
    output->rel = kInput;
    output->column = static_cast<int>(i);
    output->typmod = column.typmod;
    output->collation = column.collation;
    Expr* compared = MakeOperator(p, name, left[i], output, location);
    if (compared->type != kBoolOid)
      ThrowAt(p, location, sqlstate::kDatatypeMismatch,
              "row comparison operator must yield type boolean, not type {}",
              TypeText(compared->type));
    AssignExprCollations(p, compared);
    if (i == 0) sublink->input_collation = compared->input_collation;
    args.push_back(compared->args[0]);
    operators.push_back(compared->oper);
    const Expr& cast = *compared->args[1];
    wanted.push_back({right[i]->name, cast.type, cast.typmod, cast.collation});
  }
  sublink->args = p.a.arena->CopyArray(args);
  sublink->sublink_operators = p.a.arena->CopyArray(operators);
  sublink->subquery = CoerceQueryColumns(p, query, wanted);
}

// Which row LIMIT or DISTINCT ON takes may not be the same each time, nor what a volatile function
// says.
bool GivesOneRowEachTime(const Query& query) {
  return query.limit == nullptr && query.offset == nullptr && !query.distinct &&
         query.distinct_on.empty() && query.set_op == nullptr && !ContainsVolatile(query);
}

}  // namespace

Expr* TransformRowPart(ParseState& p, const PgQuery__SubLink& raw, size_t part, size_t count) {
  int location = p.Location(raw.location);
  if (raw.subselect->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
    RefuseAt(p, location, "this kind of subquery");
  p.has_sublinks = true;
  ForbidRecursion forbid(p.a, "a subquery");
  Query* query = TransformSubselect(p, *raw.subselect->select_stmt);
  if (OutputColumns(*query).size() != count)
    ThrowAt(p, location, sqlstate::kSyntaxError,
            "number of columns does not match number of values");
  if (!GivesOneRowEachTime(*query))
    RefuseAt(p, location,
             "UPDATE that sets several columns from one sub-SELECT with DISTINCT, LIMIT, UNION or "
             "volatile functions");
  std::span<Target> targets = p.a.arena->CopyArray(query->targets);
  const Expr* column = nullptr;
  size_t seen = 0;
  for (Target& target : targets) {
    if (target.junk) continue;
    if (seen++ == part)
      column = target.expr;
    else
      target.junk = true;
  }
  query->targets = targets;
  SLUICE_ASSERT(column != nullptr);  // it has `count` output columns
  Expr* sublink = p.New(ExprKind::kSubquery, column->type, location);
  sublink->subquery = query;
  sublink->sublink = SublinkKind::kScalar;
  sublink->typmod = column->typmod;
  sublink->collation = column->collation;
  return sublink;
}

Expr* TransformSublink(ParseState& p, const PgQuery__SubLink& raw) {
  int location = p.Location(raw.location);
  switch (p.clause) {
    case Clause::kStandalone:
      ThrowAt(p, location, sqlstate::kFeatureNotSupported,
              "cannot use subquery in partition key expression");
    default:
      break;
  }
  if (raw.subselect->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
    RefuseAt(p, location, "this kind of subquery");
  p.has_sublinks = true;
  ForbidRecursion forbid(p.a, "a subquery");
  Query* query = TransformSubselect(p, *raw.subselect->select_stmt);
  Expr* sublink = p.New(ExprKind::kSubquery, kBoolOid, location);
  sublink->subquery = query;
  switch (raw.sub_link_type) {
    case PG_QUERY__SUB_LINK_TYPE__EXISTS_SUBLINK:
      sublink->sublink = SublinkKind::kExists;
      return sublink;
    case PG_QUERY__SUB_LINK_TYPE__EXPR_SUBLINK:
      TransformScalar(p, raw, query, sublink);
      return sublink;
    case PG_QUERY__SUB_LINK_TYPE__ARRAY_SUBLINK:
      TransformArraySublink(p, *query, sublink);
      return sublink;
    case PG_QUERY__SUB_LINK_TYPE__ANY_SUBLINK:
    case PG_QUERY__SUB_LINK_TYPE__ALL_SUBLINK:
      sublink->sublink = raw.sub_link_type == PG_QUERY__SUB_LINK_TYPE__ANY_SUBLINK
                             ? SublinkKind::kAny
                             : SublinkKind::kAll;
      TransformComparison(p, raw, query, sublink);
      return sublink;
    default:
      RefuseAt(p, location, "this kind of subquery expression");
  }
}

}  // namespace sluice
