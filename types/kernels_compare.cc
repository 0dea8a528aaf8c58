// The comparison operators' functions, within and across types.
#include "types/array.h"
#include "types/bpchar.h"
#include "types/codec.h"
#include "types/compare.h"
#include "types/compare_values.h"
#include "types/datetime.h"
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"
#include "types/numeric.h"

namespace sluice {
namespace {

using View = std::string_view;

struct Eq {
  template <typename T>
  static bool Plain(T a, T b) {
    return a == b;
  }
  static bool Of(int order) { return order == 0; }
};
struct Ne {
  template <typename T>
  static bool Plain(T a, T b) {
    return a != b;
  }
  static bool Of(int order) { return order != 0; }
};
struct Lt {
  template <typename T>
  static bool Plain(T a, T b) {
    return a < b;
  }
  static bool Of(int order) { return order < 0; }
};
struct Le {
  template <typename T>
  static bool Plain(T a, T b) {
    return a <= b;
  }
  static bool Of(int order) { return order <= 0; }
};
struct Gt {
  template <typename T>
  static bool Plain(T a, T b) {
    return a > b;
  }
  static bool Of(int order) { return order > 0; }
};
struct Ge {
  template <typename T>
  static bool Plain(T a, T b) {
    return a >= b;
  }
  static bool Of(int order) { return order >= 0; }
};

template <typename Op>
struct CompareIntegers {
  template <typename A, typename B>
  bool operator()(A a, B b) const {
    using Common = std::conditional_t<(sizeof(A) > sizeof(B)), A, B>;
    return Op::template Plain<Common>(a, b);
  }
};
template <typename Op>
struct CompareFloats {
  template <typename A, typename B>
  bool operator()(A a, B b) const {
    return Op::Of(CompareValues<double, double>(a, b));
  }
};
template <typename Op>
struct CompareWhole {  // interval, uuid
  template <typename T>
  bool operator()(const T& a, const T& b) const {
    return Op::Of(CompareValues(a, b));
  }
};
template <typename Op>
struct CompareTexts {
  bool operator()(const KernelCall& call, View a, View b) const {
    // Deterministic collations: only equal bytes are equal.
    if constexpr (std::is_same_v<Op, Eq>)
      return a == b;
    else if constexpr (std::is_same_v<Op, Ne>)
      return a != b;
    else
      return Op::Of(CompareText(a, b, call.collation));
  }
};
template <typename Op>
struct CompareBpchars {
  bool operator()(const KernelCall& call, View a, View b) const {
    return CompareTexts<Op>()(call, TrimBpchar(a), TrimBpchar(b));
  }
};
template <typename Op>
struct CompareByteStrings {
  bool operator()(View a, View b) const { return Op::Of(CompareBytes(a, b)); }
};
template <typename Op>
struct CompareNumerics {
  bool operator()(View a, View b) const { return Op::Of(CompareNumericWire(a, b)); }
};
template <typename Op>
struct CompareArrayValues {
  bool operator()(const KernelCall& call, View a, View b) const {
    return Op::Of(CompareArrays(a, b, call.collation));
  }
};

// Values too large or small for a timestamp sort next to the infinities.
constexpr int64_t kBeyondAll = kTimestampInfinity - 1, kBeforeAll = kTimestampMinusInfinity + 1;

int64_t WideTimestamp(int32_t date) {
  if (date == kDateInfinity) return kTimestampInfinity;
  if (date == kDateMinusInfinity) return kTimestampMinusInfinity;
  return date >= kTimestampEnd / kMicrosPerDay ? kBeyondAll : date * kMicrosPerDay;
}
int64_t WideTimestamptz(const KernelCall& call, int64_t local) {
  if (IsInfinite(local) || local == kBeyondAll) return local;
  const TimeZone& zone = ZoneOf(*call.context->settings);
  int64_t second = local / kMicrosPerSecond - (local % kMicrosPerSecond < 0);
  int64_t instant =
      local - zone.OffsetOfLocal(second + kPostgresEpochUnixSeconds) * kMicrosPerSecond;
  if (IsValidTimestamp(instant)) return instant;
  return instant < 0 ? kBeforeAll : kBeyondAll;
}

template <typename Op>
struct DateToStamp {
  bool operator()(int32_t a, int64_t b) const { return Op::Plain(WideTimestamp(a), b); }
};
template <typename Op>
struct StampToDate {
  bool operator()(int64_t a, int32_t b) const { return Op::Plain(a, WideTimestamp(b)); }
};
template <typename Op>
struct DateToStamptz {
  bool operator()(const KernelCall& call, int32_t a, int64_t b) const {
    return Op::Plain(WideTimestamptz(call, WideTimestamp(a)), b);
  }
};
template <typename Op>
struct StamptzToDate {
  bool operator()(const KernelCall& call, int64_t a, int32_t b) const {
    return Op::Plain(a, WideTimestamptz(call, WideTimestamp(b)));
  }
};
template <typename Op>
struct StampToStamptz {
  bool operator()(const KernelCall& call, int64_t a, int64_t b) const {
    return Op::Plain(WideTimestamptz(call, a), b);
  }
};
template <typename Op>
struct StamptzToStamp {
  bool operator()(const KernelCall& call, int64_t a, int64_t b) const {
    return Op::Plain(a, WideTimestamptz(call, b));
  }
};

// The six functions, in the order =, <>, <, <=, >, >=.
#define COMPARISONS(front, back, how, Fn, A, B, eq, ne, lt, le, gt, ge) \
  {eq, front "eq" back, true, how<Fn<Eq>, uint8_t, A, B>},              \
      {ne, front "ne" back, true, how<Fn<Ne>, uint8_t, A, B>},          \
      {lt, front "lt" back, true, how<Fn<Lt>, uint8_t, A, B>},          \
      {le, front "le" back, true, how<Fn<Le>, uint8_t, A, B>},          \
      {gt, front "gt" back, true, how<Fn<Gt>, uint8_t, A, B>}, {        \
    ge, front "ge" back, true, how<Fn<Ge>, uint8_t, A, B>               \
  }

constexpr Kernel kKernels[] = {
    COMPARISONS("bool", "", MapFast, CompareIntegers, uint8_t, uint8_t, 60, 84, 56, 1691, 57, 1692),
    COMPARISONS("int2", "", MapFast, CompareIntegers, int16_t, int16_t, 63, 145, 64, 148, 146, 151),
    COMPARISONS("int4", "", MapFast, CompareIntegers, int32_t, int32_t, 65, 144, 66, 149, 147, 150),
    COMPARISONS("int8", "", MapFast, CompareIntegers, int64_t, int64_t, 467, 468, 469, 471, 470,
                472),
    COMPARISONS("int24", "", MapFast, CompareIntegers, int16_t, int32_t, 158, 164, 160, 166, 162,
                168),
    COMPARISONS("int28", "", MapFast, CompareIntegers, int16_t, int64_t, 1850, 1851, 1852, 1854,
                1853, 1855),
    COMPARISONS("int42", "", MapFast, CompareIntegers, int32_t, int16_t, 159, 165, 161, 167, 163,
                169),
    COMPARISONS("int48", "", MapFast, CompareIntegers, int32_t, int64_t, 852, 853, 854, 856, 855,
                857),
    COMPARISONS("int82", "", MapFast, CompareIntegers, int64_t, int16_t, 1856, 1857, 1858, 1860,
                1859, 1861),
    COMPARISONS("int84", "", MapFast, CompareIntegers, int64_t, int32_t, 474, 475, 476, 478, 477,
                479),
    COMPARISONS("oid", "", MapFast, CompareIntegers, uint32_t, uint32_t, 184, 185, 716, 717, 1638,
                1639),
    COMPARISONS("float4", "", MapFast, CompareFloats, float, float, 287, 288, 289, 290, 291, 292),
    COMPARISONS("float8", "", MapFast, CompareFloats, double, double, 293, 294, 295, 296, 297, 298),
    COMPARISONS("float48", "", MapFast, CompareFloats, float, double, 299, 300, 301, 302, 303, 304),
    COMPARISONS("float84", "", MapFast, CompareFloats, double, float, 305, 306, 307, 308, 309, 310),
    COMPARISONS("numeric_", "", Map, CompareNumerics, View, View, 1718, 1719, 1722, 1723, 1720,
                1721),
    {67, "texteq", true, Map<CompareTexts<Eq>, uint8_t, View, View>},
    {157, "textne", true, Map<CompareTexts<Ne>, uint8_t, View, View>},
    {740, "text_lt", true, Map<CompareTexts<Lt>, uint8_t, View, View>},
    {741, "text_le", true, Map<CompareTexts<Le>, uint8_t, View, View>},
    {742, "text_gt", true, Map<CompareTexts<Gt>, uint8_t, View, View>},
    {743, "text_ge", true, Map<CompareTexts<Ge>, uint8_t, View, View>},
    COMPARISONS("bpchar", "", Map, CompareBpchars, View, View, 1048, 1053, 1049, 1050, 1051, 1052),
    COMPARISONS("name", "", Map, CompareTexts, View, View, 62, 659, 655, 656, 657, 658),
    COMPARISONS("name", "text", Map, CompareTexts, View, View, 240, 245, 241, 242, 244, 243),
    COMPARISONS("text", "name", Map, CompareTexts, View, View, 247, 252, 248, 249, 251, 250),
    COMPARISONS("char", "", Map, CompareByteStrings, View, View, 61, 70, 1246, 72, 73, 74),
    COMPARISONS("bytea", "", Map, CompareByteStrings, View, View, 1948, 1953, 1949, 1950, 1951,
                1952),
    COMPARISONS("date_", "", MapFast, CompareIntegers, int32_t, int32_t, 1086, 1091, 1087, 1088,
                1089, 1090),
    COMPARISONS("time_", "", MapFast, CompareIntegers, int64_t, int64_t, 1145, 1106, 1102, 1103,
                1104, 1105),
    COMPARISONS("timestamp_", "", MapFast, CompareIntegers, int64_t, int64_t, 2052, 2053, 2054,
                2055, 2057, 2056),
    COMPARISONS("timestamptz_", "", MapFast, CompareIntegers, int64_t, int64_t, 1152, 1153, 1154,
                1155, 1157, 1156),
    COMPARISONS("date_", "_timestamp", Map, DateToStamp, int32_t, int64_t, 2340, 2343, 2338, 2339,
                2341, 2342),
    COMPARISONS("date_", "_timestamptz", Map, DateToStamptz, int32_t, int64_t, 2353, 2356, 2351,
                2352, 2354, 2355),
    COMPARISONS("timestamp_", "_date", Map, StampToDate, int64_t, int32_t, 2366, 2369, 2364, 2365,
                2367, 2368),
    COMPARISONS("timestamptz_", "_date", Map, StamptzToDate, int64_t, int32_t, 2379, 2382, 2377,
                2378, 2380, 2381),
    COMPARISONS("timestamp_", "_timestamptz", Map, StampToStamptz, int64_t, int64_t, 2522, 2525,
                2520, 2521, 2523, 2524),
    COMPARISONS("timestamptz_", "_timestamp", Map, StamptzToStamp, int64_t, int64_t, 2529, 2532,
                2527, 2528, 2530, 2531),
    COMPARISONS("interval_", "", Map, CompareWhole, Interval, Interval, 1162, 1163, 1164, 1165,
                1167, 1166),
    COMPARISONS("uuid_", "", Map, CompareWhole, Uuid, Uuid, 2956, 2959, 2954, 2955, 2958, 2957),
    COMPARISONS("array_", "", Map, CompareArrayValues, View, View, 744, 390, 391, 393, 392, 396),
    {68, "xideq", true, MapFast<CompareIntegers<Eq>, uint8_t, uint32_t, uint32_t>},
    {3308, "xidneq", true, MapFast<CompareIntegers<Ne>, uint8_t, uint32_t, uint32_t>},
    {69, "cideq", true, MapFast<CompareIntegers<Eq>, uint8_t, uint32_t, uint32_t>},
};

#undef COMPARISONS

}  // namespace

std::span<const Kernel> ComparisonKernels() {
  return kKernels;
}

}  // namespace sluice
