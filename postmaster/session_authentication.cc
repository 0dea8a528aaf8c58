// Who the client is, and whether he may come in.
#include <pwd.h>
#include <sys/socket.h>

#include "catalog/privilege.h"
#include "common/log.h"
#include "postmaster/authentication.h"
#include "postmaster/child_process.h"
#include "postmaster/fatal_error.h"
#include "postmaster/session.h"
#include "shm/shared_memory.h"
#include "types/codec.h"
#include "wire/scram.h"

namespace sluice {
namespace {

constexpr int32_t kAuthenticationSasl = 10, kAuthenticationSaslContinue = 11,
                  kAuthenticationSaslFinal = 12;

[[noreturn]] void Deny(SqlState state, std::string message, std::string log_detail = {}) {
  if (!log_detail.empty()) Log(LogLevel::kLog, "{}", log_detail);
  throw FatalError{MakeError(state, "{}", message)};
}

void SendAuthentication(std::string* out, int32_t code, std::string_view body) {
  MessageWriter message(out);
  message.Begin('R');
  message.Int<int32_t>(code);
  message.Bytes(body);
  message.End();
}

std::string UnixUserOf(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return "";
  passwd entry{};
  passwd* found = nullptr;
  char buffer[4096];
  if (getpwuid_r(credentials.uid, &entry, buffer, sizeof buffer, &found) != 0 || found == nullptr)
    return "";
  return found->pw_name;
}

// Other sessions of the role.
int SessionsOf(const std::string& user) {
  const ProcessTable& table = shared_memory->processes;
  int count = 0;
  for (uint32_t i = 0; i < table.backends; i++) {
    ActivityRow row;
    const ProcSlot& slot = table.slots[table.first_backend + i];
    if (&slot != my_proc && ReadActivity(slot, &row) && user == row.user) count++;
  }
  return count;
}

bool HasExpired(const Role& role) {
  if (role.valid_until.empty()) return false;
  Arena arena;
  SessionSettings settings;
  std::string_view value = ParseText(kTimestamptzOid, -1, role.valid_until, settings, &arena);
  return LoadBig<int64_t>(value.data()) < PostgresNow();
}

}  // namespace

void Session::Authenticate(const PeerAddress& peer, int64_t deadline_us) {
  const TlsChannel* tls = client_.tls();
  const Role* role = catalog_->FindRole(user_);
  auto is_member = [&](std::string_view name) {
    const Role* group = catalog_->FindRole(name);
    return role != nullptr && group != nullptr && IsMemberOf(*catalog_, *role, group->oid);
  };
  const HbaLine* line =
      MatchHba(config_.authentication->hba, {.address = peer.address,
                                             .server_address = peer.server_address,
                                             .tls = tls != nullptr,
                                             .database = database_,
                                             .user = user_,
                                             .is_member = is_member});
  std::string who = fmt::format("host \"{}\", user \"{}\", database \"{}\"{}",
                                peer.address.empty() ? "[local]" : peer.address, user_, database_,
                                peer.address.empty() ? ""
                                : tls != nullptr     ? ", SSL encryption"
                                                     : ", no encryption");
  if (line == nullptr)
    Deny(sqlstate::kInvalidAuthorizationSpecification, "no pg_hba.conf entry for " + who);
  if (line->verify_client_certificate && !tls->has_client_certificate())
    Deny(sqlstate::kInvalidAuthorizationSpecification,
         "connection requires a valid client certificate");
  if (line->verify_client_name && tls->ClientName() != user_)
    Deny(sqlstate::kInvalidAuthorizationSpecification,
         fmt::format("certificate authentication failed for user \"{}\"", user_),
         fmt::format("the client certificate is for \"{}\"", tls->ClientName()));
  switch (line->method) {
    case AuthMethod::kTrust:
    case AuthMethod::kCert:
      break;
    case AuthMethod::kReject:
      Deny(sqlstate::kInvalidAuthorizationSpecification,
           "pg_hba.conf rejects connection for " + who);
    case AuthMethod::kPeer:
      if (UnixUserOf(client_.fd()) != user_)
        Deny(sqlstate::kInvalidAuthorizationSpecification,
             fmt::format("Peer authentication failed for user \"{}\"", user_));
      break;
    case AuthMethod::kScram:
      AuthenticateByPassword(deadline_us);
      break;
  }
  RequireMayConnect();
}

void Session::RequireMayConnect() {
  const Role* role = catalog_->FindRole(user_);
  if (role == nullptr)
    Deny(sqlstate::kInvalidAuthorizationSpecification,
         fmt::format("role \"{}\" does not exist", user_));
  if (!role->login)
    Deny(sqlstate::kInvalidAuthorizationSpecification,
         fmt::format("role \"{}\" is not permitted to log in", user_));
  settings_.Set("is_superuser", role->superuser ? "on" : "off", SettingSource::kFile);
  auto names = SplitIdentifiers(settings_.Text("database_names"));
  if (!names || std::find(names->begin(), names->end(), database_) == names->end())
    Deny(sqlstate::kInvalidCatalogName, fmt::format("database \"{}\" does not exist", database_));
  if (role->connection_limit >= 0 && !role->superuser &&
      SessionsOf(user_) >= role->connection_limit)
    Deny(sqlstate::kTooManyConnections, fmt::format("too many connections for role \"{}\"", user_));
}

const std::string& Session::current_user() const {
  const std::string& role = settings_.Text("role");
  return role == "none" ? session_user() : role;
}

const Role& Session::CurrentRole() const {
  const Role* role = catalog_->FindRole(current_user());
  if (role == nullptr)
    Throw(sqlstate::kUndefinedObject, "role \"{}\" does not exist", current_user());
  return *role;
}

void Session::GuardRoles() {
  settings_.SetGuard([this](const SettingInfo& setting, const std::string& value) {
    if (setting.name == "session_authorization" || (setting.name == "role" && value != "none"))
      RequireMaySetRole(setting.name, value);
  });
  // What came in the startup packet was stored before anyone knew who the user is.
  for (const char* name : {"session_authorization", "role"}) {
    const std::string value = settings_.Text(name);
    if (settings_.Source(name) == SettingSource::kClient)
      settings_.Set(name, value, SettingSource::kClient);
  }
}

void Session::RequireMaySetRole(std::string_view setting, const std::string& name) const {
  const Role* to = catalog_->FindRole(name);
  if (to == nullptr) Throw(sqlstate::kInvalidParameterValue, "role \"{}\" does not exist", name);
  const Role* self = catalog_->FindRole(setting == "role" ? session_user() : user_);
  if (setting == "role") {
    if (self == nullptr || !IsMemberOf(*catalog_, *self, to->oid))
      Throw(sqlstate::kInsufficientPrivilege, "permission denied to set role \"{}\"", name);
  } else if (name != user_ && (self == nullptr || !self->superuser)) {
    Throw(sqlstate::kInsufficientPrivilege, "permission denied to set session authorization");
  }
}

void Session::AuthenticateByPassword(int64_t deadline_us) {
  const Role* role = catalog_->FindRole(user_);
  std::optional<ScramVerifier> verifier;
  if (role != nullptr && !HasExpired(*role)) verifier = ParseScramVerifier(role->password_verifier);
  bool doomed = !verifier;
  if (doomed) verifier = MakeMockVerifier(user_, config_.authentication->mock_secret);
  std::string certificate_hash =
      client_.tls() != nullptr ? client_.tls()->ServerCertificateHash() : "";
  bool plus_offered = !certificate_hash.empty();

  std::string mechanisms;
  for (std::string_view mechanism : {kScramSha256Plus, kScramSha256})
    if (plus_offered || mechanism == kScramSha256) mechanisms.append(mechanism).push_back('\0');
  mechanisms.push_back('\0');
  SendAuthentication(client_.out(), kAuthenticationSasl, mechanisms);

  std::string initial = ReadAuthenticationMessage(deadline_us);
  BodyReader body(initial);
  std::string mechanism(body.CString());
  auto length = body.Int<int32_t>();
  std::string_view client_first =
      length < 0 ? std::string_view() : body.Bytes(static_cast<size_t>(length));
  body.ExpectEnd();
  ScramServer exchange(*verifier, doomed, mechanism, certificate_hash, plus_offered);
  SendAuthentication(client_.out(), kAuthenticationSaslContinue,
                     exchange.ServerFirst(client_first));
  auto server_final = exchange.ServerFinal(ReadAuthenticationMessage(deadline_us));
  if (!server_final)
    Deny(sqlstate::kInvalidPassword,
         fmt::format("password authentication failed for user \"{}\"", user_),
         role == nullptr                   ? fmt::format("role \"{}\" does not exist", user_)
         : role->password_verifier.empty() ? fmt::format("role \"{}\" has no password", user_)
         : HasExpired(*role) ? fmt::format("role \"{}\" has an expired password", user_)
                             : "the password does not match");
  SendAuthentication(client_.out(), kAuthenticationSaslFinal, *server_final);
}

// The body of a SASL message.
std::string Session::ReadAuthenticationMessage(int64_t deadline_us) {
  client_.Flush();
  for (;;) {
    ResetLatch(&my_proc->latch);
    HandleIdleRequests();
    if (auto message = client_.TryTake(false)) {
      if (message->type != 'p')
        Throw(sqlstate::kProtocolViolation, "expected SASL response, got message type {}",
              static_cast<int>(message->type));
      return std::string(message->body);
    }
    int64_t left_ms = (deadline_us - MonotonicUs()) / 1000;
    if (left_ms <= 0) {
      Log(LogLevel::kLog, "client did not complete its authentication in time");
      throw ClientGone{};
    }
    client_.WaitForInput(static_cast<int>(left_ms));
  }
}

}  // namespace sluice
