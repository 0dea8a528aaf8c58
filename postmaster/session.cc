#include "postmaster/session.h"

#include "common/log.h"
#include "postmaster/activity.h"
#include "postmaster/child_process.h"
#include "postmaster/config_file.h"
#include "postmaster/fatal_error.h"
#include "postmaster/lease_set.h"
#include "postmaster/object_names.h"
#include "postmaster/redact.h"
#include "postmaster/server_config.h"
#include "shm/shared_memory.h"
#include "shm/stream.h"

namespace sluice {

Session::Session(UniqueFd client, const BackendConfig& config)
    : config_(config),
      client_(std::move(client)),
      settings_(*config.settings),
      leases_(std::make_unique<LeaseSet>()) {}

Session::~Session() = default;

void Session::Run() {
  try {
    if (!StartUp()) return;
    for (;;) {
      try {
        ServeOneMessage();
      } catch (const QueryError& e) {
        HandleError(e.error);
      } catch (const std::bad_alloc&) {
        HandleError(MakeError(sqlstate::kOutOfMemory, "out of memory"));
      } catch (const std::exception& e) {
        HandleError(MakeError(sqlstate::kInternalError, "{}", e.what()));
      }
    }
  } catch (const FatalError& fatal) {
    portals_.clear();  // first of all what is held on the shards
    distributed_.Abandon();
    LogError(LogLevel::kFatal, fatal.error);
    WriteErrorResponse(client_.out(), fatal.error, "FATAL");
    client_.FlushWithoutWaiting();
  } catch (const ClientGone&) {
    portals_.clear();
    distributed_.Abandon();
  }
  if (settings_.Boolean("log_disconnections") && !user_.empty())
    Log(LogLevel::kLog, "disconnection: user={} database={}", user_, database_);
}

void Session::ServeOneMessage() {
  if (ready_wanted_) SendReady();
  MessageReader::Message message = ReadMessage();
  if (message.type == 'X') throw ClientGone{};
  if (skip_to_sync_ && message.type != 'S') return;
  extended_ = message.type != 'Q' && message.type != 'F';
  Dispatch(message);
}

void Session::Dispatch(const MessageReader::Message& message) {
  BodyReader body(message.body);
  switch (message.type) {
    case 'Q': {
      ready_wanted_ = true;
      std::string_view text = body.CString();
      body.ExpectEnd();
      return SimpleQuery(text);
    }
    case 'P':
      return Parse(body);
    case 'B':
      return Bind(body);
    case 'D':
      return Describe(body);
    case 'E':
      return Execute(body);
    case 'C':
      return Close(body);
    case 'H':
      return client_.Flush(false);
    case 'S':
      skip_to_sync_ = false;
      ready_wanted_ = true;
      if (transaction_.state() == TransactionState::kImplicit) Commit();
      return;
    case 'F':
      ready_wanted_ = true;
      Refuse("function call messages are not supported");
    case 'd':
    case 'c':
    case 'f':
      return;  // of a COPY that has failed: Postgres ignores them too
    default:
      break;
  }
  throw FatalError{MakeError(sqlstate::kProtocolViolation, "invalid frontend message type {}",
                             static_cast<int>(message.type))};
}

// --- reading

MessageReader::Message Session::ReadMessage() {
  for (;;) {
    ResetLatch(&my_proc->latch);
    HandleIdleRequests();
    bool look = !std::exchange(just_answered_, false) || client_.may_have_input();
    try {
      if (look)
        if (auto message = client_.TryTake(false)) return *message;
    } catch (const QueryError& e) {
      throw FatalError{e.error};  // where the next message begins is lost
    }
    if (!WaitForMessage()) HandleIdleTimeout();
  }
}

// False: the session was idle for too long. What is lent to it goes back sooner.
bool Session::WaitForMessage() {
  constexpr int kLeaseIdleMs = 1000;
  int timeout_ms = IdleTimeoutMs();
  if (!leases_->empty() && (timeout_ms < 0 || timeout_ms > kLeaseIdleMs)) {
    if (client_.WaitForInput(kLeaseIdleMs) != Woken::kTimeout) return true;
    leases_->GiveBackIdle();
    if (timeout_ms > 0) timeout_ms -= kLeaseIdleMs;
  }
  for (int delay_ms = SpillDelayMs(); delay_ms >= 0 && (timeout_ms < 0 || timeout_ms > delay_ms);
       delay_ms = SpillDelayMs()) {
    if (client_.WaitForInput(delay_ms) != Woken::kTimeout) return true;
    SpillSuspendedPortals();
    if (timeout_ms > 0) timeout_ms -= delay_ms;
  }
  return client_.WaitForInput(timeout_ms) != Woken::kTimeout;
}

int Session::SpillDelayMs() const {
  bool holds = std::any_of(portals_.begin(), portals_.end(), [](const auto& entry) {
    return entry.second->running != nullptr && entry.second->running->holds_unread();
  });
  // Not so often that looking is work.
  return holds ? static_cast<int>(std::max<int64_t>(10, settings_.Integer("spill_delay"))) : -1;
}

void Session::MakeRoom() {
  for (auto& [name, portal] : portals_) {
    if (!ChunksAreShort()) return;
    if (portal->running != nullptr && portal->running->holds_unread())
      portal->running->SpillSuspended({-1, 0, 0});
  }
}

void Session::SpillSuspendedPortals() {
  for (auto& [name, portal] : portals_) {
    if (!OthersAwaitAdmission()) return;
    if (portal->running != nullptr && portal->running->holds_unread())
      portal->running->SpillSuspended({client_.fd(), POLLIN | POLLRDHUP, 0});
  }
}

int Session::IdleTimeoutMs() const {
  int64_t ms = settings_.Integer(transaction_.in_block() ? "idle_in_transaction_session_timeout"
                                                         : "idle_session_timeout");
  return ms == 0 ? -1 : static_cast<int>(std::min<int64_t>(ms, 1 << 30));
}

void Session::HandleIdleTimeout() {
  if (transaction_.in_block())
    throw FatalError{MakeError(MakeSqlState("25P03"),
                               "terminating connection due to idle-in-transaction timeout")};
  throw FatalError{MakeError(sqlstate::kIdleSessionTimeout,
                             "terminating connection due to idle-session timeout")};
}

void Session::HandleIdleRequests() {
  // A cancel that finds nothing running is forgotten, as in Postgres.
  my_proc->cancel_requested.store(0, std::memory_order_relaxed);
  if (my_proc->terminate_requested.load(std::memory_order_relaxed) != 0)
    throw FatalError{
        MakeError(sqlstate::kAdminShutdown, "terminating connection due to administrator command")};
  if (my_proc->reload_requested.exchange(0, std::memory_order_relaxed) != 0) ReloadConfiguration();
}

void Session::ReloadConfiguration() {
  auto lines = ReadConfigFile(settings_.Text("config_file"));
  if (lines)
    ApplyConfig(*lines, true, &settings_);  // the postmaster has logged what is wrong in it
  ApplyLogLevel(settings_);
}

// --- answering

void Session::SendReports() {
  for (const auto& [name, value] : settings_.TakeReports()) {
    MessageWriter message(client_.out());
    message.Begin('S');
    message.CString(name);
    message.CString(value);
    message.End();
  }
}

void Session::SendReady() {
  RefreshSettings();
  SendReports();
  ReportState(transaction_.failed()     ? ActivityState::kIdleInFailedTransaction
              : transaction_.in_block() ? ActivityState::kIdleInTransaction
                                        : ActivityState::kIdle,
              transaction_.started_at());
  MessageWriter message(client_.out());
  message.Begin('Z');
  message.Int<char>(transaction_.status());
  message.End();
  ready_wanted_ = false;
  client_.Flush(false);
  just_answered_ = true;
}

// What a simple query's last statement did is committed before the client is told that it is done.
void Session::SendCommandComplete(std::string_view tag) {
  if (std::exchange(ends_message_, false) && transaction_.state() == TransactionState::kImplicit) {
    std::string kept(tag);  // the commit drops portals
    Commit();
    return SendCommandComplete(kept);
  }
  MessageWriter message(client_.out());
  message.Begin('C');
  message.CString(tag);
  message.End();
}

void Session::SendNotice(const Error& error, std::string_view severity) {
  static constexpr std::string_view kOrder[] = {"DEBUG",  "LOG",     "INFO",
                                                "NOTICE", "WARNING", "ERROR"};
  auto rank = [](std::string_view level) {
    for (size_t i = 0; i < std::size(kOrder); i++)
      if (level.starts_with(kOrder[i])) return i;
    return size_t{0};
  };
  std::string least = settings_.Text("client_min_messages");
  for (char& c : least) c = static_cast<char>(toupper(c));
  if (severity != "INFO" && rank(severity) < rank(least)) return;
  WriteErrorResponse(client_.out(), error, severity, 'N');
}

void Session::Warn(SqlState state, std::string message) {
  Error error;
  error.state = state;
  error.message = std::move(message);
  SendNotice(error, "WARNING");
}

void Session::HandleError(const Error& error) {
  if (error.state == sqlstate::kAdminShutdown &&
      my_proc->terminate_requested.load(std::memory_order_relaxed) != 0)
    throw FatalError{error};
  if (error.state == sqlstate::kConnectionFailure && client_.PeerIsGone()) {
    LogError(LogLevel::kLog, error);
    throw ClientGone{};
  }
  Error logged = error;
  // ERROR is above every level but log, fatal and panic.
  const std::string& least = settings_.Text("log_min_error_statement");
  bool with_text = least != "log" && least != "fatal" && least != "panic";
  // A syntax error's message quotes what is near it.
  if (error.state == sqlstate::kSyntaxError &&
      current_text_.find("<redacted>") != std::string_view::npos)
    logged.message = "syntax error in a statement with a password";
  if (with_text && !current_text_.empty())
    logged.message.append("  STATEMENT: ").append(current_text_);
  LogError(LogLevel::kError, logged);
  statement_deadline_us = 0;
  client_socket = -1;
  current_text_ = {};
  if (transaction_.in_block()) {
    DropPortals(transaction_.level());
    distributed_.OnError();
    transaction_.Fail();
  } else {
    distributed_.OnError();
    Rollback();
  }
  WriteErrorResponse(client_.out(), error, "ERROR");
  if (extended_) {
    skip_to_sync_ = true;
    client_.Flush(false);
  } else {
    ready_wanted_ = true;
  }
}

// --- around a statement

void Session::BeginStatement(std::string_view text) {
  ends_message_ = false;
  if (transaction_.state() == TransactionState::kNone) StartTransaction();
  // The messages of the extended protocol name the same statement one after the other.
  bool shown = text == shown_text_;
  if (!shown) shown_text_ = RedactPasswords(text);
  current_text_ = shown_text_;
  statement_start_us_ = MonotonicUs();
  int64_t now = PostgresNow();
  ReportQuery(current_text_, shown, now);
  ReportState(ActivityState::kActive, transaction_.started_at());
  RefreshSettings();
  session_settings_.now = transaction_.started_at();
  session_settings_.statement_now = now;
  int64_t timeout_ms = settings_.Integer("statement_timeout");
  statement_deadline_us = timeout_ms == 0 ? 0 : statement_start_us_ + timeout_ms * 1000;
  client_socket = settings_.Integer("client_connection_check_interval") == 0 ? -1 : client_.fd();
  RefreshCatalog();
  ShowCatalogToFunctions();
}

void Session::ShowCatalogToFunctions() {
  if (!SeesCatalog(catalog_, settings_.version()))
    SetCatalogSession({catalog_, &settings_, settings_.version(), &session_settings_,
                       SearchPath(settings_, current_user()), current_user(), database_});
}

void Session::BeginRemote(bool last) {
  distributed_.BeginStatement(last && transaction_.state() == TransactionState::kImplicit);
}

void Session::EndStatement(std::string_view what) {
  statement_deadline_us = 0;
  client_socket = -1;
  int64_t slow_ms = settings_.Integer("log_min_duration_statement");
  if (slow_ms >= 0) {
    int64_t took_us = MonotonicUs() - statement_start_us_;
    if (took_us >= slow_ms * 1000)
      LogLine(LogLevel::kLog, sqlstate::kSuccess,
              fmt::format("duration: {}.{:03} ms  {}: {}", took_us / 1000, took_us % 1000, what,
                          current_text_));
  }
  current_text_ = {};
}

void Session::RefreshCatalog() {
  if (catalog_pending_) return;  // the transaction goes on with its own changes
  catalog_ = follower_->Refresh();
}

void Session::RefreshSettings() {
  if (settings_.version() == settings_seen_) return;
  settings_seen_ = settings_.version();
  DeriveSessionSettings(settings_, &session_settings_);
  ReportApplicationName(settings_.Text("application_name"));
}

const QuerySession& Session::MakeQuerySession() {
  QuerySession& session = query_session_;
  session.catalog = catalog_;
  if (query_session_version_ == settings_.version()) return session;
  query_session_version_ = settings_.version();
  session.transaction = &distributed_;
  session.settings = &settings_;
  session.session_settings = &session_settings_;
  session.user = current_user();
  session.database = database_;
  session.data_directory = config_.directory;
  session.temp_directory = TempDirectory(settings_, config_.directory);
  session.leases = settings_.Boolean("lend_connections") ? leases_.get() : nullptr;
  return session;
}

void Session::RequireNotFailed(const Statement& statement) const {
  if (!transaction_.failed() || !statement.raw) return;
  std::string_view command = CommandName(*statement.raw);
  if (command == "COMMIT" || command == "ROLLBACK" || command == "ROLLBACK TO" ||
      command == "PREPARE TRANSACTION")
    return;
  Throw(sqlstate::kInFailedSqlTransaction,
        "current transaction is aborted, commands ignored until end of transaction block");
}

}  // namespace sluice
