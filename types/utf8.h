// UTF-8 text: the encoding of every text value here. Bytes may be ill-formed (they came from
// elsewhere): all of these stay inside the view, and take a stray byte for one character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

// Bytes of the character that starts with `lead`.
inline size_t Utf8Length(char lead) {
  auto byte = static_cast<uint8_t>(lead);
  if (byte < 0x80) return 1;
  if ((byte & 0xE0) == 0xC0) return 2;
  if ((byte & 0xF0) == 0xE0) return 3;
  if ((byte & 0xF8) == 0xF0) return 4;
  return 1;
}

inline size_t Utf8Step(std::string_view text, size_t at) {
  size_t length = Utf8Length(text[at]);
  return length < text.size() - at ? length : text.size() - at;
}

inline size_t Utf8Count(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += Utf8Step(text, at)) count++;
  return count;
}

// Byte offset of character `index`, or the size if there are fewer.
inline size_t Utf8Offset(std::string_view text, size_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); index--) at += Utf8Step(text, at);
  return at;
}

// At most `bytes_max` bytes, cut between characters.
inline std::string_view Utf8Clip(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  size_t at = 0;
  while (at < text.size()) {
    size_t step = Utf8Step(text, at);
    if (at + step > bytes_max) break;
    at += step;
  }
  return text.substr(0, at);
}

// 22021 unless `text` is UTF-8 without zero bytes.
void CheckUtf8(std::string_view text);

}  // namespace sluice
