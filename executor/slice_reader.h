// Slices → batches. Holds the slice that the current batch is a view of.
#pragma once

#include <memory>
#include <vector>

#include "executor/line_decoder.h"
#include "executor/row_decoder.h"
#include "shm/ready_queue.h"

namespace sluice {

class SliceReader {
 public:
  SliceReader(std::span<const OutputColumn> columns, const SessionSettings& settings)
      : columns_(columns), settings_(settings) {}
  ~SliceReader() { Release(); }
  SliceReader(const SliceReader&) = delete;
  SliceReader& operator=(const SliceReader&) = delete;

  // Takes over `slice`, of the output of `scan` (null: a batch that was made here); releases the
  // one before.
  void Start(const Slice& slice, const ForeignScanPlan* scan);
  // The next rows of the slice; false if there are none left. Valid until the next call or Start.
  bool Next(Batch* batch);
  void Release();

 private:
  std::span<const OutputColumn> columns_;
  const SessionSettings& settings_;
  bool holds_ = false;
  Slice slice_{};
  const ForeignScanPlan* scan_ = nullptr;
  const char* at_ = nullptr;
  uint32_t rows_left_ = 0;  // where the rows have no columns
  std::unique_ptr<RowDecoder> rows_;
  std::unique_ptr<LineDecoder> lines_;
  std::vector<Column> batch_columns_;
};

}  // namespace sluice
