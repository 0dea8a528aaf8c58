// Numerics of few digits as 128-bit integers: the common case of arithmetic, without unpacking into
// digits.
#pragma once

#include "common/arena.h"
#include "common/bytes.h"
#include "types/numeric.h"

namespace sluice {

// value = mantissa·10000^exponent, |mantissa| < 10^16.
struct SmallNumeric {
  int64_t mantissa;
  int exponent;
  int dscale;
  int weight, first_digit;  // of the first base-10000 digit; 0, 0 for zero
};

// False for specials and for more than four base-10000 digits.
inline bool LoadSmall(std::string_view wire, SmallNumeric* out) {
  uint64_t head = LoadBig<uint64_t>(wire.data());
  int count = static_cast<int16_t>(head >> 48), weight = static_cast<int16_t>(head >> 32);
  uint16_t sign = static_cast<uint16_t>(head >> 16);
  if (count > 4 || sign >= 0xC000) return false;
  const char* at = wire.data() + kNumericHeaderBytes;
  int64_t mantissa = 0;
  for (int i = 0; i < count; i++) mantissa = mantissa * kNumericBase + LoadBig<int16_t>(at + 2 * i);
  int first = count > 0 ? LoadBig<int16_t>(at) : 0;
  if (count > 0 && first == 0) return false;  // not in normal form
  out->mantissa = sign == 0 ? mantissa : -mantissa;
  out->exponent = count > 0 ? weight - count + 1 : 0;
  out->dscale = static_cast<int>(head & 0xFFFF);
  out->weight = count > 0 ? weight : 0;
  out->first_digit = first;
  return true;
}

// mantissa·10000^exponent in wire format.
inline std::string_view StoreSmall(__int128 mantissa, int exponent, int dscale, Arena* arena) {
  bool negative = mantissa < 0;
  unsigned __int128 rest = negative ? -static_cast<unsigned __int128>(mantissa)
                                    : static_cast<unsigned __int128>(mantissa);
  int16_t groups[12];
  int count = 0;
  while (rest > UINT64_MAX) {
    groups[count++] = static_cast<int16_t>(rest % kNumericBase);
    rest /= kNumericBase;
  }
  for (uint64_t low = static_cast<uint64_t>(rest); low != 0; low /= kNumericBase) {
    groups[count++] = static_cast<int16_t>(low % kNumericBase);
  }
  int skip = 0;
  while (skip < count && groups[skip] == 0) skip++;
  int kept = count - skip;
  char* to =
      static_cast<char*>(arena->Allocate(kNumericHeaderBytes + 2 * static_cast<size_t>(kept), 2));
  StoreBig<int16_t>(to, static_cast<int16_t>(kept));
  StoreBig<int16_t>(to + 2, static_cast<int16_t>(kept > 0 ? exponent + count - 1 : 0));
  StoreBig<uint16_t>(to + 4, negative && kept > 0 ? 0x4000 : 0);
  StoreBig<int16_t>(to + 6, static_cast<int16_t>(dscale));
  char* at = to + kNumericHeaderBytes;
  for (int i = count - 1; i >= skip; i--, at += 2) StoreBig<int16_t>(at, groups[i]);
  return {to, kNumericHeaderBytes + 2 * static_cast<size_t>(kept)};
}

}  // namespace sluice
