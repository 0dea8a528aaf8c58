// DDL without a server: the catalog before and after, messages, and what is asked of shards,
// answered by fakes.
#include "postmaster/ddl.h"

#include <gtest/gtest.h>

#include "catalog/partition.h"

namespace sluice {
namespace {

RemoteRow Row(std::initializer_list<const char*> values) {
  RemoteRow row;
  for (const char* value : values)
    row.push_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
  return row;
}

// What one fake shard says of a table: (column, type oid, type text).
struct FakeColumn {
  const char* name;
  const char* type;
  const char* text;
};
struct FakeShard {
  std::vector<FakeColumn> columns = {{"id", "20", "bigint"}, {"note", "25", "text"}};
  std::vector<const char*> key = {"id"};
  std::vector<const char*> expression_values;
  const char* locale = "C";
};

class DdlTest : public testing::Test {
 protected:
  DdlTest() : current_(std::make_shared<const Catalog>()) { LoadBuiltinCatalog(); }

  void Run(std::string_view sql) {
    ParsedSql parsed = ParseSql(sql);
    for (const RawStatement& raw : parsed.statements()) {
      DdlContext context{
          current_,
          pending_,
          &settings_,
          {"public"},
          "postgres",
          "db",
          [this](LogLevel, const Error& notice) { notices_.push_back(notice.message); },
          [this](const Catalog& catalog, std::span<const RemoteQuery> queries) {
            return Answer(catalog, queries);
          }};
      context.default_distribution = "none";
      ASSERT_TRUE(RunDdl(raw, context));
      tag_ = context.command_tag;
    }
  }
  Error Fail(std::string_view sql) {
    auto before = current_;
    try {
      Run(sql);
    } catch (const QueryError& failure) {
      EXPECT_EQ(before, current_) << "a failed command must leave the catalog alone";
      return failure.error;
    }
    ADD_FAILURE() << "no error: " << sql;
    return {};
  }
  std::vector<RemoteRows> Answer(const Catalog& catalog, std::span<const RemoteQuery> queries) {
    std::vector<RemoteRows> results;
    for (const RemoteQuery& query : queries) {
      const std::string& name = catalog.servers.at(query.server).name;
      if (!shards_.contains(name))
        Throw(sqlstate::kUnableToEstablishConnection, "could not connect to server \"{}\"", name);
      results.push_back(AnswerOne(shards_.at(name), query.sql));
    }
    return results;
  }
  static RemoteRows AnswerOne(const FakeShard& shard, const std::string& sql) {
    RemoteRows result;
    auto has = [&](const char* text) { return sql.find(text) != std::string::npos; };
    if (has("pg_database")) {
      result.rows.push_back(Row({"c", shard.locale, ""}));
    } else if (has("max_prepared_transactions")) {
      result.rows.push_back(Row({"100"}));
    } else if (has("FROM pg_index")) {
      for (const char* column : shard.key) result.rows.push_back(Row({"orders", column}));
    } else if (has("FROM pg_class")) {
      for (const FakeColumn& column : shard.columns)
        result.rows.push_back(
            Row({"public", "orders",     "r",         "500",   column.name, column.type,
                 "f",      "pg_catalog", column.text, "-1",    column.text, "f",
                 nullptr,  "f",          nullptr,     nullptr, nullptr,     nullptr,
                 nullptr,  nullptr,      "-1",        "0",     "8"}));
    } else if (has("SELECT DISTINCT")) {
      for (const char* value : shard.expression_values) result.rows.push_back(Row({value}));
    }
    return result;
  }
  void MakeServers() {
    Run("CREATE SERVER s2 FOREIGN DATA WRAPPER postgres_fdw; CREATE SERVER s10 FOREIGN DATA "
        "WRAPPER postgres_fdw;"
        "CREATE USER MAPPING FOR PUBLIC SERVER s2; CREATE USER MAPPING FOR PUBLIC SERVER s10");
    shards_ = {{"s2", FakeShard()}, {"s10", FakeShard()}};
  }
  const Relation* Find(std::string_view name) { return current_->FindRelation("public", name); }

  std::shared_ptr<const Catalog> current_;
  bool pending_ = false;
  SessionSettings settings_;
  std::vector<std::string> notices_;
  std::string tag_;
  std::map<std::string, FakeShard> shards_;
};

TEST_F(DdlTest, ServersMappingsAndTheirErrors) {
  Run("CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'a', port '1')");
  EXPECT_EQ(tag_, "CREATE SERVER");
  EXPECT_TRUE(pending_);
  EXPECT_EQ(Fail("CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw").state,
            sqlstate::kDuplicateObject);
  Run("CREATE SERVER IF NOT EXISTS s FOREIGN DATA WRAPPER postgres_fdw");
  EXPECT_EQ(notices_.back(), "server \"s\" already exists, skipping");
  Run("ALTER SERVER s OPTIONS (SET host 'b', DROP port, ADD dbname 'd')");
  EXPECT_EQ(current_->FindServer("s")->options, (Options{{"dbname", "d"}, {"host", "b"}}));
  EXPECT_EQ(Fail("ALTER SERVER s OPTIONS (DROP port)").message, "option \"port\" not found");
  EXPECT_EQ(Fail("CREATE USER MAPPING FOR postgres SERVER t").message,
            "server \"t\" does not exist");
  Run("CREATE USER MAPPING FOR CURRENT_USER SERVER s OPTIONS (password 'x')");
  EXPECT_EQ(
      current_->FindUserMapping(current_->FindServer("s")->oid, "postgres")->options.at("password"),
      "x");
  Run("CREATE ROLE bob; ALTER SERVER s RENAME TO t; ALTER SERVER t OWNER TO bob");
  EXPECT_EQ(current_->FindServer("t")->owner, "bob");
}

TEST_F(DdlTest, ForeignTablesWithPartitions) {
  MakeServers();
  Run("CREATE TABLE t (id bigint PRIMARY KEY, v varchar(5), n numeric(10,2) NOT NULL) PARTITION BY "
      "LIST ((id % 2))");
  Run("CREATE FOREIGN TABLE t1 PARTITION OF t (v NOT NULL) FOR VALUES IN (0) SERVER s2;"
      "ALTER FOREIGN TABLE t1 ALTER COLUMN v OPTIONS (ADD column_name 'V')");
  Run("CREATE FOREIGN TABLE t2 PARTITION OF t FOR VALUES IN (1) SERVER s10 OPTIONS (table_name "
      "'x')");
  const Relation* parent = Find("t");
  EXPECT_EQ(parent->kind, RelationKind::kPartitioned);
  EXPECT_EQ(parent->key.expressions[0], "(id % 2)");
  EXPECT_EQ(parent->key.types[0], kInt8Oid);
  EXPECT_EQ(parent->children.size(), 2u);
  EXPECT_EQ(Find("t1")->columns[1].remote_name(), "V");
  EXPECT_TRUE(Find("t1")->columns[1].not_null);
  EXPECT_EQ(Find("t1")->columns[1].typmod, 9);
  EXPECT_EQ(Find("t2")->remote_table(), "x");
  EXPECT_EQ(Find("t2")->primary_key, std::vector<int>{0});
  Error overlap = Fail("CREATE FOREIGN TABLE t3 PARTITION OF t FOR VALUES IN (1) SERVER s2");
  EXPECT_EQ(overlap.message, "partition \"t3\" would overlap partition \"t2\"");
  EXPECT_EQ(overlap.position, 55);
  Run("ALTER TABLE t DETACH PARTITION t2");
  EXPECT_EQ(Find("t")->children.size(), 1u);
  Run("ALTER TABLE t ATTACH PARTITION t2 DEFAULT");
  EXPECT_TRUE(Find("t2")->bound.is_default);
  Run("ALTER TABLE t ADD COLUMN extra int");
  EXPECT_GE(Find("t2")->FindColumn("extra"), 0);
  EXPECT_EQ(Fail("ALTER FOREIGN TABLE t2 DROP COLUMN v").message,
            "cannot drop inherited column \"v\"");
  EXPECT_EQ(Fail("ALTER TABLE t DROP COLUMN id").state, sqlstate::kInvalidTableDefinition);
  Run("DROP TABLE t");
  EXPECT_TRUE(current_->relations.empty());
}

TEST_F(DdlTest, BoundsAreKeptInTheDefaultFormats) {
  MakeServers();
  settings_.date_order = 2;  // DMY
  Run("CREATE TABLE t (d date) PARTITION BY RANGE (d)");
  Run("CREATE FOREIGN TABLE t1 PARTITION OF t FOR VALUES FROM ('03/02/2024') TO (MAXVALUE) SERVER "
      "s2");
  EXPECT_EQ(Find("t1")->bound.from[0].value, "2024-02-03");
  EXPECT_EQ(Find("t1")->bound.to[0].infinite, 1);
}

TEST_F(DdlTest, PartitionKeysMustBeImmutable) {
  EXPECT_EQ(Fail("CREATE TABLE t (a timestamptz) PARTITION BY LIST ((a::date))").state,
            sqlstate::kInvalidObjectDefinition);
  EXPECT_EQ(Fail("CREATE TABLE t (a int) PARTITION BY LIST ((nope + 1))").state,
            sqlstate::kUndefinedColumn);
}

TEST_F(DdlTest, InheritanceMergesColumnsByName) {
  MakeServers();
  Run("CREATE TABLE p (a int, b text); CREATE FOREIGN TABLE c (b text, x int) INHERITS (p) SERVER "
      "s2");
  EXPECT_EQ(notices_.back(), "moving and merging column \"b\" with inherited definition");
  ASSERT_EQ(Find("c")->columns.size(), 3u);
  EXPECT_EQ(Find("c")->columns[2].name, "x");
  EXPECT_EQ(Fail("CREATE FOREIGN TABLE d (a text) INHERITS (p) SERVER s2").detail,
            "integer versus text");
  Error held = Fail("DROP TABLE p");
  EXPECT_EQ(held.state, sqlstate::kDependentObjectsStillExist);
  EXPECT_EQ(held.detail, "foreign table c depends on table p");
  Run("DROP TABLE p CASCADE");
  EXPECT_EQ(notices_.back(), "drop cascades to foreign table c");
}

TEST_F(DdlTest, ViewsKeepTheMeaningOfTheirNames) {
  MakeServers();
  Run("CREATE SCHEMA app; CREATE FOREIGN TABLE t (id int, v text) SERVER s2");
  Run("CREATE VIEW v (a) AS SELECT id, v FROM t WHERE id IN (SELECT id FROM t x)");
  EXPECT_EQ(Find("v")->columns[0].name, "a");
  EXPECT_EQ(Find("v")->view_sql.find("FROM t"), std::string::npos);
  EXPECT_NE(Find("v")->view_sql.find("public.t"), std::string::npos);
  EXPECT_EQ(Find("v")->view_uses, std::vector<Oid>{Find("t")->oid});
  EXPECT_EQ(Fail("CREATE OR REPLACE VIEW v AS SELECT id AS a FROM t").message,
            "cannot drop columns from view");
  EXPECT_EQ(Fail("CREATE OR REPLACE VIEW v AS SELECT v AS a, v FROM t").message,
            "cannot change data type of view column \"a\" from integer to text");
  EXPECT_EQ(Fail("ALTER TABLE t DROP COLUMN v").state, sqlstate::kDependentObjectsStillExist);
  Run("ALTER TABLE t RENAME TO u");
  EXPECT_NE(Find("v")->view_sql.find("public.u"), std::string::npos) << Find("v")->view_sql;
  EXPECT_EQ(Find("v")->view_sql.find("public.t"), std::string::npos) << Find("v")->view_sql;
  Run("ALTER TABLE u RENAME TO t");
  EXPECT_EQ(Fail("DROP FOREIGN TABLE t").detail, "view v depends on foreign table t");
  EXPECT_EQ(Fail("CREATE OR REPLACE VIEW v AS SELECT a, v FROM v").state,
            sqlstate::kInvalidObjectDefinition);
  Error position = Fail("CREATE VIEW w AS SELECT nope FROM t");
  EXPECT_EQ(position.state, sqlstate::kUndefinedColumn);
  EXPECT_EQ(position.position, 25);
}

TEST_F(DdlTest, DropSaysWhatItIsNot) {
  MakeServers();
  Run("CREATE FOREIGN TABLE t (id int) SERVER s2");
  Error wrong = Fail("DROP VIEW t");
  EXPECT_EQ(wrong.message, "\"t\" is not a view");
  EXPECT_EQ(wrong.hint, "Use DROP FOREIGN TABLE to remove a foreign table.");
  Run("DROP VIEW IF EXISTS nope");
  EXPECT_EQ(notices_.back(), "view \"nope\" does not exist, skipping");
  Run("DROP SERVER s2 CASCADE");
  EXPECT_EQ(notices_.back(), "drop cascades to 2 other objects");
  EXPECT_EQ(Find("t"), nullptr);
}

TEST_F(DdlTest, AttachTakesServersInNaturalOrder) {
  MakeServers();
  Run("CALL sluice.attach_table('orders')");
  const Relation* parent = Find("orders");
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(parent->kind, RelationKind::kInheritsParent);
  EXPECT_EQ(parent->row_estimate, 1000);
  EXPECT_EQ(parent->columns[0].distinct, -1);
  EXPECT_EQ(parent->primary_key, std::vector<int>{0});
  EXPECT_EQ(current_->servers.at(Find("orders_1")->server).name, "s2");
  EXPECT_EQ(current_->servers.at(Find("orders_2")->server).name, "s10");
  Run("CALL sluice.detach_table('orders')");
  EXPECT_TRUE(current_->relations.empty());
}

TEST_F(DdlTest, AttachReportsDifferencesByName) {
  MakeServers();
  shards_["s10"].columns[1] = {"note", "1043", "character varying"};
  Error error = Fail("CALL sluice.attach_table('orders')");
  EXPECT_EQ(error.state, sqlstate::kDatatypeMismatch);
  EXPECT_EQ(error.message,
            "table \"public.orders\" differs between servers: column \"note\" is text on \"s2\" "
            "but character "
            "varying on \"s10\"");
  shards_["s10"].columns.pop_back();
  EXPECT_EQ(Fail("CALL sluice.attach_table('orders')").message,
            "table \"public.orders\" differs between servers: column \"note\" exists on \"s2\" but "
            "not on \"s10\"");
  shards_["s10"] = FakeShard();
  shards_["s10"].key = {};
  EXPECT_EQ(Fail("CALL sluice.attach_table('orders')").message,
            "table \"public.orders\" differs between servers: the primary key is (id) on \"s2\" "
            "but none on \"s10\"");
  shards_["s10"].columns.clear();
  EXPECT_EQ(Fail("CALL sluice.attach_table('orders')").state, sqlstate::kUndefinedTable);
  shards_.erase("s10");
  EXPECT_EQ(Fail("CALL sluice.attach_table('orders')").state,
            sqlstate::kUnableToEstablishConnection);
}

TEST_F(DdlTest, AttachByListFindsTheValuesAndChecksThem) {
  MakeServers();
  shards_["s2"].expression_values = {"2", "0"};
  shards_["s10"].expression_values = {"1", nullptr};
  Run("CALL sluice.attach_table('orders', expression => 'id % 3', rule => 'list')");
  EXPECT_EQ(Find("orders")->key.expressions[0], "(id % 3)");
  using List = std::vector<std::optional<std::string>>;
  EXPECT_EQ(Find("orders_1")->bound.list, (List{"0", "2"}));
  EXPECT_EQ(Find("orders_2")->bound.list, (List{std::nullopt, "1"}));
  Run("CALL sluice.detach_table('orders')");
  shards_["s10"].expression_values = {"2"};
  EXPECT_EQ(
      Fail("CALL sluice.attach_table('orders', expression => 'id % 3', rule => 'list')").detail,
      "Rows with value 2 lie on servers \"s2\" and \"s10\".");
  Run("CALL sluice.attach_table('orders', expression => 'id % 3', rule => 'list 1,2; default')");
  EXPECT_EQ(Find("orders_1")->bound.list, (List{"1", "2"}));
  EXPECT_TRUE(Find("orders_2")->bound.is_default);
}

TEST_F(DdlTest, DefaultCollationsThatDifferCannotOrder) {
  MakeServers();
  Run("CALL sluice.attach_table('orders')");
  EXPECT_EQ(current_->collations.at(kDefaultCollationOid).locale, "C");
  Run("CALL sluice.detach_table('orders')");
  shards_["s10"].locale = "en_US.UTF-8";
  Run("CALL sluice.attach_table('orders')");
  EXPECT_EQ(notices_.back(), "servers \"s2\" and \"s10\" have different default collations");
  EXPECT_NE(current_->collations.at(kDefaultCollationOid).locale.find("differs"),
            std::string::npos);
  Run("DROP SERVER s10 CASCADE");
  EXPECT_EQ(current_->collations.at(kDefaultCollationOid).locale, "C");
}

TEST_F(DdlTest, AServerThatIsDownWhenATableIsMadeIsAWarning) {
  MakeServers();
  shards_.clear();
  Run("CREATE FOREIGN TABLE t (id int) SERVER s2");
  EXPECT_NE(Find("t"), nullptr);
  EXPECT_NE(notices_.back().find("could not read the default collation"), std::string::npos);
  EXPECT_NE(current_->collations.at(kDefaultCollationOid).locale.find("unknown"),
            std::string::npos);
}

TEST_F(DdlTest, LeavesOtherStatementsAlone) {
  ParsedSql parsed = ParseSql("SELECT 1; CALL other.thing()");
  for (const RawStatement& raw : parsed.statements()) {
    DdlContext context{current_, pending_, &settings_, {"public"}, "postgres", "db", {}, {}};
    EXPECT_FALSE(RunDdl(raw, context));
  }
  EXPECT_FALSE(pending_);
}

}  // namespace
}  // namespace sluice
