#include "postmaster/copy_sink.h"

#include "types/codec.h"
#include "wire/message.h"

namespace sluice {

CopySink::CopySink(ClientSocket* client, size_t columns, const CopyOptions& options,
                   const SessionSettings& settings)
    : client_(client), columns_(columns), options_(options), settings_(settings) {
  options_.single_column = columns == 1;
}

template <typename AppendFields>
void CopySink::AppendMessage(AppendFields&& append_fields) {
  std::string* out = client_->out();
  size_t start = out->size();
  try {
    MessageWriter message(out);
    message.Begin('d');
    append_fields(out);
    message.End();
  } catch (...) {
    out->resize(start);  // only whole messages may stay in the buffer
    throw;
  }
  client_->FlushIfLarge();
}

void CopySink::Begin(std::span<const std::string_view> names) {
  bool binary = options_.format == CopyFormat::kBinary;
  MessageWriter message(client_->out());
  message.Begin('H');
  message.Int<char>(binary ? 1 : 0);
  message.Int<int16_t>(static_cast<int16_t>(columns_));
  for (size_t i = 0; i < columns_; i++) message.Int<int16_t>(binary ? 1 : 0);
  message.End();
  if (binary) AppendMessage([](std::string* out) { out->append(CopyBinaryHeader()); });
  if (!options_.header) return;
  AppendMessage([&](std::string* out) {
    for (size_t i = 0; i < names.size(); i++) {
      if (i > 0) out->push_back(options_.delimiter);
      if (options_.format == CopyFormat::kCsv)
        AppendCopyCsv(names[i], false, options_, out);
      else
        AppendCopyText(names[i], options_, out);
    }
    out->push_back('\n');
  });
}

void CopySink::AppendField(size_t column, std::string_view text, std::string* out) {
  if (options_.format == CopyFormat::kText) return AppendCopyText(text, options_, out);
  bool force = !options_.force_quote.empty() && options_.force_quote[column];
  AppendCopyCsv(text, force, options_, out);
}

void CopySink::AppendRow(const Batch& batch, size_t row, std::string* out) {
  if (options_.format == CopyFormat::kBinary) {
    MessageWriter writer(out);
    writer.Int<int16_t>(static_cast<int16_t>(columns_));
    for (size_t i = 0; i < columns_; i++) {
      size_t length_at = out->size();
      out->append(4, '\xff');
      if (batch.columns[i].IsNull(row)) continue;
      AppendBinary(batch.columns[i], row, out);
      StoreBig<int32_t>(out->data() + length_at, static_cast<int32_t>(out->size() - length_at - 4));
    }
    return;
  }
  for (size_t i = 0; i < columns_; i++) {
    if (i > 0) out->push_back(options_.delimiter);
    if (batch.columns[i].IsNull(row)) {
      out->append(options_.null_text);
      continue;
    }
    value_.clear();
    AppendText(batch.columns[i], row, settings_, &value_);
    AppendField(i, value_, out);
  }
  out->push_back('\n');
}

void CopySink::Rows(const Batch& batch, size_t from, size_t to) {
  for (size_t row = from; row < to; row++)
    AppendMessage([&](std::string* out) { AppendRow(batch, row, out); });
}

void CopySink::TranscodeText(std::string_view body, std::string* out) {
  const char* at = body.data() + 2;
  for (size_t i = 0; i < columns_; i++) {
    if (i > 0) out->push_back(options_.delimiter);
    auto length = LoadBig<int32_t>(at);
    at += 4;
    if (length < 0) {
      out->append(options_.null_text);
      continue;
    }
    AppendField(i, {at, static_cast<size_t>(length)}, out);
    at += length;
  }
  out->push_back('\n');
}

void CopySink::Messages(std::string_view messages) {
  while (!messages.empty()) {
    size_t bytes = 1 + LoadBig<uint32_t>(messages.data() + 1);
    std::string_view body = messages.substr(5, bytes - 5);
    messages.remove_prefix(bytes);
    AppendMessage([&](std::string* out) {
      // A binary COPY's tuple is a DataRow's body: the field count, then the fields with their
      // lengths.
      if (options_.format == CopyFormat::kBinary)
        out->append(body);
      else
        TranscodeText(body, out);
    });
  }
}

// The shards' rows are the client's, byte for byte. Only of the binary format's headers and
// trailers the client gets one, from Begin and End.
void CopySink::CopyData(uint16_t stream, std::string_view messages) {
  if (options_.format != CopyFormat::kBinary) return client_->SendMessages(messages);
  if (begun_.size() <= stream) begun_.resize(stream + size_t{1});
  if (!begun_[stream]) {
    begun_[stream] = true;
    size_t bytes = 1 + LoadBig<uint32_t>(messages.data() + 1);
    SendFirstTuple(messages.substr(5, bytes - 5));
    messages.remove_prefix(bytes);
  }
  if (!messages.empty()) SendTuples(messages);
}

// A stream's first message begins with the header, and may be nothing else.
void CopySink::SendFirstTuple(std::string_view body) {
  BodyReader reader(body);
  constexpr size_t kSignatureBytes = 11;
  std::string_view signature = reader.Bytes(kSignatureBytes);
  auto flags = reader.Int<uint32_t>();
  auto extension_bytes = reader.Int<uint32_t>();
  if (signature != CopyBinaryHeader().substr(0, kSignatureBytes) || flags != 0)
    Throw(sqlstate::kProtocolViolation, "a server's COPY data has an unknown header");
  reader.Bytes(extension_bytes);
  body = reader.rest();
  if (body.empty() || body == kCopyBinaryTrailer) {
    rowless_messages_++;
    return;
  }
  AppendMessage([&](std::string* out) { out->append(body); });
}

void CopySink::SendTuples(std::string_view messages) {
  // A slice is cut anywhere between two messages; only a stream's last can end with the trailer.
  // Where the last bytes look like it, they may still be a row's: then the walk tells.
  constexpr std::string_view kTrailerMessage("d\0\0\0\6\xff\xff", 7);
  if (messages.ends_with(kTrailerMessage)) {
    size_t last = 0, at = 0;
    while (at < messages.size()) {
      last = at;
      at += 1 + LoadBig<uint32_t>(messages.data() + at + 1);
    }
    if (messages.size() - last == kTrailerMessage.size()) {
      messages.remove_suffix(kTrailerMessage.size());
      rowless_messages_++;
    }
  }
  if (!messages.empty()) client_->SendMessages(messages);
}

void CopySink::End() {
  if (options_.format == CopyFormat::kBinary)
    AppendMessage([](std::string* out) { out->append(kCopyBinaryTrailer); });
  MessageWriter message(client_->out());
  message.Begin('c');
  message.End();
}

}  // namespace sluice
