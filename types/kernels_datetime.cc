// Arithmetic of dates, times, timestamps and intervals; now(); make_…; AT TIME ZONE.
#include <cmath>

#include "types/datetime.h"
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"

namespace sluice {
namespace {

using View = std::string_view;
using I = int32_t;
using L = int64_t;

const TimeZone& Zone(const KernelCall& call) {
  return ZoneOf(*call.context->settings);
}

int32_t CheckedDate(int64_t date) {
  if (!IsValidDate(date)) Throw(sqlstate::kDatetimeFieldOverflow, "date out of range");
  return static_cast<int32_t>(date);
}
struct DatePlusInt {
  I operator()(I date, I days) const {
    return IsInfinite(date) ? date : CheckedDate(int64_t{date} + days);
  }
};
struct IntPlusDate {
  I operator()(I days, I date) const { return DatePlusInt()(date, days); }
};
struct DateMinusInt {
  I operator()(I date, I days) const {
    return IsInfinite(date) ? date : CheckedDate(int64_t{date} - days);
  }
};
struct DateMinusDate {
  I operator()(I a, I b) const {
    if (IsInfinite(a) || IsInfinite(b))
      Throw(sqlstate::kDatetimeFieldOverflow, "cannot subtract infinite dates");
    return a - b;
  }
};
struct DatePlusTime {
  L operator()(I date, L time) const {
    int64_t t = DateToTimestamp(date);
    if (IsInfinite(t)) return t;
    t += time;
    if (!IsValidTimestamp(t)) Throw(sqlstate::kDatetimeFieldOverflow, "timestamp out of range");
    return t;
  }
};
struct TimePlusDate {
  L operator()(L time, I date) const { return DatePlusTime()(date, time); }
};

struct StampPlusSpan {
  L operator()(L t, const Interval& span) const { return TimestampPlusInterval(t, span); }
};
struct StampMinusSpan {
  L operator()(L t, const Interval& span) const {
    return TimestampPlusInterval(t, NegateInterval(span));
  }
};
struct StamptzPlusSpan {
  L operator()(const KernelCall& call, L t, const Interval& span) const {
    return TimestamptzPlusInterval(t, span, Zone(call));
  }
};
struct StamptzMinusSpan {
  L operator()(const KernelCall& call, L t, const Interval& span) const {
    return TimestamptzPlusInterval(t, NegateInterval(span), Zone(call));
  }
};
struct DatePlusSpan {
  L operator()(I date, const Interval& span) const {
    return TimestampPlusInterval(DateToTimestamp(date), span);
  }
};
struct DateMinusSpan {
  L operator()(I date, const Interval& span) const {
    return DatePlusSpan()(date, NegateInterval(span));
  }
};
struct SpanPlusStamp {
  L operator()(const Interval& span, L t) const { return TimestampPlusInterval(t, span); }
};
struct SpanPlusStamptz {
  L operator()(const KernelCall& call, const Interval& span, L t) const {
    return StamptzPlusSpan()(call, t, span);
  }
};
struct SpanPlusDate {
  L operator()(const Interval& span, I date) const { return DatePlusSpan()(date, span); }
};
struct StampMinusStamp {
  Interval operator()(L a, L b) const {
    if (IsInfinite(a) || IsInfinite(b)) {
      Throw(sqlstate::kDatetimeFieldOverflow, "cannot subtract infinite timestamps");
    }
    // Beyond 292,000 years Postgres 15 wraps around, and so do we.
    auto difference = static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    return JustifyHours({difference, 0, 0});
  }
};

int64_t WithinDay(int64_t time) {
  time %= kMicrosPerDay;
  return time < 0 ? time + kMicrosPerDay : time;
}
struct TimePlusSpan {
  L operator()(L time, const Interval& span) const {
    return WithinDay(time + span.microseconds % kMicrosPerDay);
  }
};
struct TimeMinusSpan {
  L operator()(L time, const Interval& span) const {
    return WithinDay(time - span.microseconds % kMicrosPerDay);
  }
};
struct SpanPlusTime {
  L operator()(const Interval& span, L time) const { return TimePlusSpan()(time, span); }
};
struct TimeMinusTime {
  Interval operator()(L a, L b) const { return {a - b, 0, 0}; }
};

struct SpanPlus {
  Interval operator()(const Interval& a, const Interval& b) const { return AddIntervals(a, b); }
};
struct SpanMinus {
  Interval operator()(const Interval& a, const Interval& b) const {
    return SubtractIntervals(a, b);
  }
};
struct SpanNegate {
  Interval operator()(const Interval& a) const { return NegateInterval(a); }
};
struct SpanTimes {
  Interval operator()(const Interval& a, double b) const { return MultiplyInterval(a, b); }
};
struct TimesSpan {
  Interval operator()(double b, const Interval& a) const { return MultiplyInterval(a, b); }
};
struct SpanDivide {
  Interval operator()(const Interval& a, double b) const { return DivideInterval(a, b); }
};

// Days beyond 30 become months.
Interval JustifyDays(Interval span) {
  int32_t months = span.days / 30;
  span.days -= months * 30;
  span.months += months;
  if (span.months > 0 && span.days < 0)
    span.days += 30, span.months--;
  else if (span.months < 0 && span.days > 0)
    span.days -= 30, span.months++;
  return span;
}
Interval JustifyAll(Interval span) {
  // All three parts get one sign.
  int64_t days = span.days + span.microseconds / kMicrosPerDay;
  span.microseconds %= kMicrosPerDay;
  span.months += static_cast<int32_t>(days / 30);
  days %= 30;
  auto sign = [](int64_t x) { return (x > 0) - (x < 0); };
  if (span.months > 0 && (days < 0 || (days == 0 && span.microseconds < 0)))
    days += 30, span.months--;
  else if (span.months < 0 && (days > 0 || (days == 0 && span.microseconds > 0)))
    days -= 30, span.months++;
  if (sign(days) > 0 && span.microseconds < 0)
    span.microseconds += kMicrosPerDay, days--;
  else if (sign(days) < 0 && span.microseconds > 0)
    span.microseconds -= kMicrosPerDay, days++;
  span.days = static_cast<int32_t>(days);
  return span;
}
struct JustifyH {
  Interval operator()(const Interval& span) const { return JustifyHours(span); }
};
struct JustifyD {
  Interval operator()(const Interval& span) const { return JustifyDays(span); }
};
struct JustifyI {
  Interval operator()(const Interval& span) const { return JustifyAll(span); }
};

// age() takes infinity for the moment that its bits would be, as Postgres 15 does; -infinity is an
// error.
int64_t AgeOperand(int64_t t) {
  if (t == kTimestampMinusInfinity)
    Throw(sqlstate::kDatetimeFieldOverflow, "timestamp out of range");
  return t;
}
int64_t AgeOperand(int64_t t, const TimeZone& zone) {
  int64_t offset = FieldsOf(AgeOperand(t), &zone).offset_seconds;
  int64_t local = 0;
  if (__builtin_add_overflow(t, offset * kMicrosPerSecond, &local)) {
    Throw(sqlstate::kDatetimeFieldOverflow, "timestamp out of range");
  }
  return local;
}
struct AgeOfStamps {
  Interval operator()(L a, L b) const { return TimestampAge(AgeOperand(a), AgeOperand(b)); }
};
struct AgeOfStamptzs {
  Interval operator()(const KernelCall& call, L a, L b) const {
    return TimestampAge(AgeOperand(a, Zone(call)), AgeOperand(b, Zone(call)));
  }
};
// Against the current date's midnight.
int64_t LocalMidnight(const KernelCall& call) {
  return DateToTimestamp(
      TimestampToDate(TimestamptzToLocal(call.context->settings->now, Zone(call))));
}
struct AgeOfStamp {
  Interval operator()(const KernelCall& call, L a) const {
    return TimestampAge(LocalMidnight(call), AgeOperand(a));
  }
};
struct AgeOfStamptz {
  Interval operator()(const KernelCall& call, L a) const {
    return TimestampAge(LocalMidnight(call), AgeOperand(a, Zone(call)));
  }
};

struct Now {
  L operator()(const KernelCall& call) const { return call.context->settings->now; }
};
struct StatementNow {
  L operator()(const KernelCall& call) const { return call.context->settings->statement_now; }
};

struct DateIsFinite {
  bool operator()(I date) const { return !IsInfinite(date); }
};
struct StampIsFinite {
  bool operator()(L t) const { return !IsInfinite(t); }
};
struct SpanIsFinite {
  bool operator()(const Interval&) const { return true; }
};

int64_t MakeDay(int32_t year, int32_t month, int32_t day, bool of_timestamp) {
  int32_t y = year < 0 ? year + 1 : year;   // there is no year 0
  int32_t shown = of_timestamp ? year : y;  // in messages
  bool bad = year == 0 || month < 1 || month > 12 || day < 1 ||
             (month >= 1 && month <= 12 && day > DaysInMonth(y, month));
  if (bad) {
    Throw(sqlstate::kDatetimeFieldOverflow, "date field value out of range: {}-{:02}-{:02}", shown,
          month, day);
  }
  int64_t date = int64_t{JulianDay(y, month, day)} - kPostgresEpochJulian;
  if (y > 5874898 || y < -4800 || !IsValidDate(date)) {
    Throw(sqlstate::kDatetimeFieldOverflow, "date out of range: {}-{:02}-{:02}", shown, month, day);
  }
  return date;
}
int64_t MakeTimeOfDay(int32_t hour, int32_t minute, double second) {
  bool bad = hour < 0 || minute < 0 || minute > 59 || std::isnan(second) || second < 0 ||
             second > 60 || hour > 24 || (hour == 24 && (minute > 0 || second > 0));
  if (bad) {
    char text[64];
    snprintf(text, sizeof text, "%d:%02d:%02g", hour, minute, second);
    Throw(sqlstate::kDatetimeFieldOverflow, "time field value out of range: {}", text);
  }
  return ((hour * 60LL + minute) * 60) * kMicrosPerSecond +
         static_cast<int64_t>(std::rint(second * 1e6));
}
struct MakeDate {
  I operator()(I y, I m, I d) const { return static_cast<I>(MakeDay(y, m, d, false)); }
};
struct MakeTime {
  L operator()(I h, I m, double s) const { return MakeTimeOfDay(h, m, s); }
};
struct MakeTimestamp {
  L operator()(I y, I mon, I d, I h, I m, double s) const {
    __int128 t =
        static_cast<__int128>(MakeDay(y, mon, d, true)) * kMicrosPerDay + MakeTimeOfDay(h, m, s);
    if (t < kTimestampMin || t >= kTimestampEnd)
      Throw(sqlstate::kDatetimeFieldOverflow, "timestamp out of range");
    return static_cast<int64_t>(t);
  }
};
struct MakeInterval {
  Interval operator()(I years, I months, I weeks, I days, I hours, I minutes,
                      double seconds) const {
    int64_t total_months = int64_t{years} * 12 + months, total_days = int64_t{weeks} * 7 + days;
    __int128 micros = static_cast<__int128>(hours) * kMicrosPerHour +
                      static_cast<__int128>(minutes) * kMicrosPerMinute;
    bool bad = std::isnan(seconds) || std::isinf(seconds) || std::abs(seconds) > 9e12 ||
               total_months > INT32_MAX || total_months < INT32_MIN || total_days > INT32_MAX ||
               total_days < INT32_MIN;
    if (bad) Throw(sqlstate::kDatetimeFieldOverflow, "interval out of range");
    micros += static_cast<int64_t>(std::rint(seconds * 1e6));
    return {static_cast<int64_t>(micros), static_cast<I>(total_days), static_cast<I>(total_months)};
  }
};
struct EpochToTimestamptz {
  L operator()(double seconds) const {
    if (std::isnan(seconds)) Throw(sqlstate::kDatetimeFieldOverflow, "timestamp cannot be NaN");
    if (std::isinf(seconds)) return seconds > 0 ? kTimestampInfinity : kTimestampMinusInfinity;
    double micros = std::rint((seconds - static_cast<double>(kPostgresEpochUnixSeconds)) * 1e6);
    bool in_range =
        micros >= static_cast<double>(kTimestampMin) && micros < static_cast<double>(kTimestampEnd);
    if (!in_range) {
      char text[64];
      snprintf(text, sizeof text, "%g", seconds);
      Throw(sqlstate::kDatetimeFieldOverflow, "timestamp out of range: \"{}\"", text);
    }
    return static_cast<int64_t>(micros);
  }
};

struct StamptzAtZone {
  L operator()(View zone, L t) const {
    return IsInfinite(t) ? t : TimestamptzToLocal(t, ZoneByName(zone));
  }
};
struct StampAtZone {
  L operator()(View zone, L t) const {
    return IsInfinite(t) ? t : LocalToTimestamptz(t, ZoneByName(zone));
  }
};
int64_t ShiftBy(const KernelCall& call, int64_t t, const Interval& zone, int sign) {
  if (IsInfinite(t)) return t;
  if (zone.months != 0 || zone.days != 0) {
    std::string text;
    AppendIntervalText(zone, *call.context->settings, &text);
    Throw(sqlstate::kInvalidParameterValue,
          "interval time zone \"{}\" must not include months or days", text);
  }
  // Postgres keeps the offset in 32 bits.
  int64_t seconds = static_cast<int32_t>(zone.microseconds / kMicrosPerSecond);
  int64_t shifted = t + sign * seconds * kMicrosPerSecond;
  if (!IsValidTimestamp(shifted)) Throw(sqlstate::kDatetimeFieldOverflow, "timestamp out of range");
  return shifted;
}
struct StamptzAtOffset {
  L operator()(const KernelCall& call, const Interval& zone, L t) const {
    return ShiftBy(call, t, zone, 1);
  }
};
struct StampAtOffset {
  L operator()(const KernelCall& call, const Interval& zone, L t) const {
    return ShiftBy(call, t, zone, -1);
  }
};

struct DateLarger {
  I operator()(I a, I b) const { return std::max(a, b); }
};
struct DateSmaller {
  I operator()(I a, I b) const { return std::min(a, b); }
};

constexpr Kernel kKernels[] = {
    {1141, "date_pli", true, Map<DatePlusInt, I, I, I>},
    {2550, "integer_pl_date", true, Map<IntPlusDate, I, I, I>},
    {1142, "date_mii", true, Map<DateMinusInt, I, I, I>},
    {1140, "date_mi", true, Map<DateMinusDate, I, I, I>},
    {1272, "datetime_pl", true, Map<DatePlusTime, L, I, L>},
    {1296, "timedate_pl", true, Map<TimePlusDate, L, L, I>},
    {2071, "date_pl_interval", true, Map<DatePlusSpan, L, I, Interval>},
    {2072, "date_mi_interval", true, Map<DateMinusSpan, L, I, Interval>},
    {2032, "timestamp_pl_interval", true, Map<StampPlusSpan, L, L, Interval>},
    {2033, "timestamp_mi_interval", true, Map<StampMinusSpan, L, L, Interval>},
    {1189, "timestamptz_pl_interval", true, Map<StamptzPlusSpan, L, L, Interval>},
    {1190, "timestamptz_mi_interval", true, Map<StamptzMinusSpan, L, L, Interval>},
    {2546, "interval_pl_date", true, Map<SpanPlusDate, L, Interval, I>},
    {2548, "interval_pl_timestamp", true, Map<SpanPlusStamp, L, Interval, L>},
    {2549, "interval_pl_timestamptz", true, Map<SpanPlusStamptz, L, Interval, L>},
    {2031, "timestamp_mi", true, Map<StampMinusStamp, Interval, L, L>},
    {1188, "timestamptz_mi", true, Map<StampMinusStamp, Interval, L, L>},
    {1747, "time_pl_interval", true, Map<TimePlusSpan, L, L, Interval>},
    {1748, "time_mi_interval", true, Map<TimeMinusSpan, L, L, Interval>},
    {1848, "interval_pl_time", true, Map<SpanPlusTime, L, Interval, L>},
    {1690, "time_mi_time", true, Map<TimeMinusTime, Interval, L, L>},
    {1169, "interval_pl", true, Map<SpanPlus, Interval, Interval, Interval>},
    {1170, "interval_mi", true, Map<SpanMinus, Interval, Interval, Interval>},
    {1168, "interval_um", true, Map<SpanNegate, Interval, Interval>},
    {1618, "interval_mul", true, Map<SpanTimes, Interval, Interval, double>},
    {1624, "mul_d_interval", true, Map<TimesSpan, Interval, double, Interval>},
    {1326, "interval_div", true, Map<SpanDivide, Interval, Interval, double>},
    {1175, "justify_hours", true, Map<JustifyH, Interval, Interval>},
    {1295, "justify_days", true, Map<JustifyD, Interval, Interval>},
    {2711, "justify_interval", true, Map<JustifyI, Interval, Interval>},
    {2058, "age", true, Map<AgeOfStamps, Interval, L, L>},
    {1199, "age", true, Map<AgeOfStamptzs, Interval, L, L>},
    {2059, "age", true, Map<AgeOfStamp, Interval, L>},
    {1386, "age", true, Map<AgeOfStamptz, Interval, L>},
    {1299, "now", true, Map<Now, L>},
    {2647, "transaction_timestamp", true, Map<Now, L>},
    {2648, "statement_timestamp", true, Map<StatementNow, L>},
    {1373, "isfinite", true, Map<DateIsFinite, uint8_t, I>},
    {1389, "isfinite", true, Map<StampIsFinite, uint8_t, L>},
    {2048, "isfinite", true, Map<StampIsFinite, uint8_t, L>},
    {1390, "isfinite", true, Map<SpanIsFinite, uint8_t, Interval>},
    {3846, "make_date", true, Map<MakeDate, I, I, I, I>},
    {3847, "make_time", true, Map<MakeTime, L, I, I, double>},
    {3461, "make_timestamp", true, Map<MakeTimestamp, L, I, I, I, I, I, double>},
    {3464, "make_interval", true, Map<MakeInterval, Interval, I, I, I, I, I, I, double>},
    {1158, "to_timestamp", true, Map<EpochToTimestamptz, L, double>},
    {1159, "timezone", true, Map<StamptzAtZone, L, View, L>},
    {2069, "timezone", true, Map<StampAtZone, L, View, L>},
    {1026, "timezone", true, Map<StamptzAtOffset, L, Interval, L>},
    {2070, "timezone", true, Map<StampAtOffset, L, Interval, L>},
    {1138, "date_larger", true, Map<DateLarger, I, I, I>},
    {1139, "date_smaller", true, Map<DateSmaller, I, I, I>},
};

}  // namespace

std::span<const Kernel> DateTimeKernels() {
  return kKernels;
}

}  // namespace sluice
