// date, time, timestamp, timestamptz and interval: calendar, text formats, arithmetic. Days count
// from 2000-01-01, microseconds from its midnight (UTC for timestamptz); the largest and smallest
// values are ±infinity.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "types/column.h"
#include "types/kernel.h"
#include "types/time_zone.h"

namespace sluice {

enum class DateStyle : int8_t { kIso = 0, kPostgres, kSql, kGerman };
enum class DateOrder : int8_t { kYmd = 0, kMdy, kDmy };
enum class IntervalStyle : int8_t { kPostgres = 0, kPostgresVerbose, kSqlStandard, kIso8601 };

inline constexpr int32_t kDateInfinity = INT32_MAX, kDateMinusInfinity = INT32_MIN;
inline constexpr int64_t kTimestampInfinity = INT64_MAX, kTimestampMinusInfinity = INT64_MIN;
inline constexpr int kUnixEpochJulian = 2440588, kPostgresEpochJulian = 2451545;
inline constexpr int64_t kMicrosPerSecond = 1'000'000, kMicrosPerMinute = 60 * kMicrosPerSecond,
                         kMicrosPerHour = 60 * kMicrosPerMinute,
                         kMicrosPerDay = 24 * kMicrosPerHour;
inline constexpr int64_t kPostgresEpochUnixSeconds = 946684800;
// Ranges: from 4713-11-24 BC (Julian day 0); ends are exclusive.
inline constexpr int32_t kDateMin = -kPostgresEpochJulian,
                         kDateEnd = 2147483494 - kPostgresEpochJulian;
inline constexpr int64_t kTimestampMin = -211813488000000000, kTimestampEnd = 9223371331200000000;

constexpr bool IsInfinite(int32_t date) {
  return date == kDateInfinity || date == kDateMinusInfinity;
}
constexpr bool IsInfinite(int64_t timestamp) {
  return timestamp == kTimestampInfinity || timestamp == kTimestampMinusInfinity;
}
constexpr bool IsValidDate(int64_t date) {
  return date >= kDateMin && date < kDateEnd;
}
constexpr bool IsValidTimestamp(int64_t timestamp) {
  return timestamp >= kTimestampMin && timestamp < kTimestampEnd;
}

// Proleptic Gregorian; year 0 is 1 BC.
int JulianDay(int year, int month, int day);
void JulianToDate(int64_t julian_day, int* year, int* month, int* day);
int DaysInMonth(int year, int month);
inline int WeekdayOf(int64_t date) {
  return static_cast<int>(((date + 6) % 7 + 7) % 7);
}  // 0 = Sunday

struct DateTimeFields {
  int year, month, day, hour, minute, second, microsecond;
  int32_t offset_seconds;          // east of UTC
  const TimeZone::Period* period;  // nullptr: without a zone
};
// REQUIRES: finite. zone nullptr: timestamp without time zone.
DateTimeFields FieldsOf(int64_t timestamp, const TimeZone* zone);
// Instant ↔ wall clock of the zone; infinities stay. 22008 when out of range.
int64_t TimestamptzToLocal(int64_t instant, const TimeZone& zone);
int64_t LocalToTimestamptz(int64_t local, const TimeZone& zone);
// The session's zone. 22023 if there is none of that name.
const TimeZone& ZoneOf(const SessionSettings& settings);
// A zone from the text argument of AT TIME ZONE and the like: name, abbreviation or POSIX string.
// 22023. For an abbreviation or offset, a fixed zone.
const TimeZone& ZoneByName(std::string_view name);

// 22008 where the result is out of range.
int64_t DateToTimestamp(int32_t date);
int64_t DateToTimestamptz(int32_t date, const TimeZone& zone);
int32_t TimestampToDate(int64_t timestamp);

// --- text ---
void AppendDateText(int32_t date, const SessionSettings& settings, std::string* out);
void AppendTimeText(int64_t time, std::string* out);
void AppendTimestampText(int64_t timestamp, const SessionSettings& settings, std::string* out);
void AppendTimestamptzText(int64_t timestamp, const SessionSettings& settings, std::string* out);
void AppendIntervalText(const Interval& interval, const SessionSettings& settings,
                        std::string* out);
// 22007, 22008, 22009, 22023. typmod: fractional digits of seconds, -1 for all.
int32_t ParseDate(std::string_view text, const SessionSettings& settings);
int64_t ParseTime(std::string_view text, int32_t typmod, const SessionSettings& settings);
int64_t ParseTimestamp(std::string_view text, int32_t typmod, const SessionSettings& settings);
int64_t ParseTimestamptz(std::string_view text, int32_t typmod, const SessionSettings& settings);
Interval ParseInterval(std::string_view text, int32_t typmod, const SessionSettings& settings);

int64_t RoundTimestampTo(int64_t timestamp, int32_t typmod);
int64_t RoundTimeTo(int64_t time, int32_t typmod);
void ApplyIntervalTypmod(Interval* interval, int32_t typmod);

// --- arithmetic; 22008 when out of range ---
Interval AddIntervals(const Interval& a, const Interval& b);
Interval SubtractIntervals(const Interval& a, const Interval& b);
Interval NegateInterval(const Interval& a);
Interval MultiplyInterval(const Interval& a, double factor);
Interval DivideInterval(const Interval& a, double divisor);  // 22012
Interval JustifyHours(Interval interval);
int64_t TimestampPlusInterval(int64_t timestamp, const Interval& interval);
int64_t TimestamptzPlusInterval(int64_t timestamp, const Interval& interval, const TimeZone& zone);
// A month is 30 days, a day 24 hours: what interval's order and equality go by.
__int128 IntervalSpan(const Interval& interval);
Interval TimestampAge(int64_t later, int64_t earlier);

}  // namespace sluice
