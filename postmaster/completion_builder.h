// What a statement needs to run over temporary tables: their definitions, what is copied into them,
// the rewritten text.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/virtual_tables.h"
#include "postmaster/completion.h"
#include "postmaster/completion_text.h"
#include "postmaster/text_rewrite.h"

struct PgQuery__Node;

namespace sluice {

class CompletionBuilder {
 public:
  CompletionBuilder(const QuerySession& session, const std::vector<std::string>& search_path,
                    const Error& error)
      : session_(session), catalog_(*session.catalog), search_path_(search_path), error_(error) {}

  // Rewrites `text` (of `node`, whose locations count from `offset` bytes before it) to read
  // temporary tables.
  TextRewrite Rewrite(const PgQuery__Node& node, std::string_view text, int offset);

  // Conditions of a SELECT that names one table, once.
  void SetConditions(std::vector<std::string> conditions) { conditions_ = std::move(conditions); }

  // After the rewrites: which server, what it has to run first, what is copied.
  void Fill(CompletionQuery* query, bool primary_keys);

 private:
  struct Source {
    const Relation* relation;  // or:
    const VirtualTable* view;
    std::string name;  // the temporary table's
  };
  struct SourceColumn {
    std::string name;
    Oid type;
    int32_t typmod;
    Oid collation;
  };

  [[noreturn]] void GiveUp() const { throw QueryError(error_); }

  std::vector<SourceColumn> ColumnsOf(const Source& source) const;

  const Relation* Find(const std::string& schema, const std::string& name) const;

  bool IsKnown(const std::string& schema, const std::string& name) const;

  const std::string& TemporaryName(const TableReference& table);

  void AddView(const Relation& view, const std::string& name);

  bool HasWholeRows() const;

  Oid ChooseServer() const;

  std::string SearchPathSql() const;

  std::string CreateTableSql(const Source& source, bool primary_keys) const;

  CompletionTable MakeTable(CompletionQuery* query, const Source& source, bool all) const;

  const QuerySession& session_;
  const Catalog& catalog_;
  const std::vector<std::string>& search_path_;
  const Error& error_;
  std::map<const void*, std::string> names_;
  std::set<std::string> taken_;
  std::vector<Source> sources_;
  std::vector<std::string> views_;  // CREATE TEMPORARY VIEW, those that others use first
  std::vector<std::string> conditions_;
  bool all_columns_ = false;
  std::set<std::string> column_names_, single_names_, range_names_;
};

}  // namespace sluice
