// Whether a new partition fits beside those that its parent has.
#include "catalog/partition.h"
#include "catalog/partition_compare.h"
#include "catalog/quote.h"

namespace sluice {

namespace {

using RangeDatum = PartitionBound::RangeDatum;

[[noreturn]] void ThrowOverlap(std::string_view name, const Relation& other) {
  Throw(sqlstate::kInvalidObjectDefinition, "partition \"{}\" would overlap partition \"{}\"", name,
        other.name);
}

void CheckHash(std::string_view name, const PartitionBound& bound, const Relation& other) {
  int small = std::min(bound.modulus, other.bound.modulus);
  int large = std::max(bound.modulus, other.bound.modulus);
  if (large % small != 0)
    throw QueryError(
        MakeError(sqlstate::kInvalidObjectDefinition,
                  "every hash partition modulus must be a factor of the next larger modulus")
            .Detail(fmt::format("The new modulus {} is not {} {}, the modulus of existing "
                                "partition \"{}\".",
                                bound.modulus,
                                small == bound.modulus ? "a factor of" : "divisible by",
                                other.bound.modulus, other.name)));
  if ((bound.remainder - other.bound.remainder) % small == 0) ThrowOverlap(name, other);
}

void CheckList(const KeyComparer& comparer, std::string_view name, const PartitionBound& bound,
               const Relation& other) {
  for (const auto& mine : bound.list)
    for (const auto& theirs : other.bound.list) {
      bool same = mine.has_value() == theirs.has_value() &&
                  (!mine || comparer.Equal(comparer.Parse(*mine), comparer.Parse(*theirs)));
      if (same) ThrowOverlap(name, other);
    }
}

int CompareRange(const std::vector<KeyComparer>& comparers, const std::vector<RangeDatum>& a,
                 const std::vector<RangeDatum>& b) {
  for (size_t i = 0; i < comparers.size(); i++) {
    // Beyond an infinity the rest of the bound says nothing.
    if (a[i].infinite != b[i].infinite) return a[i].infinite < b[i].infinite ? -1 : 1;
    if (a[i].infinite != 0) return 0;
    int order =
        comparers[i].Compare(comparers[i].Parse(a[i].value), comparers[i].Parse(b[i].value));
    if (order != 0) return order;
  }
  return 0;
}

bool IsNumber(Oid type) {
  const TypeInfo* info = FindType(type);
  return info != nullptr && info->category == 'N';
}

std::string ShowBound(const PartitionKey& key, const std::vector<RangeDatum>& bound) {
  std::string text = "(";
  for (size_t i = 0; i < bound.size(); i++) {
    if (i > 0) text += ", ";
    if (bound[i].infinite != 0)
      text += bound[i].infinite < 0 ? "MINVALUE" : "MAXVALUE";
    else
      text += IsNumber(key.types[i]) ? bound[i].value : QuoteLiteral(bound[i].value);
  }
  return text + ")";
}

}  // namespace

void CheckNewBound(const Catalog& catalog, const Relation& parent, std::string_view name,
                   const PartitionBound& bound) {
  Arena arena;
  std::vector<KeyComparer> comparers;
  if (parent.key.strategy != PartitionStrategy::kHash)
    for (size_t i = 0; i < parent.key.types.size(); i++)
      comparers.emplace_back(parent.key, i, &arena);
  bool range = parent.key.strategy == PartitionStrategy::kRange;
  for (const KeyComparer& comparer : comparers)
    if (range && !comparer.ordered()) Refuse("range partitions by an enum are not supported");
  if (range && !bound.is_default && CompareRange(comparers, bound.from, bound.to) >= 0)
    throw QueryError(MakeError(sqlstate::kInvalidObjectDefinition,
                               "empty range bound specified for partition \"{}\"", name)
                         .Detail(fmt::format("Specified lower bound {} is greater than or equal to "
                                             "upper bound {}.",
                                             ShowBound(parent.key, bound.from),
                                             ShowBound(parent.key, bound.to))));
  for (Oid oid : parent.children) {
    const Relation& other = *catalog.FindRelation(oid);
    if (bound.is_default && other.bound.is_default)
      Throw(sqlstate::kInvalidObjectDefinition,
            "partition \"{}\" conflicts with existing default partition \"{}\"", name, other.name);
    if (bound.is_default || other.bound.is_default) continue;
    switch (parent.key.strategy) {
      case PartitionStrategy::kNone:
        break;
      case PartitionStrategy::kHash:
        CheckHash(name, bound, other);
        break;
      case PartitionStrategy::kList:
        CheckList(comparers[0], name, bound, other);
        break;
      case PartitionStrategy::kRange:
        if (CompareRange(comparers, bound.from, other.bound.to) < 0 &&
            CompareRange(comparers, other.bound.from, bound.to) < 0)
          ThrowOverlap(name, other);
        break;
    }
  }
}

}  // namespace sluice
