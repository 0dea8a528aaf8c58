// Analysed query → plan. See optimizer/README.md for the order of the steps.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/arena.h"
#include "optimizer/plan.h"
#include "parser/query.h"

namespace sluice {

class Catalog;
struct Relation;
struct SessionSettings;

struct PlannerSettings {
  bool enable_pushdown_filter = true, enable_pushdown_join = true, enable_pushdown_aggregate = true,
       enable_pushdown_distinct = true, enable_pushdown_sort = true, enable_pushdown_limit = true;
  bool claim_whole = false;  // parallel_append_claim = 'plan'
  int max_parallel_workers_per_gather = 2;
  int64_t work_mem_bytes = 64 << 20;
  int connections_per_scan = 1;  // block ranges
};

struct PlanRequest {
  const Catalog* catalog;
  const SessionSettings* session;
  const PlannerSettings* settings;
  Arena* arena;  // where the plan goes; shared memory if it is to be run
  // Bound parameters (binary wire format), for pruning and for folding; empty: plan without their
  // values.
  struct Param {
    Oid type;
    bool is_null;
    std::string_view value;
  };
  std::span<const Param> params;
  // Result formats the client asked for (0 text, 1 binary; none = all text, one = for all):
  // pass-through.
  std::span<const int16_t> result_formats;
  bool allow_pass_through = true;
  // The client's COPY … TO STDOUT: the options that make a shard send the very bytes of its rows.
  // Empty: not a COPY, or one that no shard could answer.
  std::string_view copy_options;
  // A live view's plan: see optimizer/view_plan.h, which asks for it.
  bool for_view = false;
};

const PlannedStatement* PlanQuery(const Query& query, const PlanRequest& request);

// Of a statement that goes to one server as it is: the leaf tables that it reads there, which
// depend on the parameters' values (pruning). Where they are the same, so is its plan, if
// HasReusableRoute(). nullopt: it does not go to one server. `query` is folded
// (FoldConstantsInQuery, without parameters).
using RouteKey = std::vector<const Relation*>;
// Finds it for the same query again and again: all but pruning is done once.
class RouteFinder {
 public:
  // The query, and the request's catalog and arena, must outlive it.
  RouteFinder(const Query& query, const PlanRequest& request);
  ~RouteFinder();
  std::optional<RouteKey> Find(const PlanRequest& request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
// Whether parameters alone decide on its route, and on nothing else in its plan.
bool HasReusableRoute(const Query& query);

}  // namespace sluice
