// Functions behind casts, and length coercions.
#include <cmath>

#include "types/bpchar.h"
#include "types/datetime.h"
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"
#include "types/number_text.h"
#include "types/numeric.h"
#include "types/numeric_small.h"
#include "types/typmod.h"
#include "types/utf8.h"

namespace sluice {
namespace {

using View = std::string_view;

template <typename T>
constexpr const char* kTypeName = sizeof(T) == 2   ? "smallint"
                                  : sizeof(T) == 4 ? "integer"
                                                   : "bigint";

template <typename T>
[[noreturn]] void OutOfRange() {
  Throw(sqlstate::kNumericValueOutOfRange, "{} out of range", kTypeName<T>);
}

template <typename To>
struct Narrow {
  To operator()(int64_t value) const {
    if (value < std::numeric_limits<To>::min() || value > std::numeric_limits<To>::max())
      OutOfRange<To>();
    return static_cast<To>(value);
  }
};
template <typename To>
struct Widen {
  template <typename From>
  To operator()(From value) const {
    return static_cast<To>(value);
  }
};
// Half to even, as the machine rounds.
template <typename To>
struct FloatToInt {
  template <typename From>
  To operator()(From value) const {
    From rounded = std::rint(value);
    // The upper limit is a power of two, exact in either float type.
    constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
    if (!(rounded >= kLow && rounded < -kLow)) OutOfRange<To>();
    return static_cast<To>(rounded);
  }
};
struct DoubleToFloat {
  float operator()(double value) const {
    float result = static_cast<float>(value);
    if (std::isinf(result) && !std::isinf(value)) {
      Throw(sqlstate::kNumericValueOutOfRange, "value out of range: overflow");
    }
    if (result == 0 && value != 0)
      Throw(sqlstate::kNumericValueOutOfRange, "value out of range: underflow");
    return result;
  }
};
struct Int8ToOid {
  uint32_t operator()(int64_t value) const {
    if (value < 0 || value > UINT32_MAX)
      Throw(sqlstate::kNumericValueOutOfRange, "OID out of range");
    return static_cast<uint32_t>(value);
  }
};
template <typename To>
struct NumericToInt {
  To operator()(View wire) const {
    Numeric value = NumericFromWire(wire);
    if (value.special()) {
      Throw(sqlstate::kFeatureNotSupported, "cannot convert {} to {}",
            value.nan() ? "NaN" : "infinity", kTypeName<To>);
    }
    int64_t whole = 0;
    if (!NumericToInt64(value, &whole)) OutOfRange<To>();
    return Narrow<To>()(whole);
  }
};
struct IntToNumeric {
  View operator()(const KernelCall& call, int64_t value) const {
    return StoreSmall(value, 0, 0, call.context->arena);
  }
};
struct DoubleToNumeric {
  View operator()(const KernelCall& call, double value) const {
    return NumericToWire(NumericFromDouble(value), call.context->arena);
  }
};
struct FloatToNumeric {
  View operator()(const KernelCall& call, float value) const {
    return NumericToWire(NumericFromFloat(value), call.context->arena);
  }
};
struct NumericToFloat8 {
  double operator()(View wire) const {
    // Integers below 2^53 over powers of ten up to 10^22: one correctly rounded division.
    SmallNumeric small;
    if (LoadSmall(wire, &small) && small.exponent >= -5 && small.exponent <= 0 &&
        std::abs(small.mantissa) < (int64_t{1} << 53)) {
      static constexpr double kPower10000[] = {1, 1e4, 1e8, 1e12, 1e16, 1e20};
      return static_cast<double>(small.mantissa) / kPower10000[-small.exponent];
    }
    return NumericToDouble(NumericFromWire(wire));
  }
};
struct NumericToFloat4 {
  float operator()(View wire) const {
    std::string text;
    AppendNumericText(wire, &text);
    return ParseFloat(text);
  }
};

struct IntToBool {
  bool operator()(int32_t value) const { return value != 0; }
};
struct BoolToText {
  View operator()(uint8_t value) const { return value ? "true" : "false"; }
};

struct CharToInt {
  int32_t operator()(View c) const { return static_cast<signed char>(c[0]); }
};
struct IntToChar {
  View operator()(const KernelCall& call, int32_t value) const {
    if (value < INT8_MIN || value > INT8_MAX)
      Throw(sqlstate::kNumericValueOutOfRange, "\"char\" out of range");
    char c = static_cast<char>(value);
    return CopyResult(call, View(&c, 1));
  }
};
struct CharToText {
  View operator()(const KernelCall& call, View c) const {
    std::string text;
    AppendCharText(c[0], &text);
    return CopyResult(call, text);
  }
};
struct TextToChar {
  View operator()(const KernelCall& call, View text) const {
    char c = ParseChar(text);
    return CopyResult(call, View(&c, 1));
  }
};
struct Same {
  View operator()(View text) const { return text; }
};
struct ToName {
  View operator()(View text) const { return Utf8Clip(text, 63); }
};
struct BpcharToName {
  View operator()(View text) const { return TrimBpchar(Utf8Clip(text, 63)); }
};
struct TrimBlanks {
  View operator()(View text) const { return TrimBpchar(text); }
};

struct CoerceToVarchar {
  View operator()(View text, int32_t typmod, uint8_t explicit_cast) const {
    return CoerceVarchar(text, typmod, explicit_cast != 0);
  }
};
struct CoerceToBpchar {
  View operator()(const KernelCall& call, View text, int32_t typmod, uint8_t explicit_cast) const {
    return CoerceBpchar(text, typmod, explicit_cast != 0, call.context->arena);
  }
};
struct RoundTimestamp {
  int64_t operator()(int64_t t, int32_t typmod) const { return RoundTimestampTo(t, typmod); }
};
struct RoundTime {
  int64_t operator()(int64_t t, int32_t typmod) const { return RoundTimeTo(t, typmod); }
};
struct RoundInterval {
  Interval operator()(Interval value, int32_t typmod) const {
    ApplyIntervalTypmod(&value, typmod);
    return value;
  }
};

const TimeZone& Zone(const KernelCall& call) {
  return ZoneOf(*call.context->settings);
}

struct DateToStamp {
  int64_t operator()(int32_t date) const { return DateToTimestamp(date); }
};
struct DateToStamptz {
  int64_t operator()(const KernelCall& call, int32_t date) const {
    return DateToTimestamptz(date, Zone(call));
  }
};
struct StampToDate {
  int32_t operator()(int64_t t) const { return TimestampToDate(t); }
};
struct StamptzToDate {
  int32_t operator()(const KernelCall& call, int64_t t) const {
    return TimestampToDate(TimestamptzToLocal(t, Zone(call)));
  }
};
struct StamptzToStamp {
  int64_t operator()(const KernelCall& call, int64_t t) const {
    return TimestamptzToLocal(t, Zone(call));
  }
};
struct StampToStamptz {
  int64_t operator()(const KernelCall& call, int64_t t) const {
    return LocalToTimestamptz(t, Zone(call));
  }
};
int64_t TimeOfDay(int64_t timestamp) {
  int64_t time = timestamp % kMicrosPerDay;
  return time < 0 ? time + kMicrosPerDay : time;
}
template <bool kHasZone>
void StampToTime(const KernelCall& call) {
  const int64_t* data = call.args[0]->Data<int64_t>();
  ForEachRow(call, [&](size_t i) {
    int64_t t = data[i & call.args[0]->mask];
    if (IsInfinite(t)) return SetNull(call, i);
    call.out->Data<int64_t>()[i] = TimeOfDay(kHasZone ? TimestamptzToLocal(t, Zone(call)) : t);
  });
}
struct TimeToInterval {
  Interval operator()(int64_t time) const { return {time, 0, 0}; }
};
struct IntervalToTime {
  int64_t operator()(const Interval& span) const { return TimeOfDay(span.microseconds); }
};

constexpr Kernel kKernels[] = {
    {313, "int4", true, Map<Widen<int32_t>, int32_t, int16_t>},
    {754, "int8", true, Map<Widen<int64_t>, int64_t, int16_t>},
    {481, "int8", true, Map<Widen<int64_t>, int64_t, int32_t>},
    {314, "int2", true, Map<Narrow<int16_t>, int16_t, int32_t>},
    {714, "int2", true, Map<Narrow<int16_t>, int16_t, int64_t>},
    {480, "int4", true, Map<Narrow<int32_t>, int32_t, int64_t>},
    {1287, "oid", true, Map<Int8ToOid, uint32_t, int64_t>},
    {1288, "int8", true, Map<Widen<int64_t>, int64_t, uint32_t>},
    {236, "float4", true, Map<Widen<float>, float, int16_t>},
    {318, "float4", true, Map<Widen<float>, float, int32_t>},
    {652, "float4", true, Map<Widen<float>, float, int64_t>},
    {235, "float8", true, Map<Widen<double>, double, int16_t>},
    {316, "float8", true, Map<Widen<double>, double, int32_t>},
    {482, "float8", true, Map<Widen<double>, double, int64_t>},
    {311, "float8", true, Map<Widen<double>, double, float>},
    {312, "float4", true, Map<DoubleToFloat, float, double>},
    {238, "int2", true, Map<FloatToInt<int16_t>, int16_t, float>},
    {319, "int4", true, Map<FloatToInt<int32_t>, int32_t, float>},
    {653, "int8", true, Map<FloatToInt<int64_t>, int64_t, float>},
    {237, "int2", true, Map<FloatToInt<int16_t>, int16_t, double>},
    {317, "int4", true, Map<FloatToInt<int32_t>, int32_t, double>},
    {483, "int8", true, Map<FloatToInt<int64_t>, int64_t, double>},
    {1782, "numeric", true, Map<IntToNumeric, View, int16_t>},
    {1740, "numeric", true, Map<IntToNumeric, View, int32_t>},
    {1781, "numeric", true, Map<IntToNumeric, View, int64_t>},
    {1742, "numeric", true, Map<FloatToNumeric, View, float>},
    {1743, "numeric", true, Map<DoubleToNumeric, View, double>},
    {1783, "int2", true, Map<NumericToInt<int16_t>, int16_t, View>},
    {1744, "int4", true, Map<NumericToInt<int32_t>, int32_t, View>},
    {1779, "int8", true, Map<NumericToInt<int64_t>, int64_t, View>},
    {1745, "float4", true, Map<NumericToFloat4, float, View>},
    {1746, "float8", true, Map<NumericToFloat8, double, View>},
    {2557, "bool", true, Map<IntToBool, uint8_t, int32_t>},
    {2558, "int4", true, Map<Widen<int32_t>, int32_t, uint8_t>},
    {2971, "text", true, Map<BoolToText, View, uint8_t>},
    {77, "int4", true, Map<CharToInt, int32_t, View>},
    {78, "char", true, Map<IntToChar, View, int32_t>},
    {860, "bpchar", true, Map<CharToText, View, View>},
    {944, "char", true, Map<TextToChar, View, View>},
    {946, "text", true, Map<CharToText, View, View>},
    {401, "text", true, Map<TrimBlanks, View, View>},
    {406, "text", true, Map<Same, View, View>},
    {407, "name", true, Map<ToName, View, View>},
    {408, "bpchar", true, Map<Same, View, View>},
    {409, "name", true, Map<BpcharToName, View, View>},
    {1400, "name", true, Map<ToName, View, View>},
    {1401, "varchar", true, Map<Same, View, View>},
    {668, "bpchar", true, Map<CoerceToBpchar, View, View, int32_t, uint8_t>},
    {669, "varchar", true, Map<CoerceToVarchar, View, View, int32_t, uint8_t>},
    {1961, "timestamp", true, Map<RoundTimestamp, int64_t, int64_t, int32_t>},
    {1967, "timestamptz", true, Map<RoundTimestamp, int64_t, int64_t, int32_t>},
    {1968, "time", true, Map<RoundTime, int64_t, int64_t, int32_t>},
    {1200, "interval", true, Map<RoundInterval, Interval, Interval, int32_t>},
    {2024, "timestamp", true, Map<DateToStamp, int64_t, int32_t>},
    {1174, "timestamptz", true, Map<DateToStamptz, int64_t, int32_t>},
    {2029, "date", true, Map<StampToDate, int32_t, int64_t>},
    {1178, "date", true, Map<StamptzToDate, int32_t, int64_t>},
    {2027, "timestamp", true, Map<StamptzToStamp, int64_t, int64_t>},
    {2028, "timestamptz", true, Map<StampToStamptz, int64_t, int64_t>},
    {1316, "time", true, StampToTime<false>},
    {2019, "time", true, StampToTime<true>},
    {1370, "interval", true, Map<TimeToInterval, Interval, int64_t>},
    {1419, "time", true, Map<IntervalToTime, int64_t, Interval>},
};

}  // namespace

std::span<const Kernel> CastKernels() {
  return kKernels;
}

}  // namespace sluice
