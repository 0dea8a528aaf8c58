#include "executor/window_agg.h"

#include "common/error.h"
#include "common/sqlstate_query.h"
#include "executor/child.h"
#include "shm/process_table.h"

namespace sluice {
namespace {

constexpr size_t kArenaBlockBytes = 32 * 1024;

std::vector<RowSortKey> PartitionKeys(const WindowAggPlan& plan) {
  std::vector<RowSortKey> keys;
  for (const SortKey& key : plan.partition_by)
    keys.push_back(
        {static_cast<size_t>(key.target), key.descending, key.nulls_first, key.collation});
  return keys;
}

const uint32_t* Zeros() {
  static const uint32_t zeros[kBatchRows] = {};
  return zeros;
}

}  // namespace

WindowAgg::WindowAgg(const WindowAggPlan& plan, ExecutionState& state, std::unique_ptr<Node> child)
    : Node(plan, state),
      window_plan_(plan),
      child_(GivenOrMade(std::move(child), plan, 0, state)),
      child_columns_(plan.children[0]->output.size()),
      types_(ColumnTypes(plan.children[0]->output)),
      blocks_(static_cast<size_t>(state.context->work_mem_bytes), state.context->temp_directory),
      rows_arena_(std::make_unique<Arena>(blocks_, kArenaBlockBytes)),
      output_(plan.output) {
  if (plan.range_key != nullptr) {
    range_key_ = AddColumn(*plan.range_key);
    if (plan.range_start != nullptr) range_start_ = AddColumn(*plan.range_start);
    if (plan.range_end != nullptr) range_end_ = AddColumn(*plan.range_end);
  }
  for (const WindowCall& call : plan.calls) AddCall(call);
  layout_ = std::make_unique<RowLayout>(types_, 0);
  partition_order_ = std::make_unique<RowComparator>(layout_.get(), PartitionKeys(plan));
  frame_ = std::make_unique<WindowFrame>(plan, layout_.get(), state, range_key_, range_start_,
                                         range_end_);
}

WindowAgg::~WindowAgg() = default;

size_t WindowAgg::AddColumn(const Expr& expr) {
  evaluated_.push_back(CompiledExpression::Compile(expr, state_));
  types_.push_back(expr.type);
  return types_.size() - 1;
}

void WindowAgg::AddCall(const WindowCall& call) {
  Call added;
  added.plan = &call;
  added.first_argument = types_.size();
  for (const Expr* arg : call.aggregate.args) AddColumn(*arg);
  added.argument_count = types_.size() - added.first_argument;
  if (call.aggregate.filter != nullptr)
    added.filter = static_cast<int>(AddColumn(*call.aggregate.filter));
  for (const Expr* arg : call.aggregate.args) added.arguments.emplace_back(arg->type);
  if (call.kind == WindowKind::kAggregate) {
    const ExecutorContext& context = *state_.context;
    added.state_arena = std::make_unique<Arena>(HeapBlocks(), kArenaBlockBytes);
    added.accumulator = MakeAccumulator(
        call.aggregate, {added.state_arena.get(), context.settings, context.temp_directory,
                         static_cast<size_t>(context.work_mem_bytes)});
    added.filter_values = std::make_unique<ColumnBuffer>(kBoolOid);
    added.result = std::make_unique<ColumnBuffer>(call.aggregate.result_type);
  }
  calls_.push_back(std::move(added));
}

// The child's next batch, with what the calls need of each row, into incoming_.
bool WindowAgg::FillIncoming() {
  incoming_.clear();
  incoming_at_ = 0;
  Batch input;
  if (!input_done_) child_->Next(&input);
  input_done_ = input_done_ || input.rows == 0;
  if (input_done_) return false;
  expression_arena_.Reset();
  incoming_arena_.Reset();
  std::vector<Column> columns(input.columns.begin(), input.columns.end());
  for (auto& expression : evaluated_)
    columns.push_back(expression->Evaluate(input, nullptr, input.rows, &expression_arena_));
  incoming_.resize(input.rows);
  layout_->Store(columns, nullptr, input.rows, &incoming_arena_, incoming_.data());
  return true;
}

void WindowAgg::TakeIncoming(size_t count) {
  for (size_t i = 0; i < count; i++) {
    const char* row = incoming_[incoming_at_ + i];
    size_t bytes = layout_->RowBytes(row);
    char* copy = static_cast<char*>(rows_arena_->Allocate(bytes, 8));
    std::memcpy(copy, row, bytes);
    layout_->Relocate(copy);
    rows_.push_back(copy);
  }
  incoming_at_ += count;
}

bool WindowAgg::ReadPartition() {
  rows_.clear();
  emitted_ = 0;
  rows_arena_ = nullptr;  // its blocks first, so that a file's space can be used again
  rows_arena_ = std::make_unique<Arena>(blocks_, kArenaBlockBytes);
  for (;;) {
    CheckForInterrupts();
    if (incoming_at_ == incoming_.size() && !FillIncoming()) break;
    size_t end = incoming_at_;
    const char* last = rows_.empty() ? incoming_[end] : rows_.back();
    while (end < incoming_.size() && partition_order_->Compare(last, incoming_[end]) == 0)
      last = incoming_[end++];
    bool complete = end < incoming_.size();
    TakeIncoming(end - incoming_at_);
    if (complete) break;
  }
  if (rows_.empty()) return false;
  StartPartition();
  return true;
}

void WindowAgg::StartPartition() {
  frame_->Start(rows_);
  for (Call& call : calls_) {
    if (call.accumulator == nullptr) continue;
    call.accumulator->Clear();
    call.state_arena->Reset();
    call.accumulator->Grow(1);
    call.covered.clear();
  }
  NodeStatistics& statistics = Statistics();
  statistics.memory_bytes_max = std::max<uint64_t>(
      statistics.memory_bytes_max, blocks_.heap_bytes() + rows_.capacity() * sizeof(const char*));
  statistics.spilled_bytes = std::max<uint64_t>(statistics.spilled_bytes, blocks_.file_bytes());
}

void WindowAgg::NextBatch(Batch* batch) {
  batch->rows = 0;
  if (emitted_ == rows_.size() && !ReadPartition()) return;
  output_arena_.Reset();
  size_t count = std::min(kBatchRows, rows_.size() - emitted_);
  for (size_t c = 0; c < child_columns_; c++)
    layout_->Load(rows_.data() + emitted_, count, c, &output_[c]);
  for (size_t i = 0; i < calls_.size(); i++) {
    ColumnBuffer& out = output_[child_columns_ + i];
    out.Clear();
    Compute(&calls_[i], emitted_, count, &out);
  }
  emitted_ += count;
  output_.Show(count, batch);
}

void WindowAgg::Compute(Call* call, size_t first, size_t count, ColumnBuffer* out) {
  switch (call->plan->kind) {
    case WindowKind::kAggregate:
      return Aggregate(call, first, count, out);
    case WindowKind::kNtile:
      return Ntile(*call, first, count, out);
    case WindowKind::kLag:
    case WindowKind::kLead:
      return LagOrLead(*call, first, count, out);
    case WindowKind::kFirstValue:
    case WindowKind::kLastValue:
    case WindowKind::kNthValue:
      return ValueOfFrame(*call, first, count, out);
    default:
      return Rank(call->plan->kind, first, count, out);
  }
}

void WindowAgg::Rank(WindowKind kind, size_t first, size_t count, ColumnBuffer* out) {
  auto* integers = out->column.Data<int64_t>();
  auto* fractions = out->column.Data<double>();
  auto rows = static_cast<double>(rows_.size());
  for (size_t i = 0; i < count; i++) {
    size_t row = first + i, group = frame_->GroupOf(row);
    switch (kind) {
      case WindowKind::kRowNumber:
        integers[i] = static_cast<int64_t>(row) + 1;
        break;
      case WindowKind::kRank:
        integers[i] = static_cast<int64_t>(frame_->GroupBegin(group)) + 1;
        break;
      case WindowKind::kDenseRank:
        integers[i] = static_cast<int64_t>(group) + 1;
        break;
      case WindowKind::kPercentRank:
        fractions[i] =
            rows_.size() <= 1 ? 0 : static_cast<double>(frame_->GroupBegin(group)) / (rows - 1);
        break;
      default:
        fractions[i] = static_cast<double>(frame_->GroupEnd(group)) / rows;
    }
  }
}

int64_t WindowAgg::IntegerAt(size_t column, size_t row) const {
  const char* slot = layout_->Slot(rows_[row], column);
  if (PhysicalOf(layout_->type(column)) == Physical::kInt8)
    return *reinterpret_cast<const int64_t*>(slot);
  return *reinterpret_cast<const int32_t*>(slot);
}

// The number of buckets is the first row's that is not NULL.
void WindowAgg::Ntile(const Call& call, size_t first, size_t count, ColumnBuffer* out) {
  size_t argument = call.first_argument, known = 0;
  while (known < rows_.size() && layout_->IsNull(rows_[known], argument)) known++;
  int64_t buckets = known < rows_.size() ? IntegerAt(argument, known) : 1;
  if (buckets <= 0)
    Throw(sqlstate::kInvalidArgumentForNtile, "argument of ntile must be greater than zero");
  size_t rows = rows_.size() - known;
  size_t size = rows / static_cast<size_t>(buckets), larger = rows % static_cast<size_t>(buckets);
  for (size_t i = 0; i < count; i++) {
    if (first + i < known) {
      out->Nulls()[i] = 1;
      continue;
    }
    size_t row = first + i - known, in_larger = larger * (size + 1);
    size_t bucket = row < in_larger ? row / (size + 1) : larger + (row - in_larger) / size;
    out->column.Data<int32_t>()[i] = static_cast<int32_t>(bucket) + 1;
  }
}

// lag(value [, offset [, default]])
void WindowAgg::LagOrLead(const Call& call, size_t first, size_t count, ColumnBuffer* out) {
  const char* from[kBatchRows];
  uint32_t outside[kBatchRows];
  size_t outside_count = 0, value = call.first_argument;
  for (size_t i = 0; i < count; i++) {
    from[i] = nullptr;
    int64_t offset = 1;
    if (call.argument_count > 1) {
      if (layout_->IsNull(rows_[first + i], value + 1)) continue;
      offset = IntegerAt(value + 1, first + i);
    }
    if (call.plan->kind == WindowKind::kLag) offset = -offset;
    int64_t row = static_cast<int64_t>(first + i) + offset;
    if (row < 0 || row >= static_cast<int64_t>(rows_.size()))
      outside[outside_count++] = static_cast<uint32_t>(i);
    else
      from[i] = rows_[static_cast<size_t>(row)];
  }
  layout_->Load(from, count, value, out);
  if (call.argument_count < 3 || outside_count == 0) return;
  for (size_t i = 0; i < outside_count; i++) from[outside[i]] = rows_[first + outside[i]];
  ColumnBuffer defaults(layout_->type(value + 2));
  layout_->Load(from, count, value + 2, &defaults);
  CopyRows(defaults.column, outside, outside_count, out);
}

// first_value, last_value, nth_value
void WindowAgg::ValueOfFrame(const Call& call, size_t first, size_t count, ColumnBuffer* out) {
  const char* from[kBatchRows];
  std::vector<RowRange> ranges;
  for (size_t i = 0; i < count; i++) {
    from[i] = nullptr;
    size_t nth = 0;
    if (call.plan->kind == WindowKind::kNthValue) {
      if (layout_->IsNull(rows_[first + i], call.first_argument + 1)) continue;
      int64_t n = IntegerAt(call.first_argument + 1, first + i);
      if (n <= 0)
        Throw(sqlstate::kInvalidArgumentForNthValue,
              "argument of nth_value must be greater than zero");
      nth = static_cast<size_t>(n) - 1;
    }
    frame_->Of(first + i, &ranges);
    if (ranges.empty()) continue;
    if (call.plan->kind == WindowKind::kLastValue) {
      from[i] = rows_[ranges.back().end - 1];
      continue;
    }
    for (const RowRange& range : ranges) {
      if (nth < range.end - range.begin) {
        from[i] = rows_[range.begin + nth];
        break;
      }
      nth -= range.end - range.begin;
    }
  }
  layout_->Load(from, count, call.first_argument, out);
}

// A frame that begins where the last one did and ends no earlier goes on with its state; another
// one is computed anew.
void WindowAgg::Aggregate(Call* call, size_t first, size_t count, ColumnBuffer* out) {
  std::vector<RowRange> ranges;
  bool have_result = false;
  Column
      result;  // copied: the accumulator's own value may lie in its state, which goes on changing
  for (size_t i = 0; i < count; i++) {
    frame_->Of(first + i, &ranges);
    bool same = ranges == call->covered;
    if (!same) {
      bool grows = call->covered.size() <= 1 && ranges.size() == 1 &&
                   (call->covered.empty() || (call->covered[0].begin == ranges[0].begin &&
                                              call->covered[0].end <= ranges[0].end));
      if (grows) {
        size_t from = call->covered.empty() ? ranges[0].begin : call->covered[0].end;
        Accumulate(call, {from, ranges[0].end});
      } else {
        CheckForInterrupts();
        call->accumulator->Clear();
        call->state_arena->Reset();
        call->accumulator->Grow(1);
        for (const RowRange& range : ranges) Accumulate(call, range);
      }
      call->covered = ranges;
    }
    if (!same || !have_result) {
      call->result->Clear();
      call->accumulator->Complete();
      call->accumulator->Finish(0, 1, call->result.get(), &output_arena_);
      result = CopyValue(call->result->column, 0, &output_arena_);
      have_result = true;
    }
    constexpr uint32_t kFirst = 0;
    AppendRows(result, &kFirst, 1, i, out);
  }
}

void WindowAgg::Accumulate(Call* call, const RowRange& range) {
  for (size_t begin = range.begin; begin < range.end; begin += kBatchRows) {
    size_t count = std::min(kBatchRows, range.end - begin);
    std::vector<Column> columns;
    for (size_t i = 0; i < call->argument_count; i++) {
      layout_->Load(rows_.data() + begin, count, call->first_argument + i, &call->arguments[i]);
      columns.push_back(call->arguments[i].column);
    }
    GroupedRows rows{nullptr, count, Zeros()};
    uint32_t kept[kBatchRows];
    if (call->filter >= 0) {
      layout_->Load(rows_.data() + begin, count, static_cast<size_t>(call->filter),
                    call->filter_values.get());
      const Column& filter = call->filter_values->column;
      size_t kept_count = 0;
      for (size_t row = 0; row < count; row++)
        if (!filter.IsNull(row) && filter.At<uint8_t>(row) != 0)
          kept[kept_count++] = static_cast<uint32_t>(row);
      rows = {kept, kept_count, Zeros()};
    }
    call->accumulator->Update(columns, rows);
  }
}

void WindowAgg::Rescan() {
  child_->Rescan();
  incoming_.clear();
  incoming_at_ = 0;
  input_done_ = false;
  rows_.clear();
  emitted_ = 0;
}

}  // namespace sluice
