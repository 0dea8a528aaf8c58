// Materialize: keeps the child's rows, so that they can be read again; where rows are looked up by
// an equality, in chains by the keys' hash. Rows that have gone to a file are not chained: a lookup
// gives all of them then (the condition is applied above anyway).
#pragma once

#include "common/arena.h"
#include "executor/expression.h"
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
  void HashKeys(const Batch& batch);
  void MakeIndex();
  void StartLookup();
  size_t Bucket(uint64_t hash) const { return (hash >> 1) & (heads_.size() - 1); }

  const MaterializePlan& materialize_plan_;
  std::unique_ptr<Node> child_;
  RowStore rows_;
  bool complete_ = false;
  std::string params_;  // values of the parameters that the rows depend on, when they were read

  std::vector<std::unique_ptr<CompiledExpression>> keys_, lookup_;
  std::vector<uint64_t> hashes_;         // by row
  std::vector<uint32_t> heads_, chain_;  // row number + 1; 0: the end
  bool indexed_ = false;
  bool looking_up_ = false;
  uint64_t wanted_ = 0;  // hash
  uint32_t next_ = 0;    // row number + 1
  Arena arena_;
};

}  // namespace sluice
