#include "types/utf8.h"

#include <cstring>

#include "common/error.h"

namespace sluice {
namespace {

// Bytes of the well-formed character at `at`; 0 if it is none.
size_t CharacterLength(std::string_view text, size_t at) {
  auto byte = [&](size_t i) -> uint8_t {
    return at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : 0;
  };
  auto continues = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  uint8_t first = byte(0), second = byte(1);
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if ((first & 0xF0) == 0xE0) {
    bool overlong = first == 0xE0 && second < 0xA0, surrogate = first == 0xED && second > 0x9F;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    bool overlong = first == 0xF0 && second < 0x90, too_large = first == 0xF4 && second > 0x8F;
    return continues(1) && continues(2) && continues(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

}  // namespace

void CheckUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= 8) {  // eight ASCII characters at once, none of them zero
      uint64_t word;
      std::memcpy(&word, text.data() + at, 8);
      constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
      if (((word | (word - kOnes)) & kHigh) == 0) {
        at += 8;
        continue;
      }
    }
    size_t length = CharacterLength(text, at);
    if (length == 0) {
      auto first = static_cast<uint8_t>(text[at]);
      size_t announced = first < 0xC0   ? 1
                         : first < 0xE0 ? 2
                         : first < 0xF0 ? 3
                         : first < 0xF8 ? 4
                                        : 1;
      std::string bytes;
      for (size_t i = 0; i < std::min(announced, text.size() - at); i++)
        bytes += fmt::format(" 0x{:02x}", static_cast<uint8_t>(text[at + i]));
      Throw(sqlstate::kCharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\":{}",
            bytes);
    }
    at += length;
  }
}

}  // namespace sluice
