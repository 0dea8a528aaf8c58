// WITH RECURSIVE: the first child's rows, then, as long as there are new ones, the second child's,
// which sees the rows of the round before in the work table.
//
// What a round has read shows in the work table's parameter, the round's number: nodes that depend
// on it compute anew in each round (Plan::depends_on).
#pragma once

#include "executor/column_buffer.h"
#include "executor/group_table.h"
#include "executor/node.h"
#include "executor/row_store.h"

namespace sluice {

// The rows of one round, for the WorkTableScan below.
struct WorkTable {
  RowStore* rows = nullptr;
  int64_t round = 0;
};

class RecursiveUnion : public Node {
 public:
  RecursiveUnion(const RecursiveUnionPlan& plan, ExecutionState& state);
  ~RecursiveUnion() override;
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  bool Take(const Batch& input, Batch* batch);  // false: nothing new in it
  bool StartRound();                            // false: the last one gave nothing
  void ShowRound();

  const RecursiveUnionPlan& union_plan_;
  WorkTable table_;
  std::unique_ptr<Node> first_, recursive_;
  RowStore stores_[2];  // the round before, and this one
  size_t writing_ = 0;
  bool wrote_ = false;
  bool in_recursion_ = false, recursive_started_ = false, done_ = false;

  std::unique_ptr<GroupTable> seen_;  // UNION
  BatchBuffer output_;
};

class WorkTableScan : public Node {
 public:
  WorkTableScan(const WorkTableScanPlan& plan, ExecutionState& state);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  WorkTable* table_;
};

}  // namespace sluice
