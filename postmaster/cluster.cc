#include "postmaster/cluster.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sluice {
namespace {

namespace fs = std::filesystem;

struct ClusterError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void Say(const std::string& text) {
  fmt::print(stderr, "{}\n", text);
}

std::string PostgresBinary(const std::string& name) {
  for (const char* directory :
       {"/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/16/bin", "/usr/lib/postgresql/17/bin"}) {
    std::string path = fmt::format("{}/{}", directory, name);
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  throw ClusterError(
      "Postgres's server programs are not installed: run ./dev setup, or install the "
      "package postgresql-15");
}

// Postgres and Sluice refuse to run as root: hand the directory to an unprivileged user and become
// it.
void DropRoot(const std::string& directory) {
  if (geteuid() != 0) return;
  const passwd* user = getpwnam("postgres");
  if (user == nullptr) user = getpwnam("nobody");
  if (user == nullptr)
    throw ClusterError("there is no user postgres or nobody to run the shards as");
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (lchown(entry.path().c_str(), user->pw_uid, user->pw_gid) != 0)
      throw ClusterError(fmt::format("cannot give {} to user {}: {}", entry.path().string(),
                                     user->pw_name, std::strerror(errno)));
  if (chown(directory.c_str(), user->pw_uid, user->pw_gid) != 0 ||
      initgroups(user->pw_name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
      setuid(user->pw_uid) != 0)
    throw ClusterError(
        fmt::format("cannot become user {}: {}", user->pw_name, std::strerror(errno)));
  if (chdir(directory.c_str()) != 0) throw ClusterError("cannot enter " + directory);
}

// Starts a program with its output in `log`; the caller waits for the pid.
pid_t Spawn(const std::vector<std::string>& command, const std::string& log) {
  pid_t pid = fork();
  if (pid < 0) throw ClusterError(fmt::format("cannot fork: {}", std::strerror(errno)));
  if (pid > 0) return pid;
  if (FILE* out = std::fopen(log.c_str(), "a")) {
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(out), STDERR_FILENO);
  }
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int ForkSelf(const RunSelf& run_self, const std::vector<std::string>& args) {
  std::fflush(nullptr);
  pid_t pid = fork();
  if (pid < 0) throw ClusterError(fmt::format("cannot fork: {}", std::strerror(errno)));
  if (pid == 0) {
    int status = run_self(args);
    std::fflush(nullptr);
    _exit(status);
  }
  return WaitFor(pid);
}

std::string ShardDirectory(const ClusterOptions& options, int shard) {
  return fmt::format("{}/shard{}", options.directory, shard);
}
int ShardPort(const ClusterOptions& options, int shard) {
  return options.shard_port + shard - 1;
}

// Runs `make` for every shard at once, and names the log of one that failed.
void ForEachShard(const ClusterOptions& options, const char* what,
                  const std::function<std::vector<std::string>(int)>& make) {
  std::vector<std::pair<int, pid_t>> running;
  for (int shard = 1; shard <= options.shards; shard++) {
    auto command = make(shard);
    if (!command.empty())
      running.emplace_back(shard, Spawn(command, ShardDirectory(options, shard) + ".log"));
  }
  int failed = 0;
  for (auto [shard, pid] : running)
    if (WaitFor(pid) != 0) failed = shard;
  if (failed != 0)
    throw ClusterError(fmt::format("{} of shard {} failed; see {}.log", what, failed,
                                   ShardDirectory(options, failed)));
}

void InitShards(const ClusterOptions& options) {
  ForEachShard(options, "initdb", [&](int shard) -> std::vector<std::string> {
    if (fs::exists(ShardDirectory(options, shard) + "/PG_VERSION")) return {};
    return {PostgresBinary("initdb"),
            "-D",
            ShardDirectory(options, shard),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
            "--no-instructions"};
  });
  for (int shard = 1; shard <= options.shards; shard++) {
    std::string path = ShardDirectory(options, shard) + "/postgresql.auto.conf";
    std::ofstream conf(path, std::ios::trunc);
    conf << "port = " << ShardPort(options, shard) << "\n"
         << "listen_addresses = '127.0.0.1'\n"
         << "unix_socket_directories = '" << options.directory << "'\n"
         << "max_connections = 200\n"
         << "shared_buffers = 256MB\n"
         << "max_wal_size = 4GB\n"
         << "wal_level = logical\n"
         << "max_prepared_transactions = 100\n";
    for (const auto& line : options.shard_settings) conf << line << "\n";
    if (!conf.flush()) throw ClusterError("cannot write " + path);
  }
}

void StartShards(const ClusterOptions& options) {
  ForEachShard(options, "the start", [&](int shard) -> std::vector<std::string> {
    if (fs::exists(ShardDirectory(options, shard) + "/postmaster.pid")) {
      std::vector<std::string> status{PostgresBinary("pg_ctl"), "status", "-D",
                                      ShardDirectory(options, shard)};
      if (WaitFor(Spawn(status, "/dev/null")) == 0) return {};
    }
    return {PostgresBinary("pg_ctl"),
            "start",
            "-w",
            "-t",
            "60",
            "-D",
            ShardDirectory(options, shard),
            "-l",
            ShardDirectory(options, shard) + ".log"};
  });
}

// Runs SQL on Sluice itself; what is there already is no error.
void Register(const ClusterOptions& options) {
  PGconn* connection = PQconnectdb(
      fmt::format("host=127.0.0.1 port={} user=postgres dbname=postgres", options.port).c_str());
  std::unique_ptr<PGconn, void (*)(PGconn*)> closer(connection, PQfinish);
  if (PQstatus(connection) != CONNECTION_OK)
    throw ClusterError(fmt::format("Sluice does not answer: {}", PQerrorMessage(connection)));
  PQsetNoticeProcessor(
      connection, [](void*, const char*) {}, nullptr);
  for (int shard = 1; shard <= options.shards; shard++) {
    for (const std::string& sql :
         {fmt::format(
              "CREATE SERVER IF NOT EXISTS shard{} FOREIGN DATA WRAPPER postgres_fdw OPTIONS "
              "(host '127.0.0.1', port '{}', dbname 'postgres')",
              shard, ShardPort(options, shard)),
          fmt::format("CREATE USER MAPPING IF NOT EXISTS FOR PUBLIC SERVER shard{} OPTIONS "
                      "(user 'postgres')",
                      shard)}) {
      std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(connection, sql.c_str()),
                                                            PQclear);
      if (PQresultStatus(result.get()) != PGRES_COMMAND_OK)
        throw ClusterError(fmt::format("{}: {}", sql, PQresultErrorMessage(result.get())));
    }
  }
}

void WriteDescription(const ClusterOptions& options) {
  std::ofstream file(options.directory + "/cluster.conf", std::ios::trunc);
  file << options.shards << " " << options.port << " " << options.shard_port << "\n";
}

ClusterOptions ReadDescription(ClusterOptions options) {
  std::ifstream file(options.directory + "/cluster.conf");
  if (!(file >> options.shards >> options.port >> options.shard_port))
    throw ClusterError(fmt::format("there is no cluster in {}", options.directory));
  return options;
}

int Guarded(const std::function<void()>& work) {
  try {
    work();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sluice cluster: {}\n", error.what());
    return 1;
  }
}

}  // namespace

int ClusterUp(const ClusterOptions& given, const RunSelf& run_self) {
  return Guarded([&] {
    ClusterOptions options = given;
    options.directory = fs::absolute(options.directory).lexically_normal().string();
    if (options.directory.size() > 80)
      throw ClusterError("the directory's path is too long for a unix socket (80 characters)");
    fs::create_directories(options.directory);
    DropRoot(options.directory);
    Say(fmt::format("[1/4] making {} Postgres shards in {} …", options.shards, options.directory));
    InitShards(options);
    Say(fmt::format("[2/4] starting them on ports {} to {} …", options.shard_port,
                    ShardPort(options, options.shards)));
    StartShards(options);
    Say(fmt::format("[3/4] starting Sluice on port {} …", options.port));
    std::string data = options.directory + "/sluice";
    bool fresh = !fs::exists(data + "/sluice.conf");
    if (fresh && ForkSelf(run_self, {"init", "-D", data}) != 0)
      throw ClusterError("sluice init failed");
    if (fresh) {
      std::ofstream conf(data + "/sluice.conf", std::ios::app);
      conf << "\n# written by sluice cluster up\nport = " << options.port
           << "\nunix_socket_directories = '" << options.directory << "'\n";
      for (const auto& line : options.settings) conf << line << "\n";
    }
    if (ForkSelf(run_self, {"start", "-D", data}) != 0)
      throw ClusterError(fmt::format("sluice start failed; see {}/sluice.log", data));
    Say("[4/4] registering the shards …");
    Register(options);
    WriteDescription(options);
  });
}

int ClusterDown(const ClusterOptions& given, const RunSelf& run_self) {
  return Guarded([&] {
    ClusterOptions options = given;
    options.directory = fs::absolute(options.directory).lexically_normal().string();
    options = ReadDescription(options);
    DropRoot(options.directory);
    int stopped = ForkSelf(run_self, {"stop", "-D", options.directory + "/sluice", "-m", "fast"});
    ForEachShard(options, "the stop", [&](int shard) -> std::vector<std::string> {
      if (!fs::exists(ShardDirectory(options, shard) + "/postmaster.pid")) return {};
      return {PostgresBinary("pg_ctl"),      "stop", "-m", "fast", "-w", "-D",
              ShardDirectory(options, shard)};
    });
    if (stopped != 0) throw ClusterError("Sluice was not running");
  });
}

int ClusterUrls(const ClusterOptions& given) {
  return Guarded([&] {
    ClusterOptions options = ReadDescription(given);
    fmt::print("postgresql://postgres@127.0.0.1:{}/postgres\n", options.port);
    for (int shard = 1; shard <= options.shards; shard++)
      fmt::print("postgresql://postgres@127.0.0.1:{}/postgres\n", ShardPort(options, shard));
  });
}

}  // namespace sluice
