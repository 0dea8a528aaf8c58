// interval: typmods, and arithmetic with timestamps.
#include <cmath>

#include "common/error.h"
#include "types/datetime.h"

namespace sluice {
namespace {

constexpr int kMonthsPerYear = 12, kDaysPerMonth = 30;

[[noreturn]] void OutOfRange() {
  Throw(sqlstate::kDatetimeFieldOverflow, "interval out of range");
}

int32_t CheckedInt(int64_t value) {
  if (value > INT32_MAX || value < INT32_MIN) OutOfRange();
  return static_cast<int32_t>(value);
}

// As Postgres rounds where a product of floats should be whole seconds to the microsecond.
double RoundToMicro(double seconds) {
  return std::rint(seconds * 1e6) / 1e6;
}

}  // namespace

void ApplyIntervalTypmod(Interval* interval, int32_t typmod) {
  if (typmod < 0) return;
  constexpr int32_t kMonthBit = 1 << 1, kYearBit = 1 << 2, kDayBit = 1 << 3, kHourBit = 1 << 10,
                    kMinuteBit = 1 << 11, kSecondBit = 1 << 12;
  int32_t range = (typmod >> 16) & 0x7FFF, precision = typmod & 0xFFFF;
  int64_t& t = interval->microseconds;
  if (range != 0x7FFF) {
    // Only what is smaller than the last field is cut off.
    if (range & kSecondBit) {
    } else if (range & kMinuteBit) {
      t = t / kMicrosPerMinute * kMicrosPerMinute;
    } else if (range & kHourBit) {
      t = t / kMicrosPerHour * kMicrosPerHour;
    } else if (range & kDayBit) {
      t = 0;
    } else if (range & kMonthBit) {
      t = 0;
      interval->days = 0;
    } else if (range & kYearBit) {
      t = 0;
      interval->days = 0;
      interval->months = interval->months / kMonthsPerYear * kMonthsPerYear;
    }
  }
  if (precision != 0xFFFF) t = RoundTimeTo(t, precision);
}

Interval AddIntervals(const Interval& a, const Interval& b) {
  Interval sum;
  if (__builtin_add_overflow(a.months, b.months, &sum.months) ||
      __builtin_add_overflow(a.days, b.days, &sum.days) ||
      __builtin_add_overflow(a.microseconds, b.microseconds, &sum.microseconds)) {
    OutOfRange();
  }
  return sum;
}

Interval SubtractIntervals(const Interval& a, const Interval& b) {
  Interval difference;
  if (__builtin_sub_overflow(a.months, b.months, &difference.months) ||
      __builtin_sub_overflow(a.days, b.days, &difference.days) ||
      __builtin_sub_overflow(a.microseconds, b.microseconds, &difference.microseconds)) {
    OutOfRange();
  }
  return difference;
}

Interval NegateInterval(const Interval& a) {
  if (a.months == INT32_MIN || a.days == INT32_MIN || a.microseconds == INT64_MIN) OutOfRange();
  return {-a.microseconds, -a.days, -a.months};
}

namespace {

// months and days scaled to floats; what is left of each cascades down.
Interval Cascade(double months, double days, double micros) {
  auto checked = [](double value) {
    if (std::isnan(value) || value > INT32_MAX || value < INT32_MIN) OutOfRange();
    return static_cast<int32_t>(value);
  };
  Interval result;
  result.months = checked(months);
  result.days = checked(days);
  double month_rest_days = RoundToMicro((months - result.months) * kDaysPerMonth);
  double seconds = (days - result.days + month_rest_days - std::trunc(month_rest_days)) * 86400.0;
  seconds = RoundToMicro(seconds);
  // Rounding may have made whole days of the seconds.
  if (std::abs(seconds) >= 86400.0) {
    result.days = CheckedInt(int64_t{result.days} + static_cast<int64_t>(seconds / 86400.0));
    seconds -= static_cast<double>(static_cast<int64_t>(seconds / 86400.0)) * 86400.0;
  }
  result.days = CheckedInt(int64_t{result.days} + static_cast<int64_t>(month_rest_days));
  double total = std::rint(micros + seconds * 1e6);
  if (std::isnan(total) || !(total >= -9223372036854775808.0 && total < 9223372036854775808.0))
    OutOfRange();
  result.microseconds = static_cast<int64_t>(total);
  return result;
}

}  // namespace

Interval MultiplyInterval(const Interval& a, double factor) {
  return Cascade(a.months * factor, a.days * factor, static_cast<double>(a.microseconds) * factor);
}

Interval DivideInterval(const Interval& a, double divisor) {
  if (divisor == 0) Throw(sqlstate::kDivisionByZero, "division by zero");
  return Cascade(a.months / divisor, a.days / divisor,
                 static_cast<double>(a.microseconds) / divisor);
}

Interval JustifyHours(Interval interval) {
  int64_t whole = interval.microseconds / kMicrosPerDay;
  interval.microseconds -= whole * kMicrosPerDay;
  interval.days = CheckedInt(interval.days + whole);
  if (interval.days > 0 && interval.microseconds < 0) {
    interval.microseconds += kMicrosPerDay;
    interval.days--;
  } else if (interval.days < 0 && interval.microseconds > 0) {
    interval.microseconds -= kMicrosPerDay;
    interval.days++;
  }
  return interval;
}

__int128 IntervalSpan(const Interval& interval) {
  __int128 days = static_cast<__int128>(interval.months) * kDaysPerMonth + interval.days;
  return days * kMicrosPerDay + interval.microseconds;
}

namespace {

int64_t PlusMonthsAndDays(int64_t local, int32_t months, int32_t days) {
  auto out_of_range = [] { Throw(sqlstate::kDatetimeFieldOverflow, "timestamp out of range"); };
  DateTimeFields f = FieldsOf(local, nullptr);
  int64_t time =
      local - (int64_t{JulianDay(f.year, f.month, f.day)} - kPostgresEpochJulian) * kMicrosPerDay;
  int64_t month = int64_t{f.year} * kMonthsPerYear + (f.month - 1) + months;
  int64_t year = month / kMonthsPerYear - (month % kMonthsPerYear < 0);
  f.month = static_cast<int>(month - year * kMonthsPerYear) + 1;
  if (year < -4800 || year > 300000) out_of_range();
  f.day = std::min(f.day, DaysInMonth(static_cast<int>(year), f.month));
  int64_t day =
      int64_t{JulianDay(static_cast<int>(year), f.month, f.day)} - kPostgresEpochJulian + days;
  __int128 sum = static_cast<__int128>(day) * kMicrosPerDay + time;
  if (sum < kTimestampMin || sum >= kTimestampEnd) out_of_range();
  return static_cast<int64_t>(sum);
}

}  // namespace

int64_t TimestampPlusInterval(int64_t timestamp, const Interval& interval) {
  if (IsInfinite(timestamp)) return timestamp;
  if (interval.months != 0 || interval.days != 0) {
    timestamp = PlusMonthsAndDays(timestamp, interval.months, interval.days);
  }
  if (__builtin_add_overflow(timestamp, interval.microseconds, &timestamp) ||
      !IsValidTimestamp(timestamp)) {
    Throw(sqlstate::kDatetimeFieldOverflow, "timestamp out of range");
  }
  return timestamp;
}

int64_t TimestamptzPlusInterval(int64_t timestamp, const Interval& interval, const TimeZone& zone) {
  if (IsInfinite(timestamp)) return timestamp;
  // Months and days are added on the wall clock, one after the other.
  if (interval.months != 0) {
    timestamp = LocalToTimestamptz(
        PlusMonthsAndDays(TimestamptzToLocal(timestamp, zone), interval.months, 0), zone);
  }
  if (interval.days != 0) {
    timestamp = LocalToTimestamptz(
        PlusMonthsAndDays(TimestamptzToLocal(timestamp, zone), 0, interval.days), zone);
  }
  return TimestampPlusInterval(timestamp, {interval.microseconds, 0, 0});
}

Interval TimestampAge(int64_t later, int64_t earlier) {
  bool negative = later < earlier;
  DateTimeFields a = FieldsOf(later, nullptr), b = FieldsOf(earlier, nullptr);
  int64_t sign = negative ? -1 : 1;
  int64_t micros = sign * (a.microsecond - b.microsecond), seconds = sign * (a.second - b.second);
  int64_t minutes = sign * (a.minute - b.minute), hours = sign * (a.hour - b.hour);
  int64_t days = sign * (a.day - b.day), months = sign * (a.month - b.month);
  int64_t years = sign * (a.year - b.year);
  auto borrow = [](int64_t* small, int64_t* large, int64_t base) {
    while (*small < 0) {
      *small += base;
      (*large)--;
    }
  };
  borrow(&micros, &seconds, kMicrosPerSecond);
  borrow(&seconds, &minutes, 60);
  borrow(&minutes, &hours, 60);
  borrow(&hours, &days, 24);
  // The days of a month borrowed are those of the earlier time's month.
  const DateTimeFields& start = negative ? a : b;
  borrow(&days, &months, DaysInMonth(start.year, start.month));
  borrow(&months, &years, kMonthsPerYear);
  int64_t time =
      hours * kMicrosPerHour + minutes * kMicrosPerMinute + seconds * kMicrosPerSecond + micros;
  return {sign * time, static_cast<int32_t>(sign * days),
          static_cast<int32_t>(sign * (years * kMonthsPerYear + months))};
}

}  // namespace sluice
