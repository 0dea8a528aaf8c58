// The settings (Postgres's "GUCs"): what a name means (setting_list.h), and a session's values with
// their history, so that ROLLBACK, SET LOCAL and savepoints give back what was there before.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/error.h"
#include "types/kernel.h"

namespace sluice {

enum class SettingType : uint8_t { kBool, kInt, kReal, kString, kEnum };
enum class SettingContext : uint8_t { kInternal, kPostmaster, kSighup, kUser };
enum class SettingSource : uint8_t { kDefault, kFile, kCommandLine, kClient, kSession };

struct SettingInfo {
  std::string_view name;
  SettingType type;
  SettingContext context;
  std::string_view unit;  // "", "B", "kB", "ms", "s", "min"
  std::string_view boot_value;
  double min, max;
  std::string_view choices;
  bool reported;
  std::string_view group;
  std::string_view description;
};

std::span<const SettingInfo> AllSettings();
const SettingInfo* FindSetting(std::string_view name);  // without regard to case; nullptr: none

class Settings {
 public:
  Settings();

  // The value as SHOW prints it. Throws 42704 for an unknown name.
  std::string Show(std::string_view name) const;
  std::optional<std::string> TryShow(std::string_view name) const;
  // In base units: kB, ms, … as the list says.
  int64_t Integer(std::string_view name) const;
  bool Boolean(std::string_view name) const;
  const std::string& Text(std::string_view name) const;
  SettingSource Source(std::string_view name) const;
  const std::string& ResetText(std::string_view name) const;

  // Checks and stores. `text` is a SET value or a line of the file, units allowed. Throws 22023,
  // 42704, 55P02. From kDefault to kClient the value is what RESET goes back to.
  void Set(std::string_view name, std::string_view text, SettingSource source, bool local = false);
  // Asked before a value from the client or the session is stored; throws what forbids it.
  using Guard = std::function<void(const SettingInfo& setting, const std::string& value)>;
  void SetGuard(Guard guard) { guard_ = std::move(guard); }
  // A line that is no longer in the file: back to the default, where the file's value was the base.
  void DropFileValue(std::string_view name);
  void Reset(std::string_view name, bool local = false);
  void ResetAll();

  // Transactions. Levels: 1 is the transaction, deeper ones are savepoints.
  void BeginLevel() { level_++; }
  void EndLevel(bool commit);
  int level() const { return level_; }

  // Raised by every change; whoever keeps values derived from settings compares.
  uint64_t version() const { return version_; }
  // Reported settings whose value differs from what was returned last time.
  std::vector<std::pair<std::string, std::string>> TakeReports();
  // Names of placeholders ("myapp.user_id") and all others, for SHOW ALL and pg_settings.
  std::vector<std::string> PlaceholderNames() const;

 private:
  struct Value {
    std::string text;     // canonical
    int64_t integer = 0;  // kInt, kBool
    double real = 0;
    SettingSource source = SettingSource::kDefault;
  };
  struct Entry {
    const SettingInfo* info;  // nullptr: a placeholder
    Value current, reset;
    std::optional<std::string> reported;  // as the client was told last
  };
  struct Saved {
    int level;
    std::string key;
    Value prior;
    bool local;                   // no plain SET on this level: commit gives back `prior`
    std::optional<Value> masked;  // a plain SET's value under a later SET LOCAL
  };

  Entry& Find(std::string_view name, bool make_placeholder);
  const Entry& Find(std::string_view name) const;
  static Value Parse(const SettingInfo* info, std::string_view name, std::string_view text);
  void Assign(Entry* entry, const std::string& key, Value value, bool local);

  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  std::unordered_map<std::string, Entry, NameHash, std::equal_to<>> entries_;  // lower-case names
  std::vector<Saved> saved_;
  Guard guard_;
  int level_ = 0;
  uint64_t version_ = 1;
  uint64_t reported_version_ = 0;  // what TakeReports has seen
};

// Integer text with a unit → base units of `info`; nullopt where it is no such thing.
std::optional<double> ParseWithUnit(std::string_view text, std::string_view base_unit);
// "65536" kB → "64MB".
std::string FormatWithUnit(int64_t value, std::string_view base_unit);

// What the executor, the kernels and the codecs need of them.
void DeriveSessionSettings(const Settings& settings, SessionSettings* to);
// search_path as a list, "$user" and pg_catalog resolved as Postgres does.
std::vector<std::string> SearchPath(const Settings& settings, const std::string& user);
// A comma-separated list of identifiers or quoted identifiers; nullopt: bad syntax.
std::optional<std::vector<std::string>> SplitIdentifiers(std::string_view text);

}  // namespace sluice
