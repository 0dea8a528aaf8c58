// Expressions over nothing, or over a few known columns, computed while planning: for constant
// folding, pruning and LIMIT. One value at a time through the kernels of types/; the executor isn't
// needed.
#pragma once

#include <functional>
#include <optional>

#include "optimizer/planner.h"

namespace sluice {

struct Value {
  bool is_null = true;
  std::string_view bytes = {};  // binary wire format where the type has a codec, else text
};

struct EvaluationInput {
  const SessionSettings* settings;
  Arena* arena;
  std::span<const PlanRequest::Param> params;  // empty: parameters have no known value
  // The value of a kColumn of this level, if it is known; may be empty.
  std::function<std::optional<Value>(const Expr& column)> column = {};
};

// nullopt where the value cannot be known here: a column or parameter without value, something
// without a kernel, anything volatile. An error in the computation (1/0) is nullopt too: whoever
// runs the expression later raises it, if it is reached at all.
std::optional<Value> EvaluateExpr(const Expr& expr, const EvaluationInput& input);

// <0, 0, >0 in the type's default order; both not NULL. nullopt where the type has no order here.
std::optional<int> CompareValues(Oid type, Oid collation, std::string_view a, std::string_view b,
                                 Arena* arena);

// Replaces what can be computed without parameters by constants; now() and the like too: they have
// one value in a statement.
const Expr* FoldConstants(const Expr* expr, const EvaluationInput& input);
const Query* FoldConstantsInQuery(const Query& query, const EvaluationInput& input);

}  // namespace sluice
