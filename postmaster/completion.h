// Statements that Sluice does not analyse or plan itself run on one server, over temporary tables
// that hold copies of the tables they read. A shard judges them first (Parse and Describe over
// empty temporary tables): what it says of parameters, columns or errors is the answer.
//
//   Analyze or PlanQuery throws ──PrepareCompletion──► CompletionQuery ──RunCompletion──►
//   RunningQuery
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/error.h"
#include "optimizer/completion.h"
#include "parser/raw.h"
#include "postmaster/running_query.h"

namespace sluice {

struct CompletionQuery {
  std::shared_ptr<const Catalog> catalog;  // `request` points into it
  CompletionRequest request;               // columns and param_types are what the client is told
  std::deque<std::string> names;           // that request's string_views are of
};

// `error`: what analysis or planning threw. Throws the shard's error, with its position in the
// client's text, if the shard rejects the statement; throws `error` itself where completion is no
// way: no server, a table that doesn't exist, a statement that writes.
std::unique_ptr<CompletionQuery> PrepareCompletion(const RawStatement& statement,
                                                   const QuerySession& session,
                                                   const std::vector<std::string>& search_path,
                                                   const std::vector<Oid>& declared_types,
                                                   const Error& error);

std::unique_ptr<RunningQuery> RunCompletion(const QuerySession& session,
                                            const CompletionQuery& query,
                                            const QueryOptions& options);

}  // namespace sluice
