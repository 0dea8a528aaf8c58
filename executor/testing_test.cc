#include "executor/testing.h"

#include <cstdlib>

#include "executor/column_buffer.h"

namespace sluice::testing {
namespace {

class SourceNode : public Node {
 public:
  SourceNode(const Plan& plan, ExecutionState& state, Rows rows, size_t batch_rows)
      : Node(plan, state), rows_(std::move(rows)), batch_rows_(batch_rows) {}
  void Rescan() override { at_ = 0; }

 protected:
  void NextBatch(Batch* batch) override {
    arena_ = std::make_unique<Arena>();
    buffer_ = std::make_unique<BatchBuffer>(plan_.output);
    size_t count = std::min(batch_rows_, rows_.size() - at_);
    for (size_t c = 0; c < plan_.output.size(); c++) {
      Oid type = plan_.output[c].type;
      ColumnBuffer& column = (*buffer_)[c];
      for (size_t i = 0; i < count; i++) {
        const std::optional<std::string>& text = rows_[at_ + i][c];
        if (!text) {
          column.Nulls()[i] = 1;
          continue;
        }
        std::string_view binary =
            ParseText(type, -1, *text, *state_.context->settings, arena_.get());
        DecodeBinaryValue(type, arena_->CopyString(binary), &column.column, i);
      }
    }
    at_ += count;
    buffer_->Show(count, batch);
  }

 private:
  Rows rows_;
  size_t batch_rows_;
  size_t at_ = 0;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<BatchBuffer> buffer_;
};

}  // namespace

Harness::Harness() {
  context.shared_arena = &arena;
  context.settings = &settings;
  context.temp_directory = "/tmp";
  statistics.reserve(64);
  state.statement = nullptr;
  state.context = &context;
  state.statistics = &statistics;
}

std::span<const OutputColumn> Harness::Columns(const std::vector<Oid>& types) {
  std::vector<OutputColumn> columns;
  for (Oid type : types) columns.push_back({"c", type, -1, kInvalidOid});
  return arena.CopyArray(columns);
}

std::span<const OutputColumn> Harness::Columns(std::initializer_list<Oid> types) {
  return Columns(std::vector<Oid>(types));
}

Expr* Harness::Make(ExprKind kind, Oid type, std::vector<const Expr*> args) {
  Expr* expr = arena.New<Expr>();
  expr->kind = kind;
  expr->type = type;
  expr->args = List(std::move(args));
  return expr;
}

const Expr* Harness::Input(int column, Oid type) {
  Expr* expr = Make(ExprKind::kColumn, type, {});
  expr->rel = kInput;
  expr->column = column;
  return expr;
}

const Expr* Harness::Inner(int column, Oid type) {
  Expr* expr = Make(ExprKind::kColumn, type, {});
  expr->rel = kInner;
  expr->column = column;
  return expr;
}

const Expr* Harness::Constant(Oid type, std::optional<std::string> text) {
  Expr* expr = Make(ExprKind::kConst, type, {});
  expr->is_null = !text;
  if (text) expr->value = arena.CopyString(ParseText(type, -1, *text, settings, &arena));
  return expr;
}

const Expr* Harness::Call(Oid function, Oid type, std::vector<const Expr*> args, Oid collation) {
  Expr* expr = Make(ExprKind::kCall, type, std::move(args));
  expr->function = function;
  expr->input_collation = collation;
  return expr;
}

std::span<const Expr* const> Harness::List(std::vector<const Expr*> exprs) {
  return arena.CopyArray(exprs);
}

std::span<const SortKey> Harness::Keys(std::vector<SortKey> keys) {
  return arena.CopyArray(keys);
}

const Plan* Harness::SourcePlan(const std::vector<Oid>& types) {
  return NewPlan<Plan>(PlanKind::kResult, types, {});
}

std::unique_ptr<Node> Harness::Source(const std::vector<Oid>& types, const Rows& rows,
                                      size_t batch_rows) {
  return std::make_unique<SourceNode>(*SourcePlan(types), state, rows, batch_rows);
}

Rows Harness::Run(Node& node) {
  Rows rows;
  Batch batch;
  std::string text;
  for (node.Next(&batch); batch.rows > 0; node.Next(&batch)) {
    if (batch.rows > kBatchRows) std::abort();
    for (size_t i = 0; i < batch.rows; i++) {
      Row row;
      for (const Column& column : batch.columns) {
        if (column.IsNull(i)) {
          row.push_back(kNull);
          continue;
        }
        text.clear();
        AppendText(column, i, settings, &text);
        row.push_back(text);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Rows Sorted(Rows rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::string Text(const Rows& rows) {
  std::string text;
  for (const Row& row : rows) {
    for (const auto& value : row) text += value.value_or("NULL") + "|";
    text += "\n";
  }
  return text;
}

uint64_t RandomSeed() {
  if (const char* seed = std::getenv("SLUICE_TEST_SEED")) return std::strtoull(seed, nullptr, 10);
  return std::random_device{}();
}

}  // namespace sluice::testing
