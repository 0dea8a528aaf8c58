#include "postmaster/ddl.h"

#include "postmaster/ddl_distributed.h"

namespace sluice {

namespace {

const char* ObjectTag(PgQuery__ObjectType type) {
  switch (type) {
    case PG_QUERY__OBJECT_TYPE__OBJECT_FOREIGN_TABLE:
      return "FOREIGN TABLE";
    case PG_QUERY__OBJECT_TYPE__OBJECT_VIEW:
      return "VIEW";
    case PG_QUERY__OBJECT_TYPE__OBJECT_SCHEMA:
      return "SCHEMA";
    case PG_QUERY__OBJECT_TYPE__OBJECT_FOREIGN_SERVER:
      return "SERVER";
    case PG_QUERY__OBJECT_TYPE__OBJECT_FDW:
      return "FOREIGN DATA WRAPPER";
    case PG_QUERY__OBJECT_TYPE__OBJECT_EXTENSION:
      return "EXTENSION";
    case PG_QUERY__OBJECT_TYPE__OBJECT_TYPE:
      return "TYPE";
    case PG_QUERY__OBJECT_TYPE__OBJECT_TABLE:
      return "TABLE";
    case PG_QUERY__OBJECT_TYPE__OBJECT_INDEX:
      return "INDEX";
    case PG_QUERY__OBJECT_TYPE__OBJECT_SEQUENCE:
      return "SEQUENCE";
    case PG_QUERY__OBJECT_TYPE__OBJECT_MATVIEW:
      return "MATERIALIZED VIEW";
    case PG_QUERY__OBJECT_TYPE__OBJECT_FUNCTION:
      return "FUNCTION";
    case PG_QUERY__OBJECT_TYPE__OBJECT_ROLE:
      return "ROLE";
    default:
      return "OBJECT";
  }
}

// Columns are renamed by ALTER of the relation they belong to.
PgQuery__ObjectType RenamedObject(const PgQuery__RenameStmt& rename) {
  if (rename.rename_type == PG_QUERY__OBJECT_TYPE__OBJECT_TABCONSTRAINT)
    return PG_QUERY__OBJECT_TYPE__OBJECT_TABLE;
  bool part = rename.rename_type == PG_QUERY__OBJECT_TYPE__OBJECT_COLUMN;
  return part ? rename.relation_type : rename.rename_type;
}

// What only superusers may do; "" for all else, where each command asks for what it needs.
std::string_view SuperuserCommand(const RawNode& node) {
  switch (node.node_case) {
    case PG_QUERY__NODE__NODE_CREATE_FOREIGN_SERVER_STMT:
    case PG_QUERY__NODE__NODE_ALTER_FOREIGN_SERVER_STMT:
      return "create or alter servers";
    case PG_QUERY__NODE__NODE_CREATE_USER_MAPPING_STMT:
    case PG_QUERY__NODE__NODE_ALTER_USER_MAPPING_STMT:
    case PG_QUERY__NODE__NODE_DROP_USER_MAPPING_STMT:
      return "change user mappings";
    case PG_QUERY__NODE__NODE_CREATE_EXTENSION_STMT:
    case PG_QUERY__NODE__NODE_CREATE_FDW_STMT:
      return "create extensions";
    case PG_QUERY__NODE__NODE_CREATE_FOREIGN_TABLE_STMT:
    case PG_QUERY__NODE__NODE_IMPORT_FOREIGN_SCHEMA_STMT:
      return "create foreign tables";
    case PG_QUERY__NODE__NODE_CALL_STMT:
      return "attach, detach or analyze tables";
    default:
      return "";
  }
}

// Runs the command and returns its tag; nullopt: not one of ours.
std::optional<std::string> Dispatch(Ddl& ddl) {
  const RawNode& node = *ddl.statement.node;
  if (std::string_view what = SuperuserCommand(node); !what.empty()) RequireSuperuser(ddl, what);
  switch (node.node_case) {
    case PG_QUERY__NODE__NODE_CREATE_FOREIGN_SERVER_STMT:
      CreateServer(ddl, *node.create_foreign_server_stmt);
      return "CREATE SERVER";
    case PG_QUERY__NODE__NODE_ALTER_FOREIGN_SERVER_STMT:
      AlterServer(ddl, *node.alter_foreign_server_stmt);
      return "ALTER SERVER";
    case PG_QUERY__NODE__NODE_CREATE_USER_MAPPING_STMT:
      CreateMapping(ddl, *node.create_user_mapping_stmt);
      return "CREATE USER MAPPING";
    case PG_QUERY__NODE__NODE_ALTER_USER_MAPPING_STMT:
      AlterMapping(ddl, *node.alter_user_mapping_stmt);
      return "ALTER USER MAPPING";
    case PG_QUERY__NODE__NODE_DROP_USER_MAPPING_STMT:
      DropMapping(ddl, *node.drop_user_mapping_stmt);
      return "DROP USER MAPPING";
    case PG_QUERY__NODE__NODE_CREATE_EXTENSION_STMT:
      CreateExtension(ddl, *node.create_extension_stmt);
      return "CREATE EXTENSION";
    case PG_QUERY__NODE__NODE_CREATE_FDW_STMT:
      CreateWrapper(ddl, *node.create_fdw_stmt);
      return "CREATE FOREIGN DATA WRAPPER";
    case PG_QUERY__NODE__NODE_CREATE_FOREIGN_TABLE_STMT:
      CreateForeignTable(ddl, *node.create_foreign_table_stmt);
      return "CREATE FOREIGN TABLE";
    case PG_QUERY__NODE__NODE_CREATE_STMT:
      CreateTable(ddl, *node.create_stmt);
      return "CREATE TABLE";
    case PG_QUERY__NODE__NODE_ALTER_TABLE_STMT:
      AlterTable(ddl, *node.alter_table_stmt);
      return std::string("ALTER ") + ObjectTag(node.alter_table_stmt->objtype);
    case PG_QUERY__NODE__NODE_RENAME_STMT:
      Rename(ddl, *node.rename_stmt);
      return std::string("ALTER ") + ObjectTag(RenamedObject(*node.rename_stmt));
    case PG_QUERY__NODE__NODE_ALTER_OWNER_STMT:
      AlterOwner(ddl, *node.alter_owner_stmt);
      return std::string("ALTER ") + ObjectTag(node.alter_owner_stmt->object_type);
    case PG_QUERY__NODE__NODE_ALTER_OBJECT_SCHEMA_STMT:
      AlterSchema(ddl, *node.alter_object_schema_stmt);
      return std::string("ALTER ") + ObjectTag(node.alter_object_schema_stmt->object_type);
    case PG_QUERY__NODE__NODE_VIEW_STMT:
      CreateView(ddl, *node.view_stmt);
      return "CREATE VIEW";
    case PG_QUERY__NODE__NODE_CREATE_TABLE_AS_STMT:
      if (node.create_table_as_stmt->objtype != PG_QUERY__OBJECT_TYPE__OBJECT_MATVIEW)
        return CreateTableAs(ddl, *node.create_table_as_stmt);
      CreateMaterializedView(ddl, *node.create_table_as_stmt);
      return "CREATE MATERIALIZED VIEW";
    case PG_QUERY__NODE__NODE_SELECT_STMT:
      return SelectInto(ddl);
    case PG_QUERY__NODE__NODE_REFRESH_MAT_VIEW_STMT:
      RefreshMaterializedView(ddl, *node.refresh_mat_view_stmt);
      return "REFRESH MATERIALIZED VIEW";
    case PG_QUERY__NODE__NODE_CREATE_SCHEMA_STMT:
      CreateSchema(ddl, *node.create_schema_stmt);
      return "CREATE SCHEMA";
    case PG_QUERY__NODE__NODE_DROP_STMT:
      Drop(ddl, *node.drop_stmt);
      return std::string("DROP ") + ObjectTag(node.drop_stmt->remove_type);
    case PG_QUERY__NODE__NODE_IMPORT_FOREIGN_SCHEMA_STMT:
      ImportForeignSchema(ddl, *node.import_foreign_schema_stmt);
      return "IMPORT FOREIGN SCHEMA";
    case PG_QUERY__NODE__NODE_CREATE_ROLE_STMT:
      CreateRole(ddl, *node.create_role_stmt);
      return "CREATE ROLE";
    case PG_QUERY__NODE__NODE_ALTER_ROLE_STMT:
      AlterRole(ddl, *node.alter_role_stmt);
      return "ALTER ROLE";
    case PG_QUERY__NODE__NODE_DROP_ROLE_STMT:
      DropRole(ddl, *node.drop_role_stmt);
      return "DROP ROLE";
    case PG_QUERY__NODE__NODE_GRANT_ROLE_STMT:
      GrantRole(ddl, *node.grant_role_stmt);
      return node.grant_role_stmt->is_grant ? "GRANT ROLE" : "REVOKE ROLE";
    case PG_QUERY__NODE__NODE_COMMENT_STMT:
      CommentOn(ddl, *node.comment_stmt);
      return "COMMENT";
    case PG_QUERY__NODE__NODE_TRUNCATE_STMT:
      Truncate(ddl, *node.truncate_stmt);
      return "TRUNCATE TABLE";
    case PG_QUERY__NODE__NODE_LOCK_STMT:
      LockTables(ddl, *node.lock_stmt);
      return "LOCK TABLE";
    case PG_QUERY__NODE__NODE_INDEX_STMT:
      CreateIndex(ddl, *node.index_stmt);
      return "CREATE INDEX";
    case PG_QUERY__NODE__NODE_CREATE_SEQ_STMT:
      CreateSequence(ddl, *node.create_seq_stmt);
      return "CREATE SEQUENCE";
    case PG_QUERY__NODE__NODE_ALTER_SEQ_STMT:
      AlterSequence(ddl, *node.alter_seq_stmt);
      return "ALTER SEQUENCE";
    case PG_QUERY__NODE__NODE_CREATE_ENUM_STMT:
      CreateEnum(ddl, *node.create_enum_stmt);
      return "CREATE TYPE";
    case PG_QUERY__NODE__NODE_ALTER_ENUM_STMT:
      AlterEnum(ddl, *node.alter_enum_stmt);
      return "ALTER TYPE";
    case PG_QUERY__NODE__NODE_GRANT_STMT:
      Grant(ddl, *node.grant_stmt);
      return node.grant_stmt->is_grant ? "GRANT" : "REVOKE";
    case PG_QUERY__NODE__NODE_CALL_STMT:
      if (!Call(ddl, *node.call_stmt)) return std::nullopt;
      return "CALL";
    case PG_QUERY__NODE__NODE_VACUUM_STMT:
      Maintain(ddl, *node.vacuum_stmt);
      return node.vacuum_stmt->is_vacuumcmd ? "VACUUM" : "ANALYZE";
    default:
      return std::nullopt;
  }
}

}  // namespace

void Ddl::ThrowAt(Error error, int location) const {
  if (location >= 0) {
    // Locations count from the start of the whole query string, of which the statement is a part.
    std::string_view text = statement.text;
    std::string_view whole(text.data() - statement.location,
                           static_cast<size_t>(statement.location) + text.size());
    error.position = CharacterPosition(whole, location);
  }
  throw QueryError(std::move(error));
}

AnalyzeContext Ddl::MakeAnalyzeContext(std::vector<Oid>* param_types) {
  AnalyzeContext analyze;
  analyze.catalog = &catalog;
  analyze.settings = context.settings;
  analyze.search_path = context.search_path;
  analyze.user = context.user;
  analyze.database = context.database;
  analyze.arena = &arena;
  analyze.param_types = param_types;
  return analyze;
}

namespace {

// Runs `work` on a copy of the catalog, which is the session's if it succeeds.
template <typename Work>
bool Carry(const RawStatement& statement, DdlContext& context, Work&& work) {
  Ddl ddl(statement, context);
  try {
    if (!work(ddl)) return false;
  } catch (...) {
    // Types and collations of the failed copy may be known to this process by now.
    context.current->MakeCurrent();
    throw;
  }
  if (ddl.changed) {
    context.current = std::make_shared<const Catalog>(std::move(ddl.catalog));
    context.current->MakeCurrent();
    context.pending = true;
  }
  return true;
}

}  // namespace

bool RunDdl(const RawStatement& statement, DdlContext& context) {
  // Cheap for the statements that are none: nothing is copied.
  switch (statement.node->node_case) {
    case PG_QUERY__NODE__NODE_SELECT_STMT:
      if (statement.node->select_stmt->into_clause != nullptr) break;
      return false;
    case PG_QUERY__NODE__NODE_INSERT_STMT:
    case PG_QUERY__NODE__NODE_UPDATE_STMT:
    case PG_QUERY__NODE__NODE_DELETE_STMT:
    case PG_QUERY__NODE__NODE_TRANSACTION_STMT:
    case PG_QUERY__NODE__NODE_VARIABLE_SET_STMT:
    case PG_QUERY__NODE__NODE_VARIABLE_SHOW_STMT:
    case PG_QUERY__NODE__NODE_EXPLAIN_STMT:
    case PG_QUERY__NODE__NODE_COPY_STMT:
      return false;
    default:
      break;
  }
  return Carry(statement, context, [&](Ddl& ddl) {
    std::optional<std::string> tag = Dispatch(ddl);
    if (tag) context.command_tag = *tag;
    return tag.has_value();
  });
}

void RunDdlFinish(const RawStatement& statement, DdlContext& context) {
  Carry(statement, context, [&](Ddl& ddl) {
    context.finish(ddl);
    return true;
  });
}

}  // namespace sluice
