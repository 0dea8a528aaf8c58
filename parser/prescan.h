// What the grammar cannot bear is found before it runs: text that is too long, too many tokens, and
// nesting that would exhaust the stack of whoever walks the tree (libpg_query never arms its own
// check).
#pragma once

#include <string_view>

#include "common/error.h"

namespace sluice {

inline constexpr size_t kStatementBytesMax = 64u << 20;
inline constexpr size_t kStatementTokensMax = 4'000'000;
// A tree of this depth needs kStackBytesPerLevel times as much stack in the worst of its walkers.
inline constexpr size_t kNestingMax = 10'000;
#if defined(SLUICE_SANITIZE_address) || defined(SLUICE_SANITIZE_thread)
inline constexpr size_t kStackBytesPerLevel = 40 * 1024;
#else
inline constexpr size_t kStackBytesPerLevel = 10 * 1024;
#endif

struct PrescanResult {
  size_t tokens = 0;
  // Never less than the depth of the tree that the grammar makes of the text; usually far more, for
  // it counts every token between two commas (or AND, OR) as a level: only chains matter.
  size_t depth = 0;
};

PrescanResult Prescan(std::string_view text);

// Raises the process's stack limit (inherited over fork) so that trees of kNestingMax levels can be
// walked, where the hard limit allows. Returns the depth that is safe. Called once by ParseSql;
// call it early in a process whose children are to inherit the limit.
size_t EnsureStackForParser();

// Throws 54001 or 54000.
void CheckStatementLimits(std::string_view text);

}  // namespace sluice
