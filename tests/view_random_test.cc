// Random tables, a random graph of views over them, random changes from several clients on the
// shards and through Sluice; while views come and go and every kind of process, and the shards, are
// killed. At random moments, and in the end, every created view is what its query gives
// (sluice.verify), and the total of the transfers is what it was.
//
// SLUICE_SEED repeats a run's decisions (not its timing), SLUICE_VIEW_SECONDS is its length.
#include <random>

#include "tests/live_view_for_test.h"

namespace sluice::test {
namespace {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int Below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  bool OneIn(int n) { return Below(n) == 0; }
  template <typename T>
  const T& Of(const std::vector<T>& values) {
    return values[static_cast<size_t>(Below(static_cast<int>(values.size())))];
  }

 private:
  std::mt19937 engine_;
};

// What a view can be made over: columns are called a, b, … and have one of these types.
struct Shape {
  std::string name;
  std::vector<char> types;  // i int, n numeric, t text

  std::vector<std::string> Columns(char type) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < types.size(); i++)
      if (types[i] == type) names.push_back(std::string(1, static_cast<char>('a' + i)));
    return names;
  }
  std::vector<std::string> Columns() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < types.size(); i++)
      names.push_back(std::string(1, static_cast<char>('a' + i)));
    return names;
  }
};

struct ViewQuery {
  std::string sql;
  std::vector<char> types;
};

// Every relation has an int column a; all that it makes keeps that.
class QueryMaker {
 public:
  QueryMaker(Random* random, std::vector<Shape> relations)
      : random_(random), relations_(std::move(relations)) {}

  ViewQuery Make() {
    const Shape& r = random_->Of(relations_);
    const Shape& s = random_->Of(relations_);
    switch (random_->Below(18)) {
      case 0:
      case 1:
        return Projection(r);
      case 2:
      case 3:
        return Groups(r);
      case 4:
      case 5:
        return Join(r, s);
      case 6:
        return SetOperation(r, s);
      case 7:
        return Exists(r, s);
      case 8:
        return {
            fmt::format("SELECT DISTINCT {} AS a, {} AS b FROM {}", Int(r), Any(r, 't'), r.name),
            {'i', 't'}};
      case 9:
        return {fmt::format("SELECT count(*)::int AS a, sum({})::numeric AS b, max({}) AS c, "
                            "count(DISTINCT {})::int AS d FROM {}",
                            Any(r, 'n'), Any(r, 't'), Int(r), r.name),
                {'i', 'n', 't', 'i'}};
      case 10:
        return TopN(r);
      case 11:
        return Window(r);
      case 12:
        return DistinctOn(r);
      case 13:
        return Lists(r);
      case 14:
        return Correlated(r, s);
      case 15:
        return Lateral(r, s);
      case 16:
        return {
            fmt::format("SELECT {} AS a, stddev({})::numeric(20, 6) AS b, bool_or({})::text AS c "
                        "FROM {} GROUP BY 1",
                        Int(r), Any(r, 'n'), Condition(r), r.name),
            {'i', 'n', 't'}};
      default:
        return {
            fmt::format("SELECT {0} AS a, {1} AS b FROM {2} WHERE {0} {3} (SELECT {4}({5}) FROM "
                        "{6})",
                        Int(r), Any(r, 't'), r.name, random_->OneIn(2) ? "=" : ">=",
                        random_->OneIn(2) ? "max" : "min", Int(s), s.name),
            {'i', 't'}};
    }
  }

 private:
  std::string Int(const Shape& r, const std::string& alias = "") {
    return alias + random_->Of(r.Columns('i'));
  }
  // A column of the type, or something of that type.
  std::string Any(const Shape& r, char type, const std::string& alias = "") {
    std::vector<std::string> columns = r.Columns(type);
    if (!columns.empty()) return alias + random_->Of(columns);
    if (type == 't') return Int(r, alias) + "::text";
    return Int(r, alias) + (type == 'n' ? "::numeric" : "");
  }
  std::string Condition(const Shape& r, const std::string& alias = "") {
    switch (random_->Below(4)) {
      case 0:
        return fmt::format("{} % {} = 0", Int(r, alias), 2 + random_->Below(3));
      case 1:
        return fmt::format("{} IS NOT NULL", Any(r, 't', alias));
      case 2:
        return fmt::format("{} < {}", Any(r, 'n', alias), random_->Below(40));
      default:
        return fmt::format("({} > {} OR {} IS NULL)", Int(r, alias), random_->Below(20),
                           Any(r, 't', alias));
    }
  }
  ViewQuery Projection(const Shape& r) {
    return {fmt::format("SELECT {} AS a, {} + 1 AS b, coalesce({}, 'none') AS c FROM {} WHERE {}",
                        Int(r), Any(r, 'n'), Any(r, 't'), r.name, Condition(r)),
            {'i', 'n', 't'}};
  }
  ViewQuery Groups(const Shape& r) {
    std::string having = random_->OneIn(3) ? " HAVING count(*) > 1" : "";
    return {
        fmt::format("SELECT {0} AS a, count(*)::int AS b, sum({1})::numeric AS c, min({2}) AS d, "
                    "avg({3})::numeric AS e, count({2}) FILTER (WHERE {4})::int AS f "
                    "FROM {5} GROUP BY {0}{6}",
                    Int(r), Any(r, 'n'), Any(r, 't'), Int(r), Condition(r), r.name, having),
        {'i', 'i', 'n', 't', 'n', 'i'}};
  }
  ViewQuery Join(const Shape& r, const Shape& s) {
    static const std::vector<std::string> kinds = {"JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"};
    return {
        fmt::format("SELECT coalesce(x.{0}, y.{1}) AS a, {2} AS b, {3} AS c FROM {4} x {5} {6} y "
                    "ON x.{0} = y.{1}{7}",
                    random_->Of(r.Columns('i')), random_->Of(s.Columns('i')), Any(r, 'n', "x."),
                    Any(s, 't', "y."), r.name, random_->Of(kinds), s.name,
                    // Few rows meet: the result is to stay small.
                    " AND x." + r.Columns('i')[0] + " % 8 = 0"),
        {'i', 'n', 't'}};
  }
  ViewQuery SetOperation(const Shape& r, const Shape& s) {
    static const std::vector<std::string> kinds = {"UNION",         "UNION ALL", "INTERSECT",
                                                   "INTERSECT ALL", "EXCEPT",    "EXCEPT ALL"};
    return {fmt::format("SELECT {} AS a, {} AS b FROM {} WHERE {} {} SELECT {}, {} FROM {}", Int(r),
                        Any(r, 't'), r.name, Condition(r), random_->Of(kinds), Int(s), Any(s, 't'),
                        s.name),
            {'i', 't'}};
  }
  ViewQuery Exists(const Shape& r, const Shape& s) {
    std::string sql = fmt::format("SELECT x.{} AS a, {} AS b FROM {} x WHERE ",
                                  random_->Of(r.Columns('i')), Any(r, 't', "x."), r.name);
    std::string negated = random_->OneIn(2) ? "NOT " : "";
    if (random_->OneIn(2))
      sql += fmt::format("x.{} {}IN (SELECT y.{} FROM {} y WHERE {})", random_->Of(r.Columns('i')),
                         negated, random_->Of(s.Columns('i')), s.name, Condition(s, "y."));
    else
      sql +=
          fmt::format("{}EXISTS (SELECT FROM {} y WHERE y.{} = x.{} AND {})", negated, s.name,
                      random_->Of(s.Columns('i')), random_->Of(r.Columns('i')), Condition(s, "y."));
    return {sql, {'i', 't'}};
  }
  // All columns order it (by number: a name would be an output column's): nothing is left to
  // choose.
  ViewQuery TopN(const Shape& r) {
    return {fmt::format("SELECT {0} AS a, {1} AS b FROM {2} ORDER BY 2 {3}, 1 LIMIT {4}", Int(r),
                        Any(r, 't'), r.name, random_->OneIn(2) ? "DESC" : "NULLS FIRST",
                        1 + random_->Below(30)),
            {'i', 't'}};
  }

  // Partitions of a few rows, in an order that leaves nothing open.
  ViewQuery Window(const Shape& r) {
    static const std::vector<std::string> functions = {
        "row_number()",   "rank()",   "dense_rank()", "lag(b)", "lead(b, 2)",
        "first_value(b)", "count(b)", "sum(b)",       "max(b)"};
    std::string order = fmt::format("{}, {}", Any(r, 'n'), Any(r, 't'));
    for (const std::string& column : r.Columns()) order += ", " + column;
    return {
        fmt::format(
            "SELECT a, b, ({0} OVER (PARTITION BY a ORDER BY o {1}))::numeric AS c FROM (SELECT "
            "{2} AS a, "
            "{3}::numeric AS b, ROW_NUMBER() OVER (PARTITION BY {2} ORDER BY {4}) AS o FROM {5} "
            "WHERE {6}) x",
            random_->Of(functions), random_->OneIn(2) ? "DESC" : "", Int(r), Any(r, 'n'), order,
            r.name, Condition(r)),
        {'i', 'n', 'n'}};
  }
  ViewQuery DistinctOn(const Shape& r) {
    std::string order = "1, 2 DESC NULLS LAST, 3";
    return {fmt::format("SELECT DISTINCT ON (1) {0} AS a, {1} AS b, {2} AS c FROM {3} ORDER BY {4}",
                        Int(r), Any(r, 'n'), Any(r, 't'), r.name, order),
            {'i', 'n', 't'}};
  }
  ViewQuery Lists(const Shape& r) {
    std::string text = Any(r, 't');
    return {fmt::format("SELECT {0} AS a, string_agg({1}, ',' ORDER BY {1} {2}) AS b, "
                        "array_agg(DISTINCT {3} ORDER BY {3})::text AS c FROM {4} GROUP BY {0}",
                        Int(r), text, random_->OneIn(2) ? "DESC" : "", Any(r, 'n'), r.name),
            {'i', 't', 't'}};
  }
  // A subquery a row: by an equality, or by something else.
  ViewQuery Correlated(const Shape& r, const Shape& s) {
    static const std::vector<std::string> aggregates = {"count(*)::int", "max({})", "sum({})::int"};
    std::string aggregate = random_->Of(aggregates);
    if (size_t at = aggregate.find("{}"); at != std::string::npos)
      aggregate.replace(at, 2, Int(s, "y."));
    return {fmt::format("SELECT {0} AS a, (SELECT {1} FROM {2} y WHERE {3} {4} {5}) AS b FROM {6} "
                        "x WHERE {0} % 5 = 0",
                        Int(r, "x."), aggregate, s.name, Int(s, "y."),
                        random_->OneIn(3) ? "<" : "=", Int(r, "x."), r.name),
            {'i', 'i'}};
  }
  ViewQuery Lateral(const Shape& r, const Shape& s) {
    std::string column = Int(s, "y.");
    return {fmt::format("SELECT {0} AS a, z.b FROM {1} x {2} JOIN LATERAL (SELECT {3} AS b FROM "
                        "{4} y WHERE {5} "
                        "= {0} ORDER BY {3} {6} LIMIT 2) z ON true WHERE {0} % 6 = 1",
                        Int(r, "x."), r.name, random_->OneIn(2) ? "LEFT" : "", column, s.name,
                        Int(s, "y."), random_->OneIn(2) ? "DESC" : ""),
            {'i', 'i'}};
  }

  Random* random_;
  std::vector<Shape> relations_;
};

class RandomViews : public LiveView {
 protected:
  static constexpr int kAccounts = 20;

  void Connect() {
    EXPECT_TRUE(Eventually(
        [&] {
          client_.emplace(cluster_->Url());
          return client_->connected() &&
                 client_->Query("SET statement_timeout = '60s'").sqlstate.empty() &&
                 client_->Query("SET background_ddl = on").sqlstate.empty();
        },
        60));
  }
  // What may go wrong while processes are killed, and says nothing about the views.
  static bool Passes(const std::string& sqlstate) {
    return sqlstate.starts_with("08") || sqlstate.starts_with("57P") || sqlstate == "40001" ||
           sqlstate == "40P01" || sqlstate == "42P01" || sqlstate == "55000" ||
           sqlstate == "42704" || sqlstate == "2BP01";
  }
  Answer Try(const std::string& sql) {
    Answer answer = client_->Query(sql);
    if (PQstatus(client_->raw()) != CONNECTION_OK) {
      Connect();
      answer.sqlstate = "08006";
    }
    if (!answer.sqlstate.empty() && !Passes(answer.sqlstate))
      ADD_FAILURE() << answer.sqlstate << " " << answer.message << " of " << sql;
    return answer;
  }
  void Write(Random random, int shard, const std::vector<Shape>& tables);
  void Transfer(Random random);
  void VerifyAll(bool must);
  void KillSomething(Random* random);

  std::atomic<bool> stop_ = false;
  std::map<std::string, ViewQuery> shapes_;  // views by name
  int verified_ = 0;
};

std::string Literal(Random* random, char type) {
  if (random->OneIn(8)) return "NULL";
  if (type == 'i') return std::to_string(random->Below(40));
  if (type == 'n') return fmt::format("{}.{}", random->Below(60) - 10, random->Below(10));
  return fmt::format("'{}'", std::string(1, static_cast<char>('a' + random->Below(6))));
}

void RandomViews::Write(Random random, int shard, const std::vector<Shape>& tables) {
  std::optional<Client> client;
  while (!stop_) {
    if (!client || !client->connected() || PQstatus(client->raw()) != CONNECTION_OK) {
      client.emplace(cluster_->ShardUrl(shard));
      if (!client->connected()) std::this_thread::sleep_for(100ms);
      continue;
    }
    std::string sql = "BEGIN;";
    for (int n = 1 + random.Below(4); n > 0; n--) {
      const Shape& table = random.Of(tables);
      std::string column = random.Of(table.Columns());
      char type = table.types[static_cast<size_t>(column[0] - 'a')];
      std::string where = fmt::format("{} = {}", random.Of(table.Columns('i')), random.Below(40));
      switch (random.Below(8)) {
        case 0:
        case 1:
        case 2: {
          std::string values;
          for (char t : table.types) values += (values.empty() ? "" : ", ") + Literal(&random, t);
          sql +=
              fmt::format("INSERT INTO {} VALUES ({}) ON CONFLICT DO NOTHING;", table.name, values);
          break;
        }
        case 3:
        case 4:
        case 5:
          sql += fmt::format("UPDATE {} SET {} = {} WHERE {};", table.name, column,
                             Literal(&random, type), where);
          break;
        case 6:
          sql += fmt::format("DELETE FROM {} WHERE {};", table.name, where);
          break;
        default:
          if (random.OneIn(30)) sql += fmt::format("TRUNCATE {};", table.name);
          if (random.OneIn(5)) sql += "SAVEPOINT s; DELETE FROM " + table.name + "; ROLLBACK TO s;";
      }
    }
    client->Query(sql + (random.OneIn(6) ? "ROLLBACK" : "COMMIT"));
    client->Query("ROLLBACK");
    std::this_thread::sleep_for(std::chrono::milliseconds(random.Below(15)));
  }
}

void RandomViews::Transfer(Random random) {
  std::optional<Client> client;
  while (!stop_) {
    if (!client || !client->connected() || PQstatus(client->raw()) != CONNECTION_OK) {
      client.emplace(cluster_->Url());
      if (!client->connected()) std::this_thread::sleep_for(100ms);
      continue;
    }
    int amount = random.Below(50);
    client->Query(fmt::format(
        "BEGIN; UPDATE accounts SET n = n - {0} WHERE id = {1}; UPDATE accounts SET n = n + {0} "
        "WHERE id = {2}; COMMIT",
        amount, random.Below(kAccounts), 1000 + random.Below(kAccounts)));
    client->Query("ROLLBACK");
    std::this_thread::sleep_for(std::chrono::milliseconds(random.Below(10)));
  }
}

void RandomViews::VerifyAll(bool must) {
  for (const auto& [name, query] : shapes_) {
    if (must) {
      Answer wait = client_->Query("WAIT MATERIALIZED VIEW " + name);
      EXPECT_EQ(wait.sqlstate, "") << name << ": " << wait.message << "\n" << query.sql;
    } else {
      Answer job = Try("SELECT state, error FROM sluice.jobs WHERE view = 'public." + name + "'");
      if (!job.rows.empty() && job.rows[0][0] == "failed")
        ADD_FAILURE() << name << " has failed: " << job.rows[0][1].value_or("") << "\n"
                      << query.sql;
      if (!job.sqlstate.empty() || !job.rows.empty()) continue;
    }
    Answer differences = Try(fmt::format("SELECT * FROM sluice.verify('{}')", name));
    if (must) EXPECT_EQ(differences.sqlstate, "") << differences.message;
    if (!differences.sqlstate.empty()) continue;
    verified_++;
    EXPECT_EQ(differences.rows.size(), 0u) << name << " AS " << query.sql << "\n"
                                           << differences.Text(false);
  }
  Answer total = Try("SELECT n FROM total");
  if (total.sqlstate.empty())
    EXPECT_EQ(total.Text(true), fmt::format("[{}] \n", 2 * kAccounts * 1000));
}

void RandomViews::KillSomething(Random* random) {
  static const std::vector<std::string> kinds = {"view worker", "io worker", "client backend",
                                                 "parallel worker"};
  int what = random->Below(7);
  if (what < 4) {
    Answer pid =
        Try(fmt::format("SELECT pid FROM pg_stat_activity WHERE backend_type = '{}' ORDER BY pid",
                        kinds[static_cast<size_t>(what)]));
    if (!pid.rows.empty()) kill(std::stoi(*random->Of(pid.rows)[0]), SIGKILL);
    std::this_thread::sleep_for(100ms);
  } else if (what == 4) {
    pid_t postmaster = cluster_->ServerPid();
    if (postmaster != 0) kill(postmaster, SIGKILL);
    std::string directory = cluster_->directory() + "/sluice";
    EXPECT_TRUE(Eventually(
        [&] {
          return cluster_->RunAsOwner({SluiceBinary(), "start", "-D", directory}) == 0;
        },
        30));
  } else {
    int shard = 1 + random->Below(2);
    cluster_->StopShard(shard, random->OneIn(2) ? "immediate" : "fast");
    std::this_thread::sleep_for(std::chrono::milliseconds(random->Below(500)));
    cluster_->StartShard(shard);
  }
  Connect();
}

TEST_F(RandomViews, AreWhatTheirQueriesGive) {
  unsigned seed = std::random_device()();
  if (const char* given = std::getenv("SLUICE_SEED"))
    seed = static_cast<unsigned>(std::strtoul(given, nullptr, 10));
  int seconds = 20;
  if (const char* given = std::getenv("SLUICE_VIEW_SECONDS")) seconds = atoi(given);
  SCOPED_TRACE(fmt::format("SLUICE_SEED={}", seed));
  Random random(seed);
  Connect();

  // A table with a key, one whose key is two columns, one without.
  std::vector<Shape> tables;
  for (int i = 0; i < 3; i++) {
    Shape table{fmt::format("t{}", i), {'i', 'i'}};
    for (int n = 1 + random.Below(3); n > 0; n--) table.types.push_back("int"[random.Below(3)]);
    std::string columns;
    for (const std::string& column : table.Columns()) {
      char type = table.types[static_cast<size_t>(column[0] - 'a')];
      columns += fmt::format("{}{} {}", columns.empty() ? "" : ", ", column,
                             type == 'i'   ? "int"
                             : type == 'n' ? "numeric"
                                           : "text");
    }
    if (i == 0) columns += ", PRIMARY KEY (a)";
    if (i == 1) columns += ", PRIMARY KEY (b, a)";
    std::string values;
    for (char type : table.types)
      values +=
          std::string(values.empty() ? "" : ", ") + (type == 't' ? "'x'" : "i % 1000000 % 40");
    MakeTable(table.name, columns, i == 2 ? 100 : 40, values);
    if (i == 2) OnShards("ALTER TABLE t2 REPLICA IDENTITY FULL");
    tables.push_back(table);
  }
  MakeTable("accounts", "id int PRIMARY KEY, n int", 0, "i, i");
  for (int shard = 1; shard <= 2; shard++)
    Shard(shard).Must(
        fmt::format("INSERT INTO accounts SELECT {} + i, 1000 FROM "
                    "generate_series(0, {}) i",
                    (shard - 1) * 1000, kAccounts - 1));
  MakeView("total", "SELECT sum(n) AS n FROM accounts");
  client_->Must("WAIT");

  std::vector<std::thread> writers;
  for (int w = 0; w < 3; w++)
    writers.emplace_back(
        [&, w] { Write(Random(seed + 1 + static_cast<unsigned>(w)), w % 2 + 1, tables); });
  writers.emplace_back([&] { Transfer(Random(seed + 100)); });
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  int made = 0;
  while (std::chrono::steady_clock::now() < until && !HasFailure()) {
    int action = random.Below(10);
    if (action < 5 && shapes_.size() < 8) {
      std::vector<Shape> relations = tables;
      for (const auto& [name, query] : shapes_) relations.push_back({name, query.types});
      ViewQuery query = QueryMaker(&random, relations).Make();
      std::string name = fmt::format("v{}", made++);
      Answer created =
          Try(fmt::format("CREATE MATERIALIZED VIEW {}{} AS {}", name,
                          random.OneIn(3) ? " WITH (backfill_rate_limit = 300)" : "", query.sql));
      views_.push_back(name);
      if (created.sqlstate.empty()) shapes_[name] = query;
    } else if (action < 7 && !shapes_.empty()) {
      auto victim = std::next(shapes_.begin(), random.Below(static_cast<int>(shapes_.size())));
      std::string name = victim->first;
      if (random.OneIn(2)) {
        Try("DROP MATERIALIZED VIEW " + name + " CASCADE");
      } else {
        Answer job = Try("SELECT id FROM sluice.jobs WHERE view = 'public." + name + "'");
        if (!job.rows.empty()) Try("CANCEL JOBS " + *job.rows[0][0]);
      }
      Answer left = Try("SELECT matviewname FROM pg_matviews");
      if (left.sqlstate.empty())
        std::erase_if(shapes_, [&](const auto& entry) {
          return std::none_of(left.rows.begin(), left.rows.end(),
                              [&](const auto& row) { return row[0] == entry.first; });
        });
    } else if (action == 7) {
      KillSomething(&random);
    } else {
      VerifyAll(false);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random.Below(200)));
  }
  stop_ = true;
  for (std::thread& writer : writers) writer.join();
  VerifyAll(true);
  EXPECT_GT(verified_, 0);
  printf("%d views made, %d verifications\n", made, verified_);
}

}  // namespace
}  // namespace sluice::test
