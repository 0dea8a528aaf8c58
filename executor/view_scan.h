// ViewScan: the stored rows of a live view (or, where a view is recomputed, of a source copy). The
// session opens them: the executor knows no store.
#pragma once

#include "common/arena.h"
#include "executor/node.h"
#include "executor/row_source.h"

namespace sluice {

class ViewScan : public Node {
 public:
  ViewScan(const ViewScanPlan& plan, ExecutionState& state);
  void Rescan() override;
  // The condition of the Filter above: its comparisons with a value can be looked up.
  void Restrict(const Expr* condition) { condition_ = condition; }

 protected:
  void NextBatch(Batch* batch) override;

 private:
  void Open();

  const ViewScanPlan& scan_;
  const Expr* condition_ = nullptr;
  Arena arena_;  // values compared with
  std::unique_ptr<RowSource> rows_;
};

}  // namespace sluice
