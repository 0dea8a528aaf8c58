// pg_type, pg_enum, pg_collation: what users made, or shards reported.
#include "postmaster/pg_catalog.h"
#include "postmaster/running_query.h"

namespace sluice {
namespace {

std::string ProcOid(std::string_view name) {
  auto procs = FindProcs(name);
  return std::to_string(procs.empty() ? kInvalidOid : procs[0]->oid);
}

void ScanType(const QuerySession& session, const VirtualRowSink& sink) {
  const Catalog& catalog = *session.catalog;
  for (const auto& [oid, type] : catalog.types) {
    const TypeInfo& info = type.info;
    bool is_array = info.element != kInvalidOid, is_enum = info.kind == 'e';
    std::string kind = is_array ? "array" : is_enum ? "enum" : "text";
    CatalogRow row("pg_type");
    row.Set("oid", oid).Set("typname", CatalogValue(type.name));
    row.Set("typnamespace", SchemaOid(catalog, type.schema)).Set("typowner", kBootstrapRoleOid);
    row.Set("typlen", info.length).Set("typbyval", is_enum);
    row.Set("typtype", CatalogValue(std::string(1, info.kind)));
    row.Set("typcategory", CatalogValue(std::string(1, info.category)));
    row.Set("typispreferred", info.preferred).Set("typisdefined", true).Set("typdelim", ",");
    row.Set({"typrelid", "typmodin", "typmodout", "typanalyze", "typndims"}, "0");
    row.Set("typsubscript",
            CatalogValue(is_array ? ProcOid("array_subscript_handler") : std::string("0")));
    row.Set("typelem", info.element).Set("typarray", info.array);
    for (const char* way : {"in", "out", "recv", "send"}) {
      std::string_view column = way == std::string_view("in")     ? "typinput"
                                : way == std::string_view("out")  ? "typoutput"
                                : way == std::string_view("recv") ? "typreceive"
                                                                  : "typsend";
      bool joined = kind == "text";  // textin, but enum_in
      row.Set(column, CatalogValue(ProcOid(kind + (joined ? "" : "_") + way)));
    }
    row.Set("typalign", "i").Set("typstorage", is_enum ? "p" : "x").Set("typnotnull", false);
    row.Set("typbasetype", info.base).Set("typtypmod", -1).Set("typcollation", info.collation);
    sink(row.values());
  }
}

// Clients sort labels by oid, as those of one CREATE TYPE ascend.
Oid LabelOid(Oid type, size_t index) {
  constexpr Oid kFirst = 0xc0000000, kTypeMask = 0x3ffff;
  return kFirst | (type & kTypeMask) << 12 | static_cast<Oid>(index & 0xfff);
}

void ScanEnum(const QuerySession& session, const VirtualRowSink& sink) {
  for (const auto& [oid, type] : session.catalog->types) {
    for (size_t i = 0; i < type.enum_labels.size(); i++) {
      const std::string& label = type.enum_labels[i];
      CatalogRow row("pg_enum");
      row.Set("oid", LabelOid(oid, i)).Set("enumtypid", oid);
      row.Set("enumsortorder", i + 1).Set("enumlabel", CatalogValue(label));
      sink(row.values());
    }
  }
}

void ScanCollation(const QuerySession& session, const VirtualRowSink& sink) {
  constexpr int kUtf8 = 6, kAnyEncoding = -1;
  for (const auto& [oid, collation] : session.catalog->collations) {
    if (oid == kDefaultCollationOid) continue;  // is among those that are always there
    bool icu = collation.provider == 'i';
    CatalogValue locale(collation.locale);
    CatalogRow row("pg_collation");
    row.Set("oid", oid).Set("collname", CatalogValue(collation.name));
    row.Set("collnamespace", SchemaOid(*session.catalog, collation.schema));
    row.Set("collowner", kBootstrapRoleOid).Set("collencoding", icu ? kAnyEncoding : kUtf8);
    row.Set("collprovider", CatalogValue(std::string(1, collation.provider)));
    row.Set("collisdeterministic", collation.deterministic);
    if (icu)
      row.Set("colliculocale", locale);
    else
      row.Set("collcollate", locale).Set("collctype", locale);
    if (!collation.version.empty()) row.Set("collversion", CatalogValue(collation.version));
    sink(row.values());
  }
}

}  // namespace

CatalogScan FindTypeScan(std::string_view table) {
  if (table == "pg_type") return ScanType;
  if (table == "pg_enum") return ScanEnum;
  if (table == "pg_collation") return ScanCollation;
  return nullptr;
}

}  // namespace sluice
