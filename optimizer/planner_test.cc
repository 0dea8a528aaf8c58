// Plans, as text, over a small catalog held in memory: four shards, tables spread by list, hash and
// range, one spread by a rule only the application knows, one that lies on a single server.
#include "optimizer/planner.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "catalog/catalog.h"
#include "common/bytes.h"
#include "common/error.h"
#include "optimizer/plan_text.h"
#include "parser/analyze.h"
#include "types/collation.h"
#include "types/kernel.h"

namespace sluice {
namespace {

class FakeCatalog {
 public:
  FakeCatalog() {
    LoadBuiltinCatalog();
    for (int i = 1; i <= 4; i++) {
      Server server{};
      server.oid = static_cast<Oid>(20000 + i);
      server.name = fmt::format("s{}", i);
      server.wrapper = "postgres_fdw";
      catalog.servers[server.oid] = server;
    }
    // The standard workload's table, spread by a partition expression.
    Spread("orders",
           {{"id", kInt8Oid},
            {"customer", kInt4Oid},
            {"region", kTextOid},
            {"amount", kNumericOid},
            {"quantity", kInt4Oid},
            {"ts", kTimestamptzOid},
            {"price", kFloat8Oid}},
           PartitionStrategy::kList, "(id % 4)", kInt8Oid, 4000000,
           [](int i, PartitionBound* bound) { bound->list = {std::to_string(i)}; });
    Spread("items", {{"order_id", kInt8Oid}, {"product", kInt4Oid}, {"qty", kInt4Oid}},
           PartitionStrategy::kList, "(order_id % 4)", kInt8Oid, 400000,
           [](int i, PartitionBound* bound) { bound->list = {std::to_string(i)}; });
    Spread("events", {{"day", kDateOid}, {"kind", kTextOid}, {"n", kInt4Oid}},
           PartitionStrategy::kRange, "day", kDateOid, 100000, [](int i, PartitionBound* bound) {
             bound->from = {{0, fmt::format("2024-0{}-01", i * 2 + 1)}};
             bound->to = {{0, fmt::format("2024-0{}-01", i * 2 + 3)}};
           });
    Spread("accounts", {{"id", kInt4Oid}, {"name", kTextOid}, {"balance", kInt8Oid}},
           PartitionStrategy::kHash, "id", kInt4Oid, 10000, [](int i, PartitionBound* bound) {
             bound->modulus = 4;
             bound->remainder = i;
           });
    Relation& loose =
        Add("loose", {{"a", kInt4Oid}, {"b", kTextOid}}, RelationKind::kInheritsParent);
    for (int i = 0; i < 2; i++) Leaf(loose, fmt::format("loose_{}", i), i, 500);
    Relation& regions =
        Add("regions", {{"name", kTextOid}, {"head", kInt4Oid}}, RelationKind::kReplicated);
    regions.distribution = Distribution::kReplicated;
    for (int i = 0; i < 4; i++) Leaf(regions, fmt::format("regions_{}", i + 1), i, 20);
    Relation& small =
        Add("products", {{"id", kInt4Oid}, {"label", kTextOid}}, RelationKind::kForeignTable);
    small.server = 20001;
    small.row_estimate = 100;
    Relation& notes =
        Add("notes", {{"product", kInt4Oid}, {"note", kTextOid}}, RelationKind::kForeignTable);
    notes.server = 20001;
    notes.row_estimate = 300;
  }

  Catalog catalog;

 private:
  using Columns = std::vector<std::pair<std::string, Oid>>;

  Relation& Add(const std::string& name, const Columns& columns, RelationKind kind) {
    Relation relation{};
    relation.oid = catalog.next_oid++;
    relation.schema = "public";
    relation.name = name;
    relation.kind = kind;
    for (const auto& [column, type] : columns) {
      ColumnInfo info;
      info.name = column;
      info.type = type;
      info.collation = type == kTextOid ? kDefaultCollationOid : kInvalidOid;
      if (column == "customer") info.distinct = 100000;
      if (column == "region") info.distinct = 8;
      relation.columns.push_back(info);
    }
    return catalog.relations[relation.oid] = relation;
  }

  Relation& Leaf(Relation& parent, const std::string& name, int server, double rows) {
    Relation leaf = parent;
    leaf.oid = catalog.next_oid++;
    leaf.name = name;
    leaf.kind = RelationKind::kForeignTable;
    leaf.children.clear();
    leaf.key = {};
    leaf.server = static_cast<Oid>(20001 + server);
    leaf.parent = parent.oid;
    leaf.row_estimate = rows;
    leaf.options["table_name"] = parent.name;
    parent.children.push_back(leaf.oid);
    return catalog.relations[leaf.oid] = leaf;
  }

  void Spread(const std::string& name, const Columns& columns, PartitionStrategy strategy,
              const std::string& key, Oid key_type, double rows,
              const std::function<void(int, PartitionBound*)>& bound) {
    Relation& parent = Add(name, columns, RelationKind::kPartitioned);
    parent.key.strategy = strategy;
    parent.key.expressions = {key};
    parent.key.types = {key_type};
    parent.row_estimate = rows;
    for (int i = 0; i < 4; i++)
      bound(i, &Leaf(parent, fmt::format("{}_{}", name, i + 1), i, rows / 4).bound);
  }
};

class PlannerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    RegisterCollation({kDefaultCollationOid, CollationProvider::kC, "C", ""});
  }

  std::string PlanOf(const std::string& sql, bool verbose = true) {
    ParsedSql parsed = ParseSql(sql);
    Arena arena;
    std::vector<Oid> types;
    SessionSettings session;
    AnalyzeContext context{&fake_.catalog, &session, {"public"}, "me", "db", &arena, &types};
    const Query* query = AnalyzeSelect(parsed.statements().at(0), context);
    PlanRequest request{&fake_.catalog, &session, &settings_, &arena, params_, {}, true};
    return "\n" + PlanTreeText(*PlanQuery(*query, request), verbose);
  }

  FakeCatalog fake_;
  PlannerSettings settings_;
  std::vector<PlanRequest::Param> params_;
};

// The scans of one Append or merge differ in server and table only: the first stands for all.
std::string Compact(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  std::string line;
  size_t skip_indent = std::string::npos, last_scan = std::string::npos;
  int count = 0;
  auto flush = [&] {
    if (count > 1) result += std::string(last_scan, ' ') + fmt::format("    ({} scans)\n", count);
    count = 0;
    last_scan = skip_indent = std::string::npos;
  };
  while (std::getline(lines, line)) {
    size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos) continue;
    bool scan = line.compare(indent, 16, "->  Foreign Scan") == 0;
    if (skip_indent != std::string::npos && indent > skip_indent)
      continue;  // inside a skipped scan
    if (scan && last_scan == indent) {
      count++;
      skip_indent = indent;
      continue;
    }
    if (last_scan != std::string::npos && indent <= last_scan) flush();
    skip_indent = std::string::npos;
    if (scan) {
      last_scan = indent;
      count = 1;
    }
    std::string_view rest = std::string_view(line).substr(indent);
    if (rest.starts_with("Output:") || rest.starts_with("Server:")) continue;
    result += line + "\n";
  }
  flush();
  return result;
}

struct Case {
  std::string settings, sql, plan;
};

std::string CasesPath() {
  std::string path = __FILE__;
  return path.substr(0, path.rfind('/')) + "/planner_test.plans";
}

// "-- settings" lines set what follows; a statement's lines up to ';', then its plan up to an empty
// line.
std::vector<Case> ReadCases() {
  std::ifstream file(CasesPath());
  std::vector<Case> cases;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    Case c;
    if (line.starts_with("-- ")) {
      c.settings = line.substr(3);
      std::getline(file, line);
    }
    c.sql = line.substr(0, line.rfind(';'));
    while (std::getline(file, line) && !line.empty()) c.plan += line + "\n";
    cases.push_back(c);
  }
  return cases;
}

// The file holds what was reviewed. SLUICE_WRITE_PLANS=1 writes it anew, for review with git diff.
TEST_F(PlannerTest, PlansAreTheReviewedOnes) {
  std::vector<Case> cases = ReadCases();
  ASSERT_GT(cases.size(), 50u);
  std::string written =
      "# A statement and its plan; (n scans): the others differ in server and table only. \"-- \" "
      "names the\n"
      "# push-downs that are off (or serial). Reviewed by hand: see planner_test.cc for how to "
      "write it anew.\n";
  for (const Case& c : cases) {
    settings_ = PlannerSettings();
    std::istringstream names(c.settings);
    for (std::string name; names >> name;) {
      if (name == "filter")
        settings_.enable_pushdown_filter = false;
      else if (name == "join")
        settings_.enable_pushdown_join = false;
      else if (name == "aggregate")
        settings_.enable_pushdown_aggregate = false;
      else if (name == "distinct")
        settings_.enable_pushdown_distinct = false;
      else if (name == "sort")
        settings_.enable_pushdown_sort = false;
      else if (name == "limit")
        settings_.enable_pushdown_limit = false;
      else if (name == "serial")
        settings_.max_parallel_workers_per_gather = 0;
      else
        FAIL() << "unknown setting " << name;
    }
    std::string plan;
    try {
      plan = Compact(PlanOf(c.sql));
    } catch (const QueryError& e) {
      plan = SqlStateText(e.error.state) + ": " + e.error.message + "\n";
    }
    EXPECT_EQ(plan, c.plan) << c.sql;
    written += (c.settings.empty() ? "\n" : "\n-- " + c.settings + "\n") + c.sql + ";\n" + plan;
  }
  if (getenv("SLUICE_WRITE_PLANS") != nullptr) std::ofstream(CasesPath()) << written;
}

// The rows go on as slices of one queue; an Append that claims whole children has none.
TEST_F(PlannerTest, AnAppendThatPassesThroughNeverClaimsWholePlans) {
  settings_.claim_whole = true;
  std::string plan = PlanOf("SELECT id FROM orders");
  EXPECT_NE(plan.find("Pass-Through: true"), std::string::npos) << plan;
  EXPECT_EQ(plan.find("Claim:"), std::string::npos) << plan;
  plan = PlanOf("SELECT sum(price) FROM orders");
  EXPECT_NE(plan.find("Claim: whole plans"), std::string::npos) << plan;
}

TEST_F(PlannerTest, BoundParametersPruneAndLimit) {
  int64_t id = 7;
  char bytes[8];
  StoreBig(bytes, id);
  params_ = {{kInt8Oid, false, std::string_view(bytes, 8)}};
  std::string plan = Compact(PlanOf("SELECT amount FROM orders WHERE id = $1"));
  EXPECT_NE(plan.find("WHERE (r1.id = $1::bigint)"), std::string::npos) << plan;
  EXPECT_EQ(plan.find("Append"), std::string::npos) << plan;
  plan = Compact(PlanOf("SELECT id FROM orders ORDER BY id LIMIT $1"));
  EXPECT_NE(plan.find("LIMIT 7"), std::string::npos) << plan;
  params_ = {{kInt8Oid, true, {}}};
  plan = Compact(PlanOf("SELECT id FROM orders ORDER BY id LIMIT $1"));
  EXPECT_EQ(plan.find("LIMIT 7"), std::string::npos) << plan;
}

}  // namespace
}  // namespace sluice
