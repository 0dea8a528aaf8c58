#include "tests/harness.h"

#include <arpa/inet.h>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <grp.h>
#include <pwd.h>
#include <random>
#include <signal.h>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"

namespace sluice::test {
namespace {

namespace fs = std::filesystem;

// Found before main: a test that leaves the mount namespace cannot see it any more in a chroot.
const fs::path kOwnPath = fs::canonical("/proc/self/exe");

Answer ToAnswer(PGresult* raw) {
  std::unique_ptr<PGresult, void (*)(PGresult*)> result(raw, PQclear);
  Answer answer;
  ExecStatusType status = PQresultStatus(raw);
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && status != PGRES_EMPTY_QUERY) {
    const char* state = PQresultErrorField(raw, PG_DIAG_SQLSTATE);
    const char* message = PQresultErrorField(raw, PG_DIAG_MESSAGE_PRIMARY);
    const char* position = PQresultErrorField(raw, PG_DIAG_STATEMENT_POSITION);
    answer.sqlstate = state != nullptr ? state : "lost connection";
    answer.message = message != nullptr ? message : PQresultErrorMessage(raw);
    answer.position = position != nullptr ? position : "";
    const char* detail = PQresultErrorField(raw, PG_DIAG_MESSAGE_DETAIL);
    const char* hint = PQresultErrorField(raw, PG_DIAG_MESSAGE_HINT);
    answer.detail = detail != nullptr ? detail : "";
    answer.hint = hint != nullptr ? hint : "";
    return answer;
  }
  answer.command_tag = PQcmdStatus(raw);
  for (int column = 0; column < PQnfields(raw); column++) {
    answer.names.push_back(PQfname(raw, column));
    answer.types.push_back(PQftype(raw, column));
    answer.modifiers.push_back(PQfmod(raw, column));
  }
  for (int row = 0; row < PQntuples(raw); row++) {
    auto& values = answer.rows.emplace_back();
    for (int column = 0; column < PQnfields(raw); column++) {
      if (PQgetisnull(raw, row, column))
        values.push_back(std::nullopt);
      else
        values.push_back(std::string(PQgetvalue(raw, row, column), PQgetlength(raw, row, column)));
    }
  }
  return answer;
}

// The tuples of a binary COPY, with its header and its trailer as rows of their own: servers cut
// the messages differently.
std::vector<std::vector<std::optional<std::string>>> BinaryCopyRows(const std::string& bytes) {
  constexpr size_t kHeaderBytes = 19;
  std::vector<std::vector<std::optional<std::string>>> rows{{bytes.substr(0, kHeaderBytes)}};
  size_t at = kHeaderBytes;
  auto integer = [&](size_t size) {
    int64_t value = 0;
    for (size_t i = 0; i < size; i++) value = value << 8 | static_cast<uint8_t>(bytes.at(at++));
    return size == 2 ? static_cast<int16_t>(value) : static_cast<int32_t>(value);
  };
  while (at < bytes.size()) {
    int64_t fields = integer(2);
    auto& row = rows.emplace_back();
    if (fields < 0) row.push_back("trailer");
    for (int64_t i = 0; i < fields; i++) {
      int64_t size = integer(4);
      if (size < 0) {
        row.push_back(std::nullopt);
        continue;
      }
      row.push_back(bytes.substr(at, static_cast<size_t>(size)));
      at += static_cast<size_t>(size);
    }
  }
  return rows;
}

// A COPY … TO STDOUT whose CopyOutResponse has come: each message is a row.
Answer ToCopyAnswer(PGconn* connection) {
  Answer copied;
  std::string all;
  char* buffer = nullptr;
  for (int size; (size = PQgetCopyData(connection, &buffer, 0)) > 0; PQfreemem(buffer)) {
    copied.rows.push_back({std::string(buffer, static_cast<size_t>(size))});
    all += *copied.rows.back()[0];
  }
  Answer answer = ToAnswer(PQgetResult(connection));
  while (PGresult* more = PQgetResult(connection)) PQclear(more);
  if (!answer.sqlstate.empty()) return answer;
  answer.rows = all.starts_with("PGCOPY") ? BinaryCopyRows(all) : std::move(copied.rows);
  return answer;
}

Answer AnswerTo(PGconn* connection, PGresult* result) {
  if (PQresultStatus(result) != PGRES_COPY_OUT) return ToAnswer(result);
  PQclear(result);
  return ToCopyAnswer(connection);
}

std::string Printable(const std::string& bytes) {
  std::string text;
  for (unsigned char c : bytes)
    if (c >= 0x20 && c != 0x7f)
      text += static_cast<char>(c);
    else
      text += fmt::format("\\x{:02x}", c);
  return text;
}

int RunProgram(const std::vector<std::string>& command, bool as_owner) {
  pid_t pid = fork();
  if (pid == 0) {
    // Opened before the user changes: a clone in root's home is out of his reach.
    int program = open(command[0].c_str(), O_RDONLY | O_CLOEXEC);
    if (as_owner && geteuid() == 0) {
      const passwd* user = getpwnam("postgres");
      if (user == nullptr || initgroups(user->pw_name, user->pw_gid) != 0 ||
          setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)
        _exit(126);
    }
    std::vector<char*> argv;
    for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    fexecve(program, argv.data(), environ);
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

std::string Answer::Text(bool ordered) const {
  if (!sqlstate.empty()) return "ERROR " + sqlstate + "\n";
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (const auto& value : row) line += (value ? "[" + Printable(*value) + "]" : "NULL") + " ";
    lines.push_back(line);
  }
  if (!ordered) std::sort(lines.begin(), lines.end());
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

Client::Client(const std::string& conninfo) : connection_(PQconnectdb(conninfo.c_str()), PQfinish) {
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);
}

Answer Client::Query(const std::string& sql) {
  return AnswerTo(raw(), PQexec(raw(), sql.c_str()));
}

Answer Client::QueryParams(const std::string& sql,
                           const std::vector<std::optional<std::string>>& params, bool binary) {
  std::vector<const char*> values;
  for (const auto& param : params) values.push_back(param ? param->c_str() : nullptr);
  return AnswerTo(raw(), PQexecParams(raw(), sql.c_str(), static_cast<int>(values.size()), nullptr,
                                      values.data(), nullptr, nullptr, binary ? 1 : 0));
}

void Client::Send(const std::string& sql) {
  PQsendQuery(raw(), sql.c_str());
}

std::optional<Answer> Client::Await(double seconds) {
  if (!Eventually([&] { return PQconsumeInput(raw()) == 0 || PQisBusy(raw()) == 0; }, seconds))
    return std::nullopt;
  PGresult* last = nullptr;
  while (PGresult* result = PQgetResult(raw())) {
    PQclear(last);
    last = result;
  }
  return AnswerTo(raw(), last);
}

void Client::Cancel() {
  std::unique_ptr<PGcancel, void (*)(PGcancel*)> cancel(PQgetCancel(raw()), PQfreeCancel);
  char error[256];
  if (PQcancel(cancel.get(), error, sizeof error) == 0) throw std::runtime_error(error);
}

Answer Client::Must(const std::string& sql) {
  Answer answer = Query(sql);
  if (!answer.sqlstate.empty())
    throw std::runtime_error(fmt::format("{}: {} {}", sql, answer.sqlstate, answer.message));
  return answer;
}

std::string Client::Value(const std::string& sql) {
  Answer answer = Must(sql);
  if (answer.rows.size() != 1 || answer.rows[0].size() != 1)
    throw std::runtime_error(sql + ": not one value");
  return answer.rows[0][0].value_or("NULL");
}

int FreePorts(int count) {
  std::mt19937 random(static_cast<unsigned>(getpid()) * 7919u +
                      static_cast<unsigned>(time(nullptr)));
  for (int attempt = 0; attempt < 200; attempt++) {
    int first = 20000 + static_cast<int>(random() % 12000);
    bool all_free = true;
    for (int port = first; all_free && port < first + count; port++) {
      UniqueFd fd(socket(AF_INET, SOCK_STREAM, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(port));
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      all_free = bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    }
    if (all_free) return first;
  }
  throw std::runtime_error("no free ports on loopback");
}

namespace {

int FirstLineAsPid(const std::string& path) {
  std::ifstream file(path);
  int pid = 0;
  file >> pid;
  return pid;
}

// Ends every server whose data lies below `directory`, and removes it.
void EndServersIn(const std::string& directory) {
  std::error_code ignored;
  std::vector<int> pids;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    if (int pid = FirstLineAsPid(entry.path() / "postmaster.pid"); pid > 0) pids.push_back(pid);
  auto alive = [&] {
    return std::any_of(pids.begin(), pids.end(), [](int pid) { return kill(pid, 0) == 0; });
  };
  for (int pid : pids) kill(pid, SIGQUIT);  // immediate shutdown, Postgres's and ours
  Eventually([&] { return !alive(); }, 10);
  for (int pid : pids) kill(pid, SIGKILL);
  fs::remove_all(directory, ignored);
}

// A process out of a test runner's reach that outlives this one. When the pipe closes before
// anything is written to it, the test was killed, and its servers would run for ever.
int StartGuard(const std::string& directory) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  pid_t middle = fork();
  if (middle < 0) throw std::runtime_error("fork failed");
  if (middle == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    // Whoever reads the test's output must not wait for this process.
    for (int fd = 0; fd < 1024; fd++)
      if (fd != ends[0]) close(fd);
    char byte;
    if (read(ends[0], &byte, 1) == 0) EndServersIn(directory);
    _exit(0);
  }
  close(ends[0]);
  waitpid(middle, nullptr, 0);
  return ends[1];
}

}  // namespace

Cluster::Cluster(const Options& options) : options_(options) {
  char name[] = "/tmp/sluice-test-XXXXXX";
  if (mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp failed");
  directory_ = name;
  guard_ = StartGuard(directory_);
  port_ = FreePorts(options.shards + 8);
  shard_port_ = port_ + 8;
  std::vector<std::string> command{SluiceBinary(),
                                   "cluster",
                                   "up",
                                   "--dir",
                                   directory_,
                                   "--shards",
                                   std::to_string(options.shards),
                                   "--port",
                                   std::to_string(port_),
                                   "--shard-port",
                                   std::to_string(shard_port_)};
  for (const auto& line : options.settings) command.insert(command.end(), {"--set", line});
  for (const auto& line : options.shard_settings)
    command.insert(command.end(), {"--shard-set", line});
  if (RunProgram(command, false) != 0)
    throw std::runtime_error("sluice cluster up failed in " + directory_);
}

Cluster::~Cluster() {
  for (const auto& server : servers_)
    RunAsOwner({SluiceBinary(), "stop", "-D", server, "-m", "immediate"});
  RunProgram({SluiceBinary(), "cluster", "down", "--dir", directory_}, false);
  if (write(guard_, "", 1) != 1) fmt::print(stderr, "the guard of {} is gone\n", directory_);
  close(guard_);
  if (std::getenv("SLUICE_KEEP") != nullptr) return;
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

int Cluster::RunAsOwner(const std::vector<std::string>& command) const {
  return RunProgram(command, true);
}

std::string Cluster::Url() const {
  return fmt::format("host=127.0.0.1 port={} user=postgres dbname=postgres", port_);
}

std::string Cluster::Uri() const {
  return fmt::format("postgresql://postgres@127.0.0.1:{}/postgres", port_);
}

std::string Cluster::ShardUrl(int shard, const std::string& database) const {
  return fmt::format("host=127.0.0.1 port={} user=postgres dbname={}", shard_port_ + shard - 1,
                     database);
}

std::string Cluster::StartServer(const std::string& name,
                                 const std::vector<std::string>& settings) {
  std::string data = directory_ + "/" + name;
  int port = port_ + 1 + static_cast<int>(servers_.size());
  if (RunAsOwner({SluiceBinary(), "init", "-D", data}) != 0)
    throw std::runtime_error("sluice init failed in " + data);
  {
    std::ofstream conf(data + "/sluice.conf", std::ios::app);
    conf << "\nport = " << port << "\nunix_socket_directories = '" << directory_ << "'\n";
    for (const auto& line : settings) conf << line << "\n";
  }
  if (RunAsOwner({SluiceBinary(), "start", "-D", data}) != 0)
    throw std::runtime_error("sluice start failed; see " + data + "/sluice.log");
  servers_.push_back(data);
  std::string url = fmt::format("host=127.0.0.1 port={} user=postgres dbname=postgres", port);
  Client client(url);
  for (int shard = 1; shard <= options_.shards; shard++) {
    client.Must(
        fmt::format("CREATE SERVER shard{} FOREIGN DATA WRAPPER postgres_fdw OPTIONS "
                    "(host '127.0.0.1', port '{}', dbname 'postgres')",
                    shard, shard_port_ + shard - 1));
    client.Must(fmt::format(
        "CREATE USER MAPPING FOR PUBLIC SERVER shard{} OPTIONS (user 'postgres')", shard));
  }
  return url;
}

int Cluster::ShardPid(int shard) const {
  return FirstLineAsPid(fmt::format("{}/shard{}/postmaster.pid", directory_, shard));
}

int Cluster::ServerPid() const {
  return FirstLineAsPid(directory_ + "/sluice/postmaster.pid");
}

void Cluster::StopShard(int shard, const std::string& mode) {
  std::string data = fmt::format("{}/shard{}", directory_, shard);
  if (RunAsOwner(
          {"/usr/lib/postgresql/15/bin/pg_ctl", "stop", "-s", "-w", "-m", mode, "-D", data}) != 0)
    throw std::runtime_error("cannot stop " + data);
}

void Cluster::StartShard(int shard) {
  std::string data = fmt::format("{}/shard{}", directory_, shard);
  // After a kill its shared memory is in use until the last child has noticed.
  auto start = [&] {
    return RunAsOwner({"/usr/lib/postgresql/15/bin/pg_ctl", "start", "-s", "-w", "-D", data, "-l",
                       data + ".log"}) == 0;
  };
  if (!Eventually(start, 10)) throw std::runtime_error("cannot start " + data);
}

void Cluster::KillShard(int shard) {
  int pid = ShardPid(shard);
  if (pid > 0) kill(pid, SIGKILL);
}

void Cluster::KillServer() {
  int pid = ServerPid();
  if (pid <= 0 || kill(pid, SIGKILL) != 0) return;
  std::string data = directory_ + "/sluice";
  if (!Eventually([&] { return RunAsOwner({SluiceBinary(), "start", "-D", data}) == 0; }, 20))
    throw std::runtime_error("cannot start " + data);
}

bool Eventually(const std::function<bool()>& check, double seconds) {
  for (double waited = 0; waited < seconds; waited += 0.05) {
    if (check()) return true;
    usleep(50'000);
  }
  return check();
}

std::string SluiceBinary() {
  if (const char* given = std::getenv("SLUICE_BINARY")) return given;
  return kOwnPath.parent_path().parent_path().string() + "/sluice";
}

std::string SourceDirectory() {
  return SLUICE_SOURCE_DIRECTORY;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> SplitStatements(const std::string& text) {
  std::vector<std::string> statements;
  std::string current;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("--") || (line.empty() && current.empty())) continue;
    current += (current.empty() ? "" : "\n") + line;
    if (line.ends_with(";")) {
      current.pop_back();
      statements.push_back(std::move(current));
      current.clear();
    }
  }
  if (!current.empty()) statements.push_back(current);
  return statements;
}

}  // namespace sluice::test
