// A client that speaks the protocol byte by byte, so that tests can also speak it badly.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "common/bytes.h"
#include "common/fd.h"

namespace sluice::test {

struct Received {
  char type = 0;  // 0: the connection was closed
  std::string body;
};

// Builds a message's body.
class Body {
 public:
  template <typename T>
  Body& Int(T value) {
    char raw[sizeof(T)];
    StoreBig<T>(raw, value);
    bytes_.append(raw, sizeof(T));
    return *this;
  }
  Body& CString(std::string_view text) {
    bytes_.append(text);
    bytes_.push_back('\0');
    return *this;
  }
  Body& Value(std::string_view text) {
    return Int<int32_t>(static_cast<int32_t>(text.size())).Raw(text);
  }
  Body& Raw(std::string_view text) {
    bytes_.append(text);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

inline std::string Message(char type, const Body& body = {}) {
  std::string message(1, type);
  char length[4];
  StoreBig<int32_t>(length, static_cast<int32_t>(body.bytes().size() + 4));
  return message.append(length, 4) + body.bytes();
}

class RawClient {
 public:
  explicit RawClient(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd_.Reset();
  }

  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void SendStartup(const Body& body) {
    char length[4];
    StoreBig<int32_t>(length, static_cast<int32_t>(body.bytes().size() + 4));
    Send(std::string(length, 4) + body.bytes());
  }
  static Body StartupBody(int32_t version = 196608) {
    return Body()
        .Int(version)
        .CString("user")
        .CString("postgres")
        .CString("database")
        .CString("postgres");
  }
  // Start-up to the first ReadyForQuery.
  std::vector<Received> Start() {
    SendStartup(StartupBody().Raw(std::string(1, '\0')));
    return UntilReady();
  }

  // Exactly `count` bytes, fewer if the connection ends or `timeout_ms` passes.
  std::string Bytes(size_t count, int timeout_ms = 10'000) {
    std::string bytes;
    while (bytes.size() < count) {
      pollfd fd{fd_.get(), POLLIN, 0};
      if (poll(&fd, 1, timeout_ms) <= 0) break;
      char buffer[4096];
      ssize_t got = recv(fd_.get(), buffer, std::min(sizeof buffer, count - bytes.size()), 0);
      if (got <= 0) break;
      bytes.append(buffer, static_cast<size_t>(got));
    }
    return bytes;
  }
  Received Receive(int timeout_ms = 10'000) {
    Received message;
    std::string header = Bytes(5, timeout_ms);
    if (header.size() < 5) return message;
    message.type = header[0];
    message.body = Bytes(static_cast<size_t>(LoadBig<int32_t>(header.data() + 1)) - 4, timeout_ms);
    return message;
  }
  // Up to and with ReadyForQuery, or to the connection's end.
  std::vector<Received> UntilReady() {
    std::vector<Received> messages;
    for (;;) {
      messages.push_back(Receive());
      if (messages.back().type == 'Z' || messages.back().type == 0) return messages;
    }
  }
  std::vector<Received> Query(std::string_view sql) {
    Send(Message('Q', Body().CString(sql)));
    return UntilReady();
  }
  void HalfClose() { shutdown(fd_.get(), SHUT_WR); }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

// The messages' types in order: "TDDCZ".
inline std::string Types(const std::vector<Received>& messages) {
  std::string types;
  for (const Received& message : messages) types += message.type == 0 ? '!' : message.type;
  return types;
}

// A field of an ErrorResponse or NoticeResponse.
inline std::string Field(const Received& message, char code) {
  size_t at = 0;
  while (at < message.body.size() && message.body[at] != 0) {
    std::string text = message.body.c_str() + at + 1;
    if (message.body[at] == code) return text;
    at += text.size() + 2;
  }
  return "";
}
inline std::string SqlStateOf(const std::vector<Received>& messages) {
  for (const Received& message : messages)
    if (message.type == 'E') return Field(message, 'C');
  return "";
}

}  // namespace sluice::test
