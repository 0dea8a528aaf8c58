// The select list and the names of its columns.
#include "parser/analyzer.h"

namespace sluice {
namespace {

bool IsStarRef(const RawNode* node) {
  return node->node_case == PG_QUERY__NODE__NODE_COLUMN_REF &&
         node->column_ref->fields[node->column_ref->n_fields - 1]->node_case ==
             PG_QUERY__NODE__NODE_A_STAR;
}

// A name with how much it says: 0 none, 1 only a type's or keyword's, 2 a real one.
struct Figured {
  std::string_view name;
  int strength = 0;
};

Figured Figure(ParseState& p, const RawNode* node);

Figured FigureColumnRef(const PgQuery__ColumnRef& ref) {
  for (size_t i = ref.n_fields; i-- > 0;)
    if (ref.fields[i]->node_case == PG_QUERY__NODE__NODE_STRING)
      return {RawString(ref.fields[i]), 2};
  return {};
}

Figured FigureTypeCast(ParseState& p, const PgQuery__TypeCast& cast) {
  Figured figured = Figure(p, cast.arg);
  if (figured.strength > 1 || cast.type_name == nullptr || cast.type_name->n_names == 0)
    return figured;
  return {RawString(cast.type_name->names[cast.type_name->n_names - 1]), 1};
}

Figured FigureSublink(ParseState& p, const PgQuery__SubLink& sublink) {
  switch (sublink.sub_link_type) {
    case PG_QUERY__SUB_LINK_TYPE__EXISTS_SUBLINK:
      return {"exists", 2};
    case PG_QUERY__SUB_LINK_TYPE__ARRAY_SUBLINK:
      return {"array", 2};
    case PG_QUERY__SUB_LINK_TYPE__EXPR_SUBLINK: {
      auto found = p.a.scalar_sublinks.find(&sublink);
      if (found == p.a.scalar_sublinks.end()) return {};
      for (const Target& target : found->second->targets)
        if (!target.junk) return {target.name, 2};
      return {};
    }
    default:
      return {};
  }
}

Figured FigureSqlValue(const PgQuery__SQLValueFunction& function) {
  static constexpr std::string_view kNames[] = {
      "current_date", "current_time", "current_time",   "current_timestamp", "current_timestamp",
      "localtime",    "localtime",    "localtimestamp", "localtimestamp",    "current_role",
      "current_user", "user",         "session_user",   "current_catalog",   "current_schema"};
  int index = function.op - PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_DATE;
  return index >= 0 && index < 15 ? Figured{kNames[index], 2} : Figured{};
}

Figured FigureIndirection(ParseState& p, const PgQuery__AIndirection& raw) {
  for (size_t i = raw.n_indirection; i-- > 0;)
    if (raw.indirection[i]->node_case == PG_QUERY__NODE__NODE_STRING)
      return {RawString(raw.indirection[i]), 2};
  return Figure(p, raw.arg);
}

Figured Figure(ParseState& p, const RawNode* node) {
  if (node == nullptr) return {};
  switch (node->node_case) {
    case PG_QUERY__NODE__NODE_COLUMN_REF:
      return FigureColumnRef(*node->column_ref);
    case PG_QUERY__NODE__NODE_A_INDIRECTION:
      return FigureIndirection(p, *node->a_indirection);
    case PG_QUERY__NODE__NODE_FUNC_CALL:
      return {RawString(node->func_call->funcname[node->func_call->n_funcname - 1]), 2};
    case PG_QUERY__NODE__NODE_A_EXPR:
      return node->a_expr->kind == PG_QUERY__A__EXPR__KIND__AEXPR_NULLIF ? Figured{"nullif", 2}
                                                                         : Figured{};
    case PG_QUERY__NODE__NODE_TYPE_CAST:
      return FigureTypeCast(p, *node->type_cast);
    case PG_QUERY__NODE__NODE_COLLATE_CLAUSE:
      return Figure(p, node->collate_clause->arg);
    case PG_QUERY__NODE__NODE_GROUPING_FUNC:
      return {"grouping", 2};
    case PG_QUERY__NODE__NODE_SUB_LINK:
      return FigureSublink(p, *node->sub_link);
    case PG_QUERY__NODE__NODE_CASE_EXPR: {
      Figured figured = Figure(p, node->case_expr->defresult);
      return figured.strength > 1 ? figured : Figured{"case", 1};
    }
    case PG_QUERY__NODE__NODE_A_ARRAY_EXPR:
      return {"array", 2};
    case PG_QUERY__NODE__NODE_ROW_EXPR:
      return {"row", 2};
    case PG_QUERY__NODE__NODE_COALESCE_EXPR:
      return {"coalesce", 2};
    case PG_QUERY__NODE__NODE_MIN_MAX_EXPR:
      return {node->min_max_expr->op == PG_QUERY__MIN_MAX_OP__IS_GREATEST ? "greatest" : "least",
              2};
    case PG_QUERY__NODE__NODE_SQLVALUE_FUNCTION:
      return FigureSqlValue(*node->sqlvalue_function);
    default:
      return {};
  }
}

}  // namespace

std::string_view FigureColumnName(ParseState& p, const RawNode* node) {
  Figured figured = Figure(p, node);
  return figured.strength == 0 ? std::string_view("?column?") : p.a.arena->CopyString(figured.name);
}

void TransformTargetList(ParseState& p, RawNode** list, size_t count) {
  ClauseScope scope(p, Clause::kSelectTarget);
  for (size_t i = 0; i < count; i++) {
    const PgQuery__ResTarget& raw = *list[i]->res_target;
    if (IsStarRef(raw.val)) {
      ExpandStar(p, *raw.val->column_ref);
      continue;
    }
    if (AddRowTargets(p, raw.val, HasText(raw.name) ? raw.name : "")) continue;
    p.set_function = SetFunctionOfTarget(raw.val);
    Expr* expr = TransformExpr(p, raw.val);
    p.set_function = nullptr;
    std::string_view name =
        HasText(raw.name) ? p.a.arena->CopyString(raw.name) : FigureColumnName(p, raw.val);
    p.targets.push_back({expr, name, false});
  }
  constexpr size_t kTargetsMax = 1664;  // as many columns as a row has in Postgres
  if (p.targets.size() > kTargetsMax)
    ThrowAt(p, -1, MakeSqlState("54011"), "target lists can have at most {} entries", kTargetsMax);
}

void ResolveUnknownTargets(ParseState& p) {
  for (TargetEntry& target : p.targets)
    if (target.expr->type == kUnknownOid)
      target.expr = CoerceType(p, target.expr, kTextOid, -1, CoercionContext::kImplicit, false, -1);
}

}  // namespace sluice
