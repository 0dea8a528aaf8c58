// sqrt, exp, ln, log and power of numerics. The scales of results are Postgres's; the values are
// computed as integers scaled by a power of ten with digits to spare, then rounded to the scale.
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>

#include "common/error.h"
#include "types/numeric.h"

namespace sluice {
namespace {

using boost::multiprecision::cpp_int;
using namespace numeric_internal;

constexpr int kSpareDigits = 16;

[[noreturn]] void Overflow() {
  Throw(sqlstate::kNumericValueOutOfRange, "value overflows numeric format");
}

cpp_int PowerOfTen(int exponent) {
  return boost::multiprecision::pow(cpp_int(10), static_cast<unsigned>(exponent));
}

// value·10^scale, truncated.
cpp_int ToScaled(const Numeric& value, int scale) {
  cpp_int digits = 0;
  for (int i = 0; i < value.digits.size(); i++) digits = digits * kNumericBase + value.digits[i];
  int exponent = (value.weight - value.digits.size() + 1) * kNumericDigitsPerGroup + scale;
  if (exponent >= 0)
    digits *= PowerOfTen(exponent);
  else
    digits /= PowerOfTen(-exponent);
  return value.negative() ? cpp_int(-digits) : digits;
}

// scaled·10^-scale, rounded to `result_scale`.
Numeric FromScaled(const cpp_int& scaled, int scale, int result_scale) {
  int pad = (kNumericDigitsPerGroup - scale % kNumericDigitsPerGroup) % kNumericDigitsPerGroup;
  cpp_int magnitude = abs(scaled) * PowerOfTen(pad);
  std::string text = magnitude.str();
  size_t lead =
      (kNumericDigitsPerGroup - text.size() % kNumericDigitsPerGroup) % kNumericDigitsPerGroup;
  text.insert(0, lead, '0');
  Numeric value;
  int groups = static_cast<int>(text.size()) / kNumericDigitsPerGroup;
  value.digits.Resize(groups);
  for (int i = 0; i < groups; i++) {
    int group = 0;
    for (int j = 0; j < kNumericDigitsPerGroup; j++)
      group = group * 10 + (text[static_cast<size_t>(i * 4 + j)] - '0');
    value.digits[i] = static_cast<int16_t>(group);
  }
  value.weight = groups - 1 - (scale + pad) / kNumericDigitsPerGroup;
  value.sign = scaled < 0 ? NumericSign::kNegative : NumericSign::kPositive;
  value.Strip();
  RoundTo(&value, result_scale);
  return value;
}

int ClampScale(int scale) {
  return std::clamp(scale, 0, kNumericDisplayScaleMax);
}

double ApproximateDouble(const Numeric& value) {
  double result = 0;
  for (int i = 0; i < std::min(value.digits.size(), 6); i++)
    result = result * kNumericBase + value.digits[i];
  int exponent = (value.weight - std::min(value.digits.size(), 6) + 1) * kNumericDigitsPerGroup;
  result *= std::pow(10.0, exponent);
  return value.negative() ? -result : result;
}

// e^(x·10^-digits), scaled by 10^digits; x ≥ 0.
cpp_int ExpScaled(const cpp_int& x, int digits) {
  const cpp_int one = PowerOfTen(digits);
  int halvings = 0;
  cpp_int r = x;
  while (r > one / 256) {
    r >>= 1;
    halvings++;
  }
  cpp_int sum = one + r, term = r;
  for (int n = 2; term != 0; n++) {
    term = term * r / one / n;
    sum += term;
  }
  for (; halvings > 0; halvings--) sum = sum * sum / one;
  return sum;
}

// ln(y·10^-digits), scaled by 10^digits; y > 0 and not far from one.
cpp_int LnScaled(cpp_int y, int digits) {
  const cpp_int one = PowerOfTen(digits);
  int roots = 0;
  while (abs(cpp_int(y - one)) > one / 16) {
    y = sqrt(cpp_int(y * one));
    roots++;
  }
  // ln y = 2·artanh((y-1)/(y+1))
  cpp_int z = (y - one) * one / (y + one);
  cpp_int square = z * z / one, power = z, sum = z;
  for (int n = 3; power != 0; n += 2) {
    power = power * square / one;
    sum += power / n;
  }
  return (sum * 2) << roots;
}

// Finite, positive; rounded to `scale`.
Numeric LnToScale(const Numeric& value, int scale) {
  // value = m·10^(4·weight), m below 10^4
  Numeric mantissa = value;
  mantissa.weight = 0;
  int digits = scale + kSpareDigits + 8;
  cpp_int result = LnScaled(ToScaled(mantissa, digits), digits);
  if (value.weight != 0) {
    cpp_int ln_base = LnScaled(cpp_int(kNumericBase) * PowerOfTen(digits), digits);
    result += ln_base * value.weight;
  }
  return FromScaled(result, digits, scale);
}

// Decimal weight of ln(value), estimated as Postgres estimates it.
int EstimateLnWeight(const Numeric& value) {
  if (value.negative() || value.digits.empty()) return 0;
  static const Numeric* const low = new Numeric(NumericFromText("0.9"));
  static const Numeric* const high = new Numeric(NumericFromText("1.1"));
  if (CompareMagnitude(value, *low) >= 0 && CompareMagnitude(value, *high) <= 0) {
    Numeric x = Add(value, NumericFromInt(1), true);
    if (x.digits.empty()) return 0;
    return x.weight * kNumericDigitsPerGroup + static_cast<int>(std::log10(x.digits[0]));
  }
  int digits = value.digits[0], weight = value.weight * kNumericDigitsPerGroup;
  if (value.digits.size() > 1) {
    digits = digits * kNumericBase + value.digits[1];
    weight -= kNumericDigitsPerGroup;
  }
  double ln = std::log(static_cast<double>(digits)) + weight * 2.302585092994046;
  return static_cast<int>(std::log10(std::abs(ln)));
}

Numeric ExpToScale(const Numeric& value, int scale) {
  double approximate = ApproximateDouble(value);
  if (std::abs(approximate) >= kNumericResultScaleMax * 3) {
    if (approximate > 0) Overflow();
    Numeric zero;
    zero.dscale = scale;
    return zero;
  }
  int weight = static_cast<int>(std::abs(approximate) * 0.4343) + 1;
  bool negative = value.negative();
  int digits = scale + kSpareDigits + 8 + (negative ? 0 : weight);
  cpp_int result = ExpScaled(abs(ToScaled(value, digits)), digits);
  if (negative) result = PowerOfTen(2 * digits) / result;
  return FromScaled(result, digits, scale);
}

[[noreturn]] void ComplexPower() {
  Throw(sqlstate::kInvalidArgumentForPower,
        "a negative number raised to a non-integer power yields a complex result");
}

// base^exponent by squaring, on a mantissa cut to enough digits and a power of ten.
Numeric PowerOfInteger(const Numeric& base, int exponent) {
  double weight = 0;
  if (!base.digits.empty()) {
    double f = base.digits[0];
    int p = base.weight * kNumericDigitsPerGroup;
    for (int i = 1; i < base.digits.size() && i * kNumericDigitsPerGroup < 16; i++) {
      f = f * kNumericBase + base.digits[i];
      p -= kNumericDigitsPerGroup;
    }
    weight = exponent * (std::log10(f) + p);
  }
  if (weight > (kNumericWeightMax + 1.0) * kNumericDigitsPerGroup) Overflow();
  int scale = ClampScale(std::max(kNumericSignificantDigitsMin, base.dscale));
  if (weight + 1 < -scale) {
    Numeric zero;
    zero.dscale = scale;
    return zero;
  }
  if (exponent == 0) {
    Numeric one = NumericFromInt(1);
    one.dscale = scale;
    return one;
  }
  if (base.digits.empty()) {
    if (exponent < 0) Throw(sqlstate::kDivisionByZero, "division by zero");
    Numeric zero;
    zero.dscale = scale;
    return zero;
  }
  if (exponent == 1) {
    Numeric result = base;
    RoundTo(&result, scale);
    return result;
  }
  if (exponent == -1) return Divide(NumericFromInt(1), base, scale, true);
  if (exponent == 2) return Multiply(base, base, scale);
  int keep = scale + static_cast<int>(std::abs(weight)) + kSpareDigits + 12;
  struct Floating {
    cpp_int mantissa;
    int64_t exponent;
  };
  auto cut = [keep](Floating* x) {
    // msb·0.301 is the number of digits, close enough
    int extra = static_cast<int>(static_cast<double>(msb(x->mantissa)) * 0.30102999566) - keep;
    if (extra > 0) {
      x->mantissa /= PowerOfTen(extra);
      x->exponent += extra;
    }
  };
  int fraction = std::max(0, (base.digits.size() - base.weight - 1) * kNumericDigitsPerGroup);
  Floating square{abs(ToScaled(base, fraction)), -fraction}, result{1, 0};
  for (uint32_t bits = static_cast<uint32_t>(std::abs(int64_t{exponent})); bits != 0; bits >>= 1) {
    if (bits & 1) {
      result = {result.mantissa * square.mantissa, result.exponent + square.exponent};
      cut(&result);
    }
    square = {square.mantissa * square.mantissa, 2 * square.exponent};
    cut(&square);
  }
  if (base.negative() && exponent % 2 != 0) result.mantissa = -result.mantissa;
  int digits = scale + kSpareDigits;
  cpp_int scaled;
  if (exponent > 0) {
    int64_t shift = result.exponent + digits;
    scaled = shift >= 0 ? cpp_int(result.mantissa * PowerOfTen(static_cast<int>(shift)))
                        : cpp_int(result.mantissa / PowerOfTen(static_cast<int>(-shift)));
  } else {
    int64_t shift = digits - result.exponent;
    scaled =
        shift >= 0 ? cpp_int(PowerOfTen(static_cast<int>(shift)) / result.mantissa) : cpp_int(0);
  }
  return FromScaled(scaled, digits, scale);
}

// What is known without computing when a side is NaN or infinite.
Numeric PowerOfSpecials(const Numeric& base, const Numeric& exponent) {
  auto one = [] { return NumericFromInt(1); };
  if (base.nan()) return exponent.zero() ? one() : NumericNan();
  if (exponent.nan())
    return !base.special() && CompareNumeric(base, one()) == 0 ? one() : NumericNan();
  if (base.zero() && exponent.negative()) {
    Throw(sqlstate::kInvalidArgumentForPower, "zero raised to a negative power is undefined");
  }
  if (base.negative() && !base.special() && !exponent.special() && !exponent.integral())
    ComplexPower();
  if (!base.special() && CompareNumeric(base, one()) == 0) return one();
  if (exponent.zero()) return one();
  if (exponent.infinite()) {
    Numeric magnitude = NumericAbs(base);
    int order = CompareNumeric(magnitude, one());
    if (!base.special() && base.negative() && order == 0) return one();
    if (base.zero()) return Numeric();
    if (order == 0) return one();
    bool grows = (order > 0) == !exponent.negative();
    return grows ? NumericInfinity(false) : Numeric();
  }
  // ±Infinity to a finite power
  if (base.negative() && !exponent.integral()) ComplexPower();
  if (!base.negative()) return exponent.negative() ? Numeric() : NumericInfinity(false);
  if (exponent.negative()) return Numeric();
  bool odd = false;
  if (exponent.digits.size() == exponent.weight + 1)
    odd = exponent.digits[exponent.digits.size() - 1] % 2 != 0;
  return NumericInfinity(odd);
}

}  // namespace

Numeric NumericSqrtToScale(const Numeric& value, int scale) {
  int digits = scale + 1;
  return FromScaled(sqrt(ToScaled(value, 2 * digits)), digits, scale);
}

Numeric NumericSqrt(const Numeric& value) {
  if (value.nan() || (value.infinite() && !value.negative())) return value;
  if (value.negative()) {
    Throw(sqlstate::kInvalidArgumentForPower, "cannot take square root of a negative number");
  }
  int weight = value.digits.empty() ? 0 : value.weight;
  int root_weight = (weight + 1) * kNumericDigitsPerGroup / 2 - 1;
  int scale = ClampScale(std::max(kNumericSignificantDigitsMin - root_weight, value.dscale));
  return NumericSqrtToScale(value, scale);
}

Numeric NumericExp(const Numeric& value) {
  if (value.nan()) return value;
  if (value.infinite()) return value.negative() ? Numeric() : value;
  double weight = ApproximateDouble(value) * 0.434294481903252;
  weight = std::clamp(weight, -double{kNumericResultScaleMax}, double{kNumericResultScaleMax});
  int scale = kNumericSignificantDigitsMin - static_cast<int>(weight);
  return ExpToScale(value, ClampScale(std::max(scale, value.dscale)));
}

namespace {
void CheckLogArgument(const Numeric& value) {
  if (value.nan()) return;
  if (value.zero()) Throw(sqlstate::kInvalidArgumentForLog, "cannot take logarithm of zero");
  if (value.negative())
    Throw(sqlstate::kInvalidArgumentForLog, "cannot take logarithm of a negative number");
}
}  // namespace

Numeric NumericLn(const Numeric& value) {
  if (value.nan()) return value;
  CheckLogArgument(value);
  if (value.infinite()) return value;
  int scale = kNumericSignificantDigitsMin - EstimateLnWeight(value);
  return LnToScale(value, ClampScale(std::max(scale, value.dscale)));
}

Numeric NumericLog(const Numeric& base, const Numeric& value) {
  if (base.special() || value.special()) {
    if (base.nan() || value.nan()) return NumericNan();
    CheckLogArgument(base.negative() || !value.negative() ? base : value);
    CheckLogArgument(value);
    if (base.infinite()) return value.infinite() ? NumericNan() : Numeric();
    return NumericInfinity(false);
  }
  CheckLogArgument(base);
  CheckLogArgument(value);
  int base_weight = EstimateLnWeight(base), value_weight = EstimateLnWeight(value);
  int weight = value_weight - base_weight;
  int scale =
      ClampScale(std::max({kNumericSignificantDigitsMin - weight, base.dscale, value.dscale}));
  Numeric ln_base = LnToScale(base, std::max(0, scale + weight - base_weight + kSpareDigits));
  Numeric ln_value = LnToScale(value, std::max(0, scale + weight - value_weight + kSpareDigits));
  return Divide(ln_value, ln_base, scale, true);
}

Numeric NumericPower(const Numeric& base, const Numeric& exponent) {
  if (base.special() || exponent.special()) return PowerOfSpecials(base, exponent);
  if (base.zero() && exponent.negative()) {
    Throw(sqlstate::kInvalidArgumentForPower, "zero raised to a negative power is undefined");
  }
  if (base.negative() && !exponent.integral()) ComplexPower();
  int64_t whole = 0;
  if (exponent.integral() && NumericToInt64(exponent, &whole) && whole >= INT32_MIN &&
      whole <= INT32_MAX) {
    return PowerOfInteger(base, static_cast<int>(whole));
  }
  if (base.zero()) {
    Numeric zero;
    zero.dscale = kNumericSignificantDigitsMin;
    return zero;
  }
  bool negative = false;
  Numeric magnitude = base;
  if (base.negative()) {
    negative = exponent.digits.size() == exponent.weight + 1 &&
               exponent.digits[exponent.digits.size() - 1] % 2 != 0;
    magnitude = NumericNegate(base);
  }
  int ln_weight = EstimateLnWeight(magnitude);
  int local_scale = ClampScale(8 - ln_weight);
  Numeric rough = Multiply(LnToScale(magnitude, local_scale), exponent, local_scale);
  double value = ApproximateDouble(rough);
  if (std::abs(value) > kNumericResultScaleMax * 3.01) {
    if (value > 0) Overflow();
    Numeric zero;
    zero.dscale = kNumericDisplayScaleMax;
    return zero;
  }
  value *= 0.434294481903252;
  int scale = ClampScale(std::max(
      {kNumericSignificantDigitsMin - static_cast<int>(value), base.dscale, exponent.dscale}));
  // The product must be exact to the last digit of the result.
  int significant = scale + static_cast<int>(value) + kSpareDigits;
  int product_scale = std::max(0, significant - std::min(0, static_cast<int>(value)));
  int exponent_digits = std::max(0, (exponent.weight + 1) * kNumericDigitsPerGroup);
  Numeric ln = LnToScale(magnitude, product_scale + exponent_digits + 4);
  Numeric result = ExpToScale(Multiply(ln, exponent, product_scale + 4), scale);
  if (negative) result = NumericNegate(result);
  return result;
}

}  // namespace sluice
