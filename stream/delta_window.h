// Window functions:
//
//   dω(R) = − ω(R[p]) + ω((R + dR)[p])     for each partition p that dR touches
//
// The store has the rows by partition; the executor's WindowAgg runs over those of a partition, in
// an order that depends on its rows alone, so what it once gave it gives again. While the view is
// built rows are only gathered; each partition is computed once, when all are there.
#pragma once

#include <map>

#include "optimizer/plan.h"
#include "stream/delta_operator.h"
#include "stream/join_side.h"

namespace sluice {

class DeltaWindow : public DeltaOperator {
 public:
  DeltaWindow(const WindowAggPlan& plan, ViewContext& context);
  void Push(size_t, const DeltaBatch& batch) override;
  void Finish() override;

 private:
  struct Result {
    std::map<std::string, int64_t> rows;  // RowCodec's → multiplicity
    std::optional<Error> error;
  };
  void Build();
  Result Compute(const std::string& partition);
  void Emit(const std::map<std::string, int64_t>& from, const std::map<std::string, int64_t>& to,
            int64_t sign);

  const WindowAggPlan& plan_;
  std::vector<Oid> input_types_;
  KeyEncoder encoder_;
  RowCodec output_codec_;
  JoinSide rows_;
  LmdbTable state_;
  Arena arena_;
  const SortPlan* sort_;
  std::map<std::string, Result> touched_;  // partition → what it gave before the step
  DeltaOutput output_;
};

}  // namespace sluice
