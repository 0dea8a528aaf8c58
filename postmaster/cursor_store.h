// All rows of a cursor that can go back (SCROLL) or outlives its transaction (WITH HOLD), in memory
// and from work_mem on in a file, with where the cursor stands.
#pragma once

#include <string>
#include <vector>

#include "executor/file_blocks.h"
#include "executor/row_layout.h"
#include "postmaster/row_sink.h"

namespace sluice {

class CursorStore : public RowSink {
 public:
  // `first`: the number of its first row; those before it were fetched already.
  CursorStore(std::span<const ResultColumn> columns, uint64_t first, size_t memory_bytes_max,
              std::string temp_directory);
  void Rows(const Batch& batch, size_t from, size_t to) override;
  void Messages(std::string_view) override;

  std::span<const ResultColumn> columns() const { return columns_; }
  // The number of the last row; they count from 1.
  uint64_t last() const { return first_ - 1 + rows_.size(); }
  // Gives `count` rows to the sink, from row `from` on, forwards or backwards. REQUIRES: they
  // exist.
  void Give(uint64_t from, uint64_t count, bool forward, RowSink* sink);

 private:
  std::vector<std::string> names_;
  std::vector<ResultColumn> columns_;
  uint64_t first_;
  std::string temp_directory_;
  FileBlocks blocks_;
  Arena arena_;
  RowLayout layout_;
  std::vector<char*> rows_;
};

}  // namespace sluice
