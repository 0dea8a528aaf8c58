// The store, edges and their cursors, over views that filter and project.
#include "stream/view_graph.h"

#include <gtest/gtest.h>

#include "stream/testing.h"

namespace sluice::testing {
namespace {

constexpr std::nullopt_t kNull = std::nullopt;

TEST(ViewGraphTest, AViewFollowsItsTable) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4", "s text"}, {0});
  h.CreateView("m", "SELECT id, v * 2 AS w, s FROM t WHERE v > 1 OR v IS NULL");
  h.Insert("t", {{"1", "1", "a"}, {"2", "2", "b"}, {"3", kNull, kNull}});
  h.Commit();
  h.Expect("m", {{"2", "4", "b"}, {"3", kNull, kNull}});
  h.Update("t", {"1", "1", "a"}, {"1", "5", "aa"});
  h.Delete("t", {"3", kNull, kNull});
  h.Commit();
  h.Expect("m", {{"2", "4", "b"}, {"1", "10", "aa"}});
  h.Truncate("t");
  h.Commit();
  h.Expect("m", {});
  h.Check();
}

TEST(ViewGraphTest, AKeylessTableIsABag) {
  ViewHarness h;
  h.AddTable("t", {"v int4"}, {});
  h.CreateView("m", "SELECT v FROM t");
  h.Insert("t", {{"1"}, {"1"}, {kNull}, {"2"}});
  h.Commit();
  h.Expect("m", {{"1"}, {"1"}, {kNull}, {"2"}});
  h.Delete("t", {"1"});
  h.Update("t", {kNull}, {"7"});
  h.Commit();
  h.Expect("m", {{"1"}, {"7"}, {"2"}});
}

TEST(ViewGraphTest, AnAbortedEpochLeavesNothingBehind) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.CreateView("m", "SELECT v FROM t");
  h.Insert("t", {{"1", "1"}});
  h.epoch().Put("lsn", "5");
  h.Commit();
  h.Insert("t", {{"2", "2"}});
  h.epoch().Put("lsn", "6");
  h.Rollback();
  h.Expect("m", {{"1"}});
  EXPECT_EQ(h.store().Snapshot()->Get("lsn"), "5");
  h.Insert("t", {{"2", "3"}});
  h.Commit();
  h.Expect("m", {{"1"}, {"3"}});
  h.Reopen();
  h.Insert("t", {{"3", "4"}});
  h.Commit();
  h.Expect("m", {{"1"}, {"3"}, {"4"}});
}

TEST(ViewGraphTest, AViewThatShowsATableHasNoRowsOfItsOwn) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4", "s text"}, {0}, false);
  h.AddView("m", "SELECT id, v AS w, s FROM t", FirstRows::kCheapest);
  h.AddView("n", "SELECT * FROM m", FirstRows::kCheapest);
  h.AddView("f", "SELECT w, s FROM n WHERE w > 1", FirstRows::kCheapest);
  h.AddView("other", "SELECT v, id, s FROM t", FirstRows::kCheapest);  // in another order
  h.InsertPiece("t", {{"1", "1", "a"}, {"2", "2", kNull}}, 1);
  h.InsertPiece("t", {{"3", "3", "c"}}, 0);
  h.Commit();
  Oid t = h.OidOf("t");
  EXPECT_EQ(h.epoch().Relation(h.OidOf("m"))->storage, t);
  EXPECT_EQ(h.epoch().Relation(h.OidOf("n"))->storage, t);
  EXPECT_EQ(h.epoch().Relation(h.OidOf("f"))->storage, kInvalidOid);
  EXPECT_EQ(h.epoch().Relation(h.OidOf("other"))->storage, kInvalidOid);
  EXPECT_EQ(h.epoch().Relation(h.OidOf("n"))->state, RelationState::kCaughtUp);
  EXPECT_THROW(h.Stored("n"), QueryError);
  h.SetComplete("t");
  h.Update("t", {"3", "3", "c"}, {"4", "0", "d"}, 0);
  h.Commit();
  EXPECT_EQ(h.epoch().Relation(h.OidOf("n"))->state, RelationState::kCreated);
  h.Expect("n", {{"1", "1", "a"}, {"2", "2", kNull}, {"4", "0", "d"}});
  h.Expect("f", {{"2", kNull}});
  h.Reopen();
  h.Delete("t", {"1", "1", "a"}, 1);
  h.Insert("t", {{"7", "7", "g"}}, 1);
  h.Commit();
  h.Expect("m", {{"2", "2", kNull}, {"4", "0", "d"}, {"7", "7", "g"}});
  h.Expect("f", {{"2", kNull}, {"7", "g"}});
  h.Check();
  // Made when there are rows already, it is there at once; the rows stay when it goes.
  h.CreateView("late", "SELECT * FROM t", false, FirstRows::kCheapest);
  h.Expect("late", {{"2", "2", kNull}, {"4", "0", "d"}, {"7", "7", "g"}});
  h.DropView("late");
  h.DropView("f");
  h.DropView("n");
  h.Commit();
  h.Insert("t", {{"8", "8", "h"}});
  h.Commit();
  EXPECT_EQ(h.Stored("m").size(), 4u);
  h.Check();
}

TEST(ViewGraphTest, IndexesAndSubscriptionsOfAViewThatShowsATable) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0}, false);
  h.AddView("m", "SELECT * FROM t", FirstRows::kCheapest);
  h.InsertPiece("t", {{"1", "10"}, {"2", "20"}});
  h.SetComplete("t");
  h.Commit();
  Oid m = h.OidOf("m");
  StoredIndex index{.oid = 990, .columns = {1}};
  h.epoch().SetIndexes(m, {&index, 1});
  EXPECT_FALSE(h.epoch().BuildIndexes(100));
  h.epoch().KeepChanges(m, 1);
  h.Commit();
  h.Update("t", {"1", "10"}, {"1", "11"});
  h.InsertPiece("t", {{"3", "30"}});
  h.Delete("t", {"2", "20"});
  h.Commit();
  auto find = [&](int v) {
    std::unique_ptr<ViewSnapshot> snapshot = h.store().Snapshot();
    std::vector<std::string_view> columns = {"id"};
    std::unique_ptr<RowSource> rows = snapshot->Scan(m, columns, 990);
    Column value{kInt4Oid, Physical::kInt4, 0, nullptr, &v};
    RowSource::Condition condition{"v", RowSource::Comparison::kEqual, value};
    rows->Restrict({&condition, 1});
    Batch batch;
    rows->Next(&batch);
    return batch.rows == 0 ? -1 : batch.columns[0].At<int32_t>(0);
  };
  EXPECT_EQ(find(11), 1);
  EXPECT_EQ(find(30), 3);
  EXPECT_EQ(find(10), -1);
  EXPECT_EQ(find(20), -1);
  std::vector<int64_t> weights;
  ChangePlace place;
  std::unique_ptr<ViewSnapshot> snapshot = h.store().Snapshot();
  EXPECT_FALSE(snapshot->ReadChanges(
      m, 1 << 20, &place,
      [&](uint64_t, int64_t weight, std::string_view) { weights.push_back(weight); }));
  EXPECT_EQ(weights, (std::vector<int64_t>{-1, 1, -1, 1}));
}

// Entries of a view's own tables: its rows and its operators' groups.
size_t GroupsStored(ViewHarness* h, const std::string& view) {
  return h->epoch().Relation(h->OidOf(view))->rows;
}

TEST(ViewGraphTest, GroupsAreHeldUntilAllRowsAreIn) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "k int4", "v int4"}, {0}, false);
  h.AddView("m", "SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k", FirstRows::kCheapest);
  h.AddView("g", "SELECT count(*) AS n, sum(v) AS s FROM t", FirstRows::kCheapest);
  h.AddView("d", "SELECT DISTINCT n FROM m", FirstRows::kCheapest);
  h.AddView("extreme", "SELECT max(v) AS v FROM t", FirstRows::kCheapest);  // is not held
  h.Commit();
  auto piece = [&](int from, uint32_t shard) {
    TextRows rows;
    for (int i = from; i < from + 100; i++)
      rows.push_back({std::to_string(i), std::to_string(i % 7), "1"});
    h.InsertPiece("t", rows, shard);
    h.Commit();
  };
  piece(0, 0);
  piece(100, 1);
  EXPECT_EQ(GroupsStored(&h, "m"), 0u);
  h.Update("t", {"150", "3", "1"}, {"150", "100", "5"}, 1);
  h.Delete("t", {"7", "0", "1"}, 0);
  h.Commit();
  EXPECT_EQ(GroupsStored(&h, "m"), 0u);
  EXPECT_EQ(h.epoch().Relation(h.OidOf("m"))->state, RelationState::kCaughtUp);
  h.SetComplete("t");
  h.Commit();
  EXPECT_EQ(GroupsStored(&h, "m"), 8u);
  h.Build("extreme");
  EXPECT_EQ(h.Stored("g"), (TextRows{{"199", "203"}}));
  h.Check("complete");
  h.Reopen();
  h.Delete("t", {"150", "100", "5"}, 1);
  h.Commit();
  EXPECT_EQ(GroupsStored(&h, "m"), 7u);
  h.Check("later");
}

TEST(ViewGraphTest, HeldGroupsAreReadAgainAfterACrash) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "k int4"}, {0}, false);
  h.AddView("m", "SELECT k, count(*) AS n FROM t GROUP BY k", FirstRows::kCheapest);
  h.AddView("g", "SELECT count(*) AS n FROM t", FirstRows::kCheapest);
  h.InsertPiece("t", {{"1", "1"}, {"2", "1"}}, 0);
  h.Commit();
  h.Reopen();
  EXPECT_FALSE(h.epoch().Edges(h.OidOf("m"))[0].at_end);
  h.InsertPiece("t", {{"3", "2"}}, 0);
  h.Commit();
  h.SetComplete("t");
  h.Commit();
  EXPECT_THROW(h.Stored("m"), QueryError);
  h.Build("m");
  h.Build("g");
  h.Expect("m", {{"1", "2"}, {"2", "1"}});
  h.Expect("g", {{"3"}});
  h.Check();
}

TEST(ViewGraphTest, TooManyGroupsAreNotHeld) {
  ViewHarness h;
  h.graph().SetHeldBytesMax(64 << 10);
  h.AddTable("t", {"id int4", "k int4"}, {0}, false);
  h.AddView("m", "SELECT k, count(*) AS n FROM t GROUP BY k", FirstRows::kCheapest);
  h.Commit();
  for (int piece = 0; piece < 3; piece++) {
    TextRows rows;
    for (int i = piece * 1000; i < piece * 1000 + 1000; i++)
      rows.push_back({std::to_string(i), std::to_string(i)});
    h.InsertPiece("t", rows, 0);
    h.Commit();
  }
  EXPECT_FALSE(h.epoch().Edges(h.OidOf("m"))[0].at_end);
  h.SetComplete("t");
  h.Commit();
  h.Build("m");
  EXPECT_EQ(h.Stored("m").size(), 3000u);
  h.Check();
}

TEST(ViewGraphTest, ChangesOfWhatWasNotDeliveredYetDoNotReachTheView) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  for (int i = 0; i < 100; i++) h.Insert("t", {{std::to_string(i), "0"}});
  h.Commit();
  h.CreateView("m", "SELECT id, v FROM t", false);
  EXPECT_EQ(h.epoch().Backfill(h.OidOf("m"), h.OidOf("t"), 50), 50u);
  h.Update("t", {"10", "0"}, {"10", "1"});
  h.Update("t", {"90", "0"}, {"90", "1"});
  h.Update("t", {"20", "0"}, {"95000", "0"});  // leaves the part that was delivered
  h.Update("t", {"91", "0"}, {"-1", "0"});     // enters it
  h.Commit();
  EXPECT_THROW(h.Stored("m"), QueryError);  // still being created
  h.Build("m", 7);
  EXPECT_EQ(h.Stored("m").size(), 100u);
  h.Check();
}

TEST(ViewGraphTest, AViewOnAViewIsBuiltWhileBothGrow) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  for (int i = 0; i < 500; i++)
    h.Insert("t", {{std::to_string(i), std::to_string(i % 7)}}, static_cast<uint32_t>(i % 4));
  h.Commit();
  h.CreateView("a", "SELECT id, v FROM t WHERE v > 0", false);
  h.CreateView("b", "SELECT id, v + 1 AS w FROM a WHERE v > 1", false);
  h.CreateView("c", "SELECT w FROM b", false);
  Oid a = h.OidOf("a"), b = h.OidOf("b"), t = h.OidOf("t");
  // Made over an empty view: what comes, comes as changes.
  EXPECT_TRUE(h.epoch().Edges(b)[0].at_end);
  for (int step = 0; step < 4; step++) {
    h.epoch().Backfill(a, t, 60);
    h.Insert("t", {{std::to_string(1000 + step), "3"}});
    h.Delete("t", {std::to_string(step * 4), std::to_string(step * 4 % 7)});
    h.Commit();
  }
  EXPECT_EQ(h.epoch().Relation(a)->state, RelationState::kCreating);
  EXPECT_EQ(h.epoch().Relation(b)->state, RelationState::kCaughtUp);
  h.CreateView("d", "SELECT id FROM a", false);
  h.Build("d", 10);
  EXPECT_EQ(h.epoch().Relation(h.OidOf("d"))->state, RelationState::kCaughtUp);
  h.Build("a");
  EXPECT_EQ(h.epoch().Relation(b)->state, RelationState::kCreated);
  h.Commit();
  h.Check();
  h.DropView("d");
  h.Commit();
  h.Check();
}

TEST(ViewGraphTest, AnErrorOnARowIsKeptUntilTheRowIsGone) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.CreateView("m", "SELECT id, 10 / v AS q FROM t");
  h.CreateView("fine", "SELECT id FROM t");
  h.CreateView("above", "SELECT id FROM m");
  h.Insert("t", {{"1", "5"}, {"2", "0"}, {"3", "0"}, {"4", "2"}});
  h.Commit();
  h.Check();
  EXPECT_THROW(h.Stored("m"), QueryError);
  EXPECT_THROW(h.Stored("above"), QueryError);
  EXPECT_EQ(h.Stored("fine").size(), 4u);
  h.Delete("t", {"2", "0"});
  h.Commit();
  EXPECT_THROW(h.Stored("m"), QueryError);
  h.Update("t", {"3", "0"}, {"3", "1"});
  h.Commit();
  h.Expect("m", {{"1", "2"}, {"3", "10"}, {"4", "5"}});
  h.Check();
}

TEST(ViewGraphTest, LongKeysAndValuesAreStoredWhole) {
  ViewHarness h;
  h.AddTable("t", {"k text", "v int4"}, {0});
  h.AddTable("loose", {"k text"}, {});
  h.CreateView("m", "SELECT k, v FROM t");
  h.CreateView("l", "SELECT k FROM loose");
  std::string base(2000, 'x');
  for (int i = 0; i < 20; i++) {
    h.Insert("t", {{base + std::to_string(i), std::to_string(i)}});
    h.Insert("loose", {{base + std::to_string(i % 3)}});
  }
  h.Commit();
  h.Update("t", {base + "3", "3"}, {base + "3", "33"});
  h.Delete("t", {base + "4", "4"});
  h.Delete("loose", {base + "1"});
  h.Commit();
  EXPECT_EQ(h.Stored("m").size(), 19u);
  EXPECT_EQ(h.Stored("l").size(), 19u);
  h.Check();
}

TEST(ViewGraphTest, AContradictionStopsTheEpochAndNamesTheSource) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.Insert("t", {{"1", "1"}});
  h.Commit();
  EXPECT_THROW(h.Insert("t", {{"1", "2"}}), ViewFailure);
  h.Rollback();
  EXPECT_THROW(h.Delete("t", {"9", "9"}), ViewFailure);
  h.Rollback();
  h.Update("t", {"1", "1"}, {"1", "3"});
  h.Commit();
}

TEST(ViewGraphTest, AKeyIsFoundOnEveryShard) {
  ViewHarness h;
  h.AddTable("t", {"id int8", "g int4", "s text"}, {0});
  h.CreateView("copy", "SELECT s, id FROM t");
  h.CreateView("sums", "SELECT g, count(*) AS n FROM t GROUP BY g");
  h.CreateView("odd", "SELECT s FROM t");  // does not show its key
  for (int i = 0; i < 3000; i++)
    h.Insert("t", {{std::to_string(i % 1000), std::to_string(i % 7), "x"}},
             static_cast<uint32_t>(5 + i / 1000 * 10));
  h.Commit();
  auto count = [&](const std::string& view, std::string_view column, int32_t value) {
    auto snapshot = h.store().Snapshot();
    std::string_view columns[] = {column};
    auto rows = snapshot->Scan(h.OidOf(view), columns);
    Column equal{kInt4Oid, Physical::kInt4, 0, nullptr, &value};
    RowSource::Condition equality{column, RowSource::Comparison::kEqual, equal};
    rows->Restrict({&equality, 1});
    size_t found = 0;
    for (int round = 0; round < 2; round++, rows->Rescan()) {
      found = 0;
      Batch batch;
      for (rows->Next(&batch); batch.rows > 0; rows->Next(&batch)) found += batch.rows;
    }
    return found;
  };
  EXPECT_EQ(count("copy", "id", 77), 3u);
  EXPECT_EQ(count("copy", "id", 999), 3u);
  EXPECT_EQ(count("copy", "id", 5000), 0u);
  EXPECT_EQ(count("sums", "g", 3), 1u);
  EXPECT_EQ(count("sums", "n", 3), 7u);  // no key column: all rows
}

TEST(ViewGraphTest, WhatChangesByItselfIsRefused) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  EXPECT_THROW(h.AddView("m", "SELECT id, random() AS r FROM t"), QueryError);
  EXPECT_THROW(h.AddView("m", "SELECT id, now() AS r FROM t"), QueryError);
  EXPECT_THROW(h.AddView("m", "SELECT id, current_date AS r FROM t"), QueryError);
}

TEST(ViewGraphTest, RowsThatTieForTheFirstRankComeTogether) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "g int4", "v int4"}, {0});
  h.CreateView("m",
               "SELECT id, g FROM (SELECT id, g, rank() OVER (PARTITION BY g ORDER BY v DESC) AS r "
               "FROM t) x WHERE r <= 1");
  h.Insert("t", {{"1", "1", "5"}, {"2", "1", "9"}, {"3", "1", "9"}, {"4", "2", "1"}});
  h.Commit();
  h.Expect("m", {{"2", "1"}, {"3", "1"}, {"4", "2"}});
  h.Insert("t", {{"5", "1", "10"}, {"6", "1", "10"}});
  h.Commit();
  h.Expect("m", {{"4", "2"}, {"5", "1"}, {"6", "1"}});
  h.Delete("t", {"5", "1", "10"});
  h.Delete("t", {"6", "1", "10"});
  h.Commit();
  h.Expect("m", {{"2", "1"}, {"3", "1"}, {"4", "2"}});
}

TEST(ViewGraphTest, AFilterOnLagLooksAtRowsAfterTheFunctionDid) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.CreateView("m",
               "SELECT id, p FROM (SELECT id, lag(v) OVER (ORDER BY id) AS p FROM t) x WHERE p > 2 "
               "AND id > 2");
  h.Insert("t", {{"1", "9"}, {"2", "3"}, {"3", "1"}, {"4", "7"}});
  h.Commit();
  h.Expect("m", {{"3", "3"}});  // with the filter below, row 3 would be the first and have no lag
  h.Delete("t", {"2", "3"});
  h.Commit();
  h.Expect("m", {{"3", "9"}});
}

TEST(ViewGraphTest, ChangesAreKeptForSubscribersUntilTheyAreOld) {
  ViewHarness h;
  h.AddTable("t", {"id int4"}, {0});
  h.CreateView("m", "SELECT id FROM t");
  Oid m = h.OidOf("m");
  h.Insert("t", {{"1"}});
  h.Commit();
  constexpr int64_t kLongAgoUs = 1'000'000, kFarUs = int64_t{1} << 60;
  auto read = [&](uint64_t from) {
    std::vector<int64_t> weights;
    ChangePlace place{from, 0};
    // A byte at a time: nothing comes twice.
    auto snapshot = h.store().Snapshot();
    while (snapshot->ReadChanges(m, 1, &place, [&](uint64_t, int64_t weight, std::string_view) {
      weights.push_back(weight);
    })) {
    }
    return weights;
  };
  EXPECT_FALSE(h.store().Snapshot()->ChangesKeptAfter(m));
  h.epoch().KeepChanges(m, kFarUs);
  uint64_t begin = h.epoch().number();
  h.Commit();
  EXPECT_EQ(h.store().Snapshot()->ChangesKeptAfter(m), begin);
  h.Insert("t", {{"2"}, {"3"}});
  h.Commit();
  h.Reopen();
  h.Delete("t", {"2"});
  h.epoch().ForgetChanges(kLongAgoUs);  // nothing is that old
  h.Commit();
  EXPECT_EQ(read(begin + 1), (std::vector<int64_t>{1, 1, -1}));
  EXPECT_EQ(read(begin + 2), (std::vector<int64_t>{-1}));
  h.epoch().ForgetChanges(kFarUs - 1);  // but wanted
  h.Commit();
  EXPECT_EQ(h.store().Snapshot()->ChangesKeptAfter(m), begin + 2);
  EXPECT_TRUE(read(begin + 1).empty());
  h.epoch().ForgetChanges(kFarUs + 1);
  h.Commit();
  EXPECT_FALSE(h.store().Snapshot()->ChangesKeptAfter(m));
  h.epoch().KeepChanges(m, kFarUs);
  h.Commit();
  h.DropView("m");
  h.Commit();
  EXPECT_FALSE(h.store().Snapshot()->ChangesKeptAfter(m));
}

TEST(ViewGraphTest, WhatNoOperatorMaintainsIsRefused) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  for (const char* sql :
       {"SELECT t.id FROM t JOIN t x ON t.id = x.id + (SELECT max(v) FROM t)",
        "SELECT id FROM t ORDER BY id LIMIT (SELECT max(v) FROM t)",
        "SELECT v, count(*) AS n, (SELECT max(id) FROM t) AS m FROM t GROUP BY ROLLUP (v)",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n "
        "FROM r"}) {
    SCOPED_TRACE(sql);
    try {
      h.AddView("m", sql);
      ADD_FAILURE() << "was not refused";
      h.Rollback();
    } catch (const QueryError& e) {
      EXPECT_EQ(SqlStateText(e.error.state), "0A000") << e.error.message;
    }
  }
  h.Insert("t", {{"1", "1"}});
  h.Commit();
}

}  // namespace
}  // namespace sluice::testing
