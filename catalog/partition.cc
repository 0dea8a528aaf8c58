#include "catalog/partition.h"

#include "catalog/partition_compare.h"
#include "types/codec.h"
#include "types/compare.h"

namespace sluice {

namespace {

using KeyConstraints = std::span<const std::vector<KeyConstraint>>;

// Whether `value` satisfies one constraint. NULLs are handled by the callers.
bool Satisfies(const KeyComparer& comparer, std::string_view value,
               const KeyConstraint& constraint) {
  if (constraint.kind == KeyConstraint::kNotNull) return true;
  if (constraint.kind == KeyConstraint::kNull) return false;
  if (constraint.kind == KeyConstraint::kEqual) return comparer.Equal(value, constraint.value);
  if (!comparer.ordered()) return true;
  int order = comparer.Compare(value, constraint.value);
  switch (constraint.kind) {
    case KeyConstraint::kLess:
      return order < 0;
    case KeyConstraint::kLessEqual:
      return order <= 0;
    case KeyConstraint::kGreaterEqual:
      return order >= 0;
    default:
      return order > 0;
  }
}

bool WantsNull(const std::vector<KeyConstraint>& constraints) {
  for (const KeyConstraint& constraint : constraints)
    if (constraint.kind != KeyConstraint::kNull) return false;
  return true;  // IS NULL, or anything
}
bool Excludes(const std::vector<KeyConstraint>& constraints, bool null) {
  for (const KeyConstraint& constraint : constraints)
    if ((constraint.kind == KeyConstraint::kNull) != null) return true;
  return false;
}

// The one value that the constraints allow; nullptr: none such.
const KeyConstraint* FixedValue(const std::vector<KeyConstraint>& constraints) {
  for (const KeyConstraint& constraint : constraints)
    if (constraint.kind == KeyConstraint::kEqual) return &constraint;
  return nullptr;
}

bool ListMayMatch(const KeyComparer& comparer, const PartitionBound& bound,
                  const std::vector<KeyConstraint>& constraints) {
  for (const auto& text : bound.list) {
    if (!text) {
      if (WantsNull(constraints)) return true;
      continue;
    }
    std::string_view value = comparer.Parse(*text);
    bool all = true;
    for (const KeyConstraint& constraint : constraints)
      all = all && Satisfies(comparer, value, constraint);
    if (all) return true;
  }
  return false;
}

// A range bound against the prefix of a key that a query fixes: fixed values for all but the last
// key, and an inequality on the last.
struct Prefix {
  std::vector<std::string_view> values;
  bool exclusive = false;  // of the last value
};

// The first difference of `bound` to `prefix`: <0, 0 (equal over the whole prefix), >0.
int ComparePrefix(const std::vector<KeyComparer>& comparers,
                  const std::vector<PartitionBound::RangeDatum>& bound, const Prefix& prefix) {
  for (size_t i = 0; i < prefix.values.size() && i < bound.size(); i++) {
    if (bound[i].infinite != 0) return bound[i].infinite;
    int order = comparers[i].Compare(comparers[i].Parse(bound[i].value), prefix.values[i]);
    if (order != 0) return order;
  }
  return 0;
}

// Fixed values of the leading keys, then one side's inequalities on the next key.
Prefix MakePrefix(KeyConstraints keys, const std::vector<KeyComparer>& comparers, bool low) {
  Prefix prefix;
  for (size_t i = 0; i < keys.size(); i++) {
    if (const KeyConstraint* fixed = FixedValue(keys[i])) {
      prefix.values.push_back(fixed->value);
      continue;
    }
    const KeyConstraint* best = nullptr;
    for (const KeyConstraint& c : keys[i]) {
      bool lower = c.kind == KeyConstraint::kGreater || c.kind == KeyConstraint::kGreaterEqual;
      bool upper = c.kind == KeyConstraint::kLess || c.kind == KeyConstraint::kLessEqual;
      if (low ? !lower : !upper) continue;
      if (best != nullptr) {
        int order = comparers[i].Compare(c.value, best->value);
        bool exclusive = c.kind == KeyConstraint::kGreater || c.kind == KeyConstraint::kLess;
        if (order != 0 ? (low ? order < 0 : order > 0) : !exclusive) continue;
      }
      best = &c;
    }
    if (best != nullptr) {
      prefix.values.push_back(best->value);
      prefix.exclusive =
          best->kind == KeyConstraint::kGreater || best->kind == KeyConstraint::kLess;
    }
    break;
  }
  return prefix;
}

bool RangeMayMatch(const std::vector<KeyComparer>& comparers, const PartitionBound& bound,
                   const Prefix& low, const Prefix& high) {
  if (!low.values.empty()) {
    int to = ComparePrefix(comparers, bound.to, low);
    // The upper end is exclusive: over the whole key "equal" is beyond it.
    bool whole = low.values.size() == bound.to.size();
    if (to < 0 || (to == 0 && (whole || low.exclusive))) return false;
  }
  if (!high.values.empty()) {
    int from = ComparePrefix(comparers, bound.from, high);
    if (from > 0 || (from == 0 && high.exclusive)) return false;
  }
  return true;
}

const Relation& ChildOf(const Catalog& catalog, const Relation& parent, size_t index) {
  const Relation* child = catalog.FindRelation(parent.children[index]);
  SLUICE_ASSERT(child != nullptr);
  return *child;
}

int64_t Remainder(uint64_t hash, int modulus) {
  return static_cast<int64_t>(hash % static_cast<uint64_t>(modulus));
}

// A nondeterministic collation hashes equal texts alike; those are not registered.
bool CanHashKeys(const PartitionKey& key, std::span<const std::optional<std::string_view>> values) {
  for (Oid collation : key.collations)
    if (collation != kInvalidOid && collation != kDefaultCollationOid && !CanCollate(collation))
      return false;
  return HashPartitionKeys(key.types, values).has_value();
}

void MatchHash(const Catalog& catalog, const Relation& parent, KeyConstraints keys,
               std::vector<bool>* matches) {
  std::vector<std::optional<std::string_view>> values;
  for (const auto& constraints : keys) {
    const KeyConstraint* fixed = FixedValue(constraints);
    bool null = Excludes(constraints, false) && !Excludes(constraints, true);
    if (fixed == nullptr && !null) return;
    values.push_back(null ? std::nullopt : std::optional(fixed->value));
  }
  if (!CanHashKeys(parent.key, values)) return;
  uint64_t hash = *HashPartitionKeys(parent.key.types, values);
  for (size_t i = 0; i < matches->size(); i++) {
    const PartitionBound& bound = ChildOf(catalog, parent, i).bound;
    (*matches)[i] = bound.modulus <= 0 || Remainder(hash, bound.modulus) == bound.remainder;
  }
}

void MatchList(const Catalog& catalog, const Relation& parent, KeyConstraints keys, Arena* arena,
               std::vector<bool>* matches) {
  KeyComparer comparer(parent.key, 0, arena);
  // Exactly one value: the default partition holds it only if no other partition does.
  bool fixed = FixedValue(keys[0]) != nullptr || !Excludes(keys[0], true);
  fixed = fixed && !keys[0].empty();
  bool found = false;
  size_t default_index = matches->size();
  for (size_t i = 0; i < matches->size(); i++) {
    const PartitionBound& bound = ChildOf(catalog, parent, i).bound;
    if (bound.is_default) {
      default_index = i;
    } else {
      (*matches)[i] = ListMayMatch(comparer, bound, keys[0]);
      found = found || (*matches)[i];
    }
  }
  if (default_index < matches->size()) (*matches)[default_index] = !(fixed && found);
}

void MatchRange(const Catalog& catalog, const Relation& parent, KeyConstraints keys, Arena* arena,
                std::vector<bool>* matches) {
  std::vector<KeyComparer> comparers;
  for (size_t i = 0; i < parent.key.types.size(); i++) comparers.emplace_back(parent.key, i, arena);
  bool only_null = false, all_fixed = true;
  for (const auto& constraints : keys) {
    // A NULL in any key puts the row into the default partition.
    only_null = only_null || (!constraints.empty() && !Excludes(constraints, true));
    all_fixed = all_fixed && FixedValue(constraints) != nullptr;
  }
  Prefix low = MakePrefix(keys, comparers, true), high = MakePrefix(keys, comparers, false);
  bool found = false;
  size_t default_index = matches->size();
  for (size_t i = 0; i < matches->size(); i++) {
    const PartitionBound& bound = ChildOf(catalog, parent, i).bound;
    if (bound.is_default) {
      default_index = i;
    } else {
      (*matches)[i] = !only_null && RangeMayMatch(comparers, bound, low, high);
      found = found || (*matches)[i];
    }
  }
  if (default_index < matches->size()) (*matches)[default_index] = !(all_fixed && found);
}

// Throws where types or collations cannot be compared here.
std::vector<bool> Match(const Catalog& catalog, const Relation& parent, KeyConstraints keys) {
  std::vector<bool> matches(parent.children.size(), true);
  Arena arena;
  switch (parent.key.strategy) {
    case PartitionStrategy::kNone:
      break;
    case PartitionStrategy::kHash:
      MatchHash(catalog, parent, keys, &matches);
      break;
    case PartitionStrategy::kList:
      MatchList(catalog, parent, keys, &arena, &matches);
      break;
    case PartitionStrategy::kRange:
      MatchRange(catalog, parent, keys, &arena, &matches);
      break;
  }
  return matches;
}

}  // namespace

std::vector<bool> MatchPartitions(const Catalog& catalog, const Relation& parent,
                                  KeyConstraints keys) {
  std::vector<bool> all(parent.children.size(), true);
  if (keys.empty() || keys.size() != parent.key.types.size()) return all;
  // Contradictions (k = 1 AND k IS NULL) leave nothing anywhere.
  for (const auto& constraints : keys)
    if (Excludes(constraints, true) && Excludes(constraints, false))
      return std::vector<bool>(all.size(), false);
  try {
    return Match(catalog, parent, keys);
  } catch (const QueryError&) {
    return all;  // a type without order, or a collation that this host lacks: nothing is known
  }
}

std::optional<int> FindPartition(const Catalog& catalog, const Relation& parent,
                                 std::span<const std::optional<std::string_view>> values) {
  std::vector<std::vector<KeyConstraint>> keys;
  for (const auto& value : values)
    keys.push_back({value ? KeyConstraint{KeyConstraint::kEqual, *value}
                          : KeyConstraint{KeyConstraint::kNull, {}}});
  std::vector<bool> matches;
  try {
    matches = Match(catalog, parent, keys);
  } catch (const QueryError&) {
    return std::nullopt;
  }
  // A hash that is not known here leaves every partition possible.
  if (parent.key.strategy == PartitionStrategy::kHash && !CanHashKeys(parent.key, values))
    return std::nullopt;
  int found = -1;
  for (size_t i = 0; i < matches.size(); i++) {
    if (!matches[i]) continue;
    if (found >= 0) return std::nullopt;
    found = static_cast<int>(i);
  }
  return found;
}

}  // namespace sluice
