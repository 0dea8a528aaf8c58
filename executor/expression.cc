#include "executor/expression.h"

#include "common/error.h"
#include "executor/expression_internal.h"
#include "types/codec.h"
#include "types/collation.h"

namespace sluice {
namespace {

class ConstantStep : public Step {
 public:
  explicit ConstantStep(const Expr& expr) {
    column_ = MakeConstantColumn(expr.type, expr.value, expr.is_null, &arena_);
  }
  const Column& Evaluate(const StepInput&) override { return column_; }

 private:
  Arena arena_{HeapBlocks(), 256};
  Column column_;
};

class ColumnStep : public Step {
 public:
  explicit ColumnStep(const Expr& expr)
      : inner_(expr.rel == kInner), column_(static_cast<size_t>(expr.column)) {}
  const Column& Evaluate(const StepInput& input) override {
    const Batch* batch = inner_ ? input.inner : input.outer;
    SLUICE_ASSERT(batch != nullptr && column_ < batch->columns.size());
    return batch->columns[column_];
  }

 private:
  bool inner_;
  size_t column_;
};

// $1 … and the results of init plans. Looked up when evaluated: an init plan may run after
// compilation.
class ParameterStep : public Step {
 public:
  ParameterStep(std::span<const Column> params, const Expr& expr)
      : params_(params), param_(static_cast<size_t>(expr.param)) {}
  const Column& Evaluate(const StepInput&) override {
    SLUICE_ASSERT(param_ < params_.size());
    column_ = params_[param_];
    column_.mask = 0;
    return column_;
  }

 private:
  std::span<const Column> params_;
  size_t param_;
  Column column_;
};

class CallStep : public Step {
 public:
  CallStep(const Expr& expr, ExecutionState& state)
      : kernel_(KernelOrRefuse(expr.function)),
        args_(CompileSteps(expr.args, state)),
        columns_(args_.size()),
        collation_(expr.input_collation == kInvalidOid ? nullptr
                                                       : FindCollator(expr.input_collation)),
        settings_(state.context->settings),
        out_(expr.type) {}

  const Column& Evaluate(const StepInput& input) override {
    for (size_t i = 0; i < args_.size(); i++) columns_[i] = &args_[i]->Evaluate(input);
    EvalContext context{input.arena, settings_};
    CallKernel(kernel_, columns_, input, collation_, &context, &out_);
    return out_.column;
  }

 private:
  const Kernel& kernel_;
  std::vector<StepPtr> args_;
  std::vector<const Column*> columns_;
  const Collator* collation_;
  const SessionSettings* settings_;
  ColumnBuffer out_;
};

// The same bytes under another type.
class RelabelStep : public Step {
 public:
  RelabelStep(const Expr& expr, ExecutionState& state)
      : type_(expr.type), arg_(CompileStep(*expr.args[0], state)) {}
  const Column& Evaluate(const StepInput& input) override {
    column_ = arg_->Evaluate(input);
    if (column_.physical != PhysicalOf(type_)) return Convert(input);
    column_.type = type_;
    column_.physical = PhysicalOf(type_);
    return column_;
  }

 private:
  // oid ↔ regnamespace and those of its kin that are kept as they are on the wire.
  const Column& Convert(const StepInput& input) {
    if (buffer_ == nullptr) buffer_ = std::make_unique<ColumnBuffer>(type_);
    buffer_->Clear();
    std::string wire;
    for (size_t i = 0; i < input.count; i++) {
      size_t row = input.Row(i);
      if (column_.IsNull(row)) {
        buffer_->Nulls()[row] = 1;
        continue;
      }
      wire.clear();
      AppendBinary(column_, row, &wire);
      DecodeBinaryValue(type_, input.arena->CopyString(wire), &buffer_->column, row);
    }
    return buffer_->column;
  }

  Oid type_;
  StepPtr arg_;
  Column column_;
  std::unique_ptr<ColumnBuffer> buffer_;
};

// Output function of the argument's type, then the input function of the target.
class CoerceViaIoStep : public Step {
 public:
  CoerceViaIoStep(const Expr& expr, ExecutionState& state)
      : type_(expr.type),
        typmod_(expr.typmod),
        arg_(CompileStep(*expr.args[0], state)),
        settings_(state.context->settings),
        out_(expr.type) {}

  const Column& Evaluate(const StepInput& input) override {
    const Column& from = arg_->Evaluate(input);
    out_.Clear();
    if (input.count == 0) return out_.column;
    if (from.constant()) {
      ConvertRow(from, 0, input.arena);
      out_.column.mask = 0;
      return out_.column;
    }
    for (size_t i = 0; i < input.count; i++) ConvertRow(from, input.Row(i), input.arena);
    return out_.column;
  }

 private:
  void ConvertRow(const Column& from, size_t row, Arena* arena) {
    if (from.IsNull(row)) {
      out_.Nulls()[row] = 1;
      return;
    }
    text_.clear();
    AppendText(from, row, *settings_, &text_);
    std::string_view binary =
        ParseText(type_, typmod_, arena->CopyString(text_), *settings_, arena);
    DecodeBinaryValue(type_, binary, &out_.column, row);
  }

  Oid type_;
  int32_t typmod_;
  StepPtr arg_;
  const SessionSettings* settings_;
  std::string text_;
  ColumnBuffer out_;
};

// CURRENT_DATE and the like: the transaction's start, cast by the kernels that SQL would use.
class SqlValueStep : public Step {
 public:
  SqlValueStep(const Expr& expr, ExecutionState& state)
      : settings_(state.context->settings),
        type_(expr.type),
        typmod_(expr.typmod),
        out_(expr.type) {
    constexpr Oid kTimestamptzToDate = 1178, kTimestamptzToTime = 2019,
                  kTimestamptzToTimestamp = 2027;
    switch (type_) {
      case kTimestamptzOid:
        break;
      case kDateOid:
        cast_ = &KernelOrRefuse(kTimestamptzToDate);
        break;
      case kTimeOid:
        cast_ = &KernelOrRefuse(kTimestamptzToTime);
        break;
      case kTimestampOid:
        cast_ = &KernelOrRefuse(kTimestamptzToTimestamp);
        break;
      default:
        Refuse("SQL value function {} is not supported here", expr.param);
    }
  }

  const Column& Evaluate(const StepInput& input) override {
    int64_t now = RoundToPrecision(settings_->now);
    Column instant{kTimestamptzOid, Physical::kInt8, 0, nullptr, &now};
    const Column* args[] = {&instant};
    EvalContext context{input.arena, settings_};
    out_.Clear();
    out_.column.mask = 0;
    if (cast_ == nullptr) {
      *out_.column.Data<int64_t>() = now;
    } else {
      out_.Nulls();
      cast_->fn(KernelCall{args, &out_.column, nullptr, 1, nullptr, &context});
    }
    return out_.column;
  }

 private:
  // CURRENT_TIMESTAMP(p): p is the typmod. Halves round away from zero, as Postgres has it.
  int64_t RoundToPrecision(int64_t now) const {
    if (type_ == kDateOid || typmod_ < 0 || typmod_ >= 6) return now;
    int64_t unit = 1;
    for (int i = typmod_; i < 6; i++) unit *= 10;
    int64_t half = unit / 2;
    return now >= 0 ? (now + half) / unit * unit : -((-now + half) / unit * unit);
  }

  const SessionSettings* settings_;
  Oid type_;
  int32_t typmod_;
  const Kernel* cast_ = nullptr;
  ColumnBuffer out_;
};

class StepExpression : public CompiledExpression {
 public:
  explicit StepExpression(StepPtr step) : step_(std::move(step)) {}
  const Column& Evaluate(const Batch& outer, const Batch* inner, size_t rows, Arena* arena,
                         const uint32_t* rows_list) override {
    SLUICE_ASSERT(rows <= kBatchRows);
    return step_->Evaluate(StepInput{&outer, inner, rows_list, rows, arena});
  }

 private:
  StepPtr step_;
};

// Shows no null map where none of its bytes is set: what reads it then takes its fast path.
void DropEmptyNulls(ColumnBuffer* out, size_t count, const uint32_t* rows) {
  if (out->column.nulls == nullptr) return;
  size_t checked = rows == nullptr ? count : kBatchRows;
  if (std::memchr(out->column.nulls, 1, checked) == nullptr) out->column.nulls = nullptr;
}

}  // namespace

const Kernel& KernelOrRefuse(Oid function) {
  const Kernel* kernel = FindKernel(function);
  if (kernel == nullptr) Refuse("function with OID {} is not supported here", function);
  return *kernel;
}

namespace {

// Kernels with arguments whose function is volatile: nextval('s') is another value for each row.
bool ActsEachTime(Oid function) {
  switch (function) {
    case 1574:  // nextval
    case 1575:  // currval
    case 1576:  // setval
    case 1765:
    case 2078:  // set_config
    case 2096:  // pg_terminate_backend
    case 2171:  // pg_cancel_backend
    case 2626:  // pg_sleep
      return true;
    default:
      return false;
  }
}

}  // namespace

void CallKernel(const Kernel& kernel, std::span<const Column* const> args, const StepInput& input,
                const Collator* collation, EvalContext* context, ColumnBuffer* out) {
  out->Clear();
  if (input.count == 0) return;
  bool constant = !args.empty();  // a function of nothing may be volatile
  bool nulls = false;
  for (const Column* arg : args) {
    constant &= arg->constant();
    nulls |= arg->nulls != nullptr;
  }
  constant = constant && !ActsEachTime(kernel.function);
  const uint32_t* rows = constant ? nullptr : input.rows;
  size_t count = constant ? 1 : input.count;
  uint8_t* null_map = out->Nulls();
  if (constant) out->column.mask = 0;

  RowList not_null;
  if (kernel.strict && nulls) {
    for (size_t i = 0; i < count; i++) {
      size_t row = rows == nullptr ? i : rows[i];
      bool is_null = false;
      for (const Column* arg : args) is_null |= arg->IsNull(row);
      null_map[row] = is_null;
      if (!is_null) not_null.Add(row);
    }
    if (not_null.count < count) {
      rows = not_null.rows;
      count = not_null.count;
    }
  }
  if (count > 0) kernel.fn(KernelCall{args, &out->column, rows, count, collation, context});
  DropEmptyNulls(out, input.count, constant ? nullptr : input.rows);
}

StepPtr CompileStep(const Expr& expr, ExecutionState& state) {
  switch (expr.kind) {
    case ExprKind::kConst:
      return std::make_unique<ConstantStep>(expr);
    case ExprKind::kColumn:
      return std::make_unique<ColumnStep>(expr);
    case ExprKind::kParam:
      return std::make_unique<ParameterStep>(state.context->params, expr);
    case ExprKind::kExecParam:
      return std::make_unique<ParameterStep>(
          std::span<const Column>(state.exec_params.data(), state.exec_params.size()), expr);
    case ExprKind::kCall:
      return std::make_unique<CallStep>(expr, state);
    case ExprKind::kRelabel:
    case ExprKind::kCollate:
      return std::make_unique<RelabelStep>(expr, state);
    case ExprKind::kCoerceViaIo:
      return std::make_unique<CoerceViaIoStep>(expr, state);
    case ExprKind::kSqlValue:
      return std::make_unique<SqlValueStep>(expr, state);
    case ExprKind::kAnyOf:
    case ExprKind::kAllOf:
    case ExprKind::kArray:
    case ExprKind::kArrayCoerce:
      return CompileArrayStep(expr, state);
    case ExprKind::kSubPlan:
      return CompileSubPlanStep(expr, state);
    case ExprKind::kGrouping:
      Refuse("GROUPING is not supported here");
    case ExprKind::kWindow:
      Refuse("window functions are not supported here");
    case ExprKind::kRow:
      Refuse("row values are not supported here");
    case ExprKind::kSubquery:
      Refuse("this subquery is not supported here");
    case ExprKind::kAggregate:
      Throw(sqlstate::kInternalError, "aggregate outside of an Aggregate node");
    default:
      return CompileLogicStep(expr, state);
  }
}

std::vector<StepPtr> CompileSteps(std::span<const Expr* const> exprs, ExecutionState& state) {
  std::vector<StepPtr> steps;
  steps.reserve(exprs.size());
  for (const Expr* expr : exprs) steps.push_back(CompileStep(*expr, state));
  return steps;
}

std::unique_ptr<CompiledExpression> CompiledExpression::Compile(const Expr& expr,
                                                                ExecutionState& state) {
  return std::make_unique<StepExpression>(CompileStep(expr, state));
}

size_t SelectRows(CompiledExpression& condition, const Batch& outer, const Batch* inner,
                  size_t rows, Arena* arena, uint32_t* selected) {
  if (rows == 0) return 0;
  const Column& truth = condition.Evaluate(outer, inner, rows, arena);
  size_t count = 0;
  if (truth.constant()) {
    if (truth.IsNull(0) || truth.At<uint8_t>(0) == 0) return 0;
    for (size_t i = 0; i < rows; i++) selected[count++] = static_cast<uint32_t>(i);
    return count;
  }
  const uint8_t* values = truth.Data<uint8_t>();
  if (truth.nulls == nullptr) {
    for (size_t i = 0; i < rows; i++) {
      selected[count] = static_cast<uint32_t>(i);
      count += values[i] != 0;
    }
  } else {
    for (size_t i = 0; i < rows; i++) {
      selected[count] = static_cast<uint32_t>(i);
      count += (values[i] != 0) & (truth.nulls[i] == 0);
    }
  }
  return count;
}

Column EvaluateConstant(const Expr& expr, ExecutionState& state, Arena* arena) {
  Batch nothing;
  StepPtr step = CompileStep(expr, state);
  Arena scratch;
  const Column& value = step->Evaluate(StepInput{&nothing, nullptr, nullptr, 1, &scratch});
  return CopyValue(value, 0, arena);  // the step's buffers die with it
}

}  // namespace sluice
