#include "executor/slice_reader.h"

#include "executor/batch_chunk.h"

namespace sluice {

void SliceReader::Start(const Slice& slice, const ForeignScanPlan* scan) {
  Release();
  slice_ = slice;
  holds_ = true;
  scan_ = scan;
  at_ = slice.data;
  rows_left_ = slice.rows;
}

bool SliceReader::Next(Batch* batch) {
  if (!holds_) return false;
  const char* end = slice_.data + slice_.size_bytes;
  if (scan_ == nullptr) {
    if (at_ == end) return false;
    *batch = ReadBatchChunk(slice_.data, &batch_columns_);
    at_ = end;
    return true;
  }
  if (columns_.empty() && !scan_->lines) {  // only the number of rows matters
    batch->rows = std::min<size_t>(rows_left_, kBatchRows);
    batch->columns = {};
    rows_left_ -= static_cast<uint32_t>(batch->rows);
    return batch->rows > 0;
  }
  if (at_ == end) return false;
  if (scan_->lines) {
    if (lines_ == nullptr) lines_ = std::make_unique<LineDecoder>(columns_, settings_);
    lines_->Decode(*scan_, &at_, end, batch);
  } else {
    if (rows_ == nullptr) rows_ = std::make_unique<RowDecoder>(columns_, settings_);
    rows_->Decode(*scan_, &at_, end, batch);
  }
  return batch->rows > 0;
}

void SliceReader::Release() {
  if (holds_) ReleaseSlice(slice_);
  holds_ = false;
}

}  // namespace sluice
