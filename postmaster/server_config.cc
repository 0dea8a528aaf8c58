#include "postmaster/server_config.h"

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

void FillIoWorkerConfig(const Settings& settings, IoWorkerConfig* config) {
  const std::string& method = settings.Text("io_method");
  config->io_method = method == "io_uring" ? IoMethod::kIoUring
                      : method == "epoll"  ? IoMethod::kEpoll
                                           : IoMethod::kAuto;
  config->log_min_messages = log_min_messages;
}

}  // namespace sluice
