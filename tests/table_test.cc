// Tables that Sluice makes on its servers: what CREATE TABLE and its kin leave on every shard, how
// rows are placed, and that a command is done on all servers or on none.
#include <gtest/gtest.h>

#include "tests/harness.h"

namespace sluice::test {
namespace {

class Tables : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(Cluster::Options{.shards = 3, .settings = {}, .shard_settings = {}});
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  // What the server says of one statement.
  static std::string Said(Client& client, const std::string& sql) {
    Answer answer = client.Query(sql);
    if (!answer.sqlstate.empty()) return answer.sqlstate + " " + answer.message;
    return answer.command_tag + (answer.rows.empty() ? "" : "\n" + answer.Text(true));
  }
  // The same value from every shard, or all values.
  static std::string OnShards(const std::string& sql) {
    std::string first = Client(cluster_->ShardUrl(1)).Value(sql), all = first;
    for (int shard = 2; shard <= cluster_->shards(); shard++)
      all += " | " + Client(cluster_->ShardUrl(shard)).Value(sql);
    std::string same = first;
    for (int shard = 2; shard <= cluster_->shards(); shard++) same += " | " + first;
    return all == same ? first : all;
  }
  static std::string Columns(const std::string& table) {
    return OnShards(
        "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN "
        "attnotnull THEN ' not null' ELSE '' END, ', ' ORDER BY attnum) FROM pg_attribute WHERE "
        "attrelid = '" +
        table + "'::regclass AND attnum > 0 AND NOT attisdropped");
  }
  static std::string Names(const Answer& answer) {
    std::string names;
    for (const std::string& name : answer.names) names += (names.empty() ? "" : " ") + name;
    return names;
  }

  static Cluster* cluster_;
};

Cluster* Tables::cluster_ = nullptr;

TEST_F(Tables, CommandsAndErrorsAreThoseOfPostgres) {
  Client shard(cluster_->ShardUrl(1));
  shard.Must("CREATE DATABASE reference");
  Client postgres(cluster_->ShardUrl(1, "reference"));
  Client sluice(cluster_->Url());
  std::string text = ReadFile(SourceDirectory() + "/tests/ddl/tables.sql");
  for (const std::string& sql : SplitStatements(text))
    EXPECT_EQ(Said(sluice, sql), Said(postgres, sql)) << sql;
  EXPECT_EQ(OnShards("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"),
            "0");
}

TEST_F(Tables, AreOnEveryShardAndSpreadByTheFirstColumnOfTheirKey) {
  Client sluice(cluster_->Url());
  sluice.Must("CREATE TABLE plain (v1 int)");
  EXPECT_EQ(Columns("plain"), "v1 integer");
  EXPECT_EQ(OnShards("SELECT relreplident FROM pg_class WHERE relname = 'plain'"), "f");
  sluice.Must("CREATE TABLE parents (id bigint PRIMARY KEY, name text)");
  sluice.Must(
      "CREATE TABLE children (parent_id bigint REFERENCES parents, n int, v varchar(9), PRIMARY "
      "KEY (parent_id, n))");
  EXPECT_EQ(Columns("children"),
            "parent_id bigint not null, n integer not null, v character "
            "varying(9)");
  EXPECT_EQ(OnShards("SELECT relreplident FROM pg_class WHERE relname = 'children'"), "d");
  std::string plan;
  for (const auto& row :
       sluice.Must("EXPLAIN SELECT * FROM parents JOIN children ON parent_id = id").rows)
    plan += *row[0] + "\n";
  EXPECT_EQ(plan.find("Hash Join"), std::string::npos) << plan;
  EXPECT_NE(plan.find("INNER JOIN"), std::string::npos) << plan;
  plan.clear();
  for (const auto& row : sluice.Must("EXPLAIN SELECT * FROM children WHERE parent_id = 7").rows)
    plan += *row[0] + "\n";
  EXPECT_EQ(plan.find("Append"), std::string::npos) << plan;
  sluice.Must("DROP TABLE plain, parents, children");
  EXPECT_EQ(OnShards("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"),
            "0");
}

TEST_F(Tables, ReplicatedOnesJoinOnEveryShard) {
  Client sluice(cluster_->Url());
  sluice.Must("CREATE TABLE facts (id int PRIMARY KEY, kind int)");
  sluice.Must(
      "CREATE TABLE kinds (id int PRIMARY KEY, name text UNIQUE) WITH (distribution = "
      "'replicated')");
  sluice.Must("ALTER TABLE facts ADD FOREIGN KEY (kind) REFERENCES kinds");
  for (int shard = 1; shard <= cluster_->shards(); shard++)
    Client(cluster_->ShardUrl(shard))
        .Must(fmt::format("INSERT INTO kinds VALUES (1, 'a'), (2, 'b'); INSERT INTO facts SELECT g,"
                          " g % 2 + 1 FROM generate_series(1, 300) g WHERE g % 3 = {}",
                          shard - 1));
  EXPECT_EQ(sluice.Value("SELECT count(*) FROM kinds"), "2");
  EXPECT_EQ(sluice.Value("SELECT count(*) FROM ONLY kinds"), "2");
  EXPECT_EQ(sluice.Value("SELECT count(*) FROM facts JOIN kinds k ON k.id = kind"), "300");
  EXPECT_EQ(sluice.Value("SELECT count(*) FROM kinds k LEFT JOIN facts f ON k.id = f.kind"), "300");
  EXPECT_EQ(Said(sluice, "DROP TABLE kinds"),
            "2BP01 cannot drop table kinds because other objects depend on it");
  sluice.Must("DROP TABLE kinds CASCADE");
  EXPECT_EQ(OnShards("SELECT count(*) FROM pg_constraint WHERE conrelid = 'facts'::regclass"), "1");
  sluice.Must("ANALYZE facts");
  EXPECT_EQ(sluice.Value("SELECT rows FROM sluice.tables WHERE name = 'facts'"), "300");
  sluice.Must("TRUNCATE facts");
  EXPECT_EQ(sluice.Value("SELECT count(*) FROM facts"), "0");
  sluice.Must("DROP TABLE facts");
}

TEST_F(Tables, ConstraintsThatNoShardCanEnforceAreRefusedWithTheReason) {
  Client sluice(cluster_->Url());
  auto refused = [&](const std::string& sql) {
    Answer answer = sluice.Query(sql);
    EXPECT_EQ(answer.sqlstate, "0A000") << sql << ": " << answer.message;
    EXPECT_NE(answer.detail, "") << sql;
  };
  sluice.Must("CREATE TABLE a (id int PRIMARY KEY, x int)");
  sluice.Must("CREATE TABLE b (id bigint PRIMARY KEY, a_id int)");
  refused("CREATE TABLE c (id int PRIMARY KEY, email text UNIQUE)");
  refused("CREATE TABLE c (id int PRIMARY KEY, x int) PARTITION BY HASH (x)");
  refused("CREATE TABLE c (id int UNIQUE) WITH (distribution = 'even')");
  refused("CREATE UNIQUE INDEX ON a (x)");
  refused("ALTER TABLE a ADD UNIQUE (x)");
  refused("ALTER TABLE b ADD FOREIGN KEY (a_id) REFERENCES a");    // not by the key
  refused("CREATE TABLE c (id bigint PRIMARY KEY REFERENCES a)");  // spread by another type
  refused("CREATE TABLE c (a_id int REFERENCES a)");               // spread evenly
  refused("CREATE TABLE c (id int PRIMARY KEY REFERENCES a ON UPDATE CASCADE)");
  EXPECT_EQ(Said(sluice, "ALTER TABLE a DROP COLUMN id").substr(0, 5), "42P16");
  EXPECT_EQ(Said(sluice, "ALTER TABLE a ALTER COLUMN id TYPE bigint").substr(0, 5), "42P16");
  EXPECT_EQ(Said(sluice, "CREATE TABLE c (p point PRIMARY KEY)").substr(0, 5), "0A000");
  EXPECT_EQ(Said(sluice, "CREATE TABLE c (x int) WITH (distribution = 'hash')").substr(0, 5),
            "42P16");
  EXPECT_EQ(Said(sluice, "CREATE TABLE c (x int) WITH (distribution = 'around')").substr(0, 5),
            "22023");
  EXPECT_EQ(
      Said(sluice, "CREATE TABLE c (x text PRIMARY KEY) WITH (colocate_with = 'a')").substr(0, 5),
      "42804");
  sluice.Must("CREATE TABLE c (x int PRIMARY KEY) WITH (colocate_with = 'a')");
  sluice.Must("DROP TABLE a, b, c");
}

TEST_F(Tables, AlterChangesEveryShardAndWhatQueriesSee) {
  Client sluice(cluster_->Url());
  sluice.Must("CREATE TABLE alt (id int PRIMARY KEY, a int DEFAULT 3, b text)");
  sluice.Must(
      "ALTER TABLE alt ADD COLUMN c date DEFAULT '2024-01-01', DROP COLUMN b, ALTER a TYPE "
      "bigint USING a + 1, ALTER a SET NOT NULL");
  EXPECT_EQ(Columns("alt"), "id integer not null, a bigint not null, c date");
  EXPECT_EQ(Names(sluice.Must("SELECT * FROM alt")), "id a c");
  sluice.Must("ALTER TABLE alt RENAME COLUMN id TO key");
  EXPECT_EQ(Names(sluice.Must("SELECT * FROM alt WHERE key = 4")), "key a c");
  sluice.Must("ALTER TABLE alt RENAME TO other");
  EXPECT_EQ(Names(sluice.Must("SELECT * FROM other")), "key a c");
  EXPECT_EQ(Said(sluice, "SELECT * FROM alt").substr(0, 5), "42P01");
  sluice.Must("CREATE VIEW seen AS SELECT a FROM other");
  EXPECT_EQ(Said(sluice, "ALTER TABLE other DROP COLUMN a").substr(0, 5), "2BP01");
  sluice.Must("DROP VIEW seen");
  sluice.Must("ALTER TABLE other DROP CONSTRAINT alt_pkey");
  EXPECT_EQ(OnShards("SELECT relreplident FROM pg_class WHERE relname = 'other'"), "f");
  sluice.Must("DROP TABLE other");
}

TEST_F(Tables, ACommandIsDoneOnAllServersOrOnNone) {
  Client sluice(cluster_->Url()), third(cluster_->ShardUrl(3));
  third.Must("CREATE TABLE half (x int)");
  Answer answer = sluice.Query("CREATE TABLE half (id int PRIMARY KEY)");
  EXPECT_EQ(answer.sqlstate, "42P07");
  EXPECT_NE(answer.hint.find("attach_table"), std::string::npos) << answer.hint;
  EXPECT_EQ(OnShards("SELECT coalesce(to_regclass('half')::text, '-')"), "- | - | half");
  EXPECT_EQ(Said(sluice, "SELECT * FROM half").substr(0, 5), "42P01");
  third.Must("DROP TABLE half");
  sluice.Must("CREATE TABLE whole (id int PRIMARY KEY, x int)");
  third.Must("INSERT INTO whole VALUES (1, NULL)");
  EXPECT_EQ(Said(sluice, "ALTER TABLE whole ALTER x SET NOT NULL"),
            "23502 column \"x\" of relation \"whole\" contains null values");
  EXPECT_EQ(Columns("whole"), "id integer not null, x integer");
  sluice.Must("BEGIN");
  sluice.Must("CREATE TABLE undone (id int PRIMARY KEY)");
  sluice.Must("ALTER TABLE whole ADD y int");
  EXPECT_EQ(Names(sluice.Must("SELECT * FROM whole")), "id x y");
  sluice.Must("SAVEPOINT s");
  sluice.Must("DROP TABLE whole");
  EXPECT_EQ(Said(sluice, "SELECT * FROM whole").substr(0, 5), "42P01");
  sluice.Must("ROLLBACK TO s");
  EXPECT_EQ(sluice.Value("SELECT count(*) FROM whole"), "1");
  sluice.Must("ROLLBACK");
  EXPECT_EQ(OnShards("SELECT coalesce(to_regclass('undone')::text, '-')"), "-");
  EXPECT_EQ(Columns("whole"), "id integer not null, x integer");
  EXPECT_EQ(Names(sluice.Must("SELECT * FROM whole")), "id x");
  sluice.Must("BEGIN");
  sluice.Must("CREATE TABLE done (id int PRIMARY KEY)");
  sluice.Must("ALTER TABLE whole ADD y int");
  sluice.Must("COMMIT");
  EXPECT_EQ(Columns("whole"), "id integer not null, x integer, y integer");
  EXPECT_EQ(OnShards("SELECT count(*) FROM pg_prepared_xacts"), "0");
  // Another session's change of the catalog is found before any server has committed.
  Client other(cluster_->Url());
  sluice.Must("BEGIN");
  sluice.Must("ALTER TABLE whole ADD z int");
  other.Must("CREATE VIEW meanwhile AS SELECT 1 AS one");
  EXPECT_EQ(Said(sluice, "COMMIT").substr(0, 5), "40001");
  EXPECT_EQ(Columns("whole"), "id integer not null, x integer, y integer");
  sluice.Must("ALTER TABLE whole ADD z int");
  other.Must("SELECT z FROM whole");
  sluice.Must("DROP VIEW meanwhile");
  sluice.Must("DROP TABLE whole, done");
}

TEST_F(Tables, AnIndexThatCannotBeBuiltEverywhereIsNowhere) {
  Client sluice(cluster_->Url()), second(cluster_->ShardUrl(2));
  sluice.Must("CREATE TABLE idx (id int PRIMARY KEY, x int)");
  second.Must("ALTER TABLE idx DROP CONSTRAINT idx_pkey; INSERT INTO idx VALUES (1, 1), (1, 1)");
  Answer answer = sluice.Query("CREATE UNIQUE INDEX CONCURRENTLY idx_u ON idx (id, x)");
  EXPECT_EQ(answer.sqlstate, "23505");
  EXPECT_NE(answer.detail.find("server \"shard2\"; nothing of it is left"), std::string::npos)
      << answer.detail;
  EXPECT_EQ(OnShards("SELECT coalesce(to_regclass('idx_u')::text, '-')"), "-");
  sluice.Must("CREATE INDEX CONCURRENTLY idx_x ON idx (x)");
  EXPECT_EQ(OnShards("SELECT to_regclass('idx_x')"), "idx_x");
  sluice.Must("DROP INDEX CONCURRENTLY idx_x");
  EXPECT_EQ(OnShards("SELECT coalesce(to_regclass('idx_x')::text, '-')"), "-");
  sluice.Must("DROP TABLE idx");
}

TEST_F(Tables, AKeyThatIsAddedMovesTheRowsToTheirPlaces) {
  Client sluice(cluster_->Url());
  sluice.Must("CREATE TABLE spread (a int NOT NULL, b text DEFAULT 'x', s serial, CHECK (a > 0))");
  sluice.Must("CREATE INDEX spread_b ON spread (b)");
  for (int shard = 1; shard <= cluster_->shards(); shard++)
    Client(cluster_->ShardUrl(shard))
        .Must(fmt::format("INSERT INTO spread SELECT g, 'v' || g, g FROM generate_series({}, {}) g",
                          shard * 100, shard * 100 + 99));
  sluice.Must("CREATE VIEW seen AS SELECT a, b FROM spread");
  Answer twice = sluice.Query("ALTER TABLE spread ADD PRIMARY KEY (b, a)");
  EXPECT_EQ(twice.sqlstate, "") << twice.message;
  EXPECT_EQ(sluice.Value("SELECT count(*) FROM seen"), "300");
  for (int i = 100; i < 400; i += 37)
    EXPECT_EQ(sluice.Value(fmt::format("SELECT a FROM spread WHERE b = 'v{}'", i)),
              std::to_string(i));
  EXPECT_EQ(OnShards("SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind "
                     "IN ('r', 'i') AND relnamespace = 'public'::regnamespace"),
            "spread spread_b spread_pkey");
  EXPECT_EQ(Said(sluice, "INSERT INTO spread (a, b) VALUES (200, 'v200')"),
            "23505 duplicate key value violates unique constraint \"spread_pkey\"");
  sluice.Must("DROP VIEW seen");
  sluice.Must("DROP TABLE spread");
}

TEST_F(Tables, NeedAServer) {
  Client sluice(cluster_->StartServer("empty", {}));
  for (int i = 1; i <= cluster_->shards(); i++)
    sluice.Must(fmt::format("DROP SERVER shard{} CASCADE", i));
  Answer answer = sluice.Query("CREATE TABLE t (v1 int)");
  EXPECT_EQ(answer.sqlstate, "42704");
  EXPECT_NE(answer.hint.find("CREATE SERVER"), std::string::npos);
  EXPECT_EQ(Said(sluice, "SET sluice.default_distribution = none"), "SET");
  EXPECT_EQ(Said(sluice, "CREATE TABLE t (v1 int)"), "CREATE TABLE");  // a parent
}

TEST_F(Tables, KeepAServerFromBeingDropped) {
  Client sluice(cluster_->Url());
  sluice.Must("CREATE TABLE kept (id int PRIMARY KEY)");
  EXPECT_EQ(Said(sluice, "DROP SERVER shard2 CASCADE"),
            "2BP01 cannot drop server shard2 because table kept has rows on it");
  sluice.Must("DROP TABLE kept");
}

}  // namespace
}  // namespace sluice::test
