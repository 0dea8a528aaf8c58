#include "catalog/store.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catalog/catalog_json.h"

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
  catalog.schemas["app"] = {16384 + 100, "me", {true, {{"", "U", "", "me"}}}};
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
  table.distribution = Distribution::kHash;
  table.columns[0].identity = 'd';
  table.columns[0].sequence = 16391;
  table.columns[0].comment = "a key";
  Constraint key;
  key.oid = 16392;
  key.name = "n_pkey";
  key.kind = ConstraintKind::kPrimaryKey;
  key.columns = {0};
  key.definition = "PRIMARY KEY (id)";
  key.index = 16393;
  table.constraints = {key};
  Index index;
  index.oid = 16393;
  index.name = "n_pkey";
  index.method = "btree";
  index.columns = {0, -1};
  index.key_columns = 2;
  index.unique = index.primary = true;
  index.definition = "CREATE UNIQUE INDEX n_pkey ON n USING btree (id)";
  table.indexes = {index};
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
  Sequence sequence;
  sequence.oid = 16391;
  sequence.schema = "app";
  sequence.name = "n_id_seq";
  sequence.max = INT64_MAX;
  sequence.min = -5;
  sequence.cycle = true;
  sequence.owned_by = 16385;
  sequence.owned_column = "id";
  catalog.sequences[16391] = sequence;
  Role role;
  role.oid = 16394;
  role.name = "writer";
  role.login = true;
  role.password_verifier = "SCRAM-SHA-256$…";
  role.member_of = {{16395, true, "me"}};
  catalog.roles[16394] = role;
  catalog.extensions["hstore"] = 16396;
  catalog.comments[16385] = "a table";
  catalog.collations[100] = {100, "pg_catalog", "default", 'c', "en_US.UTF-8", "2.36", true};
  return catalog;
}

TEST_F(Store, KeepsEveryFieldOverReopening) {
  ASSERT_TRUE(Open()->Commit(Sample(), 0).ok());
  auto loaded = Open()->Load();
  EXPECT_EQ(loaded->generation, 1u);
  EXPECT_EQ(loaded->next_oid, 20000u);
  EXPECT_EQ(loaded->schemas.size(), 2u);
  EXPECT_EQ(loaded->schemas.at("public").oid, kPublicSchemaOid);
  EXPECT_EQ(loaded->schemas.at("app").acl, (Acl{true, {{"", "U", "", "me"}}}));
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
  EXPECT_EQ(table.distribution, Distribution::kHash);
  EXPECT_EQ(table.columns[0].identity, 'd');
  EXPECT_EQ(table.columns[0].sequence, 16391u);
  EXPECT_EQ(table.columns[0].comment, "a key");
  EXPECT_FALSE(table.acl.set);
  ASSERT_EQ(table.constraints.size(), 1u);
  EXPECT_EQ(table.constraints[0].definition, "PRIMARY KEY (id)");
  EXPECT_EQ(table.constraints[0].kind, ConstraintKind::kPrimaryKey);
  ASSERT_EQ(table.indexes.size(), 1u);
  EXPECT_EQ(table.indexes[0].columns, (std::vector<int>{0, -1}));
  EXPECT_TRUE(table.indexes[0].primary);
  EXPECT_EQ(loaded->sequences.at(16391).max, INT64_MAX);
  EXPECT_EQ(loaded->sequences.at(16391).min, -5);
  EXPECT_EQ(loaded->sequences.at(16391).owned_column, "id");
  EXPECT_EQ(loaded->FindRole("writer")->member_of[0].role, 16395u);
  EXPECT_EQ(loaded->extensions.at("hstore"), 16396u);
  EXPECT_EQ(loaded->comments.at(16385), "a table");
  EXPECT_EQ(loaded->types.at(16390).enum_labels[1], "ok");
  EXPECT_EQ(loaded->collations.at(100).version, "2.36");
  loaded->RegisterObjects();
  EXPECT_EQ(loaded->FindTypeByName("", "mood")->oid, 16390u);
  EXPECT_EQ(loaded->FindTypeByName("pg_catalog", "mood"), nullptr);
}

TEST_F(Store, ReadsTheRecordsOfFormat1) {
  Catalog old = CatalogFromRecords(
      {{"meta", R"({"format":1,"generation":7,"next_oid":20000,"schemas":["app","b"],)"
                R"("settings":{}})"},
       {"relation/0000016385", R"({"schema":"app","name":"t","kind":0,"columns":[]})"}});
  EXPECT_EQ(old.generation, 7u);
  EXPECT_TRUE(old.HasSchema("app"));
  EXPECT_TRUE(old.HasSchema("public"));
  EXPECT_NE(old.schemas.at("app").oid, old.schemas.at("b").oid);
  EXPECT_GT(old.next_oid, old.schemas.at("b").oid);
  EXPECT_FALSE(old.relations.at(16385).is_distributed());
}

TEST(CatalogNames, AreOneSpaceWithoutHiddenTables) {
  LoadBuiltinCatalog();
  Catalog catalog = Sample();
  Relation& table = catalog.relations.at(16385);
  table.name = "n";
  Relation leaf = table;
  leaf.oid = 16386;
  leaf.hidden = true;
  leaf.indexes.clear();
  catalog.relations[16386] = leaf;
  for (bool current : {false, true}) {
    if (current) catalog.MakeCurrent();
    EXPECT_EQ(catalog.FindRelation("app", "n")->oid, 16385u);
    EXPECT_EQ(catalog.FindRelation("app", "n_pkey"), nullptr);
    EXPECT_EQ(catalog.FindIndex("app", "n_pkey").index->oid, 16393u);
    EXPECT_EQ(catalog.FindSequence(std::vector<std::string>{"public", "app"}, "n_id_seq")->oid,
              16391u);
    EXPECT_EQ(catalog.FindSequence("public", "n_id_seq"), nullptr);
  }
  Catalog changed = catalog;  // a copy finds what is changed in it
  changed.relations.at(16385).name = "m";
  EXPECT_EQ(changed.FindRelation("app", "n"), nullptr);
  EXPECT_EQ(changed.FindRelation("app", "m")->oid, 16385u);
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
