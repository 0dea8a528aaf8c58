// Text input of date, time, timestamp and timestamptz: Postgres's free order of fields.
#include <charconv>
#include <cmath>

#include "common/error.h"
#include "types/datetime.h"

namespace sluice {
namespace {

constexpr SqlState kInvalidTimeZoneDisplacement = MakeSqlState("22009");

enum class Special : uint8_t {
  kNone,
  kEpoch,
  kInfinity,
  kMinusInfinity,
  kNow,
  kToday,
  kTomorrow,
  kYesterday
};

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsAlpha(char c) {
  return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}
bool IsSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

constexpr std::string_view kMonths[] = {"january",   "february", "march",    "april",
                                        "may",       "june",     "july",     "august",
                                        "september", "october",  "november", "december"};
constexpr std::string_view kDays[] = {"sunday",   "monday", "tuesday", "wednesday",
                                      "thursday", "friday", "saturday"};

// Full names and three letters; "sept" and the day names' usual short forms too.
int MonthOf(std::string_view word) {
  if (word == "sept") return 9;
  for (int i = 0; i < 12; i++) {
    if (word == kMonths[i] || word == kMonths[i].substr(0, 3)) return i + 1;
  }
  return 0;
}
bool IsDayName(std::string_view word) {
  if (word == "tues" || word == "weds" || word == "thur" || word == "thurs") return true;
  for (std::string_view day : kDays) {
    if (word == day || word == day.substr(0, 3)) return true;
  }
  return false;
}

std::string LowerAscii(std::string_view text) {
  std::string lower;
  for (char c : text) lower.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
  return lower;
}

class DateTimeReader {
 public:
  DateTimeReader(const char* type, std::string_view text, const SessionSettings& settings)
      : type_(type), whole_(text), settings_(settings) {}

  void Read();

  Special special = Special::kNone;
  bool has_year = false, has_month = false, has_day = false, has_time = false, has_zone = false;
  int year = 0, month = 0, day = 0;
  int64_t time = 0;    // microseconds of the day
  int32_t offset = 0;  // has_zone and zone == nullptr: seconds east
  const TimeZone* zone = nullptr;

  bool has_date() const { return has_year && has_month && has_day; }
  int64_t LocalDay() const { return int64_t{JulianDay(year, month, day)} - kPostgresEpochJulian; }
  [[noreturn]] void Bad() const {
    Throw(sqlstate::kInvalidDatetimeFormat, "invalid input syntax for type {}: \"{}\"", type_,
          whole_);
  }
  [[noreturn]] void FieldOverflow() const {
    Throw(sqlstate::kDatetimeFieldOverflow, "date/time field value out of range: \"{}\"", whole_);
  }

 private:
  [[noreturn]] void MonthDayOverflow() const {
    throw QueryError(MakeError(sqlstate::kDatetimeFieldOverflow,
                               "date/time field value out of range: \"{}\"", whole_)
                         .Hint("Perhaps you need a different \"datestyle\" setting."));
  }
  int Number(std::string_view digits) const;
  void ReadWord(std::string_view word);
  void ReadDate(std::string_view token);
  void ReadDateNumber(std::string_view digits);
  void ReadClock(std::string_view token);
  void ReadRunOfDigits(std::string_view token);
  void ReadOffset(std::string_view token);
  void SetClock(int64_t hour, int64_t minute, int64_t second, int64_t micros);
  void Finish();
  int64_t Fraction(std::string_view digits) const;

  const char* type_;
  std::string_view whole_;
  const SessionSettings& settings_;
  bool text_month_ = false, two_digit_year_ = false, bc_ = false, era_given_ = false,
       time_is_next_ = false, julian_next_ = false;
  int meridiem_ = 0;  // 1 AM, 2 PM
  int hour_ = 0;
};

int DateTimeReader::Number(std::string_view digits) const {
  int value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range) FieldOverflow();
  if (error != std::errc() || end != digits.data() + digits.size()) Bad();
  return value;
}

int64_t DateTimeReader::Fraction(std::string_view digits) const {
  for (char c : digits) {
    if (!IsDigit(c)) Bad();
  }
  if (digits.empty()) return 0;
  return static_cast<int64_t>(
      std::rint(strtod(("0." + std::string(digits)).c_str(), nullptr) * 1e6));
}

void DateTimeReader::Read() {
  std::string_view text = whole_;
  size_t i = 0;
  bool any = false;
  while (i < text.size()) {
    char c = text[i];
    if (IsSpace(c) || c == ',' || (c == '(' || c == ')')) {
      i++;
      continue;
    }
    any = true;
    size_t start = i;
    if (IsDigit(c)) {
      while (i < text.size() && IsDigit(text[i])) i++;
      char next = i < text.size() ? text[i] : ' ';
      bool date_ahead = next == '-' || next == '/' || next == '.';
      if (next == ':') {
        while (i < text.size() && (IsDigit(text[i]) || text[i] == ':' || text[i] == '.')) i++;
        ReadClock(text.substr(start, i - start));
      } else if (date_ahead && !(has_date() && next != '.') && !time_is_next_) {
        // A date's fields; 2020-01-05 and 5-Jan-2020. A second separator must follow or it is a
        // fraction.
        size_t j = i + 1;
        while (j < text.size() && (IsDigit(text[j]) || IsAlpha(text[j])) &&
               !(IsDigit(text[j - 1]) && IsAlpha(text[j])))
          j++;
        bool second = j < text.size() && text[j] == next;
        if (second) {
          j++;
          while (j < text.size() && IsDigit(text[j])) j++;
          i = j;
          ReadDate(text.substr(start, i - start));
        } else if (next == '.') {
          i = j;
          ReadRunOfDigits(text.substr(start, i - start));
        } else if (next == '/' || next == '-') {
          i = j;
          ReadDate(text.substr(start, i - start));
        }
      } else {
        if (next == '.') {
          for (i++; i < text.size() && IsDigit(text[i]);) i++;
        }
        ReadRunOfDigits(text.substr(start, i - start));
      }
    } else if (c == '+' || c == '-') {
      i++;
      if (i < text.size() && IsDigit(text[i])) {
        while (i < text.size() && (IsDigit(text[i]) || text[i] == ':' || text[i] == '.')) i++;
        ReadOffset(text.substr(start, i - start));
      } else {
        while (i < text.size() && IsAlpha(text[i])) i++;
        ReadWord(text.substr(start, i - start));
      }
    } else if (IsAlpha(c)) {
      while (i < text.size() && IsAlpha(text[i])) i++;
      bool separated = i + 1 < text.size() &&
                       (text[i] == '-' || text[i] == '/' || text[i] == '.') && IsDigit(text[i + 1]);
      if (separated && MonthOf(LowerAscii(text.substr(start, i - start))) != 0) {  // Jan-05-2020
        while (i < text.size() && (IsDigit(text[i]) || IsAlpha(text[i]) || text[i] == '-' ||
                                   text[i] == '/' || text[i] == '.'))
          i++;
        ReadDate(text.substr(start, i - start));
        continue;
      }
      bool zone_name = i < text.size() && (text[i] == '/' || text[i] == '_');
      if (zone_name) {
        while (i < text.size() &&
               (IsAlpha(text[i]) || IsDigit(text[i]) || std::strchr("/_+-", text[i])))
          i++;
      }
      ReadWord(text.substr(start, i - start));
    } else {
      Bad();
    }
  }
  if (!any) Bad();
  Finish();
}

void DateTimeReader::ReadWord(std::string_view original) {
  std::string word = LowerAscii(original);
  if (int found = MonthOf(word)) {
    if (has_month && !text_month_ && !has_day) {  // the number before it was the day
      day = month;
      has_day = true;
    } else if (has_month) {
      Bad();
    }
    month = found;
    has_month = text_month_ = true;
    return;
  }
  if (IsDayName(word) || word == "at" || word == "on") return;
  static const std::map<std::string_view, Special> kSpecials = {
      {"epoch", Special::kEpoch},
      {"infinity", Special::kInfinity},
      {"-infinity", Special::kMinusInfinity},
      {"now", Special::kNow},
      {"today", Special::kToday},
      {"tomorrow", Special::kTomorrow},
      {"yesterday", Special::kYesterday}};
  if (auto found = kSpecials.find(word); found != kSpecials.end()) {
    if (special != Special::kNone || has_year || has_month || has_day) Bad();
    special = found->second;
  } else if (word == "allballs") {
    SetClock(0, 0, 0, 0);
    has_zone = true;
  } else if (word == "am" || word == "pm") {
    meridiem_ = word == "am" ? 1 : 2;
  } else if (word == "bc" || word == "ad") {
    if (era_given_) Bad();
    era_given_ = true;
    bc_ = word == "bc";
  } else if (word == "t") {
    time_is_next_ = true;
  } else if (word == "j" || word == "jd" || word == "julian") {
    julian_next_ = true;
  } else if (FindZoneAbbreviation(word, &offset)) {
    if (has_zone) Bad();
    has_zone = true;
  } else if (IsAlpha(original[0]) && original.find('/') != std::string_view::npos) {
    zone = FindTimeZone(original);
    if (zone == nullptr) {
      Throw(sqlstate::kInvalidParameterValue, "time zone \"{}\" not recognized", word);
    }
    if (has_zone) Bad();
    has_zone = true;
  } else if (IsAlpha(original[0]) && original.size() > 3 &&
             (zone = FindTimeZone(original)) != nullptr) {
    has_zone = true;
  } else {
    Bad();
  }
}

void DateTimeReader::ReadDate(std::string_view token) {
  if (has_time) Bad();
  std::vector<std::string_view> parts;
  size_t start = 0;
  for (size_t i = 0; i <= token.size(); i++) {
    if (i == token.size() || !(IsDigit(token[i]) || IsAlpha(token[i]))) {
      parts.push_back(token.substr(start, i - start));
      start = i + 1;
    }
  }
  for (std::string_view part : parts) {
    if (part.empty()) Bad();
    if (IsAlpha(part[0])) {
      if (has_month) Bad();
      month = MonthOf(LowerAscii(part));
      if (month == 0) Bad();
      has_month = text_month_ = true;
    }
  }
  for (std::string_view part : parts) {
    if (!IsAlpha(part[0])) ReadDateNumber(part);
  }
}

// One number of a date: which field it is depends on what is known, its length and the date order.
void DateTimeReader::ReadDateNumber(std::string_view digits) {
  int value = Number(digits);
  auto order = static_cast<DateOrder>(settings_.date_order);
  bool long_number = digits.size() >= 3;
  auto set_year = [&] {
    year = value;
    has_year = true;
    two_digit_year_ = digits.size() <= 2;
  };
  auto set_month = [&] { month = value, has_month = true; };
  auto set_day = [&] { day = value, has_day = true; };
  if (!has_year && !has_month && !has_day) {
    if (long_number || order == DateOrder::kYmd)
      set_year();
    else if (order == DateOrder::kDmy)
      set_day();
    else
      set_month();
  } else if (has_year && !has_month && !has_day) {
    if (digits.size() == 3 && value >= 1 && value <= 366) {  // the day of the year
      int y;
      JulianToDate(JulianDay(year, 1, 1) + value - 1, &y, &month, &day);
      has_month = has_day = true;
    } else {
      set_month();
    }
  } else if (!has_year && has_month && !has_day) {
    if (text_month_ && (long_number || order == DateOrder::kYmd))
      set_year();
    else
      set_day();
  } else if (has_year && has_month && !has_day) {
    if (text_month_ && long_number && two_digit_year_) {  // what was taken for the year was the day
      day = year;
      has_day = true;
      set_year();
    } else {
      set_day();
    }
  } else if (!has_year && !has_month && has_day) {
    set_month();
  } else if (!has_year && has_month && has_day) {
    set_year();
  } else if (has_year && !has_month && has_day) {
    set_month();
  } else {
    Bad();
  }
}

void DateTimeReader::ReadClock(std::string_view token) {
  std::vector<std::string_view> parts;
  std::string_view rest = token;
  for (size_t colon; (colon = rest.find(':')) != std::string_view::npos;) {
    parts.push_back(rest.substr(0, colon));
    rest.remove_prefix(colon + 1);
  }
  parts.push_back(rest);
  if (parts.size() < 2 || parts.size() > 3 || has_time) Bad();
  int hour = Number(parts[0]), minute = 0, second = 0;
  int64_t micros = 0;
  size_t point = parts.back().find('.');
  std::string_view last = parts.back().substr(0, point);
  if (point != std::string_view::npos) micros = Fraction(parts.back().substr(point + 1));
  if (parts.size() == 3) {
    minute = Number(parts[1]);
    second = last.empty() ? 0 : Number(last);
  } else if (point != std::string_view::npos) {  // mm:ss.fff
    minute = hour;
    hour = 0;
    second = Number(last);
  } else {
    minute = Number(last);
  }
  SetClock(hour, minute, second, micros);
}

void DateTimeReader::SetClock(int64_t hour, int64_t minute, int64_t second, int64_t micros) {
  if (minute > 59 || second > 60 || hour > 24) FieldOverflow();
  hour_ = static_cast<int>(hour);
  time = hour * kMicrosPerHour + minute * kMicrosPerMinute + second * kMicrosPerSecond + micros;
  if (time > kMicrosPerDay) FieldOverflow();
  has_time = true;
  time_is_next_ = false;
}

// Digits without separators: YYYYMMDD, YYMMDD, HHMMSS, HHMM, or one field of a date.
void DateTimeReader::ReadRunOfDigits(std::string_view token) {
  size_t point = token.find('.');
  std::string_view digits = token.substr(0, point);
  if (julian_next_) {
    int y, m, d;
    JulianToDate(Number(digits), &y, &m, &d);
    year = y, month = m, day = d;
    has_year = has_month = has_day = true;
    julian_next_ = false;
    bc_ = false;
    return;
  }
  bool date_open = !has_year && !has_month && !has_day;
  if (digits.size() >= 6 && date_open && std::string_view(type_) != "time" && !time_is_next_ &&
      point == std::string_view::npos) {
    size_t year_digits = digits.size() - 4;
    year = Number(digits.substr(0, year_digits));
    two_digit_year_ = year_digits == 2;
    month = Number(digits.substr(year_digits, 2));
    day = Number(digits.substr(year_digits + 2, 2));
    has_year = has_month = has_day = true;
  } else if (!has_time && (has_date() || time_is_next_ || date_open) &&
             (digits.size() == 6 || digits.size() == 4) &&
             (time_is_next_ || has_date() || point != std::string_view::npos ||
              std::string_view(type_) == "time")) {
    SetClock(Number(digits.substr(0, 2)), Number(digits.substr(2, 2)),
             digits.size() == 6 ? Number(digits.substr(4, 2)) : 0,
             point == std::string_view::npos ? 0 : Fraction(token.substr(point + 1)));
  } else if (time_is_next_ && digits.size() == 2) {
    SetClock(Number(digits), 0, 0, 0);
  } else if (point != std::string_view::npos) {
    Bad();
  } else {
    ReadDateNumber(digits);
  }
}

void DateTimeReader::ReadOffset(std::string_view token) {
  if (has_zone && zone == nullptr && offset != 0) Bad();
  bool negative = token[0] == '-';
  std::string_view rest = token.substr(1);
  int parts[3] = {0, 0, 0};
  if (rest.find(':') == std::string_view::npos) {
    int value = Number(rest);
    if (rest.size() > 4) {
      parts[0] = value / 10000, parts[1] = value / 100 % 100, parts[2] = value % 100;
    } else if (rest.size() > 2) {
      parts[0] = value / 100, parts[1] = value % 100;
    } else {
      parts[0] = value;
    }
  } else {
    int count = 0;
    while (true) {
      size_t colon = rest.find(':');
      if (count == 3) Bad();
      parts[count++] = Number(rest.substr(0, colon));
      if (colon == std::string_view::npos) break;
      rest.remove_prefix(colon + 1);
    }
  }
  if (parts[0] > 15 || parts[1] > 59 || parts[2] > 59) {
    Throw(kInvalidTimeZoneDisplacement, "time zone displacement out of range: \"{}\"", whole_);
  }
  // After an abbreviation this is a POSIX-like "UTC+3", where east is negative.
  int32_t seconds = parts[0] * 3600 + parts[1] * 60 + parts[2];
  bool posix = has_zone;
  offset = negative != posix ? -seconds : seconds;
  has_zone = true;
}

void DateTimeReader::Finish() {
  if (time_is_next_ || julian_next_) Bad();
  if (meridiem_ != 0) {
    if (!has_time) Bad();
    if (hour_ > 12) FieldOverflow();
    if (meridiem_ == 1 && hour_ == 12) time -= 12 * kMicrosPerHour;
    if (meridiem_ == 2 && hour_ != 12) time += 12 * kMicrosPerHour;
  }
  if (special != Special::kNone) {
    if (has_year || has_month || has_day) Bad();
    return;
  }
  if (has_year) {
    if (bc_) {
      if (year <= 0) FieldOverflow();
      year = 1 - year;
    } else if (two_digit_year_) {
      if (year < 70)
        year += 2000;
      else if (year < 100)
        year += 1900;
    } else if (year <= 0) {
      if (year == 0) FieldOverflow();
    }
  }
  if (has_month && (month < 1 || month > 12)) MonthDayOverflow();
  if (has_day && (day < 1 || day > 31)) MonthDayOverflow();
  if (has_date() && day > DaysInMonth(year, month)) FieldOverflow();
}

int64_t LocalNow(const SessionSettings& settings) {
  return TimestamptzToLocal(settings.now, ZoneOf(settings));
}

// Local days of today, tomorrow and yesterday.
int64_t RelativeDay(Special special, const SessionSettings& settings) {
  int64_t today = TimestampToDate(LocalNow(settings));
  return today + (special == Special::kTomorrow) - (special == Special::kYesterday);
}

int64_t CheckedTimestamp(__int128 value, std::string_view text) {
  if (value < kTimestampMin || value >= kTimestampEnd) {
    Throw(sqlstate::kDatetimeFieldOverflow, "timestamp out of range: \"{}\"", text);
  }
  return static_cast<int64_t>(value);
}

bool DayInRange(int year) {
  return year > -4714 && year < 6000000;
}

}  // namespace

int32_t ParseDate(std::string_view text, const SessionSettings& settings) {
  DateTimeReader reader("date", text, settings);
  reader.Read();
  switch (reader.special) {
    case Special::kInfinity:
      return kDateInfinity;
    case Special::kMinusInfinity:
      return kDateMinusInfinity;
    case Special::kEpoch:
      return kUnixEpochJulian - kPostgresEpochJulian;
    case Special::kNow:
      return TimestampToDate(LocalNow(settings));
    case Special::kNone:
      break;
    default:
      return static_cast<int32_t>(RelativeDay(reader.special, settings));
  }
  if (!reader.has_date()) reader.Bad();
  int64_t day = DayInRange(reader.year) ? reader.LocalDay() : int64_t{kDateEnd};
  if (!IsValidDate(day)) Throw(sqlstate::kDatetimeFieldOverflow, "date out of range: \"{}\"", text);
  return static_cast<int32_t>(day);
}

int64_t ParseTime(std::string_view text, int32_t typmod, const SessionSettings& settings) {
  DateTimeReader reader("time", text, settings);
  reader.Read();
  if (reader.special == Special::kNow) {
    int64_t now = LocalNow(settings);
    return RoundTimeTo(now - int64_t{TimestampToDate(now)} * kMicrosPerDay, typmod);
  }
  if (reader.special != Special::kNone || !reader.has_time) reader.Bad();
  if (reader.zone != nullptr && !reader.has_date()) reader.Bad();  // its offset depends on the date
  return RoundTimeTo(reader.time, typmod);
}

int64_t ParseTimestamp(std::string_view text, int32_t typmod, const SessionSettings& settings) {
  DateTimeReader reader("timestamp", text, settings);
  reader.Read();
  switch (reader.special) {
    case Special::kInfinity:
      return kTimestampInfinity;
    case Special::kMinusInfinity:
      return kTimestampMinusInfinity;
    case Special::kEpoch:
      return -kPostgresEpochUnixSeconds * kMicrosPerSecond;
    case Special::kNow:
      return RoundTimestampTo(LocalNow(settings), typmod);
    case Special::kNone:
      break;
    default:
      return RoundTimestampTo(
          CheckedTimestamp(
              __int128{RelativeDay(reader.special, settings)} * kMicrosPerDay + reader.time, text),
          typmod);
  }
  if (!reader.has_date()) reader.Bad();
  __int128 local = kTimestampEnd;
  if (DayInRange(reader.year)) local = __int128{reader.LocalDay()} * kMicrosPerDay + reader.time;
  return RoundTimestampTo(CheckedTimestamp(local, text), typmod);
}

int64_t ParseTimestamptz(std::string_view text, int32_t typmod, const SessionSettings& settings) {
  DateTimeReader reader("timestamp with time zone", text, settings);
  reader.Read();
  int64_t day;
  switch (reader.special) {
    case Special::kInfinity:
      return kTimestampInfinity;
    case Special::kMinusInfinity:
      return kTimestampMinusInfinity;
    case Special::kEpoch:
      return -kPostgresEpochUnixSeconds * kMicrosPerSecond;
    case Special::kNow:
      return RoundTimestampTo(settings.now, typmod);
    case Special::kNone:
      if (!reader.has_date()) reader.Bad();
      if (!DayInRange(reader.year)) CheckedTimestamp(kTimestampEnd, text);
      day = reader.LocalDay();
      break;
    default:
      day = RelativeDay(reader.special, settings);
  }
  int32_t offset = reader.offset;
  if (!reader.has_zone || reader.zone != nullptr) {
    const TimeZone& zone = reader.zone != nullptr ? *reader.zone : ZoneOf(settings);
    offset = zone.OffsetOfLocal(day * 86400 + reader.time / kMicrosPerSecond +
                                kPostgresEpochUnixSeconds);
  }
  __int128 instant =
      __int128{day} * kMicrosPerDay + reader.time - __int128{offset} * kMicrosPerSecond;
  return RoundTimestampTo(CheckedTimestamp(instant, text), typmod);
}

}  // namespace sluice
