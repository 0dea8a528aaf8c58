#include "types/md5.h"

#include <cmath>

namespace sluice {
namespace {

struct Constants {
  uint32_t sines[64];
  Constants() {
    for (int i = 0; i < 64; i++)
      sines[i] = static_cast<uint32_t>(std::floor(std::fabs(std::sin(i + 1.0)) * 4294967296.0));
  }
};

void AddBlock(const char* block, uint32_t state[4]) {
  static const Constants constants;
  static constexpr int kRotations[4][4] = {
      {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  uint32_t words[16];
  std::memcpy(words, block, sizeof words);  // little-endian, as the machine is
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  for (int i = 0; i < 64; i++) {
    uint32_t mixed;
    int word;
    switch (i / 16) {
      case 0:
        mixed = (b & c) | (~b & d), word = i;
        break;
      case 1:
        mixed = (d & b) | (~d & c), word = (5 * i + 1) % 16;
        break;
      case 2:
        mixed = b ^ c ^ d, word = (3 * i + 5) % 16;
        break;
      default:
        mixed = c ^ (b | ~d), word = 7 * i % 16;
        break;
    }
    uint32_t sum = a + mixed + constants.sines[i] + words[word];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kRotations[i / 16][i % 4]);
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
}

}  // namespace

std::string Md5Hex(std::string_view bytes) {
  uint32_t state[4] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476};
  size_t at = 0;
  for (; at + 64 <= bytes.size(); at += 64) AddBlock(bytes.data() + at, state);
  std::string tail(bytes.substr(at));
  tail.push_back(static_cast<char>(0x80));
  while (tail.size() % 64 != 56) tail.push_back(0);
  uint64_t bits = bytes.size() * 8;
  tail.append(reinterpret_cast<const char*>(&bits), 8);
  for (at = 0; at < tail.size(); at += 64) AddBlock(tail.data() + at, state);
  std::string hex;
  for (uint32_t word : state) {
    for (int i = 0; i < 4; i++) hex += fmt::format("{:02x}", word >> (8 * i) & 0xFF);
  }
  return hex;
}

}  // namespace sluice
