// What belongs to tables made through Sluice: constraints, indexes, sequences. The shards hold and
// enforce the real ones; these records are for showing them, for planning and for later changes.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "catalog/role.h"
#include "types/oid.h"

namespace sluice {

// How the rows of a table that Sluice made lie on the shards.
enum class Distribution : uint8_t {
  kNone,        // attached from outside, or not a table with rows
  kHash,        // kPartitioned by hash, one hidden leaf a server
  kEven,        // as kInheritsParent: a row may be anywhere; one hidden leaf a server
  kReplicated,  // kReplicated: every row on every server
};

// pg_constraint.contype
enum class ConstraintKind : char {
  kCheck = 'c',
  kForeignKey = 'f',
  kPrimaryKey = 'p',
  kUnique = 'u',
  kExclusion = 'x',
};

struct Constraint {
  Oid oid = kInvalidOid;
  std::string name;
  ConstraintKind kind = ConstraintKind::kCheck;
  std::vector<int> columns;  // indexes into the table's columns; empty for some checks
  std::string definition;    // as pg_get_constraintdef() prints it
  Oid index = kInvalidOid;   // of a primary key, unique or exclusion constraint
  bool validated = true;
  bool deferrable = false, deferred = false;
  // Foreign key: the other table, the columns there, and pg_constraint's letters.
  Oid referenced_table = kInvalidOid;
  std::vector<int> referenced_columns;
  char on_update = 'a', on_delete = 'a', match = 's';
};

struct Index {
  Oid oid = kInvalidOid;
  std::string name;          // in the table's schema
  std::string method;        // "btree", …
  std::vector<int> columns;  // indexes into the table's columns; -1: an expression
  int key_columns = 0;       // the first of `columns`; the others are INCLUDEd
  bool unique = false, primary = false;
  bool valid = true;
  bool replica_identity = false;
  std::string definition;  // as pg_get_indexdef() prints it
  std::string predicate;   // as pg_get_expr() prints it; empty: none
};

// Values are handed out by Sluice (catalog/sequence_values.h), not by the shards.
struct Sequence {
  Oid oid = kInvalidOid;
  std::string schema, name;
  std::string owner;
  Oid type = kInt8Oid;
  int64_t start = 1, increment = 1;
  int64_t min = 1, max = std::numeric_limits<int64_t>::max();
  int64_t cache = 1;
  bool cycle = false;
  // Where its values are (catalog/sequence_values.h): another one after RESTART, so that a rolled
  // back transaction leaves the old; `restart` is where a new one begins.
  Oid storage = kInvalidOid;
  int64_t restart = 1;
  // OWNED BY; kInvalidOid: none. It goes with the column.
  Oid owned_by = kInvalidOid;
  std::string owned_column;
  bool identity = false;  // of an identity column
  Acl acl;
};

struct Schema {
  Oid oid = kInvalidOid;
  std::string owner;
  Acl acl;
};

}  // namespace sluice
