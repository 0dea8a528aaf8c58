// Exact sums of floats: one rounding at the end, so that the result does not depend on the order in
// which the shards' rows arrive. Plain data, as NumericSum is; `limbs` lives in the arena that
// every call gets.
//
// The sum is Σ limb[i]·2^(32·(first_limb+i)), limbs signed 64-bit: each takes 2^30 additions of
// 32-bit pieces before carries must be moved up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/arena.h"

namespace sluice {

struct FloatSum {
  int64_t* limbs = nullptr;
  int16_t first_limb = 0, limb_count = 0;
  uint32_t additions = 0;  // since the last carry
  int64_t count = 0;       // values added
  uint8_t seen_nan = 0, seen_positive_infinity = 0, seen_negative_infinity = 0;

  void Add(double value, Arena* arena);
  void AddSquare(double value, Arena* arena);  // exactly value²
  void Merge(const FloatSum& other, Arena* arena);
  // The sum changes its sign; count and what was seen stay.
  void Negate();

  // Self-delimiting: Deserialize reads the front of *from and moves it on. 22P03 on damaged bytes.
  void Serialize(std::string* out) const;
  static FloatSum Deserialize(std::string_view* from, Arena* arena);

  double Sum() const;       // sum(float8); 22003 if finite values overflow
  float SumFloat4() const;  // sum(float4), rounded once to float4; 22003 likewise
  double Average() const;   // the sum, divided by the count
};

// count, Σx, Σx²: variance and stddev of float8 and float4.
struct FloatMoments {
  FloatSum sum, squares;

  void Add(double value, Arena* arena);
  void Merge(const FloatMoments& other, Arena* arena);
  void Serialize(std::string* out) const;
  static FloatMoments Deserialize(std::string_view* from, Arena* arena);

  // false = NULL: no rows, or a sample of one.
  bool Variance(bool sample, double* out) const;
  bool Stddev(bool sample, double* out) const;
};

}  // namespace sluice
