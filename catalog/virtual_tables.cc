#include "catalog/virtual_tables.h"

namespace sluice {

namespace {

constexpr VirtualColumn kActivity[] = {{"datid", kOidOid},
                                       {"datname", kNameOid},
                                       {"pid", kInt4Oid},
                                       {"leader_pid", kInt4Oid},
                                       {"usesysid", kOidOid},
                                       {"usename", kNameOid},
                                       {"application_name", kTextOid},
                                       {"client_addr", kInetOid},
                                       {"client_hostname", kTextOid},
                                       {"client_port", kInt4Oid},
                                       {"backend_start", kTimestamptzOid},
                                       {"xact_start", kTimestamptzOid},
                                       {"query_start", kTimestamptzOid},
                                       {"state_change", kTimestamptzOid},
                                       {"wait_event_type", kTextOid},
                                       {"wait_event", kTextOid},
                                       {"state", kTextOid},
                                       {"backend_xid", kXidOid},
                                       {"backend_xmin", kXidOid},
                                       {"query_id", kInt8Oid},
                                       {"query", kTextOid},
                                       {"backend_type", kTextOid}};

constexpr VirtualColumn kSettings[] = {
    {"name", kTextOid},       {"setting", kTextOid},        {"unit", kTextOid},
    {"category", kTextOid},   {"short_desc", kTextOid},     {"extra_desc", kTextOid},
    {"context", kTextOid},    {"vartype", kTextOid},        {"source", kTextOid},
    {"min_val", kTextOid},    {"max_val", kTextOid},        {"enumvals", kTextArrayOid},
    {"boot_val", kTextOid},   {"reset_val", kTextOid},      {"sourcefile", kTextOid},
    {"sourceline", kInt4Oid}, {"pending_restart", kBoolOid}};

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

constexpr VirtualColumn kStreams[] = {{"pid", kInt4Oid},       {"server", kTextOid},
                                      {"kind", kTextOid},      {"state", kTextOid},
                                      {"rows", kInt8Oid},      {"bytes", kInt8Oid},
                                      {"chunks", kInt8Oid},    {"chunks_in_use", kInt4Oid},
                                      {"held_back", kBoolOid}, {"held_back_ms", kFloat8Oid},
                                      {"query", kTextOid}};

constexpr VirtualColumn kJobs[] = {
    {"id", kInt8Oid},        {"view", kTextOid},      {"statement", kTextOid}, {"state", kTextOid},
    {"waits_for", kTextOid}, {"rows_done", kInt8Oid}, {"error", kTextOid}};

// One row a server whose changes are followed.
constexpr VirtualColumn kShards[] = {{"server", kTextOid},       {"streaming", kBoolOid},
                                     {"applied_lsn", kTextOid},  {"confirmed_lsn", kTextOid},
                                     {"server_lsn", kTextOid},   {"lag_bytes", kInt8Oid},
                                     {"lag_seconds", kFloat8Oid}};

constexpr VirtualColumn kStatus[] = {{"name", kTextOid}, {"value", kTextOid}};

constexpr VirtualTable kAll[] = {{"pg_catalog", "pg_stat_activity", kActivity},
                                 {"pg_catalog", "pg_settings", kSettings},
                                 {"sluice", "servers", kServers},
                                 {"sluice", "tables", kTables},
                                 {"sluice", "streams", kStreams},
                                 {"sluice", "jobs", kJobs},
                                 {"sluice", "shards", kShards},
                                 {"sluice", "status", kStatus}};

}  // namespace

std::span<const VirtualTable> AllVirtualTables() {
  return kAll;
}

const VirtualTable* FindVirtualTable(std::string_view schema, std::string_view name) {
  for (const VirtualTable& table : kAll)
    if (table.name == name && table.schema == (schema.empty() ? "pg_catalog" : schema))
      return &table;
  return nullptr;
}

}  // namespace sluice
