// DIR/postmaster.pid: who serves this directory. The file is locked; the lock is inherited by every
// child, so that no second server starts while any process of a killed one still lives.
#pragma once

#include <optional>
#include <string>

#include "common/error.h"
#include "common/fd.h"

namespace sluice {

struct LockFileContent {
  int pid = 0;
  std::string directory;
  int64_t start_seconds = 0;
  int port = 0;
  std::string socket_directory, listen_address;
  std::string status;  // "starting", "ready", "stopping"
};

std::string LockFilePath(const std::string& directory);
// Takes the lock, or says who has it.
Result<UniqueFd> TakeLock(const std::string& directory);
void WriteLockFile(const UniqueFd& lock, const LockFileContent& content);
std::optional<LockFileContent> ReadLockFile(const std::string& directory);
// Whether a process holds the lock.
bool IsLocked(const std::string& directory);

}  // namespace sluice
