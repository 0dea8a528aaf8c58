// Probing. The build side is in hash_join_build.cc.
#include "executor/hash_join.h"

#include "common/error.h"
#include "executor/child.h"
#include "shm/process_table.h"
#include "types/compare.h"

namespace sluice {

void HashJoin::NextBatch(Batch* batch) {
  batch->rows = 0;
  pair_count_ = 0;
  for (;;) {
    switch (phase_) {
      case Phase::kBuild:
        Build();
        break;
      case Phase::kOuter:
        CheckForInterrupts();
        StartOuter();
        break;
      case Phase::kStep:
        if (open_count_ == 0) {
          phase_ = Phase::kUnmatchedOuter;
        } else if (!Step() && Show(batch)) {
          return;
        }
        break;
      case Phase::kUnmatchedOuter:
        EmitUnmatchedOuter();  // leaves the phase if there was no room
        if (Show(batch)) return;
        break;
      case Phase::kUnmatchedInner:
        EmitUnmatchedInner();
        if (pair_count_ == 0) {
          phase_ = Phase::kPartition;
        } else {
          AppendInner(pair_inner_, pair_count_);
          output_.Show(pair_count_, batch);
          return;
        }
        break;
      case Phase::kPartition:
        phase_ = BuildPartition() ? Phase::kOuter : Phase::kDone;
        break;
      case Phase::kDone:
        return;
    }
  }
}

bool HashJoin::NextOuter(Batch* input) {
  if (!inner_spilled_) {
    outer_->Next(input);
    return input->rows > 0;
  }
  char* rows[kBatchRows];
  uint64_t tags[kBatchRows];
  size_t count = 0;
  while (!outer_files_.empty()) {
    count = outer_files_.back()->Read(kBatchRows, rows, tags);
    if (count > 0) break;
    outer_files_.pop_back();
  }
  if (count == 0) return false;
  for (size_t c = 0; c < outer_rows_->size(); c++) {
    outer_layout_->Load(rows, count, c, &(*outer_rows_)[c]);
  }
  outer_rows_->Show(count, input);
  return true;
}

void HashJoin::StartOuter() {
  if (!NextOuter(&outer_batch_)) {
    inner_at_ = 0;
    phase_ = keeps_inner() ? Phase::kUnmatchedInner : Phase::kPartition;
    return;
  }
  outer_batch_columns_.assign(outer_batch_.columns.begin(), outer_batch_.columns.end());
  outer_batch_.columns = outer_batch_columns_;
  HashOuter();
  for (size_t i = 0; i < outer_batch_.rows; i++) {
    if (!outer_null_key_[i]) buckets_.Prefetch(hashes_[i]);
  }
  open_count_ = 0;
  for (size_t i = 0; i < outer_batch_.rows; i++) {
    if (outer_null_key_[i]) continue;
    char* first = buckets_.Find(hashes_[i]);
    if (first == nullptr) continue;
    __builtin_prefetch(first);
    open_rows_[open_count_] = static_cast<uint32_t>(i);
    open_at_[open_count_++] = first;
  }
  phase_ = Phase::kStep;
}

// Keys, hashes and which rows have a NULL key (they match nothing).
void HashJoin::HashOuter() {
  size_t rows = outer_batch_.rows;
  key_arena_.Reset();
  std::memset(hashes_, 0, sizeof(uint64_t) * rows);
  std::memset(outer_null_key_, 0, rows);
  std::memset(outer_matched_, 0, rows);
  for (size_t k = 0; k < outer_keys_.size(); k++) {
    outer_key_columns_[k] = outer_keys_[k]->Evaluate(outer_batch_, nullptr, rows, &key_arena_);
    const Column& key = outer_key_columns_[k];
    HashColumn(key, rows, hashes_);
    if (key.nulls == nullptr) continue;
    for (size_t i = 0; i < rows; i++) outer_null_key_[i] |= key.IsNull(i);
  }
  // NOT IN: a NULL on the left is never known not to be in a set that has members.
  if (join_plan_.null_aware && inner_rows_ > 0) std::memcpy(outer_matched_, outer_null_key_, rows);
}

bool HashJoin::Step() {
  if (!outer_only() && pair_count_ + open_count_ > kBatchRows) return false;
  size_t first_pair = pair_count_;
  bool first_match_decides = outer_only() && condition_ == nullptr;
  size_t kept = 0;
  for (size_t i = 0; i < open_count_; i++) {
    uint32_t row = open_rows_[i];
    char* at = open_at_[i];
    const JoinRow* header = HeaderOf(at);
    char* next = header->next;
    if (header->hash == hashes_[row] && equality_->Equal(at, outer_key_columns_, row)) {
      if (first_match_decides) {
        outer_matched_[row] = 1;
        continue;
      }
      pair_outer_[pair_count_] = row;
      pair_inner_[pair_count_++] = at;
    }
    if (next == nullptr) continue;
    __builtin_prefetch(next);
    open_rows_[kept] = row;
    open_at_[kept++] = next;
  }
  open_count_ = kept;
  if (pair_count_ > first_pair) TakePairs(first_pair);
  return true;
}

// Pairs with equal keys: those that pass the condition are matches.
void HashJoin::TakePairs(size_t first) {
  size_t count = pair_count_ - first;
  if (condition_ != nullptr) {
    Batch outer, inner;
    for (size_t c = 0; c < condition_outer_->size(); c++) {
      GatherColumn(outer_batch_.columns[c], pair_outer_ + first, count, &(*condition_outer_)[c]);
    }
    for (size_t c = 0; c < condition_inner_->size(); c++) {
      layout_->Load(pair_inner_ + first, count, inner_stored_[c], &(*condition_inner_)[c]);
    }
    condition_outer_->Show(count, &outer);
    condition_inner_->Show(count, &inner);
    condition_arena_.Reset();
    size_t passed = SelectRows(*condition_, outer, &inner, count, &condition_arena_, selected_);
    for (size_t i = 0; i < passed; i++) {
      pair_outer_[first + i] = pair_outer_[first + selected_[i]];
      pair_inner_[first + i] = pair_inner_[first + selected_[i]];
    }
    pair_count_ = first + passed;
  }
  if (keeps_outer() || outer_only()) {
    for (size_t i = first; i < pair_count_; i++) outer_matched_[pair_outer_[i]] = 1;
  }
  if (keeps_inner()) {
    for (size_t i = first; i < pair_count_; i++) HeaderOf(pair_inner_[i])->matched = 1;
  }
  if (!outer_only()) return;
  pair_count_ = first;
  size_t kept = 0;
  for (size_t i = 0; i < open_count_; i++) {
    if (outer_matched_[open_rows_[i]]) continue;
    open_rows_[kept] = open_rows_[i];
    open_at_[kept++] = open_at_[i];
  }
  open_count_ = kept;
}

// What the outer batch gives at its end: unmatched rows beside NULLs, or what a semi or anti join
// lets pass.
void HashJoin::EmitUnmatchedOuter() {
  phase_ = Phase::kOuter;
  if (!keeps_outer() && !outer_only()) return;
  uint8_t wanted = join_plan_.type == JoinType::kSemi;
  size_t count = 0;
  for (size_t i = 0; i < outer_batch_.rows; i++) {
    selected_[count] = static_cast<uint32_t>(i);
    count += (outer_matched_[i] != 0) == (wanted != 0);
  }
  if (pair_count_ + count > kBatchRows) {
    phase_ = Phase::kUnmatchedOuter;  // again, when the pairs are gone
    return;
  }
  for (size_t i = 0; i < count; i++) {
    pair_outer_[pair_count_] = selected_[i];
    pair_inner_[pair_count_++] = nullptr;  // NULLs
  }
}

void HashJoin::EmitUnmatchedInner() {
  pair_count_ = 0;
  std::span<char* const> rows = rows_->rows();
  while (inner_at_ < rows.size() && pair_count_ < kBatchRows) {
    char* row = rows[inner_at_++];
    if (!HeaderOf(row)->matched) pair_inner_[pair_count_++] = row;
  }
  if (pair_count_ == 0) return;
  for (size_t c = 0; c < outer_columns_; c++) {
    output_[c].Clear();
    AppendNulls(pair_count_, 0, &output_[c]);
  }
}

void HashJoin::AppendInner(char* const* rows, size_t count) {
  for (size_t c = 0; c < inner_stored_.size(); c++) {
    layout_->Load(rows, count, inner_stored_[c], &output_[outer_columns_ + c]);
  }
}

// The pairs gathered, as a batch. False: there are none.
bool HashJoin::Show(Batch* batch) {
  if (pair_count_ == 0) return false;
  // Each outer row exactly once, in order: a foreign key's join. Its columns need no copying.
  bool identity = pair_count_ == outer_batch_.rows;
  for (size_t i = 0; identity && i < pair_count_; i++) identity = pair_outer_[i] == i;
  if (!identity) {
    for (size_t c = 0; c < outer_columns_; c++) {
      GatherColumn(outer_batch_.columns[c], pair_outer_, pair_count_, &output_[c]);
    }
  }
  if (!outer_only()) AppendInner(pair_inner_, pair_count_);
  output_.Show(pair_count_, batch);
  if (identity) {
    for (size_t c = 0; c < outer_columns_; c++) batch->columns[c] = outer_batch_.columns[c];
  }
  return true;
}

}  // namespace sluice
