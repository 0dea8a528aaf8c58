// Calendar, conversions between dates and timestamps, and their text output.
#include "types/datetime.h"

#include "common/error.h"

namespace sluice {
namespace {

constexpr const char* kMonthNames[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr const char* kDayNames[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

[[noreturn]] void TimestampOutOfRange() {
  Throw(sqlstate::kDatetimeFieldOverflow, "timestamp out of range");
}

int64_t FloorDivide(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

void AppendPadded(int64_t value, int width, std::string* out) {
  if (width == 2 && value < 100) {  // most fields
    char two[2] = {static_cast<char>('0' + value / 10), static_cast<char>('0' + value % 10)};
    out->append(two, 2);
    return;
  }
  char digits[20];
  int count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value > 0);
  while (count < width) digits[count++] = '0';
  while (count > 0) out->push_back(digits[--count]);
}

void AppendFraction(int microsecond, std::string* out) {
  if (microsecond == 0) return;
  out->push_back('.');
  AppendPadded(microsecond, 6, out);
  while (out->back() == '0') out->pop_back();
}

void AppendClock(int hour, int minute, int second, int microsecond, std::string* out) {
  AppendPadded(hour, 2, out);
  out->push_back(':');
  AppendPadded(minute, 2, out);
  out->push_back(':');
  AppendPadded(second, 2, out);
  AppendFraction(microsecond, out);
}

void AppendOffset(int32_t offset, std::string* out) {
  out->push_back(offset < 0 ? '-' : '+');
  offset = std::abs(offset);
  AppendPadded(offset / 3600, 2, out);
  if (offset % 3600 != 0) {
    out->push_back(':');
    AppendPadded(offset / 60 % 60, 2, out);
    if (offset % 60 != 0) {
      out->push_back(':');
      AppendPadded(offset % 60, 2, out);
    }
  }
}

int ShownYear(int year) {
  return year > 0 ? year : 1 - year;
}

// Separated numbers; day and month in the style's order.
void AppendNumericDate(const DateTimeFields& f, DateStyle style, DateOrder order,
                       std::string* out) {
  if (style == DateStyle::kIso) {
    AppendPadded(ShownYear(f.year), 4, out);
    out->push_back('-');
    AppendPadded(f.month, 2, out);
    out->push_back('-');
    AppendPadded(f.day, 2, out);
    return;
  }
  char separator = style == DateStyle::kGerman ? '.' : style == DateStyle::kSql ? '/' : '-';
  bool day_first = style == DateStyle::kGerman || order == DateOrder::kDmy;
  AppendPadded(day_first ? f.day : f.month, 2, out);
  out->push_back(separator);
  AppendPadded(day_first ? f.month : f.day, 2, out);
  out->push_back(separator);
  AppendPadded(ShownYear(f.year), 4, out);
}

void AppendFields(const DateTimeFields& f, int64_t local_day, const SessionSettings& settings,
                  std::string* out) {
  auto style = static_cast<DateStyle>(settings.date_style);
  auto order = static_cast<DateOrder>(settings.date_order);
  if (style == DateStyle::kPostgres) {
    *out += kDayNames[WeekdayOf(local_day)];
    out->push_back(' ');
    std::string day;
    AppendPadded(f.day, 2, &day);
    const char* month = kMonthNames[f.month - 1];
    *out += order == DateOrder::kDmy ? day + " " + month : std::string(month) + " " + day;
    out->push_back(' ');
    AppendClock(f.hour, f.minute, f.second, f.microsecond, out);
    out->push_back(' ');
    AppendPadded(ShownYear(f.year), 4, out);
  } else {
    AppendNumericDate(f, style, order, out);
    out->push_back(' ');
    AppendClock(f.hour, f.minute, f.second, f.microsecond, out);
  }
  if (f.period != nullptr) {
    if (style == DateStyle::kIso) {
      AppendOffset(f.offset_seconds, out);
    } else {
      const std::string& zone = f.period->abbreviation;
      bool letters = !zone.empty() && zone[0] != '+' && zone[0] != '-';
      out->push_back(' ');
      if (letters)
        *out += zone;
      else
        AppendOffset(f.offset_seconds, out);
    }
  }
  if (f.year <= 0) *out += " BC";
}

bool AppendInfinity(bool minus, bool plus, std::string* out) {
  if (plus) *out += "infinity";
  if (minus) *out += "-infinity";
  return plus || minus;
}

}  // namespace

int JulianDay(int year, int month, int day) {
  // Counting from March makes the leap day the year's last.
  int64_t y = year, m = month;
  if (m > 2) {
    m += 1;
    y += 4800;
  } else {
    m += 13;
    y += 4799;
  }
  int64_t century = y / 100;
  return static_cast<int>(y * 365 - 32167 + y / 4 - century + century / 4 + 7834 * m / 256 + day);
}

void JulianToDate(int64_t julian_day, int* year, int* month, int* day) {
  // Days since 0000-03-01 in 400-year eras.
  int64_t days = julian_day - 1721120;
  int64_t era = FloorDivide(days, 146097);
  int64_t of_era = days - era * 146097;
  int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  int64_t shifted = (5 * of_year + 2) / 153;
  *day = static_cast<int>(of_year - (153 * shifted + 2) / 5 + 1);
  *month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  *year = static_cast<int>(year_of_era + era * 400 + (*month <= 2));
}

int DaysInMonth(int year, int month) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return kDays[month - 1] + (month == 2 && leap);
}

DateTimeFields FieldsOf(int64_t timestamp, const TimeZone* zone) {
  DateTimeFields f{};
  if (zone != nullptr) {
    int64_t seconds = FloorDivide(timestamp, kMicrosPerSecond) + kPostgresEpochUnixSeconds;
    f.period = &zone->At(seconds);
    f.offset_seconds = f.period->offset_seconds;
    timestamp += f.offset_seconds * kMicrosPerSecond;
  }
  int64_t day = FloorDivide(timestamp, kMicrosPerDay);
  int64_t rest = timestamp - day * kMicrosPerDay;
  JulianToDate(day + kPostgresEpochJulian, &f.year, &f.month, &f.day);
  f.hour = static_cast<int>(rest / kMicrosPerHour);
  f.minute = static_cast<int>(rest / kMicrosPerMinute % 60);
  f.second = static_cast<int>(rest / kMicrosPerSecond % 60);
  f.microsecond = static_cast<int>(rest % kMicrosPerSecond);
  return f;
}

int64_t TimestamptzToLocal(int64_t instant, const TimeZone& zone) {
  if (IsInfinite(instant)) return instant;
  int64_t seconds = FloorDivide(instant, kMicrosPerSecond) + kPostgresEpochUnixSeconds;
  int64_t local = instant + zone.At(seconds).offset_seconds * kMicrosPerSecond;
  if (!IsValidTimestamp(local)) TimestampOutOfRange();
  return local;
}

int64_t LocalToTimestamptz(int64_t local, const TimeZone& zone) {
  if (IsInfinite(local)) return local;
  int64_t seconds = FloorDivide(local, kMicrosPerSecond) + kPostgresEpochUnixSeconds;
  int64_t instant = local - zone.OffsetOfLocal(seconds) * kMicrosPerSecond;
  if (!IsValidTimestamp(instant)) TimestampOutOfRange();
  return instant;
}

const TimeZone& ZoneOf(const SessionSettings& settings) {
  // Sessions rarely change their zone: remember the last one.
  static std::string last_name;
  static const TimeZone* last = nullptr;
  if (last == nullptr || last_name != settings.time_zone) {
    const TimeZone* zone = FindTimeZone(settings.time_zone);
    if (zone == nullptr) {
      Throw(sqlstate::kInvalidParameterValue, "time zone \"{}\" not recognized",
            settings.time_zone);
    }
    last = zone;
    last_name = settings.time_zone;
  }
  return *last;
}

const TimeZone& ZoneByName(std::string_view name) {
  int32_t offset = 0;
  const TimeZone* zone = nullptr;
  if (FindZoneAbbreviation(name, &offset)) {
    int32_t west = std::abs(offset);
    zone = FindTimeZone(fmt::format("<{}>{}{:02}:{:02}", name, offset > 0 ? "-" : "+", west / 3600,
                                    west / 60 % 60));
  } else {
    zone = FindTimeZone(name);
  }
  if (zone == nullptr) {
    Throw(sqlstate::kInvalidParameterValue, "time zone \"{}\" not recognized", name);
  }
  return *zone;
}

int64_t DateToTimestamp(int32_t date) {
  if (date == kDateInfinity) return kTimestampInfinity;
  if (date == kDateMinusInfinity) return kTimestampMinusInfinity;
  if (date >= kTimestampEnd / kMicrosPerDay) {
    Throw(sqlstate::kDatetimeFieldOverflow, "date out of range for timestamp");
  }
  return date * kMicrosPerDay;
}

int64_t DateToTimestamptz(int32_t date, const TimeZone& zone) {
  int64_t local = DateToTimestamp(date);
  if (IsInfinite(local)) return local;
  int64_t instant =
      local -
      zone.OffsetOfLocal(local / kMicrosPerSecond + kPostgresEpochUnixSeconds) * kMicrosPerSecond;
  if (!IsValidTimestamp(instant)) {
    Throw(sqlstate::kDatetimeFieldOverflow, "date out of range for timestamp");
  }
  return instant;
}

int32_t TimestampToDate(int64_t timestamp) {
  if (timestamp == kTimestampInfinity) return kDateInfinity;
  if (timestamp == kTimestampMinusInfinity) return kDateMinusInfinity;
  return static_cast<int32_t>(FloorDivide(timestamp, kMicrosPerDay));
}

void AppendDateText(int32_t date, const SessionSettings& settings, std::string* out) {
  if (AppendInfinity(date == kDateMinusInfinity, date == kDateInfinity, out)) return;
  DateTimeFields f{};
  JulianToDate(int64_t{date} + kPostgresEpochJulian, &f.year, &f.month, &f.day);
  AppendNumericDate(f, static_cast<DateStyle>(settings.date_style),
                    static_cast<DateOrder>(settings.date_order), out);
  if (f.year <= 0) *out += " BC";
}

void AppendTimeText(int64_t time, std::string* out) {
  AppendClock(static_cast<int>(time / kMicrosPerHour),
              static_cast<int>(time / kMicrosPerMinute % 60),
              static_cast<int>(time / kMicrosPerSecond % 60),
              static_cast<int>(time % kMicrosPerSecond), out);
}

void AppendTimestampText(int64_t timestamp, const SessionSettings& settings, std::string* out) {
  if (AppendInfinity(timestamp == kTimestampMinusInfinity, timestamp == kTimestampInfinity, out))
    return;
  AppendFields(FieldsOf(timestamp, nullptr), FloorDivide(timestamp, kMicrosPerDay), settings, out);
}

void AppendTimestamptzText(int64_t timestamp, const SessionSettings& settings, std::string* out) {
  if (AppendInfinity(timestamp == kTimestampMinusInfinity, timestamp == kTimestampInfinity, out))
    return;
  DateTimeFields f = FieldsOf(timestamp, &ZoneOf(settings));
  int64_t local = timestamp + f.offset_seconds * kMicrosPerSecond;
  AppendFields(f, FloorDivide(local, kMicrosPerDay), settings, out);
}

int64_t RoundTimeTo(int64_t time, int32_t typmod) {
  constexpr int64_t kUnits[] = {1000000, 100000, 10000, 1000, 100, 10, 1};
  if (typmod < 0 || typmod > 6) return time;
  int64_t unit = kUnits[typmod];
  int64_t half = unit / 2;
  return time >= 0 ? (time + half) / unit * unit : -((-time + half) / unit * unit);
}

int64_t RoundTimestampTo(int64_t timestamp, int32_t typmod) {
  return IsInfinite(timestamp) ? timestamp : RoundTimeTo(timestamp, typmod);
}

}  // namespace sluice
