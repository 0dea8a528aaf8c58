// DROP …, with what depends on it; CREATE SCHEMA.
#include "postmaster/ddl_distributed.h"

namespace sluice {

namespace {

// What is dropped, in the order in which it is found.
struct DropSet {
  struct Item {
    enum Kind { kSchema, kServer, kMapping, kRelation, kType, kSequence } kind;
    Oid oid;           // server, relation, type, sequence; of a mapping: its server
    std::string name;  // schema; of a mapping: its user
    std::string description;
    bool asked;  // named by the command, or part of what is
    bool operator==(const Item& other) const {
      return kind == other.kind && oid == other.oid && name == other.name;
    }
  };
  std::vector<Item> items;
  std::vector<std::string>
      dependencies;  // "foreign table t depends on server s", of those not asked for

  bool Has(const Item& item) const {
    return std::find(items.begin(), items.end(), item) != items.end();
  }
};
using Item = DropSet::Item;

Item RelationItem(const Ddl& ddl, Oid oid, bool asked) {
  return {Item::kRelation, oid, "", Describe(ddl, ddl.catalog.relations.at(oid)), asked};
}
Item ServerItem(const Server& server, bool asked) {
  return {Item::kServer, server.oid, "", "server " + QuoteIdentifier(server.name), asked};
}

// Adds what depends on items[index]; `automatic` dependents go without CASCADE.
void AddDependents(const Ddl& ddl, size_t index, DropSet* set) {
  Item owner = set->items[index];
  auto add = [&](Item item, bool automatic) {
    if (set->Has(item)) return;
    item.asked = automatic && owner.asked;
    if (!automatic || !owner.asked)
      set->dependencies.push_back(item.description + " depends on " + owner.description);
    set->items.push_back(std::move(item));
  };
  const Catalog& catalog = ddl.catalog;
  if (owner.kind == Item::kServer)
    for (const UserMapping& mapping : catalog.user_mappings)
      if (mapping.server == owner.oid)
        add({Item::kMapping, owner.oid, mapping.user,
             fmt::format("user mapping for {} on server {}", mapping.user,
                         catalog.servers.at(owner.oid).name),
             false},
            false);
  for (const auto& [oid, relation] : catalog.relations) {
    bool in_schema = owner.kind == Item::kSchema && relation.schema == owner.name;
    bool on_server = owner.kind == Item::kServer && relation.server == owner.oid;
    bool child = owner.kind == Item::kRelation && relation.parent == owner.oid;
    bool reads = owner.kind == Item::kRelation &&
                 std::find(relation.view_uses.begin(), relation.view_uses.end(), owner.oid) !=
                     relation.view_uses.end();
    if (!in_schema && !on_server && !child && !reads) continue;
    if (on_server && relation.hidden)
      throw QueryError(MakeError(sqlstate::kDependentObjectsStillExist,
                                 "cannot drop {} because {} has rows on it", owner.description,
                                 Describe(ddl, catalog.relations.at(relation.parent)))
                           .Hint("Drop the table first."));
    if (in_schema && relation.hidden) continue;  // goes with its table
    // A partitioned table takes its partitions with it; inheritance children stand for themselves.
    bool partition = child && (relation.hidden ||
                               catalog.relations.at(owner.oid).kind == RelationKind::kPartitioned);
    add(RelationItem(ddl, oid, false), partition);
  }
  if (owner.kind != Item::kSchema) return;
  for (const auto& [oid, type] : catalog.types)
    if (type.schema == owner.name && type.info.element == kInvalidOid)
      add({Item::kType, oid, "", "type " + QuoteQualified(type.schema, type.name), false}, false);
  for (const auto& [oid, sequence] : catalog.sequences)
    if (sequence.schema == owner.name && sequence.owned_by == kInvalidOid)
      add({Item::kSequence, oid, "", "sequence " + QuoteQualified(sequence.schema, sequence.name),
           false},
          false);
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

void CheckDependents(Ddl& ddl, const DropSet& set, bool cascade, const std::string& what) {
  std::vector<std::string> cascades;
  for (const Item& item : set.items)
    if (!item.asked) cascades.push_back("drop cascades to " + item.description);
  if (cascades.empty()) return;
  if (!cascade)
    throw QueryError(MakeError(sqlstate::kDependentObjectsStillExist,
                               "cannot drop {} because other objects depend on {}", what,
                               what == "desired object(s)" ? "them" : "it")
                         .Detail(Joined(set.dependencies))
                         .Hint("Use DROP ... CASCADE to drop the dependent objects too."));
  if (cascades.size() == 1) {
    ddl.Notice(MakeError(sqlstate::kSuccess, "{}", cascades[0]));
    return;
  }
  ddl.Notice(MakeError(sqlstate::kSuccess, "drop cascades to {} other objects", cascades.size())
                 .Detail(Joined(cascades)));
}

// The servers' tables, all in one command: they may reference each other.
void DropOnServers(Ddl& ddl, const DropSet& set, bool cascade) {
  std::map<Oid, std::vector<std::string>> names;  // by server
  for (const Item& item : set.items) {
    if (item.kind != Item::kRelation) continue;
    const Relation& table = ddl.catalog.relations.at(item.oid);
    if (!table.is_distributed()) continue;
    for (Oid server : ServersOf(ddl, table)) names[server].push_back(Qualified(table));
  }
  std::vector<RemoteQuery> queries;
  for (const auto& [server, list] : names)
    queries.push_back(
        {server, "DROP TABLE IF EXISTS " + JoinNames(list) + (cascade ? " CASCADE" : "")});
  OnEach(ddl, queries);
}

// A schema of a server in which others have made something stays there.
void DropSchemaOnServers(Ddl& ddl, const std::string& schema) {
  if (ddl.context.default_distribution == "none") return;
  std::vector<Oid> servers = ShardServersIfAny(ddl);
  if (servers.empty()) return;
  std::string drop = fmt::format(
      "BEGIN DROP SCHEMA IF EXISTS {}; EXCEPTION WHEN dependent_objects_still_exist OR "
      "insufficient_privilege THEN NULL; END",
      QuoteIdentifier(schema));
  ddl.OnServers(servers, {"DO " + QuoteLiteral(drop)});
}

void Remove(Ddl& ddl, const DropSet& set) {
  std::vector<Oid> dropped;
  // Types after the tables that use them, schemas when they are empty.
  std::vector<Item> items = set.items;
  auto last = [](const Item& item) {
    return item.kind == Item::kSchema ? 2 : item.kind == Item::kType ? 1 : 0;
  };
  std::ranges::stable_sort(items, {}, last);
  for (const Item& item : items) {
    switch (item.kind) {
      case Item::kType:
        DropType(ddl, item.oid);
        break;
      case Item::kSequence:
        ddl.catalog.sequences.erase(item.oid);
        ddl.catalog.comments.erase(item.oid);
        break;
      case Item::kSchema:
        std::erase_if(ddl.catalog.sequences,
                      [&](const auto& entry) { return entry.second.schema == item.name; });
        DropSchemaOnServers(ddl, item.name);
        ddl.catalog.comments.erase(ddl.catalog.schemas.at(item.name).oid);
        ddl.catalog.schemas.erase(item.name);
        break;
      case Item::kServer:
        ddl.catalog.servers.erase(item.oid);
        break;
      case Item::kMapping:
        std::erase_if(ddl.catalog.user_mappings, [&](const UserMapping& mapping) {
          return mapping.server == item.oid && mapping.user == item.name;
        });
        break;
      case Item::kRelation: {
        Relation& relation = ddl.GetRelation(item.oid);
        auto parent = ddl.catalog.relations.find(relation.parent);
        if (parent != ddl.catalog.relations.end()) std::erase(parent->second.children, item.oid);
        DropOwnedSequences(ddl, item.oid, nullptr);
        ddl.catalog.comments.erase(item.oid);
        if (relation.is_distributed()) dropped.push_back(item.oid);
        ddl.catalog.relations.erase(item.oid);
        break;
      }
    }
  }
  for (Oid oid : dropped) ReadBackReferencing(ddl, oid);
  ddl.changed = true;
  SetDefaultCollation(ddl);
}

struct KindWord {
  const char* word;  // "foreign table"
  const char* article;
  const char* command;  // for the hint
};

KindWord WordOf(RelationKind kind) {
  switch (kind) {
    case RelationKind::kForeignTable:
      return {"foreign table", "a", "FOREIGN TABLE"};
    case RelationKind::kView:
      return {"view", "a", "VIEW"};
    case RelationKind::kMaterializedView:
      return {"materialized view", "a", "MATERIALIZED VIEW"};
    default:
      return {"table", "a", "TABLE"};
  }
}

KindWord WantedWord(PgQuery__ObjectType type) {
  if (type == PG_QUERY__OBJECT_TYPE__OBJECT_FOREIGN_TABLE)
    return WordOf(RelationKind::kForeignTable);
  if (type == PG_QUERY__OBJECT_TYPE__OBJECT_VIEW) return WordOf(RelationKind::kView);
  if (type == PG_QUERY__OBJECT_TYPE__OBJECT_MATVIEW) return WordOf(RelationKind::kMaterializedView);
  return WordOf(RelationKind::kPartitioned);
}

[[noreturn]] void ThrowWrongKind(const Relation& relation, const KindWord& wanted) {
  KindWord is = WordOf(relation.kind);
  throw QueryError(
      MakeError(sqlstate::kWrongObjectType, "\"{}\" is not {} {}", relation.name, wanted.article,
                wanted.word)
          .Hint(fmt::format("Use DROP {} to remove {} {}.", is.command, is.article, is.word)));
}

// What the command names; nullopt with a NOTICE: not there, IF EXISTS.
std::optional<Item> NamedRelation(Ddl& ddl, const PgQuery__DropStmt& drop, const RawNode* object) {
  QualifiedName name = NameOfList(ddl, object->list->items, object->list->n_items);
  KindWord wanted = WantedWord(drop.remove_type);
  const Relation* found = name.schema.empty()
                              ? ddl.catalog.FindRelation(ddl.context.search_path, name.name)
                              : ddl.catalog.FindRelation(name.schema, name.name);
  if (found == nullptr) {
    bool no_schema = !name.schema.empty() && !ddl.catalog.HasSchema(name.schema);
    std::string message = no_schema
                              ? fmt::format("schema \"{}\" does not exist", name.schema)
                              : fmt::format("{} \"{}\" does not exist", wanted.word, name.name);
    if (!drop.missing_ok)
      Throw(no_schema ? sqlstate::kInvalidSchemaName
            : drop.remove_type == PG_QUERY__OBJECT_TYPE__OBJECT_FOREIGN_TABLE
                ? sqlstate::kUndefinedObject
                : sqlstate::kUndefinedTable,
            "{}", message);
    ddl.Notice(MakeError(sqlstate::kSuccess, "{}, skipping", message));
    return std::nullopt;
  }
  if (std::string_view(WordOf(found->kind).word) != wanted.word) ThrowWrongKind(*found, wanted);
  RequireOwner(ddl, *found);
  return RelationItem(ddl, found->oid, true);
}

std::optional<Item> NamedServer(Ddl& ddl, const PgQuery__DropStmt& drop, const RawNode* object) {
  std::string_view name = StringOf(object);
  const Server* server = ddl.catalog.FindServer(name);
  if (server != nullptr) {
    RequireSuperuser(ddl, "drop servers");
    return ServerItem(*server, true);
  }
  if (!drop.missing_ok) Throw(sqlstate::kUndefinedObject, "server \"{}\" does not exist", name);
  ddl.Notice(MakeError(sqlstate::kSuccess, "server \"{}\" does not exist, skipping", name));
  return std::nullopt;
}

std::optional<Item> NamedSchema(Ddl& ddl, const PgQuery__DropStmt& drop, const RawNode* object) {
  std::string name(StringOf(object));
  RequireSchemaOwner(ddl, name);
  if (name != "public" && ddl.catalog.schemas.contains(name))
    return Item{Item::kSchema, kInvalidOid, name, "schema " + QuoteIdentifier(name), true};
  if (ddl.catalog.HasSchema(name)) Refuse("dropping schema {} is not supported", name);
  if (!drop.missing_ok) Throw(sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist", name);
  ddl.Notice(MakeError(sqlstate::kSuccess, "schema \"{}\" does not exist, skipping", name));
  return std::nullopt;
}

}  // namespace

void Drop(Ddl& ddl, const PgQuery__DropStmt& drop) {
  DropSet set;
  for (size_t i = 0; i < drop.n_objects; i++) {
    std::optional<Item> item;
    switch (drop.remove_type) {
      case PG_QUERY__OBJECT_TYPE__OBJECT_TABLE:
      case PG_QUERY__OBJECT_TYPE__OBJECT_VIEW:
      case PG_QUERY__OBJECT_TYPE__OBJECT_MATVIEW:
      case PG_QUERY__OBJECT_TYPE__OBJECT_FOREIGN_TABLE:
        item = NamedRelation(ddl, drop, drop.objects[i]);
        break;
      case PG_QUERY__OBJECT_TYPE__OBJECT_FOREIGN_SERVER:
        item = NamedServer(ddl, drop, drop.objects[i]);
        break;
      case PG_QUERY__OBJECT_TYPE__OBJECT_SCHEMA:
        item = NamedSchema(ddl, drop, drop.objects[i]);
        break;
      case PG_QUERY__OBJECT_TYPE__OBJECT_EXTENSION:
        return DropExtensions(ddl, drop);
      case PG_QUERY__OBJECT_TYPE__OBJECT_INDEX:
        return DropIndexes(ddl, drop);
      case PG_QUERY__OBJECT_TYPE__OBJECT_SEQUENCE:
        return DropSequences(ddl, drop);
      case PG_QUERY__OBJECT_TYPE__OBJECT_TYPE:
        return DropTypes(ddl, drop);
      default:
        Refuse("this form of DROP is not supported");
    }
    if (item && !set.Has(*item)) set.items.push_back(std::move(*item));
  }
  if (set.items.empty()) return;
  std::string what = set.items.size() == 1 ? set.items[0].description : "desired object(s)";
  for (size_t i = 0; i < set.items.size(); i++) AddDependents(ddl, i, &set);
  bool cascade = drop.behavior == PG_QUERY__DROP_BEHAVIOR__DROP_CASCADE;
  CheckDependents(ddl, set, cascade, what);
  DropOnServers(ddl, set, cascade);
  Remove(ddl, set);
}

void DropRelationTree(Ddl& ddl, Oid root) {
  DropSet set;
  set.items.push_back(RelationItem(ddl, root, true));
  std::string what = set.items[0].description;
  for (size_t i = 0; i < set.items.size(); i++)
    for (Oid child : ddl.catalog.relations.at(set.items[i].oid).children)
      set.items.push_back(RelationItem(ddl, child, true));
  for (size_t i = 0; i < set.items.size(); i++) AddDependents(ddl, i, &set);
  CheckDependents(ddl, set, false, what);
  Remove(ddl, set);
}

void CreateSchema(Ddl& ddl, const PgQuery__CreateSchemaStmt& create) {
  std::string name(Text(create.schemaname));
  if (name.empty()) name = RoleName(ddl, *create.authrole);
  if (!CurrentRole(ddl).superuser)
    Throw(sqlstate::kInsufficientPrivilege, "permission denied for database {}",
          ddl.context.database);
  if (create.n_schema_elts > 0) Refuse("CREATE SCHEMA with elements is not supported");
  if (name.starts_with("pg_"))
    throw QueryError(MakeError(MakeSqlState("42939"), "unacceptable schema name \"{}\"", name)
                         .Detail("The prefix \"pg_\" is reserved for system schemas."));
  if (ddl.catalog.HasSchema(name)) {
    if (!create.if_not_exists)
      Throw(sqlstate::kDuplicateSchema, "schema \"{}\" already exists", name);
    ddl.Notice(
        MakeError(sqlstate::kDuplicateSchema, "schema \"{}\" already exists, skipping", name));
    return;
  }
  Oid oid = ddl.NewOid();
  ddl.catalog.schemas[name] = {oid, ddl.context.user, {}};
  std::vector<Oid> servers = ShardServersIfAny(ddl);
  if (!servers.empty() && ddl.context.default_distribution != "none")
    ddl.OnServers(servers, {"CREATE SCHEMA IF NOT EXISTS " + QuoteIdentifier(name)});
}

}  // namespace sluice
