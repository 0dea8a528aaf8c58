#include "types/numeric.h"

#include "common/assert.h"
#include "common/error.h"

namespace sluice {
namespace {

constexpr int kPowersOfTen[] = {1, 10, 100, 1000, 10000};

Numeric Finite(bool negative) {
  Numeric value;
  value.sign = negative ? NumericSign::kNegative : NumericSign::kPositive;
  return value;
}

[[noreturn]] void DivisionByZero() {
  Throw(sqlstate::kDivisionByZero, "division by zero");
}

// |a| + |b|, signed as `negative`.
Numeric AddMagnitudes(const Numeric& a, const Numeric& b, bool negative) {
  int top = std::max(a.weight, b.weight) + 1;  // room for the carry
  int bottom = std::min(a.weight - a.digits.size(), b.weight - b.digits.size()) + 1;
  Numeric sum = Finite(negative);
  sum.weight = top;
  sum.digits.Resize(top - bottom + 1);
  int carry = 0;
  for (int w = bottom; w <= top; w++) {
    int ia = a.weight - w, ib = b.weight - w;
    int digit = carry;
    if (ia >= 0 && ia < a.digits.size()) digit += a.digits[ia];
    if (ib >= 0 && ib < b.digits.size()) digit += b.digits[ib];
    carry = digit >= kNumericBase;
    sum.digits[top - w] = static_cast<int16_t>(carry ? digit - kNumericBase : digit);
  }
  sum.Strip();
  return sum;
}

// |a| - |b|, signed as `negative`. REQUIRES: |a| >= |b|.
Numeric SubtractMagnitudes(const Numeric& a, const Numeric& b, bool negative) {
  int top = std::max(a.weight, b.weight);
  int bottom = std::min(a.weight - a.digits.size(), b.weight - b.digits.size()) + 1;
  Numeric difference = Finite(negative);
  difference.weight = top;
  difference.digits.Resize(top - bottom + 1);
  int borrow = 0;
  for (int w = bottom; w <= top; w++) {
    int ia = a.weight - w, ib = b.weight - w;
    int digit = -borrow;
    if (ia >= 0 && ia < a.digits.size()) digit += a.digits[ia];
    if (ib >= 0 && ib < b.digits.size()) digit -= b.digits[ib];
    borrow = digit < 0;
    difference.digits[top - w] = static_cast<int16_t>(borrow ? digit + kNumericBase : digit);
  }
  SLUICE_ASSERT(borrow == 0);
  difference.Strip();
  return difference;
}

// The first `count` base-10000 digits of the quotient of two digit strings read as integers, where
// the dividend is extended by zeros to count + divisor.size() digits. Knuth's algorithm D.
NumericDigits LongDivide(const NumericDigits& dividend, const NumericDigits& divisor, int count) {
  int n = divisor.size();
  std::vector<int32_t> u(static_cast<size_t>(count + n + 1), 0);
  std::vector<int32_t> v(static_cast<size_t>(n), 0);
  const int32_t scale = kNumericBase / (divisor[0] + 1);
  int32_t carry = 0;
  for (int i = std::min(dividend.size(), count + n - 1) - 1; i >= 0; i--) {
    int32_t x = dividend[i] * scale + carry;
    carry = x / kNumericBase;
    u[static_cast<size_t>(i) + 1] = x % kNumericBase;
  }
  u[0] = carry;
  carry = 0;
  for (int i = n - 1; i >= 0; i--) {
    int32_t x = divisor[i] * scale + carry;
    carry = x / kNumericBase;
    v[static_cast<size_t>(i)] = x % kNumericBase;
  }
  NumericDigits quotient;
  quotient.Resize(count);
  for (int j = 0; j < count; j++) {
    int32_t* at = u.data() + j;
    int64_t front = int64_t{at[0]} * kNumericBase + at[1];
    int64_t guess = std::min<int64_t>(front / v[0], kNumericBase - 1);
    if (n > 1) {
      while (guess * v[1] > (front - guess * v[0]) * kNumericBase + at[2]) guess--;
    }
    int64_t borrow = 0;
    for (int i = n - 1; i >= 0; i--) {
      int64_t x = at[i + 1] - guess * v[static_cast<size_t>(i)] - borrow;
      borrow = x < 0 ? (-x + kNumericBase - 1) / kNumericBase : 0;
      at[i + 1] = static_cast<int32_t>(x + borrow * kNumericBase);
    }
    int64_t first = at[0] - borrow;
    if (first < 0) {  // the guess was one too large
      guess--;
      int32_t up = 0;
      for (int i = n - 1; i >= 0; i--) {
        int32_t x = at[i + 1] + v[static_cast<size_t>(i)] + up;
        up = x >= kNumericBase;
        at[i + 1] = up ? x - kNumericBase : x;
      }
      first += up;
    }
    SLUICE_ASSERT(first == 0);
    at[0] = 0;
    quotient[j] = static_cast<int16_t>(guess);
  }
  return quotient;
}

// ±Infinity plus or times something: the sign, or NaN.
Numeric InfinityOf(bool negative) {
  return NumericInfinity(negative);
}

}  // namespace

void Numeric::Strip() {
  if (special()) return;
  int front = 0, size = digits.size();
  while (size > 0 && digits[size - 1] == 0) size--;
  while (front < size && digits[front] == 0) front++;
  digits.Resize(size);
  if (front > 0) {
    digits.DropFront(front);
    weight -= front;
  }
  if (digits.empty()) {
    weight = 0;
    sign = NumericSign::kPositive;
  }
}

namespace numeric_internal {

int CompareMagnitude(const Numeric& a, const Numeric& b) {
  if (a.digits.empty() || b.digits.empty()) return !a.digits.empty() - !b.digits.empty();
  if (a.weight != b.weight) return a.weight < b.weight ? -1 : 1;
  int common = std::min(a.digits.size(), b.digits.size());
  for (int i = 0; i < common; i++) {
    if (a.digits[i] != b.digits[i]) return a.digits[i] < b.digits[i] ? -1 : 1;
  }
  return (a.digits.size() > common) - (b.digits.size() > common);
}

Numeric Add(const Numeric& a, const Numeric& b, bool negate_b) {
  bool negative_b = b.negative() != negate_b;
  Numeric result;
  if (a.digits.empty()) {
    result = b;
    result.sign = negative_b && !b.digits.empty() ? NumericSign::kNegative : NumericSign::kPositive;
  } else if (b.digits.empty()) {
    result = a;
  } else if (a.negative() == negative_b) {
    result = AddMagnitudes(a, b, negative_b);
  } else {
    int order = CompareMagnitude(a, b);
    if (order > 0) result = SubtractMagnitudes(a, b, a.negative());
    if (order < 0) result = SubtractMagnitudes(b, a, negative_b);
  }
  result.dscale = std::max(a.dscale, b.dscale);
  return result;
}

Numeric Multiply(const Numeric& a, const Numeric& b, int result_scale) {
  Numeric product = Finite(a.negative() != b.negative());
  int na = a.digits.size(), nb = b.digits.size();
  if (na == 0 || nb == 0) {
    product.sign = NumericSign::kPositive;
    product.dscale = result_scale;
    return product;
  }
  int64_t few[40] = {};
  std::vector<int64_t> many;
  int64_t* columns = few;
  if (na + nb > 40) {
    many.resize(static_cast<size_t>(na + nb));
    columns = many.data();
  }
  for (int i = 0; i < na; i++) {
    int64_t x = a.digits[i];
    for (int j = 0; j < nb; j++) columns[i + j + 1] += x * b.digits[j];
  }
  product.weight = a.weight + b.weight + 1;
  product.digits.Resize(na + nb);
  int64_t carry = 0;
  for (int i = na + nb - 1; i >= 0; i--) {
    int64_t x = columns[i] + carry;
    carry = x / kNumericBase;
    product.digits[i] = static_cast<int16_t>(x % kNumericBase);
  }
  product.Strip();
  RoundTo(&product, result_scale);
  return product;
}

Numeric Divide(const Numeric& a, const Numeric& b, int result_scale, bool round) {
  if (b.digits.empty()) DivisionByZero();
  Numeric quotient = Finite(a.negative() != b.negative());
  // Truncated digits are enough to round half away: one decimal past the scale decides.
  int weight = a.weight - b.weight;
  int count = weight + 1 + (result_scale + kNumericDigitsPerGroup) / kNumericDigitsPerGroup + 1;
  if (!a.digits.empty() && count > 0) {
    quotient.digits = LongDivide(a.digits, b.digits, count);
    quotient.weight = weight;
  }
  quotient.Strip();
  if (round)
    RoundTo(&quotient, result_scale);
  else
    TruncateTo(&quotient, result_scale);
  return quotient;
}

// The scale that gives at least 16 significant digits, and no less than either operand's.
int SelectDivideScale(const Numeric& a, const Numeric& b) {
  int weight_a = a.digits.empty() ? 0 : a.weight, weight_b = b.digits.empty() ? 0 : b.weight;
  int first_a = a.digits.empty() ? 0 : a.digits[0], first_b = b.digits.empty() ? 0 : b.digits[0];
  int weight = weight_a - weight_b;
  if (first_a <= first_b) weight--;
  int scale = kNumericSignificantDigitsMin - weight * kNumericDigitsPerGroup;
  scale = std::max({scale, a.dscale, b.dscale, 0});
  return std::min(scale, kNumericDisplayScaleMax);
}

void TruncateTo(Numeric* value, int scale) {
  value->dscale = std::max(scale, 0);
  int keep = (value->weight + 1) * kNumericDigitsPerGroup + scale;
  if (value->digits.empty() || keep <= 0) {
    value->digits.Resize(0);
  } else {
    int groups = (keep + kNumericDigitsPerGroup - 1) / kNumericDigitsPerGroup;
    if (groups > value->digits.size()) return;
    value->digits.Resize(groups);
    int part = keep % kNumericDigitsPerGroup;
    if (part > 0) {
      int16_t& last = value->digits[groups - 1];
      last = static_cast<int16_t>(last - last % kPowersOfTen[kNumericDigitsPerGroup - part]);
    }
  }
  value->Strip();
}

void RoundTo(Numeric* value, int scale) {
  int keep = (value->weight + 1) * kNumericDigitsPerGroup + scale;
  int size = value->digits.size();
  int groups = keep <= 0 ? 0 : (keep + kNumericDigitsPerGroup - 1) / kNumericDigitsPerGroup;
  value->dscale = std::max(scale, 0);
  if (size == 0 || groups > size || (groups == size && keep % kNumericDigitsPerGroup == 0)) return;
  bool up = false;
  int unit = 1;  // what rounding up adds to the last group kept
  if (keep >= 0) {
    int part = keep % kNumericDigitsPerGroup;
    if (part == 0) {
      up = value->digits[groups] >= kNumericBase / 2;
    } else {
      unit = kPowersOfTen[kNumericDigitsPerGroup - part];
      int16_t& last = value->digits[groups - 1];
      int cut = last % unit;
      last = static_cast<int16_t>(last - cut);
      up = cut >= unit / 2;
    }
  }
  value->digits.Resize(groups);
  for (int i = groups - 1; up && i >= 0; i--) {
    int digit = value->digits[i] + unit;
    unit = 1;
    up = digit >= kNumericBase;
    value->digits[i] = static_cast<int16_t>(up ? digit - kNumericBase : digit);
  }
  if (up) {  // carried out of the front
    value->digits.Resize(groups + 1);
    std::memmove(value->digits.data() + 1, value->digits.data(),
                 sizeof(int16_t) * static_cast<size_t>(groups));
    value->digits[0] = 1;
    value->weight++;
  }
  value->Strip();
}

}  // namespace numeric_internal

using namespace numeric_internal;

int CompareNumeric(const Numeric& a, const Numeric& b) {
  auto rank = [](const Numeric& x) {
    if (x.nan()) return 3;
    if (x.infinite()) return x.negative() ? -2 : 2;
    return x.zero() ? 0 : x.negative() ? -1 : 1;
  };
  int rank_a = rank(a), rank_b = rank(b);
  if (rank_a != rank_b) return rank_a < rank_b ? -1 : 1;
  if (rank_a == 1) return CompareMagnitude(a, b);
  if (rank_a == -1) return -CompareMagnitude(a, b);
  return 0;
}

int NumericSignum(const Numeric& value) {
  return value.zero() ? 0 : value.negative() ? -1 : 1;
}

Numeric NumericNegate(Numeric value) {
  switch (value.sign) {
    case NumericSign::kNan:
      break;
    case NumericSign::kPositiveInfinity:
      value.sign = NumericSign::kNegativeInfinity;
      break;
    case NumericSign::kNegativeInfinity:
      value.sign = NumericSign::kPositiveInfinity;
      break;
    case NumericSign::kNegative:
      value.sign = NumericSign::kPositive;
      break;
    case NumericSign::kPositive:
      if (!value.digits.empty()) value.sign = NumericSign::kNegative;
      break;
  }
  return value;
}

Numeric NumericAbs(Numeric value) {
  return value.negative() ? NumericNegate(std::move(value)) : value;
}

Numeric NumericAdd(const Numeric& a, const Numeric& b) {
  if (a.special() || b.special()) {
    if (a.nan() || b.nan()) return NumericNan();
    if (a.infinite() && b.infinite()) return a.negative() == b.negative() ? a : NumericNan();
    return InfinityOf(a.infinite() ? a.negative() : b.negative());
  }
  return Add(a, b, false);
}

Numeric NumericSubtract(const Numeric& a, const Numeric& b) {
  if (a.special() || b.special()) return NumericAdd(a, NumericNegate(b));
  return Add(a, b, true);
}

Numeric NumericMultiply(const Numeric& a, const Numeric& b) {
  if (a.special() || b.special()) {
    if (a.nan() || b.nan() || a.zero() || b.zero()) return NumericNan();
    return InfinityOf(a.negative() != b.negative());
  }
  return Multiply(a, b, std::min(a.dscale + b.dscale, kNumericScaleMax));
}

namespace {

// What all divisions share for specials; nullopt: both are finite.
std::optional<Numeric> DivideSpecials(const Numeric& a, const Numeric& b) {
  if (!a.special() && !b.special()) return std::nullopt;
  if (a.nan() || b.nan()) return NumericNan();
  if (a.infinite()) {
    if (b.infinite()) return NumericNan();
    if (b.zero()) DivisionByZero();
    return InfinityOf(a.negative() != b.negative());
  }
  return Numeric();  // finite / infinity
}

}  // namespace

Numeric NumericDivide(const Numeric& a, const Numeric& b) {
  if (auto special = DivideSpecials(a, b)) return *special;
  if (b.zero()) DivisionByZero();
  return Divide(a, b, SelectDivideScale(a, b), true);
}

Numeric NumericDivideTruncate(const Numeric& a, const Numeric& b) {
  if (auto special = DivideSpecials(a, b)) return *special;
  if (b.zero()) DivisionByZero();
  return Divide(a, b, 0, false);
}

Numeric NumericModulo(const Numeric& a, const Numeric& b) {
  if (a.special() || b.special()) {
    if (a.nan() || b.nan()) return NumericNan();
    if (a.infinite()) {
      if (b.zero()) DivisionByZero();
      return NumericNan();
    }
    return a;  // modulo infinity
  }
  if (b.zero()) DivisionByZero();
  Numeric quotient = Divide(a, b, 0, false);
  return Add(a, Multiply(quotient, b, b.dscale), true);
}

Numeric NumericRound(Numeric value, int scale) {
  if (value.special()) return value;
  scale = std::clamp(scale, -kNumericResultScaleMax, kNumericResultScaleMax);
  RoundTo(&value, scale);
  return value;
}

Numeric NumericTruncate(Numeric value, int scale) {
  if (value.special()) return value;
  scale = std::clamp(scale, -kNumericResultScaleMax, kNumericResultScaleMax);
  TruncateTo(&value, scale);
  return value;
}

Numeric NumericCeil(const Numeric& value) {
  if (value.special()) return value;
  Numeric whole = value;
  TruncateTo(&whole, 0);
  if (!value.negative() && CompareMagnitude(value, whole) != 0) {
    whole = Add(whole, NumericFromInt(1), false);
  }
  whole.dscale = 0;
  return whole;
}

Numeric NumericFloor(const Numeric& value) {
  return NumericNegate(NumericCeil(NumericNegate(value)));
}

}  // namespace sluice
