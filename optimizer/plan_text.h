// A plan node in words: what EXPLAIN prints, without its numbers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "optimizer/plan.h"

namespace sluice {

struct NodeText {
  std::string title;                                         // "Parallel Hash Left Join"
  std::vector<std::pair<std::string, std::string>> details;  // "Hash Cond" → "(a.id = b.id)"
};

// verbose: with Output and Remote SQL.
NodeText DescribeNode(const Plan& plan, bool verbose);

// Whether the child comes into `plan` through a Scatter.
bool IsScattered(const Plan& plan, const Plan& child);

// The whole tree, indented as Postgres does, without costs: for tests and logs.
std::string PlanTreeText(const PlannedStatement& statement, bool verbose);

}  // namespace sluice
