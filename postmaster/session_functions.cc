#include "postmaster/session_functions.h"

#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "catalog/builtin.h"
#include "common/bytes.h"
#include "optimizer/evaluate.h"
#include "parser/walk.h"
#include "postmaster/child_process.h"
#include "postmaster/settings.h"
#include "postmaster/virtual_rows.h"
#include "shm/shared_memory.h"
#include "types/codec.h"
#include "types/kernel.h"

namespace sluice {
namespace {

// A call's constant arguments, and its value as text (nullopt: NULL).
struct Call {
  const SessionFunctionContext& context;
  std::vector<std::optional<std::string>> args;
};
using Function = std::optional<std::string> (*)(const Call&);

std::string Boolean(bool value) {
  return value ? "t" : "f";
}

std::vector<std::string> RealSchemas(const Call& call, bool implicit) {
  std::vector<std::string> schemas;
  for (const std::string& schema : call.context.search_path) {
    // A user's own schema is in the path by default, but does not exist.
    if (schema == call.context.user && schema != "public") continue;
    if (schema == "pg_catalog" && !implicit) continue;
    schemas.push_back(schema);
  }
  return schemas;
}

std::optional<std::string> Version(const Call& call) {
  utsname system{};
  uname(&system);
  return fmt::format("PostgreSQL {} on {}-linux-gnu, compiled by gcc {}, 64-bit",
                     call.context.settings->Show("server_version"), system.machine, __VERSION__);
}
std::optional<std::string> CurrentSchema(const Call& call) {
  auto schemas = RealSchemas(call, false);
  if (schemas.empty()) return std::nullopt;
  return schemas[0];
}
std::optional<std::string> CurrentSchemas(const Call& call) {
  std::string array = "{";
  for (const std::string& schema : RealSchemas(call, call.args[0] == "t")) {
    if (array.size() > 1) array += ',';
    array += '"';
    for (char c : schema) {
      if (c == '"' || c == '\\') array += '\\';
      array += c;
    }
    array += '"';
  }
  return array + "}";
}
std::optional<std::string> CurrentSetting(const Call& call) {
  bool missing_ok = call.args.size() > 1 && call.args[1] == "t";
  if (missing_ok) return call.context.settings->TryShow(*call.args[0]);
  return call.context.settings->Show(*call.args[0]);
}
std::optional<std::string> ClientAddress(const Call&) {
  if (my_proc->client_addr[0] == 0) return std::nullopt;
  return my_proc->client_addr;
}
std::optional<std::string> ClientPort(const Call&) {
  if (my_proc->client_port < 0) return std::nullopt;
  return std::to_string(my_proc->client_port);
}

// By pg_proc oid. `once`: only where it is called exactly once, in a SELECT without FROM.
struct Entry {
  Oid function;
  bool once;
  bool strict;
  Function run;
};
constexpr Entry kFunctions[] = {
    {89, false, true, Version},
    {810, false, true, [](const Call&) { return std::optional<std::string>("UTF8"); }},
    {861, false, true, [](const Call& c) { return std::optional(c.context.database); }},
    {1402, false, true, CurrentSchema},
    {1403, false, true, CurrentSchemas},
    {745, false, true, [](const Call& c) { return std::optional(c.context.user); }},
    {746, false, true, [](const Call& c) { return std::optional(c.context.session_user); }},
    {2026, false, true, [](const Call&) { return std::optional(std::to_string(getpid())); }},
    {2034, false, true,
     [](const Call&) { return TimestampValue(supervision->reloaded_at.load()); }},
    {2560, false, true, [](const Call&) { return TimestampValue(supervision->started_at.load()); }},
    {2077, false, true, CurrentSetting},
    {3294, false, true, CurrentSetting},
    {2621, true, true,
     [](const Call&) { return std::optional(Boolean(kill(getppid(), SIGHUP) == 0)); }},
    {3810, false, true, [](const Call&) { return std::optional(Boolean(false)); }},
    {2196, false, false, ClientAddress},
    {2197, false, false, ClientPort},
};

const Entry* FindEntry(Oid function) {
  for (const Entry& entry : kFunctions)
    if (entry.function == function) return &entry;
  return nullptr;
}

class Folder {
 public:
  // Without a context it only looks.
  explicit Folder(const SessionFunctionContext* context) : context_(context) {}

  void Walk(Query* query) {
    bool one_row = query->from == nullptr && query->where == nullptr && query->rels.empty();
    ForEachQueryExpr(*query, [&](const Expr& e) { Walk(const_cast<Expr*>(&e), one_row); });
    for (const SortKey& key : query->order_by)
      if (key.expr != nullptr) Walk(const_cast<Expr*>(key.expr), false);
    ForEachSubquery(*query, [&](const Query& q) { Walk(const_cast<Query*>(&q)); });
  }
  bool found() const { return found_; }

 private:
  void Walk(Expr* expr, bool one_row) {
    // What a condition may leave out is not called "exactly once".
    bool conditional = expr->kind == ExprKind::kCase || expr->kind == ExprKind::kCoalesce ||
                       expr->kind == ExprKind::kAnd || expr->kind == ExprKind::kOr;
    ForEachChild(*expr, [&](const Expr& child) {
      Walk(const_cast<Expr*>(&child), one_row && !conditional);
    });
    if (expr->subquery != nullptr) Walk(const_cast<Query*>(expr->subquery));
    if (expr->kind == ExprKind::kCall) Fold(expr, one_row);
    // The client is told void; the empty value itself travels as text, which all nodes know.
    if (expr->kind == ExprKind::kCall && expr->type == kVoidOid &&
        FindKernel(expr->function) != nullptr) {
      found_ = true;
      if (context_ != nullptr) expr->type = kTextOid;
    }
    if (expr->kind == ExprKind::kSqlValue) FoldSqlValue(expr);
  }

  void Fold(Expr* expr, bool one_row) {
    const Entry* entry = FindEntry(expr->function);
    if (entry == nullptr) return;
    found_ = true;
    if (context_ == nullptr) return;
    if (entry->once && !one_row) return;
    Call call{*context_, {}};
    bool null = false;
    for (const Expr* arg : expr->args) {
      EvaluationInput input{&session_settings_, context_->arena, {}, {}};
      auto value = EvaluateExpr(*arg, input);
      if (!value) return;  // not a constant: the planner refuses the call by name
      call.args.push_back(TextOf(arg->type, *value));
      null |= value->is_null && entry->strict;
    }
    std::optional<std::string> value;
    if (!null) value = entry->run(call);
    MakeConstant(expr, value);
  }

  void MakeConstant(Expr* expr, const std::optional<std::string>& value) {
    expr->kind = ExprKind::kConst;
    expr->args = {};
    expr->is_null = !value;
    if (value && expr->type == kVoidOid)
      expr->value = "";
    else if (value && HasBinaryCodec(expr->type))
      expr->value = ParseText(expr->type, -1, *value, session_settings_, context_->arena);
    else if (value)
      expr->value = context_->arena->CopyString(*value);
  }

  // CURRENT_USER and its like; those of time are the planner's.
  void FoldSqlValue(Expr* expr) {
    constexpr int kCurrentRole = 9, kSessionUser = 12, kCurrentCatalog = 13, kCurrentSchema = 14;
    if (expr->param < kCurrentRole) return;
    found_ = true;
    if (context_ == nullptr) return;
    std::optional<std::string> value;
    if (expr->param < kSessionUser) value = context_->user;
    if (expr->param == kSessionUser) value = context_->session_user;
    if (expr->param == kCurrentCatalog) value = context_->database;
    if (expr->param == kCurrentSchema) value = CurrentSchema(Call{*context_, {}});
    MakeConstant(expr, value);
  }

  std::optional<std::string> TextOf(Oid type, const Value& value) const {
    if (value.is_null) return std::nullopt;
    if (!HasBinaryCodec(type)) return std::string(value.bytes);
    Column column = MakeConstantColumn(type, value.bytes, false, context_->arena);
    std::string text;
    AppendText(column, 0, session_settings_, &text);
    return text;
  }

  const SessionFunctionContext* context_;
  SessionSettings session_settings_;
  bool found_ = false;
};

}  // namespace

bool DependsOnSession(std::string_view text) {
  static constexpr std::string_view kWords[] = {
      "current_user",    "session_user",     "user",
      "current_role",    "current_catalog",  "current_schema",
      "current_schemas", "current_database", "current_setting",
      "set_config",      "version",          "nextval",
      "currval",         "lastval",          "setval",
      "dblink",          "query_to_xml",     "txid_current",
      "lo_import",       "lo_export",        "lo_create",
      "lo_unlink"};
  // Whole families of functions look at or act on the server that they run on.
  static constexpr std::string_view kPrefixes[] = {"pg_", "inet_", "dblink_", "lo_", "has_"};
  std::string word;
  for (size_t i = 0; i <= text.size(); i++) {
    char c = i < text.size() ? text[i] : ' ';
    if (isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += static_cast<char>(tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords)) return true;
    for (std::string_view prefix : kPrefixes)
      if (word.starts_with(prefix) && word != "pg_catalog" && word != "pg_typeof") return true;
    word.clear();
  }
  return false;
}

bool HasSessionFunctions(const Query& query) {
  Folder folder(nullptr);
  folder.Walk(const_cast<Query*>(&query));
  return folder.found();
}

void FoldSessionFunctions(Query* query, const SessionFunctionContext& context) {
  Folder(&context).Walk(query);
}

}  // namespace sluice
