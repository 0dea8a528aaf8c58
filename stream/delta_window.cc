#include "stream/delta_window.h"

#include "executor/sort.h"
#include "executor/window_agg.h"

namespace sluice {
namespace {

constexpr char kWaiting = 'w';  // + partition's prefix → partition: to be computed
constexpr char kBuilt[] = "built";

std::vector<Oid> PartitionTypes(const WindowAggPlan& plan) {
  std::vector<Oid> types;
  for (const SortKey& key : plan.partition_by)
    types.push_back(plan.children[0]->output[static_cast<size_t>(key.target)].type);
  return types;
}

// Rows of one partition, in the store's order.
class PartitionRows : public Node {
 public:
  PartitionRows(const Plan& plan, ExecutionState& state, const JoinSide& rows,
                const std::string& partition)
      : Node(plan, state), rows_(rows), partition_(partition), buffer_(plan.output) {}
  void Rescan() override { place_.clear(), read_.clear(), at_ = 0, more_ = true; }

 protected:
  void NextBatch(Batch* batch) override {
    buffer_.Clear();
    held_.clear();
    size_t count = 0;
    while (count < kBatchRows) {
      if (at_ == read_.size()) {
        if (!more_) break;
        // What the batch's values are views of stays until the next batch.
        held_.push_back(std::move(read_));
        read_.clear();
        at_ = 0;
        more_ = rows_.Read(partition_, kBatchRows, &place_, &read_);
        continue;
      }
      for (; read_[at_].count > 0 && count < kBatchRows; read_[at_].count--)
        rows_.codec().Decode(read_[at_].row, count++, &buffer_);
      if (read_[at_].count == 0) at_++;
    }
    buffer_.Show(count, batch);
  }

 private:
  const JoinSide& rows_;
  const std::string& partition_;
  BatchBuffer buffer_;
  std::string place_;
  std::vector<JoinSideRow> read_;
  std::vector<std::vector<JoinSideRow>> held_;
  size_t at_ = 0;
  bool more_ = true;
};

}  // namespace

DeltaWindow::DeltaWindow(const WindowAggPlan& plan, ViewContext& context)
    : DeltaOperator(context),
      plan_(plan),
      input_types_(ColumnTypes(plan.children[0]->output)),
      encoder_(PartitionTypes(plan)),
      output_codec_(ColumnTypes(plan.output)),
      rows_(context.StateTable(plan.id, ""), input_types_, false),
      state_(context.StateTable(plan.id, "w")),
      output_(ColumnTypes(plan.output)) {
  auto* sort = arena_.New<SortPlan>();
  static_cast<Plan&>(*sort) = *plan.children[0];
  sort->kind = PlanKind::kSort;
  std::vector<SortKey> keys(plan.partition_by.begin(), plan.partition_by.end());
  keys.insert(keys.end(), plan.order_by.begin(), plan.order_by.end());
  sort->keys = arena_.CopyArray(keys);
  sort_ = sort;
}

void DeltaWindow::Push(size_t, const DeltaBatch& batch) {
  std::string partition, row_bytes;
  bool is_built = state_.Get(kBuilt).has_value();
  for (size_t row = 0; row < batch.rows.rows; row++) {
    partition.clear();
    for (size_t i = 0; i < plan_.partition_by.size(); i++)
      encoder_.AppendColumn(i,
                            batch.rows.columns[static_cast<size_t>(plan_.partition_by[i].target)],
                            row, &partition);
    if (!is_built) {
      std::string key(1, kWaiting);
      AppendKeyPrefix(partition, &key);
      state_.Put(key, partition);
    } else if (!touched_.contains(partition)) {
      touched_.emplace(partition, Compute(partition));
    }
    row_bytes.clear();
    rows_.codec().Append(batch.rows.columns, row, &row_bytes);
    rows_.Add(partition, row_bytes, batch.weights[row]);
  }
}

DeltaWindow::Result DeltaWindow::Compute(const std::string& partition) {
  Result result;
  std::unique_ptr<Node> input =
      std::make_unique<PartitionRows>(*plan_.children[0], *context_.state, rows_, partition);
  if (!sort_->keys.empty())
    input = std::make_unique<Sort>(*sort_, *context_.state, std::move(input));
  WindowAgg window(plan_, *context_.state, std::move(input));
  std::string row_bytes;
  try {
    Batch batch;
    for (window.Next(&batch); batch.rows > 0; window.Next(&batch))
      for (size_t row = 0; row < batch.rows; row++) {
        row_bytes.clear();
        output_codec_.Append(batch.columns, row, &row_bytes);
        result.rows[row_bytes]++;
      }
  } catch (const QueryError& e) {
    if (!IsRowError(e.error)) throw;
    result.rows.clear();
    result.error = e.error;
  }
  return result;
}

// Emits with `sign` what `from` has more of than `to`.
void DeltaWindow::Emit(const std::map<std::string, int64_t>& from,
                       const std::map<std::string, int64_t>& to, int64_t sign) {
  for (const auto& [row, count] : from) {
    auto found = to.find(row);
    int64_t change = count - (found == to.end() ? 0 : found->second);
    if (change <= 0) continue;
    output_codec_.Decode(row, output_.Add(sign * change), &output_.buffer());
    if (!output_.full()) continue;
    DeltaOperator::Emit(output_.Show());
    output_.Clear();
  }
  DeltaOperator::Emit(output_.Show());
  output_.Clear();
}

// All partitions, in portions.
void DeltaWindow::Build() {
  size_t emitted = 0;
  while (emitted < kFinishRows) {
    std::string partition;
    {
      LmdbCursor cursor(state_);
      if (!cursor.Seek(std::string_view(&kWaiting, 1)) || cursor.key().front() != kWaiting) break;
      partition = cursor.value();
      std::string key(cursor.key());
      state_.Delete(key);
    }
    Result result = Compute(partition);
    if (result.error) context_.errors.Add(*result.error, 1);
    Emit(result.rows, {}, 1);
    emitted += result.rows.size() + 1;
  }
  context_.more = context_.more || emitted >= kFinishRows;
  if (emitted < kFinishRows) state_.Put(kBuilt, "1");
}

void DeltaWindow::Finish() {
  if (!state_.Get(kBuilt)) {  // while it is built rows are only gathered: nobody reads them yet
    if (!context_.building) Build();
    return;
  }
  for (auto& [partition, before] : touched_) {
    Result after = Compute(partition);
    if (before.error) context_.errors.Add(*before.error, -1);
    if (after.error) context_.errors.Add(*after.error, 1);
    Emit(before.rows, after.rows, -1);
    Emit(after.rows, before.rows, 1);
  }
  touched_.clear();
}

}  // namespace sluice
