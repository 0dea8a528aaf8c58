#include "executor/merger.h"

#include "common/error.h"
#include "executor/row_comparator.h"

namespace sluice {

Merger::Merger(std::span<const OutputColumn> columns, std::span<const SortKey> keys, size_t inputs,
               Refill refill)
    : inputs_(inputs),
      refill_(std::move(refill)),
      output_(columns),
      from_input_(kBatchRows),
      from_row_(kBatchRows) {
  for (const SortKey& key : keys) {
    auto column = static_cast<size_t>(key.target);
    CompareFn compare = FindCompare(columns[column].type);
    if (compare == nullptr)
      Refuse("ordering by a value of type {} is not supported", columns[column].type);
    keys_.push_back(
        {column, compare, CollatorOrNull(key.collation), key.descending, key.nulls_first});
  }
}

int Merger::Compare(const Input& a, const Input& b) const {
  for (const Key& key : keys_) {
    const Column& column_a = a.batch.columns[key.column];
    const Column& column_b = b.batch.columns[key.column];
    bool null_a = column_a.IsNull(a.row), null_b = column_b.IsNull(b.row);
    if (null_a || null_b) {
      if (null_a && null_b) continue;
      return null_a == key.nulls_first ? -1 : 1;
    }
    int order = key.compare(column_a, a.row, column_b, b.row, key.collation);
    if (order != 0) return key.descending ? -order : order;
  }
  return 0;
}

// Ties go to the input with the smaller number, so that the result is the same every time.
bool Merger::Before(uint32_t a, uint32_t b) const {
  int order = Compare(inputs_[a], inputs_[b]);
  return order != 0 ? order < 0 : a < b;
}

bool Merger::Fill(uint32_t input) {
  Input& filled = inputs_[input];
  refill_(input, &filled.batch);
  filled.row = 0;
  filled.ended = filled.batch.rows == 0;
  return !filled.ended;
}

void Merger::SiftDown(size_t at) {
  uint32_t input = heap_[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && Before(heap_[child + 1], heap_[child])) child++;
    if (!Before(heap_[child], input)) break;
    heap_[at] = heap_[child];
    at = child;
  }
  heap_[at] = input;
}

void Merger::Start() {
  started_ = true;
  for (uint32_t i = 0; i < inputs_.size(); i++)
    if (Fill(i)) heap_.push_back(i);
  for (size_t i = heap_.size() / 2; i-- > 0;) SiftDown(i);
}

// Notes which row of which input comes next, until the output is full or the top input is used up.
size_t Merger::Merge() {
  size_t rows = 0;
  while (rows < kBatchRows && !heap_.empty()) {
    Input& top = inputs_[heap_[0]];
    from_input_[rows] = heap_[0];
    from_row_[rows] = static_cast<uint32_t>(top.row);
    rows++;
    if (++top.row == top.batch.rows) {
      exhausted_ = heap_[0];
      break;
    }
    SiftDown(0);
  }
  return rows;
}

void Merger::Gather(size_t column, size_t rows) {
  ColumnBuffer& to = output_[column];
  to.Clear();
  bool nulls = false;
  for (const Input& input : inputs_)
    nulls |= !input.ended && input.batch.columns[column].nulls != nullptr;
  WithWidth(WidthOf(to.column.physical), [&](auto tag) {
    using T = decltype(tag);
    T* target = to.column.Data<T>();
    for (size_t i = 0; i < rows; i++)
      target[i] = inputs_[from_input_[i]].batch.columns[column].At<T>(from_row_[i]);
  });
  if (!nulls) return;
  uint8_t* null_map = to.Nulls();
  for (size_t i = 0; i < rows; i++)
    null_map[i] = inputs_[from_input_[i]].batch.columns[column].IsNull(from_row_[i]);
}

void Merger::Next(Batch* batch) {
  if (!started_) {
    Start();
  } else if (exhausted_ >= 0) {
    if (!Fill(static_cast<uint32_t>(exhausted_))) {
      heap_[0] = heap_.back();
      heap_.pop_back();
    }
    exhausted_ = -1;
    if (!heap_.empty()) SiftDown(0);
  }
  size_t rows = Merge();
  for (size_t i = 0; i < output_.size(); i++) Gather(i, rows);
  output_.Show(rows, batch);
}

}  // namespace sluice
