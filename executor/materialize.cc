#include "executor/materialize.h"

#include <bit>

#include "executor/child.h"
#include "executor/sub_plan.h"
#include "shm/process_table.h"
#include "types/compare.h"

namespace sluice {
namespace {

// A NULL key equals nothing: such rows are in no chain. The lowest bit sets other hashes apart.
constexpr uint64_t kNullKey = 0, kHashed = 1;

}  // namespace

Materialize::Materialize(const MaterializePlan& plan, ExecutionState& state,
                         std::unique_ptr<Node> child)
    : Node(plan, state),
      materialize_plan_(plan),
      child_(GivenOrMade(std::move(child), plan, 0, state)),
      rows_(plan.output, state.context->work_mem_bytes, state.context->temp_directory) {
  for (const Expr* key : plan.index_keys) keys_.push_back(CompiledExpression::Compile(*key, state));
  for (const Expr* value : plan.lookup)
    lookup_.push_back(CompiledExpression::Compile(*value, state));
}

void Materialize::ReadAll() {
  AppendParams(plan_.depends_on, state_, &params_);
  Batch batch;
  for (child_->Next(&batch); batch.rows > 0; child_->Next(&batch)) {
    CheckForInterrupts();
    rows_.Append(batch);
    if (!keys_.empty()) HashKeys(batch);
  }
  complete_ = true;
  MakeIndex();
  size_t index_bytes = (hashes_.capacity() * 2 + heads_.capacity() + chain_.capacity()) * 4;
  Statistics().memory_bytes_max =
      std::max<uint64_t>(Statistics().memory_bytes_max, rows_.memory_bytes() + index_bytes);
  Statistics().spilled_bytes += rows_.spilled_bytes();
}

void Materialize::HashKeys(const Batch& batch) {
  size_t first = hashes_.size();
  hashes_.resize(first + batch.rows, 0);
  uint8_t null_key[kBatchRows] = {};
  arena_.Reset();
  for (auto& key : keys_) {
    const Column& column = key->Evaluate(batch, nullptr, batch.rows, &arena_);
    HashColumn(column, batch.rows, hashes_.data() + first);
    for (size_t row = 0; row < batch.rows; row++)
      if (column.IsNull(row)) null_key[row] = 1;
  }
  for (size_t row = 0; row < batch.rows; row++)
    hashes_[first + row] = null_key[row] ? kNullKey : hashes_[first + row] | kHashed;
}

void Materialize::MakeIndex() {
  indexed_ = !keys_.empty() && rows_.spilled_bytes() == 0;
  if (!indexed_) {
    hashes_ = {};
    return;
  }
  heads_.assign(std::bit_ceil(hashes_.size() + 1), 0);
  chain_.assign(hashes_.size(), 0);
  for (size_t row = hashes_.size(); row-- > 0;) {
    if (hashes_[row] == kNullKey) continue;
    uint32_t& head = heads_[Bucket(hashes_[row])];
    chain_[row] = head;
    head = static_cast<uint32_t>(row) + 1;
  }
}

void Materialize::StartLookup() {
  looking_up_ = true;
  next_ = 0;
  wanted_ = 0;
  arena_.Reset();
  Batch nothing;
  for (auto& value : lookup_) {
    const Column& column = value->Evaluate(nothing, nullptr, 1, &arena_);
    if (column.IsNull(0)) return;
    HashColumn(column, 1, &wanted_);
  }
  wanted_ |= kHashed;
  next_ = heads_[Bucket(wanted_)];
}

void Materialize::NextBatch(Batch* batch) {
  if (!complete_) ReadAll();
  if (!indexed_) return rows_.Next(batch);
  if (!looking_up_) StartLookup();
  uint32_t found[kBatchRows];
  size_t count = 0;
  for (; next_ != 0 && count < kBatchRows; next_ = chain_[next_ - 1])
    if (hashes_[next_ - 1] == wanted_) found[count++] = next_ - 1;
  rows_.Load(found, count, batch);
}

// The child is read once: what it gave is all there is, until a parameter changes.
void Materialize::Rescan() {
  if (!complete_) return;
  looking_up_ = false;
  if (!plan_.depends_on.empty()) {
    std::string now;
    AppendParams(plan_.depends_on, state_, &now);
    if (now != params_) {
      params_.clear();
      rows_.Clear();
      hashes_.clear();
      complete_ = false;
      child_->Rescan();
      return;
    }
  }
  rows_.Rewind();
}

}  // namespace sluice
