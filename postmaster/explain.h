// EXPLAIN: a query's plan in Postgres's shape, as text or JSON; with ANALYZE what running it took.
#pragma once

#include <string>
#include <vector>

#include "optimizer/plan.h"

struct PgQuery__ExplainStmt;

namespace sluice {

class RunningQuery;

struct ExplainOptions {
  bool analyze = false, verbose = false, costs = true, timing = true, json = false;
  bool summary = false;  // planning and execution time; on by default with ANALYZE
};

// Throws 42601 for an option that Postgres hasn't, 0A000 for a format that isn't written here.
ExplainOptions ReadExplainOptions(const PgQuery__ExplainStmt& statement);

// The lines of the result's one column (JSON: one value). With ANALYZE `query` (made with
// QueryOptions::instrument) is run to its end first and its rows are thrown away.
std::vector<std::string> Explain(RunningQuery* query, const ExplainOptions& options,
                                 double planning_ms);

}  // namespace sluice
