// interval: text input.
#include <charconv>
#include <cmath>

#include "common/error.h"
#include "types/datetime.h"

namespace sluice {
namespace {

constexpr int kMonthsPerYear = 12, kDaysPerMonth = 30;

enum class Unit : uint8_t {
  kNone,
  kMicrosecond,
  kMillisecond,
  kSecond,
  kMinute,
  kHour,
  kDay,
  kWeek,
  kMonth,
  kYear,
  kDecade,
  kCentury,
  kMillennium,
  kAgo,
};

struct UnitName {
  std::string_view name;
  Unit unit;
};

constexpr UnitName kUnits[] = {
    {"us", Unit::kMicrosecond},
    {"usec", Unit::kMicrosecond},
    {"usecs", Unit::kMicrosecond},
    {"useconds", Unit::kMicrosecond},
    {"usecond", Unit::kMicrosecond},
    {"microsecond", Unit::kMicrosecond},
    {"microseconds", Unit::kMicrosecond},
    {"microsecon", Unit::kMicrosecond},
    {"ms", Unit::kMillisecond},
    {"msec", Unit::kMillisecond},
    {"msecs", Unit::kMillisecond},
    {"mseconds", Unit::kMillisecond},
    {"msecond", Unit::kMillisecond},
    {"millisecond", Unit::kMillisecond},
    {"milliseconds", Unit::kMillisecond},
    {"millisecon", Unit::kMillisecond},
    {"s", Unit::kSecond},
    {"sec", Unit::kSecond},
    {"secs", Unit::kSecond},
    {"second", Unit::kSecond},
    {"seconds", Unit::kSecond},
    {"m", Unit::kMinute},
    {"min", Unit::kMinute},
    {"mins", Unit::kMinute},
    {"minute", Unit::kMinute},
    {"minutes", Unit::kMinute},
    {"h", Unit::kHour},
    {"hr", Unit::kHour},
    {"hrs", Unit::kHour},
    {"hour", Unit::kHour},
    {"hours", Unit::kHour},
    {"d", Unit::kDay},
    {"day", Unit::kDay},
    {"days", Unit::kDay},
    {"w", Unit::kWeek},
    {"week", Unit::kWeek},
    {"weeks", Unit::kWeek},
    {"mon", Unit::kMonth},
    {"mons", Unit::kMonth},
    {"month", Unit::kMonth},
    {"months", Unit::kMonth},
    {"y", Unit::kYear},
    {"yr", Unit::kYear},
    {"yrs", Unit::kYear},
    {"year", Unit::kYear},
    {"years", Unit::kYear},
    {"dec", Unit::kDecade},
    {"decs", Unit::kDecade},
    {"decade", Unit::kDecade},
    {"decades", Unit::kDecade},
    {"c", Unit::kCentury},
    {"cent", Unit::kCentury},
    {"century", Unit::kCentury},
    {"centuries", Unit::kCentury},
    {"mil", Unit::kMillennium},
    {"mils", Unit::kMillennium},
    {"millennia", Unit::kMillennium},
    {"millennium", Unit::kMillennium},
    {"ago", Unit::kAgo},
};

constexpr uint32_t Bit(Unit unit) {
  return 1u << static_cast<int>(unit);
}
constexpr uint32_t kAllSeconds =
    Bit(Unit::kMicrosecond) | Bit(Unit::kMillisecond) | Bit(Unit::kSecond);

// Adds up what the text says; the fields overflow as Postgres's do.
struct Builder {
  int64_t months = 0, days = 0;
  __int128 micros = 0;
  uint32_t seen = 0;  // a bit for each Unit; no field may be given twice
  std::string_view whole;

  [[noreturn]] void Bad() const {
    Throw(sqlstate::kInvalidDatetimeFormat, "invalid input syntax for type interval: \"{}\"",
          whole);
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
      case Unit::kMicrosecond:
        AddTime(value, fraction, 1);
        break;
      case Unit::kMillisecond:
        AddTime(value, fraction, 1000);
        break;
      case Unit::kNone:
      case Unit::kSecond:
        AddTime(value, fraction, kMicrosPerSecond);
        break;
      case Unit::kMinute:
        AddTime(value, fraction, kMicrosPerMinute);
        break;
      case Unit::kHour:
        AddTime(value, fraction, kMicrosPerHour);
        break;
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
      case Unit::kYear:
        AddMonths(value, fraction, 12);
        break;
      case Unit::kDecade:
        AddMonths(value, fraction, 120);
        break;
      case Unit::kCentury:
        AddMonths(value, fraction, 1200);
        break;
      case Unit::kMillennium:
        AddMonths(value, fraction, 12000);
        break;
      case Unit::kAgo:
        Bad();
    }
    if (months > INT32_MAX || months < INT32_MIN || days > INT32_MAX || days < INT32_MIN)
      FieldOverflow();
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

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsAlpha(char c) {
  return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

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
      if (i < text.size() &&
          (text[i] == ':' || (text[i] == '-' && i + 1 < text.size() && IsDigit(text[i + 1])))) {
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

bool HasLetters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), IsAlpha);
}

// A number at the front, with its sign; 'inf' and 'nan' are none.
bool TakeNumber(std::string_view* text, double* value) {
  std::string_view digits = text->substr(!text->empty() && (*text)[0] == '+');
  size_t first = !digits.empty() && digits[0] == '-';
  if (first >= digits.size() || !(IsDigit(digits[first]) || digits[first] == '.')) return false;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *value,
                                      std::chars_format::fixed);
  if (error != std::errc() || std::abs(*value) > 9e15) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

void AddDouble(Builder* builder, Unit unit, double value) {
  int64_t whole = static_cast<int64_t>(value);
  builder->Add(unit, whole, value - static_cast<double>(whole));
}

// The format without unit letters: years-months-days, hours:minutes:seconds.
bool ParseIsoFields(Builder* builder, std::string_view text, char separator,
                    std::span<const Unit> units) {
  size_t basic = separator == '-' ? 8 : 6;  // without separators either: YYYYMMDD, HHMMSS
  if (text.size() == basic && std::all_of(text.begin(), text.end(), IsDigit)) {
    size_t first = basic - 4;
    builder->Add(units[0], WholeNumber(*builder, text.substr(0, first)), 0);
    builder->Add(units[1], WholeNumber(*builder, text.substr(first, 2)), 0);
    builder->Add(units[2], WholeNumber(*builder, text.substr(first + 2)), 0);
    return true;
  }
  for (Unit unit : units) {
    double value = 0;
    if (!TakeNumber(&text, &value)) return false;
    AddDouble(builder, unit, value);
    if (text.empty()) return true;
    if (text[0] != separator) return false;
    text.remove_prefix(1);
  }
  return false;
}

bool ParseIsoUnits(Builder* builder, std::string_view text, bool time) {
  while (!text.empty()) {
    double value = 0;
    if (!TakeNumber(&text, &value) || text.empty()) return false;
    char letter = static_cast<char>(text[0] & ~0x20);
    text.remove_prefix(1);
    Unit unit = Unit::kNone;
    if (!time)
      unit = letter == 'Y'   ? Unit::kYear
             : letter == 'M' ? Unit::kMonth
             : letter == 'W' ? Unit::kWeek
             : letter == 'D' ? Unit::kDay
                             : Unit::kNone;
    else
      unit = letter == 'H'   ? Unit::kHour
             : letter == 'M' ? Unit::kMinute
             : letter == 'S' ? Unit::kSecond
                             : Unit::kNone;
    if (unit == Unit::kNone) return false;
    AddDouble(builder, unit, value);
  }
  return true;
}

// REQUIRES: a P at the front.
bool ParseIsoInterval(Builder* builder, std::string_view text) {
  static constexpr Unit kDateUnits[] = {Unit::kYear, Unit::kMonth, Unit::kDay};
  static constexpr Unit kTimeUnits[] = {Unit::kHour, Unit::kMinute, Unit::kSecond};
  text.remove_prefix(1);
  size_t split = text.find_first_of("Tt");
  std::string_view date = text.substr(0, split), time;
  if (split != std::string_view::npos) time = text.substr(split + 1);
  if (date.empty() && time.empty()) return false;
  bool ok = date.empty() || (HasLetters(date) ? ParseIsoUnits(builder, date, false)
                                              : ParseIsoFields(builder, date, '-', kDateUnits));
  return ok &&
         (time.empty() || (HasLetters(time) ? ParseIsoUnits(builder, time, true)
                                            : ParseIsoFields(builder, time, ':', kTimeUnits)));
}

// In the SQL-standard style one leading minus governs all, unless another sign is given.
void SpreadSign(std::vector<Token>* tokens) {
  bool only_sign = (*tokens)[0].negative;
  for (size_t i = 1; i < tokens->size(); i++) only_sign &= !(*tokens)[i].signed_;
  if (!only_sign) return;
  for (Token& token : *tokens) token.negative = true;
}

void AddYearMonth(Builder* builder, const Token& token) {
  size_t dash = token.text.find('-');
  int64_t months = WholeNumber(*builder, token.text.substr(dash + 1));
  if (months >= kMonthsPerYear) builder->FieldOverflow();
  int64_t sign = token.negative ? -1 : 1;
  builder->See(Bit(Unit::kYear) | Bit(Unit::kMonth));
  builder->Add(Unit::kYear, sign * WholeNumber(*builder, token.text.substr(0, dash)), 0);
  builder->Add(Unit::kMonth, sign * months, 0);
}

// The number at tokens[i]; returns the index of its last token.
size_t AddNumber(Builder* builder, const std::vector<Token>& tokens, size_t i, int32_t range) {
  int64_t whole = 0;
  double fraction = 0;
  SplitNumber(*builder, tokens[i].text, &whole, &fraction);
  if (tokens[i].negative) whole = -whole, fraction = -fraction;
  auto kind = [&](size_t at, Token::Kind wanted) {
    return at < tokens.size() && tokens[at].kind == wanted;
  };
  Unit unit = UnitOfRange(range);
  if (kind(i + 1, Token::kWord)) {
    Unit named = UnitOf(tokens[i + 1].text);
    if (named == Unit::kNone) builder->Bad();
    if (named != Unit::kAgo) {
      unit = named;
      i++;
    }
  } else if (kind(i + 1, Token::kClock)) {
    unit = Unit::kDay;  // '3 04:05:06'
  } else if (i + 1 < tokens.size()) {
    // A bare number before a number of hours counts days: '1 2 hours'.
    Unit next = kind(i + 2, Token::kWord) ? UnitOf(tokens[i + 2].text) : UnitOfRange(range);
    if (!kind(i + 1, Token::kNumber) || next != Unit::kHour) builder->Bad();
    unit = Unit::kDay;
  }
  builder->See(unit == Unit::kSecond && fraction != 0 ? kAllSeconds : Bit(unit));
  builder->Add(unit, whole, fraction);
  return i;
}

void AddTokens(Builder* builder, const std::vector<Token>& tokens, int32_t range) {
  constexpr int32_t kMinuteToSecond = 1 << 11 | 1 << 12;
  bool any = false;
  for (size_t i = 0; i < tokens.size(); i++) {
    const Token& token = tokens[i];
    switch (token.kind) {
      case Token::kWord:
        if (!any || i + 1 != tokens.size() || UnitOf(token.text) != Unit::kAgo) builder->Bad();
        builder->months = -builder->months;
        builder->days = -builder->days;
        builder->micros = -builder->micros;
        break;
      case Token::kClock:
        AddClock(builder, token, range == kMinuteToSecond);
        break;
      case Token::kYearMonth:
        AddYearMonth(builder, token);
        break;
      case Token::kNumber:
        i = AddNumber(builder, tokens, i, range);
        break;
    }
    any = true;
  }
}

}  // namespace

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
    auto style = static_cast<IntervalStyle>(settings.interval_style);
    if (style == IntervalStyle::kSqlStandard) SpreadSign(&tokens);
    AddTokens(&builder, tokens, range);
  }
  Interval interval = builder.Build();
  ApplyIntervalTypmod(&interval, typmod);
  return interval;
}

}  // namespace sluice
