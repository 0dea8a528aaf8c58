// Materialize: keeps the child's rows, so that they can be read again.
#pragma once

#include "executor/node.h"
#include "executor/row_store.h"

namespace sluice {

class Materialize : public Node {
 public:
  Materialize(const MaterializePlan& plan, ExecutionState& state,
              std::unique_ptr<Node> child = nullptr);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  void ReadAll();

  std::unique_ptr<Node> child_;
  RowStore rows_;
  bool complete_ = false;
};

}  // namespace sluice
