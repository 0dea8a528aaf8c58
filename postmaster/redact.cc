#include "postmaster/redact.h"

#include <cstring>
#include <re2/re2.h>

namespace sluice {

std::string RedactPasswords(std::string_view statement) {
  std::string text(statement);
  if (strcasestr(text.c_str(), "password") == nullptr) return text;
  static const RE2 kLiteral(
      R"re((?is)(password\s*=?\s*))re"
      R"re((?:E'(?:\\.|''|[^'\\])*'?|'(?:''|[^'])*'?|\$\w*\$.*?(?:\$\w*\$|$)))re");
  RE2::GlobalReplace(&text, kLiteral, R"(\1'<redacted>')");
  return text;
}

}  // namespace sluice
