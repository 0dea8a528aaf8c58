// CSV lines (COPY's csv format: comma, double quotes, an empty unquoted field is NULL) → columns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/arena.h"
#include "optimizer/plan.h"
#include "types/column.h"
#include "types/kernel.h"

namespace sluice {

class LineDecoder {
 public:
  LineDecoder(std::span<const OutputColumn> columns, const SessionSettings& settings);

  // Decodes up to kBatchRows of the lines in [*at, end), and moves `*at` behind them. The batch is
  // valid until the next call. Throws what COPY FROM throws.
  void Decode(const ForeignScanPlan& scan, const char** at, const char* end, Batch* batch);

 private:
  struct Field {
    std::string_view text;
    bool is_null;
  };
  void SplitLine(const char** at, const char* end);
  Field TakeQuoted(const char** at, const char* end);
  void StoreValue(size_t column, const Field& field, size_t row);

  const SessionSettings& settings_;
  std::vector<Column> columns_;
  std::vector<std::unique_ptr<uint64_t[]>> data_;
  std::vector<std::unique_ptr<uint8_t[]>> nulls_;
  std::vector<Field> fields_;  // of the current line
  Arena values_;
};

}  // namespace sluice
