// The second foreign-data wrapper: rows as lines from a plain TCP or unix socket, until it closes.
// Shows that anything with a socket and a framing can be a stream.
//
// Spec keywords: host or hostaddr (an address) and port, or path (a unix socket); quote (one
// character, default '"'; empty for none). A newline between quotes is data, as in CSV.
#pragma once

#include <optional>
#include <string>

#include "common/fd.h"
#include "fdw/chunk_writer.h"
#include "fdw/remote_socket.h"
#include "fdw/stream_task.h"

namespace sluice {

// Finds the ends of lines in bytes that come in pieces.
class LineFraming {
 public:
  explicit LineFraming(std::optional<char> quote) : quote_(quote) {}
  // Looks at the next bytes; returns how many of them belong to lines that end here, and adds the
  // number of line ends to `lines`.
  size_t Scan(const char* at, size_t size_bytes, uint32_t* lines);
  // The same, but stops behind the first line end.
  size_t ScanOne(const char* at, size_t size_bytes);
  bool in_quotes() const { return in_quotes_; }

 private:
  const std::optional<char> quote_;
  bool in_quotes_ = false;
};

class LineStream final : public StreamTask, RemoteSocket::User {
 public:
  LineStream(Worker* worker, Group* group, Stream* stream);
  void Start() override;
  void Resume() override { Pump(); }
  void Detach() override;

 private:
  std::optional<Error> Connect();
  std::string_view Option(std::string_view keyword) const;
  void OnConnected();
  void OnConnectTimeout();
  void Pump();
  void OnReceived(int result) override;
  void OnSent(int) override {}
  void Parse();
  void ParseLong(size_t received);
  bool PublishLong();
  void AtEnd();
  void Stop(StreamState state, std::optional<Error> error);
  void TryFinish();

  LineFraming framing_;
  UniqueFd fd_;
  IoOperation connect_poll_;
  Timer connect_timer_;
  RemoteSocket socket_;
  ChunkWriter writer_;
  size_t scanned_bytes_ = 0;  // of what is unparsed
  // A line larger than a chunk, and what came behind it.
  std::string long_line_;
  bool long_whole_ = false;
  std::string behind_;
  bool connected_ = false;
  bool at_end_ = false;
  bool stopping_ = false;
  StreamState end_state_{};
  std::optional<Error> end_error_;
};

}  // namespace sluice
