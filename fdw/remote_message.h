// Postgres's protocol as its client sees it: cutting a byte stream into messages, reading the few
// of them that the io worker understands, building the ones that it sends. Everything that comes
// from a shard is checked against its bounds: a reader returns false or nothing, and the connection
// is given up.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/bytes.h"
#include "common/error.h"
#include "shm/stream.h"

namespace sluice {

inline constexpr size_t kMessageHeaderBytes = 5;
// Type and length of Postgres's largest message (its 1 GB limit on a palloc).
inline constexpr uint32_t kMessageBytesMax = 0x3fffffff;

// Walks over whole messages of one type; returns their bytes and adds their number to `count`.
// Stops at the first that is of another type, not whole, or has an impossible length. This is all
// that the io worker does per row.
inline size_t WalkMessages(const char* at, size_t size_bytes, char type, uint32_t* count) {
  size_t walked = 0;
  uint32_t n = 0;
  while (size_bytes - walked >= kMessageHeaderBytes && at[walked] == type) {
    uint32_t length = LoadBig<uint32_t>(at + walked + 1);
    if (length < 4 || length > size_bytes - walked - 1) break;
    walked += size_t{1} + length;
    n++;
  }
  *count += n;
  return walked;
}

enum class HeaderState { kIncomplete, kValid, kMalformed };
struct MessageHeader {
  char type;
  size_t total_bytes;  // header included
};
HeaderState ReadHeader(const char* at, size_t size_bytes, MessageHeader* header);

// What a shard may say unasked at any time: notices, changed parameters, notifications.
inline bool IsAsynchronous(char type) {
  return type == 'N' || type == 'S' || type == 'A';
}

// ErrorResponse or NoticeResponse.
struct RemoteError {
  Error error;
  std::string severity;  // not translated
  std::string routine;   // where in the shard's source
};
std::optional<RemoteError> ReadErrorResponse(std::string_view body);

// Type oids out of a RowDescription, up to `types.size()` of them; returns the number of columns.
std::optional<uint32_t> ReadRowDescription(std::string_view body, std::span<uint32_t> types);

// The first column of a DataRow as text; empty if NULL.
std::optional<std::string> ReadFirstColumn(std::string_view body);

// Appends messages to a buffer.
class RequestWriter {
 public:
  explicit RequestWriter(std::string* out) : out_(out) {}
  void Query(std::string_view sql);
  void Parse(std::string_view name, std::string_view sql, std::span<const StreamParam> params);
  void Bind(std::string_view statement, std::span<const StreamParam> params,
            std::span<const int16_t> result_formats);
  void Describe(char what, std::string_view name);
  void Execute(uint32_t row_limit);
  void CloseStatement(std::string_view name);
  void Flush();
  void Sync();
  void CopyData(std::string_view bytes);
  void CopyDone();
  void CopyFail(std::string_view reason);

 private:
  void Begin(char type);
  void End();
  template <typename T>
  void Int(T value) {
    char bytes[sizeof(T)];
    StoreBig<T>(bytes, value);
    out_->append(bytes, sizeof(T));
  }
  void CString(std::string_view text) {
    out_->append(text);
    out_->push_back('\0');
  }

  std::string* out_;
  size_t start_ = 0;
};

}  // namespace sluice
