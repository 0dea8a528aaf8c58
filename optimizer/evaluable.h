// What can run where. The planner's two questions about an expression.
#pragma once

#include <string>

#include "parser/query.h"

namespace sluice {

class Catalog;

// Whether the executor can compute it here: every function has a kernel (types/kernel.h) or
// aggregate implementation (types/aggregate_list.h), every type a codec, every collation a
// collator.
bool CanEvaluate(const Expr& expr);
// The same, 0A000 by name where it cannot.
void RequireEvaluable(const Expr& expr);
// Whether GROUP BY, DISTINCT and hash joins can work on it here, and whether it can be sorted here.
bool CanGroupBy(Oid type, Oid collation);
bool CanSortBy(const SortKey& key, Oid type);
// The aggregate itself and its arguments, filter and order.
bool CanAggregate(const Expr& aggregate);

// Whether a shard computes the same as we would: immutable (or the short list of stable ones that
// the connection's session setup pins), no reference to what only exists here.
bool CanShip(const Expr& expr, const Catalog& catalog);
// A whole statement, whose tables are checked elsewhere.
bool CanShipQuery(const Query& query, const Catalog& catalog);

}  // namespace sluice
