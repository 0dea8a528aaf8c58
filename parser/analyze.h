// Raw tree → analysed query: what Postgres's parse analysis does, over Sluice's catalog.
#pragma once

#include <string>
#include <vector>

#include "common/arena.h"
#include "parser/query.h"
#include "parser/raw.h"

namespace sluice {

class Catalog;
struct SessionSettings;

struct AnalyzeContext {
  const Catalog* catalog;
  const SessionSettings* settings;
  std::vector<std::string> search_path;
  std::string user;
  std::string database;
  Arena* arena;
  // $n: declared types in, resolved types out; grows as parameters are seen. kInvalidOid = not
  // known yet; after analysis every entry is known (42P18 otherwise).
  std::vector<Oid>* param_types;
};

// SELECT, VALUES, TABLE, WITH; INSERT, UPDATE, DELETE. Throws QueryError with Postgres's SQLSTATE
// and position; what it does not analyse yet is refused with 0A000 (the caller may then let a shard
// judge the statement, see optimizer/completion.h).
const Query* AnalyzeSelect(const RawStatement& statement, const AnalyzeContext& context);

// COPY … FROM … WHERE: a condition over the relation's columns (rel 0).
const Expr* AnalyzeCopyWhere(const PgQuery__Node* node, const Relation* relation,
                             std::string_view text, const AnalyzeContext& context);

// A single expression over one relation's columns (rel 0): partition keys, CHECKs, defaults.
const Expr* AnalyzeExpression(std::string_view sql, const Relation* relation,
                              const AnalyzeContext& context);

}  // namespace sluice
