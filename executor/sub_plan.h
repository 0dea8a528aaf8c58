// Sub plans: subqueries that expressions run for each row (optimizer/plan.h).
#pragma once

#include <string>
#include <unordered_map>

#include "common/arena.h"
#include "executor/expression.h"
#include "executor/group_table.h"
#include "executor/node.h"

namespace sluice {

// One row of a column as a constant, without copying.
Column RowOf(const Column& column, size_t row);

// The values of parameters as bytes: equal bytes are the same values.
void AppendParams(std::span<const int> params, const ExecutionState& state, std::string* key);

// What a scalar, EXISTS or ARRAY subquery comes to, in `arena`. Reads the node's rows.
Column SublinkResult(Node* node, SublinkKind kind, Oid type, Arena* arena);

// Shared by all expressions of one process that run this sub plan.
class SubPlanRunner {
 public:
  SubPlanRunner(const SubPlan& plan, ExecutionState& state);

  const SubPlan& plan() const { return plan_; }
  // For the present values of the parameters. The value lives in `arena` or until the next call.
  Column Run(Arena* arena);

 private:
  Column Compute(Arena* arena);
  Column Compare();
  void BuildHash();
  Column Probe();
  Column Boolean(int value);  // 0, 1, or -1: NULL
  Node* Start();              // the plan's node, at its first row

  const SubPlan& plan_;
  ExecutionState& state_;
  std::unique_ptr<Node> node_;
  std::unique_ptr<CompiledExpression> test_;
  Arena arena_;  // of one computation

  // Results by their parameters' values; forgotten when they fill work_mem.
  std::unordered_map<std::string, Column> remembered_;
  size_t remembered_bytes_ = 0;
  Arena remembered_arena_;
  std::string key_;

  // hash_keys: the distinct keys, if they fit into work_mem.
  enum class Hashing { kNo, kNotYet, kDone } hashing_ = Hashing::kNo;
  std::unique_ptr<CompiledExpression> hash_value_;
  std::unique_ptr<GroupTable> table_;
  bool has_rows_ = false, has_null_ = false;
};

}  // namespace sluice
