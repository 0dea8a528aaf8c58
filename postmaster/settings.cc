#include "postmaster/settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "postmaster/setting_checks.h"
#include "postmaster/setting_list.h"

namespace sluice {
namespace {

constexpr SettingInfo kSettings[] = {
#define X(name, type, context, unit, boot, min, max, choices, reported, group, description)    \
  {name,  SettingType::type, SettingContext::context, unit, boot, min, max, choices, reported, \
   group, description},
    SLUICE_SETTINGS(X)
#undef X
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? c + 32 : c;
  return lower;
}

struct Unit {
  std::string_view name;
  double factor;  // in the family's smallest unit
};
constexpr Unit kMemoryUnits[] = {
    {"B", 1}, {"kB", 1024}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"TB", 1099511627776.0}};
constexpr Unit kTimeUnits[] = {{"us", 1},    {"ms", 1e3},  {"s", 1e6},
                               {"min", 6e7}, {"h", 3.6e9}, {"d", 8.64e10}};

std::span<const Unit> FamilyOf(std::string_view unit) {
  for (const Unit& u : kMemoryUnits)
    if (u.name == unit) return kMemoryUnits;
  for (const Unit& u : kTimeUnits)
    if (u.name == unit) return kTimeUnits;
  return {};
}

double FactorOf(std::span<const Unit> family, std::string_view unit) {
  for (const Unit& u : family)
    if (u.name == unit) return u.factor;
  return 0;
}

[[noreturn]] void InvalidValue(std::string_view name, std::string_view text) {
  Throw(sqlstate::kInvalidParameterValue, "invalid value for parameter \"{}\": \"{}\"", name, text);
}

// Placeholders are names with a dot, each part an identifier.
bool IsPlaceholderName(std::string_view name) {
  bool dot = false, start = true;
  for (char c : name) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
    bool digit = (c >= '0' && c <= '9') || c == '$';
    if (c == '.') {
      if (start) return false;
      dot = start = true;
    } else if (letter || (digit && !start)) {
      start = false;
    } else {
      return false;
    }
  }
  return dot && !start;
}

[[noreturn]] void Unknown(std::string_view name) {
  Throw(sqlstate::kUndefinedObject, "unrecognized configuration parameter \"{}\"", name);
}

}  // namespace

std::span<const SettingInfo> AllSettings() {
  return kSettings;
}

const SettingInfo* FindSetting(std::string_view name) {
  static const auto* by_name = [] {
    auto* map = new std::unordered_map<std::string, const SettingInfo*>;
    for (const SettingInfo& info : kSettings) (*map)[Lower(info.name)] = &info;
    return map;
  }();
  auto found = by_name->find(Lower(name));
  return found == by_name->end() ? nullptr : found->second;
}

std::optional<double> ParseWithUnit(std::string_view text, std::string_view base_unit) {
  std::string copy(text);
  char* end;
  double value = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str() || !std::isfinite(value)) return std::nullopt;
  std::string_view rest(end);
  auto trim = [](std::string_view t) {
    while (!t.empty() && isspace(static_cast<unsigned char>(t.front()))) t.remove_prefix(1);
    while (!t.empty() && isspace(static_cast<unsigned char>(t.back()))) t.remove_suffix(1);
    return t;
  };
  rest = trim(rest);
  if (rest.empty()) return value;
  auto family = FamilyOf(base_unit);
  double factor = FactorOf(family, rest);
  if (factor == 0) return std::nullopt;
  return value * factor / FactorOf(family, base_unit);
}

std::string FormatWithUnit(int64_t value, std::string_view base_unit) {
  auto family = FamilyOf(base_unit);
  if (family.empty() || value <= 0) return std::to_string(value);
  double base = FactorOf(family, base_unit);
  for (size_t i = family.size(); i-- > 0;) {
    double step = family[i].factor / base;
    if (step < 1) break;
    auto whole = static_cast<int64_t>(step);
    if (value % whole == 0) return fmt::format("{}{}", value / whole, family[i].name);
  }
  return fmt::format("{}{}", value, base_unit);
}

Settings::Settings() {
  for (const SettingInfo& info : kSettings) {
    Entry& entry = entries_[Lower(info.name)];
    entry.info = &info;
    entry.current = entry.reset = Parse(&info, info.name, info.boot_value);
  }
}

Settings::Value Settings::Parse(const SettingInfo* info, std::string_view name,
                                std::string_view text) {
  Value value;
  if (info == nullptr) {
    value.text = text;
    return value;
  }
  switch (info->type) {
    case SettingType::kBool: {
      auto boolean = ParseBoolean(text);
      if (!boolean)
        Throw(sqlstate::kInvalidParameterValue, "parameter \"{}\" requires a Boolean value", name);
      value.integer = *boolean;
      value.text = *boolean ? "on" : "off";
      break;
    }
    case SettingType::kInt:
    case SettingType::kReal: {
      auto number = ParseWithUnit(text, info->unit);
      if (!number) {
        Error error = MakeError(sqlstate::kInvalidParameterValue,
                                "invalid value for parameter \"{}\": \"{}\"", info->name, text);
        auto family = FamilyOf(info->unit);
        if (!family.empty())
          error.Hint(family.data() == kMemoryUnits
                         ? "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and "
                           "\"TB\"."
                         : "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", "
                           "\"h\", and \"d\".");
        throw QueryError(error);
      }
      double rounded = info->type == SettingType::kInt ? std::nearbyint(*number) : *number;
      if (rounded < info->min || rounded > info->max) {
        std::string unit = info->unit.empty() ? "" : " " + std::string(info->unit);
        Throw(sqlstate::kInvalidParameterValue,
              "{}{} is outside the valid range for parameter \"{}\" ({} .. {})", rounded, unit,
              info->name, info->min, info->max);
      }
      value.real = rounded;
      value.integer = static_cast<int64_t>(rounded);
      value.text = info->type == SettingType::kInt ? std::to_string(value.integer)
                                                   : fmt::format("{}", rounded);
      break;
    }
    case SettingType::kEnum: {
      std::string lower = Lower(text);
      std::string_view choices = info->choices;
      std::string available;
      while (!choices.empty()) {
        std::string_view choice = choices.substr(0, choices.find('|'));
        choices.remove_prefix(std::min(choices.size(), choice.size() + 1));
        if (lower == Lower(choice)) value.text = choice;
        available += (available.empty() ? "" : ", ") + std::string(choice);
      }
      if (value.text.empty()) {
        Error error = MakeError(sqlstate::kInvalidParameterValue,
                                "invalid value for parameter \"{}\": \"{}\"", info->name, text);
        throw QueryError(error.Hint("Available values: " + available + "."));
      }
      break;
    }
    case SettingType::kString:
      value.text = text;
      break;
  }
  auto checked = CheckSetting(info->name, value.text);
  if (!checked) InvalidValue(info->name, text);
  value.text = *checked;
  return value;
}

Settings::Entry& Settings::Find(std::string_view name, bool make_placeholder) {
  std::string key = Lower(name);
  auto found = entries_.find(key);
  if (found != entries_.end()) return found->second;
  if (!make_placeholder || name.find('.') == std::string_view::npos) Unknown(name);
  if (!IsPlaceholderName(name)) {
    Error error =
        MakeError(sqlstate::kInvalidName, "invalid configuration parameter name \"{}\"", name);
    throw QueryError(
        error.Detail("Custom parameter names must be two or more simple identifiers "
                     "separated by dots."));
  }
  return entries_.try_emplace(key, Entry{}).first->second;
}

const Settings::Entry& Settings::Find(std::string_view name) const {
  auto found = entries_.find(name);  // mostly in lower case already
  if (found == entries_.end()) found = entries_.find(Lower(name));
  if (found == entries_.end()) Unknown(name);
  return found->second;
}

std::string Settings::Show(std::string_view name) const {
  const Entry& entry = Find(name);
  if (entry.info != nullptr && entry.info->type == SettingType::kInt)
    return FormatWithUnit(entry.current.integer, entry.info->unit);
  return entry.current.text;
}

std::optional<std::string> Settings::TryShow(std::string_view name) const {
  if (!entries_.contains(Lower(name))) return std::nullopt;
  return Show(name);
}

int64_t Settings::Integer(std::string_view name) const {
  return Find(name).current.integer;
}
bool Settings::Boolean(std::string_view name) const {
  return Find(name).current.integer != 0;
}
const std::string& Settings::Text(std::string_view name) const {
  return Find(name).current.text;
}
SettingSource Settings::Source(std::string_view name) const {
  return Find(name).current.source;
}
const std::string& Settings::ResetText(std::string_view name) const {
  return Find(name).reset.text;
}

std::vector<std::string> Settings::PlaceholderNames() const {
  std::vector<std::string> names;
  for (const auto& [key, entry] : entries_)
    if (entry.info == nullptr) names.push_back(key);
  std::ranges::sort(names);
  return names;
}

void Settings::Set(std::string_view name, std::string_view text, SettingSource source, bool local) {
  const SettingInfo* info = FindSetting(name);
  if (info != nullptr && source >= SettingSource::kClient) {
    auto refuse = [&](const char* format) {
      Throw(sqlstate::kCantChangeRuntimeParam, fmt::runtime(format), info->name);
    };
    if (info->context == SettingContext::kInternal) refuse("parameter \"{}\" cannot be changed");
    if (info->context == SettingContext::kPostmaster)
      refuse("parameter \"{}\" cannot be changed without restarting the server");
    if (info->context == SettingContext::kSighup) refuse("parameter \"{}\" cannot be changed now");
  }
  Value value = Parse(info, name, text);
  value.source = source;
  if (info != nullptr && guard_ && source >= SettingSource::kClient) guard_(*info, value.text);
  Entry& entry = Find(name, true);
  std::string key = Lower(name);
  if (source == SettingSource::kSession) {
    Assign(&entry, key, std::move(value), local);
    return;
  }
  // A new base value: what the session has set itself stays above it.
  if (source < entry.reset.source) return;
  if (entry.current.source <= source) entry.current = value;
  entry.reset = std::move(value);
  version_++;
}

void Settings::DropFileValue(std::string_view name) {
  Entry& entry = Find(name, false);
  if (entry.info == nullptr || entry.reset.source != SettingSource::kFile) return;
  Value value = Parse(entry.info, name, entry.info->boot_value);
  if (entry.current.source == SettingSource::kFile) entry.current = value;
  entry.reset = std::move(value);
  version_++;
}

void Settings::Reset(std::string_view name, bool local) {
  Entry& entry = Find(name, false);
  if (entry.info != nullptr && entry.info->context != SettingContext::kUser)
    Throw(sqlstate::kCantChangeRuntimeParam, "parameter \"{}\" cannot be changed",
          entry.info->name);
  Assign(&entry, Lower(name), entry.reset, local);
}

void Settings::ResetAll() {
  for (auto& [key, entry] : entries_) {
    bool transactional =
        key.starts_with("transaction_") || key == "role" || key == "session_authorization";
    if (!transactional && entry.current.text != entry.reset.text)
      Assign(&entry, key, entry.reset, false);
  }
}

void Settings::Assign(Entry* entry, const std::string& key, Value value, bool local) {
  if (level_ > 0) {
    auto saved = std::find_if(saved_.rbegin(), saved_.rend(),
                              [&](const Saved& s) { return s.level == level_ && s.key == key; });
    if (saved == saved_.rend()) {
      saved_.push_back({level_, key, entry->current, local, std::nullopt});
    } else if (!local) {
      saved->local = false;
      saved->masked.reset();
    } else if (!saved->local && !saved->masked) {
      saved->masked = entry->current;
    }
  } else if (local) {
    return;  // outside a transaction SET LOCAL has no effect; the caller warns
  }
  entry->current = std::move(value);
  version_++;
}

void Settings::EndLevel(bool commit) {
  if (level_ == 0) return;
  bool changed = !saved_.empty() && saved_.back().level == level_;
  while (!saved_.empty() && saved_.back().level == level_) {
    Saved saved = std::move(saved_.back());
    saved_.pop_back();
    Entry& entry = entries_.at(saved.key);
    if (!commit) {
      entry.current = saved.prior;
    } else if (level_ == 1) {
      if (saved.masked)
        entry.current = *saved.masked;
      else if (saved.local)
        entry.current = saved.prior;
    } else {
      // A released savepoint: its changes now belong to the level below.
      auto below = std::find_if(saved_.rbegin(), saved_.rend(), [&](const Saved& s) {
        return s.level == level_ - 1 && s.key == saved.key;
      });
      if (below == saved_.rend()) {
        saved.level--;
        auto at = std::find_if(saved_.begin(), saved_.end(),
                               [&](const Saved& s) { return s.level >= level_; });
        saved_.insert(at, std::move(saved));
      } else if (saved.local) {
        if (!below->local && !below->masked) below->masked = saved.prior;
      } else {
        below->local = false;
        below->masked = saved.masked;
      }
    }
  }
  level_--;
  if (changed) version_++;
}

std::vector<std::pair<std::string, std::string>> Settings::TakeReports() {
  std::vector<std::pair<std::string, std::string>> changed;
  if (reported_version_ == version_) return changed;
  reported_version_ = version_;
  for (auto& [key, entry] : entries_) {
    if (entry.info == nullptr || !entry.info->reported) continue;
    std::string now = Show(key);
    if (now == entry.reported) continue;
    entry.reported = now;
    changed.emplace_back(entry.info->name, now);
  }
  std::ranges::sort(changed);
  return changed;
}

}  // namespace sluice
