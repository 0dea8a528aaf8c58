// What attach_table reads from the shards and compares: the table's shape, and where rows lie.
#include "catalog/partition.h"
#include "postmaster/attach.h"
#include "types/codec.h"

namespace sluice {

namespace {

constexpr int kSampleRows = 1000;       // keys a shard whose hash is checked
constexpr int kListValuesMax = 10'000;  // values of the expression on one shard

std::string ServerName(const Ddl& ddl, Oid oid) {
  return ddl.catalog.servers.at(oid).name;
}

std::string TableName(const AttachRequest& request) {
  return fmt::format("\"{}.{}\"", request.schema, request.name);
}

const RemoteColumn* FindColumn(const RemoteTable& table, std::string_view name) {
  for (const RemoteColumn& column : table.columns)
    if (column.name == name) return &column;
  return nullptr;
}

std::string CollationText(const RemoteColumn& column) {
  return column.collation ? column.collation->name + " " + column.collation->locale : "none";
}

struct Side {
  Oid server;
  const RemoteTable& table;
};

[[noreturn]] void ThrowMissing(const Ddl& ddl, const AttachRequest& request,
                               std::string_view column, Oid with, Oid without) {
  Throw(sqlstate::kDatatypeMismatch,
        "table {} differs between servers: column \"{}\" exists on \"{}\" but not on \"{}\"",
        TableName(request), column, ServerName(ddl, with), ServerName(ddl, without));
}

void CompareColumns(const Ddl& ddl, const AttachRequest& request, const Side& a, const Side& b) {
  for (const RemoteColumn& column : b.table.columns)
    if (FindColumn(a.table, column.name) == nullptr)
      ThrowMissing(ddl, request, column.name, b.server, a.server);
  for (const RemoteColumn& column : a.table.columns) {
    const RemoteColumn* other = FindColumn(b.table, column.name);
    if (other == nullptr) ThrowMissing(ddl, request, column.name, a.server, b.server);
    bool same_type = column.builtin_type == other->builtin_type &&
                     column.type_schema == other->type_schema &&
                     column.type_name == other->type_name && column.is_array == other->is_array &&
                     column.type_text == other->type_text;
    if (!same_type)
      throw QueryError(MakeError(
          sqlstate::kDatatypeMismatch,
          "table {} differs between servers: column \"{}\" is {} on \"{}\" but {} on \"{}\"",
          TableName(request), column.name, column.type_text, ServerName(ddl, a.server),
          other->type_text, ServerName(ddl, b.server)));
    if (CollationText(column) != CollationText(*other))
      Throw(sqlstate::kCollationMismatch,
            "table {} differs between servers: the collation of column \"{}\" is {} on \"{}\" but "
            "{} on "
            "\"{}\"",
            TableName(request), column.name, CollationText(column), ServerName(ddl, a.server),
            CollationText(*other), ServerName(ddl, b.server));
  }
}

std::string KeyText(const RemoteTable& table) {
  std::string text;
  for (const std::string& column : table.primary_key) text += (text.empty() ? "" : ", ") + column;
  return text.empty() ? "none" : "(" + text + ")";
}

void CompareKeys(const Ddl& ddl, const AttachRequest& request, const Side& a, const Side& b) {
  if (a.table.primary_key == b.table.primary_key) return;
  Throw(sqlstate::kDatatypeMismatch,
        "table {} differs between servers: the primary key is {} on \"{}\" but {} on \"{}\"",
        TableName(request), KeyText(a.table), ServerName(ddl, a.server), KeyText(b.table),
        ServerName(ddl, b.server));
}

// Transactions over several servers must be able to prepare there.
void WarnIfUnpreparable(Ddl& ddl, const std::vector<Oid>& servers) {
  if (servers.size() < 2) return;
  std::vector<RemoteQuery> queries;
  for (Oid server : servers)
    queries.push_back({server, "SELECT pg_catalog.current_setting('max_prepared_transactions')"});
  std::vector<RemoteRows> rows = ddl.Remote(queries);
  for (size_t i = 0; i < servers.size(); i++) {
    if (rows[i].rows.at(0).at(0).value_or("") != "0") continue;
    Error warning =
        MakeError(sqlstate::kSuccess, "prepared transactions are disabled on server \"{}\"",
                  ServerName(ddl, servers[i]));
    warning.Detail("Transactions that write several servers will fail at COMMIT.");
    ddl.Warning(warning.Hint("Set max_prepared_transactions to a nonzero value there."));
  }
}

}  // namespace

std::vector<RemoteTable> ReadSameTables(Ddl& ddl, const AttachRequest& request) {
  std::vector<std::string> names = {request.name};
  auto found = ReadRemoteTables(ddl, request.servers, request.schema, &names);
  std::vector<RemoteTable> tables;
  for (size_t i = 0; i < found.size(); i++) {
    if (found[i].empty())
      Throw(sqlstate::kUndefinedTable, "table {} does not exist on server \"{}\"",
            TableName(request), ServerName(ddl, request.servers[i]));
    tables.push_back(std::move(found[i][0]));
  }
  for (size_t i = 1; i < tables.size(); i++) {
    Side first{request.servers[0], tables[0]}, other{request.servers[i], tables[i]};
    CompareColumns(ddl, request, first, other);
    CompareKeys(ddl, request, first, other);
  }
  WarnIfUnpreparable(ddl, request.servers);
  return tables;
}

namespace {

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    size_t end = text.find(separator);
    std::string_view part = text.substr(0, end);
    size_t first = part.find_first_not_of(" \t\n");
    size_t last = part.find_last_not_of(" \t\n");
    parts.emplace_back(first == part.npos ? "" : part.substr(first, last - first + 1));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

void CheckCount(const AttachRequest& request, size_t given, const char* what) {
  if (given != request.servers.size())
    Throw(sqlstate::kInvalidParameterValue, "the rule has {} {} for {} servers", given, what,
          request.servers.size());
}

bool IsWord(const std::string& text, std::string_view word) {
  std::string lower = text;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return lower == word;
}

std::string RemoteName(const AttachRequest& request) {
  return QuoteQualified(request.schema, request.name);
}

// SELECT … of the key's expressions on every server.
std::vector<RemoteRows> ReadKeys(Ddl& ddl, const AttachRequest& request, std::string_view head,
                                 int limit) {
  std::string list;
  for (const std::string& expression : request.expressions)
    list += (list.empty() ? "" : ", ") + expression;
  std::vector<RemoteQuery> queries;
  for (Oid server : request.servers)
    queries.push_back(
        {server, fmt::format("{} {} FROM {} LIMIT {}", head, list, RemoteName(request), limit)});
  return ddl.Remote(queries);
}

// A claimed hash rule that is not so would lose rows: a sample of each shard's keys must agree.
void CheckHashes(Ddl& ddl, const AttachRequest& request, const Relation& parent) {
  std::vector<RemoteRows> samples = ReadKeys(ddl, request, "SELECT", kSampleRows);
  static const SessionSettings settings;
  for (size_t server = 0; server < samples.size(); server++) {
    for (const RemoteRow& row : samples[server].rows) {
      std::vector<std::optional<std::string_view>> values;
      for (size_t i = 0; i < row.size(); i++) {
        Oid type = parent.key.types[i];
        if (row[i] && !HasBinaryCodec(type)) return;  // never pruned by: see catalog/partition.h
        values.push_back(
            row[i] ? std::optional(ParseText(type, -1, *row[i], *ddl.context.settings, &ddl.arena))
                   : std::nullopt);
      }
      std::optional<uint64_t> hash = HashPartitionKeys(parent.key.types, values);
      if (!hash) return;
      size_t remainder = *hash % samples.size();
      if (remainder != server)
        throw QueryError(MakeError(sqlstate::kInvalidParameterValue,
                                   "rule hash does not hold for table {}", TableName(request))
                             .Detail(fmt::format(
                                 "A row with key {} lies on server \"{}\" but its hash belongs to "
                                 "\"{}\".",
                                 row[0].value_or("NULL"), ServerName(ddl, request.servers[server]),
                                 ServerName(ddl, request.servers[remainder]))));
    }
  }
}

std::vector<PartitionBound> HashBounds(Ddl& ddl, const AttachRequest& request,
                                       const Relation& parent) {
  CheckHashes(ddl, request, parent);
  std::vector<PartitionBound> bounds(request.servers.size());
  for (size_t i = 0; i < bounds.size(); i++) {
    bounds[i].modulus = static_cast<int>(bounds.size());
    bounds[i].remainder = static_cast<int>(i);
  }
  return bounds;
}

std::vector<PartitionBound> GivenListBounds(Ddl& ddl, const AttachRequest& request,
                                            const Relation& parent) {
  std::vector<std::string> lists = Split(request.values, ';');
  CheckCount(request, lists.size(), "lists of values");
  std::vector<PartitionBound> bounds(lists.size());
  for (size_t i = 0; i < lists.size(); i++) {
    bounds[i].is_default = IsWord(lists[i], "default");
    if (bounds[i].is_default) continue;
    for (const std::string& value : Split(lists[i], ',')) {
      if (IsWord(value, "null"))
        bounds[i].list.push_back(std::nullopt);
      else
        bounds[i].list.push_back(CanonicalValue(ddl, parent.key.types[0], value));
    }
    std::sort(bounds[i].list.begin(), bounds[i].list.end());
  }
  return bounds;
}

// The values that the rows have now. Each must be on one server only.
std::vector<PartitionBound> FoundListBounds(Ddl& ddl, const AttachRequest& request,
                                            const Relation& parent) {
  std::vector<RemoteRows> found = ReadKeys(ddl, request, "SELECT DISTINCT", kListValuesMax + 1);
  std::map<std::optional<std::string>, size_t> owner;
  std::vector<PartitionBound> bounds(found.size());
  for (size_t server = 0; server < found.size(); server++) {
    if (found[server].rows.size() > kListValuesMax)
      Throw(sqlstate::kProgramLimitExceeded,
            "the expression has more than {} values on server \"{}\"", kListValuesMax,
            ServerName(ddl, request.servers[server]));
    for (const RemoteRow& row : found[server].rows) {
      std::optional<std::string> value = row[0];
      if (value) value = CanonicalValue(ddl, parent.key.types[0], *value);
      auto [at, added] = owner.emplace(value, server);
      if (!added && at->second != server)
        throw QueryError(
            MakeError(sqlstate::kInvalidParameterValue, "rule list does not hold for table {}",
                      TableName(request))
                .Detail(fmt::format("Rows with value {} lie on servers \"{}\" and \"{}\".",
                                    value.value_or("NULL"),
                                    ServerName(ddl, request.servers[at->second]),
                                    ServerName(ddl, request.servers[server]))));
      bounds[server].list.push_back(std::move(value));
    }
    // In a fixed order: tables that are spread alike have equal bounds.
    std::sort(bounds[server].list.begin(), bounds[server].list.end());
  }
  ddl.Notice(MakeError(sqlstate::kSuccess, "rule list: {} values found on {} servers", owner.size(),
                       found.size())
                 .Hint("Rows with other values that are written to a shard later are not found by "
                       "queries for such "
                       "a value, until the table is attached anew or the rule lists them."));
  return bounds;
}

std::vector<PartitionBound> RangeBounds(Ddl& ddl, const AttachRequest& request,
                                        const Relation& parent) {
  if (parent.key.types.size() != 1) Refuse("rule range over several columns is not supported");
  std::vector<std::string> points = Split(request.values, ',');
  CheckCount(request, points.size() + 1, "ranges");
  std::vector<PartitionBound> bounds(points.size() + 1);
  bounds.front().from.push_back({-1, ""});
  bounds.back().to.push_back({1, ""});
  for (size_t i = 0; i < points.size(); i++) {
    std::string value = CanonicalValue(ddl, parent.key.types[0], points[i]);
    bounds[i].to.push_back({0, value});
    bounds[i + 1].from.push_back({0, value});
  }
  return bounds;
}

}  // namespace

std::vector<PartitionBound> AttachBounds(Ddl& ddl, const AttachRequest& request,
                                         const Relation& parent) {
  switch (parent.key.strategy) {
    case PartitionStrategy::kHash:
      return HashBounds(ddl, request, parent);
    case PartitionStrategy::kRange:
      return RangeBounds(ddl, request, parent);
    default:
      return request.values.empty() ? FoundListBounds(ddl, request, parent)
                                    : GivenListBounds(ddl, request, parent);
  }
}

}  // namespace sluice
