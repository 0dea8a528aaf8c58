#include "postmaster/config_file.h"

#include <fstream>
#include <set>
#include <sstream>

namespace sluice {
namespace {

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

void SkipSpace(std::string_view* rest) {
  while (!rest->empty() && IsSpace(rest->front())) rest->remove_prefix(1);
}

// A quoted value: '' and \' are a quote, other backslashes as in C. False: no closing quote.
bool TakeQuoted(std::string_view* rest, std::string* value) {
  rest->remove_prefix(1);
  while (!rest->empty()) {
    char c = rest->front();
    rest->remove_prefix(1);
    if (c == '\'') {
      if (rest->empty() || rest->front() != '\'') return true;
      rest->remove_prefix(1);
      value->push_back('\'');
    } else if (c == '\\' && !rest->empty()) {
      char escaped = rest->front();
      rest->remove_prefix(1);
      value->push_back(escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped);
    } else {
      value->push_back(c);
    }
  }
  return false;
}

bool ParseLine(std::string_view rest, ConfigLine* line) {
  SkipSpace(&rest);
  size_t length = 0;
  while (length < rest.size() && (isalnum(static_cast<unsigned char>(rest[length])) ||
                                  rest[length] == '_' || rest[length] == '.'))
    length++;
  if (length == 0) return false;
  line->name = rest.substr(0, length);
  rest.remove_prefix(length);
  SkipSpace(&rest);
  if (!rest.empty() && rest.front() == '=') {
    rest.remove_prefix(1);
    SkipSpace(&rest);
  }
  if (rest.empty() || rest.front() == '#') return false;
  if (rest.front() == '\'') {
    if (!TakeQuoted(&rest, &line->value)) return false;
  } else {
    size_t end = 0;
    while (end < rest.size() && !IsSpace(rest[end]) && rest[end] != '#') end++;
    line->value = rest.substr(0, end);
    rest.remove_prefix(end);
  }
  SkipSpace(&rest);
  return rest.empty() || rest.front() == '#';
}

}  // namespace

Result<std::vector<ConfigLine>> ParseConfig(std::string_view text, std::string_view path) {
  std::vector<ConfigLine> lines;
  for (int number = 1; !text.empty(); number++) {
    std::string_view rest = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), rest.size() + 1));
    std::string_view look = rest;
    SkipSpace(&look);
    if (look.empty() || look.front() == '#') continue;
    ConfigLine line;
    line.line = number;
    if (!ParseLine(rest, &line))
      return MakeError(sqlstate::kConfigFileError,
                       "syntax error in file \"{}\" line {}, near \"{}\"", path, number,
                       look.substr(0, 40));
    lines.push_back(std::move(line));
  }
  return lines;
}

Result<std::vector<ConfigLine>> ReadConfigFile(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    return MakeError(sqlstate::kIoError, "could not open configuration file \"{}\": {}", path,
                     strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  return ParseConfig(text.view(), path);
}

std::vector<Error> ApplyConfig(const std::vector<ConfigLine>& lines, bool reload,
                               Settings* settings) {
  std::vector<Error> errors;
  // The last line of a name counts, as in Postgres.
  std::map<std::string, const ConfigLine*> last;
  for (const ConfigLine& line : lines) {
    const SettingInfo* info = FindSetting(line.name);
    last[info != nullptr ? std::string(info->name) : line.name] = &line;
  }
  auto restart_only = [&](const SettingInfo* info) {
    return reload && info != nullptr && info->context == SettingContext::kPostmaster;
  };
  for (const SettingInfo& info : AllSettings())
    if (!last.contains(std::string(info.name)) && !restart_only(&info) &&
        info.context != SettingContext::kInternal && info.name != "session_authorization")
      settings->DropFileValue(info.name);
  for (const auto& [name, line] : last) {
    const SettingInfo* info = FindSetting(name);
    try {
      if (info == nullptr && name.find('.') == std::string::npos)
        Throw(sqlstate::kUndefinedObject, "unrecognized configuration parameter \"{}\"", name);
      if (info != nullptr && info->context == SettingContext::kInternal)
        Throw(sqlstate::kCantChangeRuntimeParam, "parameter \"{}\" cannot be changed", name);
      if (restart_only(info)) {
        Settings probe;
        probe.Set(name, line->value, SettingSource::kFile);
        if (probe.Text(name) != settings->ResetText(name))
          Throw(sqlstate::kCantChangeRuntimeParam,
                "parameter \"{}\" cannot be changed without restarting the server", name);
        continue;
      }
      settings->Set(name, line->value, SettingSource::kFile);
    } catch (const QueryError& e) {
      Error error = e.error;
      error.message += fmt::format(" (configuration file line {})", line->line);
      errors.push_back(std::move(error));
    }
  }
  return errors;
}

std::string DefaultConfigText() {
  std::string text =
      "# Sluice's configuration. The syntax is postgresql.conf's: name = value, '#' starts a "
      "comment,\n"
      "# values with spaces or punctuation in quotes, units kB MB GB TB and us ms s min h d.\n"
      "# Lines that begin with '#' show the defaults. After a change: sluice reload -D DIR, or\n"
      "# sluice stop and start for the settings that say (restart).\n";
  std::string_view group;
  for (const SettingInfo& info : AllSettings()) {
    if (info.context == SettingContext::kInternal || info.name.starts_with("transaction_") ||
        info.name == "role" || info.name == "session_authorization")
      continue;
    if (info.group != group) text += fmt::format("\n# --- {} ---\n", info.group);
    group = info.group;
    std::string value(info.boot_value);
    if (info.type == SettingType::kInt)
      value = FormatWithUnit(std::stoll(value), info.unit);
    else if (info.type == SettingType::kString || info.type == SettingType::kEnum)
      value = "'" + value + "'";
    text += fmt::format("\n# {}{}\n#{} = {}\n", info.description,
                        info.context == SettingContext::kPostmaster ? " (restart)" : "", info.name,
                        value);
    if (!info.choices.empty()) {
      std::string choices(info.choices);
      std::replace(choices.begin(), choices.end(), '|', ',');
      text += fmt::format("#   one of: {}\n", choices);
    }
  }
  return text;
}

}  // namespace sluice
