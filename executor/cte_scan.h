// Data-modifying WITH queries: run once, to their end; scans read the rows that they returned.
#pragma once

#include "executor/node.h"

namespace sluice {

class CteScan : public Node {
 public:
  CteScan(const CteScanPlan& plan, ExecutionState& state);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  RowStore& rows_;
};

// Runs the statement's WITH queries and init plans, each after what it may read.
void RunBeforehand(const PlannedStatement& statement, ExecutionState& state);

}  // namespace sluice
