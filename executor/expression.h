// Expressions, compiled once a node into a list of kernel steps over columns.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "executor/node.h"
#include "optimizer/plan.h"

namespace sluice {

class CompiledExpression {
 public:
  // Throws 0A000 by name for what has no kernel (the planner asks CanEvaluate first, so this is a
  // bug's net).
  static std::unique_ptr<CompiledExpression> Compile(const Expr& expr, ExecutionState& state);
  virtual ~CompiledExpression() = default;

  // The value for rows 0..rows of the input (outer, and inner for joins; inner may be null). The
  // result is valid until the next call or the reset of `arena`. `rows_list` as in
  // KernelCall::rows.
  virtual const Column& Evaluate(const Batch& outer, const Batch* inner, size_t rows, Arena* arena,
                                 const uint32_t* rows_list = nullptr) = 0;
};

// Evaluates a condition: writes the indexes of the rows where it is true; returns how many.
size_t SelectRows(CompiledExpression& condition, const Batch& outer, const Batch* inner,
                  size_t rows, Arena* arena, uint32_t* selected);

// A row-less expression (constants and parameters) → one-row column.
Column EvaluateConstant(const Expr& expr, ExecutionState& state, Arena* arena);

}  // namespace sluice
