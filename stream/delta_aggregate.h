// Aggregate, and DISTINCT as one without calls.
//
//   dγ(R) = − γ(R)[g] + γ(R + dR)[g]   for each group g that dR touches
//
// The store has, for each group, the number of its rows, the row last emitted (or the error that
// took its place) and the states of its calls. Groups touched in a step are held in memory until
// Finish, so a group is read and written once a step. Without GROUP BY there is one group, always.
#pragma once

#include "optimizer/plan.h"
#include "stream/aggregate_state.h"
#include "stream/delta_operator.h"
#include "stream/key_encoding.h"
#include "stream/row_codec.h"

namespace sluice {

class DeltaAggregate : public DeltaOperator {
 public:
  DeltaAggregate(const AggregatePlan& plan, ViewContext& context);
  // The aggregate that a hash Distinct over all columns is.
  static const AggregatePlan* AsAggregate(const DistinctPlan& plan, Arena* arena);

  void Start() override;
  void Push(size_t, const DeltaBatch& batch) override;
  void Finish() override;
  bool keyed() const override { return true; }
  std::vector<int> key_columns() const override;
  size_t memory_bytes() const override;
  // Whether nothing is written before Finish.
  bool in_memory() const;

 private:
  struct Call {
    std::unique_ptr<AggregateState> state;
    size_t first_argument = 0, argument_count = 0;  // evaluated columns
    int filter = -1;                                // evaluated column
  };
  // What a group has emitted.
  enum class Emitted : uint8_t { kNothing, kRow, kError };
  struct Group {
    std::string_view key;
    std::string_view key_row;  // the group columns, RowCodec's
    std::string_view output;   // row or error
    int64_t rows = 0;
    uint32_t hash = 0;
    Emitted emitted = Emitted::kNothing;
    bool stored = false;
    bool stays = false;  // without rows, too: GROUPING SETS ((), …)
  };

  static std::vector<const Expr*> Expressions(const AggregatePlan& plan);
  static uint32_t HashOf(std::string_view key);
  uint32_t Touch(std::string_view key, uint32_t hash, std::span<const Column> columns, size_t row);
  void EncodeKeys(std::span<const Column> keys, size_t rows);
  void GrowSlots();
  std::vector<Column> KeysOfSet(size_t set, std::span<const Column> columns);
  void PushSet(std::span<const Column> keys, std::span<const Column> columns,
               const DeltaBatch& good, bool stays);
  void LoadGroup(Group* group, size_t index);
  void SaveGroup(const Group& group, size_t index);
  void FinishGroup(Group* group, size_t index);
  Emitted Compute(const Group& group, size_t index, std::string* output);
  void EmitRow(const Group& group, std::string_view row, int64_t weight);
  void Flush();

  const AggregatePlan& plan_;
  size_t key_count_;
  GuardedExpressions expressions_;
  KeyEncoder key_encoder_;
  RowCodec key_codec_, output_codec_;
  LmdbTable table_;
  std::vector<Call> calls_;

  Arena group_arena_{HeapBlocks(), 256 * 1024};  // what groups' views show
  std::vector<Group> groups_;
  std::vector<uint32_t> slots_;  // by hash: group + 1; 0: free. A power of two.
  bool has_bags_ = false;
  std::vector<std::string_view> prefixes_;  // by group, for the calls' bags

  std::string key_buffer_, value_buffer_;
  // Of the rows of a batch, one behind the other.
  std::string batch_keys_;
  std::vector<uint32_t> batch_key_ends_, batch_hashes_;
  BatchBuffer scratch_;  // one output row
  Arena result_arena_, output_arena_, set_arena_;
  DeltaOutput output_;
  std::vector<std::string_view> output_keys_;
};

}  // namespace sluice
