#include "executor/sort.h"

#include "common/error.h"
#include "executor/child.h"
#include "executor/expression.h"
#include "shm/process_table.h"

namespace sluice {
namespace {

constexpr size_t kArenaBlockBytes = 32 * 1024;
constexpr size_t kMergeBufferBytes = 256 * 1024;  // of each run
constexpr size_t kMergeRunsMin = 4, kMergeRunsMax = 64;
constexpr size_t kRowsReadAhead = 256;

std::vector<RowSortKey> KeysOf(const SortPlan& plan) {
  std::vector<RowSortKey> keys;
  for (const SortKey& key : plan.keys) {
    SLUICE_ASSERT(key.target >= 0);
    keys.push_back(
        {static_cast<size_t>(key.target), key.descending, key.nulls_first, key.collation});
  }
  return keys;
}

}  // namespace

// K sorted runs as one. A heap of runs by their current rows.
class Sort::Merge {
  struct Input {
    std::unique_ptr<SpillFile> file;
    char* rows[kRowsReadAhead];
    uint64_t prefixes[kRowsReadAhead];
    size_t at = 0, count = 0;
  };
  // std::*_heap keep the largest in front, so "less" is "comes later".
  struct After {
    RowComparator* comparator;
    bool operator()(const Input* a, const Input* b) const {
      uint64_t prefix_a = a->prefixes[a->at], prefix_b = b->prefixes[b->at];
      if (prefix_a != prefix_b) return prefix_a > prefix_b;
      return comparator->Compare(a->rows[a->at], b->rows[b->at]) > 0;
    }
  };

 public:
  Merge(std::vector<std::unique_ptr<SpillFile>> files, RowComparator* comparator)
      : comparator_(comparator), inputs_(files.size()) {
    for (size_t i = 0; i < files.size(); i++) {
      inputs_[i].file = std::move(files[i]);
      inputs_[i].file->StartReading();
      if (Advance(&inputs_[i])) heap_.push_back(&inputs_[i]);
    }
    std::make_heap(heap_.begin(), heap_.end(), After{comparator_});
  }

  // The next row, valid until the next call, or nullptr.
  char* Next(uint64_t* prefix) {
    if (current_ != nullptr) {
      if (Advance(current_)) {
        heap_.push_back(current_);
        std::push_heap(heap_.begin(), heap_.end(), After{comparator_});
      }
      current_ = nullptr;
    }
    if (heap_.empty()) return nullptr;
    std::pop_heap(heap_.begin(), heap_.end(), After{comparator_});
    current_ = heap_.back();
    heap_.pop_back();
    *prefix = current_->prefixes[current_->at];
    return current_->rows[current_->at];
  }

 private:
  static bool Advance(Input* input) {
    if (++input->at < input->count) return true;
    input->at = 0;
    input->count = input->file->Read(kRowsReadAhead, input->rows, input->prefixes);
    return input->count > 0;
  }
  RowComparator* comparator_;
  std::vector<Input> inputs_;
  std::vector<Input*> heap_;
  Input* current_ = nullptr;
};

Sort::Sort(const SortPlan& plan, ExecutionState& state, std::unique_ptr<Node> child)
    : Node(plan, state),
      sort_plan_(plan),
      child_(GivenOrMade(std::move(child), plan, 0, state)),
      layout_(ColumnTypes(plan.output), 0),
      comparator_(&layout_, KeysOf(plan)),
      arena_(std::make_unique<Arena>(HeapBlocks(), kArenaBlockBytes)),
      output_(plan.output) {}

Sort::~Sort() = default;

bool Sort::Less(const Entry& a, const Entry& b) {
  if (a.prefix != b.prefix) return a.prefix < b.prefix;
  return comparator_.Compare(a.row, b.row, comparator_.prefix_is_exact() && !null_seen_ ? 1 : 0) <
         0;
}

size_t Sort::memory_bytes() const {
  return arena_->allocated_bytes() + entries_.capacity() * sizeof(Entry);
}

void Sort::ReadInput() {
  bound_ = UINT64_MAX;
  if (sort_plan_.bound != nullptr) {
    Arena arena;
    Column bound = EvaluateConstant(*sort_plan_.bound, state_, &arena);
    // A negative LIMIT or OFFSET is the Limit node's to report.
    if (!bound.IsNull(0))
      bound_ = static_cast<uint64_t>(std::max<int64_t>(0, bound.At<int64_t>(0)));
  }
  Batch input;
  for (;;) {
    CheckForInterrupts();
    child_->Next(&input);
    if (input.rows == 0) break;
    Add(input);
    size_t memory = memory_bytes();
    Statistics().memory_bytes_max = std::max<uint64_t>(Statistics().memory_bytes_max, memory);
    if (memory > static_cast<size_t>(state_.context->work_mem_bytes)) WriteRun();
  }
  sorted_ = true;
  if (runs_.empty()) {
    SortEntries();
    return;
  }
  WriteRun();
  size_t runs_max =
      std::clamp(static_cast<size_t>(state_.context->work_mem_bytes) / kMergeBufferBytes,
                 kMergeRunsMin, kMergeRunsMax);
  MergeDownTo(runs_max);
  merge_ = std::make_unique<Merge>(std::move(runs_), &comparator_);
  runs_.clear();
}

void Sort::Add(const Batch& input) {
  const Column& first_key = input.columns[comparator_.first_column()];
  uint32_t kept[kBatchRows];
  const uint32_t* rows = nullptr;
  size_t count = input.rows;
  if (has_threshold_) {
    count = DropBeyondBound(input, kept);
    rows = kept;
  }
  if (count == 0) return;
  char* stored[kBatchRows];
  layout_.Store(input.columns, rows, count, arena_.get(), stored);
  for (size_t i = 0; i < count; i++) {
    size_t row = rows == nullptr ? i : rows[i];
    null_seen_ |= first_key.IsNull(row);
    entries_.push_back({comparator_.Prefix(first_key, row), stored[i]});
  }
  if (bound_ < entries_.size() / 2 && entries_.size() - bound_ > 2 * kBatchRows) CutToBound();
}

size_t Sort::DropBeyondBound(const Batch& input, uint32_t* kept) const {
  const Column& first_key = input.columns[comparator_.first_column()];
  size_t count = 0;
  for (size_t i = 0; i < input.rows; i++) {
    kept[count] = static_cast<uint32_t>(i);
    count += comparator_.Prefix(first_key, i) <= threshold_;
  }
  return count;
}

// Keeps the first `bound_` entries and copies their rows, so that the memory of the others is free.
void Sort::CutToBound() {
  auto less = [this](const Entry& a, const Entry& b) { return Less(a, b); };
  if (bound_ > 0) {
    auto nth = entries_.begin() + static_cast<ptrdiff_t>(bound_ - 1);
    std::nth_element(entries_.begin(), nth, entries_.end(), less);
    threshold_ = nth->prefix;
    has_threshold_ = true;
  }
  entries_.resize(bound_);
  auto arena = std::make_unique<Arena>(HeapBlocks(), kArenaBlockBytes);
  for (Entry& entry : entries_) {
    size_t bytes = layout_.RowBytes(entry.row);
    char* copy = static_cast<char*>(arena->Allocate(bytes, 8));
    std::memcpy(copy, entry.row, bytes);
    layout_.Relocate(copy);
    entry.row = copy;
  }
  arena_ = std::move(arena);
}

void Sort::SortEntries() {
  std::sort(entries_.begin(), entries_.end(),
            [this](const Entry& a, const Entry& b) { return Less(a, b); });
  if (entries_.size() > bound_) entries_.resize(bound_);
}

void Sort::WriteRun() {
  SortEntries();
  auto run = std::make_unique<SpillFile>(&layout_, state_.context->temp_directory);
  for (const Entry& entry : entries_) run->Append(entry.row, entry.prefix);
  run->Seal();
  Statistics().spilled_bytes += run->bytes();
  runs_.push_back(std::move(run));
  std::vector<Entry>().swap(entries_);
  arena_ = std::make_unique<Arena>(HeapBlocks(), kArenaBlockBytes);
}

// Merges the oldest runs until so few are left that they can be read at once.
void Sort::MergeDownTo(size_t runs_max) {
  while (runs_.size() > runs_max) {
    size_t taken = std::min(runs_max, runs_.size() - runs_max + 1);
    std::vector<std::unique_ptr<SpillFile>> inputs;
    for (size_t i = 0; i < taken; i++) inputs.push_back(std::move(runs_[i]));
    runs_.erase(runs_.begin(), runs_.begin() + static_cast<ptrdiff_t>(taken));
    Merge merge(std::move(inputs), &comparator_);
    auto run = std::make_unique<SpillFile>(&layout_, state_.context->temp_directory);
    uint64_t prefix;
    while (char* row = merge.Next(&prefix)) {
      if (run->row_count() == bound_) break;
      if (run->row_count() % kBatchRows == 0) CheckForInterrupts();
      run->Append(row, prefix);
    }
    run->Seal();
    Statistics().spilled_bytes += run->bytes();
    runs_.push_back(std::move(run));
  }
}

void Sort::NextBatch(Batch* batch) {
  if (!sorted_) ReadInput();
  const char* rows[kBatchRows];
  size_t count = 0;
  if (merge_ == nullptr) {
    count = std::min<size_t>(kBatchRows, entries_.size() - given_);
    for (size_t i = 0; i < count; i++) rows[i] = entries_[given_ + i].row;
  } else {
    output_arena_.Reset();
    uint64_t prefix;
    while (count < kBatchRows && given_ + count < bound_) {
      const char* row = merge_->Next(&prefix);
      if (row == nullptr) break;
      size_t bytes = layout_.RowBytes(row);
      char* copy = static_cast<char*>(output_arena_.Allocate(bytes, 8));
      std::memcpy(copy, row, bytes);
      layout_.Relocate(copy);
      rows[count++] = copy;
    }
  }
  given_ += count;
  batch->rows = count;
  if (count == 0) return;
  for (size_t c = 0; c < output_.size(); c++) layout_.Load(rows, count, c, &output_[c]);
  output_.Show(count, batch);
}

void Sort::Rescan() {
  bool kept = sorted_ && merge_ == nullptr && sort_plan_.depends_on.empty();
  given_ = 0;
  if (kept) return;  // all rows are here, in order
  child_->Rescan();
  Reset();
}

void Sort::Reset() {
  sorted_ = false;
  null_seen_ = false;
  has_threshold_ = false;
  runs_.clear();
  merge_ = nullptr;
  entries_.clear();
  arena_->Reset();
}

}  // namespace sluice
