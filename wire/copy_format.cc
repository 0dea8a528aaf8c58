#include "wire/copy_format.h"

#include <array>

namespace sluice {
namespace {

// What follows the backslash for characters that text format escapes; 0: the character stands as it
// is.
constexpr std::array<char, 256> kEscapes = [] {
  std::array<char, 256> table{};
  table['\b'] = 'b';
  table['\f'] = 'f';
  table['\n'] = 'n';
  table['\r'] = 'r';
  table['\t'] = 't';
  table['\v'] = 'v';
  table['\\'] = '\\';
  return table;
}();

}  // namespace

void AppendCopyText(std::string_view value, const CopyOptions& options, std::string* out) {
  size_t start = 0;
  for (size_t i = 0; i < value.size(); i++) {
    char c = value[i];
    char escape = kEscapes[static_cast<unsigned char>(c)];
    if (escape == 0 && c == options.delimiter) escape = c;
    if (escape == 0) continue;
    out->append(value.substr(start, i - start));
    out->push_back('\\');
    out->push_back(escape);
    start = i + 1;
  }
  out->append(value.substr(start));
}

void AppendCopyCsv(std::string_view value, bool force_quote, const CopyOptions& options,
                   std::string* out) {
  bool quote =
      force_quote || value == options.null_text || (options.single_column && value == "\\.");
  for (size_t i = 0; i < value.size() && !quote; i++) {
    char c = value[i];
    quote = c == options.delimiter || c == options.quote || c == '\n' || c == '\r';
  }
  if (!quote) {
    out->append(value);
    return;
  }
  out->push_back(options.quote);
  for (char c : value) {
    if (c == options.quote || c == options.escape) out->push_back(options.escape);
    out->push_back(c);
  }
  out->push_back(options.quote);
}

std::string_view CopyBinaryHeader() {
  return std::string_view("PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19);
}

}  // namespace sluice
