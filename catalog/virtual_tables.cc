#include "catalog/virtual_tables.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <vector>

#include "catalog/system_catalog.h"
#include "catalog/system_views.h"
#include "common/assert.h"

namespace sluice {
namespace {

// Options without those that are secret.
constexpr VirtualColumn kServers[] = {{"name", kTextOid},
                                      {"wrapper", kTextOid},
                                      {"options", kTextOid},
                                      {"owner", kTextOid},
                                      {"tables", kInt8Oid}};

constexpr VirtualColumn kTables[] = {
    {"schema", kTextOid},      {"name", kTextOid},          {"kind", kTextOid},
    {"parent", kTextOid},      {"partition_key", kTextOid}, {"server", kTextOid},
    {"remote_name", kTextOid}, {"columns", kInt4Oid},       {"rows", kFloat8Oid}};

constexpr VirtualColumn kStreams[] = {
    {"pid", kInt4Oid},       {"server", kTextOid},         {"kind", kTextOid},
    {"state", kTextOid},     {"rows", kInt8Oid},           {"bytes", kInt8Oid},
    {"chunks", kInt8Oid},    {"chunks_in_use", kInt4Oid},  {"chunk_quota", kInt4Oid},
    {"held_back", kBoolOid}, {"held_back_ms", kFloat8Oid}, {"first_row_ms", kFloat8Oid},
    {"age_ms", kFloat8Oid},  {"wait", kTextOid},           {"query", kTextOid}};

constexpr VirtualColumn kJobs[] = {
    {"id", kInt8Oid},
    {"view", kTextOid},
    {"statement", kTextOid},
    {"state", kTextOid},
    {"waits_for", kTextOid},
    {"rows_done", kInt8Oid},
    {"rows_estimated", kInt8Oid},
    {"shards", kTextOid},  // "shard1 500/1000, …": rows read of the tables
    {"percent", kFloat8Oid},
    {"rows_per_second", kFloat8Oid},
    {"eta", kIntervalOid},
    {"started_at", kTimestamptzOid},
    {"error", kTextOid}};

// One row a server whose changes are followed.
constexpr VirtualColumn kShards[] = {{"server", kTextOid},       {"streaming", kBoolOid},
                                     {"applied_lsn", kTextOid},  {"confirmed_lsn", kTextOid},
                                     {"server_lsn", kTextOid},   {"lag_bytes", kInt8Oid},
                                     {"lag_seconds", kFloat8Oid}};

// One row a transaction over several servers and server.
constexpr VirtualColumn kTransactions[] = {{"gid", kTextOid},    {"state", kTextOid},
                                           {"server", kTextOid}, {"server_state", kTextOid},
                                           {"pid", kInt4Oid},    {"started", kTimestamptzOid}};

constexpr VirtualColumn kStatus[] = {{"name", kTextOid}, {"value", kTextOid}};

constexpr VirtualColumn kVerify[] = {
    {"row", kTextOid}, {"stored", kInt8Oid}, {"expected", kInt8Oid}};

// Their oids follow kSluiceSchemaOid, in this order: new ones come last.
constexpr VirtualTable kSluiceViews[] = {{15001, "sluice", "servers", kServers, 'v'},
                                         {15002, "sluice", "tables", kTables, 'v'},
                                         {15003, "sluice", "streams", kStreams, 'v'},
                                         {15004, "sluice", "status", kStatus, 'v'},
                                         {15005, "sluice", "jobs", kJobs, 'v'},
                                         {15006, "sluice", "shards", kShards, 'v'},
                                         {15007, "sluice", "transactions", kTransactions, 'v'}};

struct Loaded {
  std::vector<VirtualTable> tables;
  std::vector<VirtualColumn> columns;  // reserved in full: `tables` points into it
  std::unordered_map<std::string_view, std::vector<const VirtualTable*>> by_name;
};

Loaded* loaded = nullptr;

Oid Number(std::string_view text) {
  Oid value = 0;
  auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  SLUICE_ASSERT(parsed.ec == std::errc());
  return value;
}

void LoadColumns(Loaded* to) {
  constexpr size_t kRelation = 0, kName = 1, kType = 2;  // pg_attribute's columns
  std::unordered_map<Oid, std::vector<VirtualColumn>> columns;
  size_t count = 0;
  for (SystemRows rows = SystemRowsOf("pg_attribute"); rows.Next(); count++)
    columns[Number(rows.Raw(kRelation))].push_back({rows.Raw(kName), Number(rows.Raw(kType))});
  to->columns.reserve(count);
  for (VirtualTable& table : to->tables) {
    if (!table.columns.empty()) continue;
    const auto& own = columns[table.oid];
    to->columns.insert(to->columns.end(), own.begin(), own.end());
    table.columns = std::span(to->columns).last(own.size());
  }
}

}  // namespace

std::span<const VirtualColumn> VerifyColumns() {
  return kVerify;
}

void LoadVirtualTables() {
  if (loaded != nullptr) return;
  constexpr size_t kOid = 0, kName = 1, kSchema = 2, kKind = 16;  // pg_class's columns
  loaded = new Loaded;                                            // lives as long as the process
  loaded->tables.assign(std::begin(kSluiceViews), std::end(kSluiceViews));
  for (SystemRows rows = SystemRowsOf("pg_class"); rows.Next();) {
    VirtualTable table{};
    table.oid = Number(rows.Raw(kOid));
    bool own = Number(rows.Raw(kSchema)) == kPgCatalogSchemaOid;
    table.schema = own ? "pg_catalog" : "information_schema";
    table.name = rows.Raw(kName);
    table.kind = rows.Raw(kKind)[0];
    table.sql = SystemViewSql(table.schema, table.name);
    loaded->tables.push_back(table);
  }
  LoadColumns(loaded);
  for (const VirtualTable& table : loaded->tables) loaded->by_name[table.name].push_back(&table);
}

std::span<const VirtualTable> AllVirtualTables() {
  SLUICE_ASSERT(loaded != nullptr);
  return loaded->tables;
}

const VirtualTable* FindVirtualTable(std::string_view schema, std::string_view name) {
  SLUICE_ASSERT(loaded != nullptr);
  auto found = loaded->by_name.find(name);
  if (found == loaded->by_name.end()) return nullptr;
  for (const VirtualTable* table : found->second)
    if (table->schema == (schema.empty() ? "pg_catalog" : schema)) return table;
  return nullptr;
}

const VirtualTable* FindVirtualTable(Oid oid) {
  for (const VirtualTable& table : AllVirtualTables())
    if (table.oid == oid) return &table;
  return nullptr;
}

}  // namespace sluice
