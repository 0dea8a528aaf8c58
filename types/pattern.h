// LIKE patterns, and regular expressions as far as RE2 reads them as Postgres does.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace sluice {

// 22025 if the pattern ends in its escape character (backslash) where it matters.
bool MatchLike(std::string_view text, std::string_view pattern);
// The same pattern with backslash as the escape. 22025.
std::string EscapeLike(std::string_view pattern, std::string_view escape);

// A Postgres regular expression ("advanced"), asked only whether it matches somewhere. Refuses by
// name (0A000) what RE2 would read otherwise; 2201B on what is no regular expression in either.
class Regex {
 public:
  static const Regex& Compiled(std::string_view pattern,
                               bool ignore_case);  // cached; valid until 64 more
  // 0A000 if the pattern has a class that depends on the locale and the text has other than ASCII.
  bool Matches(std::string_view text) const;
  ~Regex();

 private:
  Regex() = default;
  std::unique_ptr<re2::RE2> re2_;
  bool ascii_only_ = false;
};

}  // namespace sluice
