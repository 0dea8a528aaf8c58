// Arrays in Postgres's binary format: int32 dimensions, has-null flag, element type; for each
// dimension its size and lower bound; then the elements, each int32 length (-1: NULL) and bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/arena.h"
#include "types/column.h"

namespace sluice {

struct ArrayShape {
  struct Dimension {
    int32_t size, lower_bound;
  };
  std::vector<Dimension> dimensions;  // none: the empty array

  size_t element_count() const;
  bool operator==(const ArrayShape& other) const;
};

// The elements of an array as a column of `shape->element_count()` rows (any number of rows, not
// bound by kBatchRows) of type `element_type`. kBytes elements are views of `wire`. 22P03 on
// damaged bytes.
Column DecodeArray(std::string_view wire, Oid element_type, Arena* arena, ArrayShape* shape);

// Appends the head of an array; the elements follow by AppendArrayElement.
void AppendArrayHead(const ArrayShape& shape, Oid element_type, bool has_nulls, std::string* out);
void AppendArrayElement(const Column& from, size_t row, std::string* out);

}  // namespace sluice
