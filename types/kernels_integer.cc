// Arithmetic and bit operators of int2, int4 and int8.
#include <numeric>

#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"

namespace sluice {
namespace {

template <typename T>
[[noreturn]] void OutOfRange() {
  Throw(sqlstate::kNumericValueOutOfRange, "{} out of range",
        sizeof(T) == 2   ? "smallint"
        : sizeof(T) == 4 ? "integer"
                         : "bigint");
}
[[noreturn]] void DivisionByZero() {
  Throw(sqlstate::kDivisionByZero, "division by zero");
}

template <typename A, typename B>
using Wider = std::conditional_t<(sizeof(A) > sizeof(B)), A, B>;

// An overflow in any row is an error, so all rows can be computed first and looked at once.
template <typename A, typename B, typename Fn>
void CheckedArithmetic(const KernelCall& call, Fn&& overflows) {
  using Out = Wider<A, B>;
  Out* out = call.out->Data<Out>();
  const A* a = call.args[0]->Data<A>();
  const B* b = call.args[1]->Data<B>();
  size_t mask_a = call.args[0]->mask, mask_b = call.args[1]->mask;
  bool overflow = false;
  ForEachRow(call, [&](size_t i) {
    overflow |=
        overflows(static_cast<Out>(a[i & mask_a]), static_cast<Out>(b[i & mask_b]), &out[i]);
  });
  if (overflow) OutOfRange<Out>();
}

template <typename A, typename B>
void Plus(const KernelCall& call) {
  CheckedArithmetic<A, B>(
      call, [](auto a, auto b, auto* out) { return __builtin_add_overflow(a, b, out); });
}
template <typename A, typename B>
void Minus(const KernelCall& call) {
  CheckedArithmetic<A, B>(
      call, [](auto a, auto b, auto* out) { return __builtin_sub_overflow(a, b, out); });
}
template <typename A, typename B>
void Times(const KernelCall& call) {
  CheckedArithmetic<A, B>(
      call, [](auto a, auto b, auto* out) { return __builtin_mul_overflow(a, b, out); });
}

template <typename Out>
struct Divide {
  Out operator()(Out a, Out b) const {
    if (b == 0) DivisionByZero();
    if (b == -1) {
      if (a == std::numeric_limits<Out>::min()) OutOfRange<Out>();
      return static_cast<Out>(-a);
    }
    return static_cast<Out>(a / b);
  }
};
struct Modulo {
  template <typename T>
  T operator()(T a, T b) const {
    if (b == 0) DivisionByZero();
    return b == -1 ? T{0} : static_cast<T>(a % b);
  }
};
struct Negate {
  template <typename T>
  T operator()(T a) const {
    if (a == std::numeric_limits<T>::min()) OutOfRange<T>();
    return static_cast<T>(-a);
  }
};
struct Absolute {
  template <typename T>
  T operator()(T a) const {
    return a < 0 ? Negate()(a) : a;
  }
};
struct Same {
  template <typename T>
  T operator()(T a) const {
    return a;
  }
};
struct And {
  template <typename T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <typename T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <typename T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct Not {
  template <typename T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
// Shift counts are taken as the machine takes them: modulo 32, or 64 for int8.
struct ShiftLeft {
  template <typename T>
  T operator()(T a, int32_t count) const {
    using Unsigned = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    return static_cast<T>(static_cast<Unsigned>(a) << (count & (sizeof(Unsigned) * 8 - 1)));
  }
};
struct ShiftRight {
  template <typename T>
  T operator()(T a, int32_t count) const {
    using Wide = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    return static_cast<T>(static_cast<Wide>(a) >> (count & (sizeof(Wide) * 8 - 1)));
  }
};
struct Larger {
  template <typename T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct Smaller {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};

template <typename T>
T GreatestCommonDivisor(T a, T b) {
  // Of the smallest value with itself or 0 there is none that fits.
  constexpr T kLeast = std::numeric_limits<T>::min();
  if (a == kLeast || b == kLeast) {
    if ((a == kLeast || a == 0) && (b == kLeast || b == 0)) OutOfRange<T>();
  }
  using Unsigned = std::make_unsigned_t<T>;
  auto magnitude = [](T x) {
    return x < 0 ? Unsigned{0} - static_cast<Unsigned>(x) : static_cast<Unsigned>(x);
  };
  return static_cast<T>(std::gcd(magnitude(a), magnitude(b)));
}
struct Gcd {
  template <typename T>
  T operator()(T a, T b) const {
    return GreatestCommonDivisor(a, b);
  }
};
struct Lcm {
  template <typename T>
  T operator()(T a, T b) const {
    if (a == 0 || b == 0) return 0;
    T result;
    if (__builtin_mul_overflow(static_cast<T>(a / GreatestCommonDivisor(a, b)), b, &result))
      OutOfRange<T>();
    return Absolute()(result);
  }
};
template <typename T>
struct Increment {
  T operator()(T a) const {
    if (a == std::numeric_limits<T>::max()) OutOfRange<T>();
    return static_cast<T>(a + 1);
  }
};

#define ARITHMETIC(name, A, B, pl, mi, mul, div)                         \
  {pl, name "pl", true, Plus<A, B>}, {mi, name "mi", true, Minus<A, B>}, \
      {mul, name "mul", true, Times<A, B>}, {                            \
    div, name "div", true, Map<Divide<Wider<A, B>>, Wider<A, B>, A, B>   \
  }
#define OF_ONE_TYPE(name, T, mod1, mod2, um, up, abs1, abs2, and_, or_, xor_, not_, shl, shr,    \
                    larger, smaller)                                                             \
  {mod1, name "mod", true, Map<Modulo, T, T, T>}, {mod2, "mod", true, Map<Modulo, T, T, T>},     \
      {um, name "um", true, Map<Negate, T, T>}, {up, name "up", true, Map<Same, T, T>},          \
      {abs1, name "abs", true, Map<Absolute, T, T>}, {abs2, "abs", true, Map<Absolute, T, T>},   \
      {and_, name "and", true, MapFast<And, T, T, T>},                                           \
      {or_, name "or", true, MapFast<Or, T, T, T>},                                              \
      {xor_, name "xor", true, MapFast<Xor, T, T, T>}, {not_, name "not", true, Map<Not, T, T>}, \
      {shl, name "shl", true, MapFast<ShiftLeft, T, T, int32_t>},                                \
      {shr, name "shr", true, MapFast<ShiftRight, T, T, int32_t>},                               \
      {larger, name "larger", true, MapFast<Larger, T, T, T>}, {                                 \
    smaller, name "smaller", true, MapFast<Smaller, T, T, T>                                     \
  }

constexpr Kernel kKernels[] = {
    ARITHMETIC("int2", int16_t, int16_t, 176, 180, 152, 153),
    ARITHMETIC("int4", int32_t, int32_t, 177, 181, 141, 154),
    ARITHMETIC("int8", int64_t, int64_t, 463, 464, 465, 466),
    ARITHMETIC("int24", int16_t, int32_t, 178, 182, 170, 172),
    ARITHMETIC("int42", int32_t, int16_t, 179, 183, 171, 173),
    ARITHMETIC("int28", int16_t, int64_t, 841, 942, 943, 948),
    ARITHMETIC("int82", int64_t, int16_t, 837, 838, 839, 840),
    ARITHMETIC("int48", int32_t, int64_t, 1278, 1279, 1280, 1281),
    ARITHMETIC("int84", int64_t, int32_t, 1274, 1275, 1276, 1277),
    OF_ONE_TYPE("int2", int16_t, 155, 940, 213, 1911, 1253, 1398, 1892, 1893, 1894, 1895, 1896,
                1897, 770, 771),
    OF_ONE_TYPE("int4", int32_t, 156, 941, 212, 1912, 1251, 1397, 1898, 1899, 1900, 1901, 1902,
                1903, 768, 769),
    OF_ONE_TYPE("int8", int64_t, 945, 947, 462, 1910, 1230, 1396, 1904, 1905, 1906, 1907, 1908,
                1909, 1236, 1237),
    {5044, "gcd", true, Map<Gcd, int32_t, int32_t, int32_t>},
    {5045, "gcd", true, Map<Gcd, int64_t, int64_t, int64_t>},
    {5046, "lcm", true, Map<Lcm, int32_t, int32_t, int32_t>},
    {5047, "lcm", true, Map<Lcm, int64_t, int64_t, int64_t>},
    {766, "int4inc", true, Map<Increment<int32_t>, int32_t, int32_t>},
    {1219, "int8inc", true, Map<Increment<int64_t>, int64_t, int64_t>},
};

#undef ARITHMETIC
#undef OF_ONE_TYPE

}  // namespace

std::span<const Kernel> IntegerKernels() {
  return kKernels;
}

}  // namespace sluice
