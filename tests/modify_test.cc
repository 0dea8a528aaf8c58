// COPY … FROM STDIN into sharded tables, next to the same COPY into one Postgres that holds all the
// rows: tag, SQLSTATE, message and CONTEXT, and what the tables hold afterwards.
#include <gtest/gtest.h>

#include "tests/harness.h"

namespace sluice::test {
namespace {

constexpr int kShards = 4;
constexpr const char* kTable =
    "CREATE TABLE copied (id int PRIMARY KEY, word varchar(8) DEFAULT 'none', amount numeric "
    "CHECK (amount < 1000), at timestamptz, tags text[])";

class World {
 public:
  static World& Get() {
    static World world;
    return world;
  }
  Cluster& cluster() { return cluster_; }
  std::string reference_url() const { return cluster_.ShardUrl(1, "reference"); }

  void Empty() {
    Client(reference_url()).Must("TRUNCATE copied");
    for (int shard = 1; shard <= kShards; shard++)
      Client(cluster_.ShardUrl(shard)).Must("TRUNCATE copied");
  }

 private:
  World() {
    Client(cluster_.ShardUrl(1)).Must("CREATE DATABASE reference");
    Client(reference_url()).Must(kTable);
    for (int shard = 1; shard <= kShards; shard++) Client(cluster_.ShardUrl(shard)).Must(kTable);
    Client client(cluster_.Url());
    client.Must(
        "CREATE TABLE copied (id int, word varchar(8), amount numeric, at timestamptz, tags "
        "text[]) "
        "PARTITION BY LIST ((id % 4))");
    for (int shard = 1; shard <= kShards; shard++)
      client.Must(
          fmt::format("CREATE FOREIGN TABLE copied_{0} PARTITION OF copied FOR VALUES IN ({1}) "
                      "SERVER shard{0} OPTIONS (table_name 'copied')",
                      shard, shard % 4));
  }

  Cluster cluster_{Cluster::Options{.shards = kShards}};
};

struct Outcome {
  std::string tag, sqlstate, message, context;
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << outcome.tag << " | " << outcome.sqlstate << " | " << outcome.message << " | "
             << outcome.context;
}

std::string Field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? "" : text;
}

// Sends the data in pieces of `piece` bytes.
Outcome Copy(Client& client, const std::string& sql, const std::string& data, size_t piece) {
  PGconn* connection = client.raw();
  PGresult* result = PQexec(connection, sql.c_str());
  if (PQresultStatus(result) == PGRES_COPY_IN) {
    PQclear(result);
    for (size_t at = 0; at < data.size(); at += piece)
      PQputCopyData(connection, data.data() + at,
                    static_cast<int>(std::min(piece, data.size() - at)));
    PQputCopyEnd(connection, nullptr);
    result = PQgetResult(connection);
  }
  Outcome outcome;
  if (PQresultStatus(result) == PGRES_COMMAND_OK) {
    outcome.tag = PQcmdStatus(result);
  } else {
    outcome = {"", Field(result, PG_DIAG_SQLSTATE), Field(result, PG_DIAG_MESSAGE_PRIMARY),
               Field(result, PG_DIAG_CONTEXT)};
    // Behind Postgres's own lines stands the shard's statement.
    size_t remote = outcome.context.find("\nremote SQL command");
    if (remote != std::string::npos) outcome.context.resize(remote);
  }
  while (result != nullptr) {
    PQclear(result);
    result = PQgetResult(connection);
  }
  return outcome;
}

void Compare(const std::string& sql, const std::string& data) {
  SCOPED_TRACE(sql);
  World& world = World::Get();
  Client reference(world.reference_url()), sluice(world.cluster().Url());
  for (size_t piece : {size_t{1} << 20, size_t{7}}) {
    world.Empty();
    Outcome expected = Copy(reference, sql, data, piece);
    Outcome got = Copy(sluice, sql, data, piece);
    EXPECT_EQ(expected, got);
    const char* all = "SELECT * FROM copied ORDER BY id";
    EXPECT_EQ(reference.Query(all).Text(true), sluice.Query(all).Text(true));
  }
}

TEST(CopyFromTest, TextGoesToItsShards) {
  Compare("COPY copied FROM STDIN",
          "1\tone\t1.5\t2024-01-01 00:00:00+00\t{a,\"b c\",NULL}\n2\ttwo\t\\N\t\\N\t\\N\n"
          "3\tt\\tb\t2\t\\N\t{}\n4\t\\\\x\t3\t\\N\t\\N\n5\tm\\x41\\101\t4\t\\N\t\\N\n");
  Compare("COPY copied (word, id) FROM STDIN", "a\t1\nb\t2\nc\t3\n\\N\t4\n");
  Compare("COPY copied (id) FROM STDIN", "1\r\n2\r\n3\r\n");
  Compare("COPY copied (id, word) FROM STDIN (DELIMITER '|', NULL 'nil')", "1|nil\n2|x\\|y\n");
  Compare("COPY copied (id) FROM STDIN", "7\n8\n\\.\nnot looked at\n");
  Compare("COPY copied (id, word) FROM STDIN (HEADER)", "whatever\n1\ta\n");
  Compare("COPY copied (id, word) FROM STDIN (HEADER match)", "id\tword\n1\ta\n");
  Compare("COPY copied (id, word) FROM STDIN (HEADER match)", "id\tother\n1\ta\n");
  Compare("COPY copied (id, word) FROM STDIN", "1\tno end of line");
  Compare("COPY copied FROM STDIN", "");
}

TEST(CopyFromTest, CsvWithItsOptions) {
  Compare("COPY copied FROM STDIN (FORMAT csv)",
          "1,one,1.5,2024-01-01 00:00:00+00,\"{a,b}\"\n2,\"q\"\"x\",,,\n3,\"two\nlines\",3,,\n");
  Compare("COPY copied (word, id) FROM STDIN (FORMAT csv, HEADER, DELIMITER ';')",
          "word;id\n\"a;b\";1\n;2\n\"\";3\n");
  Compare("COPY copied (id, word) FROM STDIN (FORMAT csv, QUOTE '''', ESCAPE '\\')",
          "1,'it\\'s'\n'2','\\\\'\n");
  Compare("COPY copied (id, word) FROM STDIN (FORMAT csv, NULL 'x', FORCE_NULL (word))",
          "1,\"x\"\n2,x\n3,y\n");
  Compare("COPY copied (id, word) FROM STDIN (FORMAT csv, FORCE_NOT_NULL (word))", "1,\n2,\"\"\n");
}

TEST(CopyFromTest, ManyRowsComeThroughOnce) {
  std::string data;
  for (int i = 0; i < 50'000; i++)
    data += fmt::format("{}\tw{}\t{}\t\\N\t\\N\n", i, i % 1000, i % 999);
  World& world = World::Get();
  world.Empty();
  Client reference(world.reference_url()), sluice(world.cluster().Url());
  EXPECT_EQ(Copy(reference, "COPY copied FROM STDIN", data, 8192).tag, "COPY 50000");
  EXPECT_EQ(Copy(sluice, "COPY copied FROM STDIN", data, 8192),
            (Outcome{"COPY 50000", "", "", ""}));
  const char* sums = "SELECT count(*), sum(id), sum(amount), count(DISTINCT word) FROM copied";
  EXPECT_EQ(reference.Query(sums).Text(true), sluice.Query(sums).Text(true));
  EXPECT_EQ(Client(world.cluster().ShardUrl(2))
                .Query("SELECT count(*) FROM copied WHERE id % 4 <> 2")
                .Text(true),
            Client(world.cluster().ShardUrl(2)).Query("SELECT 0::bigint AS count").Text(true));
}

TEST(CopyFromTest, RowsThatWhereLeavesOut) {
  Compare("COPY copied (id, word) FROM STDIN WHERE id % 2 = 0 AND word <> 'b'",
          "1\ta\n2\tb\n4\tc\n6\td\n");
  Compare("COPY copied (id, word) FROM STDIN WHERE nosuch = 1", "1\ta\n");
}

TEST(CopyFromTest, BadLinesAreToldAndNothingIsKept) {
  Compare("COPY copied (id, word) FROM STDIN", "1\ta\nx\tb\n3\tc\n");
  Compare("COPY copied (id, amount) FROM STDIN", "1\t1\n2\t2\n3\tbad\n4\t4\n5\t5\n");
  Compare("COPY copied (word, id) FROM STDIN", "a\t1\nb\nc\t3\n");
  Compare("COPY copied (id, word) FROM STDIN", "1\ta\n2\n3\tc\n");
  Compare("COPY copied (id, word) FROM STDIN", "1\ta\n2\tb\textra\n3\tc\n");
  Compare("COPY copied (id, word) FROM STDIN", "1\ta\n2\tmuch too long a word\n3\tc\n");
  Compare("COPY copied (id, amount) FROM STDIN", "1\t1\n2\t2\n3\t5000\n4\t4\n");
  Compare("COPY copied (id, word) FROM STDIN", "1\ta\n2\tb\n1\tc\n");
  Compare("COPY copied (id, word) FROM STDIN (FORMAT csv)",
          "1,a\n2,\"two\nlines\"\n3,\"way too long for it\"\n");
  Compare("COPY copied (id, word) FROM STDIN (FORMAT csv)", "1,a\n2,\"open\n");
  Compare("COPY copied (id, word) FROM STDIN", "1\ta\r\n2\tb\n");
}

TEST(CopyFromTest, StatementsThatAreWrong) {
  for (const char* sql :
       {"COPY nosuch FROM STDIN", "COPY copied (nosuch) FROM STDIN",
        "COPY copied (id, id) FROM STDIN", "COPY copied FROM STDIN (FORMAT xml)",
        "COPY copied FROM STDIN (DELIMITER 'ab')",
        "COPY copied FROM STDIN (FORMAT csv, FORCE_NULL (nosuch))",
        "COPY copied FROM STDIN (FORCE_NULL (word))", "COPY copied FROM STDIN (nosuch)"})
    Compare(sql, "");
}

TEST(CopyFromTest, BinaryAsPostgresWritesIt) {
  World& world = World::Get();
  world.Empty();
  Client reference(world.reference_url()), sluice(world.cluster().Url());
  reference.Must(
      "INSERT INTO copied SELECT g, 'w' || g, g / 10.0, '2024-01-01 00:00:00+00', ARRAY['t' || g] "
      "FROM generate_series(1, 300) g");
  PGconn* from = reference.raw();
  PQclear(PQexec(from, "COPY copied TO STDOUT (FORMAT binary)"));
  std::string data;
  char* bytes;
  for (int size; (size = PQgetCopyData(from, &bytes, 0)) > 0; PQfreemem(bytes))
    data.append(bytes, static_cast<size_t>(size));
  while (PGresult* result = PQgetResult(from)) PQclear(result);
  EXPECT_EQ(Copy(sluice, "COPY copied FROM STDIN (FORMAT binary)", data, 1000),
            (Outcome{"COPY 300", "", "", ""}));
  const char* all = "SELECT * FROM copied ORDER BY id";
  EXPECT_EQ(reference.Query(all).Text(true), sluice.Query(all).Text(true));
  Compare("COPY copied FROM STDIN (FORMAT binary)", "no such format at all");
  Compare("COPY copied (id) FROM STDIN (FORMAT binary)", data);
}

// The rows that the client sends are for nobody once it gives up.
TEST(CopyFromTest, AClientThatGivesUpKeepsNothing) {
  World& world = World::Get();
  world.Empty();
  Client sluice(world.cluster().Url());
  PQclear(PQexec(sluice.raw(), "COPY copied (id) FROM STDIN"));
  PQputCopyData(sluice.raw(), "1\n2\n3\n", 6);
  PQputCopyEnd(sluice.raw(), "changed my mind");
  PGresult* result = PQgetResult(sluice.raw());
  EXPECT_EQ(Field(result, PG_DIAG_SQLSTATE), "57014");
  EXPECT_EQ(Field(result, PG_DIAG_MESSAGE_PRIMARY), "COPY from stdin failed: changed my mind");
  PQclear(result);
  while ((result = PQgetResult(sluice.raw())) != nullptr) PQclear(result);
  EXPECT_EQ(sluice.Query("SELECT count(*) FROM copied").Text(true),
            sluice.Query("SELECT 0::bigint AS count").Text(true));
}

}  // namespace
}  // namespace sluice::test
