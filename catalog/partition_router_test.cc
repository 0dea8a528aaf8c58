// Routing many rows is FindPartition for each of them.
#include "catalog/partition_router.h"

#include <gtest/gtest.h>
#include <random>

#include "catalog/partition.h"
#include "common/bytes.h"
#include "types/codec.h"

namespace sluice {
namespace {

class PartitionRouterTest : public testing::Test {
 protected:
  PartitionRouterTest() { LoadBuiltinCatalog(); }

  // A table by `strategy` over int4 column k with these partitions.
  const Relation& Make(PartitionStrategy strategy, std::vector<PartitionBound> bounds) {
    Relation root{};
    root.oid = 30000;
    root.schema = "public";
    root.name = "t";
    root.kind = RelationKind::kPartitioned;
    root.columns.push_back({.name = "k", .type = kInt4Oid});
    root.key = {strategy, {"k"}, {kInt4Oid}, {kInvalidOid}};
    for (size_t i = 0; i < bounds.size(); i++) {
      Relation leaf = root;
      leaf.oid = static_cast<Oid>(30001 + i);
      leaf.kind = RelationKind::kForeignTable;
      leaf.parent = root.oid;
      leaf.bound = std::move(bounds[i]);
      root.children.push_back(leaf.oid);
      catalog_.relations[leaf.oid] = leaf;
    }
    return catalog_.relations[root.oid] = root;
  }

  void Compare(const Relation& root) {
    std::mt19937 random(7);
    constexpr size_t kRows = 500;
    std::vector<int32_t> values(kRows);
    std::vector<uint8_t> nulls(kRows, 0);
    for (size_t i = 0; i < kRows; i++) values[i] = static_cast<int32_t>(random() % 80) - 20;
    nulls[3] = 1;
    Column column{.type = kInt4Oid, .physical = Physical::kInt4};
    column.data = values.data();
    column.nulls = nulls.data();
    PartitionRouter router(catalog_, root);
    for (size_t i = 0; i < kRows; i++) {
      char bytes[4];
      StoreBig(bytes, values[i]);
      std::optional<std::string_view> value = std::string_view(bytes, 4);
      if (nulls[i] != 0) value.reset();
      std::optional<int> expected = FindPartition(catalog_, root, {&value, 1});
      ASSERT_TRUE(expected.has_value());
      Column one = column;
      one.data = &values[i];
      one.nulls = &nulls[i];
      uint32_t target = 99;
      if (*expected < 0) {
        EXPECT_THROW(router.Route({1, {&one, 1}}, {&target, 1}), QueryError) << values[i];
        continue;
      }
      router.Route({1, {&one, 1}}, {&target, 1});
      EXPECT_EQ(target, static_cast<uint32_t>(*expected)) << values[i];
    }
  }

  Catalog catalog_;
};

TEST_F(PartitionRouterTest, HashWithDifferentModuli) {
  std::vector<PartitionBound> bounds(3);
  bounds[0].modulus = 2;
  bounds[0].remainder = 1;
  bounds[1].modulus = 4;
  bounds[1].remainder = 0;
  bounds[2].modulus = 4;
  bounds[2].remainder = 2;
  Compare(Make(PartitionStrategy::kHash, bounds));
  bounds.pop_back();  // now some rows have no place
  catalog_ = Catalog();
  Compare(Make(PartitionStrategy::kHash, bounds));
}

TEST_F(PartitionRouterTest, ListWithNullAndDefault) {
  std::vector<PartitionBound> bounds(3);
  bounds[0].list = {"5", "1", "-7"};
  bounds[1].list = {std::nullopt, "2"};
  bounds[2].list = {"30"};
  Compare(Make(PartitionStrategy::kList, bounds));
  bounds[2].is_default = true;
  bounds[2].list.clear();
  catalog_ = Catalog();
  Compare(Make(PartitionStrategy::kList, bounds));
}

TEST_F(PartitionRouterTest, RangesWithAndWithoutEnds) {
  std::vector<PartitionBound> bounds(3);
  bounds[0].from = {{0, "10"}};
  bounds[0].to = {{0, "20"}};
  bounds[1].from = {{-1, ""}};
  bounds[1].to = {{0, "0"}};
  bounds[2].from = {{0, "20"}};
  bounds[2].to = {{1, ""}};
  Compare(Make(PartitionStrategy::kRange, bounds));
  bounds.emplace_back().is_default = true;
  catalog_ = Catalog();
  Compare(Make(PartitionStrategy::kRange, bounds));
}

}  // namespace
}  // namespace sluice
