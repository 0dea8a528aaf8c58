#include "executor/copy_rows.h"

#include "common/bytes.h"
#include "types/codec.h"

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

// COPY's text format with its default options.
void AppendEscaped(std::string_view text, std::string* out) {
  for (char c : text) {
    switch (c) {
      case '\\':
        out->append("\\\\");
        break;
      case '\t':
        out->append("\\t");
        break;
      case '\n':
        out->append("\\n");
        break;
      case '\r':
        out->append("\\r");
        break;
      default:
        out->push_back(c);
    }
  }
}

}  // namespace

// A signature, no flags, no header extension.
std::string_view CopyBinaryFileHeader() {
  return {"PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19};
}

void AppendCopyBinaryRow(std::span<const Column> columns, size_t row, std::string* out) {
  AppendInteger(static_cast<int16_t>(columns.size()), out);
  for (const Column& column : columns) AppendField(column, row, out);
}

void AppendCopyTextRow(std::span<const Column> columns, size_t row, const SessionSettings& settings,
                       std::string* out) {
  std::string value;
  for (size_t i = 0; i < columns.size(); i++) {
    if (i > 0) out->push_back('\t');
    if (columns[i].IsNull(row)) {
      out->append("\\N");
    } else if (!HasBinaryCodec(columns[i].type)) {
      AppendEscaped(columns[i].At<std::string_view>(row), out);
    } else {
      value.clear();
      AppendText(columns[i], row, settings, &value);
      AppendEscaped(value, out);
    }
  }
  out->push_back('\n');
}

}  // namespace sluice
