#include "stream/delta_filter.h"

namespace sluice {

DeltaFilter::DeltaFilter(const FilterPlan& plan, const DeltaOperator& child, ViewContext& context)
    : DeltaOperator(context),
      keyed_(child.keyed()),
      by_shard_(child.keyed_by_shard()),
      key_columns_(child.key_columns()),
      condition_({&plan.condition, 1}, plan.children[0]->output, context),
      selection_(ColumnTypes(plan.output)) {}

void DeltaFilter::Push(size_t, const DeltaBatch& batch) {
  DeltaBatch good = condition_.Evaluate(batch);
  if (good.rows.rows == 0) return;
  const Column& value = condition_.columns()[0];
  uint32_t selected[kBatchRows];
  size_t count = 0;
  for (size_t row = 0; row < good.rows.rows; row++)
    if (!value.IsNull(row) && value.At<uint8_t>(row) != 0)
      selected[count++] = static_cast<uint32_t>(row);
  if (count == good.rows.rows) return Emit(good);
  if (count > 0) Emit(selection_.Select(good, selected, count));
}

DeltaProject::DeltaProject(const ProjectPlan& plan, const DeltaOperator& child,
                           ViewContext& context)
    : DeltaOperator(context),
      keyed_(child.keyed()),
      by_shard_(child.keyed_by_shard()),
      expressions_(plan.expressions, plan.children[0]->output, context) {
  for (int key : child.key_columns()) {
    int place = -1;
    for (size_t i = 0; i < plan.expressions.size() && place < 0; i++) {
      const Expr& expr = *plan.expressions[i];
      if (expr.kind == ExprKind::kColumn && expr.column == key) place = static_cast<int>(i);
    }
    if (place < 0) {
      key_columns_.clear();
      break;
    }
    key_columns_.push_back(place);
  }
}

void DeltaProject::Push(size_t, const DeltaBatch& batch) {
  DeltaBatch good = expressions_.Evaluate(batch);
  if (good.rows.rows == 0) return;
  columns_.assign(expressions_.columns().begin(), expressions_.columns().end());
  Emit({{good.rows.rows, columns_}, good.weights, good.keys});
}

}  // namespace sluice
