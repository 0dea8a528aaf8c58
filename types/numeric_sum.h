// Exact sums of numerics and integers: sum, avg, variance and stddev of numeric, int2, int4 and
// int8. Plain data: a state may live in an arena or a hash table's row and be moved with memcpy.
// What it points to lives in the arena that every call gets (always the same one, or one that lives
// as long).
//
// A value counts Σ digits in units of 10^-8 in one 128-bit integer while it fits; what does not fit
// (more than 8 decimals, 10^16 and up, or an overflow of the integer) goes to `wide`, a row of
// 128-bit slots, one for every four base-10000 digits, which cannot overflow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/arena.h"

namespace sluice {

struct NumericSum {
  struct Wide;

  __int128 units = 0;  // of 10^-8
  int64_t count = 0;   // values added, specials included
  Wide* wide = nullptr;
  int32_t dscale = 0;  // the largest seen
  uint8_t seen_nan = 0, seen_positive_infinity = 0, seen_negative_infinity = 0;

  void Add(std::string_view wire, Arena* arena);
  void AddInt(int64_t value, Arena* arena);
  void AddSquare(std::string_view wire, Arena* arena);  // value²: not for specials
  void AddSquareOfInt(int64_t value, Arena* arena);
  void Merge(const NumericSum& other, Arena* arena);
  // The sum changes its sign, so that Merge takes values out of another; count and what was seen
  // stay.
  void Negate();

  // Self-delimiting: Deserialize reads the front of *from and moves it on. 22P03 on damaged bytes.
  void Serialize(std::string* out) const;
  static NumericSum Deserialize(std::string_view* from, Arena* arena);

  // Wire values. REQUIRES: count > 0 (SQL's NULL over no rows is the caller's).
  std::string_view Sum(Arena* arena) const;
  std::string_view Average(Arena* arena) const;
};

// count, Σx and Σx²: variance and stddev of numeric and of integers.
struct NumericMoments {
  NumericSum sum, squares;

  void Add(std::string_view wire, Arena* arena);
  void AddInt(int64_t value, Arena* arena);
  void Merge(const NumericMoments& other, Arena* arena);
  void Serialize(std::string* out) const;
  static NumericMoments Deserialize(std::string_view* from, Arena* arena);

  // false = NULL: no rows, or a sample of one.
  bool Variance(bool sample, Arena* arena, std::string_view* wire) const;
  bool Stddev(bool sample, Arena* arena, std::string_view* wire) const;
};

}  // namespace sluice
