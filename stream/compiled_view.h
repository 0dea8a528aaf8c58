// A view's plan as delta operators: deltas of its inputs in, the view's own net change out.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "optimizer/view_plan.h"
#include "stream/delta_apply.h"
#include "stream/delta_buffer.h"
#include "stream/delta_operator.h"
#include "stream/delta_scan.h"
#include "stream/row_codec.h"
#include "stream/stored_relation.h"
#include "stream/view_store.h"

namespace sluice {

class CompiledView {
 public:
  // `info` tells what a relation that the view reads stores, `stored` gives its rows. Refuses
  // (0A000) by name what cannot be maintained. `create`: operators' tables are made.
  CompiledView(Oid view, std::shared_ptr<const ViewPlan> plan, StoreTransaction* transaction,
               bool create, const std::function<const RelationInfo&(Oid)>& info,
               std::function<const StoredRelation&(Oid)> stored);
  ~CompiledView();

  // What the view stores, in terms of RelationInfo.
  const std::vector<StoredColumn>& columns() const { return columns_; }
  bool keyed() const;
  std::vector<int> key_columns() const;
  bool keyed_by_shard() const;

  // The input whose rows, all columns of them in order, are the view's; or kInvalidOid.
  Oid SameRowsAs() const;
  // Whether each row that is inserted stands for itself (or its group): no operator looks for
  // others among its inputs' rows.
  bool row_by_row() const { return row_by_row_; }
  // Row by row, and into groups that can be held in memory.
  bool aggregates() const { return row_by_row_ && aggregates_; }
  size_t memory_bytes() const;

  // One step: Start (once in the view's life) or any number of Push, then Finish. The change is
  // then in delta(), errors of rows in the tally; the caller clears both.
  void Start();
  void Push(Oid input, const DeltaBatch& rows);
  // What the view emits meanwhile goes to `to` instead of the net change.
  using Emitted = std::function<void(const DeltaBatch& batch)>;
  void PushTo(Oid input, const DeltaBatch& rows, const Emitted& to);
  // `building`: some input has not been delivered whole.
  void Finish(bool building);
  // Whether there is more to be had from another Finish.
  bool more() const { return context_.more; }
  DeltaBuffer& delta() { return delta_; }
  ErrorTally& errors() { return context_.errors; }

 private:
  class Sink;
  void ReadStored(const Plan& plan, DeltaApply* apply);
  DeltaOperator* Compile(const Plan& plan);
  std::unique_ptr<DeltaOperator> Make(const Plan& plan, std::vector<DeltaOperator*>* children);

  std::shared_ptr<const ViewPlan> plan_;
  std::function<const RelationInfo&(Oid)> info_;
  Arena arena_;
  std::vector<StoredColumn> columns_;
  std::vector<NodeStatistics> statistics_;
  std::vector<Column> exec_params_;
  std::vector<std::unique_ptr<SubPlanRunner>> sub_plans_;
  ExecutorContext executor_context_;
  ExecutionState state_;
  ViewContext context_;
  std::vector<std::unique_ptr<DeltaOperator>> operators_;  // inputs before their users
  std::vector<DeltaScan*> scans_;
  std::vector<std::pair<Oid, DeltaApply*>> inner_scans_;  // what inner plans of Apply read
  DeltaOperator* root_ = nullptr;
  bool row_by_row_ = true, aggregates_ = false;
  DeltaBuffer delta_;
  std::unique_ptr<Sink> sink_;
};

}  // namespace sluice
