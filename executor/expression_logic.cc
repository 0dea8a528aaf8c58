// AND, OR, NOT, IS …, CASE, COALESCE, GREATEST, LEAST, NULLIF, DISTINCT FROM.
#include "common/error.h"
#include "executor/expression_internal.h"
#include "types/codec.h"
#include "types/collation.h"
#include "types/compare.h"

namespace sluice {
namespace {

// AND and OR in three-valued logic. Arguments are evaluated in order, each only for the rows that
// those before it left undecided (for AND: not false). `decisive` is the value that decides: false
// for AND.
class AndOrStep : public Step {
 public:
  AndOrStep(const Expr& expr, ExecutionState& state)
      : decisive_(expr.kind == ExprKind::kOr),
        args_(CompileSteps(expr.args, state)),
        out_(kBoolOid) {}

  const Column& Evaluate(const StepInput& input) override {
    out_.Clear();
    uint8_t* values = out_.column.Data<uint8_t>();
    uint8_t* nulls = nullptr;
    for (size_t i = 0; i < input.count; i++) values[input.Row(i)] = !decisive_;
    const uint32_t* rows = input.rows;
    size_t count = input.count;
    for (size_t a = 0; a < args_.size() && count > 0; a++) {
      const Column& arg = args_[a]->Evaluate(input.With(rows, count));
      if (arg.nulls != nullptr && nulls == nullptr) nulls = out_.Nulls();
      size_t kept = 0;
      for (size_t i = 0; i < count; i++) {
        uint32_t row = rows == nullptr ? static_cast<uint32_t>(i) : rows[i];
        if (arg.IsNull(row)) {
          nulls[row] = 1;  // NOLINT(clang-analyzer-core.NullDereference): Nulls() allocates
        } else if ((arg.At<uint8_t>(row) != 0) == decisive_) {
          values[row] = decisive_;
          if (nulls != nullptr) nulls[row] = 0;
          continue;
        }
        open_.rows[kept++] = row;  // may be the list being read: kept <= i
      }
      rows = open_.rows;
      count = kept;
    }
    return out_.column;
  }

 private:
  bool decisive_;
  std::vector<StepPtr> args_;
  RowList open_;
  ColumnBuffer out_;
};

// NOT and the IS … tests: a function of (is null, is true) alone, so a table of three answers does.
class TruthStep : public Step {
 public:
  TruthStep(const Expr& expr, ExecutionState& state)
      : arg_(CompileStep(*expr.args[0], state)), out_(kBoolOid) {
    switch (expr.kind) {
      case ExprKind::kNot:
        null_stays_null_ = true;
        if_false_ = 1;
        break;
      case ExprKind::kIsTrue:
        if_true_ = 1;
        break;
      case ExprKind::kIsNotTrue:
        if_false_ = if_null_ = 1;
        break;
      case ExprKind::kIsFalse:
        if_false_ = 1;
        break;
      case ExprKind::kIsNotFalse:
        if_true_ = if_null_ = 1;
        break;
      case ExprKind::kIsUnknown:
        if_null_ = 1;
        break;
      default:
        if_true_ = if_false_ = 1;
        break;  // IS NOT UNKNOWN
    }
  }

  const Column& Evaluate(const StepInput& input) override {
    const Column& arg = arg_->Evaluate(input);
    out_.Clear();
    uint8_t* values = out_.column.Data<uint8_t>();
    bool nulls_stay = null_stays_null_ && arg.nulls != nullptr && input.count > 0;
    for (size_t i = 0; i < input.count; i++) {
      size_t row = input.Row(i);
      if (arg.IsNull(row)) {
        values[row] = if_null_;
        if (nulls_stay) out_.Nulls()[row] = 1;
      } else {
        values[row] = arg.At<uint8_t>(row) != 0 ? if_true_ : if_false_;
      }
    }
    return out_.column;
  }

 private:
  bool null_stays_null_ = false;
  uint8_t if_true_ = 0, if_false_ = 0, if_null_ = 0;
  StepPtr arg_;
  ColumnBuffer out_;
};

class IsNullStep : public Step {
 public:
  IsNullStep(const Expr& expr, ExecutionState& state)
      : if_null_(expr.kind == ExprKind::kIsNull),
        arg_(CompileStep(*expr.args[0], state)),
        out_(kBoolOid) {}
  const Column& Evaluate(const StepInput& input) override {
    const Column& arg = arg_->Evaluate(input);
    out_.Clear();
    uint8_t* values = out_.column.Data<uint8_t>();
    for (size_t i = 0; i < input.count; i++) {
      size_t row = input.Row(i);
      values[row] = arg.IsNull(row) == if_null_;
    }
    return out_.column;
  }

 private:
  bool if_null_;
  StepPtr arg_;
  ColumnBuffer out_;
};

class CaseStep : public Step {
 public:
  CaseStep(const Expr& expr, ExecutionState& state)
      : args_(CompileSteps(expr.args, state)), out_(expr.type) {
    SLUICE_ASSERT(args_.size() % 2 == 1);
  }

  const Column& Evaluate(const StepInput& input) override {
    out_.Clear();
    const uint32_t* rows = input.rows;
    size_t count = input.count;
    for (size_t a = 0; a + 1 < args_.size() && count > 0; a += 2) {
      const Column& when = args_[a]->Evaluate(input.With(rows, count));
      taken_.count = 0;
      size_t kept = 0;
      for (size_t i = 0; i < count; i++) {
        uint32_t row = rows == nullptr ? static_cast<uint32_t>(i) : rows[i];
        if (!when.IsNull(row) && when.At<uint8_t>(row) != 0) {
          taken_.Add(row);
        } else {
          open_.rows[kept++] = row;
        }
      }
      rows = open_.rows;
      count = kept;
      if (taken_.count > 0) Take(*args_[a + 1], input.With(taken_.rows, taken_.count));
    }
    if (count > 0) Take(*args_.back(), input.With(rows, count));
    return out_.column;
  }

 private:
  void Take(Step& step, const StepInput& input) {
    CopyRows(step.Evaluate(input), input.rows, input.count, &out_);
  }

  std::vector<StepPtr> args_;
  RowList open_, taken_;
  ColumnBuffer out_;
};

class CoalesceStep : public Step {
 public:
  CoalesceStep(const Expr& expr, ExecutionState& state)
      : args_(CompileSteps(expr.args, state)), out_(expr.type) {}

  const Column& Evaluate(const StepInput& input) override {
    out_.Clear();
    const uint32_t* rows = input.rows;
    size_t count = input.count;
    for (size_t a = 0; a < args_.size() && count > 0; a++) {
      const Column& arg = args_[a]->Evaluate(input.With(rows, count));
      CopyRows(arg, rows, count, &out_);
      size_t kept = 0;
      for (size_t i = 0; i < count; i++) {
        uint32_t row = rows == nullptr ? static_cast<uint32_t>(i) : rows[i];
        if (arg.IsNull(row)) open_.rows[kept++] = row;
      }
      rows = open_.rows;
      count = kept;
    }
    return out_.column;
  }

 private:
  std::vector<StepPtr> args_;
  RowList open_;
  ColumnBuffer out_;
};

// GREATEST and LEAST ignore NULLs; NULL only if all are.
class ExtremeStep : public Step {
 public:
  ExtremeStep(const Expr& expr, ExecutionState& state)
      : sign_(expr.kind == ExprKind::kGreatest ? 1 : -1),
        compare_(FindCompare(expr.type)),
        collation_(expr.input_collation == kInvalidOid ? nullptr
                                                       : FindCollator(expr.input_collation)),
        args_(CompileSteps(expr.args, state)),
        out_(expr.type) {
    if (compare_ == nullptr)
      Refuse("comparing values of type OID {} is not supported here", expr.type);
  }

  const Column& Evaluate(const StepInput& input) override {
    out_.Clear();
    if (input.count == 0) return out_.column;
    CopyRows(args_[0]->Evaluate(input), input.rows, input.count, &out_);
    for (size_t a = 1; a < args_.size(); a++) {
      const Column& arg = args_[a]->Evaluate(input);
      better_.count = 0;
      for (size_t i = 0; i < input.count; i++) {
        size_t row = input.Row(i);
        if (arg.IsNull(row)) continue;
        if (out_.column.IsNull(row) ||
            compare_(arg, row, out_.column, row, collation_) * sign_ > 0) {
          better_.Add(row);
        }
      }
      CopyRows(arg, better_.rows, better_.count, &out_);
    }
    return out_.column;
  }

 private:
  int sign_;
  CompareFn compare_;
  const Collator* collation_;
  std::vector<StepPtr> args_;
  RowList better_;
  ColumnBuffer out_;
};

// IS [NOT] DISTINCT FROM and NULLIF: an equality that is only asked where neither side is NULL.
class EqualityStep : public Step {
 public:
  EqualityStep(const Expr& expr, ExecutionState& state)
      : kind_(expr.kind),
        equal_(KernelOrRefuse(expr.function)),
        collation_(expr.input_collation == kInvalidOid ? nullptr
                                                       : FindCollator(expr.input_collation)),
        settings_(state.context->settings),
        args_(CompileSteps(expr.args, state)),
        equals_(kBoolOid),
        out_(expr.type) {
    SLUICE_ASSERT(args_.size() == 2);
  }

  const Column& Evaluate(const StepInput& input) override {
    const Column& left = args_[0]->Evaluate(input);
    const Column& right = args_[1]->Evaluate(input);
    out_.Clear();
    both_.count = 0;
    for (size_t i = 0; i < input.count; i++) {
      size_t row = input.Row(i);
      if (!left.IsNull(row) && !right.IsNull(row)) both_.Add(row);
    }
    const Column* columns[] = {&left, &right};
    EvalContext context{input.arena, settings_};
    CallKernel(equal_, columns, input.With(both_.rows, both_.count), collation_, &context,
               &equals_);
    if (kind_ == ExprKind::kNullIf) {
      CopyRows(left, input.rows, input.count, &out_);
      for (size_t i = 0; i < both_.count; i++) {
        if (Equal(both_.rows[i])) out_.Nulls()[both_.rows[i]] = 1;
      }
      return out_.column;
    }
    uint8_t if_equal = kind_ == ExprKind::kIsNotDistinct;
    uint8_t* values = out_.column.Data<uint8_t>();
    for (size_t i = 0; i < input.count; i++) {
      size_t row = input.Row(i);
      values[row] = (left.IsNull(row) && right.IsNull(row)) == (if_equal != 0);
    }
    for (size_t i = 0; i < both_.count; i++) {
      values[both_.rows[i]] = Equal(both_.rows[i]) ? if_equal : !if_equal;
    }
    return out_.column;
  }

 private:
  bool Equal(size_t row) const {
    return !equals_.column.IsNull(row) && equals_.column.At<uint8_t>(row) != 0;
  }

  ExprKind kind_;
  const Kernel& equal_;
  const Collator* collation_;
  const SessionSettings* settings_;
  std::vector<StepPtr> args_;
  RowList both_;
  ColumnBuffer equals_, out_;
};

}  // namespace

StepPtr CompileLogicStep(const Expr& expr, ExecutionState& state) {
  switch (expr.kind) {
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return std::make_unique<AndOrStep>(expr, state);
    case ExprKind::kNot:
    case ExprKind::kIsTrue:
    case ExprKind::kIsNotTrue:
    case ExprKind::kIsFalse:
    case ExprKind::kIsNotFalse:
    case ExprKind::kIsUnknown:
    case ExprKind::kIsNotUnknown:
      return std::make_unique<TruthStep>(expr, state);
    case ExprKind::kIsNull:
    case ExprKind::kIsNotNull:
      return std::make_unique<IsNullStep>(expr, state);
    case ExprKind::kCase:
      return std::make_unique<CaseStep>(expr, state);
    case ExprKind::kCoalesce:
      return std::make_unique<CoalesceStep>(expr, state);
    case ExprKind::kGreatest:
    case ExprKind::kLeast:
      return std::make_unique<ExtremeStep>(expr, state);
    case ExprKind::kIsDistinct:
    case ExprKind::kIsNotDistinct:
    case ExprKind::kNullIf:
      return std::make_unique<EqualityStep>(expr, state);
    default:
      Refuse("expression kind {} is not supported here", static_cast<int>(expr.kind));
  }
}

}  // namespace sluice
