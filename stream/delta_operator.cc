#include "stream/delta_operator.h"

#include "stream/row_codec.h"
#include "stream/stored_relation.h"
#include "types/md5.h"

namespace sluice {

bool IsRowError(const Error& error) {
  std::string code = SqlStateText(error.state);
  return code.starts_with("22") || code.starts_with("21");
}

void ErrorTally::Add(const Error& error, int64_t weight) {
  Change& change = changes_[SqlStateText(error.state) + error.message];
  change.error = error;
  change.weight += weight;
}

std::string ErrorKeyPrefix(Oid view) {
  std::string prefix;
  AppendShard(view, &prefix);
  return prefix;
}

void ErrorTally::Apply(const LmdbTable& table, Oid view) {
  for (const auto& [text, change] : changes_) {
    if (change.weight == 0) continue;
    std::string key = ErrorKeyPrefix(view) + Md5Hex(text);
    int64_t count = change.weight;
    if (std::optional<std::string_view> value = table.Get(key)) {
      std::string_view rest = *value;
      count += static_cast<int64_t>(TakeVarint(&rest));
    }
    if (count < 0)
      Throw(sqlstate::kDataCorrupted, "an error is to be retracted that was never met: {}",
            change.error.message);
    if (count == 0) {
      table.Delete(key);
      continue;
    }
    std::string value;
    AppendVarint(static_cast<uint64_t>(count), &value);
    for (const std::string& part : {SqlStateText(change.error.state), change.error.message,
                                    change.error.detail, change.error.hint}) {
      AppendVarint(part.size(), &value);
      value += part;
    }
    table.Put(key, value);
  }
  changes_.clear();
}

Error LoadTalliedError(std::string_view value) {
  TakeVarint(&value);
  auto part = [&value] { return std::string(TakeBytes(TakeVarint(&value), &value)); };
  Error error;
  error.state = MakeSqlState(part());
  error.message = part();
  error.detail = part();
  error.hint = part();
  return error;
}

std::string StateTablePrefix(Oid view) {
  return "o" + std::to_string(view) + ".";
}

LmdbTable ViewContext::StateTable(int32_t node, std::string_view part) {
  return LmdbTable(transaction, StateTablePrefix(view) + std::to_string(node) + std::string(part),
                   true);
}

DeltaBatch DeltaSelection::Select(const DeltaBatch& from, const uint32_t* rows, size_t count) {
  DeltaBatch batch{{}, weights_, from.keys == nullptr ? nullptr : keys_};
  for (size_t c = 0; c < buffer_.size(); c++)
    GatherColumn(from.rows.columns[c], rows, count, &buffer_[c]);
  for (size_t i = 0; i < count; i++) weights_[i] = from.weights[rows[i]];
  if (from.keys != nullptr)
    for (size_t i = 0; i < count; i++) keys_[i] = from.keys[rows[i]];
  buffer_.Show(count, &batch.rows);
  return batch;
}

GuardedExpressions::GuardedExpressions(std::span<const Expr* const> exprs,
                                       std::span<const OutputColumn> input, ViewContext& context)
    : context_(context), columns_(exprs.size()), good_(ColumnTypes(input)) {
  for (const Expr* expr : exprs)
    expressions_.push_back(CompiledExpression::Compile(*expr, *context.state));
}

void GuardedExpressions::EvaluateAll(const Batch& batch) {
  arena_.Reset();
  for (size_t i = 0; i < expressions_.size(); i++)
    columns_[i] = expressions_[i]->Evaluate(batch, &batch, batch.rows, &arena_);
}

DeltaBatch GuardedExpressions::Evaluate(const DeltaBatch& batch) {
  try {
    EvaluateAll(batch.rows);
    return batch;
  } catch (const QueryError& e) {
    if (!IsRowError(e.error)) throw;
  }
  uint32_t good[kBatchRows];
  size_t count = 0;
  std::vector<Column> columns;
  for (size_t row = 0; row < batch.rows.rows; row++) {
    try {
      EvaluateAll(SliceBatch(batch.rows, row, 1, &columns));
      good[count++] = static_cast<uint32_t>(row);
    } catch (const QueryError& e) {
      if (!IsRowError(e.error)) throw;
      context_.errors.Add(e.error, batch.weights[row]);
    }
  }
  DeltaBatch rest = good_.Select(batch, good, count);
  if (count > 0) EvaluateAll(rest.rows);
  return rest;
}

}  // namespace sluice
