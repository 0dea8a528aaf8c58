// ForeignScan: the rows of one remote statement, from a queue of its own. (Below an Append there is
// no such node: the Append takes the slices of all its scans from one queue.)
#pragma once

#include <optional>

#include "executor/node.h"
#include "executor/plan_streams.h"
#include "executor/slice_reader.h"

namespace sluice {

class ForeignScan : public Node {
 public:
  ForeignScan(const ForeignScanPlan& plan, ExecutionState& state);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  const ForeignScanPlan& scan_;
  const ScanShared* shared_;
  SliceReader reader_;
  ChunkConsumer consumer_;
  bool started_ = false;
};

}  // namespace sluice
