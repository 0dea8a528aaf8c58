// The clients that people use, run as they are: psql's backslash commands, Python drivers and
// SQLAlchemy's reflection, against a Sluice over two shards. And that the system views have the
// columns that Postgres gives them.
#include <cstdio>
#include <gtest/gtest.h>

#include "tests/harness.h"

namespace sluice::test {
namespace {

struct Output {
  int status = -1;
  std::string text;
};

Output RunShell(const std::string& command) {
  Output output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    output.text.append(buffer, got);
  output.status = pclose(pipe);
  return output;
}

class Clients : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(Cluster::Options{.shards = 1});
    Client(cluster_->ShardUrl(1)).Must("CREATE TABLE outside (id int PRIMARY KEY, at timestamptz)");
    Client client(cluster_->Url());
    client.Must("CREATE TYPE mood AS ENUM ('sad', 'happy')");
    client.Must(
        "CREATE TABLE people (id int8 PRIMARY KEY, name text NOT NULL DEFAULT 'x', born date, "
        "balance numeric(12,2) CHECK (balance > 0), feels mood)");
    client.Must("CREATE TABLE places (id bigserial PRIMARY KEY, name text)");
    client.Must(
        "CREATE TABLE children (parent int8 REFERENCES people, n int, PRIMARY KEY (parent, n))");
    client.Must("COMMENT ON COLUMN people.born IS 'the day'");
    client.Must(
        "INSERT INTO people SELECT i, 'n' || i, date '2000-01-01' + i, i / 4.0, 'happy' "
        "FROM generate_series(1, 20) i");
    client.Must("CALL sluice.attach_table('outside')");
    client.Must("CREATE VIEW rich AS SELECT id, name FROM people WHERE balance > 3");
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }

  static Output Psql(const std::string& command) {
    return RunShell(
        fmt::format("psql -X '{}' -v ON_ERROR_STOP=1 -c '{}'", cluster_->Url(), command));
  }
  static void RunPython(const std::string& script) {
    Output output = RunShell(fmt::format("/usr/bin/python3 {}/tests/clients/{} '{}'",
                                         SourceDirectory(), script, cluster_->Url()));
    EXPECT_EQ(output.status, 0) << output.text;
  }

  static inline Cluster* cluster_ = nullptr;
};

TEST_F(Clients, PsqlsCommandsRun) {
  for (const char* command :
       {"\\d",       "\\dt",        "\\dt+",        "\\d people", "\\d+ people",   "\\d rich",
        "\\d+ rich", "\\dv",        "\\dv+",        "\\di",       "\\ds",          "\\dn",
        "\\dn+",     "\\du",        "\\du+",        "\\dg",       "\\l",           "\\l+",
        "\\df",      "\\df abs",    "\\df+ now",    "\\dT",       "\\dT+",         "\\dT mood",
        "\\dx",      "\\des",       "\\des+",       "\\det",      "\\det+",        "\\dew",
        "\\dew+",    "\\deu",       "\\deu+",       "\\dp",       "\\dm",          "\\dy",
        "\\da",      "\\da count",  "\\db",         "\\db+",      "\\dc",          "\\dC",
        "\\dd",      "\\dD",        "\\ddp",        "\\dE",       "\\dF",          "\\dFd",
        "\\dFp",     "\\dFt",       "\\dl",         "\\dL",       "\\dO",          "\\do",
        "\\dP",      "\\drds",      "\\dRp",        "\\dRs",      "\\dX",          "\\dA",
        "\\dA+",     "\\dconfig",   "\\sv rich",    "\\dAc",      "\\dAf",         "\\dAo",
        "\\dAp",     "\\d outside", "\\d+ outside", "\\z",        "\\dt public.*", "\\d pg_class",
        "\\dS"}) {
    Output output = Psql(command);
    EXPECT_EQ(output.status, 0) << command << "\n" << output.text;
    EXPECT_EQ(output.text.find("ERROR"), std::string::npos) << command << "\n" << output.text;
  }
}

TEST_F(Clients, PsqlShowsATable) {
  std::string text = Psql("\\d people").text;
  for (const char* part :
       {"\"public.people\"", "id      | bigint", "not null | 'x'::text", "numeric(12,2)", "mood",
        "\"people_pkey\" PRIMARY KEY, btree (id)", "people_balance_check"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  text = Psql("\\d+ rich").text;
  EXPECT_NE(text.find("View definition"), std::string::npos) << text;
  text = Psql("\\dT+ mood").text;
  EXPECT_NE(text.find("happy"), std::string::npos) << text;
}

TEST_F(Clients, PsqlCompletesNames) {
  RunPython("psql_completion.py");
}
TEST_F(Clients, Psycopg3) {
  RunPython("with_psycopg.py");
}
TEST_F(Clients, Psycopg2AndSqlalchemy) {
  RunPython("with_sqlalchemy.py");
}
TEST_F(Clients, Asyncpg) {
  RunPython("with_asyncpg.py");
}

// `./dev test` installs these where the machine has npm and a JDK; without them they are not run,
// and that is said.
void RunNode(const std::string& module, const std::string& script, const std::string& url) {
  std::string modules = SourceDirectory() + "/build/clients/node_modules";
  if (access((modules + "/" + module).c_str(), R_OK) != 0)
    GTEST_SKIP() << "NOT RUN: the npm package " << module << " is not in " << modules;
  Output output = RunShell(
      fmt::format("cp {0}/tests/clients/{1} {0}/build/clients/ && node {0}/build/clients/{1} '{2}'",
                  SourceDirectory(), script, url));
  EXPECT_EQ(output.status, 0) << output.text;
}
TEST_F(Clients, NodePostgres) {
  RunNode("pg", "with_node_postgres.mjs", cluster_->Uri());
}
TEST_F(Clients, PostgresJs) {
  RunNode("postgres", "with_postgres_js.mjs", cluster_->Uri());
}
TEST_F(Clients, Jdbc) {
  const char* driver = "/usr/share/java/postgresql.jar";
  if (access(driver, R_OK) != 0 || RunShell("javac -version").status != 0)
    GTEST_SKIP() << "NOT RUN: needs javac and " << driver;
  Output output = RunShell(fmt::format("java -cp {} {}/tests/clients/WithJdbc.java '{}'", driver,
                                       SourceDirectory(), cluster_->Uri()));
  EXPECT_EQ(output.status, 0) << output.text;
}

// Its output is what the shards would give, if they had the table as it is declared here.
TEST_F(Clients, PgDumpTellsTheSchema) {
  Output output = RunShell(fmt::format("pg_dump --schema-only '{}'", cluster_->Url()));
  EXPECT_EQ(output.status, 0) << output.text;
  for (const char* part :
       {"CREATE TABLE public.people", "CREATE VIEW public.rich", "CREATE TYPE public.mood AS ENUM",
        "ADD CONSTRAINT people_pkey PRIMARY KEY (id)",
        "DEFAULT nextval('public.places_id_seq'::regclass)",
        "CREATE SERVER shard1 FOREIGN DATA WRAPPER postgres_fdw",
        "ADD CONSTRAINT children_parent_fkey FOREIGN KEY (parent) REFERENCES public.people(id)"})
    EXPECT_NE(output.text.find(part), std::string::npos) << part << "\n" << output.text;
  for (const char* part : {"FOREIGN DATA WRAPPER lines_fdw;", "sluice."})
    EXPECT_EQ(output.text.find(part), std::string::npos) << part << "\n" << output.text;
}

// As it is: its own initialisation and scripts.
TEST_F(Clients, Pgbench) {
  const std::string pgbench = "/usr/lib/postgresql/15/bin/pgbench";
  Output made = RunShell(fmt::format("{} -i '{}'", pgbench, cluster_->Url()));
  ASSERT_EQ(made.status, 0) << made.text;
  for (const char* mode : {"simple", "extended", "prepared"})
    for (const char* script : {"tpcb-like", "simple-update", "select-only"}) {
      Output run = RunShell(
          fmt::format("{} -n -M {} -b {} -c 4 -t 10 '{}'", pgbench, mode, script, cluster_->Url()));
      EXPECT_EQ(run.status, 0) << run.text;
      EXPECT_NE(run.text.find("actually processed: 40/40"), std::string::npos) << run.text;
    }
  Client client(cluster_->Url());
  std::string deltas = client.Value("SELECT sum(delta) FROM pgbench_history");
  EXPECT_EQ(client.Value("SELECT sum(abalance) FROM pgbench_accounts"), deltas);
  EXPECT_EQ(client.Value("SELECT count(*) FROM pgbench_history"), "240");
}

// Views that are queries here must look as Postgres's do: names, types and order of columns.
TEST_F(Clients, SystemViewsHavePostgresColumns) {
  Client client(cluster_->Url());
  Answer views = client.Must(
      "SELECT n.nspname || '.' || c.relname, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = "
      "c.relnamespace WHERE n.nspname IN ('pg_catalog', 'information_schema') ORDER BY 1");
  int seen = 0;
  for (const auto& view : views.rows) {
    Answer answer = client.Query("SELECT * FROM " + *view[0] + " LIMIT 0");
    if (answer.sqlstate == "0A000") continue;  // not supported, and said so
    ASSERT_EQ(answer.sqlstate, "") << *view[0] << ": " << answer.message;
    Answer columns =
        client.Must("SELECT attname, atttypid FROM pg_attribute WHERE attrelid = " + *view[1] +
                    " AND attnum > 0 ORDER BY attnum");
    ASSERT_EQ(answer.names.size(), columns.rows.size()) << *view[0];
    for (size_t i = 0; i < columns.rows.size(); i++) {
      EXPECT_EQ(answer.names[i], *columns.rows[i][0]) << *view[0];
      EXPECT_EQ(std::to_string(answer.types[i]), *columns.rows[i][1])
          << *view[0] << "." << answer.names[i];
    }
    seen++;
  }
  EXPECT_GT(seen, 80);
}

}  // namespace
}  // namespace sluice::test
