// The server as a whole: start, stop in three modes, reload, its lock, its limits, and the crash
// rule.
#include <fstream>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/harness.h"

namespace sluice::test {
namespace {

class Server : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(
        Cluster::Options{.shards = 1, .settings = {"max_connections = 10"}, .shard_settings = {}});
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  static std::string Data() { return cluster_->directory() + "/sluice"; }
  static int Run(std::vector<std::string> args) {
    args.insert(args.begin(), SluiceBinary());
    args.insert(args.end(), {"-D", Data()});
    return cluster_->RunAsOwner(args);
  }
  static bool Works() { return Client(cluster_->Url()).Query("SELECT 1").sqlstate.empty(); }
  static void EnsureRuns() {
    if (!Works()) {
      ASSERT_EQ(Run({"start"}), 0);
    }
    ASSERT_TRUE(Eventually(Works, 20));
  }
  // A zombie whose parent is gone counts as dead, whoever reaps it.
  static bool Alive(const std::string& pid) {
    std::ifstream file("/proc/" + pid + "/stat");
    std::string stat(std::istreambuf_iterator<char>(file), {});
    size_t name_end = stat.rfind(')');
    return name_end != std::string::npos && stat[name_end + 2] != 'Z';
  }
  static std::vector<std::string> Pids(Client* client) {
    std::vector<std::string> pids;
    for (const auto& row : client->Must("SELECT pid FROM pg_stat_activity").rows)
      pids.push_back(*row[0]);
    return pids;
  }
  static bool AnyAlive(const std::vector<std::string>& pids) {
    return std::any_of(pids.begin(), pids.end(), Alive);
  }
  // The SQLSTATE that the server left on the connection before it closed it. (PQexec gives the last
  // result only, which is that the connection was lost.)
  static std::string LastWord(Client* client) {
    PQsendQuery(client->raw(), "SELECT 1");
    std::string state;
    while (PGresult* result = PQgetResult(client->raw())) {
      const char* field = PQresultErrorField(result, PG_DIAG_SQLSTATE);
      if (state.empty() && field != nullptr) state = field;
      PQclear(result);
    }
    return state;
  }
  static std::string Log() { return ReadFile(Data() + "/sluice.log"); }

  static Cluster* cluster_;
};
Cluster* Server::cluster_ = nullptr;

TEST_F(Server, ASecondServerOnTheSameDirectoryIsRefused) {
  EnsureRuns();
  EXPECT_NE(Run({"start"}), 0);
  EXPECT_TRUE(Works());
}

TEST_F(Server, InitRefusesADirectoryThatIsNotEmpty) {
  EXPECT_NE(Run({"init"}), 0);
}

TEST_F(Server, FastStopEndsSessionsAndEveryProcess) {
  EnsureRuns();
  Client client(cluster_->Url());
  client.Must("BEGIN");
  auto pids = Pids(&client);
  ASSERT_EQ(Run({"stop", "-m", "fast"}), 0);
  EXPECT_TRUE(Eventually([&] { return !AnyAlive(pids); }, 2));  // the last one may be exiting
  EXPECT_EQ(LastWord(&client), "57P01");
  EXPECT_FALSE(Works());
  EXPECT_EQ(Run({"status"}), 3);
}

TEST_F(Server, ImmediateStopEndsEverythingAtOnce) {
  EnsureRuns();
  Client client(cluster_->Url());
  auto pids = Pids(&client);
  ASSERT_EQ(Run({"stop", "-m", "immediate"}), 0);
  EXPECT_TRUE(Eventually([&] { return !AnyAlive(pids); }, 2));  // the last one may be exiting
  EXPECT_EQ(LastWord(&client), "57P01");
}

TEST_F(Server, SmartStopWaitsForTheLastClient) {
  EnsureRuns();
  auto client = std::make_unique<Client>(cluster_->Url());
  auto pids = Pids(client.get());
  EXPECT_NE(Run({"stop", "-m", "smart", "-t", "1"}), 0);  // a client is still there
  EXPECT_EQ(client->Value("SELECT 1"), "1");
  Client late(cluster_->Url());
  EXPECT_FALSE(late.connected());
  EXPECT_NE(std::string(PQerrorMessage(late.raw())).find("shutting down"), std::string::npos);
  client.reset();
  EXPECT_TRUE(Eventually([] { return cluster_->ServerPid() == 0; }, 10));
  EXPECT_TRUE(Eventually([&] { return !AnyAlive(pids); }, 5));
}

TEST_F(Server, ReloadReachesRunningSessions) {
  EnsureRuns();
  Client client(cluster_->Url());
  std::string before = ReadFile(Data() + "/sluice.conf");
  EXPECT_EQ(client.Value("SHOW work_mem"), "64MB");
  std::ofstream(Data() + "/sluice.conf", std::ios::app)
      << "work_mem = 32MB\nmax_connections = 11\n";
  EXPECT_EQ(Run({"reload"}), 0);
  EXPECT_TRUE(Eventually([&] { return client.Value("SHOW work_mem") == "32MB"; }, 5));
  EXPECT_EQ(client.Value("SHOW max_connections"), "10");
  EXPECT_NE(Log().find("max_connections\" cannot be changed without restarting"),
            std::string::npos);
  client.Must("SET work_mem = '1MB'");
  std::ofstream(Data() + "/sluice.conf") << before;
  EXPECT_EQ(Client(cluster_->Url()).Value("SELECT pg_reload_conf()"), "t");
  EXPECT_TRUE(
      Eventually([&] { return Client(cluster_->Url()).Value("SHOW work_mem") == "64MB"; }, 5));
  EXPECT_EQ(client.Value("SHOW work_mem"), "1MB");  // its own value stays
}

TEST_F(Server, ABadConfigurationFileIsRefusedByReloadAndByStart) {
  EnsureRuns();
  std::string before = ReadFile(Data() + "/sluice.conf");
  std::ofstream(Data() + "/sluice.conf", std::ios::app) << "work_mem = huge\n";
  EXPECT_NE(Run({"reload"}), 0);
  EXPECT_TRUE(Works());
  ASSERT_EQ(Run({"stop"}), 0);
  EXPECT_NE(Run({"start"}), 0);
  EXPECT_NE(Log().find("configuration file line"), std::string::npos);
  std::ofstream(Data() + "/sluice.conf") << before;
  EnsureRuns();
}

TEST_F(Server, EveryProcessKindShowsItselfAndItsWait) {
  EnsureRuns();
  Client client(cluster_->Url());
  auto kinds = client.Must("SELECT DISTINCT backend_type FROM pg_stat_activity").Text(false);
  for (const char* kind : {"postmaster", "io worker", "parallel worker", "client backend"})
    EXPECT_NE(kinds.find(kind), std::string::npos) << kind;
  EXPECT_EQ(
      client.Value("SELECT wait_event FROM pg_stat_activity WHERE backend_type = 'io worker'"),
      "IoWorkerMain");
  Client other(cluster_->Url());
  other.Must("SET application_name = 'idler'");
  other.Must("BEGIN");
  // A session says that it is idle a moment before it waits.
  std::vector<std::optional<std::string>> row;
  EXPECT_TRUE(Eventually(
      [&] {
        row = client
                  .Must(
                      "SELECT state, wait_event_type, wait_event, query, usename FROM "
                      "pg_stat_activity WHERE application_name = 'idler'")
                  .rows.at(0);
        return row[1].has_value();
      },
      5));
  EXPECT_EQ(row[0], "idle in transaction");
  EXPECT_EQ(row[1], "Client");
  EXPECT_EQ(row[2], "ClientRead");
  EXPECT_EQ(row[3], "BEGIN");
  EXPECT_EQ(row[4], "postgres");
}

TEST_F(Server, AKilledChildEndsTheOthersWithTheirReasonAndTheServerComesBack) {
  for (const char* kind : {"io worker", "parallel worker", "client backend"}) {
    SCOPED_TRACE(kind);
    EnsureRuns();
    Client victim(cluster_->Url()), witness(cluster_->Url());
    auto pids = Pids(&witness);
    std::string pid =
        witness
            .Must(fmt::format("SELECT pid FROM pg_stat_activity WHERE backend_type = '{}' AND "
                              "pid <> pg_backend_pid()",
                              kind))
            .rows.at(0)
            .at(0)
            .value();
    std::string postmaster =
        witness.Value("SELECT pid FROM pg_stat_activity WHERE backend_type = 'postmaster'");
    ASSERT_EQ(kill(std::stoi(pid), SIGKILL), 0);
    EXPECT_TRUE(Eventually(
        [&] {
          return std::none_of(pids.begin(), pids.end(),
                              [&](const std::string& p) { return p != postmaster && Alive(p); });
        },
        10));
    EXPECT_EQ(LastWord(&witness), "57P02");
    EXPECT_TRUE(Eventually(Works, 10));
    EXPECT_TRUE(Alive(postmaster));
  }
  EXPECT_GE(std::stoi(Client(cluster_->Url())
                          .Value("SELECT value FROM sluice.status WHERE name = 'crash_restarts'")),
            3);
}

TEST_F(Server, AKilledPostmasterTakesItsChildrenWithIt) {
  EnsureRuns();
  Client client(cluster_->Url());
  auto pids = Pids(&client);
  ASSERT_EQ(kill(cluster_->ServerPid(), SIGKILL), 0);
  EXPECT_TRUE(Eventually([&] { return !AnyAlive(pids); }, 5));
  EXPECT_EQ(Run({"status"}), 3);
  EnsureRuns();  // over the socket file and the pid file that were left
}

TEST_F(Server, SlowStatementsAndErrorsAreLogged) {
  EnsureRuns();
  Client client(cluster_->Url());
  client.Must("SET log_min_duration_statement = '50ms'");
  client.Must("SELECT pg_sleep(0.1) AS slow_one");
  client.Query("SELECT no_such_column_here");
  std::string log = Log();
  EXPECT_NE(log.find(" ms  statement: SELECT pg_sleep(0.1) AS slow_one"), std::string::npos);
  EXPECT_NE(log.find("ERROR:  42703: column \"no_such_column_here\" does not exist  STATEMENT: "
                     "SELECT no_such_column_here"),
            std::string::npos);
}

TEST_F(Server, BackendsEndOnRequest) {
  EnsureRuns();
  Client client(cluster_->Url()), other(cluster_->Url());
  std::string pid = other.Value("SELECT pg_backend_pid()");
  EXPECT_EQ(client.Value(fmt::format("SELECT pg_terminate_backend({})", pid)), "t");
  EXPECT_EQ(client.Value("SELECT pg_cancel_backend(0)"), "f");
  EXPECT_TRUE(Eventually([&] { return !Alive(pid); }, 5));
  EXPECT_EQ(LastWord(&other), "57P01");
  EXPECT_EQ(client.Value("SELECT 1"), "1");  // nobody else noticed
}

TEST_F(Server, AViewStoreThatCannotBeReadLeavesTheRestAtWork) {
  EnsureRuns();
  ASSERT_EQ(Run({"stop"}), 0);
  { std::ofstream(Data() + "/views/data.mdb") << std::string(64 << 10, 'x'); }
  ASSERT_EQ(Run({"start"}), 0);
  auto told = [] {
    return ReadFile(Data() + "/sluice.log").find("Live views stand still") != std::string::npos;
  };
  EXPECT_TRUE(Eventually(told, 10));
  EXPECT_TRUE(Works());
  ASSERT_EQ(Run({"stop"}), 0);
  ASSERT_EQ(cluster_->RunAsOwner({"/bin/rm", "-r", Data() + "/views"}), 0);
  EnsureRuns();
}

}  // namespace
}  // namespace sluice::test
