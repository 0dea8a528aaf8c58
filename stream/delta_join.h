// Hash join and nested loop, all join types (a nested loop is a join whose rows all have one key).
//
//   inner part      d(L ⋈ R) = dL ⋈ R + L' ⋈ dR           L' = L + dL; so each side's delta, in
//                                                         turn, meets what the other side has by
//                                                         now
//   outer, semi,    for each row t of the other side that dS may match: it is emitted or retracted
//   anti            when the number of its matches leaves or reaches 0
//   rows of dS      emitted at once: null-extended (outer), bare (anti: unmatched, semi: matched)
//   NOT IN          as anti; all rows of L anew when R gets its first row or NULL, or loses the
//   last
//
// A pair on which the condition fails counts as an error of as many rows, and as no match.
#pragma once

#include <map>

#include "optimizer/plan.h"
#include "stream/delta_operator.h"
#include "stream/join_side.h"

namespace sluice {

// What hash joins and nested loops have in common.
struct JoinDescription {
  const Plan* plan;
  JoinType type;
  std::span<const Expr*const> outer_keys, inner_keys;
  const Expr* condition;
  bool null_aware;
  static JoinDescription Of(const Plan& plan);
};

class DeltaJoin : public DeltaOperator {
 public:
  DeltaJoin(const Plan& plan, ViewContext& context);
  void Push(size_t input, const DeltaBatch& batch) override;

 private:
  static constexpr size_t kOuterSide = 0, kInnerSide = 1;
  struct SideState {
    std::vector<Oid> types;
    std::unique_ptr<GuardedExpressions> keys;
    std::unique_ptr<JoinSide> rows;
    std::unique_ptr<BatchBuffer> pairs;  // gathered for pairs
    std::unique_ptr<BatchBuffer> chunk;  // rows read from the store
    std::vector<Column> nulls;           // one-row columns of NULL
  };
  // A row of the other side that rows of the delta meet.
  struct OtherRow {
    JoinSideRow stored;
    const std::string* join_key;
    const std::vector<uint32_t>* delta_rows;
    int64_t matched = 0;  // Σ weights of the delta's rows that match
  };
  struct Totals {
    int64_t rows = 0, nulls = 0;
    bool all_pass() const { return rows == 0; }
    bool none_pass() const { return nulls > 0; }
  };

  void PrepareSide(size_t side);
  bool Extends(size_t side) const;  // its unmatched rows come out with NULLs
  bool OuterOnly() const { return type_ == JoinType::kSemi || type_ == JoinType::kAnti; }
  // Whether the other side's rows come and go with the number of their matches.
  bool Watches(size_t side) const;

  void ReadOtherRows();
  void MatchChunk();
  void AddPair(uint32_t row, uint32_t other);
  void MatchPairs();
  size_t SelectPairs(const Batch& outer, const Batch& inner, size_t rows, uint32_t* selected,
                     const int64_t* error_weights);
  void ChangeOthers();
  int64_t CountMatches(const OtherRow& other, size_t chunk_row);
  void EmitUnmatchedOrMatched();
  void EmitAlone(size_t side, std::span<const Column> columns, const uint32_t* rows, size_t count,
                 const int64_t* weights);
  void StoreDelta();

  Totals LoadTotals() const;
  void PushNullAware(const DeltaBatch& good, std::span<const uint8_t> null_key);
  bool Passes(const Totals& totals, bool null_key, int64_t matches) const {
    return totals.all_pass() || (!totals.none_pass() && !null_key && matches == 0);
  }
  void EmitAllPassing(const Totals& totals, int64_t sign);

  JoinDescription description_;
  JoinType type_;
  KeyEncoder key_encoder_;
  std::unique_ptr<CompiledExpression> condition_;
  SideState sides_[2];
  // NOT IN only: all rows of the outer side under one key, and the inner side's totals.
  std::unique_ptr<JoinSide> all_outer_;
  LmdbTable totals_table_;

  // The batch being pushed.
  size_t side_ = 0, other_ = 0;
  DeltaBatch delta_;
  std::map<std::string, std::vector<uint32_t>> by_key_;
  std::vector<std::string> keys_;  // by row; of rows with a NULL key empty
  std::vector<uint8_t> null_key_;
  std::vector<uint8_t> matched_;
  std::vector<OtherRow> others_;
  uint32_t pair_rows_[kBatchRows], pair_others_[kBatchRows];
  size_t pair_count_ = 0;
  Arena condition_arena_;
  std::vector<Column> output_columns_;
  DeltaSelection selection_;
};

}  // namespace sluice
