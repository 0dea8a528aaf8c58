// Shared by catalog_json*.cc: reading of fields, and the records of what belongs to tables, of
// sequences, schemas and roles.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "catalog/catalog.h"

namespace sluice {

using Json = nlohmann::json;

// Where the record lacks the field the value keeps its default: fields may be added later.
template <typename T>
void Get(const Json& from, const char* field, T* to) {
  auto found = from.find(field);
  if (found != from.end() && !found->is_null()) found->get_to(*to);
}

template <typename Enum>
void GetEnum(const Json& from, const char* field, Enum* to) {
  int value = static_cast<int>(*to);
  Get(from, field, &value);
  *to = static_cast<Enum>(value);
}

// A text of one letter, or none.
template <typename Letter>
void GetChar(const Json& from, const char* field, Letter* to) {
  std::string text;
  Get(from, field, &text);
  if (!text.empty()) *to = static_cast<Letter>(text[0]);
}

template <typename T>
Json ListToJson(const std::vector<T>& list, Json (*to_json)(const T&)) {
  Json array = Json::array();
  for (const T& item : list) array.push_back(to_json(item));
  return array;
}

template <typename T>
void ListFromJson(const Json& from, const char* field, T (*from_json)(const Json&),
                  std::vector<T>* to) {
  auto found = from.find(field);
  if (found == from.end()) return;
  for (const Json& item : *found) to->push_back(from_json(item));
}

Json AclToJson(const Acl& acl);
void AclFromJson(const Json& from, const char* field, Acl* acl);
Json ConstraintToJson(const Constraint& c);
Constraint ConstraintFromJson(const Json& j);
Json IndexToJson(const Index& i);
Index IndexFromJson(const Json& j);
Json SequenceToJson(const Sequence& s);
Sequence SequenceFromJson(Oid oid, const Json& j);
Json SchemaToJson(const std::string& name, const Schema& s);
std::pair<std::string, Schema> SchemaFromJson(Oid oid, const Json& j);
Json RoleToJson(const Role& r);
Role RoleFromJson(Oid oid, const Json& j);

}  // namespace sluice
