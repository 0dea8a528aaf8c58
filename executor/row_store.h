// Rows kept for later, in their order: what Materialize, and a leader that must not stop taking
// workers' results, put aside. In memory up to work_mem, from there on in a temporary file.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "executor/column_buffer.h"
#include "executor/row_layout.h"
#include "executor/spill.h"

namespace sluice {

class RowStore {
 public:
  RowStore(std::span<const OutputColumn> columns, int64_t memory_bytes_max,
           std::string_view temp_directory);

  // REQUIRES: not read yet, or cleared since.
  void Append(const Batch& batch);
  // The next rows (rows == 0: no more); valid until the next call.
  void Next(Batch* batch);
  // Rows by their numbers, in memory only (spilled_bytes() == 0); valid until the next call.
  void Load(const uint32_t* numbers, size_t count, Batch* batch);
  // Reading starts over at the first row.
  void Rewind();
  void Clear();

  bool empty() const { return rows_.empty() && file_ == nullptr && column_less_rows_ == 0; }
  bool reading() const { return reading_; }
  uint64_t memory_bytes() const { return arena_.allocated_bytes(); }
  uint64_t spilled_bytes() const { return file_ == nullptr ? 0 : file_->bytes(); }

 private:
  void Spill();

  RowLayout layout_;
  int64_t memory_bytes_max_;
  std::string_view temp_directory_;
  Arena arena_;
  std::vector<char*> rows_;  // in memory; empty once there is a file
  std::unique_ptr<SpillFile> file_;
  uint64_t column_less_rows_ = 0;  // rows without columns are only counted
  bool reading_ = false;
  size_t next_ = 0;
  BatchBuffer output_;
  std::vector<char*> pointers_;
  std::vector<uint64_t> tags_;
};

}  // namespace sluice
