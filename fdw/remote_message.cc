#include "fdw/remote_message.h"

#include <charconv>

namespace sluice {
namespace {

// Takes the text up to the next zero byte out of `rest`.
bool TakeCString(std::string_view* rest, std::string_view* text) {
  size_t end = rest->find('\0');
  if (end == std::string_view::npos) return false;
  *text = rest->substr(0, end);
  rest->remove_prefix(end + 1);
  return true;
}

template <typename T>
bool TakeInt(std::string_view* rest, T* value) {
  if (rest->size() < sizeof(T)) return false;
  *value = LoadBig<T>(rest->data());
  rest->remove_prefix(sizeof(T));
  return true;
}

bool IsSqlState(std::string_view code) {
  return code.size() == 5 && std::all_of(code.begin(), code.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
         });
}

}  // namespace

HeaderState ReadHeader(const char* at, size_t size_bytes, MessageHeader* header) {
  if (size_bytes < kMessageHeaderBytes) return HeaderState::kIncomplete;
  uint32_t length = LoadBig<uint32_t>(at + 1);
  if (length < 4 || length > kMessageBytesMax) return HeaderState::kMalformed;
  *header = {at[0], size_t{1} + length};
  return HeaderState::kValid;
}

std::optional<RemoteError> ReadErrorResponse(std::string_view body) {
  RemoteError remote;
  Error& error = remote.error;
  std::string_view translated_severity;
  for (;;) {
    if (body.empty()) return std::nullopt;
    char field = body[0];
    body.remove_prefix(1);
    if (field == 0) break;
    std::string_view text;
    if (!TakeCString(&body, &text)) return std::nullopt;
    switch (field) {
      case 'S':
        translated_severity = text;
        break;
      case 'V':
        remote.severity = text;
        break;
      case 'C':
        if (IsSqlState(text)) error.state = MakeSqlState(text);
        break;
      case 'M':
        error.message = text;
        break;
      case 'D':
        error.detail = text;
        break;
      case 'H':
        error.hint = text;
        break;
      case 'W':
        error.context = text;
        break;
      case 's':
        error.schema = text;
        break;
      case 't':
        error.table = text;
        break;
      case 'c':
        error.column = text;
        break;
      case 'd':
        error.datatype = text;
        break;
      case 'n':
        error.constraint = text;
        break;
      case 'R':
        remote.routine = text;
        break;
      case 'P':  // counts in the remote text, which the client has not seen
                 // (executor/remote_end.cc)
        std::from_chars(text.data(), text.data() + text.size(), error.position);
        break;
      default:
        break;
    }
  }
  if (remote.severity.empty()) remote.severity = translated_severity;
  return remote;
}

std::optional<uint32_t> ReadRowDescription(std::string_view body, std::span<uint32_t> types) {
  uint16_t columns;
  if (!TakeInt(&body, &columns)) return std::nullopt;
  for (uint32_t i = 0; i < columns; i++) {
    std::string_view name;
    if (!TakeCString(&body, &name) || body.size() < 18) return std::nullopt;
    if (i < types.size()) types[i] = LoadBig<uint32_t>(body.data() + 6);
    body.remove_prefix(18);
  }
  return columns;
}

std::optional<std::string> ReadFirstColumn(std::string_view body) {
  uint16_t columns;
  int32_t length;
  if (!TakeInt(&body, &columns) || columns == 0 || !TakeInt(&body, &length)) return std::nullopt;
  if (length < 0) return std::string();
  if (static_cast<size_t>(length) > body.size()) return std::nullopt;
  return std::string(body.substr(0, length));
}

void RequestWriter::Begin(char type) {
  out_->push_back(type);
  start_ = out_->size();
  out_->append(4, '\0');
}

void RequestWriter::End() {
  StoreBig<uint32_t>(out_->data() + start_, static_cast<uint32_t>(out_->size() - start_));
}

void RequestWriter::Query(std::string_view sql) {
  Begin('Q');
  CString(sql);
  End();
}

void RequestWriter::Parse(std::string_view name, std::string_view sql,
                          std::span<const StreamParam> params) {
  Begin('P');
  CString(name);
  CString(sql);
  Int(static_cast<uint16_t>(params.size()));
  for (const StreamParam& param : params) Int(param.type);
  End();
}

void RequestWriter::Bind(std::string_view statement, std::span<const StreamParam> params,
                         std::span<const int16_t> result_formats) {
  Begin('B');
  CString("");  // portal
  CString(statement);
  Int(static_cast<uint16_t>(params.size()));
  for (const StreamParam& param : params) Int(static_cast<int16_t>(param.binary ? 1 : 0));
  Int(static_cast<uint16_t>(params.size()));
  for (const StreamParam& param : params) {
    if (param.is_null) {
      Int(int32_t{-1});
      continue;
    }
    Int(static_cast<int32_t>(param.value.size()));
    out_->append(param.value);
  }
  Int(static_cast<uint16_t>(result_formats.size()));
  for (int16_t format : result_formats) Int(format);
  End();
}

void RequestWriter::Describe(char what, std::string_view name) {
  Begin('D');
  out_->push_back(what);
  CString(name);
  End();
}

void RequestWriter::Execute(uint32_t row_limit) {
  Begin('E');
  CString("");
  Int(row_limit);
  End();
}

void RequestWriter::CloseStatement(std::string_view name) {
  Begin('C');
  out_->push_back('S');
  CString(name);
  End();
}

void RequestWriter::Flush() {
  Begin('H');
  End();
}

void RequestWriter::Sync() {
  Begin('S');
  End();
}

void RequestWriter::CopyData(std::string_view bytes) {
  Begin('d');
  out_->append(bytes);
  End();
}

void RequestWriter::CopyDone() {
  Begin('c');
  End();
}

void RequestWriter::CopyFail(std::string_view reason) {
  Begin('f');
  CString(reason);
  End();
}

}  // namespace sluice
