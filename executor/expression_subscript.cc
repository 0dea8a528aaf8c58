// array[i][j]: the element, or NULL where there is none.
#include "common/error.h"
#include "executor/expression_internal.h"
#include "types/array.h"
#include "types/codec.h"

namespace sluice {
namespace {

class SubscriptStep : public Step {
 public:
  SubscriptStep(const Expr& expr, ExecutionState& state)
      : args_(CompileSteps(expr.args, state)), columns_(args_.size()), out_(expr.type) {}

  const Column& Evaluate(const StepInput& input) override {
    for (size_t i = 0; i < args_.size(); i++) columns_[i] = &args_[i]->Evaluate(input);
    out_.Clear();
    for (size_t i = 0; i < input.count; i++) {
      size_t row = input.Row(i);
      std::string_view element;
      if (Find(row, &element))
        DecodeBinaryValue(out_.column.type, element, &out_.column, row);
      else
        out_.Nulls()[row] = 1;
    }
    return out_.column;
  }

 private:
  bool Find(size_t row, std::string_view* element) const {
    for (const Column* column : columns_)
      if (column->IsNull(row)) return false;
    ArrayReader reader(columns_[0]->At<std::string_view>(row));
    const ArrayHeader& header = reader.header();
    if (static_cast<size_t>(header.dimensions) != columns_.size() - 1) return false;
    int64_t index = 0;
    for (int d = 0; d < header.dimensions; d++) {
      int64_t offset =
          int64_t{columns_[static_cast<size_t>(d) + 1]->At<int32_t>(row)} - header.lower_bounds[d];
      if (offset < 0 || offset >= header.lengths[d]) return false;
      index = index * header.lengths[d] + offset;
    }
    bool is_null = true;
    for (; index >= 0; index--)
      if (!reader.Next(element, &is_null)) return false;
    return !is_null;
  }

  std::vector<StepPtr> args_;
  std::vector<const Column*> columns_;
  ColumnBuffer out_;
};

}  // namespace

StepPtr CompileSubscriptStep(const Expr& expr, ExecutionState& state) {
  return std::make_unique<SubscriptStep>(expr, state);
}

}  // namespace sluice
