#include "postmaster/lock_file.h"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice {

std::string LockFilePath(const std::string& directory) {
  return directory + "/postmaster.pid";
}

Result<UniqueFd> TakeLock(const std::string& directory) {
  std::string path = LockFilePath(directory);
  for (;;) {
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!fd.valid())
      return MakeError(sqlstate::kIoError, "could not create lock file \"{}\": {}", path,
                       strerror(errno));
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      auto content = ReadLockFile(directory);
      Error error =
          MakeError(sqlstate::kObjectInUse, "lock file \"postmaster.pid\" already exists");
      return error.Hint(
          fmt::format("Is another postmaster (PID {}) running in data directory \"{}\", or a "
                      "process that it left?",
                      content ? content->pid : 0, directory));
    }
    // A server that was just stopping may have removed the file between open and lock.
    struct stat locked, named;
    if (fstat(fd.get(), &locked) == 0 && stat(path.c_str(), &named) == 0 &&
        locked.st_ino == named.st_ino)
      return fd;
  }
}

void WriteLockFile(const UniqueFd& lock, const LockFileContent& content) {
  std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n\n{:<8}\n", content.pid,
                                 content.directory, content.start_seconds, content.port,
                                 content.socket_directory, content.listen_address, content.status);
  if (pwrite(lock.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()))
      [[maybe_unused]]
    int done = ftruncate(lock.get(), static_cast<off_t>(text.size()));
}

std::optional<LockFileContent> ReadLockFile(const std::string& directory) {
  std::ifstream file(LockFilePath(directory));
  LockFileContent content;
  std::string line;
  auto take = [&](std::string* to) { return static_cast<bool>(std::getline(file, *to)); };
  if (!take(&line)) return std::nullopt;
  content.pid = atoi(line.c_str());
  if (content.pid <= 0) return std::nullopt;
  if (take(&content.directory) && take(&line)) content.start_seconds = atoll(line.c_str());
  if (take(&line)) content.port = atoi(line.c_str());
  take(&content.socket_directory);
  take(&content.listen_address);
  take(&line);
  if (take(&content.status))
    while (!content.status.empty() && content.status.back() == ' ') content.status.pop_back();
  return content;
}

bool IsLocked(const std::string& directory) {
  UniqueFd fd(open(LockFilePath(directory).c_str(), O_RDWR | O_CLOEXEC));
  return fd.valid() && flock(fd.get(), LOCK_EX | LOCK_NB) != 0;
}

}  // namespace sluice
