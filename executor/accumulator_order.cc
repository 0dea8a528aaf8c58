// Around another accumulator: ORDER BY (keeps the rows, sorts each group's at the end) and DISTINCT
// (lets only the first row with given arguments pass).
#include "executor/accumulator_internal.h"
#include "executor/group_table.h"
#include "executor/row_comparator.h"
#include "executor/spill.h"
#include "types/compare.h"

namespace sluice {
namespace {

// A group's rows in order of arrival.
struct RowChain {
  char* first = nullptr;
  char* last = nullptr;
};

std::vector<RowSortKey> SortKeysOf(const AggregateCall& call, bool by_arguments) {
  std::vector<RowSortKey> keys;
  if (by_arguments) {
    for (size_t i = 0; i < call.args.size(); i++) {
      keys.push_back({i, false, false, call.args[i]->collation});
    }
    return keys;
  }
  for (size_t i = 0; i < call.order_by.size(); i++) {
    const SortKey& key = call.order_by[i];
    keys.push_back({call.args.size() + i, key.descending, key.nulls_first, key.collation});
  }
  return keys;
}

class OrderedAccumulator final : public StateAccumulator<RowChain> {
 public:
  OrderedAccumulator(const AggregateCall& call, bool by_arguments,
                     std::unique_ptr<Accumulator> inner, Arena* arena)
      : types_(ArgumentTypes(call)),
        layout_(types_, sizeof(char*)),
        comparator_(&layout_, SortKeysOf(call, by_arguments)),
        inner_(std::move(inner)),
        arena_(arena),
        columns_(types_) {}

  void Grow(size_t groups) override {
    StateAccumulator::Grow(groups);
    inner_->Grow(groups);
  }

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    char* stored[kBatchRows];
    layout_.Store(args, rows.rows, rows.count, arena_, stored);
    size_t i = 0;
    rows.ForEach([&](size_t, uint32_t group) {
      char* row = stored[i++];
      Next(row) = nullptr;
      RowChain& chain = states_[group];
      if (chain.first == nullptr) {
        chain.first = row;
      } else {
        Next(chain.last) = row;
      }
      chain.last = row;
    });
  }

  void Merge(const Column&, const GroupedRows&) override { NoPartial(); }
  void Serialize(size_t, std::string*) override { NoPartial(); }

  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena* arena) override {
    for (size_t group = first; group < first + count; group++) Feed(group);
    inner_->Finish(first, count, out, arena);
  }
  size_t memory_bytes() const override {
    return StateAccumulator::memory_bytes() + inner_->memory_bytes();
  }
  void Clear() override {
    StateAccumulator::Clear();
    inner_->Clear();
  }

 private:
  static char*& Next(char* row) { return *reinterpret_cast<char**>(row); }
  [[noreturn]] static void NoPartial() {
    Throw(sqlstate::kInternalError, "aggregate with ORDER BY has no partial state");
  }

  void Feed(size_t group) {
    std::vector<char*> rows;
    for (char* row = states_[group].first; row != nullptr; row = Next(row)) rows.push_back(row);
    states_[group] = {};
    std::stable_sort(rows.begin(), rows.end(), [this](const char* a, const char* b) {
      return comparator_.Compare(a, b) < 0;
    });
    std::vector<uint32_t> groups(std::min(rows.size(), kBatchRows), static_cast<uint32_t>(group));
    for (size_t start = 0; start < rows.size(); start += kBatchRows) {
      size_t some = std::min(kBatchRows, rows.size() - start);
      for (size_t c = 0; c < columns_.size(); c++) {
        layout_.Load(rows.data() + start, some, c, &columns_[c]);
      }
      Batch batch;
      columns_.Show(some, &batch);
      inner_->Update(batch.columns, GroupedRows{nullptr, some, groups.data()});
    }
  }

  std::vector<Oid> types_;
  RowLayout layout_;
  RowComparator comparator_;
  std::unique_ptr<Accumulator> inner_;
  Arena* arena_;
  BatchBuffer columns_;
};

// The set of (group, arguments) seen. Past its memory it learns nothing new: unknown rows are
// spilled by hash and each partition is looked at alone in Complete(), with an empty set.
class DistinctAccumulator final : public Accumulator {
 public:
  DistinctAccumulator(const AggregateCall& call, std::unique_ptr<Accumulator> inner,
                      const AccumulatorContext& context)
      : inner_(std::move(inner)),
        context_(context),
        key_count_(1 + call.args.size()),
        types_(SetTypes(call)),
        layout_(types_, 0),
        seen_(std::span<const Oid>(types_).first(key_count_)),
        columns_(types_) {
    for (size_t i = 1; i < key_count_; i++) {
      if (!CanHash(types_[i])) {
        Refuse("DISTINCT over type OID {} is not supported here", types_[i]);
      }
    }
  }

  void Grow(size_t groups) override { inner_->Grow(groups); }

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    if (rows.count == 0) return;
    // Column 0 is the group, then come the arguments and ORDER BY expressions, all packed together.
    columns_[0].Clear();
    int32_t* group_column = columns_[0].column.Data<int32_t>();
    size_t i = 0;
    rows.ForEach([&](size_t, uint32_t group) { group_column[i++] = static_cast<int32_t>(group); });
    for (size_t c = 1; c < types_.size(); c++) {
      if (rows.rows != nullptr) {
        GatherColumn(args[c - 1], rows.rows, rows.count, &columns_[c]);
      } else {
        columns_[c].Clear();
        CopyRows(args[c - 1], nullptr, rows.count, &columns_[c]);
      }
    }
    Batch batch;
    columns_.Show(rows.count, &batch);
    Offer(batch, 0, &partitions_);
  }

  void Complete() override {
    if (partitions_ != nullptr) {
      std::unique_ptr<SpillPartitions> partitions = std::move(partitions_);
      spilled_bytes_ += partitions->bytes();
      Drain(*partitions);
    }
    inner_->Complete();
  }

  void Merge(const Column&, const GroupedRows&) override { NoPartial(); }
  void Serialize(size_t, std::string*) override { NoPartial(); }
  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena* arena) override {
    inner_->Finish(first, count, out, arena);
  }
  // The set has a bound of its own and is not the groups' to answer for.
  size_t memory_bytes() const override { return inner_->memory_bytes(); }
  uint64_t spilled_bytes() const override { return spilled_bytes_; }
  void Clear() override {
    seen_.Clear();
    full_ = false;
    partitions_ = nullptr;
    inner_->Clear();
  }

 private:
  static std::vector<Oid> SetTypes(const AggregateCall& call) {
    std::vector<Oid> types = {kInt4Oid};
    for (Oid type : ArgumentTypes(call)) types.push_back(type);
    return types;
  }
  [[noreturn]] static void NoPartial() {
    Throw(sqlstate::kInternalError, "aggregate with DISTINCT has no partial state");
  }

  // Rows of `batch` (group, arguments…) that are new go on to the inner accumulator.
  void Offer(const Batch& batch, int level, std::unique_ptr<SpillPartitions>* partitions) {
    uint32_t found[kBatchRows];
    uint64_t hashes[kBatchRows];
    bool admit = !full_ || level >= SpillPartitions::kLevelsMax;
    size_t known = seen_.group_count();
    seen_.Find(batch.columns, batch.rows, admit, found, hashes);
    uint32_t fresh[kBatchRows];
    uint32_t unknown[kBatchRows];
    size_t fresh_count = 0, unknown_count = 0;
    uint8_t marked[kBatchRows] = {};
    for (size_t i = 0; i < batch.rows; i++) {
      if (found[i] == kNoGroup) {
        unknown[unknown_count++] = static_cast<uint32_t>(i);
      } else if (found[i] >= known && !marked[found[i] - known]) {
        marked[found[i] - known] = 1;
        fresh[fresh_count++] = static_cast<uint32_t>(i);
      }
    }
    if (unknown_count > 0) {
      if (*partitions == nullptr) {
        *partitions = std::make_unique<SpillPartitions>(&layout_, context_.temp_directory, level);
      }
      (*partitions)->Append(batch.columns, unknown, unknown_count, hashes);
    }
    inner_->Update(batch.columns.subspan(1),
                   GroupedRows{fresh, fresh_count, batch.columns[0].Data<uint32_t>()});
    full_ = seen_.memory_bytes() > context_.distinct_memory_bytes;
  }

  void Drain(SpillPartitions& partitions) {
    int level = partitions.level() + 1;
    for (std::unique_ptr<SpillFile>& file : partitions.TakeFiles()) {
      seen_.Clear();
      full_ = false;
      std::unique_ptr<SpillPartitions> deeper;
      file->StartReading();
      char* rows[kBatchRows];
      uint64_t tags[kBatchRows];
      while (size_t count = file->Read(kBatchRows, rows, tags)) {
        for (size_t c = 0; c < columns_.size(); c++) layout_.Load(rows, count, c, &columns_[c]);
        Batch batch;
        columns_.Show(count, &batch);
        Offer(batch, level, &deeper);
      }
      file = nullptr;
      if (deeper != nullptr) {
        spilled_bytes_ += deeper->bytes();
        Drain(*deeper);
      }
    }
  }

  std::unique_ptr<Accumulator> inner_;
  AccumulatorContext context_;
  size_t key_count_;
  std::vector<Oid> types_;
  RowLayout layout_;
  GroupTable seen_;
  bool full_ = false;
  std::unique_ptr<SpillPartitions> partitions_;
  uint64_t spilled_bytes_ = 0;
  BatchBuffer columns_;
};

}  // namespace

std::unique_ptr<Accumulator> MakeOrderedAccumulator(const AggregateCall& call, bool by_arguments,
                                                    std::unique_ptr<Accumulator> inner,
                                                    Arena* arena) {
  return std::make_unique<OrderedAccumulator>(call, by_arguments, std::move(inner), arena);
}

std::unique_ptr<Accumulator> MakeDistinctAccumulator(const AggregateCall& call,
                                                     std::unique_ptr<Accumulator> inner,
                                                     const AccumulatorContext& context) {
  return std::make_unique<DistinctAccumulator>(call, std::move(inner), context);
}

}  // namespace sluice
