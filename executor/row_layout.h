// Rows as contiguous bytes, for what outlives a batch: group keys, sorted rows, hash table rows,
// spill files.
//
//   [header, for the user of the rows][null byte a column][fixed slots, 8-aligned][bytes of kBytes
//   values]
//
// A kBytes slot holds a string_view into the end of its own row. The whole row is one piece of
// memory, so that it can be written to a file as it is; Relocate() repairs the views after reading
// it back.
#pragma once

#include <span>
#include <vector>

#include "common/arena.h"
#include "executor/column_buffer.h"
#include "types/column.h"

namespace sluice {

class RowLayout {
 public:
  RowLayout(std::span<const Oid> types, size_t header_bytes);

  size_t column_count() const { return columns_.size(); }
  size_t header_bytes() const { return header_bytes_; }
  Oid type(size_t column) const { return columns_[column].type; }

  // Copies rows (rows null: 0..count) of `columns` into `arena`; out[i] is row i's place. The
  // header is left uninitialised.
  void Store(std::span<const Column> columns, const uint32_t* rows, size_t count, Arena* arena,
             char** out) const;

  bool IsNull(const char* row, size_t column) const { return row[header_bytes_ + column] != 0; }
  const char* Slot(const char* row, size_t column) const { return row + columns_[column].offset; }
  // The value as a one-row column over the row's memory.
  Column View(const char* row, size_t column) const;
  // The same where a view with the right type is at hand: cheaper in comparisons.
  void Point(const char* row, size_t column, Column* view) const {
    view->data = const_cast<char*>(row) + columns_[column].offset;
  }

  // to[i] = column's value of rows[i]. A null row pointer gives NULL. Views point into the rows.
  void Load(const char* const* rows, size_t count, size_t column, ColumnBuffer* to) const;

  // Bytes of a whole row, header included; a multiple of 8.
  size_t RowBytes(const char* row) const;
  // After the bytes of a row were moved: its views point into it again.
  void Relocate(char* row) const;

 private:
  struct ColumnPlace {
    Oid type;
    Physical physical;
    uint32_t width_bytes;
    uint32_t offset;
  };

  size_t header_bytes_;
  size_t fixed_bytes_;  // header, nulls and slots
  std::vector<ColumnPlace> columns_;
  std::vector<size_t> bytes_columns_;  // those of kBytes
};

}  // namespace sluice
