// From a fresh connection to the first ReadyForQuery.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "postmaster/activity.h"
#include "postmaster/fatal_error.h"
#include "postmaster/session.h"
#include "postmaster/setting_checks.h"
#include "postmaster/startup_packet.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

constexpr int kNegotiationsMax = 4;  // SSL and GSS requests before the start-up packet

// The address as text; "" for a unix socket.
std::string TextOf(const sockaddr_storage& storage, int* port) {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    auto* in = reinterpret_cast<const sockaddr_in*>(&storage);
    inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
    *port = ntohs(in->sin_port);
  } else if (storage.ss_family == AF_INET6) {
    auto* in = reinterpret_cast<const sockaddr_in6*>(&storage);
    inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text);
    *port = ntohs(in->sin6_port);
  }
  return text;
}

PeerAddress AddressOf(int fd) {
  PeerAddress peer;
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return peer;
  peer.address = TextOf(storage, &peer.port);
  if (peer.port < 0) return peer;
  int own_port = 0;
  length = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) == 0)
    peer.server_address = TextOf(storage, &own_port);
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  return peer;
}

int32_t RandomKey() {
  int32_t key = 0;
  while (key == 0)
    if (getrandom(&key, sizeof key, 0) != sizeof key) key = 0;
  return key;
}

}  // namespace

bool Session::StartUp() {
  int64_t deadline_us = MonotonicUs() + settings_.Integer("authentication_timeout") * 1'000'000;
  PeerAddress peer = AddressOf(client_.fd());
  ReportSession("", "", peer.address, peer.port);
  for (int negotiations = 0;;) {
    ResetLatch(&my_proc->latch);
    HandleIdleRequests();
    std::optional<MessageReader::Message> packet;
    try {
      packet = client_.TryTake(true);
    } catch (const QueryError& e) {
      throw FatalError{e.error};
    }
    if (!packet) {
      int64_t left_ms = (deadline_us - MonotonicUs()) / 1000;
      if (left_ms <= 0) {
        Log(LogLevel::kLog, "client did not complete its start-up in time");
        throw ClientGone{};
      }
      client_.WaitForInput(static_cast<int>(left_ms));
      continue;
    }
    BodyReader body(packet->body);
    auto code = body.Int<int32_t>();
    if (code == kCancelRequestCode) {
      HandleCancelRequest(body.rest());
      return false;
    }
    if (code == kSslRequestCode || code == kGssEncRequestCode) {
      if (++negotiations > kNegotiationsMax)
        throw FatalError{MakeError(sqlstate::kProtocolViolation, "too many encryption requests")};
      if (code == kSslRequestCode) {
        AnswerSslRequest(deadline_us);
      } else {
        client_.out()->push_back('N');
        client_.Flush();
      }
      continue;
    }
    try {
      ReadStartupOptions(&body, code);
      ReportSession(user_, database_, peer.address, peer.port);
      RefreshSettings();
      auto idle_s = static_cast<int>(settings_.Integer("tcp_keepalives_idle"));
      if (peer.port >= 0 && idle_s > 0)
        setsockopt(client_.fd(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
      follower_.emplace(config_.directory);
      RefreshCatalog();  // now, so that the first statement need not wait for it
      Authenticate(peer, deadline_us);
      GuardRoles();
      SendGreeting();
    } catch (const QueryError& e) {
      throw FatalError{e.error};
    }
    if (settings_.Boolean("log_connections"))
      Log(LogLevel::kLog, "connection authorized: user={} database={} application_name={}", user_,
          database_, settings_.Text("application_name"));
    return true;
  }
}

void Session::AnswerSslRequest(int64_t deadline_us) {
  const std::shared_ptr<TlsContext>& tls = config_.authentication->tls;
  bool offered = tls != nullptr && client_.tls() == nullptr;
  client_.out()->push_back(offered ? 'S' : 'N');
  client_.Flush();
  if (!offered) return;
  try {
    client_.StartTls(tls, deadline_us);
  } catch (const QueryError& e) {
    LogError(LogLevel::kLog, e.error);  // nothing that the client could read can be sent
    throw ClientGone{};
  }
}

void Session::ReadStartupOptions(BodyReader* body, int32_t version) {
  if ((version >> 16) != 3)
    Throw(sqlstate::kFeatureNotSupported,
          "unsupported frontend protocol {}.{}: server supports 3.0 to 3.0", version >> 16,
          version & 0xffff);
  std::vector<std::pair<std::string, std::string>> client_settings;
  std::vector<std::string> unknown_options;
  std::string options;
  for (;;) {
    std::string name(body->CString());
    if (name.empty()) break;
    std::string value(body->CString());
    if (name == "user")
      user_ = value;
    else if (name == "database")
      database_ = value;
    else if (name == "options")
      options = value;
    else if (name.starts_with("_pq_."))
      unknown_options.push_back(name);
    else if (name == "replication") {
      if (ParseBoolean(value) != std::optional(false))
        Refuse("replication connections are not supported");
    } else
      client_settings.emplace_back(name, value);
  }
  body->ExpectEnd();
  if (user_.empty())
    Throw(sqlstate::kInvalidAuthorizationSpecification,
          "no PostgreSQL user name specified in startup packet");
  if (database_.empty()) database_ = user_;
  user_.resize(std::min<size_t>(user_.size(), 63));
  database_.resize(std::min<size_t>(database_.size(), 63));
  if (version != kProtocol3 || !unknown_options.empty()) {
    MessageWriter message(client_.out());
    message.Begin('v');
    message.Int<int32_t>(kProtocol3);
    message.Int<int32_t>(static_cast<int32_t>(unknown_options.size()));
    for (const std::string& name : unknown_options) message.CString(name);
    message.End();
  }
  ApplyCommandLineOptions(options);
  for (const auto& [name, value] : client_settings) ApplyClientSetting(name, value);
  settings_.Set("session_authorization", user_, SettingSource::kFile);
}

void Session::ApplyClientSetting(const std::string& name, const std::string& value) {
  if (FindSetting(name) == nullptr && name.find('.') == std::string::npos)
    Throw(sqlstate::kUndefinedObject, "unrecognized configuration parameter \"{}\"", name);
  settings_.Set(name, value, SettingSource::kClient);
}

// "-c name=value" and "--name=value", separated by spaces; a backslash keeps the next character.
void Session::ApplyCommandLineOptions(std::string_view options) {
  std::vector<std::string> words;
  bool in_word = false;
  for (size_t i = 0; i < options.size(); i++) {
    if (isspace(static_cast<unsigned char>(options[i]))) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (options[i] == '\\' && i + 1 < options.size()) i++;
    words.back().push_back(options[i]);
  }
  for (size_t i = 0; i < words.size(); i++) {
    std::string setting;
    if (words[i] == "-c" && i + 1 < words.size())
      setting = words[++i];
    else if (words[i].starts_with("-c"))
      setting = words[i].substr(2);
    else if (words[i].starts_with("--"))
      setting = words[i].substr(2);
    size_t equals = setting.find('=');
    if (equals == std::string::npos)
      Throw(sqlstate::kSyntaxError, "invalid command-line argument for server process: {}",
            words[i]);
    std::string name = setting.substr(0, equals);
    std::replace(name.begin(), name.end(), '-', '_');
    ApplyClientSetting(name, setting.substr(equals + 1));
  }
}

void Session::SendGreeting() {
  MessageWriter message(client_.out());
  message.Begin('R');
  message.Int<int32_t>(0);  // AuthenticationOk
  message.End();
  SendReports();
  int32_t key = RandomKey();
  my_proc->cancel_key.store(key, std::memory_order_relaxed);
  message.Begin('K');
  message.Int<int32_t>(getpid());
  message.Int<int32_t>(key);
  message.End();
}

}  // namespace sluice
