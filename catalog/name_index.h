// Schema and name → relation, sequence or index. A part of a Catalog that is current; a copy starts
// without one, since it may be changed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "types/oid.h"

namespace sluice {

class Catalog;

class NameIndex {
 public:
  enum Kind : uint8_t { kNothing, kRelation, kSequence, kIndex };
  struct Entry {
    Kind kind = kNothing;
    Oid oid = kInvalidOid;
    Oid table = kInvalidOid;  // of an index
  };

  NameIndex() = default;
  NameIndex(const NameIndex&) {}
  NameIndex& operator=(const NameIndex&) {
    built_ = false;
    entries_.clear();
    return *this;
  }

  bool built() const { return built_; }
  void Build(const Catalog& catalog);
  Entry Find(std::string_view schema, std::string_view name) const;

 private:
  void Add(std::string_view schema, std::string_view name, Entry entry);

  bool built_ = false;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace sluice
