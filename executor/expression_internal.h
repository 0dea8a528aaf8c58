// Inside executor/expression*.cc: a step of a compiled expression, and what all steps share.
#pragma once

#include "executor/column_buffer.h"
#include "executor/expression.h"
#include "types/kernel.h"

namespace sluice {

// What a step is asked for: its value at `count` rows, 0..count or those in `rows`. A step never
// looks at other rows: they may be ones that an enclosing AND, OR, CASE or COALESCE has decided
// already, and for which evaluating might raise an error that must not be.
struct StepInput {
  const Batch* outer;
  const Batch* inner;
  const uint32_t* rows;
  size_t count;
  Arena* arena;

  size_t Row(size_t i) const { return rows == nullptr ? i : rows[i]; }
  StepInput With(const uint32_t* some_rows, size_t some_count) const {
    StepInput input = *this;
    input.rows = some_rows;
    input.count = some_count;
    return input;
  }
};

class Step {
 public:
  virtual ~Step() = default;
  // Valid until the next call. Rows not asked for are undefined. With no rows asked for nothing is
  // evaluated, and the result may be anything of the right type.
  virtual const Column& Evaluate(const StepInput& input) = 0;
};
using StepPtr = std::unique_ptr<Step>;

// A list of row numbers.
struct RowList {
  size_t count = 0;
  uint32_t rows[kBatchRows];

  void Add(size_t row) { rows[count++] = static_cast<uint32_t>(row); }
};

StepPtr CompileStep(const Expr& expr, ExecutionState& state);
std::vector<StepPtr> CompileSteps(std::span<const Expr* const> exprs, ExecutionState& state);
// One function a file.
StepPtr CompileLogicStep(const Expr& expr,
                         ExecutionState& state);  // AND, OR, CASE, IS …, COALESCE, …
StepPtr CompileArrayStep(const Expr& expr,
                         ExecutionState& state);  // ANY, ALL, ARRAY[…], array casts

// Calls `kernel` as SQL does: strict functions are NULL at rows with a NULL argument and are not
// called there; with constant arguments only it is called once. `out` is cleared first.
void CallKernel(const Kernel& kernel, std::span<const Column* const> args, const StepInput& input,
                const Collator* collation, EvalContext* context, ColumnBuffer* out);
const Kernel& KernelOrRefuse(Oid function);

}  // namespace sluice
