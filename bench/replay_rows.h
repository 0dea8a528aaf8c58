// For benchmarks of executor nodes: rows as a shard sends them, in memory, decoded again and again.
#pragma once

#include <optional>

#include "common/bytes.h"
#include "executor/node.h"
#include "executor/row_decoder.h"
#include "types/codec.h"

namespace sluice {

// One statement's surroundings, and an arena to build its plan in.
struct Surroundings {
  Surroundings() {
    context.shared_arena = &arena;
    context.settings = &settings;
    context.temp_directory = "/tmp";
    context.work_mem_bytes = 256 << 20;
    state.statement = nullptr;
    state.context = &context;
    statistics.resize(8);
    state.statistics = &statistics;
  }
  std::span<const OutputColumn> Columns(const std::vector<Oid>& types) {
    std::vector<OutputColumn> columns;
    for (Oid type : types) columns.push_back({"c", type, -1, kInvalidOid});
    return arena.CopyArray(columns);
  }
  const Expr* Input(int column, Oid type, int rel = kInput) {
    Expr* expr = arena.New<Expr>();
    expr->kind = ExprKind::kColumn;
    expr->type = type;
    expr->rel = rel;
    expr->column = column;
    return expr;
  }
  std::span<const Expr* const> List(const std::vector<const Expr*>& exprs) {
    return arena.CopyArray(exprs);
  }
  ForeignScanPlan* Scan(const std::vector<Oid>& types) {
    auto* scan = arena.New<ForeignScanPlan>();
    scan->kind = PlanKind::kForeignScan;
    scan->output = Columns(types);
    std::span<bool> binary = arena.NewArray<bool>(types.size());
    std::fill(binary.begin(), binary.end(), true);
    scan->binary = binary;
    return scan;
  }

  Arena arena;
  SessionSettings settings;
  ExecutorContext context;
  ExecutionState state;
  std::vector<NodeStatistics> statistics;
};

// DataRow messages, one after the other.
class Messages {
 public:
  void Start(int16_t columns) {
    head_ = bytes_.size();
    bytes_ += 'D';
    bytes_.append(4, 0);
    Append(columns);
  }
  void Value(std::string_view binary) {
    Append(static_cast<int32_t>(binary.size()));
    bytes_ += binary;
  }
  template <typename T>
  void Integer(T value) {
    Append(static_cast<int32_t>(sizeof value));
    Append(value);
  }
  void Numeric(size_t cents) {
    Arena arena;
    SessionSettings settings;
    Value(ParseText(kNumericOid, -1, fmt::format("{}.{:02}", cents / 100, cents % 100), settings,
                    &arena));
  }
  void End() {
    StoreBig(bytes_.data() + head_ + 1, static_cast<int32_t>(bytes_.size() - head_ - 1));
  }
  std::string_view bytes() const { return bytes_; }

 private:
  template <typename T>
  void Append(T value) {
    char raw[sizeof value];
    StoreBig(raw, value);
    bytes_.append(raw, sizeof raw);
  }
  std::string bytes_;
  size_t head_ = 0;
};

class ReplayNode : public Node {
 public:
  ReplayNode(const ForeignScanPlan& plan, ExecutionState& state, std::string_view bytes)
      : Node(plan, state),
        scan_(plan),
        decoder_(plan.output, *state.context->settings),
        bytes_(bytes),
        at_(bytes.data()) {}
  void Rescan() override { at_ = bytes_.data(); }

 protected:
  void NextBatch(Batch* batch) override {
    batch->rows = 0;
    const char* end = bytes_.data() + bytes_.size();
    if (at_ < end) decoder_.Decode(scan_, &at_, end, batch);
  }

 private:
  const ForeignScanPlan& scan_;
  RowDecoder decoder_;
  std::string_view bytes_;
  const char* at_;
};

}  // namespace sluice
