// Hashing of bytes and integers by multiply and fold. The values are not stable across builds: keep
// them in memory and in spill files of one run only.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice {

inline constexpr uint64_t kHashOdd0 = 0x9E3779B97F4A7C15, kHashOdd1 = 0xD1B54A32D192ED03,
                          kHashOdd2 = 0x8CB92BA72F3D8DD7;

inline uint64_t HashFold(uint64_t a, uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t HashCombine(uint64_t seed, uint64_t value) {
  return HashFold(seed ^ kHashOdd0 ^ value, kHashOdd1 ^ (value << 32 | value >> 32));
}

inline uint64_t HashLoad(const char* from, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, from, size);
  return value;
}

inline uint64_t HashBytes(std::string_view bytes) {
  const char* at = bytes.data();
  size_t size = bytes.size();
  uint64_t state = kHashOdd2 ^ size;
  while (size > 16) {
    state = HashFold(HashLoad(at, 8) ^ kHashOdd0, HashLoad(at + 8, 8) ^ state);
    at += 16;
    size -= 16;
  }
  uint64_t a = 0, b = 0;
  if (size >= 8) {
    a = HashLoad(at, 8);
    b = HashLoad(at + size - 8, 8);
  } else if (size >= 4) {
    a = HashLoad(at, 4);
    b = HashLoad(at + size - 4, 4);
  } else if (size > 0) {
    a = static_cast<uint8_t>(at[0]) |
        static_cast<uint64_t>(static_cast<uint8_t>(at[size >> 1])) << 8 |
        static_cast<uint64_t>(static_cast<uint8_t>(at[size - 1])) << 16;
  }
  return HashFold(a ^ kHashOdd1, b ^ state);
}

}  // namespace sluice
