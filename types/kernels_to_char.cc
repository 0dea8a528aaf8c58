// to_char of timestamp and timestamptz.
#include "types/datetime.h"
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"

namespace sluice {
namespace {

using View = std::string_view;

enum class Key : uint8_t {
  kEra,
  kEraDots,
  kMeridiem,
  kMeridiemDots,
  kCentury,
  kDayName,
  kDayShort,
  kDayOfYear,
  kDay,
  kDayOfWeek,
  kFraction,
  kFixed,
  kHour24,
  kHour12,
  kIsoDayOfYear,
  kIsoDay,
  kIsoWeek,
  kIsoYear,
  kJulian,
  kMinute,
  kMonth,
  kMonthName,
  kMonthShort,
  kOffset,
  kQuarter,
  kRoman,
  kSecondsOfDay,
  kSecond,
  kZone,
  kZoneHour,
  kZoneMinute,
  kWeek,
  kWeekOfMonth,
  kYearComma,
  kYear,
};
enum class Case : uint8_t { kUpper, kCapital, kLower };

struct Keyword {
  View text;
  Key key;
  int digits = 0;  // of years and fractions
};

// Of those that start alike the longer come first. Lower case means the same but for names.
constexpr Keyword kKeywords[] = {
    {"A.D.", Key::kEraDots},
    {"A.M.", Key::kMeridiemDots},
    {"AD", Key::kEra},
    {"AM", Key::kMeridiem},
    {"B.C.", Key::kEraDots},
    {"BC", Key::kEra},
    {"CC", Key::kCentury},
    {"DAY", Key::kDayName},
    {"DDD", Key::kDayOfYear},
    {"DD", Key::kDay},
    {"DY", Key::kDayShort},
    {"D", Key::kDayOfWeek},
    {"FF1", Key::kFraction, 1},
    {"FF2", Key::kFraction, 2},
    {"FF3", Key::kFraction, 3},
    {"FF4", Key::kFraction, 4},
    {"FF5", Key::kFraction, 5},
    {"FF6", Key::kFraction, 6},
    {"FX", Key::kFixed},
    {"HH24", Key::kHour24},
    {"HH12", Key::kHour12},
    {"HH", Key::kHour12},
    {"IDDD", Key::kIsoDayOfYear},
    {"ID", Key::kIsoDay},
    {"IW", Key::kIsoWeek},
    {"IYYY", Key::kIsoYear, 4},
    {"IYY", Key::kIsoYear, 3},
    {"IY", Key::kIsoYear, 2},
    {"I", Key::kIsoYear, 1},
    {"J", Key::kJulian},
    {"MI", Key::kMinute},
    {"MM", Key::kMonth},
    {"MONTH", Key::kMonthName},
    {"MON", Key::kMonthShort},
    {"MS", Key::kFraction, 3},
    {"OF", Key::kOffset},
    {"P.M.", Key::kMeridiemDots},
    {"PM", Key::kMeridiem},
    {"Q", Key::kQuarter},
    {"RM", Key::kRoman},
    {"SSSSS", Key::kSecondsOfDay},
    {"SSSS", Key::kSecondsOfDay},
    {"SS", Key::kSecond},
    {"TZH", Key::kZoneHour},
    {"TZM", Key::kZoneMinute},
    {"TZ", Key::kZone},
    {"US", Key::kFraction, 6},
    {"WW", Key::kWeek},
    {"W", Key::kWeekOfMonth},
    {"Y,YYY", Key::kYearComma},
    {"YYYY", Key::kYear, 4},
    {"YYY", Key::kYear, 3},
    {"YY", Key::kYear, 2},
    {"Y", Key::kYear, 1},
};
constexpr Keyword kCapitalised[] = {
    {"Day", Key::kDayName},
    {"Dy", Key::kDayShort},
    {"Month", Key::kMonthName},
    {"Mon", Key::kMonthShort},
};

constexpr View kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                            "July",    "August",   "September", "October", "November", "December"};
constexpr View kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                          "Thursday", "Friday", "Saturday"};
constexpr View kRomanMonths[] = {"I",   "II",   "III", "IV", "V",  "VI",
                                 "VII", "VIII", "IX",  "X",  "XI", "XII"};

std::string InCase(View text, Case letters) {
  std::string out(text);
  for (size_t i = 0; i < out.size(); i++) {
    bool upper = letters == Case::kUpper || (letters == Case::kCapital && i == 0);
    char c = out[i];
    if (upper && c >= 'a' && c <= 'z') out[i] = static_cast<char>(c - 32);
    if (!upper && c >= 'A' && c <= 'Z') out[i] = static_cast<char>(c + 32);
  }
  return out;
}

// One piece of a format: literal text, or a field with its modifiers.
struct Piece {
  std::string literal;
  const Keyword* keyword = nullptr;
  Case letters = Case::kUpper;
  bool fill = true;         // off by FM
  bool translated = false;  // TM
  char ordinal = 0;         // 'T' or 't': TH, th
};

const Keyword* FindKeyword(View rest, Case* letters) {
  for (const Keyword& keyword : kCapitalised) {
    if (rest.substr(0, keyword.text.size()) == keyword.text)
      return *letters = Case::kCapital, &keyword;
  }
  for (const Keyword& keyword : kKeywords) {
    View part = rest.substr(0, keyword.text.size());
    if (part == keyword.text) return *letters = Case::kUpper, &keyword;
    if (part == InCase(keyword.text, Case::kLower)) return *letters = Case::kLower, &keyword;
  }
  return nullptr;
}

std::vector<Piece> ParseFormat(View rest) {
  std::vector<Piece> pieces;
  while (!rest.empty()) {
    Piece piece;
    View two = rest.substr(0, 2);
    if (two == "FM" || two == "fm") piece.fill = false;
    if (two == "TM" || two == "tm") piece.translated = true;
    if (!piece.fill || piece.translated) rest.remove_prefix(2);
    if (rest.empty()) break;
    piece.keyword = FindKeyword(rest, &piece.letters);
    if (piece.keyword != nullptr) {
      rest.remove_prefix(piece.keyword->text.size());
      two = rest.substr(0, 2);
      if (two == "TH" || two == "th") piece.ordinal = two[0];
      if (piece.ordinal != 0 || two == "SP") rest.remove_prefix(2);
    } else if (rest[0] == '"') {
      for (rest.remove_prefix(1); !rest.empty() && rest[0] != '"'; rest.remove_prefix(1)) {
        if (rest[0] == '\\' && rest.size() > 1) rest.remove_prefix(1);
        piece.literal.push_back(rest[0]);
      }
      if (!rest.empty()) rest.remove_prefix(1);
    } else {
      if (rest[0] == '\\' && rest.size() > 1 && rest[1] == '"') rest.remove_prefix(1);
      piece.literal.push_back(rest[0]);
      rest.remove_prefix(1);
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

struct IsoDate {
  int year, week, day_of_year;
};
IsoDate IsoDateOf(int64_t day) {
  int isodow = WeekdayOf(day) == 0 ? 7 : WeekdayOf(day);
  int year, month, dom;
  JulianToDate(day - isodow + 4 + kPostgresEpochJulian, &year, &month, &dom);
  int64_t fourth = int64_t{JulianDay(year, 1, 4)} - kPostgresEpochJulian;  // always in week 1
  int64_t monday = fourth - (WeekdayOf(fourth) + 6) % 7;
  return {year, static_cast<int>((day - monday) / 7) + 1, static_cast<int>(day - monday) + 1};
}

class Formatter {
 public:
  Formatter(int64_t timestamp, const TimeZone* zone) : f_(FieldsOf(timestamp, zone)) {
    day_ = int64_t{JulianDay(f_.year, f_.month, f_.day)} - kPostgresEpochJulian;
  }

  std::string Format(const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      if (piece.keyword == nullptr)
        out_ += piece.literal;
      else
        Field(piece);
    }
    return std::move(out_);
  }

 private:
  // A number of at least `width` digits, with st, nd, rd, th if asked for.
  void Number(const Piece& piece, int64_t value, int width) {
    std::string digits = fmt::format("{:0{}}", value, piece.fill ? width : 0);
    out_ += digits;
    if (piece.ordinal == 0) return;
    char last = digits.back(), before = digits.size() > 1 ? digits[digits.size() - 2] : '0';
    View suffix = "TH";
    if (before != '1') suffix = last == '1' ? "ST" : last == '2' ? "ND" : last == '3' ? "RD" : "TH";
    out_ += InCase(suffix, piece.ordinal == 'T' ? Case::kUpper : Case::kLower);
  }
  void Name(const Piece& piece, View name, size_t width) {
    out_ += InCase(name, piece.letters);
    if (piece.fill && !piece.translated && name.size() < width)
      out_.append(width - name.size(), ' ');
  }
  void Year(const Piece& piece, int year, int digits) {
    constexpr int kModulus[] = {1, 10, 100, 1000};
    year = year > 0 ? year : 1 - year;
    Number(piece, digits == 4 ? year : year % kModulus[digits], digits);
  }
  void Meridiem(const Piece& piece, View am, View pm) {
    out_ += InCase(f_.hour >= 12 ? pm : am, piece.letters);
  }

  void Field(const Piece& piece) {
    int weekday = WeekdayOf(day_);
    int day_of_year = static_cast<int>(day_ + kPostgresEpochJulian - JulianDay(f_.year, 1, 1)) + 1;
    int offset = std::abs(f_.offset_seconds);
    char sign = f_.offset_seconds < 0 ? '-' : '+';
    int64_t second_of_day = f_.hour * 3600 + f_.minute * 60 + f_.second;
    switch (piece.keyword->key) {
      case Key::kEra:
        out_ += InCase(f_.year <= 0 ? "BC" : "AD", piece.letters);
        break;
      case Key::kEraDots:
        out_ += InCase(f_.year <= 0 ? "B.C." : "A.D.", piece.letters);
        break;
      case Key::kMeridiem:
        Meridiem(piece, "AM", "PM");
        break;
      case Key::kMeridiemDots:
        Meridiem(piece, "A.M.", "P.M.");
        break;
      case Key::kCentury: {
        int century = f_.year > 0 ? (f_.year - 1) / 100 + 1 : f_.year / 100 - 1;
        Number(piece, century, century >= 0 ? 2 : 3);
        break;
      }
      case Key::kDayName:
        Name(piece, kDays[weekday], 9);
        break;
      case Key::kDayShort:
        Name(piece, kDays[weekday].substr(0, 3), 0);
        break;
      case Key::kDayOfYear:
        Number(piece, day_of_year, 3);
        break;
      case Key::kDay:
        Number(piece, f_.day, 2);
        break;
      case Key::kDayOfWeek:
        Number(piece, weekday + 1, 1);
        break;
      case Key::kFraction: {
        constexpr int kUnits[] = {0, 100000, 10000, 1000, 100, 10, 1};
        int digits = piece.keyword->digits;
        Piece filled = piece;
        filled.fill = true;  // FM does not shorten fractions
        Number(filled, f_.microsecond / kUnits[digits], digits);
        break;
      }
      case Key::kFixed:
        break;
      case Key::kHour24:
        Number(piece, f_.hour, 2);
        break;
      case Key::kHour12:
        Number(piece, f_.hour % 12 == 0 ? 12 : f_.hour % 12, 2);
        break;
      case Key::kIsoDayOfYear:
        Number(piece, IsoDateOf(day_).day_of_year, 3);
        break;
      case Key::kIsoDay:
        Number(piece, weekday == 0 ? 7 : weekday, 1);
        break;
      case Key::kIsoWeek:
        Number(piece, IsoDateOf(day_).week, 2);
        break;
      case Key::kIsoYear:
        Year(piece, IsoDateOf(day_).year, piece.keyword->digits);
        break;
      case Key::kJulian:
        Number(piece, day_ + kPostgresEpochJulian, 1);
        break;
      case Key::kMinute:
        Number(piece, f_.minute, 2);
        break;
      case Key::kMonth:
        Number(piece, f_.month, 2);
        break;
      case Key::kMonthName:
        Name(piece, kMonths[f_.month - 1], 9);
        break;
      case Key::kMonthShort:
        Name(piece, kMonths[f_.month - 1].substr(0, 3), 0);
        break;
      case Key::kOffset:
        out_ += fmt::format("{}{:0{}}", sign, offset / 3600, piece.fill ? 2 : 0);
        if (offset % 3600 >= 60) out_ += fmt::format(":{:02}", offset / 60 % 60);
        break;
      case Key::kQuarter:
        Number(piece, (f_.month - 1) / 3 + 1, 1);
        break;
      case Key::kRoman:
        Name(piece, kRomanMonths[f_.month - 1], 4);
        break;
      case Key::kSecondsOfDay:
        Number(piece, second_of_day, 1);
        break;
      case Key::kSecond:
        Number(piece, f_.second, 2);
        break;
      case Key::kZone:
        if (f_.period != nullptr) out_ += InCase(f_.period->abbreviation, piece.letters);
        break;
      case Key::kZoneHour:
        out_ += fmt::format("{}{:02}", sign, offset / 3600);
        break;
      case Key::kZoneMinute:
        out_ += fmt::format("{:02}", offset / 60 % 60);
        break;
      case Key::kWeek:
        Number(piece, (day_of_year - 1) / 7 + 1, 2);
        break;
      case Key::kWeekOfMonth:
        Number(piece, (f_.day - 1) / 7 + 1, 1);
        break;
      case Key::kYearComma: {
        int year = f_.year > 0 ? f_.year : 1 - f_.year;
        out_ += fmt::format("{},{:03}", year / 1000, year % 1000);
        break;
      }
      case Key::kYear:
        Year(piece, f_.year, piece.keyword->digits);
        break;
    }
  }

  DateTimeFields f_;
  int64_t day_;
  std::string out_;
};

template <bool kHasZone>
void ToChar(const KernelCall& call) {
  const Column &time = *call.args[0], &format = *call.args[1];
  const TimeZone* zone = kHasZone ? &ZoneOf(*call.context->settings) : nullptr;
  std::vector<Piece> pieces;
  View parsed;
  ForEachRow(call, [&](size_t i) {
    int64_t t = time.At<int64_t>(i);
    View text = format.At<View>(i);
    if (text.empty() || IsInfinite(t)) return SetNull(call, i);
    if (pieces.empty() || parsed.data() != text.data() || parsed.size() != text.size()) {
      pieces = ParseFormat(text);
      parsed = text;
    }
    call.out->Data<View>()[i] = CopyResult(call, Formatter(t, zone).Format(pieces));
  });
}

constexpr Kernel kKernels[] = {
    {2049, "to_char", true, ToChar<false>},
    {1770, "to_char", true, ToChar<true>},
};

}  // namespace

std::span<const Kernel> ToCharKernels() {
  return kKernels;
}

}  // namespace sluice
