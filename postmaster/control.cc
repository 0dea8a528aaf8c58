#include "postmaster/control.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <libpq-fe.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catalog/store.h"
#include "postmaster/config_file.h"
#include "postmaster/lock_file.h"
#include "postmaster/postmaster.h"
#include "wire/hba.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr int kPollUs = 50'000;

struct ControlError {
  std::string message;
};

int Guarded(const std::function<int()>& run) {
  try {
    return run();
  } catch (const ControlError& error) {
    fmt::print(stderr, "sluice: {}\n", error.message);
  } catch (const std::exception& error) {
    fmt::print(stderr, "sluice: {}\n", error.what());
  }
  return 1;
}

// Where the server is started from does not matter to where its files are.
std::string Absolute(const std::string& directory) {
  return fs::absolute(directory).lexically_normal().string();
}

void RequireDirectory(const std::string& directory) {
  if (!fs::exists(directory + "/sluice.conf"))
    throw ControlError{
        fmt::format("\"{}\" is not a Sluice data directory; make one with: sluice init -D {}",
                    directory, directory)};
}

void RefuseRoot(const char* command) {
  if (geteuid() == 0)
    throw ControlError{
        fmt::format("{} cannot be run as root: run it as the (unprivileged) user that "
                    "will own the server process",
                    command)};
}

LockFileContent RunningServer(const std::string& directory) {
  auto content = ReadLockFile(directory);
  if (!content || !IsLocked(directory))
    throw ControlError{fmt::format("no server is running in \"{}\"", directory)};
  return *content;
}

}  // namespace

int InitCommand(const std::string& given) {
  return Guarded([&] {
    RefuseRoot("init");
    std::string directory = Absolute(given);
    if (fs::exists(directory) && !fs::is_empty(directory))
      throw ControlError{fmt::format("directory \"{}\" exists but is not empty", directory)};
    for (const char* name : {"", "/catalog", "/tmp"}) {
      fs::create_directories(directory + name);
      fs::permissions(directory + name, fs::perms::owner_all);
    }
    auto store = CatalogStore::Open(directory + "/catalog", true);
    if (!store) throw ControlError{store.error().message};
    std::ofstream(directory + "/pg_hba.conf") << DefaultHbaText() << std::flush;
    // Last, and complete or not at all: a directory with this file counts as initialised.
    std::string path = directory + "/sluice.conf";
    std::ofstream(path + ".new") << DefaultConfigText() << std::flush;
    fs::rename(path + ".new", path);
    fmt::print("Initialised {}. Its settings are in {}.\nStart it with: sluice start -D {}\n",
               directory, path, directory);
    return 0;
  });
}

namespace {

// The background process: a session of its own, its output in the log file.
[[noreturn]] void RunInBackground(const std::string& directory) {
  setsid();
  int log = open((directory + "/sluice.log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  if (null > STDERR_FILENO) close(null);
  if (log > STDERR_FILENO) close(log);
  if (chdir(directory.c_str()) != 0) _exit(1);
  _exit(PostmasterMain(directory));
}

std::string LastLogLines(const std::string& directory, size_t from) {
  std::ifstream log(directory + "/sluice.log");
  log.seekg(static_cast<std::streamoff>(from));
  std::string text(std::istreambuf_iterator<char>(log), {});
  return text.size() > 2000 ? text.substr(text.size() - 2000) : text;
}

}  // namespace

int StartCommand(const std::string& given, bool foreground, int timeout_s) {
  return Guarded([&] {
    RefuseRoot("start");
    std::string directory = Absolute(given);
    RequireDirectory(directory);
    if (foreground) return PostmasterMain(directory);
    if (IsLocked(directory))
      throw ControlError{fmt::format("another server might be running in \"{}\" (PID {})",
                                     directory,
                                     ReadLockFile(directory).value_or(LockFileContent{}).pid)};
    std::error_code none;
    size_t log_bytes = fs::file_size(directory + "/sluice.log", none);
    if (none) log_bytes = 0;
    fmt::print("waiting for server to start...");
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) throw ControlError{fmt::format("could not fork: {}", strerror(errno))};
    if (pid == 0) RunInBackground(directory);
    for (int64_t waited_us = 0; waited_us < timeout_s * 1'000'000ll; waited_us += kPollUs) {
      auto content = ReadLockFile(directory);
      if (content && content->pid == pid && content->status == "ready") {
        fmt::print(" done\nserver started\n");
        return 0;
      }
      int status;
      if (waitpid(pid, &status, WNOHANG) == pid)
        throw ControlError{fmt::format("could not start the server; its log says:\n{}",
                                       LastLogLines(directory, log_bytes))};
      if (waited_us % 1'000'000 == 0) {
        fmt::print(".");
        fflush(stdout);
      }
      usleep(kPollUs);
    }
    throw ControlError{"server did not start in time"};
  });
}

int StopCommand(const std::string& given, const std::string& mode, int timeout_s) {
  return Guarded([&] {
    std::string directory = Absolute(given);
    RequireDirectory(directory);
    LockFileContent server = RunningServer(directory);
    int signal = mode == "smart" ? SIGTERM : mode == "fast" ? SIGINT : SIGQUIT;
    if (kill(server.pid, signal) != 0)
      throw ControlError{
          fmt::format("could not send stop signal (PID {}): {}", server.pid, strerror(errno))};
    fmt::print("waiting for server to shut down...");
    fflush(stdout);
    for (int64_t waited_us = 0; waited_us < timeout_s * 1'000'000ll; waited_us += kPollUs) {
      if (!IsLocked(directory)) {
        fmt::print(" done\nserver stopped\n");
        return 0;
      }
      if (waited_us % 1'000'000 == 0) {
        fmt::print(".");
        fflush(stdout);
      }
      usleep(kPollUs);
    }
    fmt::print(" failed\n");
    throw ControlError{"server does not shut down" +
                       std::string(mode == "smart"
                                       ? "; the \"-m fast\" option disconnects sessions at once"
                                       : "")};
  });
}

int ReloadCommand(const std::string& given) {
  return Guarded([&] {
    std::string directory = Absolute(given);
    RequireDirectory(directory);
    LockFileContent server = RunningServer(directory);
    // Said here, where someone reads it, and not only in the log.
    auto lines = ReadConfigFile(directory + "/sluice.conf");
    if (!lines) throw ControlError{lines.error().message};
    Settings probe;
    for (const Error& error : ApplyConfig(*lines, false, &probe)) throw ControlError{error.message};
    if (kill(server.pid, SIGHUP) != 0)
      throw ControlError{
          fmt::format("could not send reload signal (PID {}): {}", server.pid, strerror(errno))};
    fmt::print("server signaled\n");
    return 0;
  });
}

namespace {

using ResultPtr = std::unique_ptr<PGresult, void (*)(PGresult*)>;

ResultPtr Ask(PGconn* connection, const char* sql) {
  ResultPtr result(PQexec(connection, sql), PQclear);
  if (PQresultStatus(result.get()) != PGRES_TUPLES_OK)
    throw ControlError{fmt::format("the server answered: {}", PQerrorMessage(connection))};
  return result;
}

}  // namespace

int StatusCommand(const std::string& given) {
  return Guarded([&] {
    std::string directory = Absolute(given);
    RequireDirectory(directory);
    auto content = ReadLockFile(directory);
    if (!content || !IsLocked(directory)) {
      fmt::print("no server running\n");
      return 3;  // as pg_ctl
    }
    fmt::print("server is running (PID {}), {}, port {}\n", content->pid, content->status,
               content->port);
    std::string host = content->socket_directory.empty() ? "127.0.0.1" : content->socket_directory;
    std::string port = std::to_string(content->port);
    const char* keywords[] = {
        "host", "port", "user", "dbname", "application_name", "connect_timeout", nullptr};
    const char* values[] = {host.c_str(),    port.c_str(), "sluice", "postgres",
                            "sluice status", "5",          nullptr};
    std::unique_ptr<PGconn, void (*)(PGconn*)> connection(PQconnectdbParams(keywords, values, 0),
                                                          PQfinish);
    if (PQstatus(connection.get()) != CONNECTION_OK)
      throw ControlError{
          fmt::format("could not connect to it: {}", PQerrorMessage(connection.get()))};
    auto status = Ask(connection.get(), "SELECT name, value FROM sluice.status");
    for (int row = 0; row < PQntuples(status.get()); row++)
      fmt::print("  {:<20} {}\n", PQgetvalue(status.get(), row, 0),
                 PQgetvalue(status.get(), row, 1));
    auto processes =
        Ask(connection.get(),
            "SELECT pid, backend_type, state, wait_event, query FROM pg_stat_activity");
    fmt::print("  {:>8}  {:<16} {:<20} {:<20} {}\n", "pid", "process", "state", "wait event",
               "query");
    for (int row = 0; row < PQntuples(processes.get()); row++)
      fmt::print("  {:>8}  {:<16} {:<20} {:<20} {:.60}\n", PQgetvalue(processes.get(), row, 0),
                 PQgetvalue(processes.get(), row, 1), PQgetvalue(processes.get(), row, 2),
                 PQgetvalue(processes.get(), row, 3), PQgetvalue(processes.get(), row, 4));
    return 0;
  });
}

}  // namespace sluice
