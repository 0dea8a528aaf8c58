// Order, equality and hashing of values: what ORDER BY, GROUP BY, DISTINCT, joins and merges use.
// The default btree operator class of each type: -0 = 0, NaN is the largest and equals itself, 1.0
// = 1.00.
#pragma once

#include "types/collation.h"
#include "types/column.h"

namespace sluice {

// <0, 0, >0. Rows must not be NULL.
using CompareFn = int (*)(const Column& a, size_t row_a, const Column& b, size_t row_b,
                          const Collator* collation);

// nullptr for types without an order here.
CompareFn FindCompare(Oid type);

// hashes[i] = Combine(hashes[i], hash of row i); NULL hashes to a constant. Values equal under
// FindCompare hash alike (text under a nondeterministic collation is refused elsewhere, so bytes
// do).
void HashColumn(const Column& column, size_t rows, uint64_t* hashes);
bool CanHash(Oid type);

// Whether two values are equal; both NULL counts as equal (GROUP BY's "not distinct").
bool NotDistinct(const Column& a, size_t row_a, const Column& b, size_t row_b);

}  // namespace sluice
