#include "catalog/service_file.h"

#include <cstdlib>
#include <fstream>
#include <optional>
#include <pwd.h>
#include <unistd.h>
#include <vector>

#include "common/error.h"

namespace sluice {
namespace {

constexpr const char* kSystemFolder = "/etc/postgresql-common";

std::string Environment(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> Files() {
  std::vector<std::string> files;
  if (std::string file = Environment("PGSERVICEFILE"); !file.empty()) {
    files.push_back(file);
  } else {
    std::string home = Environment("HOME");
    const passwd* user = home.empty() ? getpwuid(geteuid()) : nullptr;
    if (user != nullptr) home = user->pw_dir;
    if (!home.empty()) files.push_back(home + "/.pg_service.conf");
  }
  std::string folder = Environment("PGSYSCONFDIR");
  files.push_back((folder.empty() ? kSystemFolder : folder) + "/pg_service.conf");
  return files;
}

std::string_view Trimmed(std::string_view line) {
  while (!line.empty() && isspace(static_cast<unsigned char>(line.front()))) line.remove_prefix(1);
  while (!line.empty() && isspace(static_cast<unsigned char>(line.back()))) line.remove_suffix(1);
  return line;
}

std::optional<std::map<std::string, std::string>> FindIn(const std::string& path,
                                                         std::string_view name) {
  std::ifstream file(path);
  std::optional<std::map<std::string, std::string>> found;
  std::string text;
  for (int number = 1; std::getline(file, text); number++) {
    std::string_view line = Trimmed(text);
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      if (found) break;
      if (line == fmt::format("[{}]", name)) found.emplace();
      continue;
    }
    if (!found) continue;
    size_t equal = line.find('=');
    // LDAP look-ups would block, and a service cannot name another.
    if (line.starts_with("ldap") || equal == std::string_view::npos ||
        line.substr(0, equal) == "service")
      Throw(sqlstate::kUnableToEstablishConnection, "syntax error in service file \"{}\", line {}",
            path, number);
    found->try_emplace(std::string(line.substr(0, equal)), line.substr(equal + 1));
  }
  return found;
}

}  // namespace

std::map<std::string, std::string> ReadService(std::string_view name) {
  for (const std::string& path : Files())
    if (auto found = FindIn(path, name)) return *found;
  Throw(sqlstate::kUnableToEstablishConnection, "definition of service \"{}\" not found", name);
}

}  // namespace sluice
