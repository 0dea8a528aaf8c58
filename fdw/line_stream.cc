#include "fdw/line_stream.h"

#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/assert.h"
#include "fdw/remote_message.h"
#include "shm/query_arena.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

std::optional<char> QuoteOf(const Stream& stream) {
  const ConnectionSpec& spec = *stream.connection;
  for (size_t i = 0; i < spec.keywords.size(); i++) {
    if (spec.keywords[i] != "quote") continue;
    return spec.values[i].empty() ? std::nullopt : std::optional<char>(spec.values[i][0]);
  }
  return '"';
}

}  // namespace

size_t LineFraming::Scan(const char* at, size_t size_bytes, uint32_t* lines) {
  size_t whole = 0;
  for (;;) {
    size_t line = ScanOne(at + whole, size_bytes - whole);
    if (line == 0) return whole;
    whole += line;
    ++*lines;
  }
}

// Quotes are counted, not parsed: a doubled one inside a field toggles twice.
size_t LineFraming::ScanOne(const char* at, size_t size_bytes) {
  const char* from = at;
  const char* end = at + size_bytes;
  while (from < end) {
    auto* newline =
        static_cast<const char*>(std::memchr(from, '\n', static_cast<size_t>(end - from)));
    const char* stop = newline == nullptr ? end : newline;
    if (quote_ && std::count(from, stop, *quote_) % 2 != 0) in_quotes_ = !in_quotes_;
    if (newline == nullptr) return 0;
    from = newline + 1;
    if (!in_quotes_) return static_cast<size_t>(from - at);
  }
  return 0;
}

LineStream::LineStream(Worker* worker, Group* group, Stream* stream)
    : StreamTask(worker, group, stream),
      framing_(QuoteOf(*stream)),
      connect_poll_([](void* self, int) { static_cast<LineStream*>(self)->OnConnected(); }, this),
      connect_timer_(
          &worker->timers, [](void* self) { static_cast<LineStream*>(self)->OnConnectTimeout(); },
          this),
      socket_(worker->ring.get(), this),
      writer_(stream, SliceKind::kLines) {}

std::string_view LineStream::Option(std::string_view keyword) const {
  const ConnectionSpec& spec = *stream()->connection;
  for (size_t i = spec.keywords.size(); i-- > 0;) {
    if (spec.keywords[i] == keyword) return spec.values[i];
  }
  return {};
}

void LineStream::Start() {
  stream()->state.store(StreamState::kConnecting, std::memory_order_relaxed);
  if (std::optional<Error> error = Connect()) return Stop(StreamState::kFailed, std::move(error));
  connect_timer_.Arm(worker_->now_us + worker_->config.connect_timeout_us);
  worker_->ring->Poll(&connect_poll_, fd_.get(), POLLOUT);
}

std::optional<Error> LineStream::Connect() {
  auto failed = [&](std::string_view why) {
    Error error =
        MakeError(sqlstate::kUnableToEstablishConnection, "could not connect to server \"{}\"",
                  stream()->connection->server_name);
    error.detail = why;
    return error;
  };
  union {
    sockaddr any;
    sockaddr_un un;
    sockaddr_in in;
    sockaddr_in6 in6;
  } address{};
  socklen_t size;
  std::string host(Option("hostaddr").empty() ? Option("host") : Option("hostaddr"));
  std::string path(Option("path").empty() && host.starts_with('/') ? host : Option("path"));
  if (!path.empty()) {
    if (path.size() >= sizeof address.un.sun_path)
      return failed("The path is too long for a unix socket.");
    address.un.sun_family = AF_UNIX;
    std::memcpy(address.un.sun_path, path.c_str(), path.size() + 1);
    size = sizeof address.un;
  } else {
    std::string_view port_text = Option("port");
    uint16_t port = 0;
    std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
    if (inet_pton(AF_INET, host.c_str(), &address.in.sin_addr) == 1) {
      address.in.sin_family = AF_INET;
      address.in.sin_port = htons(port);
      size = sizeof address.in;
    } else if (inet_pton(AF_INET6, host.c_str(), &address.in6.sin6_addr) == 1) {
      address.in6.sin6_family = AF_INET6;
      address.in6.sin6_port = htons(port);
      size = sizeof address.in6;
    } else {
      return failed(fmt::format("Host name \"{}\" was not resolved.", host));
    }
  }
  fd_.Reset(socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_.valid() || (connect(fd_.get(), &address.any, size) != 0 && errno != EINPROGRESS)) {
    return failed(std::strerror(errno));
  }
  return std::nullopt;
}

void LineStream::OnConnectTimeout() {
  Stop(StreamState::kFailed, MakeError(sqlstate::kUnableToEstablishConnection,
                                       "could not connect to server \"{}\": timeout expired",
                                       stream()->connection->server_name));
}

void LineStream::OnConnected() {
  connect_timer_.Disarm();
  if (stopping_) return TryFinish();
  int error_number = 0;
  socklen_t size = sizeof error_number;
  getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error_number, &size);
  if (error_number != 0) {
    Error error =
        MakeError(sqlstate::kUnableToEstablishConnection, "could not connect to server \"{}\"",
                  stream()->connection->server_name);
    error.detail = std::strerror(error_number);
    return Stop(StreamState::kFailed, std::move(error));
  }
  connected_ = true;
  socket_.Attach(fd_.get(), nullptr);
  stream()->state.store(StreamState::kRunning, std::memory_order_relaxed);
  Pump();
}

void LineStream::Pump() {
  if (!connected_ || stopping_ || ended() || socket_.receiving()) return;
  if (long_whole_ && !PublishLong()) return;
  if (!long_line_.empty()) {
    if (at_end_) return AtEnd();
    // A chunk's worth at a time, so that what comes behind the line fits into one.
    size_t filled = long_line_.size();
    long_line_.resize(filled + writer_.chunk_bytes() / 2 + 1);
    return socket_.Receive(long_line_.data() + filled, long_line_.size() - filled);
  }
  if (!writer_.Ready()) return WaitForLatch();
  if (!behind_.empty()) {
    SLUICE_ASSERT(behind_.size() <= writer_.room_bytes());
    std::memcpy(writer_.room(), behind_.data(), behind_.size());
    writer_.Received(behind_.size());
    behind_.clear();
    Parse();
    return stopping_ ? void() : Pump();
  }
  if (at_end_) return AtEnd();
  socket_.Receive(writer_.room(), writer_.room_bytes());
}

void LineStream::OnReceived(int result) {
  if (!long_line_.empty() && !long_whole_) {
    size_t room = writer_.chunk_bytes() / 2 + 1;
    ParseLong(long_line_.size() - room + static_cast<size_t>(std::max(result, 0)));
  } else if (result > 0) {
    writer_.Received(static_cast<size_t>(result));
    Parse();
  }
  if (stopping_) return TryFinish();
  if (result == 0) {
    at_end_ = true;
    if (!long_line_.empty() && !long_whole_ && !framing_.in_quotes()) {
      long_line_.push_back('\n');
      long_whole_ = true;
    }
  } else if (result < 0) {
    Error error =
        MakeError(sqlstate::kConnectionFailure, "server closed the connection unexpectedly");
    error.detail = fmt::format("Server \"{}\": {}.", stream()->connection->server_name,
                               std::strerror(-result));
    return Stop(StreamState::kFailed, std::move(error));
  }
  Pump();
}

void LineStream::Parse() {
  uint32_t lines = 0;
  const char* at = writer_.unparsed();
  size_t scanned = scanned_bytes_;
  size_t fresh = writer_.unparsed_bytes() - scanned;
  size_t whole = framing_.Scan(at + scanned, fresh, &lines);
  if (lines > 0) {
    writer_.AddRows(scanned + whole, lines);
    scanned_bytes_ = fresh - whole;
  } else {
    scanned_bytes_ += fresh;
  }
  if (writer_.room_bytes() == 0 && scanned_bytes_ == writer_.chunk_bytes()) {
    // The whole chunk is one unfinished line.
    long_line_.assign(writer_.unparsed(), scanned_bytes_);
    writer_.Remove(scanned_bytes_);
    writer_.Finish();
    scanned_bytes_ = 0;
    return;
  }
  writer_.PublishIfAwaited();
}

void LineStream::ParseLong(size_t filled) {
  size_t room = writer_.chunk_bytes() / 2 + 1;
  size_t before = long_line_.size() - room;
  long_line_.resize(filled);
  size_t end = framing_.ScanOne(long_line_.data() + before, filled - before);
  if (filled > kMessageBytesMax) {
    return Stop(StreamState::kFailed,
                MakeError(sqlstate::kProgramLimitExceeded, "line is too long"));
  }
  if (end == 0) return;
  behind_ = long_line_.substr(before + end);
  long_line_.resize(before + end);
  long_whole_ = true;
}

bool LineStream::PublishLong() {
  char* data;
  try {
    data = AllocateExtents(long_line_.size());
  } catch (const QueryError& error) {
    Stop(StreamState::kFailed, error.error);
    return false;
  }
  std::memcpy(data, long_line_.data(), long_line_.size());
  if (!writer_.PublishOversized(data, long_line_.size())) {
    FreeExtents(data, long_line_.size());
    WaitForLatch();
    return false;
  }
  std::string().swap(long_line_);
  long_whole_ = false;
  return true;
}

// The last line may come without its newline.
void LineStream::AtEnd() {
  if (framing_.in_quotes()) {
    return Stop(StreamState::kFailed,
                MakeError(sqlstate::kBadCopyFileFormat, "unterminated CSV quoted field"));
  }
  if (writer_.unparsed_bytes() > 0) {
    *writer_.room() = '\n';
    writer_.Received(1);
    writer_.AddRows(writer_.unparsed_bytes(), 1);
  }
  writer_.Finish();
  Stop(StreamState::kEnded, std::nullopt);
}

void LineStream::Detach() {
  if (!ended() && !stopping_) Stop(StreamState::kCancelled, std::nullopt);
}

void LineStream::Stop(StreamState state, std::optional<Error> error) {
  stopping_ = true;
  end_state_ = state;
  end_error_ = std::move(error);
  connect_timer_.Disarm();
  worker_->ring->Cancel(&connect_poll_);
  if (socket_.receiving()) socket_.CancelReceive();
  TryFinish();
}

// Not before the last operation is done: the kernel may be writing into the chunk.
void LineStream::TryFinish() {
  if (socket_.busy() || connect_poll_.in_flight || ended()) return;
  writer_.Abandon();
  fd_.Reset();
  End(end_state_, end_error_ ? &*end_error_ : nullptr);
}

}  // namespace sluice
