#include "postmaster/setting_checks.h"

#include <cmath>
#include <cstdlib>

#include "common/error.h"
#include "postmaster/settings.h"
#include "types/time_zone.h"

namespace sluice {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

constexpr std::string_view kStyleNames[] = {"ISO", "Postgres", "SQL", "German"};
constexpr std::string_view kOrderNames[] = {"YMD", "MDY", "DMY"};

std::optional<std::string> CheckTimeZone(std::string_view text) {
  std::string name(text);
  // A number is hours east of UTC; Postgres shows it as the POSIX string that it means.
  char* end;
  double hours = std::strtod(name.c_str(), &end);
  if (!name.empty() && *end == 0) {
    if (hours < -15.99 || hours > 15.99) return std::nullopt;
    auto minutes = static_cast<int>(std::lround(hours * 60));
    int rest = std::abs(minutes) % 60;
    std::string offset = fmt::format("{:02}", std::abs(minutes) / 60);
    if (rest != 0) offset += fmt::format(":{:02}", rest);
    name =
        fmt::format("<{}{}>{}{}", minutes < 0 ? "-" : "+", offset, minutes < 0 ? "+" : "-", offset);
  }
  if (name.size() >= sizeof(SessionSettings::time_zone)) return std::nullopt;
  if (Lower(name) == "utc") return "UTC";  // the common one needs no file
  const TimeZone* zone = FindTimeZone(name);
  if (zone == nullptr) return std::nullopt;
  return zone->name();
}

std::optional<std::string> CheckEncoding(std::string_view text) {
  std::string plain;
  for (char c : text)
    if (isalnum(static_cast<unsigned char>(c))) plain += static_cast<char>(tolower(c));
  if (plain == "utf8" || plain == "unicode") return "UTF8";
  for (std::string_view known : {"sqlascii", "latin1", "iso88591", "latin9", "iso885915", "win1252",
                                 "windows1252", "win1251", "koi8r", "eucjp", "sjis", "gbk", "big5"})
    if (plain == known)
      Throw(sqlstate::kFeatureNotSupported, "conversion between {} and UTF8 is not supported",
            text);
  return std::nullopt;
}

}  // namespace

std::optional<bool> ParseBoolean(std::string_view text) {
  std::string lower = Lower(Trim(text));
  if (lower.empty()) return std::nullopt;
  auto prefix_of = [&](std::string_view word, size_t least) {
    return lower.size() >= least && word.starts_with(lower);
  };
  if (prefix_of("true", 1) || prefix_of("yes", 1) || lower == "on" || lower == "1") return true;
  if (prefix_of("false", 1) || prefix_of("no", 1) || prefix_of("off", 2) || lower == "0")
    return false;
  return std::nullopt;
}

std::optional<DateStyleParts> ParseDateStyle(std::string_view text) {
  DateStyleParts parts{0, 1};
  auto words = SplitIdentifiers(text);
  if (!words) return std::nullopt;
  bool order_given = false;
  for (const std::string& word : *words) {
    std::string lower = Lower(word);
    if (lower == "iso")
      parts.style = 0;
    else if (lower.starts_with("postgres"))
      parts.style = 1;
    else if (lower == "sql")
      parts.style = 2;
    else if (lower.starts_with("german")) {
      parts.style = 3;
      if (!order_given) parts.order = 2;
    } else if (lower == "ymd")
      parts.order = 0, order_given = true;
    else if (lower == "mdy" || lower == "us" || lower.starts_with("noneuro"))
      parts.order = 1, order_given = true;
    else if (lower == "dmy" || lower.starts_with("euro"))
      parts.order = 2, order_given = true;
    else if (lower == "default")
      parts = {0, 1};
    else
      return std::nullopt;
  }
  return parts;
}

std::optional<std::string> CheckSetting(std::string_view name, std::string_view text) {
  if (name == "TimeZone") return CheckTimeZone(text);
  if (name == "client_encoding") return CheckEncoding(text);
  if (name == "DateStyle") {
    auto parts = ParseDateStyle(text);
    if (!parts) return std::nullopt;
    return fmt::format("{}, {}", kStyleNames[parts->style], kOrderNames[parts->order]);
  }
  if (name == "search_path") {
    if (!SplitIdentifiers(text)) return std::nullopt;
    return std::string(text);
  }
  if (name == "standard_conforming_strings" && text == "off")
    Refuse("standard_conforming_strings = off is not supported");
  if (name == "application_name") {  // as Postgres: printable ASCII only
    std::string clean(text.substr(0, 63));
    for (char& c : clean)
      if (c < 32 || c > 126) c = '?';
    return clean;
  }
  return std::string(text);
}

std::optional<std::vector<std::string>> SplitIdentifiers(std::string_view text) {
  std::vector<std::string> names;
  text = Trim(text);
  if (text.empty()) return names;
  for (;;) {
    text = Trim(text);
    std::string word;
    if (!text.empty() && text[0] == '"') {
      text.remove_prefix(1);
      for (;;) {
        size_t quote = text.find('"');
        if (quote == std::string_view::npos) return std::nullopt;
        word += text.substr(0, quote);
        text.remove_prefix(quote + 1);
        if (text.empty() || text[0] != '"') break;
        word += '"';
        text.remove_prefix(1);
      }
      text = Trim(text);
      if (!text.empty() && text[0] != ',') return std::nullopt;
    } else {
      std::string_view raw = Trim(text.substr(0, text.find(',')));
      if (raw.empty() || raw.find_first_of(" \t\n\"") != std::string_view::npos)
        return std::nullopt;
      word = Lower(raw);
      text.remove_prefix(std::min(text.size(), text.find(',')));
    }
    names.push_back(std::move(word));
    if (text.empty()) return names;
    text.remove_prefix(1);  // the comma
  }
}

std::vector<std::string> SearchPath(const Settings& settings, const std::string& user) {
  std::vector<std::string> path;
  auto names = SplitIdentifiers(settings.Text("search_path"));
  for (const std::string& name : names.value_or(std::vector<std::string>{}))
    path.push_back(name == "$user" ? user : name);
  if (std::find(path.begin(), path.end(), "pg_catalog") == path.end())
    path.insert(path.begin(), "pg_catalog");
  return path;
}

void DeriveSessionSettings(const Settings& settings, SessionSettings* to) {
  const std::string& zone = settings.Text("TimeZone");
  std::memcpy(to->time_zone, zone.c_str(), std::min(zone.size() + 1, sizeof to->time_zone));
  to->time_zone[sizeof to->time_zone - 1] = 0;
  if (auto parts = ParseDateStyle(settings.Text("DateStyle"))) {
    to->date_style = parts->style;
    to->date_order = parts->order;
  }
  const std::string& style = settings.Text("IntervalStyle");
  to->interval_style = style == "postgres_verbose" ? 1
                       : style == "sql_standard"   ? 2
                       : style == "iso_8601"       ? 3
                                                   : 0;
  to->extra_float_digits = static_cast<int8_t>(settings.Integer("extra_float_digits"));
  to->bytea_escape = settings.Text("bytea_output") == "escape";
}

}  // namespace sluice
