#include "catalog/name_index.h"

#include "catalog/catalog.h"

namespace sluice {

namespace {

// No name has a zero byte.
std::string KeyOf(std::string_view schema, std::string_view name) {
  std::string key(schema);
  key += '\0';
  key += name;
  return key;
}

}  // namespace

void NameIndex::Add(std::string_view schema, std::string_view name, Entry entry) {
  entries_.emplace(KeyOf(schema, name), entry);
}

void NameIndex::Build(const Catalog& catalog) {
  entries_.clear();
  for (const auto& [oid, relation] : catalog.relations) {
    if (relation.hidden) continue;
    Add(relation.schema, relation.name, {kRelation, oid, kInvalidOid});
    for (const Index& index : relation.indexes)
      Add(relation.schema, index.name, {kIndex, index.oid, oid});
  }
  for (const auto& [oid, sequence] : catalog.sequences)
    Add(sequence.schema, sequence.name, {kSequence, oid, kInvalidOid});
  built_ = true;
}

NameIndex::Entry NameIndex::Find(std::string_view schema, std::string_view name) const {
  auto found = entries_.find(KeyOf(schema, name));
  return found == entries_.end() ? Entry{} : found->second;
}

}  // namespace sluice
