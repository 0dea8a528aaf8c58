#include "executor/init_plan.h"

#include "executor/array_value.h"
#include "executor/column_buffer.h"
#include "executor/plan_streams.h"
#include "executor/sub_plan.h"
#include "types/codec.h"

namespace sluice {
namespace {

// Results live in the query's shared arena: workers read them too.
Column RunScalar(Node* node, Oid type, Arena* arena) {
  Batch batch;
  std::optional<Column> value;
  for (node->Next(&batch); batch.rows > 0; node->Next(&batch)) {
    if (value || batch.rows > 1)
      Throw(sqlstate::kCardinalityViolation,
            "more than one row returned by a subquery used as an expression");
    value = CopyValue(batch.columns[0], 0, arena);
  }
  return value ? *value : MakeConstantColumn(type, {}, true, arena);
}

Column RunExists(Node* node, Arena* arena) {
  Batch batch;
  node->Next(&batch);
  return MakeConstantColumn(kBoolOid, std::string_view(batch.rows > 0 ? "\1" : "\0", 1), false,
                            arena);
}

Column RunArray(Node* node, Oid type, Arena* arena) {
  std::string elements, array;
  int32_t count = 0;
  bool has_nulls = false;
  Batch batch;
  for (node->Next(&batch); batch.rows > 0; node->Next(&batch)) {
    const Column& column = batch.columns[0];
    for (size_t row = 0; row < batch.rows; row++) {
      AppendArrayElement(column, row, &elements);
      has_nulls |= column.IsNull(row);
    }
    count += static_cast<int32_t>(batch.rows);
  }
  ArrayShape shape;
  if (count > 0) shape.dimensions.push_back({count, 1});
  AppendArrayHead(shape, ElementTypeOf(type), has_nulls, &array);
  return MakeConstantColumn(type, arena->CopyString(array + elements), false, arena);
}

}  // namespace

Column SublinkResult(Node* node, SublinkKind kind, Oid type, Arena* arena) {
  if (kind == SublinkKind::kExists) return RunExists(node, arena);
  return kind == SublinkKind::kArray ? RunArray(node, type, arena) : RunScalar(node, type, arena);
}

void RunInitPlan(const InitPlan& init_plan, ExecutionState& state) {
  PlanStreams streams(*init_plan.plan, state);
  streams.AwaitAdmission();
  std::vector<std::unique_ptr<SubPlanRunner>> sub_plans(state.statement->sub_plans.size());
  auto* outer = std::exchange(state.sub_plans, &sub_plans);
  std::unique_ptr<Node> node = MakeNode(*init_plan.plan, state);
  state.exec_params[static_cast<size_t>(init_plan.param)] =
      SublinkResult(node.get(), init_plan.kind, init_plan.type, state.context->shared_arena);
  node.reset();
  state.sub_plans = outer;
}

}  // namespace sluice
