#include "stream/delta_join.h"

#include "common/error.h"

namespace sluice {
namespace {

std::vector<Oid> KeyTypes(std::span<const Expr* const> keys) {
  std::vector<Oid> types;
  for (const Expr* key : keys) types.push_back(key->type);
  return types;
}

}  // namespace

JoinDescription JoinDescription::Of(const Plan& plan) {
  if (plan.kind == PlanKind::kNestLoop) {
    const auto& loop = static_cast<const NestLoopPlan&>(plan);
    return {&plan, loop.type, {}, {}, loop.condition, false};
  }
  const auto& join = static_cast<const HashJoinPlan&>(plan);
  return {&plan, join.type, join.outer_keys, join.inner_keys, join.condition, join.null_aware};
}

DeltaJoin::DeltaJoin(const Plan& plan, ViewContext& context)
    : DeltaOperator(context),
      description_(JoinDescription::Of(plan)),
      type_(description_.type),
      key_encoder_(KeyTypes(description_.outer_keys)),
      selection_(ColumnTypes(plan.output)) {
  if (description_.condition != nullptr)
    condition_ = CompiledExpression::Compile(*description_.condition, *context.state);
  PrepareSide(kOuterSide);
  PrepareSide(kInnerSide);
  if (description_.null_aware) {
    if (condition_ != nullptr)
      Refuse("NOT IN with another condition is not supported in a live view");
    all_outer_ = std::make_unique<JoinSide>(context.StateTable(plan.id, "all"),
                                            sides_[kOuterSide].types, false);
    totals_table_ = context.StateTable(plan.id, "n");
  }
}

void DeltaJoin::PrepareSide(size_t side) {
  SideState& state = sides_[side];
  const Plan& child = *description_.plan->children[side];
  state.types = ColumnTypes(child.output);
  state.keys = std::make_unique<GuardedExpressions>(
      side == kOuterSide ? description_.outer_keys : description_.inner_keys, child.output,
      context_);
  // The number of a key's rows says how many matches a row of the other side has.
  bool counted = Watches(1 - side) && description_.condition == nullptr;
  state.rows = std::make_unique<JoinSide>(
      context_.StateTable(description_.plan->id, side == kOuterSide ? "l" : "r"), state.types,
      counted);
  state.pairs = std::make_unique<BatchBuffer>(state.types);
  state.chunk = std::make_unique<BatchBuffer>(state.types);
  static uint8_t null = 1;
  static const uint64_t nothing[2] = {0, 0};
  for (Oid type : state.types)
    state.nulls.push_back({type, PhysicalOf(type), 0, &null, const_cast<uint64_t*>(nothing)});
}

bool DeltaJoin::Extends(size_t side) const {
  if (type_ == JoinType::kFull) return true;
  return type_ == (side == kOuterSide ? JoinType::kLeft : JoinType::kRight);
}

bool DeltaJoin::Watches(size_t side) const {
  return Extends(side) || (side == kOuterSide && OuterOnly());
}

void DeltaJoin::Push(size_t input, const DeltaBatch& batch) {
  side_ = input;
  other_ = 1 - input;
  delta_ = sides_[side_].keys->Evaluate(batch);
  size_t rows = delta_.rows.rows;
  if (rows == 0) return;
  std::span<const Column> key_columns = sides_[side_].keys->columns();
  keys_.assign(rows, {});
  null_key_.assign(rows, 0);
  matched_.assign(rows, 0);
  by_key_.clear();
  for (size_t row = 0; row < rows; row++) {
    for (const Column& column : key_columns) null_key_[row] |= column.IsNull(row);
    if (null_key_[row]) continue;
    key_encoder_.Append(key_columns, row, &keys_[row]);
    by_key_[keys_[row]].push_back(static_cast<uint32_t>(row));
  }
  if (description_.null_aware) return PushNullAware(delta_, null_key_);
  ReadOtherRows();
  EmitUnmatchedOrMatched();
  StoreDelta();
}

// Meets the delta's rows with the other side's, some of them at a time.
void DeltaJoin::ReadOtherRows() {
  std::vector<JoinSideRow> read;
  for (const auto& [key, delta_rows] : by_key_) {
    std::string place;
    for (bool more = true; more;) {
      read.clear();
      more = sides_[other_].rows->Read(key, kBatchRows - others_.size(), &place, &read);
      for (JoinSideRow& row : read) others_.push_back({std::move(row), &key, &delta_rows});
      if (others_.size() == kBatchRows) MatchChunk();
    }
  }
  MatchChunk();
}

void DeltaJoin::MatchChunk() {
  if (others_.empty()) return;
  BatchBuffer& chunk = *sides_[other_].chunk;
  chunk.Clear();
  for (size_t i = 0; i < others_.size(); i++)
    sides_[other_].rows->codec().Decode(others_[i].stored.row, i, &chunk);
  for (size_t i = 0; i < others_.size(); i++)
    for (uint32_t row : *others_[i].delta_rows) AddPair(row, static_cast<uint32_t>(i));
  MatchPairs();
  if (Watches(other_)) ChangeOthers();
  others_.clear();
}

void DeltaJoin::AddPair(uint32_t row, uint32_t other) {
  pair_rows_[pair_count_] = row;
  pair_others_[pair_count_++] = other;
  if (pair_count_ == kBatchRows) MatchPairs();
}

void DeltaJoin::MatchPairs() {
  size_t pairs = std::exchange(pair_count_, 0);
  if (pairs == 0) return;
  BatchBuffer &mine = *sides_[side_].pairs, &theirs = *sides_[other_].pairs;
  for (size_t c = 0; c < mine.size(); c++)
    GatherColumn(delta_.rows.columns[c], pair_rows_, pairs, &mine[c]);
  BatchBuffer& chunk = *sides_[other_].chunk;
  for (size_t c = 0; c < theirs.size(); c++)
    GatherColumn(chunk[c].column, pair_others_, pairs, &theirs[c]);
  Batch batches[2];
  mine.Show(pairs, &batches[side_]);
  theirs.Show(pairs, &batches[other_]);
  int64_t weights[kBatchRows];
  for (size_t i = 0; i < pairs; i++)
    weights[i] = delta_.weights[pair_rows_[i]] * others_[pair_others_[i]].stored.count;
  uint32_t selected[kBatchRows];
  size_t count = SelectPairs(batches[kOuterSide], batches[kInnerSide], pairs, selected, weights);
  for (size_t i = 0; i < count; i++) {
    uint32_t row = pair_rows_[selected[i]];
    matched_[row] = 1;
    others_[pair_others_[selected[i]]].matched += delta_.weights[row];
  }
  if (OuterOnly() || count == 0) return;
  output_columns_.assign(batches[kOuterSide].columns.begin(), batches[kOuterSide].columns.end());
  output_columns_.insert(output_columns_.end(), batches[kInnerSide].columns.begin(),
                         batches[kInnerSide].columns.end());
  DeltaBatch all{{pairs, output_columns_}, weights};
  Emit(count == pairs ? all : selection_.Select(all, selected, count));
}

// The pairs on which the condition is true. Where it fails, the pair counts as an error.
size_t DeltaJoin::SelectPairs(const Batch& outer, const Batch& inner, size_t rows,
                              uint32_t* selected, const int64_t* error_weights) {
  if (condition_ == nullptr) {
    for (size_t i = 0; i < rows; i++) selected[i] = static_cast<uint32_t>(i);
    return rows;
  }
  condition_arena_.Reset();
  try {
    return SelectRows(*condition_, outer, &inner, rows, &condition_arena_, selected);
  } catch (const QueryError& e) {
    if (!IsRowError(e.error)) throw;
  }
  size_t count = 0;
  std::vector<Column> outer_columns, inner_columns;
  for (size_t i = 0; i < rows; i++) {
    Batch one_outer = SliceBatch(outer, i, 1, &outer_columns);
    Batch one_inner = SliceBatch(inner, i, 1, &inner_columns);
    uint32_t ignored;
    try {
      if (SelectRows(*condition_, one_outer, &one_inner, 1, &condition_arena_, &ignored) == 1)
        selected[count++] = static_cast<uint32_t>(i);
    } catch (const QueryError& e) {
      if (!IsRowError(e.error)) throw;
      if (error_weights != nullptr) context_.errors.Add(e.error, error_weights[i]);
    }
  }
  return count;
}

// Rows of the other side whose matches begin or end.
void DeltaJoin::ChangeOthers() {
  uint32_t changed[kBatchRows];
  int64_t weights[kBatchRows];
  size_t count = 0;
  for (size_t i = 0; i < others_.size(); i++) {
    const OtherRow& other = others_[i];
    if (other.matched == 0) continue;
    int64_t before =
        condition_ == nullptr ? sides_[side_].rows->Count(*other.join_key) : CountMatches(other, i);
    int64_t after = before + other.matched;
    if (after < 0)
      Throw(sqlstate::kDataCorrupted, "a row is to be removed that is not in a join's input");
    if ((before > 0) == (after > 0)) continue;
    bool comes = (after > 0) == (type_ == JoinType::kSemi);
    weights[count] = comes ? other.stored.count : -other.stored.count;
    changed[count++] = static_cast<uint32_t>(i);
  }
  if (count == 0) return;
  Batch chunk;
  sides_[other_].chunk->Show(others_.size(), &chunk);
  EmitAlone(other_, chunk.columns, changed, count, weights);
}

// How many of this side's stored rows match a row of the other side's.
int64_t DeltaJoin::CountMatches(const OtherRow& other, size_t chunk_row) {
  Batch theirs;
  sides_[other_].chunk->Show(others_.size(), &theirs);
  std::vector<Column> constant;
  Batch other_row = ConstantRow(theirs, chunk_row, &constant);
  BatchBuffer buffer(sides_[side_].types);
  std::vector<JoinSideRow> read;
  std::string place;
  int64_t matches = 0;
  for (bool more = true; more;) {
    read.clear();
    more = sides_[side_].rows->Read(*other.join_key, kBatchRows, &place, &read);
    buffer.Clear();
    for (size_t i = 0; i < read.size(); i++)
      sides_[side_].rows->codec().Decode(read[i].row, i, &buffer);
    Batch mine;
    buffer.Show(read.size(), &mine);
    uint32_t selected[kBatchRows];
    bool outer = side_ == kOuterSide;
    size_t count = SelectPairs(outer ? mine : other_row, outer ? other_row : mine, read.size(),
                               selected, nullptr);
    for (size_t i = 0; i < count; i++) matches += read[selected[i]].count;
  }
  return matches;
}

// The delta's own rows: those that met nothing, or of a semi join something.
void DeltaJoin::EmitUnmatchedOrMatched() {
  if (!Watches(side_)) return;
  bool wanted = type_ == JoinType::kSemi;
  uint32_t rows[kBatchRows];
  int64_t weights[kBatchRows];
  size_t count = 0;
  for (size_t row = 0; row < delta_.rows.rows; row++) {
    if ((matched_[row] != 0) != wanted) continue;
    weights[count] = delta_.weights[row];
    rows[count++] = static_cast<uint32_t>(row);
  }
  EmitAlone(side_, delta_.rows.columns, rows, count, weights);
}

// Rows of one side without partners; weights[i] belongs to rows[i].
void DeltaJoin::EmitAlone(size_t side, std::span<const Column> columns, const uint32_t* rows,
                          size_t count, const int64_t* weights) {
  if (count == 0) return;
  BatchBuffer& mine = *sides_[side].pairs;
  for (size_t c = 0; c < mine.size(); c++) GatherColumn(columns[c], rows, count, &mine[c]);
  Batch own;
  mine.Show(count, &own);
  output_columns_.clear();
  if (side == kInnerSide)
    output_columns_.insert(output_columns_.end(), sides_[kOuterSide].nulls.begin(),
                           sides_[kOuterSide].nulls.end());
  output_columns_.insert(output_columns_.end(), own.columns.begin(), own.columns.end());
  if (side == kOuterSide && !OuterOnly())
    output_columns_.insert(output_columns_.end(), sides_[kInnerSide].nulls.begin(),
                           sides_[kInnerSide].nulls.end());
  Emit({{count, output_columns_}, weights});
}

void DeltaJoin::StoreDelta() {
  std::string row_bytes;
  JoinSide& stored = *sides_[side_].rows;
  for (size_t row = 0; row < delta_.rows.rows; row++) {
    if (null_key_[row]) continue;  // it never meets anything
    row_bytes.clear();
    stored.codec().Append(delta_.rows.columns, row, &row_bytes);
    stored.Add(keys_[row], row_bytes, delta_.weights[row]);
  }
}

DeltaJoin::Totals DeltaJoin::LoadTotals() const {
  Totals totals;
  if (std::optional<std::string_view> value = totals_table_.Get("n")) {
    totals.rows = static_cast<int64_t>(TakeVarint(&*value));
    totals.nulls = static_cast<int64_t>(TakeVarint(&*value));
  }
  return totals;
}

void DeltaJoin::PushNullAware(const DeltaBatch& good, std::span<const uint8_t> null_key) {
  Totals before = LoadTotals(), after = before;
  uint32_t rows[kBatchRows];
  int64_t weights[kBatchRows];
  size_t count = 0;
  if (side_ == kOuterSide) {
    std::string bytes;
    for (size_t row = 0; row < good.rows.rows; row++) {
      bytes.clear();
      all_outer_->codec().Append(good.rows.columns, row, &bytes);
      all_outer_->Add({}, bytes, good.weights[row]);
      int64_t matches = null_key[row] ? 0 : sides_[kInnerSide].rows->Count(keys_[row]);
      if (!Passes(before, null_key[row] != 0, matches)) continue;
      weights[count] = good.weights[row];
      rows[count++] = static_cast<uint32_t>(row);
    }
    StoreDelta();
    return EmitAlone(kOuterSide, good.rows.columns, rows, count, weights);
  }
  for (size_t row = 0; row < good.rows.rows; row++) {
    after.rows += good.weights[row];
    if (null_key[row]) after.nulls += good.weights[row];
  }
  if (after.rows < 0 || after.nulls < 0)
    Throw(sqlstate::kDataCorrupted, "a row is to be removed that is not in NOT IN's subquery");
  bool anew = before.all_pass() != after.all_pass() || before.none_pass() != after.none_pass();
  if (anew)
    EmitAllPassing(before, -1);
  else if (!after.none_pass())
    ReadOtherRows();
  StoreDelta();
  std::string value;
  AppendVarint(static_cast<uint64_t>(after.rows), &value);
  AppendVarint(static_cast<uint64_t>(after.nulls), &value);
  totals_table_.Put("n", value);
  if (anew) EmitAllPassing(after, 1);
}

// NOT IN's result over all rows of the outer side.
void DeltaJoin::EmitAllPassing(const Totals& totals, int64_t sign) {
  const std::vector<Oid>& types = sides_[kOuterSide].types;
  GuardedExpressions keys(description_.outer_keys, description_.plan->children[0]->output,
                          context_);
  BatchBuffer buffer(types);
  std::vector<JoinSideRow> read;
  std::string place, key;
  for (bool more = true; more;) {
    read.clear();
    more = all_outer_->Read({}, kBatchRows, &place, &read);
    buffer.Clear();
    int64_t counts[kBatchRows], weights[kBatchRows];
    for (size_t i = 0; i < read.size(); i++) {
      all_outer_->codec().Decode(read[i].row, i, &buffer);
      counts[i] = read[i].count * sign;
    }
    DeltaBatch batch{{}, counts};
    buffer.Show(read.size(), &batch.rows);
    // Rows whose key fails are not stored: the key has been evaluated before.
    keys.Evaluate(batch);
    uint32_t rows[kBatchRows];
    size_t count = 0;
    for (size_t i = 0; i < read.size(); i++) {
      bool null_key = keys.columns()[0].IsNull(i);
      key.clear();
      if (!null_key) key_encoder_.Append(keys.columns(), i, &key);
      int64_t matches = null_key ? 0 : sides_[kInnerSide].rows->Count(key);
      if (!Passes(totals, null_key, matches)) continue;
      weights[count] = counts[i];
      rows[count++] = static_cast<uint32_t>(i);
    }
    EmitAlone(kOuterSide, batch.rows.columns, rows, count, weights);
  }
}

}  // namespace sluice
