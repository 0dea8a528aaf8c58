// Shared by postmaster/ddl_*.cc and attach.cc; nobody else includes it.
#pragma once

#include <pg_query/pg_query.pb-c.h>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/builtin.h"
#include "catalog/options.h"
#include "catalog/quote.h"
#include "common/arena.h"
#include "parser/analyze.h"
#include "postmaster/ddl.h"
#include "postmaster/raw_deparse.h"

namespace sluice {

// One command at work.
struct Ddl {
  Ddl(const RawStatement& raw, DdlContext& ddl_context)
      : statement(raw), context(ddl_context), catalog(*ddl_context.current) {}

  const RawStatement& statement;
  DdlContext& context;
  Catalog catalog;  // the copy that is changed
  Arena arena;
  bool changed = false;

  Oid NewOid() {
    changed = true;
    return catalog.next_oid++;
  }
  Relation& GetRelation(Oid oid) { return catalog.relations.at(oid); }
  void Notice(Error notice) const { context.notice(LogLevel::kNotice, notice); }
  void Warning(Error warning) const { context.notice(LogLevel::kWarning, warning); }
  // Throws `error` with the position of a parse location (-1: none).
  [[noreturn]] void ThrowAt(Error error, int location) const;
  AnalyzeContext MakeAnalyzeContext(std::vector<Oid>* param_types);
  // Queries on servers, under the changed catalog.
  std::vector<RemoteRows> Remote(std::span<const RemoteQuery> queries) const {
    return context.remote(catalog, queries);
  }
  // Statements on servers at once, as a part of the session's transaction; there they see names as
  // the session does.
  void OnServers(std::span<const Oid> servers, const std::vector<std::string>& statements) const;
};

inline std::string_view Text(const char* text) {
  return text == nullptr ? "" : text;
}
// A String node's (or a string constant's) text.
std::string_view StringOf(const RawNode* node);
std::vector<std::string> StringList(RawNode* const* nodes, size_t count);
// schema.name of a list of String nodes.
struct QualifiedName {
  std::string schema, name;
};
QualifiedName NameOfList(Ddl& ddl, RawNode* const* nodes, size_t count);

// --- names (ddl_name.cc)
// "foreign table", "table", "view"
const char* KindName(RelationKind kind);
const Relation* FindRelation(const Ddl& ddl, const PgQuery__RangeVar& name);
Relation& GetRelation(Ddl& ddl, const PgQuery__RangeVar& name);                    // 42P01
Relation* FindRelation(Ddl& ddl, const PgQuery__RangeVar& name, bool missing_ok);  // with a NOTICE
// Where a new object goes; throws 3F000.
std::string CreationSchema(const Ddl& ddl, std::string_view schema);
// Throws 42P07, or gives a NOTICE and returns false where `if_not_exists`.
bool CheckNameFree(Ddl& ddl, std::string_view schema, std::string_view name, bool if_not_exists);
// "table_column_idx" as Postgres chooses it: cut to 63 bytes, numbered until it is free.
std::string ChooseObjectName(const Ddl& ddl, const std::string& schema, const std::string& first,
                             const std::string& second, const std::string& label);
Server& GetServer(Ddl& ddl, std::string_view name);  // 42704
std::string RoleName(const Ddl& ddl, const PgQuery__RoleSpec& role);
// OPTIONS of a new object; of an existing one with SET, ADD and DROP.
Options NewOptions(Ddl& ddl, RawNode* const* nodes, size_t count);
void ChangeOptions(Ddl& ddl, RawNode* const* nodes, size_t count, Options* options);
// The description that dependency messages use: "foreign table t", "view app.v".
std::string Describe(const Ddl& ddl, const Relation& relation);

// --- queries of views (ddl_deparse.cc)
// The query of a view with relation names qualified; `uses` gets their relations.
std::string DeparseViewQuery(const Ddl& ddl, const RawNode* query, std::vector<Oid>* uses);
// The view's query when the relation is called `to`.
std::string RenameInViewQuery(const Ddl& ddl, const Relation& view, const Relation& relation,
                              std::string_view to);

// --- types and collations (ddl_type.cc, ddl_collation.cc)
struct TypeAndMod {
  Oid type;
  int32_t typmod;
};
// A type that neither Postgres nor the catalog has is looked up on `server` (if one is given) and
// registered.
TypeAndMod ResolveType(Ddl& ddl, const PgQuery__TypeName& name, Oid server);
// The shard's type by name, registered here with its enum labels and its array type. Throws 42704
// where the server has none, 42804 where another server's type of that name differs.
// A domain is taken as the type that it is over, as Postgres's own protocol tells it to clients;
// not with `keep_domain` (as an array's element, whose oid is part of the values).
TypeAndMod ImportType(Ddl& ddl, Oid server, std::string_view schema, std::string_view name,
                      bool keep_domain);
// A collation of a shard.
struct RemoteCollation {
  std::string schema, name, locale, version;
  char provider;
  bool deterministic;
};
Oid ImportCollation(Ddl& ddl, const RemoteCollation& collation);
// Of a COLLATE clause; looked up on `server` (if one is given) where the catalog has none.
Oid ResolveCollation(Ddl& ddl, const PgQuery__CollateClause& clause, Oid server);
// SQL for four columns of pg_collation `alias`; after schema and name they make up a
// RemoteCollation, which ReadCollation takes from six columns of a row.
std::string RemoteCollationColumns(std::string_view alias);
RemoteCollation ReadCollation(const RemoteRow& row, size_t first);
// The default collation by what is known of the servers that have tables.
void SetDefaultCollation(Ddl& ddl);
// Reads the databases' default collations of servers that were not asked yet; a difference between
// servers is a warning, and order by it is refused from then on. `required`: failure to reach a
// server is an error, else nothing.
void ReadDefaultCollations(Ddl& ddl, std::span<const Oid> servers, bool required);

// --- columns and tables (ddl_column.cc, ddl_table.cc)
// Of a definition with a type. `server`: of a foreign table, else kInvalidOid.
ColumnInfo MakeColumn(Ddl& ddl, const PgQuery__ColumnDef& def, Oid server);
// NOT NULL, DEFAULT and OPTIONS of a definition. True if it says PRIMARY KEY.
bool ApplyColumnDefinition(Ddl& ddl, const PgQuery__ColumnDef& def, Oid server, ColumnInfo* column);
// What a child gets of its parent's column.
ColumnInfo InheritedColumn(const ColumnInfo& column);
// Sets primary_key from a table constraint's column names.
void SetPrimaryKey(Relation* relation, const std::vector<std::string>& names);
void CreateTable(Ddl& ddl, const PgQuery__CreateStmt& create);
// The relation without what makes it one of its kind. nullptr: it exists already and that is fine.
Relation* CreateRelation(Ddl& ddl, const PgQuery__CreateStmt& create, RelationKind kind,
                         Oid server);
void CreateForeignTable(Ddl& ddl, const PgQuery__CreateForeignTableStmt& create);
void AlterTable(Ddl& ddl, const PgQuery__AlterTableStmt& alter);
void Rename(Ddl& ddl, const PgQuery__RenameStmt& rename);
void AlterOwner(Ddl& ddl, const PgQuery__AlterOwnerStmt& alter);
void AlterSchema(Ddl& ddl, const PgQuery__AlterObjectSchemaStmt& alter);
// Whether a partition key expression names the column. A string constant that reads like it counts
// too: refusing too much is safe.
bool KeyNames(const Relation& relation, std::string_view column);
// Views keep their text, which has the names in it.
void RefuseIfViewUses(const Ddl& ddl, const Relation& relation, const char* what);
// Throws where a view would have other columns than before after a change of `relation`.
void CheckViewsOf(Ddl& ddl, const Relation& relation);

// --- partitions (ddl_partition.cc)
void SetPartitionKey(Ddl& ddl, const PgQuery__PartitionSpec& spec, Relation* parent);
PartitionBound MakeBound(Ddl& ddl, const Relation& parent, const PgQuery__PartitionBoundSpec& spec);
int BoundLocation(const PgQuery__PartitionBoundSpec& spec);
void LinkPartition(Ddl& ddl, Relation* parent, Relation* child, PartitionBound bound, int location);
void LinkChild(Ddl& ddl, Relation* parent, Relation* child);
void Unlink(Ddl& ddl, Relation* child);
// Throws where foreign tables cannot be children of `parent` because Sluice made it.
void CheckParent(Ddl& ddl, const Relation& parent);
// Throws where `child` cannot inherit from `parent`.
void CheckInheritable(Ddl& ddl, const Relation& parent, const Relation& child);
void AttachPartition(Ddl& ddl, Relation* parent, const PgQuery__PartitionCmd& command);
void DetachPartition(Ddl& ddl, Relation* parent, const PgQuery__PartitionCmd& command);
// The key of `sql` expressions over the parent's columns.
void SetPartitionExpressions(Ddl& ddl, PartitionStrategy strategy,
                             std::vector<std::string> expressions, Relation* parent);
// A literal as the key's canonical text.
std::string CanonicalValue(Ddl& ddl, Oid type, std::string_view text);

// --- servers (ddl_server.cc)
void CreateServer(Ddl& ddl, const PgQuery__CreateForeignServerStmt& create);
void AlterServer(Ddl& ddl, const PgQuery__AlterForeignServerStmt& alter);
void CreateMapping(Ddl& ddl, const PgQuery__CreateUserMappingStmt& create);
void AlterMapping(Ddl& ddl, const PgQuery__AlterUserMappingStmt& alter);
void DropMapping(Ddl& ddl, const PgQuery__DropUserMappingStmt& drop);
void CreateWrapper(Ddl& ddl, const PgQuery__CreateFdwStmt& create);

// --- roles and privileges (ddl_role.cc)
void CreateRole(Ddl& ddl, const PgQuery__CreateRoleStmt& create);
void AlterRole(Ddl& ddl, const PgQuery__AlterRoleStmt& alter);
void DropRole(Ddl& ddl, const PgQuery__DropRoleStmt& drop);
void RenameRole(Ddl& ddl, std::string_view from, std::string_view to);
void GrantRole(Ddl& ddl, const PgQuery__GrantRoleStmt& grant);
void Grant(Ddl& ddl, const PgQuery__GrantStmt& grant);
// The current user's; 42704 where it was dropped meanwhile.
const Role& CurrentRole(const Ddl& ddl);
// All three throw 42501.
void RequireOwner(const Ddl& ddl, const Relation& relation);
void RequireSchemaOwner(const Ddl& ddl, std::string_view schema);
void RequireSuperuser(const Ddl& ddl, std::string_view what);

// --- the rest
void CreateSchema(Ddl& ddl, const PgQuery__CreateSchemaStmt& create);  // ddl_drop.cc
// A relation and all below it; views that use them keep it from going (2BP01).
void DropRelationTree(Ddl& ddl, Oid root);
void CreateView(Ddl& ddl, const PgQuery__ViewStmt& create);  // ddl_view.cc
// The columns of a query as the client wrote it.
std::vector<ColumnInfo> AnalyzedColumns(Ddl& ddl, const RawStatement& statement);
// ddl_matview.cc
void CreateMaterializedView(Ddl& ddl, const PgQuery__CreateTableAsStmt& create);
void RefreshMaterializedView(Ddl& ddl, const PgQuery__RefreshMatViewStmt& refresh);
void AlterMaterializedView(Ddl& ddl, Relation* view, const PgQuery__AlterTableCmd& command);
// The columns of a stored query.
std::vector<ColumnInfo> ViewColumns(Ddl& ddl, const std::string& sql);
void Drop(Ddl& ddl, const PgQuery__DropStmt& drop);  // ddl_drop.cc
void ImportForeignSchema(Ddl& ddl,
                         const PgQuery__ImportForeignSchemaStmt& import);  // ddl_import.cc
bool Call(Ddl& ddl, const PgQuery__CallStmt& call);                        // attach.cc
void Analyze(Ddl& ddl, const PgQuery__VacuumStmt& analyze);                // attach.cc

}  // namespace sluice
