// FunctionScan: the rows of a set-returning function in FROM: generate_series of the integer types,
// numeric and timestamps, unnest of an array; with a running number behind them if WITH ORDINALITY
// was written.
#pragma once

#include <memory>

#include "common/arena.h"
#include "executor/column_buffer.h"
#include "executor/node.h"

namespace sluice {

// Gives the values of a series one after the other.
class SeriesSource {
 public:
  virtual ~SeriesSource() = default;
  // Up to `rows_max` values into `to`; values that are views live in `arena`. 0: no more.
  virtual size_t Next(size_t rows_max, ColumnBuffer* to, Arena* arena) = 0;
};
// Evaluates the arguments. Null where one of them is NULL: there are no rows. 0A000 for other
// functions.
std::unique_ptr<SeriesSource> MakeSeries(const Expr& call, ExecutionState& state);

class FunctionScan : public Node {
 public:
  FunctionScan(const FunctionScanPlan& plan, ExecutionState& state);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  const FunctionScanPlan& scan_;
  std::unique_ptr<SeriesSource> series_;
  bool started_ = false;
  int64_t row_number_ = 0;
  BatchBuffer output_;
  Arena arena_;
};

}  // namespace sluice
