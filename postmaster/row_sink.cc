#include "postmaster/row_sink.h"

#include "catalog/builtin.h"
#include "common/assert.h"
#include "types/codec.h"
#include "wire/message.h"

namespace sluice {

int16_t FormatOf(std::span<const int16_t> formats, size_t i) {
  if (formats.empty()) return 0;
  return formats.size() == 1 ? formats[0] : formats[i];
}

void CheckFormats(std::span<const ResultColumn> columns, std::span<const int16_t> formats) {
  for (size_t i = 0; i < columns.size(); i++) {
    if (FormatOf(formats, i) == 0 || HasBinaryCodec(columns[i].type)) continue;
    const TypeInfo* type = FindType(columns[i].type);
    // Enums: their binary format is the label, which is what is kept.
    if (type != nullptr && type->kind == 'e') continue;
    Refuse("binary results of type {} are not supported", FormatType(columns[i].type));
  }
}

void RowSink::CopyData(uint16_t, std::string_view) {
  SLUICE_ASSERT(false);  // nobody but CopySink asks for them
}

DataRowSink::DataRowSink(ClientSocket* client, std::span<const ResultColumn> columns,
                         std::span<const int16_t> formats, const SessionSettings& settings)
    : client_(client), settings_(settings) {
  for (size_t i = 0; i < columns.size(); i++)
    binary_.push_back(FormatOf(formats, i) != 0 && HasBinaryCodec(columns[i].type));
}

void DataRowSink::AppendRow(const Batch& batch, size_t row, std::string* out) {
  MessageWriter message(out);
  message.Begin('D');
  message.Int<int16_t>(static_cast<int16_t>(binary_.size()));
  for (size_t i = 0; i < binary_.size(); i++) {
    const Column& column = batch.columns[i];
    size_t length_at = out->size();
    out->append(4, '\xff');  // -1: NULL
    if (column.IsNull(row)) continue;
    if (binary_[i])
      AppendBinary(column, row, out);
    else
      AppendText(column, row, settings_, out);
    StoreBig<int32_t>(out->data() + length_at, static_cast<int32_t>(out->size() - length_at - 4));
  }
  message.End();
}

void DataRowSink::Rows(const Batch& batch, size_t from, size_t to) {
  std::string* out = client_->out();
  for (size_t row = from; row < to; row++) {
    size_t start = out->size();
    try {
      AppendRow(batch, row, out);
    } catch (...) {
      out->resize(start);  // only whole messages may stay in the buffer
      throw;
    }
    client_->FlushIfLarge();
  }
  // What a batch left behind goes out once it is worth a system call (Postgres's buffer holds as
  // much).
  if (client_->pending_bytes() >= 8192) client_->Flush();
}

void TextSink::Rows(const Batch& batch, size_t from, size_t to) {
  for (size_t row = from; row < to; row++) {
    auto& values = rows.emplace_back(columns_);
    for (size_t i = 0; i < columns_; i++)
      if (!batch.columns[i].IsNull(row))
        AppendText(batch.columns[i], row, settings_, &values[i].emplace());
  }
}

void TextSink::Messages(std::string_view messages) {
  while (!messages.empty()) {
    size_t bytes = 1 + LoadBig<uint32_t>(messages.data() + 1);
    BodyReader body(messages.substr(5, bytes - 5));
    messages.remove_prefix(bytes);
    auto& values = rows.emplace_back(columns_);
    size_t count = static_cast<size_t>(body.Int<int16_t>());
    for (size_t i = 0; i < count && i < columns_; i++) {
      int32_t length = body.Int<int32_t>();
      if (length >= 0) values[i] = body.Bytes(static_cast<size_t>(length));
    }
  }
}

}  // namespace sluice
