// OPTIONS (…) of servers, user mappings, tables and columns: which names each wrapper takes where,
// and which of their values make sense, as postgres_fdw judges them.
#pragma once

#include <span>
#include <string_view>

#include "catalog/catalog.h"

namespace sluice {

enum class OptionContext : uint8_t { kWrapper, kServer, kUserMapping, kTable, kColumn };

inline constexpr std::string_view kPostgresWrapper = "postgres_fdw";
inline constexpr std::string_view kLinesWrapper = "lines_fdw";

// Throws HV00D for a name, 22023 or 42601 for a value.
void CheckOptions(std::string_view wrapper, OptionContext context, const Options& options);

// Whether libpq takes the option of a postgres_fdw server or user mapping as a keyword of its own.
bool IsConnectionKeyword(std::string_view option);

// A boolean as in SQL's options: true/false, on/off, 1/0. Throws 42601.
bool ParseBooleanOption(std::string_view name, std::string_view value);

}  // namespace sluice
