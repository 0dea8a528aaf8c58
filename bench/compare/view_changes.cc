#include "bench/compare/view_changes.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/compare/drain.h"
#include "bench/compare/shards.h"
#include "bench/compare/views.h"

namespace sluice::bench {
namespace {

using test::Client;
using test::Cluster;

constexpr const char* kTable = "bench_changes";
constexpr const char* kRecvlogical = "/usr/lib/postgresql/15/bin/pg_recvlogical";
constexpr long kRowsPerTransaction = 1000;

// Rows of one shard with its ids: g * shards + its number.
std::string RowsSql(long first, long last, int shard, int shards) {
  return fmt::format(
      "SELECT g::bigint * {0} + {1}, ((g::bigint * 7919) % 100000)::int, "
      "(ARRAY['emea','apac','amer','latam'])[1 + g % 4], ((g::bigint * 37) % 100000) / 100.0, "
      "(g % 50)::int, (g % 1000) * 1.25, timestamptz '2024-01-01 00:00:00+00' + (g % 31536000) * "
      "interval '1 second', CASE WHEN g % 10 = 0 THEN NULL ELSE 'note ' || g % 1000 END "
      "FROM generate_series({2}, {3}) g",
      shards, shard % shards, first, last);
}

// `transactions` times `statement`, in which i counts them from 0.
void RunTransactions(const std::string& url, long transactions, const std::string& statement) {
  Client client(url);
  client.Must("SET synchronous_commit = off");
  client.Must(fmt::format("DO $$ BEGIN FOR i IN 0..{} LOOP {}; COMMIT; END LOOP; END $$",
                          transactions - 1, statement));
}

// The walsenders of Sluice's slots stand still while this lives: the backlog grows.
class HeldWalsenders {
 public:
  explicit HeldWalsenders(const Cluster& cluster) {
    for (int shard = 1; shard <= cluster.shards(); shard++)
      pids_.push_back(
          std::stoi(Client(cluster.ShardUrl(shard))
                        .Value("SELECT active_pid FROM pg_replication_slots WHERE slot_name LIKE "
                               "'sluice%'")));
    for (int pid : pids_) kill(pid, SIGSTOP);
  }
  ~HeldWalsenders() { Go(); }
  void Go() {
    for (int pid : std::exchange(pids_, {})) kill(pid, SIGCONT);
  }

 private:
  std::vector<int> pids_;
};

// pg_recvlogical of the slots bench_slot, up to the given positions; seconds.
double DrainSlots(const Cluster& cluster, const std::vector<std::string>& ends) {
  double start = Now();
  std::vector<pid_t> running;
  for (int shard = 1; shard <= cluster.shards(); shard++) {
    pid_t pid = fork();
    if (pid == 0) {
      std::string url = cluster.ShardUrl(shard),
                  end = "--endpos=" + ends[static_cast<size_t>(shard - 1)];
      execl(kRecvlogical, "pg_recvlogical", "-d", url.c_str(), "--slot=bench_slot", "--start",
            "--no-loop", end.c_str(), "-f", "/dev/null", "-o", "proto_version=1", "-o",
            "publication_names=bench_publication", "-o", "binary=true", "-o", "messages=true",
            nullptr);
      _exit(127);
    }
    running.push_back(pid);
  }
  bool failed = false;
  for (pid_t pid : running) {
    int status = 0;
    waitpid(pid, &status, 0);
    failed |= status != 0;
  }
  if (failed) throw std::runtime_error("pg_recvlogical failed");
  return Now() - start;
}

struct Rates {
  double direct = 0, sluice = 0;  // changes a second
};

// `change` makes `count` changes of one shard, by its url and number.
Rates MeasureBacklog(const Cluster& cluster, long count,
                     const std::function<void(const std::string& url, int shard)>& change) {
  int shards = cluster.shards();
  Client client(cluster.Url());
  client.Must("FLUSH");
  OnShards(cluster, "SELECT pg_create_logical_replication_slot('bench_slot', 'pgoutput')");
  std::vector<std::string> ends(static_cast<size_t>(shards));
  HeldWalsenders held(cluster);
  OnAllShards(shards, [&](int shard) {
    change(cluster.ShardUrl(shard), shard);
    Client direct(cluster.ShardUrl(shard));
    ends[static_cast<size_t>(shard - 1)] = direct.Value("SELECT pg_current_wal_insert_lsn()");
    // Something behind the end, which pg_recvlogical stops at.
    direct.Must(fmt::format("INSERT INTO {} {}", kTable, RowsSql(0, 0, shard, shards)));
    direct.Must(fmt::format("DELETE FROM {} WHERE id < {}", kTable, shards));
  });
  auto total = static_cast<double>(count * shards);
  Rates rates;
  rates.direct = total / DrainSlots(cluster, ends);
  OnShards(cluster, "SELECT pg_drop_replication_slot('bench_slot')");
  double start = Now();
  held.Go();
  client.Must("FLUSH");
  rates.sluice = total / (Now() - start);
  return rates;
}

Measurement RateLine(const std::string& job, const std::vector<Rates>& rounds, double limit) {
  std::vector<double> direct, sluice;
  for (const Rates& rates : rounds) {
    direct.push_back(rates.direct);
    sluice.push_back(rates.sluice);
  }
  Measurement m{.job = job,
                .unit = "changes/s",
                .baseline = Median(direct),
                .sluice = Median(sluice),
                .limit = limit,
                .at_least = true};
  fmt::print("{:<44} pg_recvlogical {:.0f}/s, sluice {:.0f}/s, ratio {:.2f}\n", m.job, m.baseline,
             m.sluice, m.ratio());
  std::fflush(stdout);
  return m;
}

}  // namespace

std::vector<Measurement> MeasureChangeRates(const Cluster& cluster, int rounds, long rows) {
  int shards = cluster.shards();
  std::vector<Measurement> measurements;
  // Transactions of a round on each shard.
  long transactions = std::max(1L, rows / 5 / kRowsPerTransaction);
  long changes = transactions * kRowsPerTransaction;
  for (auto [name, query] :
       {std::pair{"copy", "SELECT * FROM bench_changes"},
        {"GROUP BY region",
         "SELECT region, count(*), sum(amount) FROM bench_changes GROUP BY region"}}) {
    CreateTables(cluster, kTable, kOrdersColumns, "id");
    OnShards(cluster, fmt::format("DROP PUBLICATION IF EXISTS bench_publication; CREATE "
                                  "PUBLICATION bench_publication FOR TABLE {}",
                                  kTable));
    long last = changes;
    OnAllShards(shards, [&](int shard) {
      Client client(cluster.ShardUrl(shard));
      client.Must(fmt::format("INSERT INTO {} {}", kTable, RowsSql(1, last, shard, shards)));
      client.Must(fmt::format("VACUUM ANALYZE {}", kTable));
    });
    {
      ScopedView view(cluster, "bench_changes_view", query);
      std::vector<Rates> inserts, updates;
      for (int round = 0; round < rounds; round++) {
        inserts.push_back(MeasureBacklog(cluster, changes, [&](const std::string& url, int shard) {
          std::string first = fmt::format("{} + i * {}", last + 1, kRowsPerTransaction);
          std::string sql = RowsSql(0, 0, shard, shards);
          sql.replace(sql.find("(0, 0)"), 6,
                      fmt::format("({0}, {0} + {1})", first, kRowsPerTransaction - 1));
          RunTransactions(url, transactions, fmt::format("INSERT INTO {} {}", kTable, sql));
        }));
        last += changes;
        updates.push_back(MeasureBacklog(cluster, changes, [&](const std::string& url, int shard) {
          RunTransactions(
              url, transactions,
              fmt::format("UPDATE {} t SET amount = t.amount + 1 FROM (SELECT DISTINCT (1 + "
                          "floor(random() * {})::bigint) * {} + {} AS id FROM generate_series(1, "
                          "{})) k WHERE t.id = k.id",
                          kTable, last, shards, shard % shards, kRowsPerTransaction));
        }));
      }
      measurements.push_back(RateLine(fmt::format("inserts into {}", name), inserts, 0.6));
      measurements.push_back(RateLine(fmt::format("random updates into {}", name), updates, 0.4));
    }
    DropTables(cluster, kTable);
    OnShards(cluster, "DROP PUBLICATION bench_publication");
  }
  return measurements;
}

std::vector<Measurement> MeasureVisibility(const Cluster& cluster) {
  constexpr int kSamples = 300;
  constexpr int kRows = 10000;
  const char* table = "bench_ticks";
  CreateTables(cluster, table, "(id int PRIMARY KEY, v int NOT NULL)", "id");
  for (int shard = 1; shard <= cluster.shards(); shard++)
    Client(cluster.ShardUrl(shard))
        .Must(
            fmt::format("INSERT INTO {0} SELECT g, 0 FROM generate_series(0, {1}) g WHERE g % {2} "
                        "= {3}",
                        table, kRows - 1, cluster.shards(), shard % cluster.shards()));
  std::vector<double> one, chain;
  {
    Client client(cluster.Url());
    ScopedView first(cluster, "bench_tick_1", "SELECT * FROM bench_ticks");
    one = VisibilityMs(cluster, table, "v", "bench_tick_1", kRows, kSamples);
    client.Must("CREATE MATERIALIZED VIEW bench_tick_2 AS SELECT id, v FROM bench_tick_1");
    client.Must(
        "CREATE MATERIALIZED VIEW bench_tick_3 AS SELECT id, v FROM bench_tick_2 WHERE v >= 0");
    chain = VisibilityMs(cluster, table, "v", "bench_tick_3", kRows, kSamples);
  }
  DropTables(cluster, table);
  auto line = [](const std::string& job, double limit_ms, double ms) {
    return Measurement{.job = job, .unit = "ms", .baseline = limit_ms, .sluice = ms, .limit = 1};
  };
  return {line("view, commit to visible, p50", 10, Percentile(one, 50)),
          line("view, commit to visible, p99", 50, Percentile(one, 99)),
          line("chain of 3 views, commit to visible, p50", 15, Percentile(chain, 50))};
}

}  // namespace sluice::bench
