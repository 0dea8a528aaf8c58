// Arithmetic and functions of numeric.
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"
#include "types/numeric.h"
#include "types/numeric_small.h"
#include "types/numeric_sum.h"

namespace sluice {
namespace {

using View = std::string_view;

View Store(const KernelCall& call, const Numeric& value) {
  return NumericToWire(value, call.context->arena);
}

constexpr int64_t kPower10000[] = {1, 10000, 100000000, 1000000000000, 10000000000000000};
constexpr int64_t kPowerOfTen[] = {1,
                                   10,
                                   100,
                                   1000,
                                   10000,
                                   100000,
                                   1000000,
                                   10000000,
                                   100000000,
                                   1000000000,
                                   10000000000,
                                   100000000000,
                                   1000000000000,
                                   10000000000000,
                                   100000000000000,
                                   1000000000000000,
                                   10000000000000000,
                                   100000000000000000,
                                   1000000000000000000};

// a ± b where the digits of both, aligned, fit in 128 bits.
bool AddSmall(const KernelCall& call, View a, View b, bool negate, View* out) {
  SmallNumeric x, y;
  if (!LoadSmall(a, &x) || !LoadSmall(b, &y)) return false;
  if (x.mantissa == 0) x.exponent = y.exponent;
  if (y.mantissa == 0) y.exponent = x.exponent;
  int low = std::min(x.exponent, y.exponent);
  if (x.exponent - low > 4 || y.exponent - low > 4) return false;
  __int128 left = static_cast<__int128>(x.mantissa) * kPower10000[x.exponent - low];
  __int128 right = static_cast<__int128>(y.mantissa) * kPower10000[y.exponent - low];
  *out = StoreSmall(negate ? left - right : left + right, low, std::max(x.dscale, y.dscale),
                    call.context->arena);
  return true;
}

// The quotient rounded half away at Postgres's scale, where all fits in 128 bits.
bool DivideSmall(const KernelCall& call, View a, View b, View* out) {
  SmallNumeric x, y;
  if (!LoadSmall(a, &x) || !LoadSmall(b, &y) || y.mantissa == 0) return false;
  int weight = x.weight - y.weight - (x.first_digit <= y.first_digit);
  int scale = kNumericSignificantDigitsMin - weight * kNumericDigitsPerGroup;
  scale = std::min(std::max({scale, x.dscale, y.dscale, 0}), kNumericDisplayScaleMax);
  int padded = (scale + 3) / 4 * 4;  // a whole number of groups
  int up = scale + kNumericDigitsPerGroup * (x.exponent - y.exponent);
  if (up < 0 || up > 21) return false;
  __int128 numerator = x.mantissa;
  if (up > 18) {
    numerator *= kPowerOfTen[up - 18];
    up = 18;
  }
  numerator *= kPowerOfTen[up];
  // |numerator| < 10^37, so the doubling below cannot overflow.
  __int128 quotient = numerator / y.mantissa, remainder = numerator % y.mantissa;
  __int128 twice = remainder < 0 ? -2 * remainder : 2 * remainder;
  if (twice >= std::abs(y.mantissa)) quotient += (numerator < 0) == (y.mantissa < 0) ? 1 : -1;
  __int128 widened = quotient;
  if (__builtin_mul_overflow(widened, static_cast<__int128>(kPowerOfTen[padded - scale]), &widened))
    return false;
  *out = StoreSmall(widened, -padded / kNumericDigitsPerGroup, scale, call.context->arena);
  return true;
}

struct Plus {
  View operator()(const KernelCall& call, View a, View b) const {
    View out;
    if (AddSmall(call, a, b, false, &out)) return out;
    return Store(call, NumericAdd(NumericFromWire(a), NumericFromWire(b)));
  }
};
struct Minus {
  View operator()(const KernelCall& call, View a, View b) const {
    View out;
    if (AddSmall(call, a, b, true, &out)) return out;
    return Store(call, NumericSubtract(NumericFromWire(a), NumericFromWire(b)));
  }
};
struct Times {
  View operator()(const KernelCall& call, View a, View b) const {
    SmallNumeric x, y;
    if (LoadSmall(a, &x) && LoadSmall(b, &y) && x.dscale + y.dscale <= kNumericDisplayScaleMax) {
      __int128 product = static_cast<__int128>(x.mantissa) * y.mantissa;
      return StoreSmall(product, x.exponent + y.exponent, x.dscale + y.dscale, call.context->arena);
    }
    return Store(call, NumericMultiply(NumericFromWire(a), NumericFromWire(b)));
  }
};
struct Divide {
  View operator()(const KernelCall& call, View a, View b) const {
    View out;
    if (DivideSmall(call, a, b, &out)) return out;
    return Store(call, NumericDivide(NumericFromWire(a), NumericFromWire(b)));
  }
};

template <Numeric (*Fn)(const Numeric&)>
struct OfOne {
  View operator()(const KernelCall& call, View a) const {
    return Store(call, Fn(NumericFromWire(a)));
  }
};
template <Numeric (*Fn)(const Numeric&, const Numeric&)>
struct OfTwo {
  View operator()(const KernelCall& call, View a, View b) const {
    return Store(call, Fn(NumericFromWire(a), NumericFromWire(b)));
  }
};
struct Negate {
  View operator()(const KernelCall& call, View a) const {
    return Store(call, NumericNegate(NumericFromWire(a)));
  }
};
struct Absolute {
  View operator()(const KernelCall& call, View a) const {
    return Store(call, NumericAbs(NumericFromWire(a)));
  }
};
struct Same {
  View operator()(View a) const { return a; }
};
struct Sign {
  View operator()(const KernelCall& call, View a) const {
    Numeric value = NumericFromWire(a);
    return Store(call, value.nan() ? value : NumericFromInt(NumericSignum(value)));
  }
};
struct Round {
  View operator()(const KernelCall& call, View a, int32_t scale) const {
    return Store(call, NumericRound(NumericFromWire(a), scale));
  }
};
struct Truncate {
  View operator()(const KernelCall& call, View a, int32_t scale) const {
    return Store(call, NumericTruncate(NumericFromWire(a), scale));
  }
};
struct RoundToInteger {
  View operator()(const KernelCall& call, View a) const {
    return Store(call, NumericRound(NumericFromWire(a), 0));
  }
};
struct TruncateToInteger {
  View operator()(const KernelCall& call, View a) const {
    return Store(call, NumericTruncate(NumericFromWire(a), 0));
  }
};
struct Log10 {
  View operator()(const KernelCall& call, View a) const {
    return Store(call, NumericLog(NumericFromInt(10), NumericFromWire(a)));
  }
};
struct Typmod {
  View operator()(const KernelCall& call, View a, int32_t typmod) const {
    Numeric value = NumericFromWire(a);
    ApplyNumericTypmod(&value, typmod);
    return Store(call, value);
  }
};
struct Larger {
  View operator()(View a, View b) const { return CompareNumericWire(a, b) > 0 ? a : b; }
};
struct Smaller {
  View operator()(View a, View b) const { return CompareNumericWire(a, b) < 0 ? a : b; }
};

// Decimals that the value needs; REQUIRES: finite.
int MinimalScale(const Numeric& value) {
  if (value.digits.empty()) return 0;
  int scale = (value.digits.size() - value.weight - 1) * kNumericDigitsPerGroup;
  if (scale <= 0) return 0;
  int last = value.digits[value.digits.size() - 1];
  while (last % 10 == 0) {
    scale--;
    last /= 10;
  }
  return std::max(scale, 0);
}
struct TrimScale {
  View operator()(const KernelCall& call, View a) const {
    Numeric value = NumericFromWire(a);
    if (!value.special()) value.dscale = MinimalScale(value);
    return Store(call, value);
  }
};
void Scale(const KernelCall& call) {
  const View* data = call.args[0]->Data<View>();
  ForEachRow(call, [&](size_t i) {
    Numeric value = NumericFromWire(data[i & call.args[0]->mask]);
    if (value.special())
      SetNull(call, i);
    else
      call.out->Data<int32_t>()[i] = value.dscale;
  });
}

// The final functions of the variance family. Their one argument is a state inside of Postgres, so
// no statement can name them; here its parts: the number of values, their sum, the sum of their
// squares.
template <bool kSample, bool kRoot>
void FromMoments(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    for (const Column* arg : call.args)
      if (arg->IsNull(i)) return SetNull(call, i);
    Arena* arena = call.context->arena;
    NumericMoments moments;
    moments.sum.Add(call.args[1]->At<View>(i), arena);
    moments.squares.Add(call.args[2]->At<View>(i), arena);
    moments.sum.count = call.args[0]->At<int64_t>(i);
    View value;
    bool known =
        kRoot ? moments.Stddev(kSample, arena, &value) : moments.Variance(kSample, arena, &value);
    if (!known) return SetNull(call, i);
    call.out->Data<View>()[i] = value;
  });
}

constexpr Kernel kKernels[] = {
    {1724, "numeric_add", true, Map<Plus, View, View, View>},
    {1725, "numeric_sub", true, Map<Minus, View, View, View>},
    {1726, "numeric_mul", true, Map<Times, View, View, View>},
    {1727, "numeric_div", true, Map<Divide, View, View, View>},
    {1973, "div", true, Map<OfTwo<NumericDivideTruncate>, View, View, View>},
    {1980, "numeric_div_trunc", true, Map<OfTwo<NumericDivideTruncate>, View, View, View>},
    {1728, "mod", true, Map<OfTwo<NumericModulo>, View, View, View>},
    {1729, "numeric_mod", true, Map<OfTwo<NumericModulo>, View, View, View>},
    {1771, "numeric_uminus", true, Map<Negate, View, View>},
    {1915, "numeric_uplus", true, Map<Same, View, View>},
    {1704, "numeric_abs", true, Map<Absolute, View, View>},
    {1705, "abs", true, Map<Absolute, View, View>},
    {1706, "sign", true, Map<Sign, View, View>},
    {1707, "round", true, Map<Round, View, View, int32_t>},
    {1709, "trunc", true, Map<Truncate, View, View, int32_t>},
    {1711, "ceil", true, Map<OfOne<NumericCeil>, View, View>},
    {2167, "ceiling", true, Map<OfOne<NumericCeil>, View, View>},
    {1712, "floor", true, Map<OfOne<NumericFloor>, View, View>},
    {1730, "sqrt", true, Map<OfOne<NumericSqrt>, View, View>},
    {1731, "numeric_sqrt", true, Map<OfOne<NumericSqrt>, View, View>},
    {1732, "exp", true, Map<OfOne<NumericExp>, View, View>},
    {1733, "numeric_exp", true, Map<OfOne<NumericExp>, View, View>},
    {1734, "ln", true, Map<OfOne<NumericLn>, View, View>},
    {1735, "numeric_ln", true, Map<OfOne<NumericLn>, View, View>},
    {1736, "log", true, Map<OfTwo<NumericLog>, View, View, View>},
    {1737, "numeric_log", true, Map<OfTwo<NumericLog>, View, View, View>},
    {1738, "pow", true, Map<OfTwo<NumericPower>, View, View, View>},
    {1739, "numeric_power", true, Map<OfTwo<NumericPower>, View, View, View>},
    {2169, "power", true, Map<OfTwo<NumericPower>, View, View, View>},
    {1767, "numeric_larger", true, Map<Larger, View, View, View>},
    {1766, "numeric_smaller", true, Map<Smaller, View, View, View>},
    {1703, "numeric", true, Map<Typmod, View, View, int32_t>},
    {1708, "round", true, Map<RoundToInteger, View, View>},
    {1710, "trunc", true, Map<TruncateToInteger, View, View>},
    {1741, "log", true, Map<Log10, View, View>},
    {3281, "scale", true, Scale},
    {2514, "numeric_var_pop", false, FromMoments<false, false>},
    {1838, "numeric_var_samp", false, FromMoments<true, false>},
    {2596, "numeric_stddev_pop", false, FromMoments<false, true>},
    {1839, "numeric_stddev_samp", false, FromMoments<true, true>},
    {5043, "trim_scale", true, Map<TrimScale, View, View>},
};

}  // namespace

std::span<const Kernel> NumericKernels() {
  return kKernels;
}

}  // namespace sluice
