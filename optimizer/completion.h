// Completion on a shard: what Sluice cannot compute itself runs on one server, over temporary
// tables that hold copies of the tables it reads. Which statement, which tables and which server is
// found out by postmaster/completion.h, which may ask a shard; the plan is made here.
#pragma once

#include <string>
#include <vector>

#include "optimizer/planner.h"

namespace sluice {

struct CompletionTable {
  const Relation* relation = nullptr;  // or a system view:
  std::string virtual_name;
  std::vector<int> columns;         // that the statement may read, in the order of copy_sql
  std::vector<OutputColumn> types;  // of all the table's columns
  // Conditions over the table alone, as SQL, that its rows must meet to matter. What cannot be
  // analysed or sent to a shard is left out: the statement applies them again anyway.
  std::vector<std::string> conditions;
  std::string copy_sql;  // COPY pg_temp.… (…) FROM STDIN (FORMAT binary)
};

struct CompletionRequest {
  Oid server = kInvalidOid;
  std::vector<std::string> setup;  // in order; CREATE TEMPORARY TABLE is among them
  std::vector<CompletionTable> tables;
  std::string sql;
  std::vector<Oid> param_types;  // as the statement declares them
  std::vector<OutputColumn> columns;
  std::vector<bool> as_text;  // a column: its type is not known here, its text is told as text
};

// Rows come as the client asked for them; the plan never passes through (its rows are one stream of
// an executor node).
const PlannedStatement* PlanCompletion(const CompletionRequest& completion,
                                       const PlanRequest& request);

}  // namespace sluice
