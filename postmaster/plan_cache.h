// A prepared statement's plans for the shards that it was sent to: where its parameters decide only
// which shard that is, planning it again comes to no more than pruning.
#pragma once

#include <optional>
#include <vector>

#include "optimizer/planner.h"
#include "shm/query_arena.h"

namespace sluice {

// Good for one analysis of the statement: its catalog and settings. Kept by whatever runs its
// plans.
class PlanCache {
 public:
  // The plan for the request's parameters; null: there is none (yet), plan it as ever.
  const PlannedStatement* Find(const Query& query, const PlanRequest& request);

 private:
  void Prepare(const Query& query, const PlanRequest& request);

  enum class State { kNew, kUsedOnce, kReady, kUseless };
  State state_ = State::kNew;
  // In shared memory: the io worker reads a plan's SQL in place.
  SharedBlocks blocks_;
  std::optional<Arena> arena_;
  std::optional<RouteFinder> routes_;
  // What the plans were made for, beside the parameters' values.
  std::vector<int16_t> formats_;
  bool allow_pass_through_ = false;
  std::vector<std::pair<RouteKey, const PlannedStatement*>> plans_;
};

}  // namespace sluice
