// Apply: what LATERAL and subqueries give for each outer row, where no join can stand for it.
//
//   d(O × f) = dO × f(b)  +  O' × (f'(b) − f(b))      for each binding b: what f refers to of a row
//
// The store has the outer rows by binding, and what the inner plan gave for each. When a relation
// that the inner plan reads has changed, it runs anew for every binding, over the stored relations;
// so it does for a new binding.
#pragma once

#include <map>

#include "optimizer/plan.h"
#include "stream/delta_operator.h"
#include "stream/join_side.h"

namespace sluice {

class DeltaApply : public DeltaOperator {
 public:
  DeltaApply(const ApplyPlan& plan, ViewContext& context);
  ~DeltaApply() override;
  void Push(size_t, const DeltaBatch& batch) override;
  void Finish() override;
  // A relation that the inner plan reads has changed in this step.
  void InnerChanged() { inner_changed_ = true; }

 private:
  // Of one binding: the inner plan's rows, or the error that it ended with.
  struct Result {
    std::map<std::string, int64_t> rows;  // RowCodec's → multiplicity
    std::optional<Error> error;
    bool operator==(const Result& other) const;
  };
  class InnerRun;

  std::optional<Result> Load(std::string_view binding);
  void Save(std::string_view binding, const Result& result);
  void Remove(std::string_view binding);
  bool built() const;
  void Build(InnerRun* inner);
  std::vector<std::string> AllBindings() const;
  // The delta's rows of the binding, then the change of all that are stored.
  void FinishBinding(const std::string& binding, std::span<const std::string> rows,
                     std::span<const int64_t> weights, InnerRun* inner);
  // Emits weights[i] × what the join gives for outer row i with the inner rows of `result`.
  void EmitRows(std::span<const std::string> outer_rows, std::span<const int64_t> weights,
                const Result& result);
  void EmitStored(const std::string& binding, const Result& result, int64_t sign);
  void EmitPairs(const std::string& outer_row, int64_t weight, const Result& result);
  void Add(const std::string& outer_row, const std::string* inner_row, int64_t weight);
  void Flush();

  const ApplyPlan& plan_;
  size_t outer_columns_;
  bool outer_only_;
  GuardedExpressions arguments_;
  RowCodec binding_codec_, inner_codec_;
  JoinSide outer_;  // by binding
  LmdbTable results_;
  std::unique_ptr<CompiledExpression> condition_;
  BatchBuffer outer_buffer_, inner_buffer_;
  bool inner_changed_ = false;
  // Of the step: the delta's rows by binding.
  struct Touched {
    std::vector<std::string> rows;
    std::vector<int64_t> weights;
  };
  std::map<std::string, Touched> touched_;
  Arena condition_arena_, output_arena_;
  DeltaOutput output_;
  size_t emitted_ = 0;
};

}  // namespace sluice
