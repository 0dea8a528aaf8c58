#include "parser/analyzer.h"

namespace sluice {
namespace {

int Leftmost(int a, int b) {
  return a < 0 ? b : b < 0 ? a : std::min(a, b);
}

int Location(const RawNode* node) {
  if (node == nullptr) return -1;
  switch (node->node_case) {
    case PG_QUERY__NODE__NODE_COLUMN_REF:
      return node->column_ref->location;
    case PG_QUERY__NODE__NODE_PARAM_REF:
      return node->param_ref->location;
    case PG_QUERY__NODE__NODE_A_CONST:
      return node->a_const->location;
    case PG_QUERY__NODE__NODE_FUNC_CALL:
      return node->func_call->location;
    case PG_QUERY__NODE__NODE_A_EXPR:
      return Leftmost(node->a_expr->location, Location(node->a_expr->lexpr));
    case PG_QUERY__NODE__NODE_BOOL_EXPR:
      return Leftmost(node->bool_expr->location, Location(node->bool_expr->args[0]));
    case PG_QUERY__NODE__NODE_TYPE_CAST:
      return Leftmost(Leftmost(Location(node->type_cast->arg), node->type_cast->location),
                      node->type_cast->type_name->location);
    case PG_QUERY__NODE__NODE_COLLATE_CLAUSE:
      return Location(node->collate_clause->arg);
    case PG_QUERY__NODE__NODE_CASE_EXPR:
      return node->case_expr->location;
    case PG_QUERY__NODE__NODE_COALESCE_EXPR:
      return node->coalesce_expr->location;
    case PG_QUERY__NODE__NODE_MIN_MAX_EXPR:
      return node->min_max_expr->location;
    case PG_QUERY__NODE__NODE_A_ARRAY_EXPR:
      return node->a_array_expr->location;
    case PG_QUERY__NODE__NODE_ROW_EXPR:
      return node->row_expr->location;
    case PG_QUERY__NODE__NODE_SUB_LINK:
      return Leftmost(Location(node->sub_link->testexpr), node->sub_link->location);
    case PG_QUERY__NODE__NODE_NULL_TEST:
      return Leftmost(Location(node->null_test->arg), node->null_test->location);
    case PG_QUERY__NODE__NODE_BOOLEAN_TEST:
      return Leftmost(Location(node->boolean_test->arg), node->boolean_test->location);
    case PG_QUERY__NODE__NODE_SQLVALUE_FUNCTION:
      return node->sqlvalue_function->location;
    default:
      return -1;
  }
}

}  // namespace

int RawLocation(const ParseState& p, const RawNode* node) {
  return p.Location(Location(node));
}

}  // namespace sluice
