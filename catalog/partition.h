// Which partitions of a parent may hold rows with a given key: the rules of Postgres's partition
// bounds. Where a type's order or hash is not known here, the answer is "may", never a wrong "no".
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"

namespace sluice {

// What a query says of one partition key. `value` is in the binary wire format of the key's type
// (text format for types without a codec) and not NULL.
struct KeyConstraint {
  enum Kind : uint8_t { kEqual, kNull, kNotNull, kLess, kLessEqual, kGreaterEqual, kGreater };
  Kind kind;
  std::string_view value;
};

// One flag a child, in the order of parent.children: whether it may hold a row for which all
// constraints hold. keys[i]: the constraints on parent.key.expressions[i], joined by AND; none: any
// value. An OR (or a list of values) is the union of several calls.
std::vector<bool> MatchPartitions(const Catalog& catalog, const Relation& parent,
                                  std::span<const std::vector<KeyConstraint>> keys);

// The index in parent.children of the partition that a row with these keys belongs to (nullopt:
// NULL); -1: none takes it. nullopt: this build cannot know.
std::optional<int> FindPartition(const Catalog& catalog, const Relation& parent,
                                 std::span<const std::optional<std::string_view>> values);

// Throws 42P17 where `bound` overlaps a partition that `parent` has, is empty, or cannot be
// compared.
void CheckNewBound(const Catalog& catalog, const Relation& parent, std::string_view name,
                   const PartitionBound& bound);

// Whether HashPartitionKeys knows the type's hash.
bool HasKnownHash(Oid type);

// Postgres's satisfies_hash_partition: the combined hash of the keys; nullopt where a type's hash
// function is not known here.
std::optional<uint64_t> HashPartitionKeys(std::span<const Oid> types,
                                          std::span<const std::optional<std::string_view>> values);

}  // namespace sluice
