#include "types/time_zone.h"

#include <cstdio>
#include <dirent.h>
#include <strings.h>

#include "common/bytes.h"
#include "types/datetime.h"

namespace sluice {
namespace {

constexpr const char* kZoneInfo = "/usr/share/zoneinfo";
constexpr int64_t kSecondsPerDay = 86400;

std::string ReadFile(const std::string& path) {
  std::string content;
  FILE* file = fopen(path.c_str(), "rb");
  if (file == nullptr) return content;
  char buffer[8192];
  size_t got;
  while ((got = fread(buffer, 1, sizeof buffer, file)) > 0 && content.size() < (1u << 20)) {
    content.append(buffer, got);
  }
  fclose(file);
  return content;
}

int64_t DaysFromUnix(int64_t year, int month, int day) {
  return JulianDay(static_cast<int>(year), month, day) - kUnixEpochJulian;
}

// The reader of POSIX TZ strings.
struct PosixReader {
  std::string_view text;

  bool Empty() const { return text.empty(); }
  bool Take(char c) {
    if (text.empty() || text[0] != c) return false;
    text.remove_prefix(1);
    return true;
  }
  bool Name(std::string* out) {
    out->clear();
    if (Take('<')) {
      size_t end = text.find('>');
      if (end == std::string_view::npos) return false;
      *out = text.substr(0, end);
      text.remove_prefix(end + 1);
      return !out->empty();
    }
    while (!text.empty() && ((text[0] | 0x20) >= 'a' && (text[0] | 0x20) <= 'z')) {
      out->push_back(text[0]);
      text.remove_prefix(1);
    }
    // Postgres takes a bare offset too ("+02"); its sign is POSIX's.
    return out->size() >= 3 || (out->empty() && !text.empty() && text[0] != ',');
  }
  bool Number(int* out, int most) {
    if (text.empty() || text[0] < '0' || text[0] > '9') return false;
    int value = 0;
    while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
      value = value * 10 + (text[0] - '0');
      if (value > most) return false;
      text.remove_prefix(1);
    }
    *out = value;
    return true;
  }
  // [+-]hh[:mm[:ss]] in seconds.
  bool Time(int32_t* out) {
    bool negative = false;
    if (Take('-'))
      negative = true;
    else
      Take('+');
    int hours = 0, minutes = 0, seconds = 0;
    if (!Number(&hours, 167)) return false;
    if (Take(':')) {
      if (!Number(&minutes, 59)) return false;
      if (Take(':') && !Number(&seconds, 59)) return false;
    }
    *out = hours * 3600 + minutes * 60 + seconds;
    if (negative) *out = -*out;
    return true;
  }
};

struct ZoneAbbreviation {
  std::string_view name;
  int32_t hours_times_4;  // quarters of an hour east
};

// The fixed ones of Postgres's default set that are in use; sorted by name.
constexpr ZoneAbbreviation kAbbreviations[] = {
    {"acst", 38},  {"acdt", 42},  {"adt", -12}, {"aedt", 44},   {"aest", 40}, {"akdt", -32},
    {"akst", -36}, {"ast", -16},  {"awst", 32}, {"bst", 4},     {"cadt", 42}, {"cast", 38},
    {"cdt", -20},  {"cest", 8},   {"cet", 4},   {"cetdst", 8},  {"cst", -24}, {"eat", 12},
    {"edt", -16},  {"eest", 12},  {"eet", 8},   {"eetdst", 12}, {"est", -20}, {"gmt", 0},
    {"hkt", 32},   {"hst", -40},  {"idt", 12},  {"ist", 8},     {"jst", 36},  {"kst", 36},
    {"mdt", -24},  {"mest", 8},   {"met", 4},   {"mst", -28},   {"ndt", -10}, {"nst", -14},
    {"nzdt", 52},  {"nzst", 48},  {"pdt", -28}, {"pht", 32},    {"pkt", 20},  {"pst", -32},
    {"sast", 8},   {"ut", 0},     {"utc", 0},   {"wast", 8},    {"wat", 4},   {"west", 4},
    {"wet", 0},    {"wetdst", 4}, {"z", 0},     {"zulu", 0},
};

// The file's own spelling of a zone name given in any case; empty where there is none.
std::string SpellingOf(std::string_view name) {
  std::string found;
  while (!name.empty()) {
    size_t slash = name.find('/');
    std::string part(name.substr(0, slash));
    if (part.empty() || part[0] == '.') return {};
    DIR* directory = opendir((std::string(kZoneInfo) + found).c_str());
    if (directory == nullptr) return {};
    std::string match;
    while (const dirent* entry = readdir(directory)) {
      if (strcasecmp(entry->d_name, part.c_str()) == 0) match = entry->d_name;
    }
    closedir(directory);
    if (match.empty()) return {};
    found += "/" + match;
    name = slash == std::string_view::npos ? std::string_view() : name.substr(slash + 1);
  }
  return found.empty() ? found : found.substr(1);
}

}  // namespace

bool TimeZone::ParsePosix(std::string_view spec) {
  PosixReader reader{spec};
  Period standard{0, false, {}}, dst{0, true, {}};
  int32_t west = 0;
  if (!reader.Name(&standard.abbreviation) || !reader.Time(&west)) return false;
  standard.offset_seconds = -west;
  rule_standard_ = periods_.size();
  periods_.push_back(standard);
  if (reader.Empty()) {
    has_last_ = true;
    return true;
  }
  if (!reader.Name(&dst.abbreviation)) return false;
  dst.offset_seconds = standard.offset_seconds + 3600;
  if (!reader.Empty() && reader.text[0] != ',') {
    if (!reader.Time(&west)) return false;
    dst.offset_seconds = -west;
  }
  if (reader.Empty()) reader.text = ",M3.2.0,M11.1.0";  // the default rule of Postgres and others
  for (Switch* at : {&to_dst_, &to_standard_}) {
    if (!reader.Take(',')) return false;
    at->second = 7200;
    if (reader.Take('M')) {
      at->kind = 'M';
      if (!reader.Number(&at->month, 12) || !reader.Take('.') || !reader.Number(&at->week, 5) ||
          !reader.Take('.') || !reader.Number(&at->weekday, 6) || at->month < 1 || at->week < 1) {
        return false;
      }
    } else {
      at->kind = reader.Take('J') ? 'J' : 'D';
      if (!reader.Number(&at->day, 365)) return false;
    }
    if (reader.Take('/') && !reader.Time(&at->second)) return false;
  }
  if (!reader.Empty()) return false;
  has_rule_ = true;
  rule_dst_ = periods_.size();
  periods_.push_back(dst);
  return true;
}

bool TimeZone::LoadFile(const std::string& path) {
  std::string content = ReadFile(path);
  constexpr size_t kHeader = 44;
  if (content.size() < kHeader || content.compare(0, 4, "TZif") != 0 || content[4] < '2')
    return false;
  auto counts = [&](size_t header, uint32_t* out) {
    for (int i = 0; i < 6; i++) out[i] = LoadBig<uint32_t>(content.data() + header + 20 + 4 * i);
  };
  // isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt
  uint32_t n[6];
  counts(0, n);
  size_t second =
      kHeader + size_t{n[3]} * 5 + size_t{n[4]} * 6 + n[5] + size_t{n[2]} * 8 + n[1] + n[0];
  if (content.size() < second + kHeader) return false;
  counts(second, n);
  size_t times = second + kHeader, indexes = times + size_t{n[3]} * 8, types = indexes + n[3];
  size_t names = types + size_t{n[4]} * 6, footer = names + n[5] + size_t{n[2]} * 12 + n[1] + n[0];
  if (content.size() < footer || n[4] == 0) return false;
  for (uint32_t i = 0; i < n[4]; i++) {
    const char* type = content.data() + types + size_t{i} * 6;
    size_t name = static_cast<uint8_t>(type[5]);
    if (name >= n[5]) return false;
    periods_.push_back(
        {LoadBig<int32_t>(type), type[4] != 0, std::string(content.c_str() + names + name)});
  }
  for (uint32_t i = 0; i < n[3]; i++) {
    size_t period = static_cast<uint8_t>(content[indexes + i]);
    if (period >= periods_.size()) return false;
    transitions_.push_back({LoadBig<int64_t>(content.data() + times + size_t{i} * 8), period});
  }
  if (footer + 2 <= content.size()) {
    std::string_view rule = std::string_view(content).substr(footer + 1);
    rule = rule.substr(0, rule.find('\n'));
    if (!rule.empty() && !ParsePosix(rule)) return false;
  }
  return true;
}

void TimeZone::RuleTransitions(int64_t year, Transition out[2]) const {
  auto instant = [&](const Switch& at, int32_t offset_before) {
    int64_t day;
    if (at.kind == 'M') {
      int64_t first = DaysFromUnix(year, at.month, 1);
      int weekday = static_cast<int>(((first + 4) % 7 + 7) % 7);  // 1970-01-01 was a Thursday
      day = first + (at.weekday - weekday + 7) % 7 + 7 * (at.week - 1);
      int64_t next =
          at.month == 12 ? DaysFromUnix(year + 1, 1, 1) : DaysFromUnix(year, at.month + 1, 1);
      while (day >= next) day -= 7;
    } else {
      bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
      day = DaysFromUnix(year, 1, 1) + at.day;
      if (at.kind == 'J') day -= !(leap && at.day >= 60);
    }
    return day * kSecondsPerDay + at.second - offset_before;
  };
  out[0] = {instant(to_dst_, periods_[rule_standard_].offset_seconds), rule_dst_};
  out[1] = {instant(to_standard_, periods_[rule_dst_].offset_seconds), rule_standard_};
  if (out[1].at < out[0].at) std::swap(out[0], out[1]);
}

namespace {
int64_t YearOf(int64_t unix_seconds) {
  int64_t day = unix_seconds / kSecondsPerDay - (unix_seconds % kSecondsPerDay < 0);
  int year, month, dom;
  JulianToDate(day + kUnixEpochJulian, &year, &month, &dom);
  return year;
}
}  // namespace

size_t TimeZone::PeriodAt(int64_t t) const {
  bool after_file = transitions_.empty() || t >= transitions_.back().at;
  if (after_file && has_rule_) {
    Transition of_year[2];
    RuleTransitions(YearOf(t), of_year);
    if (t >= of_year[1].at) return of_year[1].period;
    if (t >= of_year[0].at) return of_year[0].period;
    return of_year[1].period;  // as since last year's second
  }
  if (after_file && has_last_) return rule_standard_;
  auto next = std::upper_bound(transitions_.begin(), transitions_.end(), t,
                               [](int64_t at, const Transition& x) { return at < x.at; });
  return next == transitions_.begin() ? first_period_ : std::prev(next)->period;
}

const TimeZone::Period& TimeZone::At(int64_t unix_seconds) const {
  return periods_[PeriodAt(unix_seconds)];
}

bool TimeZone::Next(int64_t after, int64_t* at, size_t* period) const {
  auto next = std::upper_bound(transitions_.begin(), transitions_.end(), after,
                               [](int64_t t, const Transition& x) { return t < x.at; });
  if (next != transitions_.end()) {
    *at = next->at;
    *period = next->period;
    return true;
  }
  if (!has_rule_) return false;
  int64_t year = YearOf(after);
  for (int64_t y = year - 1; y <= year + 1; y++) {
    Transition of_year[2];
    RuleTransitions(y, of_year);
    for (const Transition& x : of_year) {
      if (x.at > after) {
        *at = x.at;
        *period = x.period;
        return true;
      }
    }
  }
  return false;
}

int32_t TimeZone::OffsetOfLocal(int64_t local_seconds) const {
  int64_t start = local_seconds - kSecondsPerDay;
  int32_t before = periods_[PeriodAt(start)].offset_seconds;
  int64_t boundary = 0;
  size_t period = 0;
  if (!Next(start, &boundary, &period)) return before;
  int32_t after = periods_[period].offset_seconds;
  int64_t by_before = local_seconds - before, by_after = local_seconds - after;
  if (by_before < boundary && by_after < boundary) return before;
  if (by_before > boundary && by_after >= boundary) return after;
  return by_before > by_after ? before : after;
}

const TimeZone* FindTimeZone(std::string_view name) {
  static auto* zones = new std::map<std::string, std::unique_ptr<TimeZone>, std::less<>>();
  auto known = zones->find(name);
  if (known != zones->end()) return known->second.get();
  if (name.empty() || name.size() > 255 || name.find('\0') != std::string_view::npos)
    return nullptr;
  auto zone = std::make_unique<TimeZone>();
  std::string spelling = SpellingOf(name);
  bool ok = false;
  if (!spelling.empty()) ok = zone->LoadFile(std::string(kZoneInfo) + "/" + spelling);
  if (ok) {
    zone->name_ = spelling;
  } else {
    zone = std::make_unique<TimeZone>();
    zone->name_ = std::string(name);
    bool utc = name.size() == 3 &&
               (strncasecmp(name.data(), "UTC", 3) == 0 || strncasecmp(name.data(), "GMT", 3) == 0);
    ok = zone->ParsePosix(utc ? std::string_view("UTC0") : name);
  }
  if (!ok) return nullptr;
  return (*zones)[std::string(name)].swap(zone), zones->find(name)->second.get();
}

const TimeZone* UtcZone() {
  static const TimeZone* const zone = FindTimeZone("UTC");
  return zone;
}

bool FindZoneAbbreviation(std::string_view word, int32_t* offset_seconds) {
  for (const ZoneAbbreviation& known : kAbbreviations) {
    if (known.name.size() == word.size() &&
        strncasecmp(known.name.data(), word.data(), word.size()) == 0) {
      *offset_seconds = known.hours_times_4 * 900;
      return true;
    }
  }
  return false;
}

}  // namespace sluice
