// Statements as the shards get them: a copy of the raw tree, changed, and back to SQL.
#pragma once

#include "postmaster/ddl_internal.h"

namespace sluice {

// Names of relations get the schema in which they are found.
void QualifyNames(const Ddl& ddl, RawNode* tree);
// As by free() and strdup(): what a copied tree owns.
void SetText(char** field, std::string_view text);
// Takes elements for which `removes` holds out of a list of a copied tree.
template <typename Removes>
void RemoveNodes(RawNode** list, size_t* count, Removes&& removes) {
  size_t kept = 0;
  for (size_t i = 0; i < *count; i++) {
    if (removes(*list[i]))
      FreeNode()(list[i]);
    else
      list[kept++] = list[i];
  }
  *count = kept;
}

// What a column has from a sequence of Sluice's: the shards' column is an ordinary one without
// default.
struct SequenceColumn {
  std::string column;
  char identity = '\0';  // 'a', 'd'; else serial
  Oid type = kInvalidOid;
  OwnedNode definition;  // an identity column's constraint with its options; may be null
};
// Takes serial types, identity and defaults that call nextval() out of a definition. `default_sql`
// gets such a default.
std::optional<SequenceColumn> TakeSequence(Ddl& ddl, std::string_view table,
                                           PgQuery__ColumnDef* def, std::string* default_sql);
bool UsesSequence(const RawNode* expression);
// "DROP …, …" of qualified names.
std::string JoinNames(const std::vector<std::string>& names);

}  // namespace sluice
