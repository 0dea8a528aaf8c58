// Filter: d(σ R) = σ dR.   Project: d(π R) = π dR, duplicates kept.
#pragma once

#include "optimizer/plan.h"
#include "stream/delta_operator.h"

namespace sluice {

class DeltaFilter : public DeltaOperator {
 public:
  DeltaFilter(const FilterPlan& plan, const DeltaOperator& child, ViewContext& context);
  void Push(size_t, const DeltaBatch& batch) override;
  bool keyed() const override { return keyed_; }
  std::vector<int> key_columns() const override { return key_columns_; }
  bool keyed_by_shard() const override { return by_shard_; }

 private:
  bool keyed_, by_shard_;
  std::vector<int> key_columns_;
  GuardedExpressions condition_;
  DeltaSelection selection_;
};

class DeltaProject : public DeltaOperator {
 public:
  DeltaProject(const ProjectPlan& plan, const DeltaOperator& child, ViewContext& context);
  void Push(size_t, const DeltaBatch& batch) override;
  bool keyed() const override { return keyed_; }
  std::vector<int> key_columns() const override { return key_columns_; }
  bool keyed_by_shard() const override { return by_shard_; }

 private:
  bool keyed_, by_shard_;
  std::vector<int> key_columns_;
  GuardedExpressions expressions_;
  std::vector<Column> columns_;
};

}  // namespace sluice
