#include "bench/compare/pgbench.h"

#include <fstream>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/compare/shards.h"

namespace sluice::bench {
namespace {

using test::Client;
using test::Cluster;

constexpr int kClients = 8, kSeconds = 3;
constexpr int kRowsPerShard = 100'000;

// pgbouncer in front of the first shard; it refuses to run as root.
class Pgbouncer {
 public:
  explicit Pgbouncer(const Cluster& cluster)
      : cluster_(cluster), pid_file_(cluster.directory() + "/pgbouncer.pid") {
    port_ = test::FreePorts(1);
    std::string ini = cluster.directory() + "/pgbouncer.ini";
    std::ofstream(ini) << fmt::format(
        "[databases]\npostgres = host=127.0.0.1 port={} dbname=postgres user=postgres\n"
        "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\n"
        "auth_type = any\npool_mode = transaction\ndefault_pool_size = {}\nmax_client_conn = 100\n"
        "ignore_startup_parameters = extra_float_digits\npidfile = {}\nlogfile = "
        "{}/pgbouncer.log\n",
        PortOf(cluster.ShardUrl(1)), port_, kClients, pid_file_, cluster.directory());
    if (cluster.RunAsOwner({"/usr/sbin/pgbouncer", "-d", "-q", ini}) != 0)
      throw std::runtime_error("pgbouncer did not start: is Debian's package pgbouncer there?");
    if (!test::Eventually([&] { return Client(Url()).connected(); }, 10))
      throw std::runtime_error("pgbouncer does not answer");
  }
  ~Pgbouncer() {
    int pid = 0;
    if (std::ifstream(pid_file_) >> pid)
      cluster_.RunAsOwner({"/bin/kill", "-TERM", std::to_string(pid)});
  }
  std::string Url() const {
    return fmt::format("host=127.0.0.1 port={} user=postgres dbname=postgres", port_);
  }

 private:
  const Cluster& cluster_;
  std::string pid_file_;
  int port_;
};

// Transactions a second.
double RunPgbench(const std::string& url, const std::string& script) {
  std::string command = fmt::format(
      "/usr/lib/postgresql/15/bin/pgbench -n -M extended -c {} -j 2 -T {} -f {} '{}' 2>&1",
      kClients, kSeconds, script, url);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("pgbench did not start");
  std::string output;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
  int status = pclose(pipe);
  size_t at = output.find("tps = ");
  if (status != 0 || at == std::string::npos) throw std::runtime_error("pgbench: " + output);
  return std::stod(output.substr(at + 6));
}

}  // namespace

std::vector<Measurement> MeasurePgbench(const Cluster& cluster, int rounds) {
  int shards = cluster.shards();
  CreateTables(cluster, "bench_accounts", "(id int PRIMARY KEY, balance int NOT NULL, note text)",
               "id");
  for (int shard = 1; shard <= shards; shard++) {
    Client client(cluster.ShardUrl(shard));
    client.Must(
        fmt::format("INSERT INTO bench_accounts SELECT g * {0} + {1}, 0, 'account ' || g FROM "
                    "generate_series(0, {2}) g",
                    shards, shard % shards, kRowsPerShard - 1));
    client.Must("VACUUM ANALYZE bench_accounts");
  }
  Pgbouncer pgbouncer(cluster);
  auto write = [&](const std::string& name, const std::string& text) {
    std::string path = cluster.directory() + "/" + name;
    std::ofstream(path) << text;
    return path;
  };
  // A shard's number is the remainder: these keys are the first shard's.
  std::string one_shard =
      fmt::format("\\set id random(0, {}) * {} + 1\n", kRowsPerShard - 1, shards);
  std::string all_shards = fmt::format("\\set id random(0, {})\n", kRowsPerShard * shards - 1);
  std::string select = "SELECT balance FROM bench_accounts WHERE id = :id;\n";
  std::string transaction = "BEGIN;\n" + select +
                            "UPDATE bench_accounts SET balance = balance + 1 WHERE id = :id;\n" +
                            select + "COMMIT;\n";
  std::string select_one = write("select_one.sql", one_shard + select),
              select_all = write("select_all.sql", all_shards + select),
              transaction_one = write("transaction_one.sql", one_shard + transaction);
  std::vector<double> select_direct, select_here, transaction_direct, transaction_here;
  for (int round = 0; round < rounds; round++) {
    select_direct.push_back(RunPgbench(pgbouncer.Url(), select_one));
    select_here.push_back(RunPgbench(cluster.Url(), select_all));
    transaction_direct.push_back(RunPgbench(pgbouncer.Url(), transaction_one));
    transaction_here.push_back(RunPgbench(cluster.Url(), transaction_one));
  }
  DropTables(cluster, "bench_accounts");
  return {{.job = "pgbench select by key, 8 clients",
           .unit = "tps",
           .baseline = Median(select_direct),
           .sluice = Median(select_here),
           .limit = 0.9,
           .at_least = true},
          {.job = "pgbench 3-statement transaction, one key",
           .unit = "tps",
           .baseline = Median(transaction_direct),
           .sluice = Median(transaction_here),
           .limit = 0.8,
           .at_least = true}};
}

}  // namespace sluice::bench
