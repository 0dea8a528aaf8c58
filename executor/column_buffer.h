// Columns that own their memory: what a node computes or gathers for its next batch, kBatchRows at
// most.
#pragma once

#include <memory>
#include <vector>

#include "common/arena.h"
#include "optimizer/plan.h"
#include "types/column.h"

namespace sluice {

// A value as plain bytes of its width: copying values only depends on that. may_alias, because the
// same memory is read as int32_t, double or string_view elsewhere.
template <size_t width>
struct __attribute__((may_alias)) RawValue;
template <>
struct __attribute__((may_alias)) RawValue<1> {
  uint8_t bits;
};
template <>
struct __attribute__((may_alias)) RawValue<2> {
  uint16_t bits;
};
template <>
struct __attribute__((may_alias)) RawValue<4> {
  uint32_t bits;
};
template <>
struct __attribute__((may_alias)) RawValue<8> {
  uint64_t bits;
};
template <>
struct __attribute__((may_alias)) RawValue<16> {
  uint64_t low, high;
};

template <typename Fn>
inline void WithWidth(size_t width_bytes, Fn&& fn) {
  switch (width_bytes) {
    case 1:
      fn(RawValue<1>{});
      break;
    case 2:
      fn(RawValue<2>{});
      break;
    case 4:
      fn(RawValue<4>{});
      break;
    case 8:
      fn(RawValue<8>{});
      break;
    default:
      fn(RawValue<16>{});
      break;
  }
}

std::vector<Oid> ColumnTypes(std::span<const OutputColumn> columns);

// kBatchRows values of one type, with a null map that is only shown (column.nulls) once it is asked
// for.
class ColumnBuffer {
 public:
  explicit ColumnBuffer(Oid type);

  // Forgets the values: no nulls, not constant.
  void Clear();
  // The null map, zeroed if this is the first call since Clear().
  uint8_t* Nulls();

  Column column;

 private:
  std::unique_ptr<uint64_t[]> data_;
  std::unique_ptr<uint8_t[]> nulls_;
};

// to[i] = from[rows[i]] for i < count. A constant stays one. kBytes values are still views of
// from's bytes.
void GatherColumn(const Column& from, const uint32_t* rows, size_t count, ColumnBuffer* to);

// to[r] = from[r] for the rows listed (rows null: 0..count), nulls included.
void CopyRows(const Column& from, const uint32_t* rows, size_t count, ColumnBuffer* to);

// to[at + i] = from[rows[i]] (rows null: from[i]) for i < count; `to` is never a constant.
void AppendRows(const Column& from, const uint32_t* rows, size_t count, size_t at,
                ColumnBuffer* to);
// `count` NULLs from row `at` on.
void AppendNulls(size_t count, size_t at, ColumnBuffer* to);

// The value at one row as a one-row constant column, copied into `arena`: outlives the batch.
Column CopyValue(const Column& from, size_t row, Arena* arena);

// One row of a batch as constant columns, without copying.
Batch ConstantRow(const Batch& batch, size_t row, std::vector<Column>* columns);

// `rows` rows of a batch from row `first` on, without copying; `columns` holds the shifted columns.
Batch SliceBatch(const Batch& batch, size_t first, size_t rows, std::vector<Column>* columns);

// The columns of a node's output, each with its own memory.
class BatchBuffer {
 public:
  explicit BatchBuffer(std::span<const OutputColumn> columns);
  explicit BatchBuffer(std::span<const Oid> types);

  void Clear();
  size_t size() const { return buffers_.size(); }
  ColumnBuffer& operator[](size_t i) { return buffers_[i]; }
  // Shows the first `rows` rows.
  void Show(size_t rows, Batch* batch);

 private:
  std::vector<ColumnBuffer> buffers_;
  std::vector<Column> columns_;
};

}  // namespace sluice
