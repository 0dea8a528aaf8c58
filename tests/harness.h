// What the tests that need real servers share: a cluster of their own (Postgres shards and Sluice,
// by `sluice cluster up`), and a thin libpq client that keeps everything a comparison needs.
#pragma once

#include <functional>
#include <libpq-fe.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::test {

struct Answer {
  std::vector<std::string> names;
  std::vector<unsigned> types;
  std::vector<int> modifiers;
  std::vector<std::vector<std::optional<std::string>>> rows;
  std::string command_tag;
  std::string sqlstate;  // "" on success
  std::string message;
  std::string position;
  std::string detail, hint;

  // Rows as text, one a line; sorted unless `ordered`.
  std::string Text(bool ordered) const;
};

class Client {
 public:
  explicit Client(const std::string& conninfo);
  bool connected() const { return PQstatus(connection_.get()) == CONNECTION_OK; }
  PGconn* raw() { return connection_.get(); }
  // Simple protocol (text results). Of COPY … TO STDOUT each message is a row of one column, in the
  // binary format each tuple, between its header and its trailer.
  Answer Query(const std::string& sql);
  // Extended protocol, results in `binary` or text.
  Answer QueryParams(const std::string& sql, const std::vector<std::optional<std::string>>& params,
                     bool binary);
  // Query in two parts: Await gives the last result, or none within `seconds`.
  void Send(const std::string& sql);
  std::optional<Answer> Await(double seconds);
  void Cancel();  // by a CancelRequest
  // Query, or a test failure with the server's words; for set-up.
  Answer Must(const std::string& sql);
  // The single value of a single row.
  std::string Value(const std::string& sql);

 private:
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
};

// `count` neighbouring TCP ports on loopback that nobody listens on now.
int FreePorts(int count);

class Cluster {
 public:
  struct Options {
    int shards = 4;
    std::vector<std::string> settings;
    std::vector<std::string> shard_settings;
  };
  explicit Cluster(const Options& options);
  Cluster() : Cluster(Options{}) {}
  ~Cluster();

  int shards() const { return options_.shards; }
  const std::string& directory() const { return directory_; }
  std::string Url() const;
  std::string Uri() const;  // the same as postgresql://…, for clients that are not libpq's
  std::string ShardUrl(int shard, const std::string& database = "postgres") const;  // from 1
  // A second Sluice with other settings over the same shards (its catalog is empty but for the
  // servers).
  std::string StartServer(const std::string& name, const std::vector<std::string>& settings);
  // Process ids: a shard's postmaster, Sluice's postmaster; 0 if it is down.
  int ShardPid(int shard) const;
  int ServerPid() const;
  void StopShard(int shard, const std::string& mode);  // pg_ctl's: fast, immediate
  void StartShard(int shard);
  // SIGKILL to the shard's postmaster; StartShard starts it again.
  void KillShard(int shard);
  // SIGKILL to Sluice's postmaster, and a start.
  void KillServer();
  // Runs one program as the user that owns the cluster; returns its exit status.
  int RunAsOwner(const std::vector<std::string>& command) const;

 private:
  Options options_;
  std::string directory_;
  int port_;
  int shard_port_;
  int guard_ = -1;  // a pipe to the process that cleans up should this one be killed
  std::vector<std::string> servers_;
};

// Retries until `check` holds; false after `seconds`.
bool Eventually(const std::function<bool()>& check, double seconds);

// The program under test: $SLUICE_BINARY, or `sluice` beside this test's build folder.
std::string SluiceBinary();
// The project's source folder (test data).
std::string SourceDirectory();
std::string ReadFile(const std::string& path);
// Splits a file into statements: each ends with a semicolon at the end of a line. Comment lines are
// dropped.
std::vector<std::string> SplitStatements(const std::string& text);

}  // namespace sluice::test
