// Catalog objects as JSON records, for catalog/store.cc: one record an object, under a key of its
// own.
#pragma once

#include <map>
#include <string>

#include "catalog/catalog.h"

namespace sluice {

// Keys: "meta", "mapping/NUMBER", and "KIND/OID" with the kinds server, relation, sequence, schema,
// role, type, collation and comment. Throws 22021 where a text is no valid UTF-8.
std::map<std::string, std::string> CatalogToRecords(const Catalog& catalog);
// Throws XX001 for records that this build cannot read.
Catalog CatalogFromRecords(const std::map<std::string, std::string>& records);

}  // namespace sluice
