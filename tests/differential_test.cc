// Every statement of tests/sql/*.sql runs against Sluice over four shards and against one Postgres
// that holds all the rows: column names, types, values, NULLs, order and SQLSTATEs must be the
// same. Each file runs in several modes (push-downs off, no workers, chunks of a few rows, binary
// results). Files called modify_… may write: their tables (w_…) begin with the same rows in each
// mode, and hold the same rows at the end.
#include <filesystem>
#include <gtest/gtest.h>

#include "tests/harness.h"

namespace sluice::test {
namespace {

namespace fs = std::filesystem;

constexpr int kShards = 4;
// A file that starts so is about what runs in Sluice itself: nothing may be completed on a shard.
constexpr std::string_view kHere = "-- here:";

// The cluster and its data, made once for all tests of this program.
class World {
 public:
  static World& Get() {
    static World world;
    return world;
  }

  std::string reference_url() const { return cluster_.ShardUrl(1, "reference"); }
  std::string url() const { return cluster_.Url(); }
  const std::string& tiny_url() const { return tiny_url_; }

  // The rows that files which write begin with.
  void ResetWritten() {
    std::string reset = ReadFile(SourceDirectory() + "/tests/sql/setup/modify_reset.sql");
    Load(reference_url(), reset, 0);
    for (int shard = 1; shard <= kShards; shard++) Load(cluster_.ShardUrl(shard), reset, shard);
  }

 private:
  World() {
    std::string schema = ReadFile(SourceDirectory() + "/tests/sql/setup/schema.sql");
    Client(cluster_.ShardUrl(1)).Must("CREATE DATABASE reference");
    Load(reference_url(), schema, 0);
    for (int shard = 1; shard <= kShards; shard++) Load(cluster_.ShardUrl(shard), schema, shard);
    tiny_url_ = cluster_.StartServer(
        "tiny", {"chunk_size = '4kB'", "chunk_pool_size = '8MB'", "work_mem = '64kB'"});
    for (const auto& url : {cluster_.Url(), tiny_url_}) {
      Client client(url);
      for (const auto& sql :
           SplitStatements(ReadFile(SourceDirectory() + "/tests/sql/setup/attach.sql")))
        client.Must(sql);
    }
  }

  // Shard `shard` keeps its part of the rows; shard 0 is the reference and keeps them all.
  void Load(const std::string& url, const std::string& schema, int shard) {
    Client client(url);
    client.Must(fmt::format("SET sluice.shard = '{}'", shard));
    for (const auto& sql : SplitStatements(schema)) client.Must(sql);
  }

  Cluster cluster_{Cluster::Options{.shards = kShards}};
  std::string tiny_url_;
};

struct Mode {
  const char* name;
  bool tiny = false;
  bool binary = false;
  std::vector<std::string> settings = {};
};

const std::vector<Mode>& Modes() {
  static const std::vector<Mode> modes = {
      {.name = "plain"},
      {.name = "binary", .binary = true},
      {.name = "no_pushdown",
       .settings = {"SET enable_pushdown_filter = off", "SET enable_pushdown_join = off",
                    "SET enable_pushdown_aggregate = off", "SET enable_pushdown_distinct = off",
                    "SET enable_pushdown_sort = off", "SET enable_pushdown_limit = off"}},
      {.name = "serial_no_pushdown",
       .settings = {"SET enable_pushdown_filter = off", "SET enable_pushdown_join = off",
                    "SET enable_pushdown_aggregate = off", "SET enable_pushdown_distinct = off",
                    "SET enable_pushdown_sort = off", "SET enable_pushdown_limit = off",
                    "SET max_parallel_workers_per_gather = 0"}},
      {.name = "tiny_chunks", .tiny = true},
      {.name = "tiny_chunks_no_pushdown",
       .tiny = true,
       .settings = {"SET enable_pushdown_filter = off", "SET enable_pushdown_join = off",
                    "SET enable_pushdown_aggregate = off", "SET enable_pushdown_distinct = off",
                    "SET enable_pushdown_sort = off", "SET enable_pushdown_limit = off"}},
      {.name = "block_ranges",
       .settings = {"SET connections_per_scan = 3", "SET enable_pushdown_aggregate = off",
                    "SET enable_pushdown_sort = off", "SET enable_pushdown_limit = off"}},
  };
  return modes;
}

// ORDER BY outside all parentheses, or a cursor's rows: then the order is part of the answer.
bool IsOrdered(const std::string& sql) {
  if (sql.starts_with("FETCH")) return true;
  int depth = 0;
  for (size_t i = 0; i < sql.size(); i++) {
    if (sql[i] == '(') depth++;
    if (sql[i] == ')') depth--;
    if (depth == 0 && strncasecmp(sql.c_str() + i, "ORDER BY", 8) == 0) return true;
  }
  return false;
}

// Columns of user types have another oid on every server; their names are compared by the values
// alone.
std::string Shape(const Answer& answer) {
  std::string text;
  for (size_t i = 0; i < answer.names.size(); i++)
    text += fmt::format("{}:{}:{} ", answer.names[i],
                        answer.types[i] >= 16384 ? "user" : std::to_string(answer.types[i]),
                        answer.modifiers[i]);
  return text;
}

using Param = std::tuple<std::string, Mode>;

class Differential : public ::testing::Test {
 public:
  Differential(std::string file, Mode mode) : file_(std::move(file)), mode_(std::move(mode)) {}

  void TestBody() override {
    World& world = World::Get();
    Client reference(world.reference_url());
    Client sluice(mode_.tiny ? world.tiny_url() : world.url());
    ASSERT_TRUE(sluice.connected()) << PQerrorMessage(sluice.raw());
    for (const auto& setting : mode_.settings) sluice.Must(setting);
    bool writes = fs::path(file_).stem().string().starts_with("modify_");
    if (writes) world.ResetWritten();
    std::string text = ReadFile(file_);
    bool here = text.starts_with(kHere);
    if (here) sluice.Must("SET enable_completion = off");
    int compared = 0;
    for (const auto& sql : SplitStatements(text)) {
      SCOPED_TRACE(sql);
      Answer expected = mode_.binary ? reference.QueryParams(sql, {}, true) : reference.Query(sql);
      Answer got = mode_.binary ? sluice.QueryParams(sql, {}, true) : sluice.Query(sql);
      bool ordered = IsOrdered(sql);
      if (!got.sqlstate.empty() || !expected.sqlstate.empty())
        EXPECT_EQ(expected.sqlstate, got.sqlstate)
            << "expected: " << expected.message << "\ngot: " << got.message;
      else
        EXPECT_EQ(Shape(expected), Shape(got));
      EXPECT_EQ(expected.Text(ordered), got.Text(ordered));
      EXPECT_EQ(expected.command_tag, got.command_tag);
      if (!sluice.connected()) sluice = Client(mode_.tiny ? world.tiny_url() : world.url());
      compared++;
    }
    if (writes) CompareWritten(reference, sluice);
    EXPECT_GT(compared, 0) << file_ << " holds no statement";
  }

 private:
  static void CompareWritten(Client& reference, Client& sluice) {
    for (const char* table : {"w_accounts", "w_lines", "w_days", "w_words", "w_names"}) {
      std::string sql = fmt::format("SELECT * FROM {}", table);
      EXPECT_EQ(reference.Query(sql).Text(false), sluice.Query(sql).Text(false)) << sql;
    }
  }

  std::string file_;
  Mode mode_;
};

}  // namespace
}  // namespace sluice::test

int main(int argc, char** argv) {
  using namespace sluice::test;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(SourceDirectory() + "/tests/sql"))
    if (entry.path().extension() == ".sql") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  for (const auto& file : files)
    for (const auto& mode : Modes())
      ::testing::RegisterTest(
          "Differential", (fs::path(file).stem().string() + "/" + mode.name).c_str(), nullptr,
          nullptr, __FILE__, __LINE__,
          [file, mode]() -> ::testing::Test* { return new Differential(file, mode); });
  ::testing::InitGoogleTest(&argc, argv);
  if (!GTEST_FLAG_GET(list_tests)) {
    try {
      World::Get();
    } catch (const std::exception& error) {
      fmt::print(stderr, "the cluster for the tests could not be made: {}\n", error.what());
      return 1;
    }
  }
  return RUN_ALL_TESTS();
}
