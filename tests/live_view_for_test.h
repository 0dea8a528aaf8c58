// Tests of live views: a fixture with a cluster of two shards, whose tables and views are gone, on
// the shards too, when a test ends.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <thread>

#include "tests/harness.h"

namespace sluice::test {

using namespace std::chrono_literals;

class LiveView : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Cluster::Options options;
    options.shards = 2;
    options.shard_settings = {"wal_sender_timeout = 10s"};
    cluster_ = new Cluster(options);
  }
  static void TearDownTestSuite() { delete cluster_; }

  void SetUp() override {
    client_.emplace(cluster_->Url());
    ASSERT_TRUE(client_->connected());
    client_->Must("SET statement_timeout = '60s'");  // what hangs is to fail
  }
  // Whatever a test made is gone, on the shards too.
  void TearDown() override {
    Client client(cluster_->Url());
    for (const std::string& view : views_)
      client.Query("DROP MATERIALIZED VIEW IF EXISTS " + view + " CASCADE");
    EXPECT_TRUE(Eventually([&] { return Slots() == "0 0"; }, 20)) << Slots();
    for (const std::string& table : tables_) {
      client.Query(fmt::format("CALL sluice.detach_table('{}')", table));
      OnShards("DROP TABLE IF EXISTS " + table);
    }
  }

  Client Shard(int shard) { return Client(cluster_->ShardUrl(shard)); }
  void OnShards(const std::string& sql) {
    for (int shard = 1; shard <= cluster_->shards(); shard++) Shard(shard).Must(sql);
  }
  // Replication slots and publications on all shards.
  std::string Slots() {
    int slots = 0, publications = 0;
    for (int shard = 1; shard <= cluster_->shards(); shard++) {
      slots += std::stoi(Shard(shard).Value("SELECT count(*) FROM pg_replication_slots"));
      publications += std::stoi(Shard(shard).Value("SELECT count(*) FROM pg_publication"));
    }
    return fmt::format("{} {}", slots, publications);
  }
  // A table on every shard, attached as one; each shard's ids are its own.
  void MakeTable(const std::string& name, const std::string& columns, int rows,
                 const std::string& select) {
    tables_.push_back(name);
    OnShards(fmt::format("DROP TABLE IF EXISTS {0}; CREATE TABLE {0} ({1})", name, columns));
    for (int shard = 1; shard <= cluster_->shards(); shard++)
      Shard(shard).Must(fmt::format("INSERT INTO {} SELECT {} FROM generate_series({}, {}) i", name,
                                    select, shard * 1000000, shard * 1000000 + rows - 1));
    client_->Must(fmt::format("CALL sluice.attach_table('{}')", name));
  }
  void MakeView(const std::string& name, const std::string& query) {
    views_.push_back(name);
    client_->Must(fmt::format("CREATE MATERIALIZED VIEW {} AS {}", name, query));
  }
  void ExpectSame(const std::string& view, const std::string& query) {
    client_->Must("FLUSH");
    Answer stored = client_->Must("SELECT * FROM " + view);
    Answer computed = client_->Must(query);
    EXPECT_EQ(stored.rows.size(), computed.rows.size()) << view;
    EXPECT_TRUE(stored.Text(false) == computed.Text(false)) << view << " differs from " << query;
  }
  // Its query over the shards, by the server itself, at one cut: also while others write.
  void ExpectVerified(const std::string& view) {
    Answer differences = client_->Must("SELECT * FROM sluice.verify('" + view + "')");
    EXPECT_EQ(differences.rows.size(), 0u) << view << ":\n" << differences.Text(false);
  }
  // The oid of a materialized view: its job's number.
  std::string Job(const std::string& view) {
    return client_->Value("SELECT '" + view + "'::regclass::oid");
  }
  pid_t ViewWorker() {
    return std::stoi(
        client_->Value("SELECT pid FROM pg_stat_activity WHERE backend_type = 'view worker'"));
  }
  // And with it, by the crash rule, every session; until all is there again.
  void KillViewWorker() { Kill("view worker"); }
  void Kill(const std::string& kind) {
    const std::string pids = fmt::format(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = '{}' ORDER BY pid LIMIT 1", kind);
    std::string killed = client_->Value(pids);
    kill(std::stoi(killed), SIGKILL);
    ASSERT_TRUE(Eventually(
        [&] {
          client_.emplace(cluster_->Url());
          if (!client_->connected()) return false;
          Answer answer = client_->Query(pids);
          return answer.rows.size() == 1 && answer.rows[0][0] != killed;
        },
        30));
  }

  static inline Cluster* cluster_ = nullptr;
  std::optional<Client> client_;
  std::vector<std::string> views_, tables_;
};

}  // namespace sluice::test
