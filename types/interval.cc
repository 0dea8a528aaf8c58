// interval: text in and out, and arithmetic.
#include <charconv>
#include <cmath>

#include "common/error.h"
#include "types/datetime.h"

namespace sluice {
namespace {

constexpr int kMonthsPerYear = 12, kDaysPerMonth = 30;

[[noreturn]] void OutOfRange() { Throw(sqlstate::kDatetimeFieldOverflow, "interval out of range"); }

// An interval taken apart; all parts of time have its sign.
struct Parts {
  int64_t years, months, days, hours, minutes, seconds, micros;
};

Parts PartsOf(const Interval& interval) {
  int64_t t = interval.microseconds;
  return {interval.months / kMonthsPerYear, interval.months % kMonthsPerYear, interval.days,
          t / kMicrosPerHour, t / kMicrosPerMinute % 60, t / kMicrosPerSecond % 60, t % kMicrosPerSecond};
}

void AppendSeconds(int64_t seconds, int64_t micros, bool pad, std::string* out) {
  seconds = std::abs(seconds);
  micros = std::abs(micros);
  *out += pad ? fmt::format("{:02}", seconds) : fmt::format("{}", seconds);
  if (micros == 0) return;
  *out += fmt::format(".{:06}", micros);
  while (out->back() == '0') out->pop_back();
}

void AppendPostgres(const Parts& p, std::string* out) {
  bool zero = true, before = false;
  auto unit = [&](int64_t value, const char* name) {
    if (value == 0) return;
    *out += fmt::format("{}{}{} {}{}", zero ? "" : " ", before && value > 0 ? "+" : "", value, name,
                        value != 1 ? "s" : "");
    before = value < 0;
    zero = false;
  };
  unit(p.years, "year");
  unit(p.months, "mon");
  unit(p.days, "day");
  if (!zero && p.hours == 0 && p.minutes == 0 && p.seconds == 0 && p.micros == 0) return;
  bool minus = p.hours < 0 || p.minutes < 0 || p.seconds < 0 || p.micros < 0;
  *out += fmt::format("{}{}{:02}:{:02}:", zero ? "" : " ", minus ? "-" : before ? "+" : "",
                      std::abs(p.hours), std::abs(p.minutes));
  AppendSeconds(p.seconds, p.micros, true, out);
}

void AppendVerbose(const Parts& p, std::string* out) {
  bool zero = true, ago = false;
  *out += "@";
  auto unit = [&](int64_t value, const char* name) {
    if (value == 0) return;
    if (zero) {
      ago = value < 0;
      value = std::abs(value);
    } else if (ago) {
      value = -value;
    }
    *out += fmt::format(" {} {}{}", value, name, value != 1 ? "s" : "");
    zero = false;
  };
  unit(p.years, "year");
  unit(p.months, "mon");
  unit(p.days, "day");
  unit(p.hours, "hour");
  unit(p.minutes, "min");
  if (p.seconds != 0 || p.micros != 0) {
    bool negative = p.seconds < 0 || p.micros < 0;
    *out += " ";
    if (zero) ago = negative;
    else if (negative != ago) *out += "-";
    AppendSeconds(p.seconds, p.micros, false, out);
    *out += std::abs(p.seconds) != 1 || p.micros != 0 ? " secs" : " sec";
    zero = false;
  }
  if (zero) *out += " 0";
  if (ago) *out += " ago";
}

void AppendSqlStandard(Parts p, std::string* out) {
  auto any = [&](auto&& test) {
    return test(p.years) || test(p.months) || test(p.days) || test(p.hours) || test(p.minutes) ||
           test(p.seconds) || test(p.micros);
  };
  bool negative = any([](int64_t x) { return x < 0; }), positive = any([](int64_t x) { return x > 0; });
  bool year_month = p.years != 0 || p.months != 0, day = p.days != 0;
  bool time = p.hours != 0 || p.minutes != 0 || p.seconds != 0 || p.micros != 0;
  if (!negative && !positive) {
    *out += "0";
    return;
  }
  if ((negative && positive) || (year_month && (day || time))) {
    char year_sign = p.years < 0 || p.months < 0 ? '-' : '+', day_sign = p.days < 0 ? '-' : '+';
    char time_sign = p.hours < 0 || p.minutes < 0 || p.seconds < 0 || p.micros < 0 ? '-' : '+';
    *out += fmt::format("{}{}-{} {}{} {}{}:{:02}:", year_sign, std::abs(p.years), std::abs(p.months),
                        day_sign, std::abs(p.days), time_sign, std::abs(p.hours), std::abs(p.minutes));
    AppendSeconds(p.seconds, p.micros, true, out);
    return;
  }
  if (negative) *out += "-";
  if (year_month) {
    *out += fmt::format("{}-{}", std::abs(p.years), std::abs(p.months));
    return;
  }
  if (day) *out += fmt::format("{} ", std::abs(p.days));
  *out += fmt::format("{}:{:02}:", std::abs(p.hours), std::abs(p.minutes));
  AppendSeconds(p.seconds, p.micros, true, out);
}

void AppendIso8601(const Parts& p, std::string* out) {
  *out += "P";
  size_t start = out->size();
  auto unit = [&](int64_t value, char name) {
    if (value != 0) *out += fmt::format("{}{}", value, name);
  };
  unit(p.years, 'Y');
  unit(p.months, 'M');
  unit(p.days, 'D');
  if (p.hours != 0 || p.minutes != 0 || p.seconds != 0 || p.micros != 0) *out += "T";
  unit(p.hours, 'H');
  unit(p.minutes, 'M');
  if (p.seconds != 0 || p.micros != 0) {
    if (p.seconds < 0 || p.micros < 0) *out += "-";
    AppendSeconds(p.seconds, p.micros, false, out);
    *out += "S";
  }
  if (out->size() == start) *out += "T0S";
}

// --- input ---

enum class Unit : uint8_t {
  kNone, kMicrosecond, kMillisecond, kSecond, kMinute, kHour, kDay, kWeek, kMonth, kYear, kDecade,
  kCentury, kMillennium, kAgo,
};

struct UnitName {
  std::string_view name;
  Unit unit;
};

constexpr UnitName kUnits[] = {
    {"us", Unit::kMicrosecond}, {"usec", Unit::kMicrosecond}, {"usecs", Unit::kMicrosecond},
    {"useconds", Unit::kMicrosecond}, {"usecond", Unit::kMicrosecond}, {"microsecond", Unit::kMicrosecond},
    {"microseconds", Unit::kMicrosecond}, {"microsecon", Unit::kMicrosecond},
    {"ms", Unit::kMillisecond}, {"msec", Unit::kMillisecond}, {"msecs", Unit::kMillisecond},
    {"mseconds", Unit::kMillisecond}, {"msecond", Unit::kMillisecond}, {"millisecond", Unit::kMillisecond},
    {"milliseconds", Unit::kMillisecond}, {"millisecon", Unit::kMillisecond},
    {"s", Unit::kSecond}, {"sec", Unit::kSecond}, {"secs", Unit::kSecond}, {"second", Unit::kSecond},
    {"seconds", Unit::kSecond}, {"m", Unit::kMinute}, {"min", Unit::kMinute}, {"mins", Unit::kMinute},
    {"minute", Unit::kMinute}, {"minutes", Unit::kMinute}, {"h", Unit::kHour}, {"hr", Unit::kHour},
    {"hrs", Unit::kHour}, {"hour", Unit::kHour}, {"hours", Unit::kHour}, {"d", Unit::kDay},
    {"day", Unit::kDay}, {"days", Unit::kDay}, {"w", Unit::kWeek}, {"week", Unit::kWeek},
    {"weeks", Unit::kWeek}, {"mon", Unit::kMonth}, {"mons", Unit::kMonth}, {"month", Unit::kMonth},
    {"months", Unit::kMonth}, {"y", Unit::kYear}, {"yr", Unit::kYear}, {"yrs", Unit::kYear},
    {"year", Unit::kYear}, {"years", Unit::kYear}, {"dec", Unit::kDecade}, {"decs", Unit::kDecade},
    {"decade", Unit::kDecade}, {"decades", Unit::kDecade}, {"c", Unit::kCentury}, {"cent", Unit::kCentury},
    {"century", Unit::kCentury}, {"centuries", Unit::kCentury}, {"mil", Unit::kMillennium},
    {"mils", Unit::kMillennium}, {"millennia", Unit::kMillennium}, {"millennium", Unit::kMillennium},
    {"ago", Unit::kAgo},
};

constexpr uint32_t Bit(Unit unit) { return 1u << static_cast<int>(unit); }
constexpr uint32_t kAllSeconds = Bit(Unit::kMicrosecond) | Bit(Unit::kMillisecond) | Bit(Unit::kSecond);

// Adds up what the text says; the fields overflow as Postgres's do.
struct Builder {
  int64_t months = 0, days = 0;
  __int128 micros = 0;
  uint32_t seen = 0;  // a bit for each Unit; no field may be given twice
  std::string_view whole;

  [[noreturn]] void Bad() const {
    Throw(sqlstate::kInvalidDatetimeFormat, "invalid input syntax for type interval: \"{}\"", whole);
  }
  [[noreturn]] void FieldOverflow() const {
    Throw(sqlstate::kIntervalFieldOverflow, "interval field value out of range: \"{}\"", whole);
  }
  void See(uint32_t units) {
    if (seen & units) Bad();
    seen |= units;
  }
  void AddMicros(double value) { micros += static_cast<__int128>(std::rint(value)); }
  void AddDays(double fraction) {
    double whole_days = std::trunc(fraction);
    days += static_cast<int64_t>(whole_days);
    AddMicros((fraction - whole_days) * static_cast<double>(kMicrosPerDay));
  }
  void AddTime(int64_t value, double fraction, int64_t unit_micros) {
    micros += static_cast<__int128>(value) * unit_micros;
    AddMicros(fraction * static_cast<double>(unit_micros));
  }
  void AddMonths(int64_t value, double fraction, int64_t per_unit) {
    int64_t total = 0;
    if (__builtin_mul_overflow(value, per_unit, &total)) FieldOverflow();
    if (__builtin_add_overflow(months, total, &months)) FieldOverflow();
    months += static_cast<int64_t>(std::rint(fraction * static_cast<double>(per_unit)));
  }
  void Add(Unit unit, int64_t value, double fraction) {
    switch (unit) {
      case Unit::kMicrosecond: AddTime(value, fraction, 1); break;
      case Unit::kMillisecond: AddTime(value, fraction, 1000); break;
      case Unit::kNone: case Unit::kSecond: AddTime(value, fraction, kMicrosPerSecond); break;
      case Unit::kMinute: AddTime(value, fraction, kMicrosPerMinute); break;
      case Unit::kHour: AddTime(value, fraction, kMicrosPerHour); break;
      case Unit::kDay:
        if (__builtin_add_overflow(days, value, &days)) FieldOverflow();
        AddMicros(fraction * static_cast<double>(kMicrosPerDay));
        break;
      case Unit::kWeek: {
        int64_t total = 0;
        if (__builtin_mul_overflow(value, int64_t{7}, &total)) FieldOverflow();
        if (__builtin_add_overflow(days, total, &days)) FieldOverflow();
        AddDays(fraction * 7);
        break;
      }
      case Unit::kMonth:
        AddMonths(value, 0, 1);
        AddDays(fraction * kDaysPerMonth);
        break;
      case Unit::kYear: AddMonths(value, fraction, 12); break;
      case Unit::kDecade: AddMonths(value, fraction, 120); break;
      case Unit::kCentury: AddMonths(value, fraction, 1200); break;
      case Unit::kMillennium: AddMonths(value, fraction, 12000); break;
      case Unit::kAgo: Bad();
    }
    if (months > INT32_MAX || months < INT32_MIN || days > INT32_MAX || days < INT32_MIN) FieldOverflow();
  }
  Interval Build() const {
    if (micros > INT64_MAX || micros < INT64_MIN) FieldOverflow();
    return {static_cast<int64_t>(micros), static_cast<int32_t>(days), static_cast<int32_t>(months)};
  }
};

struct Token {
  enum Kind : uint8_t { kNumber, kClock, kYearMonth, kWord } kind;
  bool negative, signed_;
  std::string_view text;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlpha(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

std::vector<Token> Split(const Builder& builder, std::string_view text) {
  std::vector<Token> tokens;
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    if (c == ' ' || (c >= '\t' && c <= '\r') || c == ',' || c == '@') {
      i++;
      continue;
    }
    Token token{};
    if (c == '+' || c == '-') {
      token.signed_ = true;
      token.negative = c == '-';
      for (i++; i < text.size() && text[i] == ' ';) i++;
      if (i == text.size()) builder.Bad();
      c = text[i];
    }
    size_t start = i;
    if (IsDigit(c) || c == '.') {
      token.kind = Token::kNumber;
      while (i < text.size() && (IsDigit(text[i]) || text[i] == '.')) i++;
      if (i < text.size() && (text[i] == ':' || (text[i] == '-' && i + 1 < text.size() && IsDigit(text[i + 1])))) {
        char separator = text[i];
        token.kind = separator == ':' ? Token::kClock : Token::kYearMonth;
        while (i < text.size() && (IsDigit(text[i]) || text[i] == '.' || text[i] == separator)) i++;
      }
    } else if (IsAlpha(c) && !token.signed_) {
      token.kind = Token::kWord;
      while (i < text.size() && IsAlpha(text[i])) i++;
    } else {
      builder.Bad();
    }
    token.text = text.substr(start, i - start);
    tokens.push_back(token);
  }
  return tokens;
}

int64_t WholeNumber(const Builder& builder, std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) builder.FieldOverflow();
  if (error != std::errc() || end != text.data() + text.size()) builder.Bad();
  return value;
}

void SplitNumber(const Builder& builder, std::string_view text, int64_t* whole, double* fraction) {
  size_t point = text.find('.');
  std::string_view front = text.substr(0, point);
  *whole = front.empty() ? 0 : WholeNumber(builder, front);
  *fraction = 0;
  if (point == std::string_view::npos) return;
  std::string rest = "0" + std::string(text.substr(point));
  if (rest.find('.', 2) != std::string::npos || (rest.size() == 2 && front.empty())) builder.Bad();
  *fraction = strtod(rest.c_str(), nullptr);
}

// hh:mm, hh:mm:ss.fff, and mm:ss.fff where the second part has a fraction.
void AddClock(Builder* builder, const Token& token, bool minute_second) {
  std::vector<std::string_view> parts;
  std::string_view rest = token.text;
  for (size_t colon; (colon = rest.find(':')) != std::string_view::npos;) {
    parts.push_back(rest.substr(0, colon));
    rest.remove_prefix(colon + 1);
  }
  parts.push_back(rest);
  int64_t hours = 0, minutes = 0, seconds = 0;
  double fraction = 0;
  if (parts.size() == 2 && (minute_second || parts[1].find('.') != std::string_view::npos)) {
    minutes = WholeNumber(*builder, parts[0]);
    SplitNumber(*builder, parts[1], &seconds, &fraction);
  } else if (parts.size() == 2 || parts.size() == 3) {
    hours = WholeNumber(*builder, parts[0]);
    minutes = parts[1].empty() ? 0 : WholeNumber(*builder, parts[1]);
    if (parts.size() == 3) SplitNumber(*builder, parts[2], &seconds, &fraction);
  } else {
    builder->Bad();
  }
  if (minutes > 59 || seconds > 60 || (seconds == 60 && fraction > 0)) builder->FieldOverflow();
  builder->See(Bit(Unit::kHour) | Bit(Unit::kMinute) | kAllSeconds);
  int64_t sign = token.negative ? -1 : 1;
  builder->AddTime(sign * hours, 0, kMicrosPerHour);
  builder->AddTime(sign * minutes, 0, kMicrosPerMinute);
  builder->AddTime(sign * seconds, static_cast<double>(sign) * fraction, kMicrosPerSecond);
}

Unit UnitOf(std::string_view word) {
  std::string lower;
  for (char c : word) lower.push_back(static_cast<char>(c | 0x20));
  for (const UnitName& known : kUnits) {
    if (known.name == lower) return known.unit;
  }
  return Unit::kNone;
}

// The unit of a number that has none: INTERVAL '3' DAY says so in its type.
Unit UnitOfRange(int32_t range) {
  constexpr int32_t kYearBit = 1 << 2, kMonthBit = 1 << 1, kDayBit = 1 << 3, kHourBit = 1 << 10,
                    kMinuteBit = 1 << 11, kSecondBit = 1 << 12;
  if (range == 0x7FFF) return Unit::kSecond;
  if (range & kSecondBit) return Unit::kSecond;
  if (range & kMinuteBit) return Unit::kMinute;
  if (range & kHourBit) return Unit::kHour;
  if (range & kDayBit) return Unit::kDay;
  if (range & kMonthBit) return Unit::kMonth;
  if (range & kYearBit) return Unit::kYear;
  return Unit::kSecond;
}

bool ParseIsoInterval(Builder* builder, std::string_view text) {
  text.remove_prefix(1);
  bool time = false, any = false;
  while (!text.empty()) {
    if (text[0] == 'T' || text[0] == 't') {
      time = true;
      text.remove_prefix(1);
      continue;
    }
    double value = 0;
    std::string_view digits = text[0] == '+' ? text.substr(1) : text;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                                        std::chars_format::fixed);
    if (error != std::errc() || end == text.data() + text.size()) return false;
    char unit = static_cast<char>(*end & ~0x20);
    text.remove_prefix(static_cast<size_t>(end + 1 - text.data()));
    if (std::abs(value) > 9e15) builder->FieldOverflow();
    int64_t whole = static_cast<int64_t>(value);
    double fraction = value - static_cast<double>(whole);
    if (!time && unit == 'Y') builder->Add(Unit::kYear, whole, fraction);
    else if (!time && unit == 'M') builder->Add(Unit::kMonth, whole, fraction);
    else if (!time && unit == 'W') builder->Add(Unit::kWeek, whole, fraction);
    else if (!time && unit == 'D') builder->Add(Unit::kDay, whole, fraction);
    else if (time && unit == 'H') builder->Add(Unit::kHour, whole, fraction);
    else if (time && unit == 'M') builder->Add(Unit::kMinute, whole, fraction);
    else if (time && unit == 'S') builder->Add(Unit::kSecond, whole, fraction);
    else return false;
    any = true;
  }
  return any;
}

int32_t CheckedInt(int64_t value) {
  if (value > INT32_MAX || value < INT32_MIN) OutOfRange();
  return static_cast<int32_t>(value);
}

// As Postgres rounds where a product of floats should be whole seconds to the microsecond.
double RoundToMicro(double seconds) { return std::rint(seconds * 1e6) / 1e6; }

}  // namespace

void AppendIntervalText(const Interval& interval, const SessionSettings& settings, std::string* out) {
  Parts parts = PartsOf(interval);
  switch (static_cast<IntervalStyle>(settings.interval_style)) {
    case IntervalStyle::kPostgres: return AppendPostgres(parts, out);
    case IntervalStyle::kPostgresVerbose: return AppendVerbose(parts, out);
    case IntervalStyle::kSqlStandard: return AppendSqlStandard(parts, out);
    case IntervalStyle::kIso8601: return AppendIso8601(parts, out);
  }
}

Interval ParseInterval(std::string_view text, int32_t typmod, const SessionSettings& settings) {
  Builder builder;
  builder.whole = text;
  int32_t range = typmod < 0 ? 0x7FFF : (typmod >> 16) & 0x7FFF;
  size_t first = text.find_first_not_of(" \t\n\r\f\v");
  if (first != std::string_view::npos && (text[first] == 'P' || text[first] == 'p')) {
    if (!ParseIsoInterval(&builder, text.substr(first))) builder.Bad();
  } else {
    std::vector<Token> tokens = Split(builder, text);
    if (tokens.empty()) builder.Bad();
    // In the SQL-standard style one leading minus governs all, unless another sign is given.
    bool negate_all = false;
    if (static_cast<IntervalStyle>(settings.interval_style) == IntervalStyle::kSqlStandard &&
        tokens[0].negative) {
      negate_all = true;
      for (size_t i = 1; i < tokens.size(); i++) negate_all &= !tokens[i].signed_;
      if (negate_all) {
        for (Token& token : tokens) token.negative = true;
      }
    }
    bool any = false;
    for (size_t i = 0; i < tokens.size(); i++) {
      const Token& token = tokens[i];
      if (token.kind == Token::kWord) {
        if (!any || i + 1 != tokens.size() || UnitOf(token.text) != Unit::kAgo) builder.Bad();
        builder.months = -builder.months;
        builder.days = -builder.days;
        builder.micros = -builder.micros;
        continue;
      }
      any = true;
      int64_t whole = 0;
      double fraction = 0;
      if (token.kind == Token::kClock) {
        AddClock(&builder, token, range == ((1 << 11) | (1 << 12)));
      } else if (token.kind == Token::kYearMonth) {
        size_t dash = token.text.find('-');
        int64_t months = WholeNumber(builder, token.text.substr(dash + 1));
        if (months >= kMonthsPerYear) builder.FieldOverflow();
        int64_t sign = token.negative ? -1 : 1;
        builder.See(Bit(Unit::kYear) | Bit(Unit::kMonth));
        builder.Add(Unit::kYear, sign * WholeNumber(builder, token.text.substr(0, dash)), 0);
        builder.Add(Unit::kMonth, sign * months, 0);
      } else {
        SplitNumber(builder, token.text, &whole, &fraction);
        if (token.negative) whole = -whole, fraction = -fraction;
        Unit unit = UnitOfRange(range);
        if (i + 1 < tokens.size() && tokens[i + 1].kind == Token::kWord) {
          unit = UnitOf(tokens[i + 1].text);
          if (unit == Unit::kNone) builder.Bad();
          if (unit == Unit::kAgo) unit = UnitOfRange(range);
          else i++;
        } else if (i + 1 < tokens.size() && tokens[i + 1].kind == Token::kClock) {
          unit = Unit::kDay;  // '3 04:05:06'
        } else if (i + 1 < tokens.size()) {
          // A bare number before a number of hours counts days: '1 2 hours'.
          bool named = i + 2 < tokens.size() && tokens[i + 2].kind == Token::kWord;
          Unit next = named ? UnitOf(tokens[i + 2].text) : UnitOfRange(range);
          if (tokens[i + 1].kind != Token::kNumber || next != Unit::kHour) builder.Bad();
          unit = Unit::kDay;
        }
        builder.See(unit == Unit::kSecond && fraction != 0 ? kAllSeconds : Bit(unit));
        builder.Add(unit, whole, fraction);
      }
    }
  }
  Interval interval = builder.Build();
  ApplyIntervalTypmod(&interval, typmod);
  return interval;
}

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
  if (std::isnan(total) || !(total >= -9223372036854775808.0 && total < 9223372036854775808.0)) OutOfRange();
  result.microseconds = static_cast<int64_t>(total);
  return result;
}

}  // namespace

Interval MultiplyInterval(const Interval& a, double factor) {
  return Cascade(a.months * factor, a.days * factor, static_cast<double>(a.microseconds) * factor);
}

Interval DivideInterval(const Interval& a, double divisor) {
  if (divisor == 0) Throw(sqlstate::kDivisionByZero, "division by zero");
  return Cascade(a.months / divisor, a.days / divisor, static_cast<double>(a.microseconds) / divisor);
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
  int64_t time = local - (int64_t{JulianDay(f.year, f.month, f.day)} - kPostgresEpochJulian) * kMicrosPerDay;
  int64_t month = int64_t{f.year} * kMonthsPerYear + (f.month - 1) + months;
  int64_t year = month / kMonthsPerYear - (month % kMonthsPerYear < 0);
  f.month = static_cast<int>(month - year * kMonthsPerYear) + 1;
  if (year < -4800 || year > 300000) out_of_range();
  f.day = std::min(f.day, DaysInMonth(static_cast<int>(year), f.month));
  int64_t day = int64_t{JulianDay(static_cast<int>(year), f.month, f.day)} - kPostgresEpochJulian + days;
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
  if (__builtin_add_overflow(timestamp, interval.microseconds, &timestamp) || !IsValidTimestamp(timestamp)) {
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
    timestamp =
        LocalToTimestamptz(PlusMonthsAndDays(TimestamptzToLocal(timestamp, zone), 0, interval.days), zone);
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
  int64_t time = hours * kMicrosPerHour + minutes * kMicrosPerMinute + seconds * kMicrosPerSecond + micros;
  return {sign * time, static_cast<int32_t>(sign * days),
          static_cast<int32_t>(sign * (years * kMonthsPerYear + months))};
}

}  // namespace sluice
