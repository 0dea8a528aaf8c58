#include "optimizer/describe.h"

#include "catalog/builtin.h"
#include "catalog/quote.h"
#include "types/codec.h"
#include "types/kernel.h"

namespace sluice {
namespace {

std::string ProcName(Oid function) {
  const ProcInfo* proc = FindProc(function);
  return proc == nullptr ? fmt::format("function_{}", function) : std::string(proc->name);
}

std::string Constant(const Expr& expr) {
  if (expr.is_null) return "NULL::" + FormatType(expr.type);
  std::string text;
  if (HasBinaryCodec(expr.type)) {
    Arena arena;
    AppendText(MakeConstantColumn(expr.type, expr.value, false, &arena), 0, SessionSettings(),
               &text);
  } else {
    text = expr.value;
  }
  if (expr.type == kBoolOid) return text == "t" ? "true" : "false";
  if (expr.type == kInt4Oid && !text.starts_with('-')) return text;
  if (text.size() > 256) text = text.substr(0, 256) + "...";
  return QuoteLiteral(text) + "::" + FormatType(expr.type);
}

std::string List(std::span<const Expr* const> args, const DescribeColumn& column,
                 const char* separator = ", ") {
  std::string text;
  for (size_t i = 0; i < args.size(); i++)
    text += (i == 0 ? "" : separator) + DescribeExpr(*args[i], column);
  return text;
}

std::string Call(const Expr& expr, const DescribeColumn& column) {
  const OperatorInfo* oper = expr.oper == kInvalidOid ? nullptr : FindOperator(expr.oper);
  if (oper != nullptr && expr.args.size() == 2)
    return "(" + List(expr.args, column, (" " + std::string(oper->name) + " ").c_str()) + ")";
  if (oper != nullptr && expr.args.size() == 1)
    return "(" + std::string(oper->name) + " " + List(expr.args, column) + ")";
  if (expr.explicit_cast && !expr.args.empty())
    return "(" + DescribeExpr(*expr.args[0], column) + ")::" + FormatType(expr.type, expr.typmod);
  return ProcName(expr.function) + "(" + List(expr.args, column) + ")";
}

std::string Aggregate(Oid function, bool star, bool distinct, const std::string& args,
                      const std::string& order, const std::string& filter) {
  std::string name = function == kSumInt8ToInt8 ? "sum" : ProcName(function);
  std::string text = name + "(" + (distinct ? "DISTINCT " : "") + (star ? "*" : args);
  if (!order.empty()) text += " ORDER BY " + order;
  text += ")";
  if (!filter.empty()) text += " FILTER (WHERE " + filter + ")";
  return text;
}

std::string Order(std::span<const SortKey> keys, const DescribeColumn& column) {
  std::string text;
  for (const SortKey& key : keys) {
    if (!text.empty()) text += ", ";
    if (key.expr != nullptr) text += DescribeExpr(*key.expr, column);
    if (key.descending) text += " DESC";
  }
  return text;
}

}  // namespace

std::string DescribeExpr(const Expr& expr, const DescribeColumn& column) {
  auto arg = [&](size_t i) { return DescribeExpr(*expr.args[i], column); };
  auto test = [&](const char* suffix) { return "(" + arg(0) + " " + suffix + ")"; };
  auto function = [&](const char* name) { return name + ("(" + List(expr.args, column)) + ")"; };
  auto quantified = [&](const char* word) {
    const OperatorInfo* oper = FindOperator(expr.oper);
    return "(" + arg(0) + " " + std::string(oper == nullptr ? "=" : oper->name) + " " + word +
           " (" + arg(1) + "))";
  };
  switch (expr.kind) {
    case ExprKind::kConst:
      return Constant(expr);
    case ExprKind::kColumn:
      return column(expr);
    case ExprKind::kParam:
      return fmt::format("${}", expr.param + 1);
    case ExprKind::kExecParam:
      if (expr.per_row) return fmt::format("${}", expr.param + 1);
      return fmt::format("(InitPlan {}).col1", expr.param + 1);
    case ExprKind::kCall:
      return Call(expr, column);
    case ExprKind::kAggregate:
      return Aggregate(expr.function, expr.star, expr.distinct, List(expr.args, column),
                       Order(expr.order_by, column),
                       expr.filter == nullptr ? "" : DescribeExpr(*expr.filter, column));
    case ExprKind::kWindow:
      return ProcName(expr.function) + "(" + List(expr.args, column) + ") OVER (?)";
    case ExprKind::kAnd:
      return "(" + List(expr.args, column, " AND ") + ")";
    case ExprKind::kOr:
      return "(" + List(expr.args, column, " OR ") + ")";
    case ExprKind::kNot:
      return "(NOT " + arg(0) + ")";
    case ExprKind::kIsNull:
      return test("IS NULL");
    case ExprKind::kIsNotNull:
      return test("IS NOT NULL");
    case ExprKind::kIsTrue:
      return test("IS TRUE");
    case ExprKind::kIsNotTrue:
      return test("IS NOT TRUE");
    case ExprKind::kIsFalse:
      return test("IS FALSE");
    case ExprKind::kIsNotFalse:
      return test("IS NOT FALSE");
    case ExprKind::kIsUnknown:
      return test("IS UNKNOWN");
    case ExprKind::kIsNotUnknown:
      return test("IS NOT UNKNOWN");
    case ExprKind::kIsDistinct:
      return "(" + List(expr.args, column, " IS DISTINCT FROM ") + ")";
    case ExprKind::kIsNotDistinct:
      return "(" + List(expr.args, column, " IS NOT DISTINCT FROM ") + ")";
    case ExprKind::kCase: {
      std::string text = "CASE";
      for (size_t i = 0; i + 1 < expr.args.size(); i += 2)
        text += " WHEN " + arg(i) + " THEN " + arg(i + 1);
      return text + " ELSE " + arg(expr.args.size() - 1) + " END";
    }
    case ExprKind::kCoalesce:
      return function("COALESCE");
    case ExprKind::kGreatest:
      return function("GREATEST");
    case ExprKind::kLeast:
      return function("LEAST");
    case ExprKind::kNullIf:
      return function("NULLIF");
    case ExprKind::kRelabel:
    case ExprKind::kCoerceViaIo:
    case ExprKind::kArrayCoerce:
      return "(" + arg(0) + ")::" + FormatType(expr.type, expr.typmod);
    case ExprKind::kCollate:
      return "(" + arg(0) + " COLLATE)";
    case ExprKind::kAnyOf:
      return quantified("ANY");
    case ExprKind::kAllOf:
      return quantified("ALL");
    case ExprKind::kArray:
      return "ARRAY[" + List(expr.args, column) + "]";
    case ExprKind::kRow:
      return "ROW(" + List(expr.args, column) + ")";
    case ExprKind::kSubquery:
      return "(SubPlan)";
    case ExprKind::kGrouping:
      return expr.args.empty() ? "(grouping set)" : function("GROUPING");
    case ExprKind::kSubPlan:
      return fmt::format("(SubPlan {})", expr.param + 1);
    case ExprKind::kSqlValue:
      return "SQLValueFunction";
    default:
      return "?";
  }
}

std::string DescribePlanExpr(const Expr& expr, const Plan& plan) {
  return DescribeExpr(expr, [&](const Expr& column) -> std::string {
    size_t child = column.rel == kInner ? 1 : 0;
    if (child >= plan.children.size()) return fmt::format("column{}", column.column + 1);
    const auto& output = plan.children[child]->output;
    if (static_cast<size_t>(column.column) >= output.size())
      return fmt::format("column{}", column.column + 1);
    return std::string(output[static_cast<size_t>(column.column)].name);
  });
}

std::string DescribeAggregate(const AggregateCall& call, const Plan& plan) {
  std::string args;
  for (const Expr* arg : call.args)
    args += (args.empty() ? "" : ", ") + DescribePlanExpr(*arg, plan);
  std::string order;
  for (const SortKey& key : call.order_by) {
    order += (order.empty() ? "" : ", ") + DescribePlanExpr(*key.expr, plan);
    if (key.descending) order += " DESC";
  }
  return Aggregate(call.function, call.star, call.distinct, args, order,
                   call.filter == nullptr ? "" : DescribePlanExpr(*call.filter, plan));
}

std::string DescribeSortKeys(std::span<const SortKey> keys, std::span<const OutputColumn> output) {
  std::string text;
  for (const SortKey& key : keys) {
    if (!text.empty()) text += ", ";
    text += output[static_cast<size_t>(key.target)].name;
    if (key.descending) text += " DESC";
    if (key.nulls_first != key.descending) text += key.nulls_first ? " NULLS FIRST" : " NULLS LAST";
  }
  return text;
}

}  // namespace sluice
