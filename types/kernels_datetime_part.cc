// extract, date_part and date_trunc.
#include <cmath>

#include "types/datetime.h"
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"
#include "types/numeric.h"
#include "types/numeric_small.h"

namespace sluice {
namespace {

using View = std::string_view;

enum class Unit : uint8_t {
  kUnknown,
  kMicroseconds,
  kMilliseconds,
  kSecond,
  kMinute,
  kHour,
  kDay,
  kWeek,
  kMonth,
  kQuarter,
  kYear,
  kDecade,
  kCentury,
  kMillennium,
  kIsoYear,
  kJulian,
  kDow,
  kIsoDow,
  kDoy,
  kEpoch,
  kTimezone,
  kTimezoneHour,
  kTimezoneMinute,
};

struct UnitName {
  View name;
  Unit unit;
};
// As far as Postgres looks at them: the first ten characters.
constexpr UnitName kUnitNames[] = {
    {"microsecon", Unit::kMicroseconds},
    {"us", Unit::kMicroseconds},
    {"usec", Unit::kMicroseconds},
    {"usecs", Unit::kMicroseconds},
    {"usecond", Unit::kMicroseconds},
    {"useconds", Unit::kMicroseconds},
    {"millisecon", Unit::kMilliseconds},
    {"ms", Unit::kMilliseconds},
    {"msec", Unit::kMilliseconds},
    {"msecs", Unit::kMilliseconds},
    {"msecond", Unit::kMilliseconds},
    {"mseconds", Unit::kMilliseconds},
    {"second", Unit::kSecond},
    {"seconds", Unit::kSecond},
    {"s", Unit::kSecond},
    {"sec", Unit::kSecond},
    {"secs", Unit::kSecond},
    {"minute", Unit::kMinute},
    {"minutes", Unit::kMinute},
    {"m", Unit::kMinute},
    {"min", Unit::kMinute},
    {"mins", Unit::kMinute},
    {"hour", Unit::kHour},
    {"hours", Unit::kHour},
    {"h", Unit::kHour},
    {"hr", Unit::kHour},
    {"hrs", Unit::kHour},
    {"day", Unit::kDay},
    {"days", Unit::kDay},
    {"d", Unit::kDay},
    {"week", Unit::kWeek},
    {"weeks", Unit::kWeek},
    {"w", Unit::kWeek},
    {"month", Unit::kMonth},
    {"months", Unit::kMonth},
    {"mon", Unit::kMonth},
    {"mons", Unit::kMonth},
    {"qtr", Unit::kQuarter},
    {"quarter", Unit::kQuarter},
    {"year", Unit::kYear},
    {"years", Unit::kYear},
    {"y", Unit::kYear},
    {"yr", Unit::kYear},
    {"yrs", Unit::kYear},
    {"decade", Unit::kDecade},
    {"decades", Unit::kDecade},
    {"dec", Unit::kDecade},
    {"decs", Unit::kDecade},
    {"century", Unit::kCentury},
    {"centuries", Unit::kCentury},
    {"c", Unit::kCentury},
    {"cent", Unit::kCentury},
    {"millennium", Unit::kMillennium},
    {"millennia", Unit::kMillennium},
    {"mil", Unit::kMillennium},
    {"mils", Unit::kMillennium},
    {"isoyear", Unit::kIsoYear},
    {"julian", Unit::kJulian},
    {"jd", Unit::kJulian},
    {"j", Unit::kJulian},
    {"dow", Unit::kDow},
    {"isodow", Unit::kIsoDow},
    {"doy", Unit::kDoy},
    {"epoch", Unit::kEpoch},
    {"timezone", Unit::kTimezone},
    {"timezone_h", Unit::kTimezoneHour},
    {"timezone_m", Unit::kTimezoneMinute},
};

std::string Lower(View text) {
  std::string out;
  for (char c : text) out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
  return out;
}

Unit UnitOf(View name) {
  std::string word = Lower(name).substr(0, 10);
  for (const UnitName& known : kUnitNames) {
    if (known.name == word) return known.unit;
  }
  return Unit::kUnknown;
}

[[noreturn]] void BadUnit(View name, const char* type, Unit unit) {
  if (unit == Unit::kUnknown) {
    Throw(sqlstate::kInvalidParameterValue, "unit \"{}\" not recognized for type {}", Lower(name),
          type);
  }
  Throw(sqlstate::kFeatureNotSupported, "unit \"{}\" not supported for type {}", Lower(name), type);
}

constexpr const char* kDateName = "date";
constexpr const char* kTimeName = "time without time zone";
constexpr const char* kTimestampName = "timestamp without time zone";
constexpr const char* kTimestamptzName = "timestamp with time zone";
constexpr const char* kIntervalName = "interval";

// A field's value: value·10^-scale; a Julian date has the day's share in `micros`.
struct Part {
  enum Kind : uint8_t { kValue, kNull, kInfinity, kMinusInfinity, kJulianWithTime } kind = kValue;
  __int128 value = 0;
  int scale = 0;
  int64_t micros = 0;
};

int FloorTo(int year, int span, int above) {  // centuries and the like, counted without a year 0
  return year > 0 ? (year + above) / span : -((above - (year - 1)) / span);
}

struct IsoWeek {
  int year, week;
};
IsoWeek IsoWeekOf(int64_t day) {
  // The week belongs to the year of its Thursday.
  int isodow = WeekdayOf(day) == 0 ? 7 : WeekdayOf(day);
  int64_t thursday = day - isodow + 4;
  int year, month, dom;
  JulianToDate(thursday + kPostgresEpochJulian, &year, &month, &dom);
  int64_t first = int64_t{JulianDay(year, 1, 1)} - kPostgresEpochJulian;
  return {year, static_cast<int>((thursday - first) / 7) + 1};
}

bool DatePart(Unit unit, int64_t day, Part* part) {
  int year, month, dom;
  JulianToDate(day + kPostgresEpochJulian, &year, &month, &dom);
  switch (unit) {
    case Unit::kDay:
      part->value = dom;
      return true;
    case Unit::kMonth:
      part->value = month;
      return true;
    case Unit::kQuarter:
      part->value = (month - 1) / 3 + 1;
      return true;
    case Unit::kWeek:
      part->value = IsoWeekOf(day).week;
      return true;
    case Unit::kYear:
      part->value = year > 0 ? year : year - 1;
      return true;
    case Unit::kDecade:
      part->value = year >= 0 ? year / 10 : -((8 - (year - 1)) / 10);
      return true;
    case Unit::kCentury:
      part->value = FloorTo(year, 100, 99);
      return true;
    case Unit::kMillennium:
      part->value = FloorTo(year, 1000, 999);
      return true;
    case Unit::kIsoYear: {
      int iso = IsoWeekOf(day).year;
      part->value = iso > 0 ? iso : iso - 1;
      return true;
    }
    case Unit::kDow:
      part->value = WeekdayOf(day);
      return true;
    case Unit::kIsoDow:
      part->value = WeekdayOf(day) == 0 ? 7 : WeekdayOf(day);
      return true;
    case Unit::kDoy:
      part->value = day - (int64_t{JulianDay(year, 1, 1)} - kPostgresEpochJulian) + 1;
      return true;
    default:
      return false;
  }
}

bool TimePart(Unit unit, int64_t micros_of_day, Part* part) {
  switch (unit) {
    case Unit::kMicroseconds:
      part->value = micros_of_day % kMicrosPerMinute;
      return true;
    case Unit::kMilliseconds:
      *part = {Part::kValue, micros_of_day % kMicrosPerMinute, 3, 0};
      return true;
    case Unit::kSecond:
      *part = {Part::kValue, micros_of_day % kMicrosPerMinute, 6, 0};
      return true;
    case Unit::kMinute:
      part->value = micros_of_day / kMicrosPerMinute % 60;
      return true;
    case Unit::kHour:
      part->value = micros_of_day / kMicrosPerHour;
      return true;
    default:
      return false;
  }
}

// Fields that only grow with time are infinite at infinity, the others are NULL there.
Part InfinitePart(Unit unit, bool minus) {
  switch (unit) {
    case Unit::kYear:
    case Unit::kDecade:
    case Unit::kCentury:
    case Unit::kMillennium:
    case Unit::kJulian:
    case Unit::kIsoYear:
    case Unit::kEpoch:
      return {minus ? Part::kMinusInfinity : Part::kInfinity, 0, 0, 0};
    default:
      return {Part::kNull, 0, 0, 0};
  }
}

Part PartOfTimestamp(View name, int64_t t, const TimeZone* zone) {
  const char* type = zone != nullptr ? kTimestamptzName : kTimestampName;
  Unit unit = UnitOf(name);
  bool of_zone =
      unit == Unit::kTimezone || unit == Unit::kTimezoneHour || unit == Unit::kTimezoneMinute;
  if (unit == Unit::kUnknown) BadUnit(name, type, unit);
  if (IsInfinite(t)) return InfinitePart(unit, t < 0);
  if (of_zone && zone == nullptr) BadUnit(name, type, unit);
  Part part;
  if (unit == Unit::kEpoch) {
    return {Part::kValue, static_cast<__int128>(t) + kPostgresEpochUnixSeconds * kMicrosPerSecond,
            6, 0};
  }
  int64_t offset = 0;
  if (zone != nullptr) offset = FieldsOf(t, zone).offset_seconds;
  if (of_zone) {
    part.value = unit == Unit::kTimezone       ? offset
                 : unit == Unit::kTimezoneHour ? offset / 3600
                                               : offset / 60 % 60;
    return part;
  }
  int64_t local = t + offset * kMicrosPerSecond;
  int64_t day = local / kMicrosPerDay - (local % kMicrosPerDay < 0);
  int64_t rest = local - day * kMicrosPerDay;
  if (unit == Unit::kJulian) return {Part::kJulianWithTime, day + kPostgresEpochJulian, 0, rest};
  if (!DatePart(unit, day, &part) && !TimePart(unit, rest, &part)) BadUnit(name, type, unit);
  return part;
}

Part PartOfDate(View name, int32_t date) {
  Unit unit = UnitOf(name);
  Part part;
  bool known = unit == Unit::kJulian || unit == Unit::kEpoch || DatePart(unit, 0, &part);
  if (!known) BadUnit(name, kDateName, unit);
  if (IsInfinite(date)) return InfinitePart(unit, date < 0);
  if (unit == Unit::kJulian)
    part.value = int64_t{date} + kPostgresEpochJulian;
  else if (unit == Unit::kEpoch)
    part.value = int64_t{date} * 86400 + kPostgresEpochUnixSeconds;
  else
    DatePart(unit, date, &part);
  return part;
}

Part PartOfTime(View name, int64_t time) {
  Unit unit = UnitOf(name);
  if (unit == Unit::kEpoch) return {Part::kValue, time, 6, 0};
  Part part;
  if (!TimePart(unit, time, &part)) BadUnit(name, kTimeName, unit);
  return part;
}

Part PartOfInterval(View name, const Interval& span) {
  Unit unit = UnitOf(name);
  Part part;
  int years = span.months / 12, months = span.months % 12;
  switch (unit) {
    case Unit::kDay:
      part.value = span.days;
      break;
    case Unit::kMonth:
      part.value = months;
      break;
    case Unit::kQuarter:
      part.value = months / 3 + 1;
      break;
    case Unit::kYear:
      part.value = years;
      break;
    case Unit::kDecade:
      part.value = years / 10;
      break;
    case Unit::kCentury:
      part.value = years / 100;
      break;
    case Unit::kMillennium:
      part.value = years / 1000;
      break;
    case Unit::kEpoch: {
      // A year counts 365.25 days.
      __int128 seconds = static_cast<__int128>(years) * 31557600 +
                         (int64_t{months} * 30 + span.days) * int64_t{86400};
      __int128 micros = seconds * kMicrosPerSecond + span.microseconds;
      part = {Part::kValue, micros, 6, 0};
      break;
    }
    default:
      if (!TimePart(unit, span.microseconds, &part)) BadUnit(name, kIntervalName, unit);
  }
  return part;
}

void StorePart(const KernelCall& call, size_t row, const Part& part, View* out) {
  Arena* arena = call.context->arena;
  switch (part.kind) {
    case Part::kNull:
      return SetNull(call, row);
    case Part::kInfinity:
      *out = NumericToWire(NumericInfinity(false), arena);
      return;
    case Part::kMinusInfinity:
      *out = NumericToWire(NumericInfinity(true), arena);
      return;
    case Part::kJulianWithTime: {
      Numeric share = NumericDivide(NumericFromInt(part.micros), NumericFromInt(kMicrosPerDay));
      *out = NumericToWire(NumericAdd(NumericFromInt(part.value), share), arena);
      return;
    }
    case Part::kValue:
      break;
  }
  // Decimals to whole base-10000 groups.
  __int128 mantissa = part.value;
  if (part.scale == 3) mantissa *= 10;
  if (part.scale == 6) mantissa *= 100;
  *out = StoreSmall(mantissa, -(part.scale + 3) / 4, part.scale, arena);
}

void StorePart(const KernelCall& call, size_t row, const Part& part, double* out) {
  switch (part.kind) {
    case Part::kNull:
      return SetNull(call, row);
    case Part::kInfinity:
      *out = INFINITY;
      return;
    case Part::kMinusInfinity:
      *out = -INFINITY;
      return;
    case Part::kJulianWithTime:
      *out = static_cast<double>(part.value) +
             (static_cast<double>(part.micros / kMicrosPerSecond) +
              static_cast<double>(part.micros % kMicrosPerSecond) / 1e6) /
                 86400.0;
      return;
    case Part::kValue:
      break;
  }
  if (part.scale == 0) {
    *out = static_cast<double>(part.value);
  } else if (part.scale == 3) {
    auto micros = static_cast<int64_t>(part.value);
    *out = static_cast<double>(micros / kMicrosPerSecond) * 1000.0 +
           static_cast<double>(micros % kMicrosPerSecond) / 1000.0;
  } else {
    *out = static_cast<double>(part.value) / 1e6;
  }
}

template <typename Out, typename In, typename Fn>
void ExtractRows(const KernelCall& call, Fn&& part_of) {
  Out* out = call.out->Data<Out>();
  ForEachRow(call, [&](size_t i) {
    StorePart(call, i, part_of(call.args[0]->At<View>(i), call.args[1]->At<In>(i)), &out[i]);
  });
}

// Where Postgres adds up a field in float8, in its order; NaN elsewhere.
double AddedUp(Unit unit, const Part& part) {
  if (unit != Unit::kSecond || part.kind != Part::kValue) return NAN;
  auto micros = static_cast<int64_t>(part.value);
  return static_cast<double>(micros / kMicrosPerSecond) +
         static_cast<double>(micros % kMicrosPerSecond) / 1e6;
}
double EpochAddedUp(const Interval& span) {
  double result = static_cast<double>(span.microseconds) / 1e6;
  result += 365.25 * 86400 * (span.months / 12);
  result += 30.0 * 86400 * (span.months % 12);
  return result + 86400.0 * span.days;
}
template <typename In, typename Fn>
void DatePartRows(const KernelCall& call, Fn&& part_of) {
  double* out = call.out->Data<double>();
  ForEachRow(call, [&](size_t i) {
    View name = call.args[0]->At<View>(i);
    const In& value = call.args[1]->At<In>(i);
    Part part = part_of(name, value);
    Unit unit = UnitOf(name);
    StorePart(call, i, part, &out[i]);
    double added = AddedUp(unit, part);
    if constexpr (std::is_same_v<In, Interval>) {
      if (unit == Unit::kEpoch) added = EpochAddedUp(value);
    }
    if (!std::isnan(added)) out[i] = added;
  });
}

const TimeZone& Zone(const KernelCall& call) {
  return ZoneOf(*call.context->settings);
}

void ExtractDate(const KernelCall& call) {
  ExtractRows<View, int32_t>(call, PartOfDate);
}
void ExtractTime(const KernelCall& call) {
  ExtractRows<View, int64_t>(call, PartOfTime);
}
void ExtractTimestamp(const KernelCall& call) {
  ExtractRows<View, int64_t>(
      call, [](View name, int64_t t) { return PartOfTimestamp(name, t, nullptr); });
}
void ExtractTimestamptz(const KernelCall& call) {
  const TimeZone* zone = &Zone(call);
  ExtractRows<View, int64_t>(
      call, [zone](View name, int64_t t) { return PartOfTimestamp(name, t, zone); });
}
void ExtractInterval(const KernelCall& call) {
  ExtractRows<View, Interval>(call, PartOfInterval);
}
void DatePartDate(const KernelCall& call) {  // by way of timestamp
  DatePartRows<int32_t>(call, [](View name, int32_t date) {
    return PartOfTimestamp(name, DateToTimestamp(date), nullptr);
  });
}
void DatePartTime(const KernelCall& call) {
  DatePartRows<int64_t>(call, PartOfTime);
}
void DatePartTimestamp(const KernelCall& call) {
  DatePartRows<int64_t>(call,
                        [](View name, int64_t t) { return PartOfTimestamp(name, t, nullptr); });
}
void DatePartTimestamptz(const KernelCall& call) {
  const TimeZone* zone = &Zone(call);
  DatePartRows<int64_t>(call,
                        [zone](View name, int64_t t) { return PartOfTimestamp(name, t, zone); });
}
void DatePartInterval(const KernelCall& call) {
  DatePartRows<Interval>(call, PartOfInterval);
}

// A wall clock time cut to the unit.
int64_t TruncateLocalUnchecked(View name, const char* type, int64_t local) {
  Unit unit = UnitOf(name);
  int64_t day = local / kMicrosPerDay - (local % kMicrosPerDay < 0);
  int64_t rest = local - day * kMicrosPerDay;
  int year, month, dom;
  JulianToDate(day + kPostgresEpochJulian, &year, &month, &dom);
  auto start_of = [](int y, int m) {
    return (int64_t{JulianDay(y, m, 1)} - kPostgresEpochJulian) * kMicrosPerDay;
  };
  switch (unit) {
    case Unit::kMicroseconds:
      return local;
    case Unit::kMilliseconds:
      return local - rest % 1000;
    case Unit::kSecond:
      return local - rest % kMicrosPerSecond;
    case Unit::kMinute:
      return local - rest % kMicrosPerMinute;
    case Unit::kHour:
      return local - rest % kMicrosPerHour;
    case Unit::kDay:
      return day * kMicrosPerDay;
    case Unit::kWeek:
      return (day - (WeekdayOf(day) + 6) % 7) * kMicrosPerDay;
    case Unit::kMonth:
      return start_of(year, month);
    case Unit::kQuarter:
      return start_of(year, (month - 1) / 3 * 3 + 1);
    case Unit::kYear:
      return start_of(year, 1);
    case Unit::kDecade:
      return start_of(year > 0 ? year / 10 * 10 : -((8 - (year - 1)) / 10) * 10, 1);
    case Unit::kCentury:
      return start_of(
          year > 0 ? (year + 99) / 100 * 100 - 99 : -((99 - (year - 1)) / 100) * 100 + 1, 1);
    case Unit::kMillennium:
      return start_of(
          year > 0 ? (year + 999) / 1000 * 1000 - 999 : -((999 - (year - 1)) / 1000) * 1000 + 1, 1);
    case Unit::kTimezone:
    case Unit::kTimezoneHour:
    case Unit::kTimezoneMinute:
      BadUnit(name, type, unit);
    default:
      BadUnit(name, type, Unit::kUnknown);
  }
}
int64_t TruncateLocal(View name, const char* type, int64_t local) {
  int64_t cut = TruncateLocalUnchecked(name, type, local);
  if (!IsValidTimestamp(cut)) Throw(sqlstate::kDatetimeFieldOverflow, "timestamp out of range");
  return cut;
}
int64_t TruncateInZone(View name, int64_t t, const TimeZone& zone) {
  if (IsInfinite(t)) return t;
  // The wall clock may be past the last timestamp, if the result is not.
  int64_t local = t + FieldsOf(t, &zone).offset_seconds * kMicrosPerSecond;
  int64_t cut = TruncateLocalUnchecked(name, kTimestamptzName, local);
  switch (UnitOf(name)) {
    // Within a day the offset is kept, so that a repeated hour stays itself.
    case Unit::kMicroseconds:
    case Unit::kMilliseconds:
    case Unit::kSecond:
    case Unit::kMinute:
    case Unit::kHour:
      return cut - (local - t);
    default:
      return LocalToTimestamptz(cut, zone);
  }
}
struct TruncateTimestamp {
  int64_t operator()(View name, int64_t t) const {
    return IsInfinite(t) ? t : TruncateLocal(name, kTimestampName, t);
  }
};
struct TruncateTimestamptz {
  int64_t operator()(const KernelCall& call, View name, int64_t t) const {
    return TruncateInZone(name, t, Zone(call));
  }
  int64_t operator()(const KernelCall&, View name, int64_t t, View zone) const {
    return IsInfinite(t) ? t : TruncateInZone(name, t, ZoneByName(zone));
  }
};
struct TruncateInterval {
  Interval operator()(View name, const Interval& span) const {
    Interval cut = span;
    auto cut_time = [&](int64_t unit) { cut.microseconds -= cut.microseconds % unit; };
    auto cut_months = [&](int unit) {
      cut.months -= cut.months % unit;
      cut.days = 0;
      cut.microseconds = 0;
    };
    Unit unit = UnitOf(name);
    switch (unit) {
      case Unit::kMicroseconds:
        break;
      case Unit::kMilliseconds:
        cut_time(1000);
        break;
      case Unit::kSecond:
        cut_time(kMicrosPerSecond);
        break;
      case Unit::kMinute:
        cut_time(kMicrosPerMinute);
        break;
      case Unit::kHour:
        cut_time(kMicrosPerHour);
        break;
      case Unit::kDay:
        cut.microseconds = 0;
        break;
      case Unit::kMonth:
        cut_months(1);
        break;
      case Unit::kQuarter:
        cut_months(3);
        break;
      case Unit::kYear:
        cut_months(12);
        break;
      case Unit::kDecade:
        cut_months(120);
        break;
      case Unit::kCentury:
        cut_months(1200);
        break;
      case Unit::kMillennium:
        cut_months(12000);
        break;
      case Unit::kWeek: {
        Error error = MakeError(sqlstate::kFeatureNotSupported,
                                "unit \"{}\" not supported for type interval", Lower(name));
        throw QueryError(error.Detail("Months usually have fractional weeks."));
      }
      case Unit::kTimezone:
      case Unit::kTimezoneHour:
      case Unit::kTimezoneMinute:
        BadUnit(name, kIntervalName, unit);
      default:
        BadUnit(name, kIntervalName, Unit::kUnknown);
    }
    return cut;
  }
};

constexpr Kernel kKernels[] = {
    {6199, "extract", true, ExtractDate},
    {6200, "extract", true, ExtractTime},
    {6202, "extract", true, ExtractTimestamp},
    {6203, "extract", true, ExtractTimestamptz},
    {6204, "extract", true, ExtractInterval},
    {1384, "date_part", true, DatePartDate},
    {1385, "date_part", true, DatePartTime},
    {2021, "date_part", true, DatePartTimestamp},
    {1171, "date_part", true, DatePartTimestamptz},
    {1172, "date_part", true, DatePartInterval},
    {2020, "date_trunc", true, Map<TruncateTimestamp, int64_t, View, int64_t>},
    {1217, "date_trunc", true, Map<TruncateTimestamptz, int64_t, View, int64_t>},
    {1284, "date_trunc", true, Map<TruncateTimestamptz, int64_t, View, int64_t, View>},
    {1218, "date_trunc", true, Map<TruncateInterval, Interval, View, Interval>},
};

}  // namespace

std::span<const Kernel> DateTimePartKernels() {
  return kKernels;
}

}  // namespace sluice
