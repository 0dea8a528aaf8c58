// DataRow messages → columns. The hot path of every scan, in two steps: one pass over the bytes
// notes where each value lies, for a few hundred rows; then each column's type decodes its values
// in one loop.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/arena.h"
#include "optimizer/plan.h"
#include "types/column.h"
#include "types/kernel.h"

namespace sluice {

class RowDecoder {
 public:
  // Buffers for rows of these columns; scans with the same types (an Append's children) share them.
  RowDecoder(std::span<const OutputColumn> columns, const SessionSettings& settings);

  // Decodes up to kBatchRows of the messages in [*at, end) as rows of `scan`, and moves `*at`
  // behind them. text values are views of the messages. Throws 08P01 on what is no DataRow of this
  // scan, and what the types throw. The batch is valid until the next call.
  void Decode(const ForeignScanPlan& scan, const char** at, const char* end, Batch* batch);

 private:
  // Small enough for the noted positions to stay in the nearest cache.
  static constexpr size_t kBlockRows = 256;

  struct Buffer {
    std::unique_ptr<uint64_t[]> data;
    std::unique_ptr<uint8_t[]> nulls;  // kBatchRows bytes, zero but in `columns_` with nulls set
  };

  size_t Note(const char** at, const char* end, size_t rows_max);
  void DecodeBlock(const ForeignScanPlan& scan, size_t column, size_t first, size_t rows);
  void DecodeText(size_t column, size_t rows, Column* to, uint8_t* nulls);
  void ClearNulls();

  const SessionSettings& settings_;
  std::vector<Column> columns_;
  std::vector<Buffer> buffers_;
  std::unique_ptr<const char*[]> values_;  // [column][kBlockRows]
  std::unique_ptr<int32_t[]> lengths_;     // [column][kBlockRows]
  Arena parsed_;                           // text values of types that have a codec
};

}  // namespace sluice
