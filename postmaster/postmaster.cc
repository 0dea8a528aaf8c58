#include "postmaster/postmaster.h"

#include <cerrno>
#include <filesystem>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catalog/builtin.h"
#include "common/log.h"
#include "executor/executor.h"
#include "fdw/io_worker.h"
#include "parser/prescan.h"
#include "postmaster/authentication.h"
#include "postmaster/backend.h"
#include "postmaster/catalog_follower.h"
#include "postmaster/child_process.h"
#include "postmaster/config_file.h"
#include "postmaster/decision_log.h"
#include "postmaster/listen.h"
#include "postmaster/lock_file.h"
#include "postmaster/server_config.h"
#include "postmaster/server_kernels.h"
#include "postmaster/settings.h"
#include "postmaster/transaction_resolver.h"
#include "postmaster/view_worker.h"
#include "shm/shared_memory.h"
#include "shm/transaction_table.h"
#include "types/kernel.h"

namespace sluice {
namespace {

// What the server is doing, from the postmaster's side. Changed only by EnterPhase.
enum class Phase {
  kRunning,
  kSmartShutdown,    // no new clients; waits until the last one leaves
  kStoppingClients,  // clients were told to leave
  kStoppingWorkers,  // clients are gone; all others but the io worker were told to leave
  kStoppingIo,       // all others are gone; the io worker was told to leave
  kCrashed,          // a child died abnormally: waits until all are gone, then starts again
  kQuitting,         // immediate shutdown: waits until all are gone
};

// They end after the clients' backends and before the io worker.
constexpr ProcessKind kHelpers[] = {ProcessKind::kParallelWorker, ProcessKind::kViewWorker,
                                    ProcessKind::kTransactionResolver};
constexpr int kRejectionsMax = 64;           // children without a slot, at once
constexpr int64_t kKillAfterUs = 5'000'000;  // after SIGQUIT, SIGKILL
constexpr int kExitedQuickly = 2;

class Postmaster {
 public:
  explicit Postmaster(std::string directory) : directory_(std::move(directory)) {}
  int Run();

 private:
  struct Child {
    pid_t pid;
    ProcNumber number;  // kNoProc: a rejection
    ProcessKind kind;
  };

  void LoadConfig(bool reload);
  void BlockSignals();
  Status StartSharedMemory();
  void WriteStatus(const char* status);

  pid_t Fork(ProcNumber number, ProcessKind kind, const std::function<void()>& child_main);
  void StartWorkers();
  [[noreturn]] void RunParallelWorker();
  void StartBackend(UniqueFd client);
  void Reject(UniqueFd client, Rejection reason);
  ProcNumber FreeBackendSlot() const;

  void HandleSignals();
  void ReapChildren();
  void HandleExit(const Child& child, int status);
  void HandleCrash(const Child& child, int status);
  void AcceptClients(const ListenSocket& socket);

  void EnterPhase(Phase phase);
  void AdvancePhase();
  void SignalChildren(int signal, std::function<bool(const Child&)> which);
  bool Any(ProcessKind kind) const;
  bool Ending() const { return phase_ != Phase::kRunning && phase_ != Phase::kSmartShutdown; }

  std::string directory_;
  Settings settings_;
  AuthenticationConfig authentication_;
  UniqueFd lock_;
  UniqueFd signal_fd_;
  std::vector<ListenSocket> sockets_;
  std::vector<Child> children_;
  Phase phase_ = Phase::kRunning;
  bool stop_after_crash_ = false;
  int64_t kill_at_us_ = 0;
  bool done_ = false;
  int exit_status_ = 0;
};

void Postmaster::LoadConfig(bool reload) {
  std::string path = directory_ + "/sluice.conf";
  auto lines = ReadConfigFile(path);
  if (!lines) {
    if (!reload) throw QueryError(lines.error());
    LogError(LogLevel::kLog, lines.error());
    return;
  }
  auto errors = ApplyConfig(*lines, reload, &settings_);
  MakeTempDirectory(TempDirectory(settings_, directory_));
  for (const Error& error : errors) LogError(LogLevel::kLog, error);
  if (!reload && !errors.empty())
    Throw(sqlstate::kConfigFileError, "configuration file \"{}\" contains errors", path);
  settings_.Set("data_directory", directory_, SettingSource::kFile);
  settings_.Set("config_file", path, SettingSource::kFile);
  ApplyLogLevel(settings_);
  Status status = LoadAuthentication(directory_, settings_, &authentication_);
  if (status.ok()) return;
  if (!reload) throw QueryError(status.error());
  LogError(LogLevel::kLog, status.error());
  Log(LogLevel::kLog, "authentication stays as it was");
}

void Postmaster::BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGCHLD, SIGUSR1}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal_fd_.Reset(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
}

// Spill files that participants of a join share have names; those that were open when processes
// were killed are still there. REQUIRES: no child lives.
void RemoveLeftSpillFiles(const std::string& temp_directory) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(temp_directory, ignored))
    if (entry.path().filename().string().starts_with("spill_join_"))
      std::filesystem::remove(entry.path(), ignored);
}

Status Postmaster::StartSharedMemory() {
  RemoveLeftSpillFiles(TempDirectory(settings_, directory_));
  SharedMemoryConfig config;
  config.chunk_size_bytes = static_cast<uint32_t>(settings_.Integer("chunk_size"));
  config.chunk_pool_bytes = static_cast<uint64_t>(settings_.Integer("chunk_pool_size")) * 1024;
  config.sparse_bytes = static_cast<uint64_t>(settings_.Integer("shared_reserve")) * 1024;
  config.max_connections = static_cast<uint32_t>(settings_.Integer("max_connections"));
  config.max_parallel_workers = static_cast<uint32_t>(settings_.Integer("max_parallel_workers"));
  Status status = CreateSharedMemory(config);
  if (!status.ok()) return status;
  CreateTransactionTable(shared_memory->processes.count);
  status = DecisionLog(directory_).Start();
  if (!status.ok()) return status;
  ProcSlot* self = &shared_memory->processes.slots[kPostmasterProc];
  PrepareSlot(self, ProcessKind::kPostmaster);
  self->backend_start = supervision->started_at.load();
  self->pid.store(getpid());
  self->wait_event.store(WaitEvent::kPostmasterMain);
  return status;
}

void Postmaster::WriteStatus(const char* status) {
  LockFileContent content;
  content.pid = getpid();
  content.directory = directory_;
  content.start_seconds = time(nullptr);
  content.port = static_cast<int>(settings_.Integer("port"));
  for (const ListenSocket& socket : sockets_)
    if (!socket.unix_path.empty() && content.socket_directory.empty())
      content.socket_directory = socket.unix_path.substr(0, socket.unix_path.rfind('/'));
  content.listen_address = settings_.Text("listen_addresses");
  content.status = status;
  WriteLockFile(lock_, content);
}

// The child never returns: `child_main` ends it.
pid_t Postmaster::Fork(ProcNumber number, ProcessKind kind,
                       const std::function<void()>& child_main) {
  pid_t parent = getpid();
  ProcSlot* slot = number == kNoProc ? nullptr : &shared_memory->processes.slots[number];
  if (slot != nullptr) PrepareSlot(slot, kind);
  pid_t pid = fork();
  if (pid < 0) {
    Log(LogLevel::kLog, "could not fork new process for {}: {}", NameOf(kind), strerror(errno));
    if (slot != nullptr) slot->kind.store(ProcessKind::kUnused);
    return pid;
  }
  if (pid == 0) {
    signal_fd_.Reset();
    sockets_.clear();
    InitChild(number, kind, parent);
    try {
      child_main();
    } catch (const QueryError& e) {
      LogError(LogLevel::kFatal, e.error);
      ExitChild(e.error.state == sqlstate::kAdminShutdown ? 0 : 1);
    } catch (const std::exception& e) {
      Log(LogLevel::kPanic, "{}", e.what());
      abort();
    }
    ExitChild(0);
  }
  if (slot != nullptr) slot->pid.store(pid);
  children_.push_back({pid, number, kind});
  return pid;
}

void Postmaster::StartWorkers() {
  if (!Any(ProcessKind::kIoWorker))
    Fork(kIoWorkerProc, ProcessKind::kIoWorker, [this] {
      IoWorkerConfig config;
      FillIoWorkerConfig(settings_, &config);
      IoWorkerMain(config);
    });
  const ProcessTable& table = shared_memory->processes;
  if (!Any(ProcessKind::kViewWorker))
    Fork(table.view_worker, ProcessKind::kViewWorker,
         [this] { ViewWorkerMain(directory_, &settings_); });
  auto lives = [this](ProcNumber number) {
    return std::any_of(children_.begin(), children_.end(),
                       [&](const Child& child) { return child.number == number; });
  };
  if (!Any(ProcessKind::kTransactionResolver))
    Fork(table.transaction_resolver, ProcessKind::kTransactionResolver,
         [this] { TransactionResolverMain(directory_, &settings_); });
  for (uint32_t i = 0; i < table.parallel_workers; i++) {
    ProcNumber number = table.first_parallel_worker + i;
    if (!lives(number)) Fork(number, ProcessKind::kParallelWorker, [this] { RunParallelWorker(); });
  }
}

void Postmaster::RunParallelWorker() {
  // Opened at the first query: a server without work needs no reader of the store in each worker.
  std::optional<CatalogFollower> follower;
  ParallelWorkerMain([&] {
    if (!follower) follower.emplace(directory_);
    follower->Refresh();
  });
}

ProcNumber Postmaster::FreeBackendSlot() const {
  const ProcessTable& table = shared_memory->processes;
  for (ProcNumber n = table.first_backend; n < table.first_backend + table.backends; n++)
    if (table.slots[n].kind.load(std::memory_order_relaxed) == ProcessKind::kUnused) return n;
  return kNoProc;
}

void Postmaster::StartBackend(UniqueFd client) {
  if (phase_ == Phase::kCrashed) return Reject(std::move(client), Rejection::kRecovering);
  if (phase_ != Phase::kRunning) return Reject(std::move(client), Rejection::kShuttingDown);
  ProcNumber number = FreeBackendSlot();
  if (number == kNoProc) return Reject(std::move(client), Rejection::kTooManyClients);
  Fork(number, ProcessKind::kClientBackend, [&] {
    BackendConfig config{directory_, &settings_, &authentication_};
    BackendMain(std::move(client), config);
  });
}

void Postmaster::Reject(UniqueFd client, Rejection reason) {
  auto rejections = std::count_if(children_.begin(), children_.end(),
                                  [](const Child& child) { return child.number == kNoProc; });
  if (rejections >= kRejectionsMax)
    return;  // closed without a word: under such load there is no other way
  Fork(kNoProc, ProcessKind::kUnused, [&] { RejectMain(std::move(client), reason); });
}

void Postmaster::AcceptClients(const ListenSocket& socket) {
  for (;;) {
    UniqueFd client(accept4(socket.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        Log(LogLevel::kLog, "could not accept new connection: {}", strerror(errno));
        usleep(100'000);  // as Postgres: rather than spin until a descriptor is free
      }
      return;
    }
    StartBackend(std::move(client));
  }
}

bool Postmaster::Any(ProcessKind kind) const {
  return std::any_of(children_.begin(), children_.end(),
                     [&](const Child& child) { return child.kind == kind; });
}

void Postmaster::SignalChildren(int signal, std::function<bool(const Child&)> which) {
  for (const Child& child : children_)
    if (which(child)) kill(child.pid, signal);
}

void Postmaster::EnterPhase(Phase phase) {
  phase_ = phase;
  auto of_kind = [](ProcessKind kind) { return [kind](const Child& c) { return c.kind == kind; }; };
  switch (phase) {
    case Phase::kRunning:
      WriteStatus("ready");
      break;
    case Phase::kSmartShutdown:
      WriteStatus("stopping");
      break;
    case Phase::kStoppingClients:
      WriteStatus("stopping");
      SignalChildren(SIGTERM, [](const Child& c) {
        return c.kind == ProcessKind::kClientBackend || c.number == kNoProc;
      });
      break;
    case Phase::kStoppingWorkers:
      for (ProcessKind kind : kHelpers) SignalChildren(SIGTERM, of_kind(kind));
      break;
    case Phase::kStoppingIo:
      SignalChildren(SIGTERM, of_kind(ProcessKind::kIoWorker));
      break;
    case Phase::kCrashed:
    case Phase::kQuitting:
      supervision->quit_reason.store(phase == Phase::kCrashed ? QuitReason::kCrash
                                                              : QuitReason::kImmediateShutdown);
      WriteStatus(phase == Phase::kCrashed ? "starting" : "stopping");
      SignalChildren(SIGQUIT, [](const Child&) { return true; });
      kill_at_us_ = MonotonicUs() + kKillAfterUs;
      break;
  }
}

// Moves on when what the phase waits for has happened.
void Postmaster::AdvancePhase() {
  bool clients = Any(ProcessKind::kClientBackend);
  if (phase_ == Phase::kSmartShutdown && !clients) EnterPhase(Phase::kStoppingClients);
  if (phase_ == Phase::kStoppingClients && !clients) EnterPhase(Phase::kStoppingWorkers);
  if (phase_ == Phase::kStoppingWorkers &&
      std::ranges::none_of(kHelpers, [this](ProcessKind kind) { return Any(kind); }))
    EnterPhase(Phase::kStoppingIo);
  if (!children_.empty()) return;
  if (phase_ == Phase::kStoppingIo || phase_ == Phase::kQuitting) done_ = true;
  if (phase_ != Phase::kCrashed) return;
  if (stop_after_crash_) {
    done_ = true;
    return;
  }
  Log(LogLevel::kLog, "all server processes terminated; reinitializing");
  supervision->crash_restarts++;
  supervision->quit_reason.store(QuitReason::kNone);
  // A new memfd: what the kernel may still write for the dead must not land in it.
  Status status = StartSharedMemory();
  if (!status.ok()) {
    LogError(LogLevel::kFatal, status.error());
    exit_status_ = 1;
    done_ = true;
    return;
  }
  StartWorkers();
  EnterPhase(Phase::kRunning);
  Log(LogLevel::kLog, "database system is ready to accept connections");
}

void Postmaster::HandleCrash(const Child& child, int status) {
  std::string how = WIFSIGNALED(status)
                        ? fmt::format("was terminated by signal {}: {}", WTERMSIG(status),
                                      strsignal(WTERMSIG(status)))
                        : fmt::format("exited with exit code {}", WEXITSTATUS(status));
  Log(LogLevel::kLog, "{} (PID {}) {}", NameOf(child.kind), child.pid, how);
  ActivityRow row;
  if (phase_ != Phase::kCrashed && child.number != kNoProc &&
      ReadActivity(shared_memory->processes.slots[child.number], &row) && row.query[0] != 0)
    Log(LogLevel::kLog, "the process was running: {}", row.query);
  if (phase_ == Phase::kCrashed || phase_ == Phase::kQuitting) return;
  Log(LogLevel::kLog, "terminating any other active server processes");
  stop_after_crash_ = phase_ != Phase::kRunning;
  EnterPhase(Phase::kCrashed);
}

void Postmaster::HandleExit(const Child& child, int status) {
  if (child.number == kNoProc) return;  // it had no hold on shared memory
  bool clean = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 1);
  // Only clients' backends may end by an error; the io worker may not end at all while others run.
  if (child.kind != ProcessKind::kClientBackend && WIFEXITED(status) && WEXITSTATUS(status) == 1)
    clean = false;
  if (child.kind == ProcessKind::kIoWorker && phase_ != Phase::kStoppingIo) clean = false;
  if (phase_ == Phase::kQuitting && WIFEXITED(status) && WEXITSTATUS(status) == kExitedQuickly)
    clean = true;
  if (phase_ == Phase::kCrashed && WIFEXITED(status)) clean = true;
  if (!clean) HandleCrash(child, status);
  ProcSlot* slot = &shared_memory->processes.slots[child.number];
  slot->pid.store(0);
  slot->kind.store(ProcessKind::kUnused, std::memory_order_release);
}

void Postmaster::ReapChildren() {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    auto found = std::find_if(children_.begin(), children_.end(),
                              [&](const Child& child) { return child.pid == pid; });
    if (found == children_.end()) continue;
    Child child = *found;
    children_.erase(found);
    HandleExit(child, status);
  }
  if (phase_ == Phase::kRunning || phase_ == Phase::kSmartShutdown) StartWorkers();
  AdvancePhase();
}

void Postmaster::HandleSignals() {
  signalfd_siginfo info;
  while (read(signal_fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    switch (info.ssi_signo) {
      case SIGCHLD:
        ReapChildren();
        break;
      case SIGHUP:
        Log(LogLevel::kLog, "received SIGHUP, reloading configuration files");
        LoadConfig(true);
        supervision->reloaded_at.store(PostgresNow());
        SignalChildren(SIGHUP, [](const Child& child) { return child.number != kNoProc; });
        break;
      case SIGTERM:
        Log(LogLevel::kLog, "received smart shutdown request");
        if (phase_ == Phase::kCrashed) stop_after_crash_ = true;
        if (phase_ == Phase::kRunning) EnterPhase(Phase::kSmartShutdown);
        AdvancePhase();
        break;
      case SIGINT:
        Log(LogLevel::kLog, "received fast shutdown request");
        if (phase_ == Phase::kCrashed) stop_after_crash_ = true;
        if (!Ending()) EnterPhase(Phase::kStoppingClients);
        AdvancePhase();
        break;
      case SIGQUIT:
        Log(LogLevel::kLog, "received immediate shutdown request");
        if (phase_ != Phase::kQuitting) EnterPhase(Phase::kQuitting);
        AdvancePhase();
        break;
    }
  }
}

int Postmaster::Run() {
  SetLogProcessName("postmaster");
  auto lock = TakeLock(directory_);
  if (!lock) throw QueryError(lock.error());
  lock_ = std::move(*lock);
  CreateSupervision();
  supervision->started_at.store(PostgresNow());
  supervision->reloaded_at.store(PostgresNow());
  LoadConfig(false);
  WriteStatus("starting");
  BlockSignals();
  RegisterServerKernels();
  // What every child would make for itself otherwise, each in its first statement.
  LoadBuiltinCatalog();
  AllKernels();
  EnsureStackForParser();  // before any fork: children inherit the limit
  std::vector<std::string> warnings;
  auto sockets = OpenListenSockets(settings_, &warnings);
  for (const std::string& warning : warnings) Log(LogLevel::kLog, "{}", warning);
  if (!sockets) throw QueryError(sockets.error());
  sockets_ = std::move(*sockets);
  Log(LogLevel::kLog, "starting Sluice {}", settings_.Text("server_version"));
  for (const ListenSocket& socket : sockets_)
    Log(LogLevel::kLog, "listening on {}", socket.address);
  Status status = StartSharedMemory();
  if (!status.ok()) throw QueryError(status.error());
  StartWorkers();
  EnterPhase(Phase::kRunning);
  Log(LogLevel::kLog, "database system is ready to accept connections");

  while (!done_) {
    std::vector<pollfd> fds{{signal_fd_.get(), POLLIN, 0}};
    for (const ListenSocket& socket : sockets_) fds.push_back({socket.fd.get(), POLLIN, 0});
    int timeout_ms = -1;
    if (kill_at_us_ != 0)
      timeout_ms = static_cast<int>(std::max<int64_t>(0, (kill_at_us_ - MonotonicUs()) / 1000 + 1));
    poll(fds.data(), fds.size(), timeout_ms);
    if (fds[0].revents != 0) HandleSignals();
    if (kill_at_us_ != 0 && MonotonicUs() >= kill_at_us_) {
      SignalChildren(SIGKILL, [](const Child&) { return true; });
      kill_at_us_ = 0;
    }
    if (phase_ == Phase::kRunning) kill_at_us_ = 0;
    for (size_t i = 0; i < sockets_.size() && !done_; i++)
      if (fds[i + 1].revents != 0) AcceptClients(sockets_[i]);
  }
  RemoveUnixSockets(sockets_);
  unlink(LockFilePath(directory_).c_str());
  Log(LogLevel::kLog, "database system is shut down");
  return exit_status_;
}

}  // namespace

int PostmasterMain(const std::string& directory) {
  try {
    return Postmaster(directory).Run();
  } catch (const QueryError& e) {
    LogError(LogLevel::kFatal, e.error);
    return 1;
  }
}

}  // namespace sluice
