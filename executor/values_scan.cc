#include "executor/values_scan.h"

#include "executor/expression.h"
#include "types/codec.h"

namespace sluice {
namespace {

// A constant needs no compiling, and a VALUES list is nearly always made of them.
Column Evaluate(const Expr& expr, ExecutionState& state, Arena* arena) {
  if (expr.kind == ExprKind::kConst)
    return MakeConstantColumn(expr.type, expr.value, expr.is_null, arena);
  return EvaluateConstant(expr, state, arena);
}

void StoreValue(const Column& value, size_t row, ColumnBuffer* to) {
  if (value.IsNull(0)) {
    to->Nulls()[row] = 1;
    return;
  }
  size_t width = WidthOf(value.physical);
  std::memcpy(static_cast<char*>(to->column.data) + row * width, value.data, width);
}

}  // namespace

ValuesScan::ValuesScan(const ValuesScanPlan& plan, ExecutionState& state)
    : Node(plan, state), values_(plan), output_(plan.output) {}

void ValuesScan::NextBatch(Batch* batch) {
  arena_.Reset();
  output_.Clear();
  size_t rows = std::min(kBatchRows, values_.rows_of_expressions.size() - next_);
  for (size_t row = 0; row < rows; row++) {
    std::span<const Expr* const> expressions = values_.rows_of_expressions[next_ + row];
    for (size_t i = 0; i < expressions.size(); i++)
      StoreValue(Evaluate(*expressions[i], state_, &arena_), row, &output_[i]);
  }
  next_ += rows;
  output_.Show(rows, batch);
}

}  // namespace sluice
