#include "catalog/store.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sluice {
namespace {

class Store : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sluice_store_XXXXXX";
    directory_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::unique_ptr<CatalogStore> Open() {
    return CatalogStore::Open(directory_ + "/catalog", true).OrThrow();
  }
  std::string directory_;
};

Catalog Sample() {
  Catalog catalog;
  catalog.next_oid = 20000;
  catalog.schemas = {"app"};
  catalog.servers[16384] = {16384, "shard_1", "", "", "postgres_fdw", {{"host", "/tmp"}}, "me"};
  catalog.user_mappings.push_back({16384, "public", {{"user", "u"}, {"password", "p'\\"}}});
  Relation table;
  table.oid = 16385;
  table.schema = "app";
  table.name = std::string(600, 'n');  // longer than a key of the store may be
  table.kind = RelationKind::kPartitioned;
  ColumnInfo column;
  column.name = "id";
  column.type = kInt8Oid;
  column.not_null = true;
  column.distinct = -0.1;
  column.options = {{"column_name", "Id"}};
  table.columns = {column};
  table.primary_key = {0};
  table.key = {PartitionStrategy::kList, {"(id % 4)"}, {kInt8Oid}, {kInvalidOid}};
  table.children = {16386};
  table.bound.list = {"1", std::nullopt, ""};
  table.bound.from = {{-1, ""}, {0, "7"}};
  table.row_estimate = 1.5e6;
  catalog.relations[16385] = table;
  UserType mood;
  mood.info = {};
  mood.info.oid = 16390;
  mood.info.kind = 'e';
  mood.info.category = 'E';
  mood.schema = "public";
  mood.name = "mood";
  mood.enum_labels = {"sad", "ok"};
  catalog.types[16390] = mood;
  catalog.collations[100] = {100, "pg_catalog", "default", 'c', "en_US.UTF-8", "2.36", true};
  return catalog;
}

TEST_F(Store, KeepsEveryFieldOverReopening) {
  ASSERT_TRUE(Open()->Commit(Sample(), 0).ok());
  auto loaded = Open()->Load();
  EXPECT_EQ(loaded->generation, 1u);
  EXPECT_EQ(loaded->next_oid, 20000u);
  EXPECT_EQ(loaded->schemas, std::vector<std::string>{"app"});
  EXPECT_EQ(loaded->servers.at(16384).options.at("host"), "/tmp");
  EXPECT_EQ(loaded->FindUserMapping(16384, "anyone")->options.at("password"), "p'\\");
  const Relation& table = loaded->relations.at(16385);
  EXPECT_EQ(table.name.size(), 600u);
  EXPECT_EQ(table.kind, RelationKind::kPartitioned);
  EXPECT_EQ(table.columns[0].remote_name(), "Id");
  EXPECT_TRUE(table.columns[0].not_null);
  EXPECT_EQ(table.columns[0].distinct, -0.1);
  EXPECT_EQ(table.key.strategy, PartitionStrategy::kList);
  EXPECT_EQ(table.key.expressions[0], "(id % 4)");
  EXPECT_EQ(table.bound.list[1], std::nullopt);
  EXPECT_EQ(table.bound.list[2], "");
  EXPECT_EQ(table.bound.from[0].infinite, -1);
  EXPECT_EQ(table.bound.from[1].value, "7");
  EXPECT_EQ(table.row_estimate, 1.5e6);
  EXPECT_EQ(loaded->types.at(16390).enum_labels[1], "ok");
  EXPECT_EQ(loaded->collations.at(100).version, "2.36");
  loaded->RegisterObjects();
  EXPECT_EQ(loaded->FindTypeByName("", "mood")->oid, 16390u);
  EXPECT_EQ(loaded->FindTypeByName("pg_catalog", "mood"), nullptr);
}

TEST_F(Store, RefusesACommitThatLostTheRace) {
  auto store = Open();
  uint64_t base = store->Load()->generation;
  ASSERT_TRUE(store->Commit(Sample(), base).ok());
  Status lost = store->Commit(Catalog(), base);
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().state, sqlstate::kSerializationFailure);
  EXPECT_EQ(store->Load()->relations.size(), 1u);
}

TEST_F(Store, DropsWhatIsGone) {
  auto store = Open();
  ASSERT_TRUE(store->Commit(Sample(), 0).ok());
  Catalog smaller = Sample();
  smaller.relations.clear();
  smaller.user_mappings.clear();
  ASSERT_TRUE(store->Commit(smaller, 1).ok());
  auto loaded = store->Load();
  EXPECT_TRUE(loaded->relations.empty());
  EXPECT_TRUE(loaded->user_mappings.empty());
  EXPECT_EQ(loaded->servers.size(), 1u);
}

TEST_F(Store, OpenWithoutCreateNeedsACatalog) {
  auto result = CatalogStore::Open(directory_ + "/none", false);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().state, sqlstate::kIoError);
}

TEST_F(Store, RefusesTextThatIsNoUtf8) {
  Catalog bad = Sample();
  bad.servers[16384].name = "\xff";
  Status status = Open()->Commit(bad, 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().state, sqlstate::kCharacterNotInRepertoire);
}

// Writers that are killed at any moment leave whole generations: the counter in the name of the one
// server always equals the generation it was committed as.
TEST_F(Store, KilledWritersLeaveWholeGenerations) {
  Open();
  uint64_t last = 0;
  for (int round = 0; round < 10; round++) {
    pid_t writer = fork();
    if (writer == 0) {
      auto store = Open();
      for (;;) {
        Catalog next = *store->Load();
        uint64_t base = next.generation;
        next.servers[16384].name = std::to_string(base + 1);
        for (Oid oid = 17000; oid < 17050; oid++)
          next.relations[oid].name = std::to_string(base + 1);
        if (!store->Commit(next, base).ok()) _exit(1);
      }
    }
    usleep(20000 + 3000 * round);
    kill(writer, SIGKILL);
    int status = 0;
    waitpid(writer, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    auto loaded = Open()->Load();
    EXPECT_GE(loaded->generation, last);
    last = loaded->generation;
    if (last == 0) continue;
    EXPECT_EQ(loaded->servers.at(16384).name, std::to_string(last));
    for (const auto& [oid, relation] : loaded->relations)
      EXPECT_EQ(relation.name, std::to_string(last));
  }
  EXPECT_GT(last, 0u);
}

}  // namespace
}  // namespace sluice
