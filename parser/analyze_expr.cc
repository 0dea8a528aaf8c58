// Raw expressions → typed ones: constants, parameters, casts, CASE, COALESCE, tests.
#include <charconv>

#include "parser/analyzer.h"
#include "parser/walk.h"
#include "types/codec.h"

namespace sluice {
namespace {

constexpr int kParameterMax = 65535;

Expr* TransformParam(ParseState& p, const PgQuery__ParamRef& ref) {
  int location = p.Location(ref.location);
  if (!p.a.query_arguments.empty()) {
    auto arguments = std::exchange(p.a.query_arguments, {});
    if (static_cast<size_t>(ref.number) > arguments.size())
      RefuseAt(p, location, "a call with so few arguments");
    Expr* argument = TransformExpr(p, arguments[static_cast<size_t>(ref.number) - 1]);
    p.a.query_arguments = arguments;
    return argument;
  }
  if (ref.number < 1 || ref.number > kParameterMax)
    ThrowAt(p, location, sqlstate::kUndefinedParameter, "there is no parameter ${}", ref.number);
  std::vector<Oid>& types = *p.a.context.param_types;
  if (types.size() < static_cast<size_t>(ref.number))
    types.resize(static_cast<size_t>(ref.number), kInvalidOid);
  Oid declared = types[static_cast<size_t>(ref.number) - 1];
  Expr* expr = p.New(ExprKind::kParam, declared == kInvalidOid ? kUnknownOid : declared, location);
  expr->param = ref.number - 1;
  if (declared != kInvalidOid) expr->collation = TypeCollation(declared);
  p.a.params.push_back(expr);
  return expr;
}

Expr* TransformTypeCast(ParseState& p, const PgQuery__TypeCast& cast) {
  // libpg_query's grammar takes `date $1` like `date '…'`; Postgres's does not.
  if (cast.location < 0 && cast.arg->node_case == PG_QUERY__NODE__NODE_PARAM_REF)
    ThrowAt(p, p.Location(cast.arg->param_ref->location), sqlstate::kSyntaxError,
            "syntax error at or near \"${}\"", cast.arg->param_ref->number);
  TypeSpec target = ResolveTypeName(p, *cast.type_name);
  const TypeInfo* info = FindType(target.type);
  Expr* arg;
  if (cast.arg->node_case == PG_QUERY__NODE__NODE_A_ARRAY_EXPR && info->element != kInvalidOid &&
      info->length == -1)
    arg = TransformArray(p, *cast.arg->a_array_expr, target.type, info->element, target.typmod);
  else
    arg = TransformExpr(p, cast.arg);
  int location = p.Location(cast.location < 0 ? cast.type_name->location : cast.location);
  Oid source = arg->type;
  Expr* result = CoerceToTarget(p, arg, target.type, target.typmod, CoercionContext::kExplicit,
                                true, location);
  if (result == nullptr)
    ThrowAt(p, location, sqlstate::kCannotCoerce, "cannot cast type {} to {}", TypeText(source),
            TypeText(target.type));
  return result;
}

Expr* TransformCollate(ParseState& p, const PgQuery__CollateClause& clause) {
  Expr* arg = TransformExpr(p, clause.arg);
  int location = p.Location(clause.location);
  if (arg->type == kUnknownOid)
    arg = CoerceType(p, arg, kTextOid, -1, CoercionContext::kImplicit, false, -1);
  if (TypeCollation(arg->type) == kInvalidOid)
    ThrowAt(p, location, sqlstate::kDatatypeMismatch, "collations are not supported by type {}",
            TypeText(arg->type));
  Expr* result = p.New(ExprKind::kCollate, arg->type, location);
  result->typmod = arg->typmod;
  result->collation = CollationByName(p, clause.collname, clause.n_collname, location);
  const Expr* args[] = {arg};
  result->args = p.a.arena->CopyArray(std::span<const Expr* const>(args));
  return result;
}

Expr* TransformBool(ParseState& p, const PgQuery__BoolExpr& expr) {
  ExprKind kind = ExprKind::kNot;
  const char* name = "NOT";
  if (expr.boolop == PG_QUERY__BOOL_EXPR_TYPE__AND_EXPR) kind = ExprKind::kAnd, name = "AND";
  if (expr.boolop == PG_QUERY__BOOL_EXPR_TYPE__OR_EXPR) kind = ExprKind::kOr, name = "OR";
  std::vector<const Expr*> args;
  args.reserve(expr.n_args);
  for (size_t i = 0; i < expr.n_args; i++)
    args.push_back(CoerceToBoolean(p, TransformExpr(p, expr.args[i]), name));
  return MakeBool(p, kind, std::move(args), p.Location(expr.location));
}

int32_t TypmodOfArgs(std::span<const Expr* const> args, Oid type) {
  for (const Expr* arg : args)
    if (arg->type != type || arg->typmod != args[0]->typmod) return -1;
  return args.empty() ? -1 : args[0]->typmod;
}

// CASE x WHEN v becomes CASE WHEN x = v: x is computed again for each, which must not be seen.
Expr* TransformCaseArg(ParseState& p, const RawNode* node) {
  Expr* arg = TransformExpr(p, node);
  if (arg->type == kUnknownOid)
    arg = CoerceType(p, arg, kTextOid, -1, CoercionContext::kImplicit, false, -1);
  if (ContainsVolatile(*arg))
    RefuseAt(p, ExprLocation(*arg), "CASE over the value of a volatile function");
  AssignExprCollations(p, arg);
  return arg;
}

Expr* TransformCase(ParseState& p, const PgQuery__CaseExpr& raw) {
  int location = p.Location(raw.location);
  Expr* arg = nullptr;
  if (raw.arg != nullptr) {
    CopiesScope copies(p, raw.n_args);
    arg = TransformCaseArg(p, raw.arg);
  }
  std::vector<Expr*> conditions, results;
  for (size_t i = 0; i < raw.n_args; i++) {
    const PgQuery__CaseWhen& when = *raw.args[i]->case_when;
    Expr* condition = TransformExpr(p, when.expr);
    if (arg != nullptr) condition = MakeOperator(p, "=", arg, condition, p.Location(when.location));
    conditions.push_back(CoerceToBoolean(p, condition, "CASE/WHEN"));
    results.push_back(TransformExpr(p, when.result));
  }
  Expr* otherwise =
      raw.defresult != nullptr ? TransformExpr(p, raw.defresult) : MakeNull(p, kUnknownOid, -1);
  // The ELSE's type counts first.
  std::vector<Expr*> all{otherwise};
  all.insert(all.end(), results.begin(), results.end());
  Oid type = SelectCommonType(p, all, "CASE");
  Expr* result = p.New(ExprKind::kCase, type, location);
  std::vector<const Expr*> args, values;
  Expr* coerced_else = CoerceToCommon(p, otherwise, type, "CASE/ELSE");
  for (size_t i = 0; i < results.size(); i++) {
    args.push_back(conditions[i]);
    args.push_back(CoerceToCommon(p, results[i], type, "CASE/WHEN"));
    values.push_back(args.back());
  }
  args.push_back(coerced_else);
  values.push_back(coerced_else);
  result->typmod = TypmodOfArgs(values, type);
  result->args = p.a.arena->CopyArray(args);
  return result;
}

Expr* TransformCommonType(ParseState& p, ExprKind kind, const char* name, RawNode** list,
                          size_t count, int location) {
  std::vector<Expr*> exprs = TransformList(p, list, count);
  Oid type = SelectCommonType(p, exprs, name);
  std::vector<const Expr*> args;
  for (Expr* expr : exprs) args.push_back(CoerceToCommon(p, expr, type, name));
  Expr* result = p.New(kind, type, location);
  result->typmod = TypmodOfArgs(args, type);
  result->args = p.a.arena->CopyArray(args);
  return result;
}

Expr* Test(ParseState& p, ExprKind kind, Expr* arg, int location) {
  return MakeBool(p, kind, {arg}, location);
}

Expr* TransformNullTest(ParseState& p, const PgQuery__NullTest& test) {
  ExprKind kind = test.nulltesttype == PG_QUERY__NULL_TEST_TYPE__IS_NULL ? ExprKind::kIsNull
                                                                         : ExprKind::kIsNotNull;
  int location = p.Location(test.location);
  if (test.arg->node_case == PG_QUERY__NODE__NODE_ROW_EXPR) {
    // A row is (not) NULL if all of its fields are.
    std::vector<const Expr*> tests;
    for (Expr* field : TransformList(p, test.arg->row_expr->args, test.arg->row_expr->n_args))
      tests.push_back(Test(p, kind, field, location));
    if (tests.empty()) RefuseAt(p, location, "a test of an empty row");
    return MakeBool(p, ExprKind::kAnd, std::move(tests), location);
  }
  return Test(p, kind, TransformExpr(p, test.arg), location);
}

Expr* TransformBooleanTest(ParseState& p, const PgQuery__BooleanTest& test) {
  static constexpr std::pair<ExprKind, const char*> kTests[] = {
      {ExprKind::kIsTrue, "IS TRUE"},       {ExprKind::kIsNotTrue, "IS NOT TRUE"},
      {ExprKind::kIsFalse, "IS FALSE"},     {ExprKind::kIsNotFalse, "IS NOT FALSE"},
      {ExprKind::kIsUnknown, "IS UNKNOWN"}, {ExprKind::kIsNotUnknown, "IS NOT UNKNOWN"},
  };
  auto [kind, name] = kTests[test.booltesttype - PG_QUERY__BOOL_TEST_TYPE__IS_TRUE];
  Expr* arg = CoerceToBoolean(p, TransformExpr(p, test.arg), name);
  return Test(p, kind, arg, p.Location(test.location));
}

Expr* TransformSqlValue(ParseState& p, const PgQuery__SQLValueFunction& function) {
  Oid type = kNameOid;
  int32_t typmod = -1;
  switch (function.op) {
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_DATE:
      type = kDateOid;
      break;
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_TIME_N:
      typmod = function.typmod;
      [[fallthrough]];
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_TIME:
      type = kTimetzOid;
      break;
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_TIMESTAMP_N:
      typmod = function.typmod;
      [[fallthrough]];
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_TIMESTAMP:
      type = kTimestamptzOid;
      break;
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIME_N:
      typmod = function.typmod;
      [[fallthrough]];
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIME:
      type = kTimeOid;
      break;
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIMESTAMP_N:
      typmod = function.typmod;
      [[fallthrough]];
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIMESTAMP:
      type = kTimestampOid;
      break;
    default:
      break;
  }
  Expr* expr = p.New(ExprKind::kSqlValue, type, p.Location(function.location));
  expr->typmod = typmod < 0 ? -1 : std::min(typmod, 6);
  // Counted from 0, as in Postgres's SQLValueFunctionOp.
  expr->param = function.op - PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_DATE;
  expr->collation = TypeCollation(type);
  return expr;
}

// B'101' comes as b101, X'1F' as x1F.
Expr* BitConst(ParseState& p, std::string_view text, int location) {
  std::string bits;
  if (!text.empty() && text[0] == 'x') {
    for (char c : text.substr(1)) {
      int digit = c >= '0' && c <= '9'                     ? c - '0'
                  : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                           : -1;
      if (digit < 0)
        ThrowAt(p, location, sqlstate::kInvalidTextRepresentation,
                "\"{}\" is not a valid hexadecimal digit", c);
      for (int bit = 3; bit >= 0; bit--) bits += (digit >> bit) & 1 ? '1' : '0';
    }
  } else {
    for (char c : text.substr(std::min<size_t>(1, text.size()))) {
      if (c != '0' && c != '1')
        ThrowAt(p, location, sqlstate::kInvalidTextRepresentation,
                "\"{}\" is not a valid binary digit", c);
      bits += c;
    }
  }
  Expr* result = p.New(ExprKind::kConst, kBitOid, location);
  result->value = p.a.arena->CopyString(bits);  // its text form, as of all types without a codec
  return result;
}

Expr* NumberConst(ParseState& p, std::string_view text, int location) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) {
    if (value == static_cast<int32_t>(value))
      return MakeInt4(p, static_cast<int32_t>(value), location);
    return MakeInt8(p, value, location);
  }
  return MakeConst(p, kNumericOid, text, location);
}

}  // namespace

Expr* TransformConst(ParseState& p, const PgQuery__AConst& constant) {
  int location = p.Location(constant.location);
  if (constant.isnull) return MakeNull(p, kUnknownOid, location);
  switch (constant.val_case) {
    case PG_QUERY__A__CONST__VAL_IVAL:
      return MakeInt4(p, constant.ival->ival, location);
    case PG_QUERY__A__CONST__VAL_FVAL:
      return NumberConst(p, constant.fval->fval, location);
    case PG_QUERY__A__CONST__VAL_BOOLVAL:
      return MakeBoolConst(p, constant.boolval->boolval, location);
    case PG_QUERY__A__CONST__VAL_BSVAL:
      return BitConst(p, constant.bsval->bsval, location);
    case PG_QUERY__A__CONST__VAL_SVAL: {
      Expr* literal = p.New(ExprKind::kConst, kUnknownOid, location);
      literal->value = p.a.arena->CopyString(constant.sval->sval);
      return literal;
    }
    default:
      RefuseAt(p, location, "this kind of constant");
  }
}

std::vector<Expr*> TransformList(ParseState& p, RawNode** list, size_t count) {
  std::vector<Expr*> exprs;
  exprs.reserve(count);
  for (size_t i = 0; i < count; i++) exprs.push_back(TransformExpr(p, list[i]));
  return exprs;
}

// ARRAY[…]; with a type if the array is cast at once: then its elements are.
Expr* TransformArray(ParseState& p, const PgQuery__AArrayExpr& array, Oid array_type,
                     Oid element_type, int32_t typmod) {
  int location = p.Location(array.location);
  std::vector<Expr*> elements;
  bool nested = false;
  for (size_t i = 0; i < array.n_elements; i++) {
    const RawNode* node = array.elements[i];
    if (node->node_case == PG_QUERY__NODE__NODE_A_ARRAY_EXPR) {
      elements.push_back(TransformArray(p, *node->a_array_expr, array_type, element_type, typmod));
      nested = true;
      continue;
    }
    Expr* element = TransformExpr(p, node);
    const TypeInfo* info = FindType(element->type);
    nested = nested || (element->type != kUnknownOid && info != nullptr &&
                        info->element != kInvalidOid && info->length == -1);
    elements.push_back(element);
  }
  Oid coerce_to = element_type;
  bool explicit_cast = array_type != kInvalidOid;
  if (explicit_cast) {
    if (nested) coerce_to = array_type;
  } else {
    if (elements.empty()) {
      QueryError e(
          MakeError(sqlstate::kIndeterminateDatatype, "cannot determine type of empty array")
              .Hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
              .At(ErrorPosition(p, location)));
      throw e;
    }
    coerce_to = SelectCommonType(p, elements, "ARRAY");
    const TypeInfo* info = FindType(coerce_to);
    array_type = nested ? coerce_to : info == nullptr ? kInvalidOid : info->array;
    if (array_type == kInvalidOid)
      ThrowAt(p, location, sqlstate::kUndefinedObject, "could not find array type for data type {}",
              TypeText(coerce_to));
  }
  std::vector<const Expr*> args;
  for (Expr* element : elements) {
    Expr* coerced = explicit_cast ? CoerceToTarget(p, element, coerce_to, nested ? -1 : typmod,
                                                   CoercionContext::kExplicit, true, -1)
                                  : CoerceToCommon(p, element, coerce_to, "ARRAY");
    if (coerced == nullptr)
      ThrowAt(p, ExprLocation(*element), sqlstate::kCannotCoerce, "cannot cast type {} to {}",
              TypeText(element->type), TypeText(coerce_to));
    args.push_back(coerced);
  }
  Expr* result = p.New(ExprKind::kArray, array_type, location);
  result->typmod = nested ? -1 : TypmodOfArgs(args, coerce_to);
  if (explicit_cast && typmod >= 0) result->typmod = typmod;
  result->args = p.a.arena->CopyArray(args);
  return nested ? result : FoldArray(p, result);
}

Expr* TransformExpr(ParseState& p, const RawNode* node) {
  switch (node->node_case) {
    case PG_QUERY__NODE__NODE_COLUMN_REF:
      return TransformColumnRef(p, *node->column_ref);
    case PG_QUERY__NODE__NODE_PARAM_REF:
      return TransformParam(p, *node->param_ref);
    case PG_QUERY__NODE__NODE_A_CONST:
      return TransformConst(p, *node->a_const);
    case PG_QUERY__NODE__NODE_A_EXPR:
      return TransformAExpr(p, *node->a_expr);
    case PG_QUERY__NODE__NODE_BOOL_EXPR:
      return TransformBool(p, *node->bool_expr);
    case PG_QUERY__NODE__NODE_FUNC_CALL:
      return TransformFuncCall(p, *node->func_call);
    case PG_QUERY__NODE__NODE_TYPE_CAST:
      return TransformTypeCast(p, *node->type_cast);
    case PG_QUERY__NODE__NODE_COLLATE_CLAUSE:
      return TransformCollate(p, *node->collate_clause);
    case PG_QUERY__NODE__NODE_SUB_LINK:
      return TransformSublink(p, *node->sub_link);
    case PG_QUERY__NODE__NODE_CASE_EXPR:
      return TransformCase(p, *node->case_expr);
    case PG_QUERY__NODE__NODE_NULL_TEST:
      return TransformNullTest(p, *node->null_test);
    case PG_QUERY__NODE__NODE_BOOLEAN_TEST:
      return TransformBooleanTest(p, *node->boolean_test);
    case PG_QUERY__NODE__NODE_SQLVALUE_FUNCTION:
      return TransformSqlValue(p, *node->sqlvalue_function);
    case PG_QUERY__NODE__NODE_A_ARRAY_EXPR:
      return TransformArray(p, *node->a_array_expr, kInvalidOid, kInvalidOid, -1);
    case PG_QUERY__NODE__NODE_COALESCE_EXPR:
      return TransformCommonType(p, ExprKind::kCoalesce, "COALESCE", node->coalesce_expr->args,
                                 node->coalesce_expr->n_args,
                                 p.Location(node->coalesce_expr->location));
    case PG_QUERY__NODE__NODE_MIN_MAX_EXPR: {
      const PgQuery__MinMaxExpr& raw = *node->min_max_expr;
      bool greatest = raw.op == PG_QUERY__MIN_MAX_OP__IS_GREATEST;
      return TransformCommonType(p, greatest ? ExprKind::kGreatest : ExprKind::kLeast,
                                 greatest ? "GREATEST" : "LEAST", raw.args, raw.n_args,
                                 p.Location(raw.location));
    }
    case PG_QUERY__NODE__NODE_ROW_EXPR:
      RefuseAt(p, p.Location(node->row_expr->location), "a row as a value");
    case PG_QUERY__NODE__NODE_A_INDIRECTION:
      return TransformSubscripts(p, *node->a_indirection);
    case PG_QUERY__NODE__NODE_GROUPING_FUNC:
      return TransformGrouping(p, *node->grouping_func);
    case PG_QUERY__NODE__NODE_NAMED_ARG_EXPR:
      RefuseAt(p, p.Location(node->named_arg_expr->location), "named arguments");
    case PG_QUERY__NODE__NODE_SET_TO_DEFAULT:
      ThrowAt(p, p.Location(node->set_to_default->location), sqlstate::kSyntaxError,
              "DEFAULT is not allowed in this context");
    case PG_QUERY__NODE__NODE_XML_EXPR:
    case PG_QUERY__NODE__NODE_XML_SERIALIZE:
      RefuseAt(p, -1, "XML expressions");
    case PG_QUERY__NODE__NODE_CURRENT_OF_EXPR:
      RefuseAt(p, -1, "WHERE CURRENT OF");
    default:
      RefuseAt(p, -1, "this kind of expression");
  }
}

Expr* TransformWhere(ParseState& p, const RawNode* node, Clause clause, const char* construct) {
  if (node == nullptr) return nullptr;
  ClauseScope scope(p, clause);
  return CoerceToBoolean(p, TransformExpr(p, node), construct);
}

}  // namespace sluice
