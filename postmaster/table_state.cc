#include "postmaster/table_state.h"

#include "catalog/quote.h"
#include "stream/pgoutput.h"

namespace sluice {
namespace {

// Columns of the answer.
enum { kOid, kPublished, kFiles, kLsn, kColumnCount };

// "oid:file oid:file …"; a file without rows has an e.
std::map<std::string, std::string> ParseFiles(std::string_view text) {
  std::map<std::string, std::string> files;
  while (!text.empty()) {
    std::string_view entry = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    size_t colon = entry.find(':');
    if (colon != entry.npos) files.emplace(entry.substr(0, colon), entry.substr(colon + 1));
  }
  return files;
}

std::string_view NumberOf(std::string_view file) {
  return file.substr(0, file.find('e'));
}

}  // namespace

std::string TableState::Text() const {
  std::string text = oid;
  for (const auto& [part, file] : files) text += fmt::format(" {}:{}", part, file);
  return text;
}

TableState TableState::Parse(std::string_view text) {
  TableState state;
  state.oid = text.substr(0, text.find(' '));
  state.files = ParseFiles(text);
  return state;
}

bool TableState::HasOtherRows(const TableState& before, bool truncated) const {
  // TRUNCATE of a table that has its rows itself is in the stream, and gives it another file.
  if (truncated && files.contains(oid) && before.files.contains(oid)) return false;
  for (const auto& [part, file] : files) {
    auto was = before.files.find(part);
    // One that is made as a partition is empty; rows that come then are in the stream.
    bool other =
        was == before.files.end() ? !file.ends_with('e') : NumberOf(was->second) != NumberOf(file);
    if (other) return true;
  }
  for (const auto& [part, file] : before.files)
    if (!files.contains(part)) return true;
  return false;
}

std::string TableStateSql(std::span<const Relation* const> leaves, std::string_view publication) {
  std::string names;
  for (size_t i = 0; i < leaves.size(); i++)
    names += fmt::format("{}({}, {}, {})", i == 0 ? "" : ", ", i,
                         QuoteLiteral(leaves[i]->remote_schema()),
                         QuoteLiteral(leaves[i]->remote_table()));
  return fmt::format(
      "SELECT c.oid, EXISTS (SELECT FROM pg_catalog.pg_publication_rel r "
      "JOIN pg_catalog.pg_publication b ON b.oid = r.prpubid "
      "WHERE r.prrelid = c.oid AND b.pubname = {}), "
      "(SELECT pg_catalog.string_agg(p.oid || ':' || pg_catalog.pg_relation_filenode(p.oid) || "
      "CASE WHEN pg_catalog.pg_relation_size(p.oid) = 0 THEN 'e' ELSE '' END, ' ') "
      "FROM pg_catalog.pg_class p WHERE p.relkind = 'r' AND (p.oid = c.oid OR p.oid IN "
      "(SELECT relid FROM pg_catalog.pg_partition_tree(c.oid)))), "
      "pg_catalog.pg_current_wal_insert_lsn() "
      "FROM (VALUES {}) AS w(place, schema, name) "
      "LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = w.schema "
      "LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.name "
      "ORDER BY w.place",
      QuoteLiteral(std::string(publication)), names);
}

TableState ReadTableState(const RemoteRow& row, uint64_t* lsn) {
  if (row.size() != kColumnCount || !row[kLsn])
    Throw(sqlstate::kProtocolViolation, "malformed state of a table");
  TableState state;
  state.oid = row[kOid].value_or("");
  state.published = row[kPublished] == "t";
  state.files = ParseFiles(row[kFiles].value_or(""));
  *lsn = std::max<uint64_t>(*lsn, ParseLsn(*row[kLsn]));
  return state;
}

}  // namespace sluice
