// EXPLAIN's options and what it tells of a statement that ran.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/harness.h"

namespace sluice::test {
namespace {

using Json = nlohmann::json;

class Explain : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(Cluster::Options{.shards = 2, .settings = {}, .shard_settings = {}});
    Client client(cluster_->Url());
    client.Must("CREATE TABLE rows (id int PRIMARY KEY, kind int, pad text)");
    client.Must(
        "INSERT INTO rows SELECT g, g % 7, repeat('p', 50) FROM generate_series(1, 60000) g");
    client.Must("CALL sluice.analyze('rows')");
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  void SetUp() override {
    client_ = std::make_unique<Client>(cluster_->Url());
    client_->Must("SET enable_pushdown_aggregate = off");
    client_->Must("SET enable_pushdown_sort = off");
    client_->Must("SET max_parallel_workers_per_gather = 2");
  }
  std::string Text(const std::string& sql) { return client_->Must(sql).Text(true); }
  Json Plan(const std::string& options, const std::string& sql) {
    Json all = Json::parse(client_->Value("EXPLAIN (" + options + ", FORMAT JSON) " + sql));
    EXPECT_EQ(all.size(), 1u);
    return all[0];
  }
  // The first node with this key, from the top.
  static const Json* Find(const Json& node, const std::string& key) {
    if (node.contains(key)) return &node;
    if (node.contains("Plans"))
      for (const Json& child : node["Plans"])
        if (const Json* found = Find(child, key)) return found;
    return nullptr;
  }

  static Cluster* cluster_;
  std::unique_ptr<Client> client_;
};
Cluster* Explain::cluster_ = nullptr;

constexpr const char* kGrouped = "SELECT kind, count(*), sum(id) FROM rows GROUP BY kind";

TEST_F(Explain, TellsThePlanWithoutRunningIt) {
  std::string text = Text(std::string("EXPLAIN (VERBOSE, BUFFERS OFF) ") + kGrouped);
  EXPECT_NE(text.find("Remote SQL: SELECT"), std::string::npos) << text;
  EXPECT_NE(text.find("(cost="), std::string::npos);
  EXPECT_EQ(text.find("actual"), std::string::npos);
  EXPECT_EQ(text.find("Stream:"), std::string::npos);
  EXPECT_EQ(Text(std::string("EXPLAIN (COSTS OFF) ") + kGrouped).find("cost="), std::string::npos);
}

TEST_F(Explain, OptionsAreCheckedAsByPostgres) {
  Client postgres(cluster_->ShardUrl(1));
  for (const char* options : {"(TIMING) SELECT 1", "(COLOR) SELECT 1", "(FORMAT picture) SELECT 1",
                              "(COSTS maybe) SELECT 1", "(ANALYZE 2) SELECT 1"}) {
    Answer ours = client_->Query(std::string("EXPLAIN ") + options);
    Answer theirs = postgres.Query(std::string("EXPLAIN ") + options);
    EXPECT_EQ(ours.sqlstate, theirs.sqlstate) << options;
    EXPECT_EQ(ours.message, theirs.message) << options;
  }
  EXPECT_EQ(client_->Query("EXPLAIN (ANALYZE, BUFFERS) SELECT 1").sqlstate, "0A000");
  EXPECT_EQ(client_->Query("EXPLAIN (FORMAT XML) SELECT 1").sqlstate, "0A000");
}

TEST_F(Explain, AnalyzeTellsWhoClaimedWhatFromWhom) {
  std::string text = Text(std::string("EXPLAIN (ANALYZE) ") + kGrouped);
  for (const char* part :
       {"Workers Launched: 2", "Parallel Append", "->  Scatter",
        "Leader: ", "Worker 0: ", "Worker 1: ", "shard1 slices=", "shard2 slices=",
        "idle while ready=", "Ready: ", "Stream: rows=", " chunks=", "first row=", "held back=",
        "Memory Usage: ", "Planning Time: ", "Execution Time: "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  text = Text(std::string("EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) ") + kGrouped);
  EXPECT_EQ(text.find(" ms"), std::string::npos) << text;
}

TEST_F(Explain, JsonHasTheSameAndItAddsUp) {
  Json all = Plan("ANALYZE", kGrouped);
  EXPECT_TRUE(all.contains("Planning Time") && all.contains("Execution Time"));
  const Json& plan = all["Plan"];
  EXPECT_EQ(plan["Actual Rows"], 7);
  EXPECT_EQ(plan["Node Type"], "Finalize HashAggregate");
  const Json* append = Find(plan, "Claims");
  ASSERT_NE(append, nullptr) << all.dump(1);
  int64_t claimed = 0, streamed = 0;
  ASSERT_EQ((*append)["Claims"].size(), 3u);
  for (const Json& participant : (*append)["Claims"])
    for (const Json& claim : participant) claimed += claim["Rows"].get<int64_t>();
  EXPECT_EQ(claimed, 60000);
  for (const Json& scan : (*append)["Plans"]) {
    ASSERT_TRUE(scan.contains("Streams")) << scan.dump(1);
    const Json& stream = scan["Streams"][0];
    streamed += stream["Rows"].get<int64_t>();
    EXPECT_GT(stream["Chunks"].get<int>(), 0);
    EXPECT_GT(stream["First Row Time"].get<double>(), 0);
    EXPECT_GE(stream["Total Time"].get<double>(), stream["First Row Time"].get<double>());
    EXPECT_TRUE(stream.contains("Held Back Time") && stream.contains("Bytes"));
  }
  EXPECT_EQ(streamed, 60000);
  EXPECT_GE((*append)["Ready Time"].get<double>(), 0);
  EXPECT_EQ((*append)["Idle While Ready Times"].size(), 3u);
}

TEST_F(Explain, TellsMemoryAndWhatWentToDisk) {
  client_->Must("SET work_mem = '64kB'");
  Json plan = Plan("ANALYZE", "SELECT * FROM rows ORDER BY pad, id DESC")["Plan"];
  const Json* sort = Find(plan, "Disk Usage");
  ASSERT_NE(sort, nullptr) << plan.dump(1);
  EXPECT_GT((*sort)["Disk Usage"].get<int>(), 1000);
  std::string text = Text("EXPLAIN (ANALYZE) SELECT * FROM rows ORDER BY pad, id DESC");
  EXPECT_NE(text.find("Disk Usage: "), std::string::npos) << text;
}

TEST_F(Explain, APassedThroughStatementHasItsNumbersToo) {
  Json all = Plan("ANALYZE", "SELECT * FROM rows");
  EXPECT_EQ(all["Pass-Through"], true);
  EXPECT_EQ(all["Plan"]["Actual Rows"], 60000);
}

}  // namespace
}  // namespace sluice::test
