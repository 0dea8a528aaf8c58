// Connecting: libpq does it, driven by polls on the ring. It must not look a host name up meanwhile
// (that blocks), so names are resolved by the backends and come as hostaddr.
#include <arpa/inet.h>
#include <charconv>
#include <cstdio>
#include <openssl/ssl.h>
#include <poll.h>

#include "common/assert.h"
#include "fdw/connection.h"
#include "fdw/pool.h"
#include "fdw/postgres_stream.h"

namespace sluice {
namespace {

bool IsNumericAddress(const std::string& host) {
  char address[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address) == 1;
}

// libpq has no SQLSTATE for a failed connect but in the text of a verbose message:
//   … FATAL:  28P01: password authentication failed for user "u"\nLOCATION:  auth_failed,
//   auth.c:335
// Takes it out, and the LOCATION line.
SqlState TakeSqlState(std::string* message) {
  if (size_t location = message->find("\nLOCATION:"); location != std::string::npos) {
    message->resize(location);
  }
  for (size_t at = message->find(":  "); at != std::string::npos;
       at = message->find(":  ", at + 1)) {
    std::string_view code = std::string_view(*message).substr(at + 3, 6);
    bool is_code = code.size() == 6 && code[5] == ':' &&
                   std::all_of(code.begin(), code.begin() + 5, [](char c) {
                     return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
                   });
    if (!is_code) continue;
    SqlState state = MakeSqlState(code.substr(0, 5));
    message->erase(at + 3, 7);
    return state;
  }
  return sqlstate::kUnableToEstablishConnection;
}

// Class 28 says that the user mapping is wrong, which no retry will mend; the rest is "could not
// connect".
bool IsAuthorization(SqlState state) {
  return SqlStateText(state).starts_with("28");
}

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

void Connection::StartConnect() {
  int64_t not_before_us = pool_->next_connect_us();
  if (not_before_us > worker_->now_us) return connect_timer_.Arm(not_before_us);
  if (std::optional<Error> error = CheckNoLookup()) return ConnectFailed(std::move(*error));

  std::vector<const char*> keywords = pool_->keywords(), values = pool_->values();
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  libpq_ = PQconnectStartParams(keywords.data(), values.data(), 0);
  if (libpq_ == nullptr || PQstatus(libpq_) == CONNECTION_BAD) {
    return ConnectFailed(
        MakeError(sqlstate::kUnableToEstablishConnection, "{}",
                  libpq_ == nullptr ? "out of memory" : Trimmed(PQerrorMessage(libpq_))));
  }
  PQsetErrorVerbosity(libpq_, PQERRORS_VERBOSE);
  PQsetNoticeProcessor(
      libpq_, [](void*, const char*) {}, nullptr);
  trace_ = open_memstream(&trace_text_, &trace_bytes_);
  if (trace_ != nullptr) {
    PQtrace(libpq_, trace_);
    PQsetTraceFlags(libpq_, PQTRACE_SUPPRESS_TIMESTAMPS);
  }
  int64_t timeout_us = worker_->config.connect_timeout_us;
  std::string_view option = pool_->Option("connect_timeout");
  int seconds = 0;
  std::from_chars(option.data(), option.data() + option.size(), seconds);
  if (seconds > 0) timeout_us = int64_t{seconds} * 1000000;
  connect_timer_.Arm(worker_->now_us + timeout_us);
  worker_->ring->Poll(&connect_poll_, PQsocket(libpq_), POLLOUT);
}

std::optional<Error> Connection::CheckNoLookup() const {
  std::string host(pool_->Option("host"));
  bool needs_lookup = !host.empty() && host[0] != '/' && host[0] != '@' &&
                      !IsNumericAddress(host) && pool_->Option("hostaddr").empty();
  if (!needs_lookup) return std::nullopt;
  return MakeError(sqlstate::kUnableToEstablishConnection, "host name \"{}\" was not resolved",
                   host);
}

void Connection::OnConnectPoll() {
  if (state_ != State::kConnecting) return;
  switch (PQconnectPoll(libpq_)) {
    case PGRES_POLLING_READING:
      return worker_->ring->Poll(&connect_poll_, PQsocket(libpq_), POLLIN);
    case PGRES_POLLING_WRITING:
      return worker_->ring->Poll(&connect_poll_, PQsocket(libpq_), POLLOUT);
    case PGRES_POLLING_OK:
      return OnConnectReady();
    default: {
      std::string message = Trimmed(PQerrorMessage(libpq_));
      SqlState state = TakeSqlState(&message);
      return ConnectFailed(MakeError(state, "{}", message));
    }
  }
}

void Connection::OnConnectReady() {
  connect_timer_.Disarm();
  ReadCancelKey();
  state_ = State::kOpen;
  transaction_status_ = 'I';
  last_received_us_ = worker_->now_us;
  auto* tls = static_cast<SSL*>(PQsslStruct(libpq_, "OpenSSL"));
  socket_.Attach(PQsocket(libpq_), tls);
  pool_->OnConnected();
  if (stream_ != nullptr) {
    Begin();
  } else {
    BecomeFree();
  }
}

void Connection::Adopt(int fd) {
  adopted_.Reset(fd);
  state_ = State::kOpen;
  socket_.Attach(fd, nullptr);
  applied_setup_ = "";
  idle_ = true;
}

// In the trace: "B\t12\tBackendKeyData\t 4711 -123456789".
void Connection::ReadCancelKey() {
  if (trace_ == nullptr) return;
  PQuntrace(libpq_);
  std::fflush(trace_);
  std::string_view text(trace_text_, trace_bytes_);
  if (size_t at = text.rfind("BackendKeyData"); at != std::string_view::npos) {
    int pid, key;
    std::string line(text.substr(at, text.find('\n', at) - at));
    if (std::sscanf(line.c_str(), "BackendKeyData %d %d", &pid, &key) == 2) {
      backend_pid_ = static_cast<uint32_t>(pid);
      cancel_key_ = static_cast<uint32_t>(key);
    }
  }
  CloseTrace();
}

void Connection::CloseTrace() {
  if (trace_ == nullptr) return;
  std::fclose(trace_);
  free(trace_text_);
  trace_ = nullptr;
  trace_text_ = nullptr;
}

void Connection::OnConnectTimer() {
  if (state_ != State::kConnecting) return;
  if (libpq_ == nullptr) return StartConnect();  // the backoff is over
  ConnectFailed(MakeError(sqlstate::kUnableToEstablishConnection, "timeout expired"));
}

void Connection::ConnectFailed(Error error) {
  pool_->OnConnectFailed();
  Error report =
      MakeError(IsAuthorization(error.state) ? error.state : sqlstate::kUnableToEstablishConnection,
                "could not connect to server \"{}\"", pool_->server_name());
  report.detail = std::move(error.message);
  Log(LogLevel::kLog, "{}: {}", report.message, report.detail);
  Lost(std::move(report));
}

}  // namespace sluice
