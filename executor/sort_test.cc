#include "executor/sort.h"

#include <gtest/gtest.h>
#include <map>

#include "executor/distinct.h"
#include "executor/set_op.h"
#include "executor/testing.h"

namespace sluice {
namespace {

using testing::Harness;
using testing::kNull;
using testing::Row;
using testing::Rows;
using testing::Sorted;
using testing::Text;

class SortTest : public ::testing::Test {
 protected:
  static SortKey Key(int target, bool descending = false, bool nulls_first = false) {
    return {nullptr, target, 0, descending, nulls_first, kInvalidOid};
  }
  Rows Sort(const std::vector<Oid>& types, const Rows& rows, std::vector<SortKey> keys,
            std::optional<std::string> bound = kNull) {
    auto* plan = h.NewPlan<SortPlan>(PlanKind::kSort, types, {h.SourcePlan(types)});
    plan->keys = h.Keys(std::move(keys));
    plan->bound = h.Constant(kInt8Oid, bound);
    sluice::Sort node(*plan, h.state, h.Source(types, rows));
    Rows result = h.Run(node);
    node.Rescan();
    EXPECT_TRUE(h.Run(node) == result);
    spilled_ = h.statistics[static_cast<size_t>(plan->id)].spilled_bytes;
    return result;
  }

  Harness h;
  uint64_t spilled_ = 0;
};

TEST_F(SortTest, NullsGoWhereTheyAreAsked) {
  Rows rows = {{"2"}, {kNull}, {"-1"}, {"3"}};
  EXPECT_EQ(Sort({kInt4Oid}, rows, {Key(0)}), (Rows{{"-1"}, {"2"}, {"3"}, {kNull}}));
  EXPECT_EQ(Sort({kInt4Oid}, rows, {Key(0, false, true)}), (Rows{{kNull}, {"-1"}, {"2"}, {"3"}}));
  EXPECT_EQ(Sort({kInt4Oid}, rows, {Key(0, true, true)}), (Rows{{kNull}, {"3"}, {"2"}, {"-1"}}));
  EXPECT_EQ(Sort({kInt4Oid}, rows, {Key(0, true)}), (Rows{{"3"}, {"2"}, {"-1"}, {kNull}}));
}

TEST_F(SortTest, ExtremeValuesAndNullsDoNotMix) {
  Rows rows = {{"9223372036854775807"}, {kNull}, {"-9223372036854775808"}, {"0"}};
  EXPECT_EQ(Sort({kInt8Oid}, rows, {Key(0)}),
            (Rows{{"-9223372036854775808"}, {"0"}, {"9223372036854775807"}, {kNull}}));
  EXPECT_EQ(Sort({kInt8Oid}, rows, {Key(0, true, true)}),
            (Rows{{kNull}, {"9223372036854775807"}, {"0"}, {"-9223372036854775808"}}));
}

TEST_F(SortTest, NumericsOfEveryMagnitude) {
  Rows sorted = {{"-Infinity"},
                 {"-100000000"},
                 {"-10000.5"},
                 {"-10000"},
                 {"-9999.99"},
                 {"-1"},
                 {"-0.00001"},
                 {"0"},
                 {"0.000000012"},
                 {"0.00001"},
                 {"0.5"},
                 {"1"},
                 {"1.0001"},
                 {"9999"},
                 {"10000"},
                 {"123456789012.34"},
                 {"123456789012.35"},
                 {"1e50"},
                 {"Infinity"},
                 {"NaN"},
                 {kNull}};
  sorted[17][0] = "1" + std::string(50, '0');
  Rows rows = sorted;
  std::mt19937 engine(7);
  for (int i = 0; i < 20; i++) {
    std::shuffle(rows.begin(), rows.end(), engine);
    EXPECT_EQ(Text(Sort({kNumericOid}, rows, {Key(0)})), Text(sorted));
    Rows reversed(sorted.rbegin(), sorted.rend());
    EXPECT_EQ(Text(Sort({kNumericOid}, rows, {Key(0, true, true)})), Text(reversed));
  }
}

TEST_F(SortTest, FloatsWithNanAndZeros) {
  Rows rows = {{"NaN"}, {"1"}, {"-Infinity"}, {"Infinity"}, {"0"}, {"-1.5"}};
  EXPECT_EQ(Text(Sort({kFloat8Oid}, rows, {Key(0)})),
            Text({{"-Infinity"}, {"-1.5"}, {"0"}, {"1"}, {"Infinity"}, {"NaN"}}));
}

TEST_F(SortTest, RandomRowsWithAndWithoutSpillAndBound) {
  uint64_t seed = testing::RandomSeed();
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
  testing::Random random(seed);
  for (size_t count :
       {size_t{0}, size_t{1}, kBatchRows - 1, kBatchRows, kBatchRows + 1, size_t{30000}}) {
    Rows rows;
    for (size_t i = 0; i < count; i++) {
      Row row = {kNull, fmt::format("{:06}", i)};
      if (!random.Chance(5)) row[0] = std::string("prefix ") + std::to_string(random.Below(500));
      rows.push_back(row);
    }
    Rows expected = rows;
    // Text descending with NULLs first, then the number: no two rows tie.
    std::sort(expected.begin(), expected.end(), [](const Row& a, const Row& b) {
      if (a[0].has_value() != b[0].has_value()) return !a[0].has_value();
      if (a[0] != b[0]) return a[0] > b[0];
      return a[1] < b[1];
    });
    std::shuffle(rows.begin(), rows.end(), random.engine());
    for (int64_t work_mem : {int64_t{64} << 20, int64_t{64} << 10}) {
      h.context.work_mem_bytes = work_mem;
      EXPECT_TRUE(Sort({kTextOid, kTextOid}, rows, {Key(0, true, true), Key(1)}) == expected);
      EXPECT_EQ(spilled_ > 0, count > 1000 && work_mem < 1 << 20);
      for (size_t bound : {size_t{0}, size_t{1}, size_t{100}, size_t{3000}}) {
        Rows first(expected.begin(),
                   expected.begin() + static_cast<ptrdiff_t>(std::min(bound, count)));
        EXPECT_TRUE(Sort({kTextOid, kTextOid}, rows, {Key(0, true, true), Key(1)},
                         std::to_string(bound)) == first);
      }
    }
  }
}

class DistinctTest : public SortTest {
 protected:
  Rows Distinct(const std::vector<Oid>& types, const Rows& rows, std::vector<int> columns,
                bool sorted, size_t batch_rows = kBatchRows) {
    auto* plan = h.NewPlan<DistinctPlan>(PlanKind::kDistinct, types, {h.SourcePlan(types)});
    plan->columns = h.arena.CopyArray(columns);
    plan->sorted_input = sorted;
    sluice::Distinct node(*plan, h.state, h.Source(types, rows, batch_rows));
    Rows result = h.Run(node);
    spilled_ = h.statistics[static_cast<size_t>(plan->id)].spilled_bytes;
    node.Rescan();
    EXPECT_TRUE(Sorted(h.Run(node)) == Sorted(result));
    return result;
  }
  Rows SetOp(SetOpKind op, bool all, const std::vector<Oid>& types, const Rows& left,
             const Rows& right) {
    auto* plan =
        h.NewPlan<SetOpPlan>(PlanKind::kSetOp, types, {h.SourcePlan(types), h.SourcePlan(types)});
    plan->op = op;
    plan->all = all;
    sluice::SetOp node(*plan, h.state, h.Source(types, left), h.Source(types, right));
    Rows result = h.Run(node);
    spilled_ = h.statistics[static_cast<size_t>(plan->id)].spilled_bytes;
    return result;
  }
};

TEST_F(DistinctTest, EachRowOnceNullsAlike) {
  Rows rows = {{"1", "a"}, {kNull, "a"}, {"1", "a"}, {kNull, "a"}, {"1", kNull}};
  EXPECT_EQ(Distinct({kInt4Oid, kTextOid}, rows, {}, false),
            (Rows{{"1", "a"}, {kNull, "a"}, {"1", kNull}}));
}

TEST_F(DistinctTest, DistinctOnTakesTheFirstRowOfEachRunAcrossBatches) {
  Rows rows = {{"1", "a"},   {"1", "b"},   {"2", "c"}, {"2", "d"},
               {kNull, "e"}, {kNull, "f"}, {"2", "g"}};
  for (size_t batch : {1, 2, 3, 100}) {
    EXPECT_EQ(Distinct({kInt4Oid, kTextOid}, rows, {0}, true, batch),
              (Rows{{"1", "a"}, {"2", "c"}, {kNull, "e"}, {"2", "g"}}));
  }
}

TEST_F(DistinctTest, RandomRowsAgainstAModel) {
  uint64_t seed = testing::RandomSeed();
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
  testing::Random random(seed);
  for (int64_t work_mem : {int64_t{64} << 20, int64_t{64} << 10}) {
    h.context.work_mem_bytes = work_mem;
    for (int different : {1, 50, 20000}) {
      Rows left, right;
      std::map<Row, std::pair<int, int>> counts;
      for (int i = 0; i < 30000; i++) {
        auto value = [&]() -> Row {
          int number = random.Below(different);
          return {std::to_string(number),
                  number % 3 ? Row::value_type("a text of some length") : kNull};
        };
        left.push_back(value());
        counts[left.back()].first++;
        if (i % 2) right.push_back(value());
        if (i % 2) counts[right.back()].second++;
      }
      Rows all_left, intersect, intersect_all, except, except_all;
      for (auto& [row, count] : counts) {
        auto [l, r] = count;
        if (l > 0) all_left.push_back(row);
        if (l > 0 && r > 0) intersect.push_back(row);
        if (l > 0 && r == 0) except.push_back(row);
        for (int i = 0; i < std::min(l, r); i++) intersect_all.push_back(row);
        for (int i = 0; i < l - r; i++) except_all.push_back(row);
      }
      std::vector<Oid> types = {kInt4Oid, kTextOid};
      EXPECT_TRUE(Sorted(Distinct(types, left, {}, false)) == all_left);
      EXPECT_EQ(spilled_ > 0, different > 10000 && work_mem < 1 << 20);
      EXPECT_TRUE(Sorted(SetOp(SetOpKind::kIntersect, false, types, left, right)) == intersect);
      EXPECT_EQ(spilled_ > 0, different > 10000 && work_mem < 1 << 20);
      EXPECT_TRUE(Sorted(SetOp(SetOpKind::kIntersect, true, types, left, right)) == intersect_all);
      EXPECT_TRUE(Sorted(SetOp(SetOpKind::kExcept, false, types, left, right)) == except);
      EXPECT_TRUE(Sorted(SetOp(SetOpKind::kExcept, true, types, left, right)) == except_all);
    }
  }
  EXPECT_EQ(SetOp(SetOpKind::kExcept, false, {kInt4Oid}, {}, {{"1"}}), Rows{});
  EXPECT_EQ(SetOp(SetOpKind::kExcept, true, {kInt4Oid}, {{"1"}, {"1"}}, {}), (Rows{{"1"}, {"1"}}));
}

}  // namespace
}  // namespace sluice
