// What Sluice knows: servers, user mappings, tables, partitions, views, user types. A Catalog is an
// immutable snapshot in the process's heap; a change makes a new one and commits it durably
// (catalog/store.h), after which every backend loads it before its next statement.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/builtin.h"
#include "catalog/name_index.h"
#include "catalog/table_objects.h"
#include "common/error.h"

namespace sluice {

using Options = std::map<std::string, std::string>;

struct Server {
  Oid oid;
  std::string name;
  std::string type, version;
  std::string wrapper;  // "postgres_fdw", or "lines_fdw"
  Options options;
  std::string owner;
  // The database's default collation, once the server was asked: provider, locale and version
  // ("c en_US.UTF-8 2.36"). Empty: not asked yet.
  std::string collation;
};

struct UserMapping {
  Oid server;
  std::string user;  // "public" for everyone
  Options options;
};

struct ColumnInfo {
  std::string name;
  Oid type;
  int32_t typmod = -1;
  Oid collation = kInvalidOid;
  bool not_null = false;
  std::string default_sql;  // of a generated column: its expression
  Options options;
  char identity = '\0';        // as pg_attribute.attidentity: 'a' always, 'd' by default
  bool generated = false;      // GENERATED ALWAYS AS (…) STORED: the shards compute it
  Oid sequence = kInvalidOid;  // of an identity column
  std::string comment;
  // The column's name on the shard.
  const std::string& remote_name() const;
  // Statistics, from the shards: distinct values (> 0 a count, < 0 a fraction of the rows, 0
  // unknown).
  double distinct = 0;
  double null_fraction = 0;
  int32_t average_width_bytes = 8;
};

// kReplicated: the same rows on each of its leaves; a read takes any one of them.
enum class RelationKind : uint8_t {
  kForeignTable,
  kPartitioned,
  kInheritsParent,
  kView,
  kReplicated,
  kMaterializedView,  // live: kept up to date by the view worker
};
enum class PartitionStrategy : uint8_t { kNone, kHash, kList, kRange };

// One partition's place. Values are literals in the key type's text format.
struct PartitionBound {
  bool is_default = false;
  int modulus = 0, remainder = 0;                // hash
  std::vector<std::optional<std::string>> list;  // nullopt: NULL
  struct RangeDatum {
    int infinite = 0;
    std::string value;
  };  // infinite: -1 MINVALUE, 1 MAXVALUE
  std::vector<RangeDatum> from, to;
};

struct PartitionKey {
  PartitionStrategy strategy = PartitionStrategy::kNone;
  std::vector<std::string> expressions;  // SQL over the relation's columns: "id", "(id % 4)"
  std::vector<Oid> types;
  std::vector<Oid> collations;  // kInvalidOid where the type has none
};

struct Relation {
  Oid oid;
  std::string schema, name;
  RelationKind kind;
  std::vector<ColumnInfo> columns;
  std::vector<int> primary_key;  // column indexes; as on the shards
  std::string owner;

  Oid server = kInvalidOid;  // foreign table
  Options options;           // schema_name, table_name, …
  Oid parent = kInvalidOid;  // of a partition or an INHERITS child
  PartitionBound bound;

  PartitionKey key;           // kPartitioned
  std::vector<Oid> children;  // partitions or INHERITS children, in creation order

  // kView, kMaterializedView: its query, relation names qualified by schema wherever a CTE does not
  // have the same name; and the relations it names.
  std::string view_sql;
  std::vector<Oid> view_uses;
  // kMaterializedView: the session's settings at CREATE under which its expressions go on being
  // evaluated (TimeZone, …), and the command, for jobs.
  Options view_settings;
  std::string view_command;
  double row_estimate = 1000;

  // A table that Sluice made (distribution != kNone) is one ordinary table to users. Its leaves are
  // hidden: no name finds them, and nothing lists them. They are on the servers under the table's
  // own schema and name.
  Distribution distribution = Distribution::kNone;
  bool hidden = false;
  std::vector<Constraint> constraints;
  std::vector<Index> indexes;
  Acl acl;

  bool is_distributed() const { return distribution != Distribution::kNone; }
  const std::string& remote_schema() const;  // option schema_name or the own
  const std::string& remote_table() const;
  int FindColumn(std::string_view column_name) const;  // -1: none
};

struct UserType {
  TypeInfo info;  // its schema and name are empty (they would be views into a copy): see below, or
                  // FindType()
  std::string schema, name;
  std::vector<std::string> enum_labels;  // in order; empty: an opaque type known by name only
};

// A collation that the shards have, under Sluice's oid; kDefaultCollationOid is their databases'
// default.
struct CatalogCollation {
  Oid oid;
  std::string schema, name;  // "default" for the databases' own
  char provider;             // as in pg_collation: c libc, i ICU
  std::string locale, version;
  bool deterministic = true;
};

class Catalog {
 public:
  uint64_t generation = 0;
  Oid next_oid = kFirstUserOid;
  std::map<Oid, Server> servers;
  std::vector<UserMapping> user_mappings;
  std::map<Oid, Relation> relations;
  std::map<Oid, UserType> types;
  std::map<Oid, CatalogCollation> collations;
  std::map<Oid, Sequence> sequences;
  std::map<Oid, Role> roles;
  std::map<std::string, Schema> schemas;  // by name; "public" is always there
  std::map<std::string, Oid> extensions;  // that CREATE EXTENSION made on the servers
  std::map<Oid, std::string> comments;    // of objects; those of columns are with the columns
  std::map<std::string, std::string> database_settings;
  // Transactions over several servers that were decided by committing this catalog: number and
  // servers. Only those that the decision log may not know yet are kept.
  std::vector<std::pair<uint64_t, std::vector<Oid>>> decisions;

  Catalog();
  const Server* FindServer(std::string_view name) const;
  const UserMapping* FindUserMapping(Oid server,
                                     std::string_view user) const;  // the user's, or public
  const Relation* FindRelation(std::string_view schema, std::string_view name) const;
  // Unqualified: the first schema of the path that has it.
  const Relation* FindRelation(const std::vector<std::string>& search_path,
                               std::string_view name) const;
  const Relation* FindRelation(Oid oid) const;
  // Relations, sequences and indexes share one space of names.
  const Sequence* FindSequence(std::string_view schema, std::string_view name) const;
  const Sequence* FindSequence(const std::vector<std::string>& search_path,
                               std::string_view name) const;
  struct IndexOfTable {
    const Relation* table = nullptr;
    const Index* index = nullptr;
    explicit operator bool() const { return index != nullptr; }
  };
  IndexOfTable FindIndex(std::string_view schema, std::string_view name) const;
  const Role* FindRole(std::string_view name) const;
  // All foreign tables at or below `relation` (itself, if it is one).
  std::vector<const Relation*> Leaves(const Relation& relation) const;
  // An empty schema: pg_catalog, then the first user type of that name ("public" before the
  // others). Internal names ("int4", "_int4").
  const TypeInfo* FindTypeByName(std::string_view schema, std::string_view name) const;
  const UserType* FindUserType(Oid oid) const;  // nullptr: Postgres's own
  bool HasSchema(std::string_view name)
      const;  // public, pg_catalog, information_schema, sluice and the user's
  // "C", "POSIX", "default" and what the shards reported; kInvalidOid: none. An empty schema: any.
  Oid FindCollationByName(std::string_view schema, std::string_view name) const;
  // As SQL for a shard: "C", "de-x-icu", … quoted; "" for kInvalidOid.
  std::string CollationSql(Oid collation) const;

  // Makes the types and collations known to FindType() and FindCollator() of this process.
  void RegisterObjects() const;
  // Whoever makes a Catalog current in a process calls it: RegisterObjects(), and look-ups by name
  // become fast. The Catalog is not changed after that.
  void MakeCurrent() const;

 private:
  // What has the name; linear in a copy that is being changed.
  NameIndex::Entry FindName(std::string_view schema, std::string_view name) const;
  mutable NameIndex names_;
};

}  // namespace sluice
