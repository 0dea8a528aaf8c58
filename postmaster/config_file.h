// DIR/sluice.conf, in postgresql.conf's syntax.
#pragma once

#include <string>
#include <vector>

#include "common/error.h"
#include "postmaster/settings.h"

namespace sluice {

struct ConfigLine {
  std::string name, value;
  int line;
};

// F0000 with the line number for bad syntax; 58030 if it cannot be read.
Result<std::vector<ConfigLine>> ReadConfigFile(const std::string& path);
Result<std::vector<ConfigLine>> ParseConfig(std::string_view text, std::string_view path);

// Stores the lines as the settings' base values; settings that are no longer in the file go back to
// their defaults. `reload`: settings that need a restart keep their value, with an error in the
// list. Each bad line gives one error, naming the line; the other lines are applied.
std::vector<Error> ApplyConfig(const std::vector<ConfigLine>& lines, bool reload,
                               Settings* settings);

// The file that `sluice init` writes: every setting with its default and description, commented
// out.
std::string DefaultConfigText();

}  // namespace sluice
