// Time zones by their IANA names, as POSIX strings ("EST5EDT", "<+03>-03") and as plain offsets.
// Read from the host's zoneinfo, with the rule that holds after the file's last transition (most
// libraries stop in 2037).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

class TimeZone {
 public:
  struct Period {
    int32_t offset_seconds;  // east of UTC
    bool dst;
    std::string abbreviation;
  };

  // At an instant: seconds since 1970 UTC.
  const Period& At(int64_t unix_seconds) const;
  // Offset of a wall clock time. In the gap of a spring-forward the offset before it; where the
  // clock shows a time twice, the second (what Postgres does).
  int32_t OffsetOfLocal(int64_t local_seconds) const;
  const std::string& name() const { return name_; }

 private:
  friend const TimeZone* FindTimeZone(std::string_view);
  // When a POSIX rule switches: day `week` (5 = last) `weekday` of `month`, or a day of the year.
  struct Switch {
    char kind;  // 'M', 'J' (1…365, no Feb 29), 'D' (0…365)
    int month, week, weekday, day;
    int32_t second;
  };
  struct Transition {
    int64_t at;
    size_t period;  // into periods_, from then on
  };

  bool LoadFile(const std::string& path);
  bool ParsePosix(std::string_view spec);
  void RuleTransitions(int64_t year, Transition out[2]) const;
  bool Next(int64_t after, int64_t* at, size_t* period) const;
  size_t PeriodAt(int64_t unix_seconds) const;

  std::string name_;
  std::vector<Period> periods_;
  std::vector<Transition> transitions_;
  size_t first_period_ = 0;
  bool has_rule_ = false;  // with daylight saving time
  size_t rule_standard_ = 0, rule_dst_ = 0;
  bool has_last_ = false;  // a footer without daylight saving time: rule_standard_ for good
  Switch to_dst_{}, to_standard_{};
};

// nullptr where there is none of that name. Cached for the process's life.
const TimeZone* FindTimeZone(std::string_view name);
const TimeZone* UtcZone();
// A zone abbreviation that Postgres knows by default ("EST", "CEST"): its offset east of UTC in
// seconds.
bool FindZoneAbbreviation(std::string_view word, int32_t* offset_seconds);

}  // namespace sluice
