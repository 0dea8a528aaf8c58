#include "executor/aggregate.h"

#include <gtest/gtest.h>
#include <map>
#include <sched.h>
#include <set>
#include <sys/mount.h>
#include <unistd.h>

#include "common/error.h"
#include "executor/testing.h"

namespace sluice {
namespace {

using testing::Harness;
using testing::kNull;
using testing::Row;
using testing::Rows;
using testing::Sorted;
using testing::Text;

// pg_proc oids.
constexpr Oid kCountStar = 2803, kCountAny = 2147, kSumInt4 = 2108, kSumInt8 = 2107,
              kSumNumeric = 2114, kAvgInt4 = 2101, kAvgNumeric = 2103, kMaxText = 2129,
              kMinInt4 = 2132, kMinNumeric = 2146, kSumFloat8 = 2111, kBoolAnd = 2517,
              kVarPopNumeric = 2723, kStddevSampInt4 = 2713, kStringAggText = 3538,
              kArrayAgg = 2335;

class AggregateTest : public ::testing::Test {
 protected:
  struct CallSpec {
    Oid function;
    std::vector<const Expr*> args;
    Oid result;
    bool distinct = false;
    const Expr* filter = nullptr;
    std::vector<SortKey> order_by = {};
  };

  AggregatePlan* Plan(AggregateMode mode, const std::vector<Oid>& types,
                      const std::vector<const Expr*>& keys, const std::vector<CallSpec>& calls) {
    std::vector<Oid> output;
    for (const Expr* key : keys) output.push_back(key->type);
    std::vector<AggregateCall> made;
    for (size_t i = 0; i < calls.size(); i++) {
      const CallSpec& spec = calls[i];
      AggregateCall call{};
      call.function = spec.function;
      call.args = h.List(spec.args);
      call.result_type = spec.result;
      call.input_type = spec.args.empty() ? kInvalidOid : spec.args[0]->type;
      call.star = spec.args.empty();
      call.distinct = spec.distinct;
      call.filter = spec.filter;
      call.order_by = h.Keys(spec.order_by);
      call.state_column = static_cast<int>(keys.size() + i);
      made.push_back(call);
      output.push_back(mode == AggregateMode::kPartial ? kByteaOid : spec.result);
    }
    auto* plan = h.NewPlan<AggregatePlan>(PlanKind::kAggregate, output, {h.SourcePlan(types)});
    plan->mode = mode;
    plan->group_by = h.List(keys);
    plan->calls = h.arena.CopyArray(made);
    return plan;
  }

  Rows Single(const std::vector<Oid>& types, const Rows& rows, const std::vector<const Expr*>& keys,
              const std::vector<CallSpec>& calls, size_t batch_rows = kBatchRows) {
    auto* plan = Plan(AggregateMode::kSingle, types, keys, calls);
    Aggregate node(*plan, h.state, h.Source(types, rows, batch_rows));
    Rows result = h.Run(node);
    spilled_ = h.statistics[static_cast<size_t>(plan->id)].spilled_bytes;
    return result;
  }

  // Partial over each of `parts` shares of the rows, final over their states.
  Rows TwoSteps(const std::vector<Oid>& types, const Rows& rows,
                const std::vector<const Expr*>& keys, const std::vector<CallSpec>& calls,
                size_t parts) {
    auto* partial = Plan(AggregateMode::kPartial, types, keys, calls);
    std::vector<Oid> state_types;
    for (const OutputColumn& column : partial->output) state_types.push_back(column.type);
    Rows states;
    for (size_t part = 0; part < parts; part++) {
      Rows share;
      for (size_t i = part; i < rows.size(); i += parts) share.push_back(rows[i]);
      Aggregate node(*partial, h.state, h.Source(types, share));
      for (Row& row : h.Run(node)) states.push_back(row);
    }
    std::vector<const Expr*> state_keys;
    for (size_t k = 0; k < keys.size(); k++) {
      state_keys.push_back(h.Input(static_cast<int>(k), keys[k]->type));
    }
    auto* final_plan = Plan(AggregateMode::kFinal, state_types, state_keys, calls);
    Aggregate node(*final_plan, h.state, h.Source(state_types, states));
    return h.Run(node);
  }

  Harness h;
  uint64_t spilled_ = 0;
};

TEST_F(AggregateTest, OverNoRowsAndNoGroupsGivesOneRow) {
  std::vector<CallSpec> calls = {{kCountStar, {}, kInt8Oid},
                                 {kCountAny, {h.Input(0, kInt4Oid)}, kInt8Oid},
                                 {kSumInt4, {h.Input(0, kInt4Oid)}, kInt8Oid},
                                 {kSumInt8ToInt8, {h.Input(1, kInt8Oid)}, kInt8Oid},
                                 {kAvgInt4, {h.Input(0, kInt4Oid)}, kNumericOid},
                                 {kArrayAgg, {h.Input(0, kInt4Oid)}, kInt4ArrayOid}};
  Rows expected = {{"0", "0", kNull, "0", kNull, kNull}};
  EXPECT_EQ(Single({kInt4Oid, kInt8Oid}, {}, {}, calls), expected);
  EXPECT_EQ(TwoSteps({kInt4Oid, kInt8Oid}, {}, {}, calls, 3), expected);
  EXPECT_EQ(Single({kInt4Oid, kInt8Oid}, {}, {h.Input(0, kInt4Oid)}, calls), Rows{});
  EXPECT_EQ(TwoSteps({kInt4Oid, kInt8Oid}, {}, {h.Input(0, kInt4Oid)}, calls, 3), Rows{});
}

TEST_F(AggregateTest, NullsAreIgnoredButCountedByStar) {
  std::vector<Oid> types = {kInt4Oid, kNumericOid, kTextOid, kFloat8Oid, kBoolOid};
  Rows rows = {{"1", "1.50", "b", "0.5", "t"},
               {kNull, kNull, kNull, kNull, kNull},
               {"3", "-0.25", "a", "1e300", "f"},
               {"2", "2.000", "c", "-1e300", "t"}};
  std::vector<CallSpec> calls = {{kCountStar, {}, kInt8Oid},
                                 {kCountAny, {h.Input(0, kInt4Oid)}, kInt8Oid},
                                 {kSumInt4, {h.Input(0, kInt4Oid)}, kInt8Oid},
                                 {kAvgInt4, {h.Input(0, kInt4Oid)}, kNumericOid},
                                 {kMinInt4, {h.Input(0, kInt4Oid)}, kInt4Oid},
                                 {kSumNumeric, {h.Input(1, kNumericOid)}, kNumericOid},
                                 {kAvgNumeric, {h.Input(1, kNumericOid)}, kNumericOid},
                                 {kMinNumeric, {h.Input(1, kNumericOid)}, kNumericOid},
                                 {kMaxText, {h.Input(2, kTextOid)}, kTextOid},
                                 {kSumFloat8, {h.Input(3, kFloat8Oid)}, kFloat8Oid},
                                 {kBoolAnd, {h.Input(4, kBoolOid)}, kBoolOid}};
  // As Postgres 15 prints them; the float sum is exact here.
  Rows expected = {{"4", "3", "6", "2.0000000000000000", "1", "3.250", "1.08333333333333333333",
                    "-0.25", "c", "0.5", "f"}};
  EXPECT_EQ(Text(Single(types, rows, {}, calls)), Text(expected));
  for (size_t parts : {1, 2, 5})
    EXPECT_EQ(Text(TwoSteps(types, rows, {}, calls, parts)), Text(expected));
}

TEST_F(AggregateTest, VarianceFamilyOfOneRowAndOfMany) {
  std::vector<Oid> types = {kInt4Oid, kNumericOid};
  std::vector<CallSpec> calls = {{kStddevSampInt4, {h.Input(0, kInt4Oid)}, kNumericOid},
                                 {kVarPopNumeric, {h.Input(1, kNumericOid)}, kNumericOid}};
  EXPECT_EQ(Text(Single(types, {{"5", "5"}}, {}, calls)), Text({{kNull, "0"}}));
  Rows rows = {{"1", "1.5"}, {"2", "2.5"}, {"4", "4.5"}};
  Rows expected = {{"1.5275252316519467", "1.5555555555555556"}};
  EXPECT_EQ(Text(Single(types, rows, {}, calls)), Text(expected));
  EXPECT_EQ(Text(TwoSteps(types, rows, {}, calls, 2)), Text(expected));
}

TEST_F(AggregateTest, NullIsAGroupAndEqualNumericsAreOne) {
  Rows rows = {{"1.0", "a"}, {"1.00", "b"}, {kNull, "c"}, {"2", "d"}, {kNull, "e"}};
  Rows result = Single({kNumericOid, kTextOid}, rows, {h.Input(0, kNumericOid)},
                       {{kCountStar, {}, kInt8Oid}});
  EXPECT_EQ(Text(Sorted(result)), Text({{kNull, "2"}, {"1.0", "2"}, {"2", "1"}}));
}

TEST_F(AggregateTest, FilterDistinctAndOrderBy) {
  std::vector<Oid> types = {kTextOid, kInt4Oid};
  Rows rows = {{"x", "3"}, {"x", "1"}, {"y", "2"}, {"x", "3"}, {"y", kNull}, {"y", "2"}};
  const Expr* value = h.Input(1, kInt4Oid);
  const Expr* big = h.Call(147, kBoolOid, {value, h.Constant(kInt4Oid, "1")});
  SortKey descending{value, -1, 0, true, true, kInvalidOid};
  std::vector<CallSpec> calls = {{kCountAny, {value}, kInt8Oid, true},
                                 {kCountStar, {}, kInt8Oid, false, big},
                                 {kArrayAgg, {value}, kInt4ArrayOid, false, nullptr, {descending}},
                                 {kArrayAgg, {value}, kInt4ArrayOid, true}};
  Rows result = Single(types, rows, {h.Input(0, kTextOid)}, calls, 2);
  EXPECT_EQ(Text(Sorted(result)),
            Text({{"x", "2", "2", "{3,3,1}", "{1,3}"}, {"y", "1", "2", "{NULL,2,2}", "{2,NULL}"}}));
}

TEST_F(AggregateTest, StringAggLeavesOutTheFirstDelimiter) {
  std::vector<Oid> types = {kTextOid, kTextOid};
  Rows rows = {{"a", ","}, {kNull, "-"}, {"b", ";"}, {"c", kNull}, {"d", "+"}};
  SortKey ascending{h.Input(0, kTextOid), -1, 0, false, false, kInvalidOid};
  std::vector<CallSpec> calls = {{kStringAggText,
                                  {h.Input(0, kTextOid), h.Input(1, kTextOid)},
                                  kTextOid,
                                  false,
                                  nullptr,
                                  {ascending}}};
  EXPECT_EQ(Single(types, rows, {}, calls), (Rows{{"a;bc+d"}}));
  calls[0].order_by = {};
  EXPECT_EQ(TwoSteps(types, rows, {}, calls, 1), (Rows{{"a;bc+d"}}));
}

// Keys of every shape against std::map, with and without spilling, in one step and in two.
class AggregateRandomTest : public AggregateTest {
 protected:
  void Check(const std::vector<Oid>& key_types, int groups, size_t row_count,
             int64_t work_mem_bytes, bool must_spill) {
    uint64_t seed = testing::RandomSeed();
    SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
    testing::Random random(seed);
    std::vector<Oid> types = key_types;
    types.push_back(kInt4Oid);
    types.push_back(kNumericOid);
    int value_column = static_cast<int>(key_types.size());
    struct Expected {
      int64_t count = 0, sum = 0, cents = 0;
      std::set<int> distinct;
    };
    std::map<Row, Expected> expected;
    Rows rows;
    for (size_t i = 0; i < row_count; i++) {
      Row row;
      for (Oid type : key_types) row.push_back(Key(type, random.Below(groups)));
      int value = random.Below(1000), cents = random.Below(100000) - 50000;
      Expected& group = expected[row];
      group.count++;
      group.sum += value;
      group.cents += cents;
      group.distinct.insert(value);
      row.push_back(std::to_string(value));
      row.push_back(Decimal(cents));
      rows.push_back(row);
    }
    Rows expected_rows, expected_two;
    for (auto& [key, group] : expected) {
      Row row = key;
      row.insert(row.end(),
                 {std::to_string(group.count), std::to_string(group.sum), Decimal(group.cents)});
      expected_two.push_back(row);
      row.push_back(std::to_string(group.distinct.size()));
      expected_rows.push_back(row);
    }
    std::vector<const Expr*> keys;
    for (size_t k = 0; k < key_types.size(); k++)
      keys.push_back(h.Input(static_cast<int>(k), key_types[k]));
    std::vector<CallSpec> calls = {
        {kCountStar, {}, kInt8Oid},
        {kSumInt4, {h.Input(value_column, kInt4Oid)}, kInt8Oid},
        {kSumNumeric, {h.Input(value_column + 1, kNumericOid)}, kNumericOid}};
    h.context.work_mem_bytes = work_mem_bytes;
    EXPECT_TRUE(Sorted(TwoSteps(types, rows, keys, calls, 2)) == expected_two);
    calls.push_back({kCountAny, {h.Input(value_column, kInt4Oid)}, kInt8Oid, true});
    EXPECT_TRUE(Sorted(Single(types, rows, keys, calls)) == expected_rows);
    EXPECT_EQ(spilled_ > 0, must_spill);
  }

  static std::string Decimal(int64_t cents) {
    std::string sign = cents < 0 ? "-" : "";
    uint64_t size = static_cast<uint64_t>(cents < 0 ? -cents : cents);
    return fmt::format("{}{}.{:02}", sign, size / 100, size % 100);
  }
  static std::optional<std::string> Key(Oid type, int number) {
    if (number == 7) return kNull;
    switch (type) {
      case kTextOid:
        return std::string(static_cast<size_t>(number % 19), 'k') + std::to_string(number);
      case kFloat8Oid:
        return std::to_string(number) + ".5";
      case kNumericOid:
        return std::to_string(number) + ".25";
      case kBoolOid:
        return number % 2 ? "t" : "f";
      case kInt2Oid:
        return std::to_string(number % 30000);
      default:
        return std::to_string(number);
    }
  }
};

TEST_F(AggregateRandomTest, AnyKeyTypesInMemory) {
  constexpr int64_t kPlenty = 64 << 20;
  std::vector<std::vector<Oid>> key_types = {
      {kInt4Oid},           {kInt8Oid},           {kTextOid},
      {kNumericOid},        {kFloat8Oid},         {kBoolOid},
      {kInt2Oid, kTextOid}, {kInt4Oid, kInt4Oid}, {kInt8Oid, kInt4Oid},
      {kTextOid, kTextOid}, {kInt8Oid, kTextOid}, {kInt2Oid, kInt4Oid, kInt8Oid, kBoolOid}};
  for (auto& types : key_types) {
    for (size_t rows : {size_t{1}, kBatchRows - 1, kBatchRows, kBatchRows + 1, size_t{9000}}) {
      Check(types, 1, rows, kPlenty, false);
      Check(types, 40, rows, kPlenty, false);
    }
  }
  Check({kInt4Oid}, 30000, 60000, kPlenty, false);
  Check({kTextOid}, 30000, 60000, kPlenty, false);
}

TEST_F(AggregateRandomTest, SpillingGivesTheSame) {
  constexpr int64_t kTiny = 64 << 10;
  Check({kInt4Oid}, 30000, 60000, kTiny, true);
  Check({kTextOid}, 30000, 60000, kTiny, true);
  Check({kNumericOid, kTextOid}, 200, 40000, kTiny, true);
  Check({kTextOid}, 20, 20000, kTiny, true);  // only the DISTINCT aggregate's set is too large
}

TEST_F(AggregateTest, ADirectoryThatCannotBeWrittenIsAnError) {
  h.context.work_mem_bytes = 64 << 10;
  h.context.temp_directory = "/nonexistent";
  Rows rows;
  for (int i = 0; i < 100000; i++) rows.push_back({std::to_string(i)});
  EXPECT_THROW(Single({kInt4Oid}, rows, {h.Input(0, kInt4Oid)}, {{kCountStar, {}, kInt8Oid}}),
               QueryError);
}

TEST_F(AggregateTest, AFullDiskIsAnErrorOfItsOwn) {
  // A file system of 128 kB, seen by this process alone.
  char directory[] = "/tmp/full_XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  bool mounted = unshare(CLONE_NEWNS) == 0 &&
                 mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                 mount("none", directory, "tmpfs", 0, "size=128k") == 0;
  if (!mounted) {
    rmdir(directory);
    GTEST_SKIP() << "no right to mount a file system";
  }
  h.context.work_mem_bytes = 64 << 10;
  h.context.temp_directory = directory;
  Rows rows;
  for (int i = 0; i < 100000; i++) rows.push_back({std::to_string(i)});
  std::string state;
  try {
    Single({kInt4Oid}, rows, {h.Input(0, kInt4Oid)}, {{kCountStar, {}, kInt8Oid}});
  } catch (const QueryError& e) {
    state = SqlStateText(e.error.state);
  }
  EXPECT_EQ(state, "53100");
  umount(directory);
  rmdir(directory);
}

TEST_F(AggregateTest, RescanStartsOver) {
  std::vector<Oid> types = {kInt4Oid};
  auto* plan =
      Plan(AggregateMode::kSingle, types, {h.Input(0, kInt4Oid)}, {{kCountStar, {}, kInt8Oid}});
  Aggregate node(*plan, h.state, h.Source(types, {{"1"}, {"1"}, {"2"}}));
  Rows first = h.Run(node);
  node.Rescan();
  EXPECT_EQ(h.Run(node), first);
  EXPECT_EQ(Sorted(first), (Rows{{"1", "2"}, {"2", "1"}}));
}

}  // namespace
}  // namespace sluice
