// Servers, user mappings, wrappers, extensions.
#include "postmaster/ddl_internal.h"

namespace sluice {

namespace {

bool IsWrapper(std::string_view name) {
  return name == kPostgresWrapper || name == kLinesWrapper;
}

UserMapping* FindExactMapping(Ddl& ddl, Oid server, std::string_view user) {
  for (UserMapping& mapping : ddl.catalog.user_mappings)
    if (mapping.server == server && mapping.user == user) return &mapping;
  return nullptr;
}

}  // namespace

void CreateServer(Ddl& ddl, const PgQuery__CreateForeignServerStmt& create) {
  std::string name = create.servername, wrapper = create.fdwname;
  if (ddl.catalog.FindServer(name) != nullptr) {
    if (!create.if_not_exists)
      Throw(sqlstate::kDuplicateObject, "server \"{}\" already exists", name);
    ddl.Notice(
        MakeError(sqlstate::kDuplicateObject, "server \"{}\" already exists, skipping", name));
    return;
  }
  if (!IsWrapper(wrapper))
    Throw(sqlstate::kUndefinedObject, "foreign-data wrapper \"{}\" does not exist", wrapper);
  Options options = NewOptions(ddl, create.options, create.n_options);
  CheckOptions(wrapper, OptionContext::kServer, options);
  Server server;
  server.oid = ddl.NewOid();
  server.name = name;
  server.type = Text(create.servertype);
  server.version = Text(create.version);
  server.wrapper = wrapper;
  server.options = std::move(options);
  server.owner = ddl.context.user;
  ddl.catalog.servers.emplace(server.oid, std::move(server));
}

void AlterServer(Ddl& ddl, const PgQuery__AlterForeignServerStmt& alter) {
  Server& server = GetServer(ddl, alter.servername);
  ChangeOptions(ddl, alter.options, alter.n_options, &server.options);
  CheckOptions(server.wrapper, OptionContext::kServer, server.options);
  if (alter.has_version) server.version = Text(alter.version);
  ddl.changed = true;
  if (alter.n_options == 0) return;
  server.collation.clear();  // it may be another database now
  Oid oid = server.oid;
  for (const auto& [relation_oid, relation] : ddl.catalog.relations)
    if (relation.server == oid) return ReadDefaultCollations(ddl, std::span(&oid, 1), false);
}

void CreateMapping(Ddl& ddl, const PgQuery__CreateUserMappingStmt& create) {
  std::string user = RoleName(ddl, *create.user);
  const Server& server = GetServer(ddl, create.servername);
  if (FindExactMapping(ddl, server.oid, user) != nullptr) {
    if (!create.if_not_exists)
      Throw(sqlstate::kDuplicateObject, "user mapping for \"{}\" already exists for server \"{}\"",
            user, server.name);
    ddl.Notice(MakeError(sqlstate::kDuplicateObject,
                         "user mapping for \"{}\" already exists for server \"{}\", skipping", user,
                         server.name));
    return;
  }
  Options options = NewOptions(ddl, create.options, create.n_options);
  CheckOptions(server.wrapper, OptionContext::kUserMapping, options);
  ddl.catalog.user_mappings.push_back({server.oid, user, std::move(options)});
  ddl.changed = true;
}

void AlterMapping(Ddl& ddl, const PgQuery__AlterUserMappingStmt& alter) {
  std::string user = RoleName(ddl, *alter.user);
  const Server& server = GetServer(ddl, alter.servername);
  UserMapping* mapping = FindExactMapping(ddl, server.oid, user);
  if (mapping == nullptr)
    Throw(sqlstate::kUndefinedObject, "user mapping for \"{}\" does not exist for server \"{}\"",
          user, server.name);
  ChangeOptions(ddl, alter.options, alter.n_options, &mapping->options);
  CheckOptions(server.wrapper, OptionContext::kUserMapping, mapping->options);
  ddl.changed = true;
}

void DropMapping(Ddl& ddl, const PgQuery__DropUserMappingStmt& drop) {
  std::string user = RoleName(ddl, *drop.user);
  const Server* server = ddl.catalog.FindServer(drop.servername);
  if (server == nullptr) {
    if (!drop.missing_ok)
      Throw(sqlstate::kUndefinedObject, "server \"{}\" does not exist", drop.servername);
    ddl.Notice(
        MakeError(sqlstate::kSuccess, "server \"{}\" does not exist, skipping", drop.servername));
    return;
  }
  UserMapping* mapping = FindExactMapping(ddl, server->oid, user);
  if (mapping == nullptr) {
    if (!drop.missing_ok)
      Throw(sqlstate::kUndefinedObject, "user mapping for \"{}\" does not exist for server \"{}\"",
            user, server->name);
    ddl.Notice(MakeError(sqlstate::kSuccess,
                         "user mapping for \"{}\" does not exist for server \"{}\", skipping", user,
                         server->name));
    return;
  }
  auto& all = ddl.catalog.user_mappings;
  all.erase(all.begin() + (mapping - all.data()));
  ddl.changed = true;
}

void CreateWrapper(Ddl&, const PgQuery__CreateFdwStmt& create) {
  std::string_view name = create.fdwname;
  if (!IsWrapper(name))
    Refuse("foreign-data wrapper \"{}\" is not supported: only postgres_fdw and lines_fdw are",
           name);
  if (create.n_options > 0) Refuse("options of a foreign-data wrapper are not supported");
}

}  // namespace sluice
