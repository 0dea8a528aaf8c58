// Comparing the values of one partition key; shared by catalog/partition*.cc only.
#pragma once

#include <string>
#include <string_view>

#include "catalog/catalog.h"
#include "common/arena.h"
#include "types/codec.h"
#include "types/collation.h"
#include "types/compare.h"

namespace sluice {

// Enums have equality only (their labels'): their order is the shards'.
class KeyComparer {
 public:
  // Throws 0A000 for a type that cannot be compared here.
  KeyComparer(const PartitionKey& key, size_t index, Arena* arena)
      : type_(key.types[index]), arena_(arena) {
    const TypeInfo* info = FindType(type_);
    if (info != nullptr && info->kind == 'e') return;
    compare_ = HasBinaryCodec(type_) ? FindCompare(type_) : nullptr;
    if (compare_ == nullptr)
      Refuse("partition bounds of type {} are not supported", FormatTypeName(type_));
    Oid collation = index < key.collations.size() ? key.collations[index] : kInvalidOid;
    collation_ = collation == kInvalidOid ? nullptr : FindCollator(collation);
  }
  bool ordered() const { return compare_ != nullptr; }

  // A bound's literal in the wire format. Bounds are stored in the formats of the default settings.
  std::string_view Parse(const std::string& text) const {
    static const SessionSettings settings;
    return ordered() ? ParseText(type_, -1, text, settings, arena_) : arena_->CopyString(text);
  }
  bool Equal(std::string_view a, std::string_view b) const {
    return ordered() ? Compare(a, b) == 0 : a == b;
  }
  // REQUIRES: ordered().
  int Compare(std::string_view a, std::string_view b) const {
    Column left = MakeConstantColumn(type_, a, false, arena_);
    Column right = MakeConstantColumn(type_, b, false, arena_);
    return compare_(left, 0, right, 0, collation_);
  }

 private:
  Oid type_;
  Arena* arena_;
  CompareFn compare_ = nullptr;
  const Collator* collation_ = nullptr;
};

}  // namespace sluice
