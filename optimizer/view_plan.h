// The plan of a live view: what the delta operators (stream/) mirror. No push-down, no Gather, no
// init plans; its leaves are ViewScans of tables and views.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/arena.h"
#include "optimizer/plan.h"
#include "types/kernel.h"

namespace sluice {

class Catalog;

struct ViewPlan {
  Arena arena;  // holds the statement
  const PlannedStatement* statement = nullptr;
  SessionSettings settings;  // at CREATE: the time zone and formats that expressions go on using
  std::vector<Oid> inputs;   // relations read, each once
  std::map<Oid, std::set<std::string>> columns;  // of these, that the query uses
  // The plan as text. The same definition gives the same plan as long as the planner is the same:
  // statistics are not looked at.
  std::string fingerprint;
};

// Whether a view with this plan reads the column of one of its inputs.
bool UsesColumn(const ViewPlan& view, Oid input, const std::string& column);

// Refuses (0A000) what cannot be a live view, volatile functions first. The query's relations may
// be tables (partitioned or not) and materialized views.
std::shared_ptr<const ViewPlan> PlanView(const Query& query, const Catalog& catalog,
                                         const SessionSettings& settings);

}  // namespace sluice
