// VALUES (…), (…): rows of expressions over nothing.
#pragma once

#include "common/arena.h"
#include "executor/column_buffer.h"
#include "executor/node.h"

namespace sluice {

class ValuesScan : public Node {
 public:
  ValuesScan(const ValuesScanPlan& plan, ExecutionState& state);
  void Rescan() override { next_ = 0; }

 protected:
  void NextBatch(Batch* batch) override;

 private:
  const ValuesScanPlan& values_;
  size_t next_ = 0;
  BatchBuffer output_;
  Arena arena_;
};

}  // namespace sluice
