// What can run where. The planner's two questions about an expression.
#pragma once

#include "parser/query.h"

namespace sluice {

class Catalog;

// Whether the executor can compute it here: every function has a kernel (types/kernel.h) or aggregate
// implementation (types/aggregate_list.h), every type a codec, every collation a collator.
bool CanEvaluate(const Expr& expr);
// Whether a shard computes the same as we would: immutable (or the short list of stable ones that the
// connection's session setup pins), no reference to what only exists here.
bool CanShip(const Expr& expr, const Catalog& catalog);

}  // namespace sluice
