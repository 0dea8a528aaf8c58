// Names, options and roles in DDL.
#include "catalog/privilege.h"
#include "postmaster/ddl_internal.h"

namespace sluice {

std::string_view StringOf(const RawNode* node) {
  if (node == nullptr) return {};
  if (node->node_case == PG_QUERY__NODE__NODE_STRING) return Text(node->string->sval);
  if (node->node_case == PG_QUERY__NODE__NODE_A_CONST &&
      node->a_const->val_case == PG_QUERY__A__CONST__VAL_SVAL)
    return Text(node->a_const->sval->sval);
  return {};
}

std::vector<std::string> StringList(RawNode* const* nodes, size_t count) {
  std::vector<std::string> list;
  for (size_t i = 0; i < count; i++) list.emplace_back(StringOf(nodes[i]));
  return list;
}

QualifiedName NameOfList(Ddl&, RawNode* const* nodes, size_t count) {
  if (count == 0 || count > 2) Refuse("cross-database references are not implemented");
  if (count == 1) return {"", std::string(StringOf(nodes[0]))};
  return {std::string(StringOf(nodes[0])), std::string(StringOf(nodes[1]))};
}

const char* KindName(RelationKind kind) {
  switch (kind) {
    case RelationKind::kForeignTable:
      return "foreign table";
    case RelationKind::kView:
      return "view";
    case RelationKind::kMaterializedView:
      return "materialized view";
    default:
      return "table";
  }
}

std::string Describe(const Ddl& ddl, const Relation& relation) {
  // Unqualified where the search path finds it.
  bool visible = ddl.catalog.FindRelation(ddl.context.search_path, relation.name) == &relation;
  return fmt::format(
      "{} {}", KindName(relation.kind),
      visible ? QuoteIdentifier(relation.name) : QuoteQualified(relation.schema, relation.name));
}

namespace {

std::string Shown(const PgQuery__RangeVar& name) {
  return name.schemaname != nullptr && *name.schemaname != 0
             ? fmt::format("{}.{}", name.schemaname, name.relname)
             : std::string(name.relname);
}

}  // namespace

const Relation* FindRelation(const Ddl& ddl, const PgQuery__RangeVar& name) {
  if (!Text(name.catalogname).empty() && Text(name.catalogname) != ddl.context.database)
    Refuse("cross-database references are not implemented: \"{}.{}.{}\"", name.catalogname,
           Text(name.schemaname), name.relname);
  return Text(name.schemaname).empty()
             ? ddl.catalog.FindRelation(ddl.context.search_path, name.relname)
             : ddl.catalog.FindRelation(name.schemaname, name.relname);
}

Relation* FindRelation(Ddl& ddl, const PgQuery__RangeVar& name, bool missing_ok) {
  const Relation* found = FindRelation(std::as_const(ddl), name);
  if (found != nullptr) {
    RequireOwner(ddl, *found);
    return &ddl.GetRelation(found->oid);
  }
  std::string_view schema = Text(name.schemaname);
  if (missing_ok) {
    ddl.Notice(
        MakeError(sqlstate::kSuccess, "relation \"{}\" does not exist, skipping", Shown(name)));
    return nullptr;
  }
  if (!schema.empty() && !ddl.catalog.HasSchema(schema))
    Throw(sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist", schema);
  Throw(sqlstate::kUndefinedTable, "relation \"{}\" does not exist", Shown(name));
}

Relation& GetRelation(Ddl& ddl, const PgQuery__RangeVar& name) {
  return *FindRelation(ddl, name, false);
}

namespace {
void RequireMayCreateIn(const Ddl& ddl, std::string_view name) {
  auto schema = ddl.catalog.schemas.find(std::string(name));
  if (schema != ddl.catalog.schemas.end() &&
      !HasPrivilege(ddl.catalog, CurrentRole(ddl), AclOf(schema->second, name), kCreate))
    Throw(sqlstate::kInsufficientPrivilege, "permission denied for schema {}", name);
}
}  // namespace

std::string CreationSchema(const Ddl& ddl, std::string_view schema) {
  if (schema.empty()) {
    for (const std::string& candidate : ddl.context.search_path)
      if (candidate != "pg_catalog" && ddl.catalog.HasSchema(candidate)) {
        RequireMayCreateIn(ddl, candidate);
        return candidate;
      }
    Throw(sqlstate::kInvalidSchemaName, "no schema has been selected to create in");
  }
  if (!ddl.catalog.HasSchema(schema))
    Throw(sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist", schema);
  if (schema == "pg_catalog" || schema == "information_schema" || schema == "sluice")
    Throw(sqlstate::kInsufficientPrivilege, "permission denied for schema {}", schema);
  RequireMayCreateIn(ddl, schema);
  return std::string(schema);
}

bool CheckNameFree(Ddl& ddl, std::string_view schema, std::string_view name, bool if_not_exists) {
  if (ddl.catalog.FindRelation(schema, name) == nullptr &&
      ddl.catalog.FindSequence(schema, name) == nullptr && !ddl.catalog.FindIndex(schema, name))
    return true;
  if (!if_not_exists) Throw(sqlstate::kDuplicateTable, "relation \"{}\" already exists", name);
  ddl.Notice(
      MakeError(sqlstate::kDuplicateTable, "relation \"{}\" already exists, skipping", name));
  return false;
}

namespace {

// At most `bytes` of the text, never half a character.
std::string Clipped(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) bytes--;
  return text.substr(0, bytes);
}

}  // namespace

std::string ChooseObjectName(const Ddl& ddl, const std::string& schema, const std::string& first,
                             const std::string& second, const std::string& label) {
  constexpr size_t kNameBytesMax = 63;
  for (int number = 0;; number++) {
    std::string end = "_" + label + (number == 0 ? "" : std::to_string(number));
    // The longer of the two gives way.
    size_t room = kNameBytesMax - end.size() - 1, a = first.size(), b = second.size();
    while (a + b > room) (a > b ? a : b)--;
    std::string name = Clipped(first, a) + "_" + Clipped(second, b) + end;
    if (ddl.catalog.FindRelation(schema, name) == nullptr &&
        ddl.catalog.FindSequence(schema, name) == nullptr && !ddl.catalog.FindIndex(schema, name))
      return name;
  }
}

Server& GetServer(Ddl& ddl, std::string_view name) {
  const Server* found = ddl.catalog.FindServer(name);
  if (found == nullptr) Throw(sqlstate::kUndefinedObject, "server \"{}\" does not exist", name);
  return ddl.catalog.servers.at(found->oid);
}

std::string RoleName(const Ddl& ddl, const PgQuery__RoleSpec& role) {
  switch (role.roletype) {
    case PG_QUERY__ROLE_SPEC_TYPE__ROLESPEC_PUBLIC:
      return "public";
    case PG_QUERY__ROLE_SPEC_TYPE__ROLESPEC_CSTRING:
      if (ddl.catalog.FindRole(role.rolename) == nullptr)
        Throw(sqlstate::kUndefinedObject, "role \"{}\" does not exist", role.rolename);
      return role.rolename;
    default:
      return ddl.context.user;  // CURRENT_USER, SESSION_USER, CURRENT_ROLE
  }
}

namespace {

// A DefElem's value as text: a string, number or word.
std::string ValueOf(const PgQuery__DefElem& element) {
  const RawNode* arg = element.arg;
  if (arg == nullptr) return "";
  switch (arg->node_case) {
    case PG_QUERY__NODE__NODE_INTEGER:
      return std::to_string(arg->integer->ival);
    case PG_QUERY__NODE__NODE_FLOAT:
      return arg->float_->fval;
    case PG_QUERY__NODE__NODE_BOOLEAN:
      return arg->boolean->boolval ? "true" : "false";
    default:
      return std::string(StringOf(arg));
  }
}

}  // namespace

void ChangeOptions(Ddl& ddl, RawNode* const* nodes, size_t count, Options* options) {
  for (size_t i = 0; i < count; i++) {
    const PgQuery__DefElem& element = *nodes[i]->def_elem;
    std::string name = element.defname;
    bool exists = options->contains(name);
    switch (element.defaction) {
      case PG_QUERY__DEF_ELEM_ACTION__DEFELEM_DROP:
        if (!exists) Throw(sqlstate::kUndefinedObject, "option \"{}\" not found", name);
        options->erase(name);
        break;
      case PG_QUERY__DEF_ELEM_ACTION__DEFELEM_SET:
        if (!exists) Throw(sqlstate::kUndefinedObject, "option \"{}\" not found", name);
        (*options)[name] = ValueOf(element);
        break;
      default:
        if (exists)
          Throw(sqlstate::kDuplicateObject, "option \"{}\" provided more than once", name);
        (*options)[name] = ValueOf(element);
    }
    ddl.changed = true;
  }
}

Options NewOptions(Ddl& ddl, RawNode* const* nodes, size_t count) {
  Options options;
  ChangeOptions(ddl, nodes, count, &options);
  return options;
}

}  // namespace sluice
