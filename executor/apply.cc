#include "executor/apply.h"

#include "executor/child.h"
#include "executor/sub_plan.h"
#include "shm/process_table.h"

namespace sluice {

Apply::Apply(const ApplyPlan& plan, ExecutionState& state, std::unique_ptr<Node> outer,
             std::unique_ptr<Node> inner)
    : Node(plan, state),
      apply_(plan),
      outer_(GivenOrMade(std::move(outer), plan, 0, state)),
      inner_(GivenOrMade(std::move(inner), plan, 1, state)),
      condition_(plan.condition == nullptr ? nullptr
                                           : CompiledExpression::Compile(*plan.condition, state)),
      outer_columns_(plan.children[0]->output.size()),
      inner_columns_(plan.children[1]->output.size()),
      argument_columns_(plan.arguments.size()),
      output_(plan.output) {
  for (const Expr* argument : plan.arguments)
    arguments_.push_back(CompiledExpression::Compile(*argument, state));
}

// One outer batch at most goes into an output batch: its rows' values are views of it.
void Apply::NextBatch(Batch* batch) {
  output_rows_ = 0;
  output_.Clear();
  output_arena_.Reset();
  while (output_rows_ < kBatchRows) {
    if (!inner_open_) {
      if (outer_at_ == outer_batch_.rows && (output_rows_ > 0 || !ReadOuter())) break;
      StartInner();
    }
    if (selected_at_ < selected_count_) {
      size_t count = std::min(selected_count_ - selected_at_, kBatchRows - output_rows_);
      AppendOuter(count);
      AppendInner(selected_ + selected_at_, count);
      output_rows_ += count;
      selected_at_ += count;
      continue;
    }
    CheckForInterrupts();
    if (!(matched_ && outer_only())) inner_->Next(&inner_batch_);
    if ((matched_ && outer_only()) || inner_batch_.rows == 0) {
      FinishInner();
      continue;
    }
    arena_.Reset();
    selected_at_ = 0;
    if (condition_ == nullptr) {
      selected_count_ = inner_batch_.rows;
      for (size_t i = 0; i < selected_count_; i++) selected_[i] = static_cast<uint32_t>(i);
    } else {
      Batch outer_row = ConstantRow(outer_batch_, outer_at_, &row_columns_);
      selected_count_ =
          SelectRows(*condition_, outer_row, &inner_batch_, inner_batch_.rows, &arena_, selected_);
    }
    matched_ = matched_ || selected_count_ > 0;
    if (outer_only()) selected_count_ = 0;
  }
  output_.Show(output_rows_, batch);
}

bool Apply::ReadOuter() {
  if (outer_done_) return false;
  outer_->Next(&outer_batch_);
  outer_at_ = 0;
  outer_done_ = outer_batch_.rows == 0;
  if (outer_done_) return false;
  outer_batch_columns_.assign(outer_batch_.columns.begin(), outer_batch_.columns.end());
  outer_batch_.columns = outer_batch_columns_;
  argument_arena_.Reset();
  for (size_t i = 0; i < arguments_.size(); i++)
    argument_columns_[i] =
        arguments_[i]->Evaluate(outer_batch_, nullptr, outer_batch_.rows, &argument_arena_);
  return true;
}

void Apply::StartInner() {
  for (size_t i = 0; i < arguments_.size(); i++)
    state_.exec_params[static_cast<size_t>(apply_.params[i])] =
        RowOf(argument_columns_[i], outer_at_);
  if (inner_started_) inner_->Rescan();
  inner_started_ = inner_open_ = true;
  matched_ = false;
  selected_count_ = selected_at_ = 0;
}

void Apply::FinishInner() {
  bool shown =
      apply_.type == JoinType::kSemi ? matched_ : apply_.type != JoinType::kInner && !matched_;
  if (shown) {
    AppendOuter(1);
    if (!outer_only())
      for (size_t c = 0; c < inner_columns_; c++)
        AppendNulls(1, output_rows_, &output_[outer_columns_ + c]);
    output_rows_++;
  }
  inner_open_ = false;
  outer_at_++;
}

void Apply::AppendOuter(size_t count) {
  uint32_t rows[kBatchRows];
  std::fill_n(rows, count, static_cast<uint32_t>(outer_at_));
  for (size_t c = 0; c < outer_columns_; c++)
    AppendRows(outer_batch_.columns[c], rows, count, output_rows_, &output_[c]);
}

void Apply::AppendInner(const uint32_t* rows, size_t count) {
  for (size_t c = 0; c < inner_columns_; c++) {
    ColumnBuffer& to = output_[outer_columns_ + c];
    AppendRows(inner_batch_.columns[c], rows, count, output_rows_, &to);
    if (to.column.physical != Physical::kBytes) continue;
    auto* values = to.column.Data<std::string_view>();
    for (size_t i = output_rows_; i < output_rows_ + count; i++)
      if (!to.column.IsNull(i)) values[i] = output_arena_.CopyString(values[i]);
  }
}

void Apply::Rescan() {
  outer_->Rescan();
  outer_batch_.rows = 0;
  outer_at_ = 0;
  outer_done_ = inner_open_ = false;
  selected_count_ = selected_at_ = 0;
}

}  // namespace sluice
