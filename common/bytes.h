// Big-endian loads and stores, as the Postgres protocol has them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace sluice {

template <typename T>
inline T LoadBig(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (sizeof(T) == 2)
    return static_cast<T>(__builtin_bswap16(std::bit_cast<uint16_t>(value)));
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(__builtin_bswap32(std::bit_cast<uint32_t>(value)));
  if constexpr (sizeof(T) == 8)
    return std::bit_cast<T>(__builtin_bswap64(std::bit_cast<uint64_t>(value)));
  return value;
}

template <typename T>
inline void StoreBig(void* to, T value) {
  if constexpr (sizeof(T) == 2)
    value = static_cast<T>(__builtin_bswap16(std::bit_cast<uint16_t>(value)));
  if constexpr (sizeof(T) == 4)
    value = std::bit_cast<T>(__builtin_bswap32(std::bit_cast<uint32_t>(value)));
  if constexpr (sizeof(T) == 8)
    value = std::bit_cast<T>(__builtin_bswap64(std::bit_cast<uint64_t>(value)));
  std::memcpy(to, &value, sizeof value);
}

}  // namespace sluice
