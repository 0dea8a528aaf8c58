#include "catalog/options.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace sluice {

namespace {

enum class OptionValue : uint8_t { kAny, kBool, kCost, kCount, kFormat };

struct OptionInfo {
  OptionContext context;
  std::string_view name;
  OptionValue value = OptionValue::kAny;
  bool libpq = false;
};

// In the order in which postgres_fdw's hint lists them.
constexpr auto kServer = OptionContext::kServer, kMapping = OptionContext::kUserMapping,
               kTable = OptionContext::kTable, kColumn = OptionContext::kColumn;
constexpr OptionInfo kPostgresOptions[] = {
    {kServer, "service", OptionValue::kAny, true},
    {kServer, "passfile", OptionValue::kAny, true},
    {kServer, "channel_binding", OptionValue::kAny, true},
    {kServer, "connect_timeout", OptionValue::kAny, true},
    {kServer, "dbname", OptionValue::kAny, true},
    {kServer, "host", OptionValue::kAny, true},
    {kServer, "hostaddr", OptionValue::kAny, true},
    {kServer, "port", OptionValue::kAny, true},
    {kServer, "options", OptionValue::kAny, true},
    {kServer, "application_name", OptionValue::kAny, true},
    {kServer, "keepalives", OptionValue::kAny, true},
    {kServer, "keepalives_idle", OptionValue::kAny, true},
    {kServer, "keepalives_interval", OptionValue::kAny, true},
    {kServer, "keepalives_count", OptionValue::kAny, true},
    {kServer, "tcp_user_timeout", OptionValue::kAny, true},
    {kServer, "sslmode", OptionValue::kAny, true},
    {kServer, "sslcompression", OptionValue::kAny, true},
    {kServer, "sslcert", OptionValue::kAny, true},
    {kServer, "sslkey", OptionValue::kAny, true},
    {kServer, "sslrootcert", OptionValue::kAny, true},
    {kServer, "sslcrl", OptionValue::kAny, true},
    {kServer, "sslcrldir", OptionValue::kAny, true},
    {kServer, "sslsni", OptionValue::kAny, true},
    {kServer, "requirepeer", OptionValue::kAny, true},
    {kServer, "ssl_min_protocol_version", OptionValue::kAny, true},
    {kServer, "ssl_max_protocol_version", OptionValue::kAny, true},
    {kServer, "gssencmode", OptionValue::kAny, true},
    {kServer, "krbsrvname", OptionValue::kAny, true},
    {kServer, "gsslib", OptionValue::kAny, true},
    {kServer, "target_session_attrs", OptionValue::kAny, true},
    {kServer, "use_remote_estimate", OptionValue::kBool},
    {kServer, "fdw_startup_cost", OptionValue::kCost},
    {kServer, "fdw_tuple_cost", OptionValue::kCost},
    {kServer, "extensions"},
    {kServer, "updatable", OptionValue::kBool},
    {kServer, "truncatable", OptionValue::kBool},
    {kServer, "fetch_size", OptionValue::kCount},
    {kServer, "batch_size", OptionValue::kCount},
    {kServer, "async_capable", OptionValue::kBool},
    {kServer, "parallel_commit", OptionValue::kBool},
    {kServer, "keep_connections", OptionValue::kBool},
    {kMapping, "user", OptionValue::kAny, true},
    {kMapping, "password", OptionValue::kAny, true},
    {kMapping, "sslpassword", OptionValue::kAny, true},
    {kMapping, "password_required", OptionValue::kBool},
    {kMapping, "sslcert", OptionValue::kAny, true},
    {kMapping, "sslkey", OptionValue::kAny, true},
    {kTable, "schema_name"},
    {kTable, "table_name"},
    {kTable, "use_remote_estimate", OptionValue::kBool},
    {kTable, "updatable", OptionValue::kBool},
    {kTable, "truncatable", OptionValue::kBool},
    {kTable, "fetch_size", OptionValue::kCount},
    {kTable, "batch_size", OptionValue::kCount},
    {kTable, "async_capable", OptionValue::kBool},
    {kColumn, "column_name"},
};

constexpr OptionInfo kLinesOptions[] = {
    {kServer, "host"}, {kServer, "hostaddr"}, {kServer, "port"},
    {kServer, "path"}, {kTable, "host"},      {kTable, "hostaddr"},
    {kTable, "port"},  {kTable, "path"},      {kTable, "format", OptionValue::kFormat},
};

std::span<const OptionInfo> OptionsOf(std::string_view wrapper) {
  if (wrapper == kPostgresWrapper) return kPostgresOptions;
  if (wrapper == kLinesWrapper) return kLinesOptions;
  return {};
}

void CheckValue(const OptionInfo& option, const std::string& value) {
  switch (option.value) {
    case OptionValue::kAny:
      return;
    case OptionValue::kBool:
      ParseBooleanOption(option.name, value);
      return;
    case OptionValue::kCost: {
      char* end = nullptr;
      double cost = std::strtod(value.c_str(), &end);
      if (value.empty() || *end != 0)
        Throw(sqlstate::kInvalidParameterValue,
              "invalid value for floating point option \"{}\": {}", option.name, value);
      if (!(cost >= 0))
        Throw(sqlstate::kInvalidParameterValue,
              "\"{}\" must be a floating point value greater than or equal to zero", option.name);
      return;
    }
    case OptionValue::kCount: {
      int count = 0;
      auto parsed = std::from_chars(value.data(), value.data() + value.size(), count);
      if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size())
        Throw(sqlstate::kInvalidParameterValue, "invalid value for integer option \"{}\": {}",
              option.name, value);
      if (count <= 0)
        Throw(sqlstate::kInvalidParameterValue, "\"{}\" must be an integer value greater than zero",
              option.name);
      return;
    }
    case OptionValue::kFormat:
      if (value != "csv")
        Throw(sqlstate::kInvalidParameterValue, "format \"{}\" not recognized", value);
      return;
  }
}

}  // namespace

bool ParseBooleanOption(std::string_view name, std::string_view value) {
  std::string lower(value);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (lower == "true" || lower == "on" || lower == "1") return true;
  if (lower == "false" || lower == "off" || lower == "0") return false;
  Throw(sqlstate::kSyntaxError, "{} requires a Boolean value", name);
}

void CheckOptions(std::string_view wrapper, OptionContext context, const Options& options) {
  for (const auto& [name, value] : options) {
    const OptionInfo* found = nullptr;
    std::string valid;
    for (const OptionInfo& option : OptionsOf(wrapper)) {
      if (option.context != context) continue;
      if (option.name == name) found = &option;
      valid += (valid.empty() ? "" : ", ") + std::string(option.name);
    }
    if (found == nullptr)
      throw QueryError(MakeError(sqlstate::kFdwInvalidOptionName, "invalid option \"{}\"", name)
                           .Hint(valid.empty() ? "There are no valid options in this context."
                                               : "Valid options in this context are: " + valid));
    CheckValue(*found, value);
  }
}

bool IsConnectionKeyword(std::string_view name) {
  for (const OptionInfo& option : kPostgresOptions)
    if (option.name == name && option.libpq) return true;
  return false;
}

}  // namespace sluice
