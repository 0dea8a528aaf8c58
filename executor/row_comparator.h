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
  // The 8 most significant bytes of the first key's order, NULLs apart: where two prefixes differ, the rows
  // compare like them; where they are equal, Compare decides. Only for rows whose first key is not NULL.
  uint64_t Prefix(const char* row) const;
  // 0, 1 or 2: NULLs first, values, NULLs last.
  int NullClass(const char* row) const;
  // Whether equal prefixes mean equal first keys.
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
