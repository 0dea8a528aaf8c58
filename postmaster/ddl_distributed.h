// Tables that Sluice makes on its servers. The shards hold the real tables: a command is checked
// against the placement here, sent to every server of the table as SQL (ddl_shard_sql.h), and what
// the servers made of it is read back into the catalog, so that names, definitions and defaults are
// Postgres's own.
//
//   statement ─► placement allows it? ─► SQL on all servers, in one transaction ─► ReadBack
#pragma once

#include "postmaster/ddl_internal.h"
#include "postmaster/ddl_shard_sql.h"

namespace sluice {

// --- ddl_distributed.cc
// Whether CREATE TABLE makes a table on the servers; else it makes a parent of foreign tables.
bool MakesDistributed(const Ddl& ddl, const PgQuery__CreateStmt& create);
void CreateDistributed(Ddl& ddl, const PgQuery__CreateStmt& create);
// The servers of a table, in the order of its leaves.
std::vector<Oid> ServersOf(const Ddl& ddl, const Relation& table);
// All servers of postgres_fdw in the order of their names; throws with a hint where there is none.
std::vector<Oid> AllShardServers(const Ddl& ddl);
std::vector<Oid> ShardServersIfAny(const Ddl& ddl);
// A statement a server; servers that get the same text do it at once.
void OnEach(Ddl& ddl, const std::vector<RemoteQuery>& queries);
// The columns of a hash-distributed table's key; empty where it is an expression.
std::vector<std::string> KeyColumns(const Relation& table);
// "schema.name", quoted.
inline std::string Qualified(const Relation& relation) {
  return QuoteQualified(relation.schema, relation.name);
}

// --- ddl_placement.cc: what the placement lets the shards enforce; throws 0A000 with the reason
void CheckUniqueColumns(const Ddl& ddl, const Relation& table, std::string_view kind,
                        const std::vector<std::string>& columns);
void CheckForeignKey(Ddl& ddl, const Relation& table, const PgQuery__Constraint& constraint,
                     const std::vector<std::string>& columns);
// `column`: of a column's constraint; empty: the constraint names its own.
void CheckConstraint(Ddl& ddl, const Relation& table, const PgQuery__Constraint& constraint,
                     const std::string& column);

// --- ddl_read_back.cc
// Columns, constraints and indexes as the first of the table's servers has them.
void ReadBack(Ddl& ddl, Relation* table);
// After tables were dropped or changed: foreign keys to `table` of others are read again.
void ReadBackReferencing(Ddl& ddl, Oid table);

// --- ddl_alter_distributed.cc
void AlterDistributed(Ddl& ddl, Relation* table, const PgQuery__AlterTableStmt& alter);
void RenameDistributedColumn(Ddl& ddl, Relation* table, const std::string& from,
                             const std::string& to);
void RenameDistributed(Ddl& ddl, Relation* table, const std::string& to);
void RenameConstraint(Ddl& ddl, const PgQuery__RenameStmt& rename);
// Of a materialized view whose name, schema or columns have other names now.
void RenewIndexDefinitions(Relation* view);
void RenameIndex(Ddl& ddl, const PgQuery__RenameStmt& rename);
void MoveDistributed(Ddl& ddl, Relation* table, const std::string& schema);
void Truncate(Ddl& ddl, const PgQuery__TruncateStmt& truncate);
void LockTables(Ddl& ddl, const PgQuery__LockStmt& lock);

// --- ddl_index.cc
void CreateIndex(Ddl& ddl, const PgQuery__IndexStmt& create);
void DropIndexes(Ddl& ddl, const PgQuery__DropStmt& drop);

// --- ddl_sequence.cc
// A sequence "table_column_seq" for a column; `options` as in CREATE SEQUENCE.
Sequence& CreateColumnSequence(Ddl& ddl, const Relation& table, const std::string& column, Oid type,
                               RawNode* const* options, size_t count, bool identity);
void CreateSequence(Ddl& ddl, const PgQuery__CreateSeqStmt& create);
void AlterSequence(Ddl& ddl, const PgQuery__AlterSeqStmt& alter);
void SetSequenceOptions(Ddl& ddl, RawNode* const* options, size_t count, bool is_new,
                        Sequence* sequence);
void DropSequences(Ddl& ddl, const PgQuery__DropStmt& drop);
// Those that belong to a table's column, or to all of its columns.
void DropOwnedSequences(Ddl& ddl, Oid table, const std::string* column);
void RestartOwnedSequences(Ddl& ddl, Oid table);
std::string NextvalOf(const Sequence& sequence);
void RenameSequence(Ddl& ddl, const PgQuery__RenameStmt& rename);

// --- ddl_spread.cc
// The key that the command adds to an evenly spread table; null: it does something else.
const PgQuery__Constraint* AddedKey(const Relation& table, const PgQuery__AlterTableStmt& alter);
void SpreadByKey(Ddl& ddl, Relation* table, const PgQuery__Constraint& constraint);

// --- ddl_table_as.cc; the command's tag
std::string CreateTableAs(Ddl& ddl, const PgQuery__CreateTableAsStmt& create);
std::string SelectInto(Ddl& ddl);

// --- ddl_objects.cc: on all servers
void CreateEnum(Ddl& ddl, const PgQuery__CreateEnumStmt& create);
void AlterEnum(Ddl& ddl, const PgQuery__AlterEnumStmt& alter);
void DropType(Ddl& ddl, Oid type);
void DropTypes(Ddl& ddl, const PgQuery__DropStmt& drop);
void CreateExtension(Ddl& ddl, const PgQuery__CreateExtensionStmt& create);
void DropExtensions(Ddl& ddl, const PgQuery__DropStmt& drop);
void CommentOn(Ddl& ddl, const PgQuery__CommentStmt& comment);
void Maintain(Ddl& ddl, const PgQuery__VacuumStmt& statement);

}  // namespace sluice
