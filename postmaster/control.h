// The command line's work on one server: init, start, stop, reload, status. Each returns the exit
// status.
#pragma once

#include <string>

namespace sluice {

int InitCommand(const std::string& directory);
// Forks the postmaster into the background and waits until clients can connect; `foreground`:
// becomes it.
int StartCommand(const std::string& directory, bool foreground, int timeout_s);
// mode: smart, fast or immediate.
int StopCommand(const std::string& directory, const std::string& mode, int timeout_s);
int ReloadCommand(const std::string& directory);
int StatusCommand(const std::string& directory);

}  // namespace sluice
