#include "common/log.h"

#include <cstdlib>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "common/assert.h"

namespace sluice {

LogLevel log_min_messages = LogLevel::kInfo;

namespace {
const char* process_name = "sluice";

const char* LevelName(LogLevel level) {
  static constexpr const char* kNames[] = {"DEBUG", "INFO", "NOTICE", "WARNING",
                                           "ERROR", "LOG",  "FATAL",  "PANIC"};
  return kNames[static_cast<int>(level)];
}
}  // namespace

void SetLogProcessName(const char* name) {
  process_name = name;
}

void LogLine(LogLevel level, SqlState state, std::string_view message) {
  if (level < log_min_messages) return;
  timeval now;
  gettimeofday(&now, nullptr);
  tm utc;
  gmtime_r(&now.tv_sec, &utc);
  char stamp[32];
  strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &utc);
  std::string line = fmt::format("{}.{:03} UTC [{}] {} {}:  ", stamp, now.tv_usec / 1000, getpid(),
                                 process_name, LevelName(level));
  if (state != sqlstate::kSuccess) line += SqlStateText(state) + ": ";
  line += message;
  line += '\n';
  // One write, so that the lines of several processes do not mix; a full disk loses the line only.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

void LogError(LogLevel level, const Error& error) {
  std::string text = error.message;
  if (!error.detail.empty()) text += "  DETAIL: " + error.detail;
  if (!error.hint.empty()) text += "  HINT: " + error.hint;
  LogLine(level, error.state, text);
}

void AssertFailed(const char* condition, const char* file, int line) {
  LogLine(LogLevel::kPanic, sqlstate::kInternalError,
          fmt::format("assertion failed: {} at {}:{}", condition, file, line));
  std::abort();
}

}  // namespace sluice
