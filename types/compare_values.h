// Order of single values, shared by compare.cc and the comparison kernels.
#pragma once

#include <cmath>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "types/collation.h"
#include "types/column.h"
#include "types/datetime.h"

namespace sluice {

// NaN is the largest float and equals itself.
template <typename A, typename B>
inline int CompareValues(const A& a, const B& b) {
  if constexpr (std::is_floating_point_v<A>) {
    if (__builtin_expect(std::isnan(a) || std::isnan(b), 0)) return std::isnan(a) - std::isnan(b);
  }
  return (a > b) - (a < b);
}
template <>
inline int CompareValues(const Interval& a, const Interval& b) {
  __int128 x = IntervalSpan(a), y = IntervalSpan(b);
  return (x > y) - (x < y);
}
template <>
inline int CompareValues(const Uuid& a, const Uuid& b) {
  return std::memcmp(a.bytes, b.bytes, sizeof a);
}

inline int CompareBytes(std::string_view a, std::string_view b) {
  size_t common = a.size() < b.size() ? a.size() : b.size();
  int order = common == 0 ? 0 : std::memcmp(a.data(), b.data(), common);
  return order != 0 ? order : (a.size() > b.size()) - (a.size() < b.size());
}

inline int CompareText(std::string_view a, std::string_view b, const Collator* collation) {
  if (collation == nullptr || collation->is_c()) return CompareBytes(a, b);
  return collation->Compare(a, b);
}

int CompareArrays(std::string_view a, std::string_view b, const Collator* collation);

}  // namespace sluice
