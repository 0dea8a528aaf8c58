// Init plans: subqueries that are run once, before the statement that uses their result.
#pragma once

#include "executor/node.h"

namespace sluice {

// Runs it to its end and stores the result in state.exec_params.
void RunInitPlan(const InitPlan& init_plan, ExecutionState& state);

}  // namespace sluice
