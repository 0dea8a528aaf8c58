#include "stream/delta_set_op.h"

#include <algorithm>

#include "common/error.h"

namespace sluice {

DeltaSetOp::DeltaSetOp(const SetOpPlan& plan, ViewContext& context)
    : DeltaOperator(context),
      plan_(plan),
      encoder_(ColumnTypes(plan.output)),
      codec_(ColumnTypes(plan.output)),
      table_(context.StateTable(plan.id, "")),
      output_(ColumnTypes(plan.output)) {}

int64_t DeltaSetOp::Multiplicity(const Counts& counts) const {
  int64_t left = counts.side[0], right = counts.side[1];
  if (left < 0 || right < 0)
    Throw(sqlstate::kDataCorrupted,
          "a row is to be removed that is not in a set operation's input");
  if (plan_.op == SetOpKind::kIntersect)
    return plan_.all ? std::min(left, right) : (left > 0 && right > 0);
  return plan_.all ? std::max<int64_t>(left - right, 0) : (left > 0 && right == 0);
}

DeltaSetOp::Counts DeltaSetOp::Load(std::string_view key) {
  Counts counts;
  std::string buffer;
  std::optional<std::string_view> value = table_.Get(StoredKey(key, &buffer));
  if (!value) return counts;
  std::string_view rest = *value;
  if (IsLongKey(key) && TakeBytes(TakeVarint(&rest), &rest) != key)
    Throw(sqlstate::kInternalError, "two rows of a set operation have the same digest");
  counts.side[0] = static_cast<int64_t>(TakeVarint(&rest));
  counts.side[1] = static_cast<int64_t>(TakeVarint(&rest));
  counts.row = rest;
  counts.before = Multiplicity(counts);
  return counts;
}

void DeltaSetOp::Save(std::string_view key, const Counts& counts) {
  std::string buffer, value;
  std::string_view stored = StoredKey(key, &buffer);
  if (counts.side[0] == 0 && counts.side[1] == 0) {
    table_.Delete(stored);
    return;
  }
  if (IsLongKey(key)) {
    AppendVarint(key.size(), &value);
    value.append(key);
  }
  AppendVarint(static_cast<uint64_t>(counts.side[0]), &value);
  AppendVarint(static_cast<uint64_t>(counts.side[1]), &value);
  value.append(counts.row);
  table_.Put(stored, value);
}

void DeltaSetOp::Push(size_t input, const DeltaBatch& batch) {
  std::string key;
  for (size_t row = 0; row < batch.rows.rows; row++) {
    key.assign(1, 's');
    encoder_.Append(batch.rows.columns, row, &key);
    auto found = touched_.find(key);
    if (found == touched_.end()) found = touched_.emplace(key, Load(key)).first;
    if (found->second.row.empty()) codec_.Append(batch.rows.columns, row, &found->second.row);
    found->second.side[input] += batch.weights[row];
  }
}

void DeltaSetOp::Finish() {
  for (const auto& [key, counts] : touched_) {
    int64_t change = Multiplicity(counts) - counts.before;
    Save(key, counts);
    if (change == 0) continue;
    codec_.Decode(counts.row, output_.Add(change), &output_.buffer());
    if (!output_.full()) continue;
    Emit(output_.Show());
    output_.Clear();
  }
  Emit(output_.Show());
  output_.Clear();
  touched_.clear();
}

}  // namespace sluice
