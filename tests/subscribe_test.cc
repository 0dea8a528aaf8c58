// SUBSCRIBE: what comes over the COPY, resuming, and what ends it.
#include <gtest/gtest.h>
#include <map>

#include "tests/harness.h"

namespace sluice::test {
namespace {

// A subscription in a connection of its own.
class Subscriber {
 public:
  Subscriber(const std::string& url, const std::string& sql) : client_(url) {
    PGresult* result = PQexec(client_.raw(), sql.c_str());
    is_open_ = PQresultStatus(result) == PGRES_COPY_OUT;
    if (!is_open_) sqlstate_ = StateOf(result);
    PQclear(result);
  }
  bool is_open() const { return is_open_; }
  const std::string& sqlstate() const { return sqlstate_; }

  // Reads lines into rows() until `enough`; false after ten seconds, or at the end.
  bool ReadUntil(const std::function<bool()>& enough) {
    return Eventually(
               [&] {
                 int length = 0;
                 for (bool again = true; again;) {
                   again = false;
                   PQconsumeInput(client_.raw());
                   char* line;
                   while ((length = PQgetCopyData(client_.raw(), &line, 1)) > 0) {
                     Take(std::string(line, static_cast<size_t>(length) - 1));
                     PQfreemem(line);
                     again = true;
                   }
                 }
                 if (length < 0 && is_open_) {
                   is_open_ = false;
                   PGresult* result = PQgetResult(client_.raw());
                   sqlstate_ = StateOf(result);
                   message_ = PQresultErrorMessage(result);
                   PQclear(result);
                 }
                 return enough() || !is_open_;
               },
               10) &&
           enough();
  }
  void Cancel() { client_.Cancel(); }
  // Columns behind epoch and weight → multiplicity, summed up.
  const std::map<std::string, int>& rows() const { return rows_; }
  uint64_t epoch() const { return epoch_; }
  int lines() const { return lines_; }
  const std::string& message() const { return message_; }

 private:
  static std::string StateOf(PGresult* result) {
    const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return state == nullptr ? "" : state;
  }
  void Take(const std::string& line) {
    lines_++;
    size_t first = line.find('\t'), second = line.find('\t', first + 1);
    uint64_t epoch = std::stoull(line);
    EXPECT_GE(epoch, epoch_);
    epoch_ = epoch;
    int weight = std::stoi(line.substr(first + 1));
    if (weight == 0) return;
    int& count = rows_[line.substr(second + 1)];
    count += weight;
    if (count == 0) rows_.erase(line.substr(second + 1));
  }

  Client client_;
  bool is_open_ = false;
  std::string sqlstate_, message_;
  std::map<std::string, int> rows_;
  uint64_t epoch_ = 0;
  int lines_ = 0;
};

using Rows = std::map<std::string, int>;

class Subscribe : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Cluster::Options options;
    options.shards = 2;
    cluster_ = new Cluster(options);
    Client client(cluster_->Url());
    client.Must("CREATE TABLE t (id int PRIMARY KEY, k int, s text)");
    client.Must("INSERT INTO t VALUES (1, 1, 'a'), (2, 1, E'tab\\there'), (3, 2, NULL)");
    client.Must("CREATE MATERIALIZED VIEW copies AS SELECT id, s FROM t");
    client.Must("CREATE MATERIALIZED VIEW counts AS SELECT k, count(*) AS n FROM t GROUP BY k");
  }
  static void TearDownTestSuite() { delete cluster_; }
  void SetUp() override {
    Client client(cluster_->Url());
    client.Must("DELETE FROM t WHERE id > 3; UPDATE t SET k = 1, s = 'a' WHERE id = 1");
    client.Must("FLUSH");
  }
  static inline Cluster* cluster_ = nullptr;
};

TEST_F(Subscribe, TheSnapshotComesThenEachChange) {
  Subscriber copies(cluster_->Url(), "SUBSCRIBE TO copies WITH SNAPSHOT");
  Subscriber counts(cluster_->Url(), "SUBSCRIBE TO public.counts WITH SNAPSHOT WITH PROGRESS");
  ASSERT_TRUE(copies.is_open() && counts.is_open());
  EXPECT_TRUE(copies.ReadUntil([&] { return copies.lines() == 3; }));
  EXPECT_EQ(copies.rows(), (Rows{{"1\ta", 1}, {"2\ttab\\there", 1}, {"3\t\\N", 1}}));
  EXPECT_TRUE(counts.ReadUntil([&] { return counts.rows() == Rows{{"1\t2", 1}, {"2\t1", 1}}; }));
  Client client(cluster_->Url());
  client.Must(
      "BEGIN; INSERT INTO t VALUES (4, 2, 'd'); UPDATE t SET k = 2, s = 'x' WHERE id = 1; COMMIT");
  EXPECT_TRUE(counts.ReadUntil([&] { return counts.rows() == Rows{{"1\t1", 1}, {"2\t3", 1}}; }));
  Rows after = {{"1\tx", 1}, {"2\ttab\\there", 1}, {"3\t\\N", 1}, {"4\td", 1}};
  EXPECT_TRUE(copies.ReadUntil([&] { return copies.rows() == after; }));
  EXPECT_EQ(client.Value("SELECT wait_event FROM pg_stat_activity WHERE query LIKE 'SUBSCRIBE%' "
                         "ORDER BY pid LIMIT 1"),
            "Subscription");
  copies.Cancel();
  copies.ReadUntil([&] { return !copies.is_open(); });
  EXPECT_EQ(copies.sqlstate(), "57014");
}

TEST_F(Subscribe, GoesOnFromAnEpochAlsoAfterARestart) {
  uint64_t epoch;
  {
    Subscriber first(cluster_->Url(), "SUBSCRIBE TO copies WITH PROGRESS");
    ASSERT_TRUE(first.is_open());
    EXPECT_TRUE(first.ReadUntil([&] { return first.epoch() > 0; }));
    EXPECT_TRUE(first.rows().empty());
    Client(cluster_->Url()).Must("INSERT INTO t VALUES (5, 5, 'e')");
    EXPECT_TRUE(first.ReadUntil([&] { return first.rows() == Rows{{"5\te", 1}}; }));
    epoch = first.epoch();
  }
  {
    Client client(cluster_->Url());
    client.Must("INSERT INTO t VALUES (6, 5, 'f'); DELETE FROM t WHERE id = 5");
    client.Must("FLUSH");
  }
  std::string data = cluster_->directory() + "/sluice";
  ASSERT_EQ(cluster_->RunAsOwner({SluiceBinary(), "stop", "-D", data, "-m", "immediate"}), 0);
  ASSERT_EQ(cluster_->RunAsOwner({SluiceBinary(), "start", "-D", data}), 0);
  Subscriber second(cluster_->Url(), fmt::format("SUBSCRIBE TO copies AS OF {}", epoch));
  ASSERT_TRUE(second.is_open()) << second.sqlstate();
  EXPECT_TRUE(second.ReadUntil([&] { return second.lines() == 2; }));
  EXPECT_EQ(second.rows(), (Rows{{"5\te", -1}, {"6\tf", 1}}));
  Client(cluster_->Url()).Must("INSERT INTO t VALUES (7, 7, 'g')");
  EXPECT_TRUE(second.ReadUntil([&] { return second.rows().contains("7\tg"); }));
}

TEST_F(Subscribe, AnEpochThatIsNotKeptIsAnErrorThatSaysWhatToDo) {
  Client client(cluster_->Url());
  client.Must("CREATE MATERIALIZED VIEW fresh AS SELECT count(*) AS n FROM t");
  auto ended = [&](const std::string& sql) {
    Subscriber subscriber(cluster_->Url(), sql);
    EXPECT_FALSE(subscriber.is_open()) << sql;
    return subscriber.sqlstate();
  };
  EXPECT_EQ(ended("SUBSCRIBE TO fresh AS OF 1"), "55000");
  EXPECT_EQ(ended("SUBSCRIBE TO fresh AS OF 999999999"), "22023");
  EXPECT_EQ(ended("SUBSCRIBE TO fresh WITH SNAPSHOT AS OF 1"), "42601");
  EXPECT_EQ(ended("SUBSCRIBE TO fresh WITH"), "42601");
  EXPECT_EQ(ended("SUBSCRIBE fresh"), "42601");
  EXPECT_EQ(ended("SUBSCRIBE TO nothing"), "42P01");
  EXPECT_EQ(ended("SUBSCRIBE TO t"), "42809");
  client.Must("BEGIN");
  EXPECT_EQ(client.Query("SUBSCRIBE TO fresh").sqlstate, "25001");
  client.Must("ROLLBACK");
  client.Must("CREATE ROLE nobody LOGIN");
  client.Must("SET ROLE nobody");
  EXPECT_EQ(client.Query("SUBSCRIBE TO fresh").sqlstate, "42501");
  client.Must("RESET ROLE");
  Subscriber open(cluster_->Url(), "SUBSCRIBE TO fresh");
  ASSERT_TRUE(open.is_open());
  client.Must("DROP MATERIALIZED VIEW fresh");
  open.ReadUntil([&] { return !open.is_open(); });
  EXPECT_EQ(open.sqlstate(), "42P01");
}

TEST_F(Subscribe, OneThatDoesNotReadHoldsUpNobody) {
  Client client(cluster_->Url());
  Subscriber slow(cluster_->Url(), "SUBSCRIBE TO copies");
  Subscriber fast(cluster_->Url(), "SUBSCRIBE TO copies");
  ASSERT_TRUE(slow.is_open() && fast.is_open());
  client.Must("INSERT INTO t SELECT i, 9, repeat('x', 500) FROM generate_series(100, 40099) i");
  client.Must("FLUSH");
  EXPECT_TRUE(fast.ReadUntil([&] { return fast.rows().size() == 40000; }));
  client.Must("DELETE FROM t WHERE id >= 100");
  client.Must("FLUSH");
  EXPECT_TRUE(fast.ReadUntil([&] { return fast.rows().empty(); }));
  EXPECT_EQ(fast.lines(), 80000);
  EXPECT_TRUE(slow.ReadUntil([&] { return slow.lines() == 80000; }));  // and gets all in the end
  EXPECT_TRUE(slow.rows().empty());
}

}  // namespace
}  // namespace sluice::test
