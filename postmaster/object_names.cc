#include "postmaster/object_names.h"

#include <pg_query/pg_query.pb-c.h>

#include "catalog/quote.h"
#include "catalog/system_catalog.h"
#include "catalog/virtual_tables.h"
#include "parser/analyze.h"
#include "parser/raw.h"
#include "postmaster/pg_catalog.h"

namespace sluice {
namespace {

CatalogSession* current = nullptr;

class SessionObjectNames : public ObjectNames {
 public:
  std::string NameOf(Oid type, Oid object) const override;
  Oid Find(Oid type, std::string_view name) const override;
};

// The system catalog whose rows name objects of the type; and where in it.
struct NamedRows {
  Oid type;
  const char* catalog;
  size_t name, schema;
};
constexpr size_t kOidField = 0;
constexpr NamedRows kNamedRows[] = {{kRegconfigOid, "pg_ts_config", 1, 2},
                                    {kRegdictionaryOid, "pg_ts_dict", 1, 2},
                                    {kRegcollationOid, "pg_collation", 1, 2}};

Oid Number(std::string_view text) {
  return static_cast<Oid>(std::stoul(std::string(text)));
}

std::string Qualified(const CatalogSession& session, const std::string& schema,
                      const std::string& name) {
  return IsSchemaInPath(session, schema) ? QuoteIdentifier(name) : QuoteQualified(schema, name);
}

std::string ProcedureText(const ProcInfo& proc) {
  std::string text = QuoteIdentifier(proc.name) + "(";
  for (size_t i = 0; i < proc.args.size(); i++)
    text += (i == 0 ? "" : ",") + FormatTypeName(proc.args[i]);
  return text + ")";
}

std::string OperatorText(const OperatorInfo& op, bool with_types) {
  std::string text(op.name);
  if (!with_types) return text;
  auto side = [](Oid type) { return type == kInvalidOid ? "NONE" : FormatTypeName(type); };
  return text + "(" + side(op.left) + "," + side(op.right) + ")";
}

// nullopt: there is none of that oid.
std::optional<std::string> ObjectText(const CatalogSession& session, Oid type, Oid object) {
  const Catalog& catalog = *session.catalog;
  switch (type) {
    case kRegclassOid: {
      NamedObject found = FindClass(catalog, object);
      if (found.oid == kInvalidOid) return std::nullopt;
      return IsClassVisible(session, object) ? QuoteIdentifier(found.name)
                                             : QuoteQualified(found.schema, found.name);
    }
    case kRegtypeOid:
      if (FindType(object) == nullptr) return std::nullopt;
      return FormatTypeName(object);
    case kRegprocOid:
    case kRegprocedureOid: {
      const ProcInfo* proc = FindProc(object);
      if (proc == nullptr) return std::nullopt;
      // A name that several functions share does not find this one: its schema is shown too.
      if (type == kRegprocedureOid) return ProcedureText(*proc);
      return (FindProcs(proc->name).size() > 1 ? "pg_catalog." : "") + QuoteIdentifier(proc->name);
    }
    case kRegoperOid:
    case kRegoperatorOid: {
      const OperatorInfo* op = FindOperator(object);
      if (op == nullptr) return std::nullopt;
      bool shared = FindOperators(op->name).size() > 1;
      std::string text = OperatorText(*op, type == kRegoperatorOid);
      return type == kRegoperOid && shared ? "pg_catalog." + text : text;
    }
    case kRegnamespaceOid:
      for (const std::string& name : AllSchemas(catalog))
        if (SchemaOid(catalog, name) == object) return QuoteIdentifier(name);
      return std::nullopt;
    case kRegroleOid: {
      std::string name = RoleName(catalog, session.user, object);
      if (name.empty()) return std::nullopt;
      return QuoteIdentifier(name);
    }
  }
  if (type == kRegcollationOid) {
    auto found = catalog.collations.find(object);
    if (found != catalog.collations.end())
      return Qualified(session, found->second.schema, found->second.name);
  }
  for (const NamedRows& rows : kNamedRows) {
    if (rows.type != type) continue;
    for (SystemRows row = SystemRowsOf(rows.catalog); row.Next();)
      if (Number(row.Raw(kOidField)) == object) return QuoteIdentifier(row.Raw(rows.name));
  }
  return std::nullopt;
}

std::string SessionObjectNames::NameOf(Oid type, Oid object) const {
  if (object == kInvalidOid) return "-";
  std::optional<std::string> text = ObjectText(CurrentCatalogSession(), type, object);
  return text ? *text : std::to_string(object);
}

bool MatchesSchema(const std::vector<std::string>& name, std::string_view schema) {
  return name.size() == 1 || name[name.size() - 2] == schema;
}

Oid FindRelationName(const CatalogSession& session, const std::vector<std::string>& name,
                     std::string_view text) {
  std::string schema = name.size() > 1 ? name[name.size() - 2] : "";
  if (Oid oid = FindClassByName(session, schema, name.back())) return oid;
  if (!schema.empty() && !session.catalog->HasSchema(schema))
    Throw(sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist", schema);
  Throw(sqlstate::kUndefinedTable, "relation \"{}\" does not exist", text);
}

Oid FindProcedure(Oid type, const std::vector<std::string>& name, std::string_view text) {
  auto procs = FindProcs(name.back());
  if (procs.empty() || !MatchesSchema(name, "pg_catalog"))
    Throw(sqlstate::kUndefinedFunction, "function \"{}\" does not exist", text);
  if (procs.size() > 1 && type == kRegprocOid)
    Throw(sqlstate::kAmbiguousFunction, "more than one function named \"{}\"", text);
  return procs[0]->oid;
}

// name(type, …): its parts.
struct Signature {
  std::vector<std::string> name;
  std::vector<Oid> types;
};

Oid TypeByName(const CatalogSession& session, std::string_view text);

Signature ParseSignature(const CatalogSession& session, std::string_view text) {
  size_t open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open)
    Throw(sqlstate::kInvalidTextRepresentation, "expected a left parenthesis");
  Signature signature;
  std::string_view name = text.substr(0, open);
  if (!name.empty() && std::string_view("+-*/<>=~!@#%^&|`?").find(name[0]) != name.npos)
    signature.name = {std::string(name)};
  else
    signature.name = SplitQualifiedName(name);
  std::string_view list = text.substr(open + 1, close - open - 1);
  while (list.find_first_not_of(' ') != list.npos) {
    size_t comma = std::min(list.find(','), list.size());
    std::string_view type = list.substr(0, comma);
    while (type.starts_with(' ')) type.remove_prefix(1);
    bool none = strcasecmp(std::string(type).c_str(), "none") == 0;
    signature.types.push_back(none ? kInvalidOid : TypeByName(session, type));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return signature;
}

// The type that CAST(… AS text) means.
Oid TypeByName(const CatalogSession& session, std::string_view text) {
  ParsedSql parsed = ParseSql("SELECT NULL::" + std::string(text));
  auto bad = [&]() { Throw(sqlstate::kSyntaxError, "invalid type name \"{}\"", text); };
  if (parsed.statements().size() != 1) bad();
  const PgQuery__Node& node = *parsed.statements()[0].node;
  if (node.node_case != PG_QUERY__NODE__NODE_SELECT_STMT || node.select_stmt->n_target_list != 1 ||
      node.select_stmt->n_from_clause != 0 || node.select_stmt->where_clause != nullptr)
    bad();
  const PgQuery__Node* value = node.select_stmt->target_list[0]->res_target->val;
  if (value == nullptr || value->node_case != PG_QUERY__NODE__NODE_TYPE_CAST ||
      value->type_cast->arg->node_case != PG_QUERY__NODE__NODE_A_CONST)
    bad();
  Arena arena;
  std::vector<Oid> params;
  AnalyzeContext context{session.catalog.get(),
                         session.session_settings,
                         session.search_path,
                         session.user,
                         session.database,
                         &arena,
                         &params};
  return AnalyzeSelect(parsed.statements()[0], context)->targets[0].expr->type;
}

Oid SessionObjectNames::Find(Oid type, std::string_view text) const {
  const CatalogSession& session = CurrentCatalogSession();
  const Catalog& catalog = *session.catalog;
  if (type == kRegtypeOid) return TypeByName(session, text);
  if (type == kRegprocedureOid) {
    Signature signature = ParseSignature(session, text);
    for (const ProcInfo* proc : FindProcs(signature.name.back()))
      if (std::ranges::equal(proc->args, signature.types)) return proc->oid;
    Throw(sqlstate::kUndefinedFunction, "function \"{}\" does not exist", text);
  }
  if (type == kRegoperatorOid) {
    Signature signature = ParseSignature(session, text);
    for (const OperatorInfo* op : FindOperators(signature.name.back()))
      if (signature.types == std::vector<Oid>{op->left, op->right}) return op->oid;
    Throw(sqlstate::kUndefinedFunction, "operator does not exist: {}", text);
  }
  if (type == kRegoperOid) {
    std::string_view name = text.starts_with("pg_catalog.") ? text.substr(11) : text;
    auto operators = FindOperators(name);
    if (operators.empty()) Throw(sqlstate::kUndefinedFunction, "operator does not exist: {}", text);
    if (operators.size() > 1)
      Throw(sqlstate::kAmbiguousFunction, "more than one operator named {}", text);
    return operators[0]->oid;
  }
  std::vector<std::string> name = SplitQualifiedName(text);
  switch (type) {
    case kRegclassOid:
      return FindRelationName(session, name, text);
    case kRegprocOid:
      return FindProcedure(type, name, text);
    case kRegnamespaceOid:
      if (name.size() == 1 && catalog.HasSchema(name[0])) return SchemaOid(catalog, name[0]);
      Throw(sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist", text);
    case kRegroleOid: {
      Oid role = RoleOid(catalog, name[0]);
      if (name.size() == 1 && !RoleName(catalog, session.user, role).empty()) return role;
      Throw(sqlstate::kUndefinedObject, "role \"{}\" does not exist", text);
    }
    case kRegcollationOid: {
      std::string schema = name.size() > 1 ? name[name.size() - 2] : "";
      if (Oid oid = catalog.FindCollationByName(schema, name.back())) return oid;
      Throw(sqlstate::kUndefinedObject, "collation \"{}\" for encoding \"UTF8\" does not exist",
            text);
    }
  }
  for (const NamedRows& rows : kNamedRows) {
    if (rows.type != type || !MatchesSchema(name, "pg_catalog")) continue;
    for (SystemRows row = SystemRowsOf(rows.catalog); row.Next();)
      if (row.Raw(rows.name) == name.back()) return Number(row.Raw(kOidField));
  }
  Throw(sqlstate::kUndefinedObject, "text search {} \"{}\" does not exist",
        type == kRegconfigOid ? "configuration" : "dictionary", text);
}

}  // namespace

void SetCatalogSession(CatalogSession session) {
  static const SessionObjectNames names;
  delete current;
  current = new CatalogSession(std::move(session));
  object_names = &names;
}

bool SeesCatalog(const std::shared_ptr<const Catalog>& catalog, uint64_t settings_version) {
  return current != nullptr && current->catalog == catalog &&
         current->settings_version == settings_version;
}

const CatalogSession& CurrentCatalogSession() {
  if (current == nullptr)
    Refuse("a function of the system catalog in a parallel worker is not supported");
  return *current;
}

Catalog::IndexOfTable FindIndexByOid(const Catalog& catalog, Oid oid) {
  for (const auto& [table_oid, table] : catalog.relations)
    for (const Index& index : table.indexes)
      if (index.oid == oid) return {&table, &index};
  return {};
}

NamedObject FindClass(const Catalog& catalog, Oid oid) {
  if (const Relation* relation = catalog.FindRelation(oid))
    return {oid, relation->schema, relation->name};
  auto sequence = catalog.sequences.find(oid);
  if (sequence != catalog.sequences.end())
    return {oid, sequence->second.schema, sequence->second.name};
  if (Catalog::IndexOfTable found = FindIndexByOid(catalog, oid))
    return {oid, found.table->schema, found.index->name};
  if (const VirtualTable* table = FindVirtualTable(oid))
    return {oid, std::string(table->schema), std::string(table->name)};
  return {};
}

Oid FindClassByName(const CatalogSession& session, const std::string& schema,
                    const std::string& name) {
  if (const VirtualTable* table = FindVirtualTable(schema, name)) return table->oid;
  if (!schema.empty()) {
    const Catalog& catalog = *session.catalog;
    if (const Relation* relation = catalog.FindRelation(schema, name)) return relation->oid;
    if (const Sequence* sequence = catalog.FindSequence(schema, name)) return sequence->oid;
    if (Catalog::IndexOfTable found = catalog.FindIndex(schema, name)) return found.index->oid;
    return kInvalidOid;
  }
  for (const std::string& place : session.search_path)
    if (Oid oid = FindClassByName(session, place, name)) return oid;
  return kInvalidOid;
}

bool IsSchemaInPath(const CatalogSession& session, std::string_view schema) {
  return schema == "pg_catalog" || std::find(session.search_path.begin(), session.search_path.end(),
                                             schema) != session.search_path.end();
}

bool IsClassVisible(const CatalogSession& session, Oid oid) {
  NamedObject object = FindClass(*session.catalog, oid);
  return object.oid != kInvalidOid && FindClassByName(session, "", object.name) == oid;
}

std::vector<std::string> SplitQualifiedName(std::string_view text) {
  std::vector<std::string> parts;
  auto bad = []() { Throw(MakeSqlState("42602"), "invalid name syntax"); };
  auto skip = [&](size_t* at) {
    while (*at < text.size() && isspace(static_cast<unsigned char>(text[*at]))) ++*at;
  };
  for (size_t at = 0;;) {
    skip(&at);
    std::string part;
    if (at < text.size() && text[at] == '"') {
      for (at++;; at++) {
        if (at >= text.size()) bad();
        if (text[at] == '"' && (at + 1 >= text.size() || text[at + 1] != '"')) break;
        if (text[at] == '"') at++;
        part += text[at];
      }
      at++;
    } else {
      while (at < text.size() && text[at] != '.' && !isspace(static_cast<unsigned char>(text[at])))
        part += static_cast<char>(tolower(static_cast<unsigned char>(text[at++])));
    }
    if (part.empty()) bad();
    parts.push_back(part);
    skip(&at);
    if (at == text.size()) return parts;
    if (text[at++] != '.') bad();
  }
}

std::optional<Oid> TryFindObject(Oid type, std::string_view name) {
  try {
    return object_names->Find(type, name);
  } catch (const QueryError& e) {
    for (SqlState missing :
         {sqlstate::kUndefinedTable, sqlstate::kUndefinedObject, sqlstate::kUndefinedFunction,
          sqlstate::kAmbiguousFunction, sqlstate::kInvalidSchemaName})
      if (e.error.state == missing) return std::nullopt;
    throw;
  }
}

}  // namespace sluice
