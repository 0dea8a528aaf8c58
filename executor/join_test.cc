#include <gtest/gtest.h>

#include "common/error.h"
#include "executor/hash_join.h"
#include "executor/nest_loop.h"
#include "executor/testing.h"

namespace sluice {
namespace {

using testing::Harness;
using testing::kNull;
using testing::Row;
using testing::Rows;
using testing::Sorted;
using testing::Text;

constexpr Oid kInt4Lt = 66, kInt4Eq = 65;
constexpr JoinType kTypes[] = {JoinType::kInner, JoinType::kLeft, JoinType::kRight,
                               JoinType::kFull,  JoinType::kSemi, JoinType::kAnti};

// Tables of (int4 key, int4 value, text).
class JoinTest : public ::testing::Test {
 protected:
  static bool OuterOnly(JoinType type) {
    return type == JoinType::kSemi || type == JoinType::kAnti;
  }

  // By the definition: every pair. `smaller`: outer value < inner value must hold too.
  static Rows Model(JoinType type, const Rows& outer, const Rows& inner, bool by_key,
                    bool smaller) {
    Rows result;
    std::vector<bool> inner_matched(inner.size());
    for (const Row& o : outer) {
      bool matched = false;
      for (size_t i = 0; i < inner.size(); i++) {
        if (by_key && (!o[0] || !inner[i][0] || *o[0] != *inner[i][0])) continue;
        if (smaller && (!o[1] || !inner[i][1] || std::stoi(*o[1]) >= std::stoi(*inner[i][1])))
          continue;
        matched = inner_matched[i] = true;
        if (!OuterOnly(type)) result.push_back(Joined(o, inner[i]));
      }
      bool keeps = type == JoinType::kLeft || type == JoinType::kFull;
      if (!matched && keeps) result.push_back(Joined(o, Row(3, kNull)));
      if (OuterOnly(type) && matched == (type == JoinType::kSemi)) result.push_back(o);
    }
    if (type == JoinType::kRight || type == JoinType::kFull) {
      for (size_t i = 0; i < inner.size(); i++) {
        if (!inner_matched[i]) result.push_back(Joined(Row(3, kNull), inner[i]));
      }
    }
    return Sorted(result);
  }
  static Row Joined(Row a, const Row& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  std::vector<Oid> Output(JoinType type) const {
    std::vector<Oid> output = types;
    if (!OuterOnly(type)) output.insert(output.end(), types.begin(), types.end());
    return output;
  }
  const Expr* Smaller() {
    return h.Call(kInt4Lt, kBoolOid, {h.Input(1, kInt4Oid), h.Inner(1, kInt4Oid)});
  }

  Rows Hash(JoinType type, const Rows& outer, const Rows& inner, bool smaller,
            bool null_aware = false, const Expr* outer_key = nullptr) {
    auto* plan = h.NewPlan<HashJoinPlan>(PlanKind::kHashJoin, Output(type),
                                         {h.SourcePlan(types), h.SourcePlan(types)});
    plan->type = type;
    plan->outer_keys = h.List({outer_key ? outer_key : h.Input(0, kInt4Oid)});
    plan->inner_keys = h.List({h.Input(0, kInt4Oid)});
    plan->condition = smaller ? Smaller() : nullptr;
    plan->null_aware = null_aware;
    HashJoin node(*plan, h.state, h.Source(types, outer, outer_batch_), h.Source(types, inner));
    Rows result = Sorted(h.Run(node));
    spilled_ = h.statistics[static_cast<size_t>(plan->id)].spilled_bytes;
    node.Rescan();
    EXPECT_TRUE(Sorted(h.Run(node)) == result);
    return result;
  }
  Rows Nest(JoinType type, const Rows& outer, const Rows& inner, bool by_key, bool smaller) {
    auto* plan = h.NewPlan<NestLoopPlan>(PlanKind::kNestLoop, Output(type),
                                         {h.SourcePlan(types), h.SourcePlan(types)});
    plan->type = type;
    std::vector<const Expr*> conditions;
    if (by_key) {
      conditions.push_back(h.Call(kInt4Eq, kBoolOid, {h.Input(0, kInt4Oid), h.Inner(0, kInt4Oid)}));
    }
    if (smaller) conditions.push_back(Smaller());
    if (!conditions.empty()) {
      plan->condition =
          conditions.size() == 1 ? conditions[0] : h.Make(ExprKind::kAnd, kBoolOid, conditions);
    }
    NestLoop node(*plan, h.state, h.Source(types, outer, outer_batch_), h.Source(types, inner));
    Rows result = Sorted(h.Run(node));
    node.Rescan();
    EXPECT_TRUE(Sorted(h.Run(node)) == result);
    return result;
  }

  static Rows Table(testing::Random* random, size_t count, int keys, const char* name) {
    Rows rows;
    for (size_t i = 0; i < count; i++) {
      Row row = {std::to_string(random->Below(keys)), std::to_string(random->Below(100)),
                 name + std::to_string(i)};
      if (random->Chance(10)) row[0] = kNull;
      if (random->Chance(10)) row[1] = kNull;
      rows.push_back(row);
    }
    return rows;
  }

  Harness h;
  std::vector<Oid> types = {kInt4Oid, kInt4Oid, kTextOid};
  size_t outer_batch_ = kBatchRows;
  uint64_t spilled_ = 0;
};

TEST_F(JoinTest, AllTypesAgainstTheDefinition) {
  uint64_t seed = testing::RandomSeed();
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
  testing::Random random(seed);
  for (auto [outer_count, inner_count, keys] : {std::tuple{0, 0, 1},
                                                {0, 5, 5},
                                                {5, 0, 5},
                                                {1, 1, 1},
                                                {60, 60, 1},
                                                {300, 200, 20},
                                                {100, 300, 1000}}) {
    Rows outer = Table(&random, static_cast<size_t>(outer_count), keys, "o");
    Rows inner = Table(&random, static_cast<size_t>(inner_count), keys, "i");
    for (size_t batch : {size_t{7}, kBatchRows}) {
      outer_batch_ = batch;
      for (JoinType type : kTypes) {
        for (bool smaller : {false, true}) {
          SCOPED_TRACE(fmt::format("type {} smaller {} outer {} inner {}", static_cast<int>(type),
                                   smaller, outer_count, inner_count));
          Rows expected = Model(type, outer, inner, true, smaller);
          EXPECT_EQ(Text(Hash(type, outer, inner, smaller)), Text(expected));
          EXPECT_EQ(Text(Nest(type, outer, inner, true, smaller)), Text(expected));
          EXPECT_EQ(Text(Nest(type, outer, inner, false, smaller)),
                    Text(Model(type, outer, inner, false, smaller)));
        }
      }
    }
  }
}

TEST_F(JoinTest, BatchBoundariesAndDuplicates) {
  testing::Random random(1);
  for (size_t count : {kBatchRows - 1, kBatchRows, kBatchRows + 1}) {
    Rows outer, inner;
    for (size_t i = 0; i < count; i++) {
      outer.push_back({std::to_string(i), "1", "o"});
      inner.push_back({std::to_string(i / 3), "2", "i"});
    }
    for (JoinType type : kTypes) {
      Rows expected;
      size_t inner_keys = (count + 2) / 3;
      size_t matched = type == JoinType::kSemi   ? inner_keys
                       : type == JoinType::kAnti ? count - inner_keys
                       : type == JoinType::kLeft || type == JoinType::kFull
                           ? count + count - inner_keys
                           : count;
      EXPECT_EQ(Hash(type, outer, inner, false).size(), matched) << static_cast<int>(type);
    }
    // All alike: the product.
    Rows few(3, {"5", "1", "o"}), many(count, {"5", "2", "i"});
    EXPECT_EQ(Hash(JoinType::kInner, few, many, false).size(), 3 * count);
    EXPECT_EQ(Hash(JoinType::kInner, many, few, true).size(), 0u);
    EXPECT_EQ(Nest(JoinType::kInner, many, few, true, false).size(), 3 * count);
  }
}

TEST_F(JoinTest, SpillingGivesTheSame) {
  uint64_t seed = testing::RandomSeed();
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
  testing::Random random(seed);
  Rows outer = Table(&random, 6000, 2000, "outer row ");
  Rows inner = Table(&random, 6000, 2000, "inner row ");
  for (JoinType type : kTypes) {
    for (bool smaller : {false, true}) {
      h.context.work_mem_bytes = 64 << 20;
      Rows expected = Hash(type, outer, inner, smaller);
      EXPECT_EQ(spilled_, 0u);
      h.context.work_mem_bytes = 64 << 10;
      EXPECT_TRUE(Hash(type, outer, inner, smaller) == expected) << static_cast<int>(type);
      EXPECT_GT(spilled_, 0u);
    }
  }
  // One key for all: partitions never get smaller, but it ends, and right.
  Rows alike(2500, {"1", "1", "a row that takes some memory, so that it spills"});
  EXPECT_EQ(Hash(JoinType::kSemi, alike, alike, false).size(), 2500u);
  Rows small_outer(inner.begin(), inner.begin() + 10);
  EXPECT_EQ(Text(Nest(JoinType::kFull, small_outer, inner, true, true)),
            Text(Model(JoinType::kFull, small_outer, inner, true, true)));
}

TEST_F(JoinTest, NotInKnowsNulls) {
  Rows outer = {{"1", "0", "a"}, {"2", "0", "b"}, {kNull, "0", "c"}};
  EXPECT_EQ(Hash(JoinType::kAnti, outer, {}, false, true), Sorted(outer));
  EXPECT_EQ(Hash(JoinType::kAnti, outer, {{"1", "0", "x"}}, false, true), (Rows{{"2", "0", "b"}}));
  EXPECT_EQ(Hash(JoinType::kAnti, outer, {{"1", "0", "x"}, {kNull, "0", "x"}}, false, true),
            Rows{});
  EXPECT_EQ(Hash(JoinType::kAnti, outer, {{"1", "0", "x"}}, false, false),
            Sorted(Rows{{"2", "0", "b"}, {kNull, "0", "c"}}));
}

TEST_F(JoinTest, KeysOfDifferentIntegerTypes) {
  Expr* wide = h.Make(ExprKind::kCall, kInt8Oid, {h.Input(0, kInt4Oid)});
  wide->function = 481;
  Rows outer = {{"1", "0", "a"}, {"2", "0", "b"}}, inner = {{"2", "0", "x"}};
  EXPECT_EQ(Hash(JoinType::kInner, outer, inner, false, false, wide),
            (Rows{{"2", "0", "b", "2", "0", "x"}}));
}

}  // namespace
}  // namespace sluice
