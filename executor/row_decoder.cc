#include "executor/row_decoder.h"

#include "common/bytes.h"
#include "common/error.h"
#include "types/codec.h"

namespace sluice {
namespace {

[[noreturn]] void Malformed(const char* what) {
  Throw(sqlstate::kProtocolViolation, "malformed row from a remote server: {}", what);
}

}  // namespace

RowDecoder::RowDecoder(std::span<const OutputColumn> columns, const SessionSettings& settings)
    : settings_(settings),
      columns_(columns.size()),
      buffers_(columns.size()),
      values_(std::make_unique_for_overwrite<const char*[]>(columns.size() * kBlockRows)),
      lengths_(std::make_unique_for_overwrite<int32_t[]>(columns.size() * kBlockRows)) {
  for (size_t i = 0; i < columns.size(); i++) {
    columns_[i].type = columns[i].type;
    columns_[i].physical = PhysicalOf(columns[i].type);
    size_t words = kBatchRows * WidthOf(columns_[i].physical) / sizeof(uint64_t);
    buffers_[i].data = std::make_unique_for_overwrite<uint64_t[]>(words);
    buffers_[i].nulls = std::make_unique<uint8_t[]>(kBatchRows);
    columns_[i].data = buffers_[i].data.get();
  }
}

void RowDecoder::ClearNulls() {
  for (size_t i = 0; i < columns_.size(); i++) {
    if (columns_[i].nulls != nullptr) std::memset(buffers_[i].nulls.get(), 0, kBatchRows);
    columns_[i].nulls = nullptr;
  }
}

// Every length is checked against its message's end: nothing outside of the slice is ever read.
size_t RowDecoder::Note(const char** at, const char* end, size_t rows_max) {
  constexpr size_t kHeaderBytes = 1 + 4 + 2;  // 'D', length, number of fields
  const size_t columns = columns_.size();
  const char* message = *at;
  size_t row = 0;
  for (; row < rows_max && message < end; row++) {
    if (static_cast<size_t>(end - message) < kHeaderBytes || *message != 'D')
      Malformed("not a DataRow message");
    auto length = LoadBig<uint32_t>(message + 1);
    if (length < kHeaderBytes - 1 || length > static_cast<size_t>(end - message) - 1)
      Malformed("message length out of bounds");
    const char* message_end = message + 1 + length;
    if (LoadBig<uint16_t>(message + 5) != columns && columns != 0)
      Malformed("unexpected number of columns");
    const char* field = message + kHeaderBytes;
    for (size_t column = 0; column < columns; column++) {
      if (message_end - field < 4) Malformed("field out of bounds");
      auto bytes = LoadBig<int32_t>(field);
      field += 4;
      if (bytes > message_end - field || bytes < -1) Malformed("field out of bounds");
      values_[column * kBlockRows + row] = field;
      lengths_[column * kBlockRows + row] = bytes;
      if (bytes > 0) field += bytes;
    }
    message = message_end;
  }
  *at = message;
  return row;
}

void RowDecoder::DecodeText(size_t column, size_t rows, Column* to, uint8_t* nulls) {
  const char** values = &values_[column * kBlockRows];
  int32_t* lengths = &lengths_[column * kBlockRows];
  if (HasBinaryCodec(to->type)) {
    for (size_t i = 0; i < rows; i++) {
      if (lengths[i] < 0) continue;
      std::string_view binary = ParseText(
          to->type, -1, {values[i], static_cast<size_t>(lengths[i])}, settings_, &parsed_);
      values[i] = binary.data();
      lengths[i] = static_cast<int32_t>(binary.size());
    }
    return DecodeBinaryColumn(to->type, values, lengths, rows, nulls, to);
  }
  // A type that this build only passes on: its text is its value.
  auto* views = to->Data<std::string_view>();
  for (size_t i = 0; i < rows; i++) {
    if (lengths[i] >= 0) {
      views[i] = {values[i], static_cast<size_t>(lengths[i])};
    } else {
      views[i] = {};
      nulls[i] = 1;
      to->nulls = nulls;
    }
  }
}

void RowDecoder::DecodeBlock(const ForeignScanPlan& scan, size_t column, size_t first,
                             size_t rows) {
  Column& whole = columns_[column];
  uint8_t* nulls = buffers_[column].nulls.get();
  Column block = whole;
  block.nulls = nullptr;
  block.data =
      reinterpret_cast<char*>(buffers_[column].data.get()) + first * WidthOf(whole.physical);
  if (scan.binary[column]) {
    DecodeBinaryColumn(whole.type, &values_[column * kBlockRows], &lengths_[column * kBlockRows],
                       rows, nulls + first, &block);
  } else {
    DecodeText(column, rows, &block, nulls + first);
  }
  if (block.nulls != nullptr) whole.nulls = nulls;
}

void RowDecoder::Decode(const ForeignScanPlan& scan, const char** at, const char* end,
                        Batch* batch) {
  ClearNulls();
  parsed_.Reset();
  size_t rows = 0;
  while (rows < kBatchRows && *at < end) {
    size_t block = Note(at, end, std::min(kBlockRows, kBatchRows - rows));
    for (size_t column = 0; column < columns_.size(); column++)
      DecodeBlock(scan, column, rows, block);
    rows += block;
  }
  batch->rows = rows;
  batch->columns = columns_;
}

}  // namespace sluice
