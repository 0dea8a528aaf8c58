#include "catalog/quote.h"

#include "catalog/builtin.h"

namespace sluice {

std::string QuoteIdentifier(std::string_view name) {
  bool plain = !name.empty() && ((name[0] >= 'a' && name[0] <= 'z') || name[0] == '_');
  for (char c : name)
    plain = plain && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_');
  if (plain && !IsKeyword(name)) return std::string(name);
  std::string quoted = "\"";
  for (char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string QuoteQualified(std::string_view schema, std::string_view name) {
  return QuoteIdentifier(schema) + '.' + QuoteIdentifier(name);
}

std::string QuoteLiteral(std::string_view text) {
  bool escape = text.find('\\') != text.npos;
  std::string quoted = escape ? "E'" : "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') quoted += c;
    quoted += c;
  }
  return quoted + '\'';
}

}  // namespace sluice
