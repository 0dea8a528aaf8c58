#include "postmaster/server_config.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sys/stat.h>

#include "common/log.h"
#include "fdw/io_worker.h"

namespace sluice {

void ApplyLogLevel(const Settings& settings) {
  static constexpr struct {
    std::string_view name;
    LogLevel level;
  } kLevels[] = {{"info", LogLevel::kInfo},       {"notice", LogLevel::kNotice},
                 {"warning", LogLevel::kWarning}, {"error", LogLevel::kError},
                 {"log", LogLevel::kLog},         {"fatal", LogLevel::kFatal},
                 {"panic", LogLevel::kPanic}};
  const std::string& text = settings.Text("log_min_messages");
  log_min_messages = LogLevel::kDebug;
  for (const auto& [name, level] : kLevels)
    if (name == text) log_min_messages = level;
}

std::string TempDirectory(const Settings& settings, const std::string& data_directory) {
  const std::string& configured = settings.Text("temp_directory");
  if (configured.empty()) return data_directory + "/tmp";
  std::error_code ignored;
  std::string own = std::filesystem::weakly_canonical(data_directory, ignored).string();
  return fmt::format("{}/sluice_{:016x}", configured, std::hash<std::string>{}(own));
}

void MakeTempDirectory(const std::string& temp_directory) {
  if (mkdir(temp_directory.c_str(), 0700) == 0 || errno == EEXIST) return;
  Log(LogLevel::kWarning, "could not create directory \"{}\" for temporary files: {}",
      temp_directory, std::strerror(errno));
}

void FillIoWorkerConfig(const Settings& settings, IoWorkerConfig* config) {
  const std::string& method = settings.Text("io_method");
  config->io_method = method == "io_uring" ? IoMethod::kIoUring
                      : method == "epoll"  ? IoMethod::kEpoll
                                           : IoMethod::kAuto;
  config->log_min_messages = log_min_messages;
}

}  // namespace sluice
