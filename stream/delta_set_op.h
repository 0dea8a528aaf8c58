// INTERSECT and EXCEPT, with and without ALL:
//
//   d(L ∘ R)[x] = f(l', r') − f(l, r)      l, r: how often x is in L and R; l', r' afterwards
//   f: INTERSECT ALL min(l, r) · EXCEPT ALL max(l − r, 0) · INTERSECT l>0 ∧ r>0 · EXCEPT l>0 ∧ r=0
#pragma once

#include <map>

#include "optimizer/plan.h"
#include "stream/delta_operator.h"
#include "stream/key_encoding.h"
#include "stream/row_codec.h"

namespace sluice {

class DeltaSetOp : public DeltaOperator {
 public:
  DeltaSetOp(const SetOpPlan& plan, ViewContext& context);
  void Push(size_t input, const DeltaBatch& batch) override;
  void Finish() override;

 private:
  struct Counts {
    int64_t side[2] = {0, 0};
    int64_t before = 0;  // f, when first touched in the step
    std::string row;
  };
  int64_t Multiplicity(const Counts& counts) const;
  Counts Load(std::string_view key);
  void Save(std::string_view key, const Counts& counts);

  const SetOpPlan& plan_;
  KeyEncoder encoder_;
  RowCodec codec_;
  LmdbTable table_;
  std::map<std::string, Counts, std::less<>> touched_;
  DeltaOutput output_;
};

}  // namespace sluice
