// The leaves. DeltaScan: the deltas of a stored relation, with the plan's columns.
//   dScan = dR          DeltaConstant: rows that never change, emitted once.  Append: d(L + R) = dL
//   + dR
#pragma once

#include "optimizer/plan.h"
#include "stream/delta_operator.h"
#include "stream/view_store.h"

namespace sluice {

class DeltaScan : public DeltaOperator {
 public:
  DeltaScan(const ViewScanPlan& plan, const RelationInfo& input, ViewContext& context);
  Oid input() const { return input_; }
  // `batch`: all stored columns of the relation.
  void Push(size_t input, const DeltaBatch& batch) override;
  bool keyed() const override { return keyed_; }
  std::vector<int> key_columns() const override { return key_columns_; }
  bool keyed_by_shard() const override { return by_shard_; }

 private:
  Oid input_;
  bool keyed_, by_shard_;
  std::vector<size_t> stored_;  // output column → stored column
  std::vector<int> key_columns_;
  std::vector<Column> columns_;
};

// Values, functions in FROM, SELECT without FROM: the executor's nodes run once.
class DeltaConstant : public DeltaOperator {
 public:
  DeltaConstant(const Plan& plan, ViewContext& context) : DeltaOperator(context), plan_(plan) {}
  void Start() override;
  void Push(size_t, const DeltaBatch&) override {}

 private:
  const Plan& plan_;
};

class DeltaAppend : public DeltaOperator {
 public:
  using DeltaOperator::DeltaOperator;
  void Push(size_t, const DeltaBatch& batch) override { Emit({batch.rows, batch.weights}); }
};

}  // namespace sluice
