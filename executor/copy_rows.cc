#include "executor/copy_rows.h"

#include "common/bytes.h"
#include "types/codec.h"
#include "wire/copy_format.h"

namespace sluice {
namespace {

template <typename T>
void AppendInteger(T value, std::string* out) {
  char bytes[sizeof(T)];
  StoreBig(bytes, value);
  out->append(bytes, sizeof bytes);
}

void AppendField(const Column& column, size_t row, std::string* out) {
  if (column.IsNull(row)) return AppendInteger(int32_t{-1}, out);
  size_t length_at = out->size();
  AppendInteger(int32_t{0}, out);
  if (HasBinaryCodec(column.type)) {
    AppendBinary(column, row, out);
  } else {
    out->append(column.At<std::string_view>(row));
  }
  StoreBig(out->data() + length_at,
           static_cast<int32_t>(out->size() - length_at - sizeof(int32_t)));
}

}  // namespace

void AppendCopyBinaryRow(std::span<const Column> columns, size_t row, std::string* out) {
  AppendInteger(static_cast<int16_t>(columns.size()), out);
  for (const Column& column : columns) AppendField(column, row, out);
}

void AppendCopyTextRow(std::span<const Column> columns, size_t row, const SessionSettings& settings,
                       std::string* out) {
  static const CopyOptions defaults;
  std::string value;
  for (size_t i = 0; i < columns.size(); i++) {
    if (i > 0) out->push_back(defaults.delimiter);
    if (columns[i].IsNull(row)) {
      out->append(defaults.null_text);
    } else if (!HasBinaryCodec(columns[i].type)) {
      AppendCopyText(columns[i].At<std::string_view>(row), defaults, out);
    } else {
      value.clear();
      AppendText(columns[i], row, settings, &value);
      AppendCopyText(value, defaults, out);
    }
  }
  out->push_back('\n');
}

}  // namespace sluice
