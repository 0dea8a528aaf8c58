#include "postmaster/completion.h"

#include <pg_query.h>
#include <pg_query/pg_query.pb-c.h>

#include <set>

#include "catalog/catalog.h"
#include "catalog/quote.h"
#include "catalog/virtual_tables.h"
#include "common/bytes.h"
#include "executor/side_stream.h"
#include "optimizer/deparse.h"
#include "postmaster/completion_text.h"
#include "postmaster/remote_query.h"
#include "shm/query_arena.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

constexpr size_t kTablesMax = 200;

bool IsSelect(const PgQuery__Node& node) { return node.node_case == PG_QUERY__NODE__NODE_SELECT_STMT; }

// The text of a statement that is part of another (EXPLAIN's, PREPARE's, DECLARE's).
std::string DeparsePart(const PgQuery__Node& node) {
  PgQuery__RawStmt raw = PG_QUERY__RAW_STMT__INIT;
  raw.stmt = const_cast<PgQuery__Node*>(&node);
  PgQuery__RawStmt* statements[] = {&raw};
  PgQuery__ParseResult tree = PG_QUERY__PARSE_RESULT__INIT;
  tree.version = PG_VERSION_NUM;
  tree.n_stmts = 1;
  tree.stmts = statements;
  std::string packed(pg_query__parse_result__get_packed_size(&tree), '\0');
  pg_query__parse_result__pack(&tree, reinterpret_cast<uint8_t*>(packed.data()));
  PgQueryDeparseResult deparsed = pg_query_deparse_protobuf({packed.size(), packed.data()});
  std::string text = deparsed.query == nullptr ? "" : deparsed.query;
  bool failed = deparsed.error != nullptr;
  pg_query_free_deparse_result(deparsed);
  if (failed || text.empty()) Refuse("this statement cannot be completed on a shard");
  return text;
}

// One pinned connection with the temporary tables in place; given back with everything on it undone.
class ShardSession {
 public:
  ShardSession(const QuerySession& session, Oid server)
      : connection_(ConnectionSpecFor(session, server, &arena_)),
        pin_(shared_memory->next_pin.fetch_add(1, std::memory_order_relaxed)) {}
  ~ShardSession() { SubmitRequest({RequestKind::kUnpin, nullptr, pin_, 0}); }

  void Run(const std::string& sql) {
    SideStream({StreamKind::kSimple, connection_, arena_.CopyString(sql), pin_}, &arena_)
        .Finish(WaitEvent::kAppendReady);
  }

  std::string Describe(const std::string& sql, std::span<const StreamParam> params) {
    SideStream stream({StreamKind::kDescribe, connection_, arena_.CopyString(sql), pin_,
                       arena_.CopyArray(params)},
                      &arena_);
    std::string messages;
    Slice slice;
    while (stream.Next(&slice, WaitEvent::kAppendReady)) {
      if (slice.kind == SliceKind::kDescription) messages.append(slice.data, slice.size_bytes);
      ReleaseSlice(slice);
    }
    return messages;
  }

 private:
  SharedBlocks blocks_;
  Arena arena_{blocks_, kExtentBytes};
  const ConnectionSpec* connection_;
  uint64_t pin_;
};

// ParameterDescription and RowDescription.
struct Description {
  struct Field {
    std::string name;
    Oid type;
    int32_t typmod;
  };
  std::vector<Oid> params;
  std::vector<Field> fields;
};

[[noreturn]] void ThrowMalformed() {
  Throw(sqlstate::kProtocolViolation, "malformed description from a server");
}

Description ReadDescription(std::string_view messages) {
  Description description;
  while (!messages.empty()) {
    if (messages.size() < 5) ThrowMalformed();
    char type = messages[0];
    uint32_t length = LoadBig<uint32_t>(messages.data() + 1);
    if (length < 4 || messages.size() < length + 1u) ThrowMalformed();
    std::string_view body = messages.substr(5, length - 4);
    messages.remove_prefix(length + 1u);
    auto take = [&](size_t bytes) {
      if (body.size() < bytes) ThrowMalformed();
      const char* at = body.data();
      body.remove_prefix(bytes);
      return at;
    };
    if (type != 't' && type != 'T') continue;
    int count = LoadBig<uint16_t>(take(2));
    for (int i = 0; i < count; i++) {
      if (type == 't') {
        description.params.push_back(LoadBig<uint32_t>(take(4)));
        continue;
      }
      size_t end = body.find('\0');
      if (end == body.npos) ThrowMalformed();
      Description::Field field;
      field.name = std::string(take(end + 1), end);
      take(6);
      field.type = LoadBig<uint32_t>(take(4));
      take(2);
      field.typmod = static_cast<int32_t>(LoadBig<uint32_t>(take(4)));
      take(2);
      description.fields.push_back(std::move(field));
    }
  }
  return description;
}

class CompletionBuilder {
 public:
  CompletionBuilder(const QuerySession& session, const std::vector<std::string>& search_path,
                    const Error& error)
      : session_(session), catalog_(*session.catalog), search_path_(search_path), error_(error) {}

  // Rewrites `text` (of `node`, whose locations count from `offset` bytes before it) to read temporary tables.
  TextRewrite Rewrite(const PgQuery__Node& node, std::string_view text, int offset) {
    StatementReferences references = FindReferences(node);
    if (!references.obstacle.empty()) GiveUp();
    TextRewrite rewrite(text, offset);
    std::set<int> spliced;
    for (const TableReference& table : references.tables) {
      const std::string& name = TemporaryName(table);
      int parts = table.schema.empty() ? 1 : 2, start = 0;
      if (parts == 1 && name == table.name) continue;  // pg_temp comes first in the search path
      int end = rewrite.IdentifiersEnd(table.location, parts, 1, &start);
      if (end < 0) GiveUp();
      std::string with = "pg_temp." + QuoteIdentifier(name);
      if (name != table.name && !table.has_alias) with += " AS " + QuoteIdentifier(table.name);
      if (spliced.insert(table.location).second) rewrite.Replace(table.location, end - table.location, with);
    }
    for (const QualifiedColumn& column : references.qualified_columns) {
      if (!IsKnown(column.schema, column.table)) continue;  // a composite column's field, maybe
      int start = 0;
      if (rewrite.IdentifiersEnd(column.location, 2, 1, &start) < 0) GiveUp();
      if (spliced.insert(column.location).second)
        rewrite.Replace(column.location, start - column.location, "");
    }
    all_columns_ = all_columns_ || references.all_columns;
    column_names_.insert(references.column_names.begin(), references.column_names.end());
    single_names_.insert(references.single_names.begin(), references.single_names.end());
    range_names_.insert(references.range_names.begin(), references.range_names.end());
    return rewrite;
  }

  // After the rewrites: which server, what it has to run first, what is copied.
  void Fill(CompletionQuery* query, bool primary_keys) {
    CompletionRequest& request = query->request;
    request.server = ChooseServer();
    request.setup = {"BEGIN", "SET LOCAL search_path = " + SearchPathSql()};
    request.tables.clear();
    bool all = all_columns_ || HasWholeRows();
    for (const Source& source : sources_) {
      request.setup.push_back(CreateTableSql(source, primary_keys));
      request.tables.push_back(MakeTable(query, source, all));
    }
    request.setup.insert(request.setup.end(), views_.begin(), views_.end());
  }

 private:
  struct Source {
    const Relation* relation;  // or:
    const VirtualTable* view;
    std::string name;  // the temporary table's
  };
  struct SourceColumn {
    std::string name;
    Oid type;
    int32_t typmod;
    Oid collation;
  };

  [[noreturn]] void GiveUp() const { throw QueryError(error_); }

  std::vector<SourceColumn> ColumnsOf(const Source& source) const {
    std::vector<SourceColumn> columns;
    if (source.relation != nullptr) {
      for (const ColumnInfo& c : source.relation->columns)
        columns.push_back({c.name, c.type, c.typmod, c.collation});
    } else {
      for (const VirtualColumn& c : source.view->columns)
        columns.push_back({std::string(c.name), c.type, -1, kInvalidOid});
    }
    return columns;
  }

  const Relation* Find(const std::string& schema, const std::string& name) const {
    return schema.empty() ? catalog_.FindRelation(search_path_, name) : catalog_.FindRelation(schema, name);
  }

  bool IsKnown(const std::string& schema, const std::string& name) const {
    return FindVirtualTable(schema, name) != nullptr || Find(schema, name) != nullptr;
  }

  const std::string& TemporaryName(const TableReference& table) {
    const VirtualTable* view = FindVirtualTable(table.schema, table.name);
    const Relation* relation = view == nullptr ? Find(table.schema, table.name) : nullptr;
    if (view == nullptr && relation == nullptr) GiveUp();
    if (relation != nullptr && table.only && relation->kind != RelationKind::kForeignTable &&
        relation->kind != RelationKind::kView)
      GiveUp();
    const void* key = view != nullptr ? static_cast<const void*>(view) : relation;
    auto found = names_.find(key);
    if (found != names_.end()) return found->second;
    if (names_.size() >= kTablesMax) GiveUp();
    std::string name = table.name;
    while (!taken_.insert(name).second) name += fmt::format("_{}", taken_.size());
    std::string& kept = names_[key] = name;
    if (relation != nullptr && relation->kind == RelationKind::kView) AddView(*relation, name);
    else sources_.push_back({relation, view, name});
    return kept;
  }

  void AddView(const Relation& view, const std::string& name) {
    ParsedSql parsed = ParseSql(view.view_sql);
    const RawStatement& raw = parsed.statements().at(0);
    std::string body = Rewrite(*raw.node, raw.text, raw.location).Result();
    std::string columns;
    for (const ColumnInfo& column : view.columns)
      columns += (columns.empty() ? "" : ", ") + QuoteIdentifier(column.name);
    // A view's columns are used by position: none of its tables' may be missing.
    all_columns_ = true;
    views_.push_back("CREATE TEMPORARY VIEW " + QuoteIdentifier(name) + " (" + columns + ") AS " + body);
  }

  bool HasWholeRows() const {
    return std::ranges::any_of(single_names_, [&](const std::string& name) { return range_names_.contains(name); });
  }

  Oid ChooseServer() const {
    auto usable = [&](const Server& server) {
      return server.wrapper == "postgres_fdw" && catalog_.FindUserMapping(server.oid, session_.user) != nullptr;
    };
    // One that has a table of the statement has its types too.
    for (const Source& source : sources_) {
      if (source.relation == nullptr) continue;
      for (const Relation* leaf : catalog_.Leaves(*source.relation)) {
        auto server = catalog_.servers.find(leaf->server);
        if (server != catalog_.servers.end() && usable(server->second)) return server->first;
      }
    }
    for (const auto& [oid, server] : catalog_.servers)
      if (usable(server)) return oid;
    GiveUp();
  }

  std::string SearchPathSql() const {
    std::string path = "pg_temp";
    for (const std::string& schema : search_path_) path += ", " + QuoteIdentifier(schema);
    return path;
  }

  std::string CreateTableSql(const Source& source, bool primary_keys) const {
    Deparser types(catalog_, {});
    std::vector<SourceColumn> columns = ColumnsOf(source);
    std::string sql = "CREATE TEMPORARY TABLE " + QuoteIdentifier(source.name) + " (";
    for (size_t i = 0; i < columns.size(); i++) {
      const SourceColumn& column = columns[i];
      sql += (i == 0 ? "" : ", ") + QuoteIdentifier(column.name) + " " +
             types.TypeName(column.type, column.typmod);
      if (column.collation != kInvalidOid && column.collation != kDefaultCollationOid)
        sql += " COLLATE " + catalog_.CollationSql(column.collation);
    }
    if (primary_keys && source.relation != nullptr && !source.relation->primary_key.empty()) {
      sql += ", PRIMARY KEY (";
      for (size_t i = 0; i < source.relation->primary_key.size(); i++)
        sql += (i == 0 ? "" : ", ") +
               QuoteIdentifier(columns[static_cast<size_t>(source.relation->primary_key[i])].name);
      sql += ")";
    }
    return sql + ")";
  }

  CompletionTable MakeTable(CompletionQuery* query, const Source& source, bool all) const {
    CompletionTable table;
    table.relation = source.relation;
    if (source.view != nullptr) table.virtual_name = source.view->name;
    std::vector<SourceColumn> columns = ColumnsOf(source);
    std::string list;
    for (size_t i = 0; i < columns.size(); i++) {
      const SourceColumn& column = columns[i];
      std::string_view name = query->names.emplace_back(column.name);
      table.types.push_back({name, column.type, column.typmod, column.collation});
      if (!all && !column_names_.contains(column.name)) continue;
      table.columns.push_back(static_cast<int>(i));
    }
    if (table.columns.empty()) table.columns.push_back(0);  // for the number of rows
    for (int column : table.columns)
      list += (list.empty() ? "" : ", ") + QuoteIdentifier(columns[static_cast<size_t>(column)].name);
    table.copy_sql = "COPY pg_temp." + QuoteIdentifier(source.name) + " (" + list + ") FROM STDIN (FORMAT binary)";
    return table;
  }

  const QuerySession& session_;
  const Catalog& catalog_;
  const std::vector<std::string>& search_path_;
  const Error& error_;
  std::map<const void*, std::string> names_;
  std::set<std::string> taken_;
  std::vector<Source> sources_;
  std::vector<std::string> views_;  // CREATE TEMPORARY VIEW, those that others use first
  bool all_columns_ = false;
  std::set<std::string> column_names_, single_names_, range_names_;
};

// The shard's oids of types that aren't Postgres's own → ours, by name; text where we don't know the type.
void TranslateTypes(const QuerySession& session, Oid server, const std::vector<Oid*>& types) {
  std::string list;
  for (const Oid* type : types)
    if (*type >= kFirstUserOid) list += (list.empty() ? "" : ", ") + std::to_string(*type);
  if (list.empty()) return;
  RemoteQuery query{server,
                    "SELECT t.oid::pg_catalog.int8, n.nspname, t.typname FROM pg_catalog.pg_type t JOIN "
                    "pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.oid IN (" + list + ")"};
  RemoteRows rows = RunRemoteQueries(*session.catalog, RemoteSessionOf(session), {&query, 1})[0];
  for (Oid* type : types) {
    if (*type < kFirstUserOid) continue;
    Oid ours = kTextOid;
    for (const RemoteRow& row : rows.rows) {
      if (row.size() != 3 || !row[0] || !row[1] || !row[2] || *row[0] != std::to_string(*type)) continue;
      if (const TypeInfo* info = session.catalog->FindTypeByName(*row[1], *row[2])) ours = info->oid;
    }
    *type = ours;
  }
}

std::string Joined(const std::vector<std::string>& statements) {
  std::string sql;
  for (const std::string& statement : statements) sql += statement + "; ";
  return sql;
}

// The shard's word on the statement, its error's position moved into the client's text.
Description Judge(const QuerySession& session, const CompletionRequest& request, const TextRewrite& rewrite,
                  std::string_view whole_text, const std::vector<Oid>& declared_types, const Error& error) {
  ShardSession shard(session, request.server);
  try {
    shard.Run(Joined(request.setup));
  } catch (const QueryError&) {
    throw QueryError(error);  // no temporary tables there: completion is no way
  }
  std::vector<StreamParam> params;
  for (Oid type : declared_types)
    params.push_back({type < kFirstUserOid ? type : kInvalidOid, false, false, {}});
  try {
    return ReadDescription(shard.Describe(request.sql, params));
  } catch (const QueryError& rejected) {
    Error verdict = rejected.error;
    verdict.context.clear();
    if (verdict.position > 0) {
      // Characters of the rewritten text → bytes → bytes of the client's → characters.
      int characters = verdict.position - 1;
      size_t at = 0;
      while (characters > 0 && at < request.sql.size()) {
        at++;
        while (at < request.sql.size() && (request.sql[at] & 0xc0) == 0x80) at++;
        characters--;
      }
      verdict.position = whole_text.empty()
                             ? 0
                             : CharacterPosition(whole_text, rewrite.OriginalOffset(static_cast<int>(at)));
    }
    throw QueryError(verdict);
  }
}

}  // namespace

std::unique_ptr<CompletionQuery> PrepareCompletion(const RawStatement& statement,
                                                   const QuerySession& session,
                                                   const std::vector<std::string>& search_path,
                                                   const std::vector<Oid>& declared_types,
                                                   const Error& error) {
  if (!IsSelect(*statement.node)) throw QueryError(error);
  // EXPLAIN's or PREPARE's query has no text of its own.
  ParsedSql own = ParseSql(statement.text);
  bool is_whole = own.statements().size() == 1 && IsSelect(*own.statements()[0].node);
  std::string part;
  if (!is_whole) {
    part = DeparsePart(*statement.node);
    own = ParseSql(part);
  }
  const RawStatement& raw = own.statements().at(0);
  auto query = std::make_unique<CompletionQuery>();
  query->catalog = session.catalog;
  CompletionBuilder builder(session, search_path, error);
  TextRewrite rewrite = builder.Rewrite(*raw.node, raw.text, raw.location);
  query->request.sql = rewrite.Result();

  std::string_view whole;  // of the client's string, up to this statement's end
  if (is_whole) {
    const char* start = statement.text.data() - statement.location;
    whole = std::string_view(start, static_cast<size_t>(statement.location) + statement.text.size());
  }
  // `rewrite` counts from this statement's start; positions are in the client's string.
  TextRewrite in_whole = rewrite;
  in_whole.Shift(is_whole ? statement.location : 0);
  Description described;
  builder.Fill(query.get(), false);
  try {
    described = Judge(session, query->request, in_whole, whole, declared_types, error);
  } catch (const QueryError& rejected) {
    if (rejected.error.state != sqlstate::kGroupingError) throw;
    // GROUP BY a primary key lets other columns in.
    builder.Fill(query.get(), true);
    described = Judge(session, query->request, in_whole, whole, declared_types, error);
  }
  std::vector<Oid*> types;
  for (Oid& type : described.params) types.push_back(&type);
  for (Description::Field& field : described.fields) types.push_back(&field.type);
  std::vector<Oid> theirs;
  for (const Description::Field& field : described.fields) theirs.push_back(field.type);
  TranslateTypes(session, query->request.server, types);
  query->request.param_types = described.params;
  for (size_t i = 0; i < declared_types.size() && i < described.params.size(); i++)
    if (declared_types[i] >= kFirstUserOid) query->request.param_types[i] = declared_types[i];
  for (size_t i = 0; i < described.fields.size(); i++) {
    const Description::Field& field = described.fields[i];
    query->request.as_text.push_back(theirs[i] >= kFirstUserOid && field.type == kTextOid);
    const TypeInfo* info = FindType(field.type);
    query->request.columns.push_back({query->names.emplace_back(field.name), field.type, field.typmod,
                                      info == nullptr ? kInvalidOid : info->collation});
  }
  return query;
}

std::unique_ptr<RunningQuery> RunCompletion(const QuerySession& session, const CompletionQuery& query,
                                            const QueryOptions& options) {
  PlannerSettings planner = PlannerSettingsOf(*session.settings);
  return std::make_unique<RunningQuery>(
      session,
      [&](Arena* arena) {
        PlanRequest request;
        request.catalog = query.catalog.get();
        request.session = session.session_settings;
        request.settings = &planner;
        request.arena = arena;
        request.params = options.params;
        request.allow_pass_through = false;
        return PlanCompletion(query.request, request);
      },
      options);
}

}  // namespace sluice
