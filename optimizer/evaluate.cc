#include "optimizer/evaluate.h"

#include "catalog/builtin.h"
#include "common/bytes.h"
#include "common/error.h"
#include "optimizer/expr_util.h"
#include "types/codec.h"
#include "types/compare.h"
#include "types/kernel.h"

namespace sluice {
namespace {

// pg_proc oids that have one value in a transaction or statement.
constexpr Oid kNowProc = 1299, kTransactionTimestampProc = 2647, kStatementTimestampProc = 2648;
constexpr Oid kTimestamptzToDateProc = 1178, kTimestamptzToTimestampProc = 2027;
constexpr Oid kTimestamptzScaleProc = 1967, kTimestampScaleProc = 1961;
constexpr Oid kTimestamptzToTimeProc = 2019, kTimeScaleProc = 1968;
// Postgres's SQLValueFunctionOp, as Expr::param has it.
constexpr int kCurrentDate = 0, kCurrentTimestamp = 3, kCurrentTimestampN = 4, kLocalTime = 5,
              kLocalTimeN = 6, kLocalTimestamp = 7, kLocalTimestampN = 8;

class Evaluator {
 public:
  explicit Evaluator(const EvaluationInput& input) : input_(input), arena_(input.arena) {}

  std::optional<Value> Evaluate(const Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kConst:
        return Value{expr.is_null, expr.value};
      case ExprKind::kParam:
        return Param(expr);
      case ExprKind::kColumn:
        if (expr.levels_up != 0 || !input_.column) return std::nullopt;
        return input_.column(expr);
      case ExprKind::kCall:
        return Call(expr);
      case ExprKind::kSqlValue:
        return SqlValue(expr);
      case ExprKind::kAnd:
        return AndOr(expr, false);
      case ExprKind::kOr:
        return AndOr(expr, true);
      case ExprKind::kNot: {
        auto arg = Evaluate(*expr.args[0]);
        if (!arg || arg->is_null) return arg;
        return Bool(!IsTrue(*arg));
      }
      case ExprKind::kIsNull:
      case ExprKind::kIsNotNull:
      case ExprKind::kIsTrue:
      case ExprKind::kIsNotTrue:
      case ExprKind::kIsFalse:
      case ExprKind::kIsNotFalse:
      case ExprKind::kIsUnknown:
      case ExprKind::kIsNotUnknown:
        return Test(expr);
      case ExprKind::kCase:
        return Case(expr);
      case ExprKind::kCoalesce:
        for (const Expr* arg : expr.args) {
          auto value = Evaluate(*arg);
          if (!value || !value->is_null) return value;
        }
        return Value{};
      case ExprKind::kRelabel:
        // Only between types whose values are kept alike.
        if (HasBinaryCodec(expr.type) != HasBinaryCodec(expr.args[0]->type)) return std::nullopt;
        return Evaluate(*expr.args[0]);
      case ExprKind::kCollate:
        return Evaluate(*expr.args[0]);
      case ExprKind::kCoerceViaIo:
        return CoerceViaIo(expr);
      default:
        return std::nullopt;
    }
  }

 private:
  static bool IsTrue(const Value& value) { return !value.is_null && value.bytes[0] != 0; }
  Value Bool(bool value) {
    char byte = value ? 1 : 0;
    return {false, arena_->CopyString(std::string_view(&byte, 1))};
  }

  std::optional<Value> Param(const Expr& expr) {
    if (static_cast<size_t>(expr.param) >= input_.params.size()) return std::nullopt;
    const PlanRequest::Param& param = input_.params[expr.param];
    if (param.type != expr.type) return std::nullopt;
    return Value{param.is_null, param.value};
  }

  Value Timestamp(int64_t microseconds) {
    char bytes[8];
    StoreBig(bytes, microseconds);
    return {false, arena_->CopyString(std::string_view(bytes, 8))};
  }

  std::optional<Value> SqlValue(const Expr& expr) {
    Value now = Timestamp(input_.settings->now);
    switch (expr.param) {
      case kCurrentDate:
        return Kernel(kTimestamptzToDateProc, kDateOid, kInvalidOid, {{kTimestamptzOid, now}});
      case kCurrentTimestamp:
        return now;
      case kCurrentTimestampN:
        return Scaled(kTimestamptzScaleProc, kTimestamptzOid, now, expr.typmod);
      case kLocalTime:
      case kLocalTimeN:
        return LocalNow(now, kTimestamptzToTimeProc, kTimeScaleProc, kTimeOid, expr.typmod);
      case kLocalTimestamp:
      case kLocalTimestampN:
        return LocalNow(now, kTimestamptzToTimestampProc, kTimestampScaleProc, kTimestampOid,
                        expr.typmod);
      default:
        return std::nullopt;
    }
  }

  std::optional<Value> LocalNow(const Value& now, Oid cast, Oid scale, Oid type, int32_t typmod) {
    auto local = Kernel(cast, type, kInvalidOid, {{kTimestamptzOid, now}});
    return local ? Scaled(scale, type, *local, typmod) : local;
  }

  std::optional<Value> Scaled(Oid function, Oid type, const Value& value, int32_t typmod) {
    if (typmod < 0) return value;
    char bytes[4];
    StoreBig(bytes, typmod);
    Value scale{false, arena_->CopyString(std::string_view(bytes, 4))};
    return Kernel(function, type, kInvalidOid, {{type, value}, {kInt4Oid, scale}});
  }

  struct TypedValue {
    Oid type;
    Value value;
  };

  std::optional<Value> Call(const Expr& expr) {
    if (expr.function == kNowProc || expr.function == kTransactionTimestampProc)
      return Timestamp(input_.settings->now);
    if (expr.function == kStatementTimestampProc) return Timestamp(input_.settings->statement_now);
    const ProcInfo* proc = FindProc(expr.function);
    if (proc == nullptr || proc->volatility == 'v' || proc->returns_set) return std::nullopt;
    std::vector<TypedValue> args;
    for (const Expr* arg : expr.args) {
      auto value = Evaluate(*arg);
      if (!value) return std::nullopt;
      args.push_back({arg->type, *value});
    }
    return Kernel(expr.function, expr.type, expr.input_collation, args);
  }

  std::optional<Value> Kernel(Oid function, Oid type, Oid collation,
                              const std::vector<TypedValue>& args) {
    const sluice::Kernel* kernel = FindKernel(function);
    if (kernel == nullptr || !HasBinaryCodec(type)) return std::nullopt;
    if (collation != kInvalidOid && !CanCollate(collation)) return std::nullopt;
    std::vector<Column> columns;
    for (const TypedValue& arg : args) {
      if (!HasBinaryCodec(arg.type)) return std::nullopt;
      if (kernel->strict && arg.value.is_null) return Value{};
      columns.push_back(MakeConstantColumn(arg.type, arg.value.bytes, arg.value.is_null, arena_));
    }
    std::vector<const Column*> pointers;
    for (const Column& column : columns) pointers.push_back(&column);
    Column out;
    out.type = type;
    out.physical = PhysicalOf(type);
    out.data = arena_->NewArray<uint64_t>(2).data();  // the widest value is 16 bytes
    out.nulls = arena_->NewArray<uint8_t>(1).data();
    EvalContext context{arena_, input_.settings};
    KernelCall call{
        pointers, &out, nullptr, 1, collation == kInvalidOid ? nullptr : FindCollator(collation),
        &context};
    kernel->fn(call);
    if (out.IsNull(0)) return Value{};
    std::string bytes;
    AppendBinary(out, 0, &bytes);
    return Value{false, arena_->CopyString(bytes)};
  }

  std::optional<Value> AndOr(const Expr& expr, bool decides) {
    bool any_null = false, any_unknown = false;
    for (const Expr* arg : expr.args) {
      auto value = Evaluate(*arg);
      if (!value)
        any_unknown = true;
      else if (value->is_null)
        any_null = true;
      else if (IsTrue(*value) == decides)
        return Bool(decides);
    }
    if (any_unknown) return std::nullopt;
    return any_null ? Value{} : Bool(!decides);
  }

  std::optional<Value> Test(const Expr& expr) {
    auto arg = Evaluate(*expr.args[0]);
    if (!arg) return std::nullopt;
    switch (expr.kind) {
      case ExprKind::kIsNull:
      case ExprKind::kIsUnknown:
        return Bool(arg->is_null);
      case ExprKind::kIsNotNull:
      case ExprKind::kIsNotUnknown:
        return Bool(!arg->is_null);
      case ExprKind::kIsTrue:
        return Bool(IsTrue(*arg));
      case ExprKind::kIsNotTrue:
        return Bool(!IsTrue(*arg));
      case ExprKind::kIsFalse:
        return Bool(!arg->is_null && !IsTrue(*arg));
      default:
        return Bool(arg->is_null || IsTrue(*arg));
    }
  }

  std::optional<Value> Case(const Expr& expr) {
    for (size_t i = 0; i + 1 < expr.args.size(); i += 2) {
      auto when = Evaluate(*expr.args[i]);
      if (!when) return std::nullopt;
      if (IsTrue(*when)) return Evaluate(*expr.args[i + 1]);
    }
    return Evaluate(*expr.args.back());
  }

  std::optional<Value> CoerceViaIo(const Expr& expr) {
    const Expr& arg = *expr.args[0];
    if (!HasBinaryCodec(arg.type) || !HasBinaryCodec(expr.type)) return std::nullopt;
    auto value = Evaluate(arg);
    if (!value || value->is_null) return value;
    std::string text;
    AppendText(MakeConstantColumn(arg.type, value->bytes, false, arena_), 0, *input_.settings,
               &text);
    return Value{false, ParseText(expr.type, -1, text, *input_.settings, arena_)};
  }

  const EvaluationInput& input_;
  Arena* arena_;
};

bool IsFoldable(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kCall:
    case ExprKind::kSqlValue:
    case ExprKind::kAnd:
    case ExprKind::kOr:
    case ExprKind::kNot:
    case ExprKind::kIsNull:
    case ExprKind::kIsNotNull:
    case ExprKind::kIsTrue:
    case ExprKind::kIsNotTrue:
    case ExprKind::kIsFalse:
    case ExprKind::kIsNotFalse:
    case ExprKind::kIsUnknown:
    case ExprKind::kIsNotUnknown:
    case ExprKind::kCase:
    case ExprKind::kCoalesce:
    case ExprKind::kRelabel:
    case ExprKind::kCoerceViaIo:
      return true;
    default:
      return false;
  }
}

// A larger value stays an expression: its text would travel in every statement to a shard.
constexpr size_t kFoldedBytesMax = 64 * 1024;

DepthRewriter Folder(const EvaluationInput& input) {
  return [&input](const Expr& expr, int) -> const Expr* {
    if (!IsFoldable(expr)) return nullptr;
    auto value = EvaluateExpr(expr, input);
    if (!value || value->bytes.size() > kFoldedBytesMax) return nullptr;
    Expr* folded = input.arena->New<Expr>();
    folded->kind = ExprKind::kConst;
    folded->type = expr.type;
    folded->typmod = expr.typmod;
    folded->collation = expr.collation;
    folded->location = expr.location;
    folded->is_null = value->is_null;
    folded->value = value->bytes;
    return folded;
  };
}

}  // namespace

std::optional<Value> EvaluateExpr(const Expr& expr, const EvaluationInput& input) {
  try {
    return Evaluator(input).Evaluate(expr);
  } catch (const QueryError&) {
    return std::nullopt;
  }
}

std::optional<int> CompareValues(Oid type, Oid collation, std::string_view a, std::string_view b,
                                 Arena* arena) {
  CompareFn compare = FindCompare(type);
  if (compare == nullptr || !HasBinaryCodec(type)) return std::nullopt;
  if (collation != kInvalidOid && !CanCollate(collation)) return std::nullopt;
  Column left = MakeConstantColumn(type, a, false, arena);
  Column right = MakeConstantColumn(type, b, false, arena);
  return compare(left, 0, right, 0, collation == kInvalidOid ? nullptr : FindCollator(collation));
}

const Expr* FoldConstants(const Expr* expr, const EvaluationInput& input) {
  return RewriteExpr(expr, input.arena, Folder(input));
}

const Query* FoldConstantsInQuery(const Query& query, const EvaluationInput& input) {
  return RewriteQuery(query, input.arena, Folder(input), 0);
}

}  // namespace sluice
