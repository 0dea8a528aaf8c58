// DDL against real shards: the same commands on a Postgres with postgres_fdw, what attach_table and
// IMPORT FOREIGN SCHEMA read and compare, and transactions.
#include <gtest/gtest.h>

#include "tests/harness.h"

namespace sluice::test {
namespace {

class DdlOverShards : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(Cluster::Options{.shards = 3, .settings = {}, .shard_settings = {}});
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  static void OnEveryShard(const std::string& sql) {
    for (int shard = 1; shard <= cluster_->shards(); shard++)
      Client(cluster_->ShardUrl(shard)).Must(sql);
  }
  // What the server says of one statement.
  static std::string Said(Client& client, const std::string& sql) {
    Answer answer = client.Query(sql);
    return answer.sqlstate.empty() ? answer.command_tag : answer.sqlstate + " " + answer.message;
  }

  static Cluster* cluster_;
};

Cluster* DdlOverShards::cluster_ = nullptr;

TEST_F(DdlOverShards, CommandsAndErrorsAreThoseOfPostgres) {
  Client shard(cluster_->ShardUrl(1));
  shard.Must("CREATE DATABASE reference");
  Client postgres(cluster_->ShardUrl(1, "reference"));
  postgres.Must("CREATE EXTENSION postgres_fdw");
  Client sluice(cluster_->StartServer("ddl", {}));
  for (int i = 1; i <= cluster_->shards(); i++)  // the other server's list is not this one's
    sluice.Query(fmt::format("DROP SERVER IF EXISTS shard{} CASCADE", i));
  sluice.Must(
      "SET sluice.default_distribution = none");  // its tables are parents of foreign tables
  std::string text = ReadFile(SourceDirectory() + "/tests/ddl/commands.sql");
  std::string port = shard.Value("SHOW port");
  for (size_t at; (at = text.find("{port}")) != std::string::npos;) text.replace(at, 6, port);
  for (const std::string& sql : SplitStatements(text))
    EXPECT_EQ(Said(sluice, sql), Said(postgres, sql)) << sql;
}

TEST_F(DdlOverShards, HashRuleHoldsForEveryTypeOfKey) {
  const char* keys[] = {"i4", "i8", "i2", "t", "v",  "c",  "u",  "n", "d",    "ts",
                        "tz", "f8", "f4", "b", "iv", "by", "tm", "o", "i4,t", "i8,u,n"};
  for (int shard = 1; shard <= cluster_->shards(); shard++) {
    Client client(cluster_->ShardUrl(shard));
    client.Must(
        "CREATE TABLE hp (i4 int, i8 bigint, i2 smallint, t text, v varchar(10), c char(8), u uuid,"
        " n numeric, d date, ts timestamp, tz timestamptz, f8 float8, f4 float4, b bool,"
        " iv interval, by bytea, tm time, o oid)");
    client.Must(
        "CREATE TABLE all_rows AS SELECT g * 7919 i4, g * 123456789012345 - 50000000000000000 i8,"
        " (g % 3000 - 1500)::int2 i2, repeat('x', g % 17) || g t, 'v' || g v, 'c' || g % 100 c,"
        " md5(g::text)::uuid u, CASE g % 4 WHEN 0 THEN g * 0.001 WHEN 1 THEN g * 10000.0"
        "  WHEN 2 THEN -g / 7.0 ELSE g * 100000000000000 END n, date '2000-01-01' + g - 500 d,"
        " timestamp '1999-01-01' + g * interval '7 hours 3.3s' ts,"
        " timestamptz '1999-01-01' + g * interval '7 hours' tz, g / 7.0::float8 - 50 f8,"
        " (g / 3.0)::float4 f4, g % 2 = 0 b, g * interval '1 day 3 hours' - interval '2 years' iv,"
        " decode(md5(g::text), 'hex') AS \"by\", time '00:00' + g * interval '13s' tm, g::oid o"
        " FROM generate_series(1, 500) g");
    int number = 0;
    for (std::string key : keys) {
      number++;
      client.Must(fmt::format("CREATE TABLE root{} (LIKE hp) PARTITION BY HASH ({})", number, key));
      client.Must(fmt::format("CREATE TABLE h{0} (LIKE hp)", number));
      client.Must(
          fmt::format("INSERT INTO h{0} SELECT * FROM all_rows WHERE satisfies_hash_partition("
                      "'root{0}'::regclass, {1}, {2}, {3})",
                      number, cluster_->shards(), shard - 1, key));
    }
  }
  Client sluice(cluster_->Url());
  for (int number = 1; number <= static_cast<int>(std::size(keys)); number++) {
    sluice.Must(
        fmt::format("CALL sluice.attach_table('h{}', partition_column => '{}', rule => 'hash')",
                    number, keys[number - 1]));
    EXPECT_EQ(sluice.Value(fmt::format("SELECT count(*) FROM h{}", number)), "500");
  }
  // Each key is found where it lies, by asking one shard only.
  for (const auto& row : sluice.Must("SELECT i4, t FROM h19").rows)
    ASSERT_EQ(sluice.Value(fmt::format("SELECT count(*) FROM h19 WHERE i4 = {} AND t = '{}'",
                                       *row[0], *row[1])),
              "1");
  EXPECT_EQ(sluice.Query("CALL sluice.detach_table('h1')").sqlstate, "");
  EXPECT_EQ(
      Said(sluice, "CALL sluice.attach_table('h1', partition_column => 'i8', rule => 'hash')"),
      "22023 rule hash does not hold for table \"public.h1\"");
}

TEST_F(DdlOverShards, AttachNamesWhatDiffers) {
  Client first(cluster_->ShardUrl(1)), second(cluster_->ShardUrl(2));
  OnEveryShard("CREATE TABLE same (id int PRIMARY KEY, v text)");
  Client sluice(cluster_->Url());
  EXPECT_EQ(Said(sluice, "CALL sluice.attach_table('nowhere')").substr(0, 5), "42P01");
  second.Must("ALTER TABLE same ALTER v TYPE varchar(7)");
  EXPECT_EQ(
      Said(sluice, "CALL sluice.attach_table('same')"),
      "42804 table \"public.same\" differs between servers: column \"v\" is text on \"shard1\""
      " but character varying(7) on \"shard2\"");
  second.Must("ALTER TABLE same ALTER v TYPE text; ALTER TABLE same DROP CONSTRAINT same_pkey");
  EXPECT_EQ(Said(sluice, "CALL sluice.attach_table('same')"),
            "42804 table \"public.same\" differs between servers: the primary key is (id) on"
            " \"shard1\" but none on \"shard2\"");
  OnEveryShard("CREATE TYPE pace AS ENUM ('slow', 'fast'); CREATE TABLE paces (p pace, ps pace[])");
  first.Must("ALTER TYPE pace ADD VALUE 'warp'");
  EXPECT_EQ(Said(sluice, "CALL sluice.attach_table('paces')").substr(0, 5), "42804");
  second.Must("ALTER TYPE pace ADD VALUE 'warp'");
  Client(cluster_->ShardUrl(3)).Must("ALTER TYPE pace ADD VALUE 'warp'");
  EXPECT_EQ(Said(sluice, "CALL sluice.attach_table('paces')"), "CALL");
}

TEST_F(DdlOverShards, ImportReadsColumnsKeysAndStatistics) {
  Client shard(cluster_->ShardUrl(1));
  shard.Must(
      "CREATE SCHEMA src; CREATE TABLE src.a (id int PRIMARY KEY, n numeric(7,2) NOT NULL, s text "
      "COLLATE \"C\"); CREATE VIEW src.b AS SELECT id, s FROM src.a; CREATE TABLE src.c (x int);"
      "INSERT INTO src.a SELECT g, g, 'v' || g % 5 FROM generate_series(1, 1000) g; ANALYZE src.a");
  Client sluice(cluster_->Url());
  sluice.Must("CREATE SCHEMA imported");
  EXPECT_EQ(Said(sluice, "IMPORT FOREIGN SCHEMA src EXCEPT (c) FROM SERVER shard1 INTO imported"),
            "IMPORT FOREIGN SCHEMA");
  EXPECT_EQ(sluice.Value("SELECT count(*) FROM imported.a"), "1000");
  EXPECT_EQ(sluice.Value("SELECT max(s) FROM imported.b"), "v4");
  EXPECT_EQ(sluice.Query("SELECT * FROM imported.c").sqlstate, "42P01");
  EXPECT_EQ(sluice.Value("SELECT rows FROM sluice.tables WHERE schema = 'imported' AND name = 'a'"),
            "1000");
  EXPECT_EQ(sluice.Must("SELECT n FROM imported.a LIMIT 1").modifiers[0], ((7 << 16) | 2) + 4);
}

TEST_F(DdlOverShards, ATransactionsDdlIsSeenAtCommitAndForgottenAtRollback) {
  OnEveryShard("CREATE TABLE tx (id int)");
  Client mine(cluster_->Url()), other(cluster_->Url());
  mine.Must("BEGIN");
  mine.Must("CALL sluice.attach_table('tx')");
  mine.Must("SELECT * FROM tx");
  EXPECT_EQ(other.Query("SELECT * FROM tx").sqlstate, "42P01");
  mine.Must("ROLLBACK");
  EXPECT_EQ(mine.Query("SELECT * FROM tx").sqlstate, "42P01");
  mine.Must("BEGIN");
  mine.Must("CALL sluice.attach_table('tx')");
  other.Must("CREATE SCHEMA meanwhile");
  EXPECT_EQ(mine.Query("COMMIT").sqlstate, "40001");
  EXPECT_EQ(mine.Query("SELECT * FROM tx").sqlstate, "42P01");
  mine.Must("CALL sluice.attach_table('tx')");
  other.Must("SELECT * FROM tx");
}

}  // namespace
}  // namespace sluice::test
