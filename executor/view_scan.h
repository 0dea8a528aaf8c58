// ViewScan: the stored rows of a live view (or, where a view is recomputed, of a source copy). The
// session opens them: the executor knows no store.
#pragma once

#include "executor/node.h"
#include "executor/row_source.h"

namespace sluice {

class ViewScan : public Node {
 public:
  ViewScan(const ViewScanPlan& plan, ExecutionState& state);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  const ViewScanPlan& scan_;
  std::unique_ptr<RowSource> rows_;
};

}  // namespace sluice
