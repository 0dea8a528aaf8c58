#include "executor/line_decoder.h"

#include "common/assert.h"
#include "common/error.h"
#include "types/codec.h"

namespace sluice {

LineDecoder::LineDecoder(std::span<const OutputColumn> columns, const SessionSettings& settings)
    : settings_(settings), columns_(columns.size()), data_(columns.size()), nulls_(columns.size()) {
  for (size_t i = 0; i < columns.size(); i++) {
    columns_[i].type = columns[i].type;
    columns_[i].physical = PhysicalOf(columns[i].type);
    size_t words = kBatchRows * WidthOf(columns_[i].physical) / sizeof(uint64_t);
    data_[i] = std::make_unique_for_overwrite<uint64_t[]>(words);
    nulls_[i] = std::make_unique_for_overwrite<uint8_t[]>(kBatchRows);
    columns_[i].data = data_[i].get();
  }
}

// A field that opened with a quote; `*at` is behind it. Quotes may also open and close inside of a
// field, as COPY allows.
LineDecoder::Field LineDecoder::TakeQuoted(const char** at, const char* end) {
  std::string text;
  const char* p = *at;
  bool quoted = true;
  for (; p < end; p++) {
    if (quoted) {
      if (*p != '"') {
        text += *p;
      } else if (p + 1 < end && p[1] == '"') {
        text += *p++;
      } else {
        quoted = false;
      }
    } else if (*p == '"') {
      quoted = true;
    } else if (*p == ',' || *p == '\n' || *p == '\r') {
      break;
    } else {
      text += *p;
    }
  }
  if (quoted) Throw(sqlstate::kBadCopyFileFormat, "unterminated CSV quoted field");
  *at = p;
  return {values_.CopyString(text), false};
}

// Splits one line into fields_, and moves `*at` behind its end.
void LineDecoder::SplitLine(const char** at, const char* end) {
  fields_.clear();
  const char* p = *at;
  for (;;) {
    const char* start = p;
    while (p < end && *p != ',' && *p != '\n' && *p != '\r' && *p != '"') p++;
    if (p < end && *p == '"') {
      // Text before the quote belongs to the field: only seen where someone quotes a part.
      std::string_view before(start, static_cast<size_t>(p - start));
      p++;
      Field field = TakeQuoted(&p, end);
      if (!before.empty())
        field.text = values_.CopyString(std::string(before) + std::string(field.text));
      fields_.push_back(field);
    } else {
      fields_.push_back({{start, static_cast<size_t>(p - start)}, p == start});
    }
    if (p == end || *p != ',') break;
    p++;
  }
  if (p < end && *p == '\r') p++;
  if (p < end && *p == '\n') p++;
  *at = p;
}

void LineDecoder::StoreValue(size_t column, const Field& field, size_t row) {
  Column& to = columns_[column];
  if (field.is_null) {
    if (to.nulls == nullptr) {
      std::memset(nulls_[column].get(), 0, kBatchRows);
      to.nulls = nulls_[column].get();
    }
    to.nulls[row] = 1;
  } else if (HasBinaryCodec(to.type)) {
    DecodeBinaryValue(to.type, ParseText(to.type, -1, field.text, settings_, &values_), &to, row);
  } else {
    to.Data<std::string_view>()[row] = field.text;
  }
}

void LineDecoder::Decode(const ForeignScanPlan& scan, const char** at, const char* end,
                         Batch* batch) {
  values_.Reset();
  for (Column& column : columns_) column.nulls = nullptr;
  size_t row = 0;
  for (; row < kBatchRows && *at < end; row++) {
    SplitLine(at, end);
    if (fields_.size() < scan.line_types.size())
      Throw(sqlstate::kBadCopyFileFormat, "missing data for a column of a line from server \"{}\"",
            scan.server_name);
    if (fields_.size() > scan.line_types.size())
      Throw(sqlstate::kBadCopyFileFormat, "extra data after last expected column");
    for (size_t i = 0; i < columns_.size(); i++) {
      auto field = static_cast<size_t>(scan.line_columns[i]);
      SLUICE_ASSERT(field < fields_.size());
      // A plan that needs no column but the number of rows points at any, whatever its type.
      bool wanted = scan.line_types[field] == columns_[i].type;
      StoreValue(i, wanted ? fields_[field] : Field{{}, true}, row);
    }
  }
  batch->rows = row;
  batch->columns = columns_;
}

}  // namespace sluice
