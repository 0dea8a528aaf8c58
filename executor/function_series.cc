// The series behind FunctionScan.
#include "common/error.h"
#include "executor/array_value.h"
#include "executor/expression.h"
#include "executor/function_scan.h"
#include "types/codec.h"
#include "types/compare.h"
#include "types/kernel.h"

namespace sluice {
namespace {

// pg_proc
constexpr Oid kSeriesTimestamp = 938, kSeriesTimestamptz = 939, kSeriesInt4Step = 1066,
              kSeriesInt4 = 1067, kSeriesInt8Step = 1068, kSeriesInt8 = 1069,
              kSeriesNumericStep = 3259, kSeriesNumeric = 3260, kUnnest = 2331;
constexpr Oid kNumericAdd = 1724, kTimestampPlusInterval = 2032, kTimestamptzPlusInterval = 1189;

[[noreturn]] void ZeroStep() {
  Throw(sqlstate::kInvalidParameterValue, "step size cannot equal zero");
}

template <typename T>
class IntegerSeries : public SeriesSource {
 public:
  IntegerSeries(T start, T stop, T step) : at_(start), stop_(stop), step_(step) {
    if (step == 0) ZeroStep();
  }

  size_t Next(size_t rows_max, ColumnBuffer* to, Arena*) override {
    T* values = to->column.Data<T>();
    size_t rows = 0;
    while (rows < rows_max && !done_ && (step_ > 0 ? at_ <= stop_ : at_ >= stop_)) {
      values[rows++] = at_;
      done_ =
          __builtin_add_overflow(at_, step_, &at_);  // the next would be beyond the type's range
    }
    return rows;
  }

 private:
  T at_, stop_, step_;
  bool done_ = false;
};

// Any type with an order and an addition, through its kernels.
class KernelSeries : public SeriesSource {
 public:
  KernelSeries(const Column& start, const Column& stop, const Column& step, Oid addition,
               bool ascending, const SessionSettings* settings)
      : addition_(FindKernel(addition)),
        compare_(FindCompare(start.type)),
        ascending_(ascending),
        at_(CopyValue(start, 0, &arena_)),
        stop_(CopyValue(stop, 0, &arena_)),
        step_(CopyValue(step, 0, &arena_)),
        sum_(start.type) {
    if (addition_ == nullptr || compare_ == nullptr)
      Refuse("generate_series of this type is not supported");
    context_.settings = settings;
  }

  size_t Next(size_t rows_max, ColumnBuffer* to, Arena* arena) override {
    size_t rows = 0;
    size_t width = WidthOf(at_.physical);
    while (rows < rows_max) {
      int order = compare_(at_, 0, stop_, 0, nullptr);
      if (ascending_ ? order > 0 : order < 0) break;
      // The batch's value must not move on with ours.
      Column value = CopyValue(at_, 0, arena);
      std::memcpy(static_cast<char*>(to->column.data) + rows * width, value.data, width);
      rows++;
      Advance();
    }
    return rows;
  }

 private:
  void Advance() {
    scratch_.Reset();
    context_.arena = &scratch_;
    sum_.Clear();
    const Column* args[] = {&at_, &step_};
    addition_->fn(KernelCall{args, &sum_.column, nullptr, 1, nullptr, &context_});
    Column one = sum_.column;
    one.mask = 0;
    // Two places in turn, so that the series does not grow with its length.
    values_[turn_].Reset();
    at_ = CopyValue(one, 0, &values_[turn_]);
    turn_ ^= 1;
  }

  const Kernel* addition_;
  CompareFn compare_;
  bool ascending_;
  Arena arena_, scratch_, values_[2];
  int turn_ = 0;
  Column at_, stop_, step_;
  ColumnBuffer sum_;
  EvalContext context_;
};

class ArraySeries : public SeriesSource {
 public:
  explicit ArraySeries(const Column& array) : bytes_(array.At<std::string_view>(0)) {
    ArrayShape shape;
    elements_ = DecodeArray(bytes_, ElementTypeOf(array.type), &arena_, &shape);
    count_ = shape.element_count();
  }

  size_t Next(size_t rows_max, ColumnBuffer* to, Arena*) override {
    size_t rows = std::min(rows_max, count_ - next_), width = WidthOf(elements_.physical);
    std::memcpy(to->column.data, static_cast<char*>(elements_.data) + next_ * width, rows * width);
    if (elements_.nulls != nullptr) std::memcpy(to->Nulls(), elements_.nulls + next_, rows);
    next_ += rows;
    return rows;
  }

 private:
  Arena arena_;
  std::string bytes_;
  Column elements_;
  size_t count_ = 0, next_ = 0;
};

template <typename T>
std::unique_ptr<SeriesSource> MakeIntegers(const std::vector<Column>& args) {
  return std::make_unique<IntegerSeries<T>>(args[0].At<T>(0), args[1].At<T>(0),
                                            args.size() > 2 ? args[2].At<T>(0) : T{1});
}

// numeric: -1, 0, 1; NaN and the infinities are refused as Postgres does.
int SignOfNumeric(const Column& value, const char* what, Arena* arena,
                  const SessionSettings& settings) {
  CompareFn compare = FindCompare(kNumericOid);
  auto constant = [&](const char* text) {
    return MakeConstantColumn(kNumericOid, ParseText(kNumericOid, -1, text, settings, arena), false,
                              arena);
  };
  auto equals = [&](const char* text) {
    return compare(value, 0, constant(text), 0, nullptr) == 0;
  };
  if (equals("NaN")) Throw(sqlstate::kInvalidParameterValue, "{} cannot be NaN", what);
  if (equals("Infinity") || equals("-Infinity"))
    Throw(sqlstate::kInvalidParameterValue, "{} cannot be infinity", what);
  return compare(value, 0, constant("0"), 0, nullptr);
}

std::unique_ptr<SeriesSource> MakeNumerics(std::vector<Column> args,
                                           const SessionSettings& settings, Arena* arena) {
  SignOfNumeric(args[0], "start value", arena, settings);
  SignOfNumeric(args[1], "stop value", arena, settings);
  if (args.size() == 2)
    args.push_back(MakeConstantColumn(kNumericOid, ParseText(kNumericOid, -1, "1", settings, arena),
                                      false, arena));
  int sign = SignOfNumeric(args[2], "step size", arena, settings);
  if (sign == 0) ZeroStep();
  return std::make_unique<KernelSeries>(args[0], args[1], args[2], kNumericAdd, sign > 0,
                                        &settings);
}

std::unique_ptr<SeriesSource> MakeTimestamps(const std::vector<Column>& args, Oid addition,
                                             const SessionSettings& settings, Arena* arena) {
  Column zero = MakeConstantColumn(kIntervalOid, ParseText(kIntervalOid, -1, "0", settings, arena),
                                   false, arena);
  int sign = FindCompare(kIntervalOid)(args[2], 0, zero, 0, nullptr);
  if (sign == 0) ZeroStep();
  return std::make_unique<KernelSeries>(args[0], args[1], args[2], addition, sign > 0, &settings);
}

}  // namespace

std::unique_ptr<SeriesSource> MakeSeries(const Expr& call, ExecutionState& state) {
  Arena arena;
  std::vector<Column> args;
  for (const Expr* arg : call.args) {
    args.push_back(EvaluateConstant(*arg, state, &arena));
    if (args.back().IsNull(0)) return nullptr;
  }
  const SessionSettings& settings = *state.context->settings;
  switch (call.function) {
    case kSeriesInt4:
    case kSeriesInt4Step:
      return MakeIntegers<int32_t>(args);
    case kSeriesInt8:
    case kSeriesInt8Step:
      return MakeIntegers<int64_t>(args);
    case kSeriesNumeric:
    case kSeriesNumericStep:
      return MakeNumerics(args, settings, &arena);
    case kSeriesTimestamp:
      return MakeTimestamps(args, kTimestampPlusInterval, settings, &arena);
    case kSeriesTimestamptz:
      return MakeTimestamps(args, kTimestamptzPlusInterval, settings, &arena);
    case kUnnest:
      if (args.size() == 1) return std::make_unique<ArraySeries>(args[0]);
  }
  Refuse("set-returning function with OID {} in FROM is not supported", call.function);
}

}  // namespace sluice
