#include "stream/delta_apply.h"

#include "executor/node.h"
#include "executor/sub_plan.h"

namespace sluice {
namespace {

// Begins each binding, for no key of a prefix is to begin as a long one's digest does.
constexpr char kBinding = 'b';
// What a key of the results' table is: a result, or a binding that waits until the view is built.
constexpr char kResult = 'r', kWaiting = 'w';
constexpr char kBuilt[] = "built";
// Before a stored result: how it ended.
constexpr char kRows = 'r', kError = 'e';

std::vector<Oid> TypesOf(std::span<const Expr* const> exprs) {
  std::vector<Oid> types;
  for (const Expr* expr : exprs) types.push_back(expr->type);
  return types;
}

void AppendText(std::string_view text, std::string* out) {
  AppendVarint(text.size(), out);
  out->append(text);
}

}  // namespace

bool DeltaApply::Result::operator==(const Result& other) const {
  if (error.has_value() != other.error.has_value()) return false;
  if (error && (error->state != other.error->state || error->message != other.error->message))
    return false;
  return rows == other.rows;
}

// The inner plan, run for one binding after the other over the relations as they are now.
class DeltaApply::InnerRun {
 public:
  explicit InnerRun(DeltaApply* apply)
      : apply_(*apply),
        state_(*apply->context_.state),
        params_(static_cast<size_t>(state_.statement->exec_param_count)),
        sub_plans_(state_.statement->sub_plans.size()),
        binding_(apply->binding_codec_.types()) {
    state_.exec_params = params_;
    state_.sub_plans = &sub_plans_;
  }

  Result Run(std::string_view binding) {
    Result result;
    binding_.Clear();
    apply_.binding_codec_.Decode(binding.substr(1), 0, &binding_);
    Batch values;
    binding_.Show(1, &values);
    for (size_t i = 0; i < apply_.plan_.params.size(); i++)
      params_[static_cast<size_t>(apply_.plan_.params[i])] = RowOf(values.columns[i], 0);
    try {
      if (node_ == nullptr)
        node_ = MakeNode(*apply_.plan_.children[1], state_);
      else
        node_->Rescan();
      Batch batch;
      std::string row;
      for (node_->Next(&batch); batch.rows > 0; node_->Next(&batch))
        for (size_t i = 0; i < batch.rows; i++) {
          row.clear();
          apply_.inner_codec_.Append(batch.columns, i, &row);
          result.rows[row]++;
        }
    } catch (const QueryError& e) {
      if (!IsRowError(e.error)) throw;
      result.rows.clear();
      result.error = e.error;
      node_ = nullptr;  // where it stopped it cannot go on
      for (auto& sub_plan : sub_plans_) sub_plan = nullptr;
    }
    return result;
  }

 private:
  DeltaApply& apply_;
  ExecutionState state_;
  std::vector<Column> params_;
  std::vector<std::unique_ptr<SubPlanRunner>> sub_plans_;
  BatchBuffer binding_;
  std::unique_ptr<Node> node_;
};

DeltaApply::DeltaApply(const ApplyPlan& plan, ViewContext& context)
    : DeltaOperator(context),
      plan_(plan),
      outer_columns_(plan.children[0]->output.size()),
      outer_only_(plan.type == JoinType::kSemi || plan.type == JoinType::kAnti),
      arguments_(plan.arguments, plan.children[0]->output, context),
      binding_codec_(TypesOf(plan.arguments)),
      inner_codec_(ColumnTypes(plan.children[1]->output)),
      outer_(context.StateTable(plan.id, "o"), ColumnTypes(plan.children[0]->output), true),
      results_(context.StateTable(plan.id, "r")),
      outer_buffer_(ColumnTypes(plan.children[0]->output)),
      inner_buffer_(ColumnTypes(plan.children[1]->output)),
      output_(ColumnTypes(plan.output)) {
  if (plan.condition != nullptr)
    condition_ = CompiledExpression::Compile(*plan.condition, *context.state);
}

DeltaApply::~DeltaApply() = default;

void DeltaApply::Push(size_t, const DeltaBatch& batch) {
  DeltaBatch good = arguments_.Evaluate(batch);
  std::string binding, row, key;
  bool is_built = built();
  for (size_t i = 0; i < good.rows.rows; i++) {
    binding.assign(1, kBinding);
    row.clear();
    binding_codec_.Append(arguments_.columns(), i, &binding);
    outer_.codec().Append(good.rows.columns, i, &row);
    outer_.Add(binding, row, good.weights[i]);
    if (!is_built) {
      key.assign(1, kWaiting);
      AppendKeyPrefix(binding, &key);
      results_.Put(key, binding);
    }
    Touched& touched = touched_[binding];
    touched.rows.push_back(row);
    touched.weights.push_back(good.weights[i]);
  }
}

void DeltaApply::Finish() {
  // While the view is built its rows are only gathered: nobody reads them yet.
  if (context_.building) return touched_.clear();
  InnerRun inner(this);
  if (!built()) return Build(&inner);
  if (inner_changed_)
    for (const std::string& binding : AllBindings())
      if (!touched_.contains(binding)) FinishBinding(binding, {}, {}, &inner);
  for (const auto& [binding, touched] : touched_)
    FinishBinding(binding, touched.rows, touched.weights, &inner);
  Flush();
  touched_.clear();
  inner_changed_ = false;
}

// All that waits, in portions.
void DeltaApply::Build(InnerRun* inner) {
  touched_.clear();
  emitted_ = 0;
  while (emitted_ < kFinishRows) {
    std::string binding;
    {
      LmdbCursor cursor(results_);
      if (!cursor.Seek(std::string_view(&kWaiting, 1)) || cursor.key().front() != kWaiting) break;
      binding = cursor.value();
    }
    std::string key(1, kWaiting);
    AppendKeyPrefix(binding, &key);
    results_.Delete(key);
    FinishBinding(binding, {}, {}, inner);
  }
  Flush();
  context_.more = context_.more || emitted_ >= kFinishRows;
  if (emitted_ < kFinishRows) {
    results_.Put(kBuilt, "1");
    inner_changed_ = false;
  }
}

void DeltaApply::FinishBinding(const std::string& binding, std::span<const std::string> rows,
                               std::span<const int64_t> weights, InnerRun* inner) {
  std::optional<Result> before = Load(binding);
  bool is_left = outer_.Count(binding) > 0;
  if (!before) {  // none of its rows has been given on
    if (!is_left) return;
    Result result = inner->Run(binding);
    if (result.error) context_.errors.Add(*result.error, 1);
    EmitStored(binding, result, 1);
    Save(binding, result);
    return;
  }
  EmitRows(rows, weights, *before);
  if (!is_left) {
    if (before->error) context_.errors.Add(*before->error, -1);
    Remove(binding);
    return;
  }
  if (!inner_changed_) return;
  Result after = inner->Run(binding);
  if (after == *before) return;
  if (before->error) context_.errors.Add(*before->error, -1);
  if (after.error) context_.errors.Add(*after.error, 1);
  EmitStored(binding, *before, -1);
  EmitStored(binding, after, 1);
  Save(binding, after);
}

void DeltaApply::EmitStored(const std::string& binding, const Result& result, int64_t sign) {
  if (result.error) return;
  std::vector<JoinSideRow> read;
  std::string place;
  for (bool more = true; more;) {
    read.clear();
    more = outer_.Read(binding, kBatchRows, &place, &read);
    for (const JoinSideRow& row : read) EmitPairs(row.row, sign * row.count, result);
  }
}

void DeltaApply::EmitRows(std::span<const std::string> outer_rows, std::span<const int64_t> weights,
                          const Result& result) {
  if (result.error) return;
  for (size_t i = 0; i < outer_rows.size(); i++) EmitPairs(outer_rows[i], weights[i], result);
}

// One outer row with the inner rows. Pairs on which the condition fails count as errors.
void DeltaApply::EmitPairs(const std::string& outer_row, int64_t weight, const Result& result) {
  bool matched = false;
  for (const auto& [inner_row, count] : result.rows) {
    bool matches = true;
    if (condition_ != nullptr) {
      condition_arena_.Reset();
      outer_buffer_.Clear();
      inner_buffer_.Clear();
      outer_.codec().Decode(outer_row, 0, &outer_buffer_);
      inner_codec_.Decode(inner_row, 0, &inner_buffer_);
      Batch outer, inner;
      outer_buffer_.Show(1, &outer);
      inner_buffer_.Show(1, &inner);
      uint32_t ignored;
      try {
        matches = SelectRows(*condition_, outer, &inner, 1, &condition_arena_, &ignored) == 1;
      } catch (const QueryError& e) {
        if (!IsRowError(e.error)) throw;
        context_.errors.Add(e.error, weight * count);
        matches = false;
      }
    }
    if (!matches) continue;
    matched = true;
    if (outer_only_) break;
    Add(outer_row, &inner_row, weight * count);
  }
  bool alone = plan_.type == JoinType::kSemi ? matched : plan_.type != JoinType::kInner && !matched;
  if (alone) Add(outer_row, nullptr, weight);
}

// inner_row null: NULLs, or nothing where the outer columns are all.
void DeltaApply::Add(const std::string& outer_row, const std::string* inner_row, int64_t weight) {
  if (output_.full()) Flush();
  emitted_++;
  size_t at = output_.Add(weight);
  BatchBuffer& buffer = output_.buffer();
  outer_.codec().Decode(output_arena_.CopyString(outer_row), at, &buffer);
  if (outer_only_) return;
  if (inner_row == nullptr) {
    for (size_t c = outer_columns_; c < buffer.size(); c++) AppendNulls(1, at, &buffer[c]);
    return;
  }
  inner_buffer_.Clear();
  inner_codec_.Decode(output_arena_.CopyString(*inner_row), 0, &inner_buffer_);
  uint32_t first = 0;
  for (size_t c = outer_columns_; c < buffer.size(); c++)
    AppendRows(inner_buffer_[c - outer_columns_].column, &first, 1, at, &buffer[c]);
}

void DeltaApply::Flush() {
  if (output_.rows() > 0) Emit(output_.Show());
  output_.Clear();
  output_arena_.Reset();
}

// key: prefix of the binding. value: binding, how it ended, then rows or the error.
std::optional<DeltaApply::Result> DeltaApply::Load(std::string_view binding) {
  std::string key(1, kResult);
  AppendKeyPrefix(binding, &key);
  std::optional<std::string_view> value = results_.Get(key);
  if (!value) return std::nullopt;
  if (TakeBytes(TakeVarint(&*value), &*value) != binding)
    Throw(sqlstate::kInternalError, "two bindings have the same digest");
  Result result;
  if (TakeBytes(1, &*value)[0] == kError) {
    result.error.emplace();
    result.error->state = MakeSqlState(TakeBytes(5, &*value));
    result.error->message = *value;
    return result;
  }
  while (!value->empty()) {
    auto count = static_cast<int64_t>(TakeVarint(&*value));
    result.rows.emplace(TakeBytes(TakeVarint(&*value), &*value), count);
  }
  return result;
}

void DeltaApply::Save(std::string_view binding, const Result& result) {
  std::string key(1, kResult), value;
  AppendKeyPrefix(binding, &key);
  AppendText(binding, &value);
  value.push_back(result.error ? kError : kRows);
  if (result.error) value += SqlStateText(result.error->state) + result.error->message;
  for (const auto& [row, count] : result.rows) {
    AppendVarint(static_cast<uint64_t>(count), &value);
    AppendText(row, &value);
  }
  results_.Put(key, value);
}

void DeltaApply::Remove(std::string_view binding) {
  std::string key(1, kResult);
  AppendKeyPrefix(binding, &key);
  results_.Delete(key);
}

bool DeltaApply::built() const {
  return results_.Get(kBuilt).has_value();
}

std::vector<std::string> DeltaApply::AllBindings() const {
  std::vector<std::string> bindings;
  LmdbCursor cursor(results_);
  for (bool found = cursor.Seek(std::string_view(&kResult, 1));
       found && cursor.key().front() == kResult; found = cursor.Next()) {
    std::string_view value = cursor.value();
    bindings.emplace_back(TakeBytes(TakeVarint(&value), &value));
  }
  return bindings;
}

}  // namespace sluice
