// char(n): trailing blanks do not count, except for length in bytes.
#pragma once

#include <string_view>

namespace sluice {

inline std::string_view TrimBpchar(std::string_view text) {
  size_t size = text.size();
  while (size > 0 && text[size - 1] == ' ') size--;
  return text.substr(0, size);
}

}  // namespace sluice
