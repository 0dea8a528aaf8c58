// The k-way merge of sorted inputs: what MergeAppend and GatherMerge do.
//
// Output batches hold views of the inputs' current batches, nothing is copied but the fixed-width
// values; so a batch ends early when an input must be asked for its next rows, which would
// invalidate its views.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "executor/column_buffer.h"
#include "optimizer/plan.h"
#include "types/compare.h"

namespace sluice {

class Merger {
 public:
  // `refill(i, batch)`: the next batch of input i, rows == 0 at its end; waits for it. The batch
  // stays valid until the next refill of the same input.
  using Refill = std::function<void(size_t input, Batch* batch)>;
  Merger(std::span<const OutputColumn> columns, std::span<const SortKey> keys, size_t inputs,
         Refill refill);

  void Next(Batch* batch);

 private:
  struct Input {
    Batch batch;
    size_t row = 0;
    bool ended = false;
  };
  struct Key {
    size_t column;
    CompareFn compare;
    const Collator* collation;
    bool descending, nulls_first;
  };

  int Compare(const Input& a, const Input& b) const;
  bool Before(uint32_t a, uint32_t b) const;
  bool Fill(uint32_t input);
  void SiftDown(size_t at);
  void Start();
  size_t Merge();
  void Gather(size_t column, size_t rows);

  std::vector<Key> keys_;
  std::vector<Input> inputs_;
  Refill refill_;
  std::vector<uint32_t> heap_;  // inputs that have rows, a binary heap by their current row
  int64_t exhausted_ = -1;      // the heap's top, whose batch is used up
  bool started_ = false;
  BatchBuffer output_;
  std::vector<uint32_t> from_input_, from_row_;
};

}  // namespace sluice
