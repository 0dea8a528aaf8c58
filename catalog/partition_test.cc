#include "catalog/partition.h"

#include <gtest/gtest.h>

#include "types/collation.h"

namespace sluice {
namespace {

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

std::string Int4(int32_t value) {
  std::string bytes(4, 0);
  for (int i = 0; i < 4; i++)
    bytes[i] = static_cast<char>(static_cast<uint32_t>(value) >> (24 - 8 * i));
  return bytes;
}

// What a Postgres 15 answered for HASHextended(value, 8816678312871386365), the seed of hash
// partitioning.
TEST(PartitionHash, EqualsPostgres) {
  struct Case {
    Oid type;
    std::string wire;
    int64_t hash;
  };
  const std::string uuid = FromHex("00112233445566778899aabbccddeeff");
  const Case cases[] = {
      {kInt2Oid, FromHex("fff9"), -7298374200968567817},
      {kInt4Oid, Int4(123456), 7518462043501142587},
      {kInt4Oid, Int4(-1), -5017072347659237694},
      {kInt8Oid, FromHex("00000b3a73ce2ff2"), -7398081950059745880},
      {kInt8Oid, FromHex("fffff4c58c31d00e"), -2921880133545249340},
      {kTextOid, "", -5700645584453517373},
      {kTextOid, "abc", 3628778498291917250},
      {kTextOid, "abcdefghi", -7860738947571725408},
      {kTextOid, "abcdefghijk", -2046435308545367432},
      {kVarcharOid, "abcdefghijklmnopqrstuvwxyz", -7171292135076916904},
      {kBpcharOid, "abc  ", 3628778498291917250},
      {kUuidOid, uuid, -8699738442285490013},
      {kCharOid, "a", -7450143854264390420},
      {kFloat8Oid, FromHex("3ff8000000000000"), -2826383321045882978},
      {kFloat4Oid, FromHex("3fc00000"), -2826383321045882978},
      {kNumericOid, FromHex("0003000100000004000109291a2c"), -4963219533305738208},
      {kNumericOid, FromHex("0001fffe40000007029e"), -3277568404766735163},
      {kNumericOid, FromHex("00010002000000000001"), -3231555093127941540},
      {kNumericOid, FromHex("0000000000000000"), 8816678312871386364},
      {kIntervalOid, FromHex("00000000003567e00000000200000001"), -6698428640019947481},
  };
  for (const Case& c : cases) {
    std::optional<std::string_view> value = c.wire;
    auto hash = HashPartitionKeys(std::span(&c.type, 1), std::span(&value, 1));
    ASSERT_TRUE(hash.has_value());
    EXPECT_EQ(*hash, static_cast<uint64_t>(c.hash) + 0x49a0f4dd15e5a8e3) << c.type << " " << c.hash;
  }
}

// By satisfies_hash_partition() over 1000003 remainders.
TEST(PartitionHash, CombinesKeysAndSkipsNulls) {
  const Oid types[] = {kInt4Oid, kTextOid, kUuidOid};
  const std::string id = Int4(42), uuid = FromHex("00112233445566778899aabbccddeeff");
  const std::optional<std::string_view> all[] = {id, "x", uuid},
                                        some[] = {std::nullopt, "x", std::nullopt};
  EXPECT_EQ(*HashPartitionKeys(types, all) % 1000003, 876800u);
  EXPECT_EQ(*HashPartitionKeys(types, some) % 1000003, 402218u);
}

TEST(PartitionHash, DoesNotGuess) {
  const Oid types[] = {kJsonbOid};
  const std::optional<std::string_view> values[] = {"{}"};
  EXPECT_FALSE(HashPartitionKeys(types, values).has_value());
}

class Partitions : public testing::Test {
 protected:
  static void SetUpTestSuite() { LoadBuiltinCatalog(); }

  // Children get the bounds in order; the parent is relation 20000.
  void Make(PartitionStrategy strategy, std::vector<Oid> types,
            std::vector<PartitionBound> bounds) {
    Relation& parent = catalog_.relations[20000];
    parent.oid = 20000;
    parent.key.strategy = strategy;
    parent.key.types = std::move(types);
    for (size_t i = 0; i < bounds.size(); i++) {
      Oid oid = static_cast<Oid>(20001 + i);
      parent.children.push_back(oid);
      catalog_.relations[oid].name = "p" + std::to_string(i);
      catalog_.relations[oid].bound = bounds[i];
    }
  }
  const Relation& parent() { return catalog_.relations[20000]; }

  // The matching children's numbers.
  std::string Match(std::vector<std::vector<KeyConstraint>> keys) {
    std::string matching;
    auto matches = MatchPartitions(catalog_, parent(), keys);
    for (size_t i = 0; i < matches.size(); i++)
      if (matches[i]) matching += std::to_string(i);
    return matching;
  }
  int Find(std::vector<std::optional<std::string_view>> values) {
    return FindPartition(catalog_, parent(), values).value_or(-2);
  }
  SqlState Check(const PartitionBound& bound) {
    try {
      CheckNewBound(catalog_, parent(), "n", bound);
    } catch (const QueryError& failure) {
      return failure.error.state;
    }
    return sqlstate::kSuccess;
  }

  Catalog catalog_;
};

PartitionBound List(std::vector<std::optional<std::string>> values) {
  PartitionBound bound;
  bound.list = std::move(values);
  return bound;
}
PartitionBound Default() {
  PartitionBound bound;
  bound.is_default = true;
  return bound;
}
PartitionBound Hash(int modulus, int remainder) {
  PartitionBound bound;
  bound.modulus = modulus;
  bound.remainder = remainder;
  return bound;
}
using Datum = PartitionBound::RangeDatum;
PartitionBound Range(std::vector<Datum> from, std::vector<Datum> to) {
  PartitionBound bound;
  bound.from = std::move(from);
  bound.to = std::move(to);
  return bound;
}
using K = KeyConstraint;

TEST_F(Partitions, ListByValueNullAndInequality) {
  Make(PartitionStrategy::kList, {kInt4Oid},
       {List({"1", "2"}), List({"3", std::nullopt}), Default()});
  std::string two = Int4(2), three = Int4(3), nine = Int4(9);
  EXPECT_EQ(Match({{{K::kEqual, two}}}), "0");
  EXPECT_EQ(Match({{{K::kEqual, nine}}}), "2");
  EXPECT_EQ(Match({{{K::kNull, ""}}}), "1");
  EXPECT_EQ(Match({{{K::kNotNull, ""}}}), "012");
  EXPECT_EQ(Match({{{K::kLess, three}}}), "02");
  EXPECT_EQ(Match({{{K::kGreaterEqual, three}}}), "12");
  EXPECT_EQ(Match({{}}), "012");
  EXPECT_EQ(Match({{{K::kNull, ""}, {K::kEqual, two}}}), "");
  EXPECT_EQ(Find({std::nullopt}), 1);
  EXPECT_EQ(Find({three}), 1);
  EXPECT_EQ(Find({nine}), 2);
  EXPECT_EQ(Check(List({"4"})), sqlstate::kSuccess);
  EXPECT_EQ(Check(List({"4", "3"})), sqlstate::kInvalidObjectDefinition);
  EXPECT_EQ(Check(Default()), sqlstate::kInvalidObjectDefinition);
}

TEST_F(Partitions, ListWithoutDefaultMayHaveNoPartition) {
  Make(PartitionStrategy::kList, {kInt4Oid}, {List({"1"})});
  std::string two = Int4(2);
  EXPECT_EQ(Find({two}), -1);
  EXPECT_EQ(Match({{{K::kEqual, two}}}), "");
}

TEST_F(Partitions, HashByAllKeys) {
  Make(PartitionStrategy::kHash, {kInt4Oid}, {Hash(2, 0), Hash(4, 1), Hash(4, 3)});
  int counts[3] = {};
  for (int i = 0; i < 400; i++) {
    std::string id = Int4(i);
    int found = Find({id});
    ASSERT_GE(found, 0);
    counts[found]++;
    EXPECT_EQ(Match({{{K::kEqual, id}}}), std::to_string(found));
  }
  EXPECT_NEAR(counts[0], 200, 40);
  EXPECT_NEAR(counts[1], 100, 40);
  EXPECT_EQ(Match({{}}), "012");
  EXPECT_EQ(Check(Hash(3, 0)), sqlstate::kInvalidObjectDefinition);
  EXPECT_EQ(Check(Hash(8, 5)), sqlstate::kInvalidObjectDefinition);
}

TEST_F(Partitions, RangeOfOneKey) {
  Make(PartitionStrategy::kRange, {kInt4Oid},
       {Range({{-1, ""}}, {{0, "10"}}), Range({{0, "10"}}, {{0, "20"}}), Default()});
  std::string nine = Int4(9), ten = Int4(10), twenty = Int4(20);
  EXPECT_EQ(Find({nine}), 0);
  EXPECT_EQ(Find({ten}), 1);
  EXPECT_EQ(Find({twenty}), 2);
  EXPECT_EQ(Find({std::nullopt}), 2);
  EXPECT_EQ(Match({{{K::kLess, ten}}}), "02");
  EXPECT_EQ(Match({{{K::kLessEqual, ten}}}), "012");
  EXPECT_EQ(Match({{{K::kGreaterEqual, ten}}}), "12");
  EXPECT_EQ(Match({{{K::kGreaterEqual, ten}, {K::kLess, twenty}}}), "12");
  EXPECT_EQ(Match({{{K::kNull, ""}}}), "2");
  EXPECT_EQ(Check(Range({{0, "15"}}, {{0, "25"}})), sqlstate::kInvalidObjectDefinition);
  EXPECT_EQ(Check(Range({{0, "20"}}, {{1, ""}})), sqlstate::kSuccess);
  EXPECT_EQ(Check(Range({{0, "30"}}, {{0, "30"}})), sqlstate::kInvalidObjectDefinition);
}

TEST_F(Partitions, RangeOfTwoKeysUsesThePrefix) {
  Make(PartitionStrategy::kRange, {kInt4Oid, kInt4Oid},
       {Range({{0, "1"}, {0, "0"}}, {{0, "1"}, {0, "5"}}),
        Range({{0, "1"}, {0, "5"}}, {{0, "2"}, {-1, ""}}),
        Range({{0, "2"}, {-1, ""}}, {{0, "9"}, {1, ""}})});
  std::string one = Int4(1), two = Int4(2), four = Int4(4), nine = Int4(9);
  EXPECT_EQ(Find({one, four}), 0);
  EXPECT_EQ(Find({one, nine}), 1);
  EXPECT_EQ(Find({nine, nine}), 2);
  EXPECT_EQ(Match({{{K::kEqual, one}}, {}}), "01");
  EXPECT_EQ(Match({{{K::kEqual, one}}, {{K::kLess, four}}}), "0");
  EXPECT_EQ(Match({{{K::kGreater, one}}, {}}), "12");
  EXPECT_EQ(Match({{{K::kGreater, nine}}, {}}), "");
  EXPECT_EQ(Match({{}, {{K::kEqual, four}}}), "012");
}

}  // namespace
}  // namespace sluice
