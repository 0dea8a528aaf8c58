// interval: text output in its four styles.
#include "common/error.h"
#include "types/datetime.h"

namespace sluice {
namespace {

constexpr int kMonthsPerYear = 12;

// An interval taken apart; all parts of time have its sign.
struct Parts {
  int64_t years, months, days, hours, minutes, seconds, micros;
};

Parts PartsOf(const Interval& interval) {
  int64_t t = interval.microseconds;
  return {interval.months / kMonthsPerYear,
          interval.months % kMonthsPerYear,
          interval.days,
          t / kMicrosPerHour,
          t / kMicrosPerMinute % 60,
          t / kMicrosPerSecond % 60,
          t % kMicrosPerSecond};
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
  *out += fmt::format("{}{}{:02}:{:02}:", zero ? "" : " ",
                      minus    ? "-"
                      : before ? "+"
                               : "",
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
    if (zero)
      ago = negative;
    else if (negative != ago)
      *out += "-";
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
  bool negative = any([](int64_t x) { return x < 0; }),
       positive = any([](int64_t x) { return x > 0; });
  bool year_month = p.years != 0 || p.months != 0, day = p.days != 0;
  bool time = p.hours != 0 || p.minutes != 0 || p.seconds != 0 || p.micros != 0;
  if (!negative && !positive) {
    *out += "0";
    return;
  }
  if ((negative && positive) || (year_month && (day || time))) {
    char year_sign = p.years < 0 || p.months < 0 ? '-' : '+', day_sign = p.days < 0 ? '-' : '+';
    char time_sign = p.hours < 0 || p.minutes < 0 || p.seconds < 0 || p.micros < 0 ? '-' : '+';
    *out +=
        fmt::format("{}{}-{} {}{} {}{}:{:02}:", year_sign, std::abs(p.years), std::abs(p.months),
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

}  // namespace

void AppendIntervalText(const Interval& interval, const SessionSettings& settings,
                        std::string* out) {
  Parts parts = PartsOf(interval);
  switch (static_cast<IntervalStyle>(settings.interval_style)) {
    case IntervalStyle::kPostgres:
      return AppendPostgres(parts, out);
    case IntervalStyle::kPostgresVerbose:
      return AppendVerbose(parts, out);
    case IntervalStyle::kSqlStandard:
      return AppendSqlStandard(parts, out);
    case IntervalStyle::kIso8601:
      return AppendIso8601(parts, out);
  }
}

}  // namespace sluice
