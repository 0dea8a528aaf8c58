// Plans, as text, over a small catalog held in memory: four shards, tables spread by list, hash and range, one
// spread by a rule only the application knows, one that lies on a single server.
#include "optimizer/planner.h"

#include <gtest/gtest.h>

#include "catalog/catalog.h"
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
           {{"id", kInt8Oid}, {"customer", kInt4Oid}, {"region", kTextOid}, {"amount", kNumericOid},
            {"quantity", kInt4Oid}, {"ts", kTimestamptzOid}, {"price", kFloat8Oid}},
           PartitionStrategy::kList, "(id % 4)", kInt8Oid, 4000000, [](int i, PartitionBound* bound) {
             bound->list = {std::to_string(i)};
           });
    Spread("items", {{"order_id", kInt8Oid}, {"product", kInt4Oid}, {"qty", kInt4Oid}},
           PartitionStrategy::kList, "(order_id % 4)", kInt8Oid, 400000, [](int i, PartitionBound* bound) {
             bound->list = {std::to_string(i)};
           });
    Spread("events", {{"day", kDateOid}, {"kind", kTextOid}, {"n", kInt4Oid}}, PartitionStrategy::kRange,
           "day", kDateOid, 100000, [](int i, PartitionBound* bound) {
             bound->from = {{0, fmt::format("2024-0{}-01", i * 2 + 1)}};
             bound->to = {{0, fmt::format("2024-0{}-01", i * 2 + 3)}};
           });
    Spread("accounts", {{"id", kInt4Oid}, {"name", kTextOid}, {"balance", kInt8Oid}},
           PartitionStrategy::kHash, "id", kInt4Oid, 10000, [](int i, PartitionBound* bound) {
             bound->modulus = 4;
             bound->remainder = i;
           });
    Relation& loose = Add("loose", {{"a", kInt4Oid}, {"b", kTextOid}}, RelationKind::kInheritsParent);
    for (int i = 0; i < 2; i++) Leaf(loose, fmt::format("loose_{}", i), i, 500);
    Relation& small = Add("products", {{"id", kInt4Oid}, {"label", kTextOid}}, RelationKind::kForeignTable);
    small.server = 20001;
    small.row_estimate = 100;
    Relation& notes = Add("notes", {{"product", kInt4Oid}, {"note", kTextOid}}, RelationKind::kForeignTable);
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
    for (int i = 0; i < 4; i++) bound(i, &Leaf(parent, fmt::format("{}_{}", name, i + 1), i, rows / 4).bound);
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

// Prints the plans of the queries in the file named by SLUICE_PLAN_QUERIES, one a line: for those who change
// the planner and review what changes.
TEST_F(PlannerTest, PrintsPlansOnDemand) {
  const char* path = getenv("SLUICE_PLAN_QUERIES");
  if (path == nullptr) GTEST_SKIP() << "SLUICE_PLAN_QUERIES is not set";
  FILE* file = fopen(path, "r");
  ASSERT_NE(file, nullptr);
  char line[4096];
  while (fgets(line, sizeof line, file) != nullptr) {
    std::string sql(line);
    while (!sql.empty() && sql.back() == '\n') sql.pop_back();
    if (sql.empty() || sql[0] == '#') continue;
    printf("=== %s", sql.c_str());
    try {
      printf("%s\n", PlanOf(sql).c_str());
    } catch (const QueryError& e) {
      printf("\n  %s: %s\n\n", SqlStateText(e.error.state).c_str(), e.error.message.c_str());
    }
  }
  fclose(file);
}

}  // namespace
}  // namespace sluice
