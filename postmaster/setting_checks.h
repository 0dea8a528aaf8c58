// What single settings check beyond their type, and how their canonical text comes about.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// on/off, true/false, yes/no, 1/0 and unique prefixes, as Postgres's parse_bool.
std::optional<bool> ParseBoolean(std::string_view text);

// The canonical text of `name`'s value, or nullopt if it is invalid. May throw with a better error.
std::optional<std::string> CheckSetting(std::string_view name, std::string_view text);

struct DateStyleParts {
  int8_t style;  // SessionSettings::date_style
  int8_t order;  // SessionSettings::date_order
};
std::optional<DateStyleParts> ParseDateStyle(std::string_view text);

}  // namespace sluice
