#include "optimizer/evaluable.h"

#include "catalog/builtin.h"
#include "catalog/catalog.h"
#include "common/error.h"
#include "optimizer/expr_util.h"
#include "types/aggregate_list.h"
#include "types/codec.h"
#include "types/collation.h"
#include "types/compare.h"
#include "types/kernel.h"

namespace sluice {
namespace {

std::string FunctionName(Oid function) {
  const ProcInfo* proc = FindProc(function);
  if (proc == nullptr) return fmt::format("function {}", function);
  std::string text = std::string(proc->name) + "(";
  for (size_t i = 0; i < proc->args.size(); i++)
    text += (i == 0 ? "" : ", ") + FormatType(proc->args[i]);
  return text + ")";
}

// What keeps `expr` itself (not its arguments) from being computed here; empty if nothing.
std::string Obstacle(const Expr& expr) {
  auto no_codec = [](Oid type) {
    return HasBinaryCodec(type) ? std::string()
                                : "type " + FormatType(type) + " in local expressions";
  };
  auto function = [&](Oid oid) -> std::string {
    if (FindKernel(oid) == nullptr) return FunctionName(oid);
    if (expr.input_collation != kInvalidOid && !CanCollate(expr.input_collation))
      return fmt::format("collation {} in local expressions", expr.input_collation);
    for (const Expr* arg : expr.args)
      if (!HasBinaryCodec(arg->type)) return no_codec(arg->type);
    return no_codec(expr.type);
  };
  switch (expr.kind) {
    case ExprKind::kConst:
    case ExprKind::kColumn:
    case ExprKind::kParam:
    case ExprKind::kExecParam:
    case ExprKind::kAnd:
    case ExprKind::kOr:
    case ExprKind::kNot:
    case ExprKind::kIsNull:
    case ExprKind::kIsNotNull:
    case ExprKind::kIsTrue:
    case ExprKind::kIsNotTrue:
    case ExprKind::kIsFalse:
    case ExprKind::kIsNotFalse:
    case ExprKind::kIsUnknown:
    case ExprKind::kIsNotUnknown:
    case ExprKind::kCase:
    case ExprKind::kCoalesce:
    case ExprKind::kCollate:
    case ExprKind::kSubPlan:
      return {};
    case ExprKind::kCall:
    case ExprKind::kIsDistinct:
    case ExprKind::kIsNotDistinct:
    case ExprKind::kNullIf:
    case ExprKind::kAnyOf:
    case ExprKind::kAllOf:
      return function(expr.function);
    case ExprKind::kGreatest:
    case ExprKind::kLeast:
      if (CanGroupBy(expr.type, expr.input_collation)) return {};
      return "GREATEST or LEAST of " + FormatType(expr.type);
    case ExprKind::kRelabel:
      if (HasBinaryCodec(expr.type) == HasBinaryCodec(expr.args[0]->type)) return {};
      return "cast to " + FormatType(expr.type);
    case ExprKind::kCoerceViaIo: {
      std::string why = no_codec(expr.type);
      return why.empty() ? no_codec(expr.args[0]->type) : why;
    }
    case ExprKind::kArrayCoerce:
      if (expr.function != kInvalidOid) return function(expr.function);
      return no_codec(expr.type);
    case ExprKind::kArray:
      return no_codec(expr.type);
    case ExprKind::kAggregate:
      return "aggregate " + FunctionName(expr.function) + " here";
    case ExprKind::kWindow:
      return "window function " + FunctionName(expr.function);
    case ExprKind::kRow:
      return "row expressions";
    case ExprKind::kGrouping:
      return "GROUPING";
    case ExprKind::kSubquery:
      return "this kind of subquery";
    case ExprKind::kSqlValue:
      return "this SQL value function";
  }
  return "this expression";
}

// Stable functions whose answer depends on nothing but settings that every connection is prepared
// with (TimeZone, DateStyle, IntervalStyle, extra_float_digits, bytea_output).
bool IsPinnedStable(const ProcInfo& proc) {
  static constexpr std::string_view kNames[] = {"date_part",
                                                "date_trunc",
                                                "extract",
                                                "timezone",
                                                "to_char",
                                                "to_timestamp",
                                                "to_date",
                                                "age",
                                                "to_number",
                                                "concat",
                                                "concat_ws",
                                                "format",
                                                "array_to_string",
                                                "timestamptz",
                                                "timestamp",
                                                "date",
                                                "time",
                                                "timetz",
                                                "interval_pl_timestamptz",
                                                "timestamptz_pl_interval",
                                                "timestamptz_mi_interval",
                                                "text",
                                                "quote_literal",
                                                "quote_nullable",
                                                "to_json",
                                                "to_jsonb",
                                                "json_build_object",
                                                "jsonb_build_object",
                                                "json_build_array",
                                                "jsonb_build_array",
                                                "date_bin",
                                                "make_timestamptz",
                                                "array_to_json",
                                                "row_to_json",
                                                "generate_series",
                                                "textanycat",
                                                "anytextcat"};
  for (std::string_view name : kNames)
    if (proc.name == name) return true;
  // date_lt_timestamptz, timestamp_cmp_timestamptz, …
  return proc.name.find("timestamptz") != std::string_view::npos;
}

bool CanShipFunction(Oid function) {
  if (function == kInvalidOid) return true;
  const ProcInfo* proc = FindProc(function);
  if (proc == nullptr) return false;
  if (proc->volatility == 'i') return true;
  return proc->volatility == 's' && IsPinnedStable(*proc);
}

bool CanShipType(Oid type, const Catalog& catalog) {
  return type < kFirstUserOid ? FindType(type) != nullptr : catalog.types.contains(type);
}

bool CanShipNode(const Expr& expr, const Catalog& catalog) {
  if (!CanShipType(expr.type, catalog) && expr.type != kInvalidOid) return false;
  switch (expr.kind) {
    case ExprKind::kSqlValue:
    case ExprKind::kRow:
    case ExprKind::kSubPlan:
      return false;
    case ExprKind::kExecParam:
      return !expr.per_row;
    case ExprKind::kArrayCoerce:
      // SQL has no way to say that too long an element is an error.
      return (expr.explicit_cast || expr.typmod < 0) && CanShipFunction(expr.function);
    case ExprKind::kCollate:
      return !catalog.CollationSql(expr.collation).empty();
    default:
      return CanShipFunction(expr.function);
  }
}

}  // namespace

bool CanEvaluate(const Expr& expr) {
  return !AnyExpr(&expr, [](const Expr& e, int) { return !Obstacle(e).empty(); });
}

void RequireEvaluable(const Expr& expr) {
  AnyExpr(&expr, [](const Expr& e, int) {
    std::string why = Obstacle(e);
    if (!why.empty()) Refuse("{} is not supported", why);
    return false;
  });
}

bool CanGroupBy(Oid type, Oid collation) {
  // Equal under a deterministic collation is equal bytes, whatever its order. A database's default
  // is deterministic; of the others only those that are have a collator.
  bool deterministic =
      collation == kInvalidOid || collation == kDefaultCollationOid || CanCollate(collation);
  return HasBinaryCodec(type) && CanHash(type) && FindCompare(type) != nullptr && deterministic;
}

bool CanSortBy(const SortKey& key, Oid type) {
  OrderOperators order = FindOrderOperators(type);
  Oid wanted = key.descending ? order.greater : order.less;
  // Through a binary-coercible type (varchar as text) the operator is the other type's: the order
  // is too.
  const OperatorInfo* given = FindOperator(key.less_operator);
  bool is_default = key.less_operator == wanted ||
                    (given != nullptr && given->name == (key.descending ? ">" : "<"));
  return is_default && HasBinaryCodec(type) && FindCompare(type) != nullptr &&
         (key.collation == kInvalidOid || CanCollate(key.collation));
}

bool CanAggregate(const Expr& aggregate) {
  const AggregateInfo* info = FindAggregate(aggregate.function);
  if (info == nullptr) return false;
  for (const Expr* arg : aggregate.args) {
    bool counted = info->kind == AggregateKind::kCount && !aggregate.distinct;
    if (!CanEvaluate(*arg) || (!counted && !HasBinaryCodec(arg->type))) return false;
    if (aggregate.distinct && !CanGroupBy(arg->type, arg->collation)) return false;
  }
  if (info->kind == AggregateKind::kMin || info->kind == AggregateKind::kMax) {
    if (FindCompare(aggregate.args[0]->type) == nullptr) return false;
    if (aggregate.input_collation != kInvalidOid && !CanCollate(aggregate.input_collation))
      return false;
  }
  for (const SortKey& key : aggregate.order_by)
    if (key.expr == nullptr || !CanEvaluate(*key.expr) || !CanSortBy(key, key.expr->type))
      return false;
  return aggregate.filter == nullptr || CanEvaluate(*aggregate.filter);
}

bool CanShip(const Expr& expr, const Catalog& catalog) {
  return !AnyExpr(&expr, [&](const Expr& e, int) { return !CanShipNode(e, catalog); });
}

bool CanShipQuery(const Query& query, const Catalog& catalog) {
  return !AnyExprInQuery(query, [&](const Expr& e, int) { return !CanShipNode(e, catalog); });
}

}  // namespace sluice
