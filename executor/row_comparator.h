// The order of stored rows by SQL's ORDER BY keys.
#pragma once

#include "executor/row_layout.h"
#include "types/compare.h"

namespace sluice {

struct RowSortKey {
  size_t column;  // of the layout
  bool descending;
  bool nulls_first;
  Oid collation;
};

class RowComparator {
 public:
  // Throws 0A000 for a type without an order here.
  RowComparator(const RowLayout* layout, std::span<const RowSortKey> keys);

  // <0, 0, >0: the place of row a against row b. `from`: the first key to look at.
  int Compare(const char* a, const char* b, size_t from = 0);
  // The first key's value at `row` of `column` (a batch's column, or the view of a stored row), as
  // a number: where two numbers differ, the rows compare like them; where they are equal, Compare
  // decides.
  uint64_t Prefix(const Column& column, size_t row) const;
  uint64_t Prefix(const char* row) const { return Prefix(layout_->View(row, first_column()), 0); }
  size_t first_column() const { return keys_[0].sort.column; }
  // Whether equal prefixes mean equal first keys, NULLs apart.
  bool prefix_is_exact() const { return prefix_is_exact_; }

 private:
  struct Key {
    RowSortKey sort;
    CompareFn compare;
    const Collator* collation;
    Column view_a, view_b;
  };

  const RowLayout* layout_;
  std::vector<Key> keys_;
  bool prefix_is_exact_;
};

// Collator of a sort key: null where the type has no collation.
const Collator* CollatorOrNull(Oid collation);

}  // namespace sluice
