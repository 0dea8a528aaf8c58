#include "wire/message.h"

namespace sluice {
namespace {

constexpr size_t kReadBytes = 16 * 1024;
constexpr size_t kKeepBytes = 1 << 20;  // a larger buffer is given back once it is empty
// Postgres's limits (libpq.h): what a start-up packet, a small and a large message may measure.
constexpr int64_t kStartupBytesMax = 10000;
constexpr int64_t kSmallBytesMax = 10000;
constexpr int64_t kLargeBytesMax = 0x3fffffff - 1;

// The longest body that a message of this type may have; 0: there is no such message.
int64_t BytesMax(char type) {
  switch (type) {
    case 'Q':
    case 'P':
    case 'B':
    case 'F':
    case 'd':
      return kLargeBytesMax;
    case 'C':
    case 'D':
    case 'E':
    case 'H':
    case 'S':
    case 'X':
    case 'c':
    case 'f':
    case 'p':
      return kSmallBytesMax;
    default:
      return 0;
  }
}

}  // namespace

char* MessageReader::Buffer(size_t* size_bytes) {
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (buffer_.size() > kKeepBytes) {
      buffer_.clear();
      buffer_.shrink_to_fit();
    }
  }
  if (buffer_.size() - end_ < kReadBytes && begin_ > 0) {
    buffer_.erase(0, begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // Grown with the bytes that came, never with the length that a message claims.
  if (buffer_.size() - end_ < kReadBytes)
    buffer_.resize(std::max(end_ + kReadBytes, std::min(buffer_.size() * 2, end_ + (64 << 20))));
  *size_bytes = buffer_.size() - end_;
  return buffer_.data() + end_;
}

void MessageReader::Commit(size_t size_bytes) {
  end_ += size_bytes;
}

std::optional<MessageReader::Message> MessageReader::Take(bool startup) {
  size_t header_bytes = startup ? 4 : 5;
  if (begin_ == end_) return std::nullopt;
  const char* at = buffer_.data() + begin_;
  char type = startup ? 0 : at[0];
  if (!startup && BytesMax(type) == 0)
    Throw(sqlstate::kProtocolViolation, "invalid frontend message type {}",
          static_cast<int>(static_cast<unsigned char>(type)));
  if (end_ - begin_ < header_bytes) return std::nullopt;
  int64_t length = LoadBig<int32_t>(at + header_bytes - 4);
  if (startup && (length < 8 || length > kStartupBytesMax))
    Throw(sqlstate::kProtocolViolation, "invalid length of startup packet");
  if (!startup && (length < 4 || length - 4 > BytesMax(type)))
    Throw(sqlstate::kProtocolViolation, "invalid message length");
  size_t whole_bytes = static_cast<size_t>(length) + (startup ? 0 : 1);
  if (end_ - begin_ < whole_bytes) return std::nullopt;
  begin_ += whole_bytes;
  return Message{type, {at + header_bytes, whole_bytes - header_bytes}};
}

std::string_view BodyReader::CString() {
  size_t end = rest_.find('\0');
  if (end == std::string_view::npos)
    Throw(sqlstate::kProtocolViolation, "invalid string in message");
  std::string_view text = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  return text;
}

std::string_view BodyReader::Bytes(size_t size_bytes) {
  if (rest_.size() < size_bytes) Short();
  std::string_view bytes = rest_.substr(0, size_bytes);
  rest_.remove_prefix(size_bytes);
  return bytes;
}

void BodyReader::ExpectEnd() const {
  if (!rest_.empty()) Throw(sqlstate::kProtocolViolation, "invalid message format");
}

void BodyReader::Short() const {
  Throw(sqlstate::kProtocolViolation, "insufficient data left in message");
}

void WriteErrorResponse(std::string* out, const Error& error, std::string_view severity,
                        char type) {
  MessageWriter writer(out);
  writer.Begin(type);
  auto field = [&](char code, std::string_view text) {
    // A NUL inside would end the field early and derail the reader.
    text = text.substr(0, text.find('\0'));
    if (text.empty()) return;
    out->push_back(code);
    writer.CString(text);
  };
  field('S', severity);
  field('V', severity);
  field('C', SqlStateText(error.state));
  out->push_back('M');  // never left out, even if empty
  writer.CString(std::string_view(error.message).substr(0, error.message.find('\0')));
  field('D', error.detail);
  field('H', error.hint);
  if (error.position > 0) field('P', std::to_string(error.position));
  field('W', error.context);
  field('s', error.schema);
  field('t', error.table);
  field('c', error.column);
  field('d', error.datatype);
  field('n', error.constraint);
  out->push_back('\0');
  writer.End();
}

}  // namespace sluice
