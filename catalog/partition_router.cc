#include "catalog/partition_router.h"

#include <algorithm>
#include <unordered_map>

#include "catalog/partition.h"
#include "catalog/partition_compare.h"
#include "common/bytes.h"
#include "types/codec.h"

namespace sluice {
namespace {

constexpr SqlState kCheckViolation = MakeSqlState("23514");
constexpr int kNowhere = -1;

// Bounds as values of the key's type, compared with a row's value in place.
struct KeyOrder {
  Oid type;
  CompareFn compare = nullptr;  // enums: equality of labels only
  const Collator* collation = nullptr;
};

bool IsEnum(Oid type) {
  const TypeInfo* info = FindType(type);
  return info != nullptr && info->kind == 'e';
}

KeyOrder OrderOf(const PartitionKey& key, size_t i) {
  KeyOrder order{key.types[i]};
  if (IsEnum(order.type)) return order;
  order.compare = HasBinaryCodec(order.type) ? FindCompare(order.type) : nullptr;
  if (order.compare == nullptr)
    Refuse("partition bounds of type {} are not supported", FormatTypeName(order.type));
  Oid collation = i < key.collations.size() ? key.collations[i] : kInvalidOid;
  if (collation != kInvalidOid) order.collation = FindCollator(collation);
  return order;
}

}  // namespace

struct PartitionRouter::Table {
  struct Child {
    std::unique_ptr<Table> table;  // or:
    uint32_t leaf = 0;
  };
  struct ListValue {
    Column value;
    int child;
  };
  struct RangeEnd {
    int infinite;  // -1 MINVALUE, 1 MAXVALUE
    Column value;
  };
  struct Range {
    std::vector<RangeEnd> from, to;
    int child;
  };

  const Relation* relation = nullptr;
  size_t first_key = 0;
  std::vector<Child> children;
  std::vector<KeyOrder> orders;
  int default_child = kNowhere;
  int null_child = kNowhere;
  std::vector<int> by_remainder;  // hash: of the largest modulus
  std::vector<ListValue> list;    // sorted, but for enums
  std::vector<Range> ranges;      // sorted

  void Prepare(const Catalog& catalog, Arena* arena);
  void PrepareHash(const std::vector<const PartitionBound*>& bounds);
  void PrepareList(const std::vector<const PartitionBound*>& bounds, Arena* arena);
  void PrepareRange(const std::vector<const PartitionBound*>& bounds, Arena* arena);
  Column Parse(size_t key, const std::string& text, Arena* arena) const;
  int Compare(size_t key, const Column& value, size_t row, const Column& bound) const {
    const KeyOrder& order = orders[key];
    return order.compare(value, row, bound, 0, order.collation);
  }
  int CompareRow(std::span<const Column> keys, size_t row, const std::vector<RangeEnd>& end) const;
  int FindList(const Column& key, size_t row) const;
  int FindRange(std::span<const Column> keys, size_t row) const;
};

Column PartitionRouter::Table::Parse(size_t key, const std::string& text, Arena* arena) const {
  static const SessionSettings settings;
  Oid type = orders[key].type;
  std::string_view bytes = orders[key].compare == nullptr
                               ? arena->CopyString(text)
                               : ParseText(type, -1, text, settings, arena);
  return MakeConstantColumn(type, bytes, false, arena);
}

void PartitionRouter::Table::Prepare(const Catalog& catalog, Arena* arena) {
  const PartitionKey& key = relation->key;
  std::vector<const PartitionBound*> bounds;
  for (Oid child : relation->children) bounds.push_back(&catalog.FindRelation(child)->bound);
  if (key.strategy == PartitionStrategy::kHash) return PrepareHash(bounds);
  for (size_t i = 0; i < key.types.size(); i++) orders.push_back(OrderOf(key, i));
  for (size_t i = 0; i < bounds.size(); i++)
    if (bounds[i]->is_default) default_child = static_cast<int>(i);
  if (key.strategy == PartitionStrategy::kList) return PrepareList(bounds, arena);
  PrepareRange(bounds, arena);
}

// Each modulus divides the next larger one.
void PartitionRouter::Table::PrepareHash(const std::vector<const PartitionBound*>& bounds) {
  int largest = 1;
  for (const PartitionBound* bound : bounds) largest = std::max(largest, bound->modulus);
  by_remainder.assign(static_cast<size_t>(largest), kNowhere);
  for (size_t i = 0; i < bounds.size(); i++) {
    if (bounds[i]->modulus <= 0) continue;
    for (int r = bounds[i]->remainder; r < largest; r += bounds[i]->modulus)
      by_remainder[static_cast<size_t>(r)] = static_cast<int>(i);
  }
}

void PartitionRouter::Table::PrepareList(const std::vector<const PartitionBound*>& bounds,
                                         Arena* arena) {
  for (size_t i = 0; i < bounds.size(); i++) {
    for (const auto& text : bounds[i]->list) {
      if (text)
        list.push_back({Parse(0, *text, arena), static_cast<int>(i)});
      else
        null_child = static_cast<int>(i);
    }
  }
  if (orders[0].compare == nullptr) return;
  std::sort(list.begin(), list.end(), [&](const ListValue& a, const ListValue& b) {
    return Compare(0, a.value, 0, b.value) < 0;
  });
}

void PartitionRouter::Table::PrepareRange(const std::vector<const PartitionBound*>& bounds,
                                          Arena* arena) {
  auto ends = [&](const std::vector<PartitionBound::RangeDatum>& data) {
    std::vector<RangeEnd> parsed;
    for (size_t k = 0; k < data.size(); k++)
      parsed.push_back(
          {data[k].infinite, data[k].infinite != 0 ? Column{} : Parse(k, data[k].value, arena)});
    return parsed;
  };
  for (size_t i = 0; i < bounds.size(); i++)
    if (!bounds[i]->is_default)
      ranges.push_back({ends(bounds[i]->from), ends(bounds[i]->to), static_cast<int>(i)});
  // They do not overlap: their upper ends are in the order of the ranges.
  std::sort(ranges.begin(), ranges.end(), [&](const Range& a, const Range& b) {
    for (size_t k = 0; k < a.to.size() && k < b.to.size(); k++) {
      if (a.to[k].infinite != 0 || b.to[k].infinite != 0) {
        if (a.to[k].infinite != b.to[k].infinite) return a.to[k].infinite < b.to[k].infinite;
        return false;
      }
      int order = Compare(k, a.to[k].value, 0, b.to[k].value);
      if (order != 0) return order < 0;
    }
    return false;
  });
}

// The row's keys against one end of a range.
int PartitionRouter::Table::CompareRow(std::span<const Column> keys, size_t row,
                                       const std::vector<RangeEnd>& end) const {
  for (size_t k = 0; k < end.size(); k++) {
    if (end[k].infinite != 0) return -end[k].infinite;
    int order = Compare(k, keys[k], row, end[k].value);
    if (order != 0) return order;
  }
  return 0;
}

int PartitionRouter::Table::FindList(const Column& key, size_t row) const {
  if (key.IsNull(row)) return null_child >= 0 ? null_child : default_child;
  if (orders[0].compare == nullptr) {
    for (const ListValue& value : list)
      if (value.value.At<std::string_view>(0) == key.At<std::string_view>(row)) return value.child;
    return default_child;
  }
  auto found = std::partition_point(list.begin(), list.end(), [&](const ListValue& value) {
    return Compare(0, key, row, value.value) > 0;
  });
  bool equal = found != list.end() && Compare(0, key, row, found->value) == 0;
  return equal ? found->child : default_child;
}

int PartitionRouter::Table::FindRange(std::span<const Column> keys, size_t row) const {
  for (const Column& key : keys)
    if (key.IsNull(row)) return default_child;
  // The first whose upper end (exclusive) is above the row.
  auto found = std::partition_point(ranges.begin(), ranges.end(), [&](const Range& range) {
    return CompareRow(keys, row, range.to) >= 0;
  });
  bool inside = found != ranges.end() && CompareRow(keys, row, found->from) >= 0;
  return inside ? found->child : default_child;
}

namespace {

// "(k) = (v)" of Postgres's message.
std::string KeyText(const Relation& relation, std::span<const Column> keys, size_t row) {
  static const SessionSettings settings;
  std::string names, values;
  for (size_t k = 0; k < keys.size(); k++) {
    names += (k == 0 ? "" : ", ") + relation.key.expressions[k];
    values += k == 0 ? "" : ", ";
    if (keys[k].IsNull(row))
      values += "null";
    else if (HasBinaryCodec(keys[k].type))
      AppendText(keys[k], row, settings, &values);
    else
      values += keys[k].At<std::string_view>(row);
  }
  return "(" + names + ") = (" + values + ")";
}

}  // namespace

PartitionRouter::PartitionRouter(const Catalog& catalog, const Relation& root)
    : catalog_(catalog), root_(MakeTable(root)) {}

PartitionRouter::~PartitionRouter() = default;

std::unique_ptr<PartitionRouter::Table> PartitionRouter::MakeTable(const Relation& relation) {
  auto table = std::make_unique<Table>();
  table->relation = &relation;
  if (relation.kind != RelationKind::kPartitioned) {  // one table takes every row
    table->children.push_back({nullptr, next_leaf_++});
    return table;
  }
  table->first_key = next_key_;
  next_key_ += relation.key.types.size();
  for (Oid oid : relation.children) {
    const Relation& child = *catalog_.FindRelation(oid);
    Table::Child& place = table->children.emplace_back();
    if (child.kind == RelationKind::kPartitioned)
      place.table = MakeTable(child);
    else
      place.leaf = next_leaf_++;
  }
  table->Prepare(catalog_, &arena_);
  return table;
}

uint32_t PartitionRouter::RouteRow(const Table& table, const Batch& keys, size_t row) {
  const Relation& relation = *table.relation;
  if (relation.kind != RelationKind::kPartitioned) return table.children[0].leaf;
  std::span<const Column> own = keys.columns.subspan(table.first_key, relation.key.types.size());
  int child = kNowhere;
  switch (relation.key.strategy) {
    case PartitionStrategy::kHash: {
      buffers_.resize(own.size());
      std::vector<std::optional<std::string_view>> values(own.size());
      for (size_t k = 0; k < own.size(); k++) {
        if (own[k].IsNull(row)) continue;
        buffers_[k].clear();
        if (HasBinaryCodec(own[k].type))
          AppendBinary(own[k], row, &buffers_[k]);
        else
          buffers_[k] = own[k].At<std::string_view>(row);
        values[k] = buffers_[k];
      }
      std::optional<uint64_t> hash = HashPartitionKeys(relation.key.types, values);
      if (!hash) Refuse("hash partitioning by a key of this type is not supported");
      child = table.by_remainder[*hash % table.by_remainder.size()];
      break;
    }
    case PartitionStrategy::kList:
      child = table.FindList(own[0], row);
      break;
    case PartitionStrategy::kRange:
      child = table.FindRange(own, row);
      break;
    case PartitionStrategy::kNone:
      break;
  }
  if (child == kNowhere)
    throw QueryError(
        MakeError(kCheckViolation, "no partition of relation \"{}\" found for row", relation.name)
            .Detail("Partition key of the failing row contains " + KeyText(relation, own, row) +
                    "."));
  const Table::Child& place = table.children[static_cast<size_t>(child)];
  return place.table != nullptr ? RouteRow(*place.table, keys, row) : place.leaf;
}

void PartitionRouter::Route(const Batch& keys, std::span<uint32_t> to) {
  for (size_t row = 0; row < to.size(); row++) to[row] = RouteRow(*root_, keys, row);
}

}  // namespace sluice
