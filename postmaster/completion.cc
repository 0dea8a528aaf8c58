#include "postmaster/completion.h"

#include <pg_query/pg_query.pb-c.h>

#include "catalog/catalog.h"
#include "common/bytes.h"
#include "executor/side_stream.h"
#include "postmaster/completion_builder.h"
#include "postmaster/completion_text.h"
#include "postmaster/raw_deparse.h"
#include "postmaster/remote_query.h"
#include "shm/query_arena.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

bool IsSelect(const PgQuery__Node& node) {
  return node.node_case == PG_QUERY__NODE__NODE_SELECT_STMT;
}

// One pinned connection with the temporary tables in place; given back with everything on it
// undone.
class ShardSession {
 public:
  ShardSession(const QuerySession& session, Oid server)
      : connection_(ConnectionSpecFor(session, server, &arena_)),
        pin_(shared_memory->next_pin.fetch_add(1, std::memory_order_relaxed)) {}
  ~ShardSession() { SubmitRequest({RequestKind::kUnpin, nullptr, pin_, 0}); }

  void Run(const std::string& sql) {
    SideStream({StreamKind::kSimple, connection_, arena_.CopyString(sql), {pin_, {}}}, &arena_)
        .Finish(WaitEvent::kAppendReady);
  }

  std::string Describe(const std::string& sql, std::span<const StreamParam> params) {
    SideStream stream({StreamKind::kDescribe,
                       connection_,
                       arena_.CopyString(sql),
                       {pin_, {}},
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

// The shard's oids of types that aren't Postgres's own → ours, by name; text where we don't know
// the type.
void TranslateTypes(const QuerySession& session, Oid server, const std::vector<Oid*>& types) {
  std::string list;
  for (const Oid* type : types)
    if (*type >= kFirstUserOid) list += (list.empty() ? "" : ", ") + std::to_string(*type);
  if (list.empty()) return;
  RemoteQuery query{
      server,
      "SELECT t.oid::pg_catalog.int8, n.nspname, t.typname FROM pg_catalog.pg_type t JOIN "
      "pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.oid IN (" +
          list + ")"};
  RemoteRows rows = RunRemoteQueries(*session.catalog, RemoteSessionOf(session), {&query, 1})[0];
  for (Oid* type : types) {
    if (*type < kFirstUserOid) continue;
    Oid ours = kTextOid;
    for (const RemoteRow& row : rows.rows) {
      if (row.size() != 3 || !row[0] || !row[1] || !row[2] || *row[0] != std::to_string(*type))
        continue;
      if (const TypeInfo* info = session.catalog->FindTypeByName(*row[1], *row[2]))
        ours = info->oid;
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
Description Judge(const QuerySession& session, const CompletionRequest& request,
                  const TextRewrite& rewrite, std::string_view whole_text,
                  const std::vector<Oid>& declared_types, const Error& error) {
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
      verdict.position =
          whole_text.empty()
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
    part = DeparseStatement(statement.node);
    own = ParseSql(part);
  }
  const RawStatement& raw = own.statements().at(0);
  auto query = std::make_unique<CompletionQuery>();
  query->catalog = session.catalog;
  CompletionBuilder builder(session, search_path, error);
  TextRewrite rewrite = builder.Rewrite(*raw.node, raw.text, raw.location);
  query->request.sql = rewrite.Result();
  // Read twice, the table's rows may matter to the other reader.
  if (FindReferences(*raw.node).tables.size() == 1)
    builder.SetConditions(ConditionsOnOnlyTable(*raw.node));

  std::string_view whole;  // of the client's string, up to this statement's end
  if (is_whole) {
    const char* start = statement.text.data() - statement.location;
    whole =
        std::string_view(start, static_cast<size_t>(statement.location) + statement.text.size());
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
    query->request.columns.push_back({query->names.emplace_back(field.name), field.type,
                                      field.typmod,
                                      info == nullptr ? kInvalidOid : info->collation});
  }
  return query;
}

std::unique_ptr<RunningQuery> RunCompletion(const QuerySession& session,
                                            const CompletionQuery& query,
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
