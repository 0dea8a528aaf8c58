// The server side of Postgres's protocol 3.0: reading client messages, building server messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/bytes.h"
#include "common/error.h"

namespace sluice {

// Cuts a byte stream into messages. The caller feeds bytes and takes messages; nothing here blocks.
class MessageReader {
 public:
  struct Message {
    char type;              // 0 for the start-up packet
    std::string_view body;  // valid until the next Append
  };
  // Where to put up to *size_bytes received bytes; Commit tells how many came.
  char* Buffer(size_t* size_bytes);
  void Commit(size_t size_bytes);
  // A whole message if there is one. Throws 08P01 on a length that cannot be (beyond 1 GB, or
  // beyond 10,000 bytes for a start-up packet).
  std::optional<Message> Take(bool startup);
  bool empty() const { return begin_ == end_; }
  // The type of the message that comes next; 0: none is here.
  char next_type() const { return empty() ? '\0' : buffer_[begin_]; }
  // Bytes of a message that is not complete yet are here.
  bool partial() const { return begin_ != end_; }

 private:
  std::string buffer_;
  size_t begin_ = 0, end_ = 0;
};

// Reads the fields of a message body; throws 08P01 past the end.
class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : rest_(body) {}
  template <typename T>
  T Int() {
    if (rest_.size() < sizeof(T)) Short();
    T value = LoadBig<T>(rest_.data());
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::string_view CString();
  std::string_view Bytes(size_t size_bytes);
  std::string_view rest() const { return rest_; }
  void ExpectEnd() const;

 private:
  [[noreturn]] void Short() const;
  std::string_view rest_;
};

// Appends messages to a buffer. Begin/End bracket one message; its length is filled in by End.
class MessageWriter {
 public:
  explicit MessageWriter(std::string* out) : out_(out) {}
  void Begin(char type) {
    out_->push_back(type);
    start_ = out_->size();
    out_->append(4, '\0');
  }
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
  void Bytes(std::string_view bytes) { out_->append(bytes); }
  void End() {
    StoreBig<int32_t>(out_->data() + start_, static_cast<int32_t>(out_->size() - start_));
  }

 private:
  std::string* out_;
  size_t start_ = 0;
};

// severity: "ERROR", "FATAL", "WARNING", "NOTICE", …; 'N' for notices.
void WriteErrorResponse(std::string* out, const Error& error, std::string_view severity,
                        char type = 'E');

}  // namespace sluice
