// Expressions as EXPLAIN shows them: near to SQL, without the casts that a shard needs.
#pragma once

#include <functional>
#include <string>

#include "optimizer/plan.h"
#include "parser/query.h"

namespace sluice {

using DescribeColumn = std::function<std::string(const Expr& column)>;

std::string DescribeExpr(const Expr& expr, const DescribeColumn& column);
// An expression of `plan` over its children's outputs.
std::string DescribePlanExpr(const Expr& expr, const Plan& plan);
std::string DescribeAggregate(const AggregateCall& call, const Plan& plan);
std::string DescribeSortKeys(std::span<const SortKey> keys, std::span<const OutputColumn> output);

}  // namespace sluice
