// Every statement is analysed here and prepared on a real Postgres: columns' names, types and
// typmods, parameters' types, and errors with their SQLSTATE, message, position and hint have to be
// the same.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "common/arena.h"
#include "parser/analyze.h"
#include "parser/postgres_for_test.h"
#include "types/codec.h"
#include "types/kernel.h"
#include "types/object_name.h"

namespace sluice {
namespace {

// As much as the statements need.
class BuiltinTypeNames : public ObjectNames {
 public:
  std::string NameOf(Oid, Oid object) const override { return FormatTypeName(object); }
  Oid Find(Oid, std::string_view name) const override { return FindType(name)->oid; }
};

const char* const kSchema = R"(
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE t (id int PRIMARY KEY, a int, b bigint, n numeric(10,2), f float8, s text,
  v varchar(20), c char(5), d date, ts timestamp, tz timestamptz(3), iv interval, u uuid, j json,
  jb jsonb, ia int[], ta text[], m mood, bo boolean, by bytea, r real, sm smallint, tm time, o oid,
  nn numeric);
CREATE TABLE w (id int, a int, x text, y numeric, PRIMARY KEY (id, a));
CREATE TABLE "Odd Name" ("Col" int, "select" text);
CREATE VIEW tv AS SELECT id, a + 1 AS a1, s || 'x' AS sx FROM t WHERE a > 0;
CREATE VIEW tvv (k, total) AS SELECT a1, count(*) FROM tv GROUP BY a1;
)";

std::string Describe(PGconn* connection, const std::string& sql) {
  PGresult* prepared = PQprepare(connection, "", sql.c_str(), 0, nullptr);
  std::string text;
  if (PQresultStatus(prepared) != PGRES_COMMAND_OK) {
    auto field = [&](int code) {
      const char* value = PQresultErrorField(prepared, code);
      return std::string(value == nullptr ? "" : value);
    };
    text = fmt::format("{} {} @{} hint [{}] detail [{}]", field(PG_DIAG_SQLSTATE),
                       field(PG_DIAG_MESSAGE_PRIMARY), field(PG_DIAG_STATEMENT_POSITION),
                       field(PG_DIAG_MESSAGE_HINT), field(PG_DIAG_MESSAGE_DETAIL));
    PQclear(prepared);
    return text;
  }
  PQclear(prepared);
  PGresult* described = PQdescribePrepared(connection, "");
  for (int i = 0; i < PQnfields(described); i++)
    text += fmt::format("{} {} {}; ", PQfname(described, i), PQftype(described, i),
                        PQfmod(described, i));
  for (int i = 0; i < PQnparams(described); i++)
    text += fmt::format("${} {}; ", i + 1, PQparamtype(described, i));
  PQclear(described);
  return text;
}

std::string Analyze(const Catalog& catalog, const std::string& sql) {
  SessionSettings settings;
  Arena arena;
  std::vector<Oid> param_types;
  AnalyzeContext context{&catalog,   &settings, {"public"},  "postgres",
                         "postgres", &arena,    &param_types};
  try {
    ParsedSql parsed = ParseSql(sql);
    if (parsed.statements().size() != 1) return "not one statement";
    const Query* query = AnalyzeSelect(parsed.statements()[0], context);
    std::string text;
    for (const Target& target : query->targets)
      if (!target.junk)
        text += fmt::format("{} {} {}; ", target.name, target.expr->type, target.expr->typmod);
    for (size_t i = 0; i < param_types.size(); i++)
      text += fmt::format("${} {}; ", i + 1, param_types[i]);
    return text;
  } catch (const QueryError& e) {
    const Error& error = e.error;
    return fmt::format("{} {} @{} hint [{}] detail [{}]", SqlStateText(error.state), error.message,
                       error.position > 0 ? std::to_string(error.position) : "", error.hint,
                       error.detail);
  }
}

class AnalyzeLikePostgres : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    LoadBuiltinCatalog();
    postgres_ = new TestPostgres;
    postgres_->Rows("SET client_min_messages = error");
    postgres_->Rows(kSchema);
    catalog_ = new Catalog(postgres_->MakeCatalog());
    static const BuiltinTypeNames names;
    object_names = &names;
  }
  static void TearDownTestSuite() {
    delete catalog_;
    delete postgres_;
  }
  // Statements of testdata/`file`, one a line.
  void Compare(const std::string& file) {
    std::ifstream in(std::filesystem::path(__FILE__).parent_path() / "testdata" / file);
    ASSERT_TRUE(in) << file;
    size_t count = 0;
    for (std::string sql; std::getline(in, sql);) {
      if (sql.empty()) continue;
      count++;
      EXPECT_EQ(Analyze(*catalog_, sql), Describe(postgres_->connection(), sql)) << sql;
    }
    EXPECT_GT(count, 0u);
  }

  static TestPostgres* postgres_;
  static Catalog* catalog_;
};
TestPostgres* AnalyzeLikePostgres::postgres_ = nullptr;
Catalog* AnalyzeLikePostgres::catalog_ = nullptr;

TEST_F(AnalyzeLikePostgres, NamesOfColumns) {
  Compare("names_of_columns.sql");
}

TEST_F(AnalyzeLikePostgres, TypesOfOperators) {
  Compare("types_of_operators.sql");
}

TEST_F(AnalyzeLikePostgres, Parameters) {
  Compare("parameters.sql");
}

TEST_F(AnalyzeLikePostgres, FromClauses) {
  Compare("from_clauses.sql");
}

TEST_F(AnalyzeLikePostgres, GroupingOrderingAndSets) {
  Compare("grouping_ordering_and_sets.sql");
}

TEST_F(AnalyzeLikePostgres, RecursionAndGroupingSets) {
  Compare("recursion_and_grouping_sets.sql");
}

TEST_F(AnalyzeLikePostgres, NameErrors) {
  Compare("name_errors.sql");
}

TEST_F(AnalyzeLikePostgres, TypeErrors) {
  Compare("type_errors.sql");
}

TEST_F(AnalyzeLikePostgres, AggregateErrors) {
  Compare("aggregate_errors.sql");
}

TEST_F(AnalyzeLikePostgres, Windows) {
  Compare("windows.sql");
}

TEST_F(AnalyzeLikePostgres, AllSorts) {
  Compare("all_sorts.sql");
}

TEST_F(AnalyzeLikePostgres, SyntaxErrors) {
  Compare("syntax_errors.sql");
}

}  // namespace
}  // namespace sluice
