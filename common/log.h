// The server's log: one line an event, to stderr (the postmaster points it at the log file):
//   2026-01-02 03:04:05.678 UTC [pid] backend_type LEVEL:  SQLSTATE: message
#pragma once

#include <fmt/format.h>
#include <string_view>

#include "common/error.h"

namespace sluice {

enum class LogLevel : int { kDebug, kInfo, kNotice, kWarning, kError, kLog, kFatal, kPanic };

extern LogLevel log_min_messages;  // set from the configuration, process-local

// Names this process in every line; `name` must outlive the process (a literal).
void SetLogProcessName(const char* name);
void LogLine(LogLevel level, SqlState state, std::string_view message);

template <typename... Args>
void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level < log_min_messages) return;
  LogLine(level, sqlstate::kSuccess, fmt::format(format, std::forward<Args>(args)...));
}
void LogError(LogLevel level, const Error& error);

}  // namespace sluice
