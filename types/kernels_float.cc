// Arithmetic and functions of float4 and float8.
#include <cmath>

#include "types/compare_values.h"
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"

namespace sluice {
namespace {

[[noreturn]] void Overflow() {
  Throw(sqlstate::kNumericValueOutOfRange, "value out of range: overflow");
}
[[noreturn]] void Underflow() {
  Throw(sqlstate::kNumericValueOutOfRange, "value out of range: underflow");
}
[[noreturn]] void InputOutOfRange() {
  Throw(sqlstate::kNumericValueOutOfRange, "input is out of range");
}

struct Plus {
  template <typename T>
  T operator()(T a, T b) const {
    T result = a + b;
    if (__builtin_expect(std::isinf(result), 0) && !std::isinf(a) && !std::isinf(b)) Overflow();
    return result;
  }
};
struct Minus {
  template <typename T>
  T operator()(T a, T b) const {
    return Plus()(a, -b);
  }
};
struct Times {
  template <typename T>
  T operator()(T a, T b) const {
    T result = a * b;
    if (__builtin_expect(std::isinf(result), 0) && !std::isinf(a) && !std::isinf(b)) Overflow();
    if (__builtin_expect(result == 0, 0) && a != 0 && b != 0) Underflow();
    return result;
  }
};
struct Divide {
  template <typename T>
  T operator()(T a, T b) const {
    if (__builtin_expect(b == 0, 0) && !std::isnan(a))
      Throw(sqlstate::kDivisionByZero, "division by zero");
    T result = a / b;
    if (__builtin_expect(std::isinf(result), 0) && !std::isinf(a)) Overflow();
    if (__builtin_expect(result == 0, 0) && a != 0 && !std::isinf(b)) Underflow();
    return result;
  }
};
// float4 with float8: in float8.
template <typename Fn>
struct Mixed {
  double operator()(double a, double b) const { return Fn()(a, b); }
};

struct Negate {
  template <typename T>
  T operator()(T a) const {
    return -a;
  }
};
struct Absolute {
  template <typename T>
  T operator()(T a) const {
    return std::fabs(a);
  }
};
struct Same {
  template <typename T>
  T operator()(T a) const {
    return a;
  }
};
struct Larger {
  template <typename T>
  T operator()(T a, T b) const {
    return CompareValues(a, b) > 0 ? a : b;
  }
};
struct Smaller {
  template <typename T>
  T operator()(T a, T b) const {
    return CompareValues(a, b) < 0 ? a : b;
  }
};

struct Ceil {
  double operator()(double a) const { return std::ceil(a); }
};
struct Floor {
  double operator()(double a) const { return std::floor(a); }
};
struct Round {
  double operator()(double a) const { return std::rint(a); }
};
struct Truncate {
  double operator()(double a) const { return a >= 0 ? std::floor(a) : -std::floor(-a); }
};
struct Sign {
  double operator()(double a) const { return a > 0 ? 1.0 : a < 0 ? -1.0 : 0.0; }
};

struct Sqrt {
  double operator()(double a) const {
    if (a < 0)
      Throw(sqlstate::kInvalidArgumentForPower, "cannot take square root of a negative number");
    return std::sqrt(a);
  }
};
struct Cbrt {
  double operator()(double a) const { return std::cbrt(a); }
};

struct Exp {
  double operator()(double a) const {
    if (std::isnan(a)) return a;
    if (std::isinf(a)) return a > 0 ? a : 0;
    double result = std::exp(a);
    if (std::isinf(result)) Overflow();
    if (result == 0) Underflow();
    return result;
  }
};
void CheckLogArgument(double a) {
  if (a == 0) Throw(sqlstate::kInvalidArgumentForLog, "cannot take logarithm of zero");
  if (a < 0) Throw(sqlstate::kInvalidArgumentForLog, "cannot take logarithm of a negative number");
}
struct Ln {
  double operator()(double a) const {
    CheckLogArgument(a);
    return std::log(a);
  }
};
struct Log10 {
  double operator()(double a) const {
    CheckLogArgument(a);
    return std::log10(a);
  }
};

struct Power {
  double operator()(double a, double b) const {
    if (std::isnan(a)) return b == 0 ? 1.0 : a;
    if (std::isnan(b)) return a == 1 ? 1.0 : b;
    if (a == 0 && b < 0) {
      Throw(sqlstate::kInvalidArgumentForPower, "zero raised to a negative power is undefined");
    }
    if (a < 0 && std::floor(b) != b) {
      Throw(sqlstate::kInvalidArgumentForPower,
            "a negative number raised to a non-integer power yields a complex result");
    }
    double result = std::pow(a, b);
    if (std::isinf(a) || std::isinf(b)) return result;
    if (std::isinf(result)) Overflow();
    if (result == 0 && a != 0) Underflow();
    return result;
  }
};

// Functions of angles: finite arguments only.
template <double (*Fn)(double)>
struct Trigonometric {
  double operator()(double a) const {
    if (std::isnan(a)) return a;
    if (std::isinf(a)) InputOutOfRange();
    return Fn(a);
  }
};
double Cotangent(double a) {
  return 1.0 / std::tan(a);
}

template <double (*Fn)(double)>
struct OfUnitInterval {  // asin, acos, atanh
  double operator()(double a) const {
    if (std::isnan(a)) return a;
    if (a < -1 || a > 1) InputOutOfRange();
    return Fn(a);
  }
};
struct Acosh {
  double operator()(double a) const {
    if (a < 1) InputOutOfRange();
    return std::acosh(a);
  }
};
struct Atan {
  double operator()(double a) const { return std::atan(a); }
};
struct Atan2 {
  double operator()(double a, double b) const { return std::atan2(a, b); }
};
struct Asinh {
  double operator()(double a) const { return std::asinh(a); }
};
struct Sinh {
  double operator()(double a) const { return std::sinh(a); }
};
struct Cosh {
  double operator()(double a) const { return std::cosh(a); }
};
struct Tanh {
  double operator()(double a) const { return std::tanh(a); }
};
constexpr double kRadiansPerDegree = 0.0174532925199432957692;
struct Degrees {
  double operator()(double a) const { return Divide()(a, kRadiansPerDegree); }
};
struct Radians {
  double operator()(double a) const { return Times()(a, kRadiansPerDegree); }
};
struct Pi {
  double operator()() const { return 3.14159265358979323846; }
};

using D = double;
using F = float;

constexpr Kernel kKernels[] = {
    {204, "float4pl", true, MapFast<Plus, F, F, F>},
    {205, "float4mi", true, MapFast<Minus, F, F, F>},
    {202, "float4mul", true, MapFast<Times, F, F, F>},
    {203, "float4div", true, MapFast<Divide, F, F, F>},
    {218, "float8pl", true, MapFast<Plus, D, D, D>},
    {219, "float8mi", true, MapFast<Minus, D, D, D>},
    {216, "float8mul", true, MapFast<Times, D, D, D>},
    {217, "float8div", true, MapFast<Divide, D, D, D>},
    {281, "float48pl", true, MapFast<Mixed<Plus>, D, F, D>},
    {282, "float48mi", true, MapFast<Mixed<Minus>, D, F, D>},
    {279, "float48mul", true, MapFast<Mixed<Times>, D, F, D>},
    {280, "float48div", true, MapFast<Mixed<Divide>, D, F, D>},
    {285, "float84pl", true, MapFast<Mixed<Plus>, D, D, F>},
    {286, "float84mi", true, MapFast<Mixed<Minus>, D, D, F>},
    {283, "float84mul", true, MapFast<Mixed<Times>, D, D, F>},
    {284, "float84div", true, MapFast<Mixed<Divide>, D, D, F>},
    {206, "float4um", true, Map<Negate, F, F>},
    {220, "float8um", true, Map<Negate, D, D>},
    {1913, "float4up", true, Map<Same, F, F>},
    {1914, "float8up", true, Map<Same, D, D>},
    {207, "float4abs", true, Map<Absolute, F, F>},
    {1394, "abs", true, Map<Absolute, F, F>},
    {221, "float8abs", true, Map<Absolute, D, D>},
    {1395, "abs", true, Map<Absolute, D, D>},
    {209, "float4larger", true, MapFast<Larger, F, F, F>},
    {211, "float4smaller", true, MapFast<Smaller, F, F, F>},
    {223, "float8larger", true, MapFast<Larger, D, D, D>},
    {224, "float8smaller", true, MapFast<Smaller, D, D, D>},
    {2308, "ceil", true, Map<Ceil, D, D>},
    {2320, "ceiling", true, Map<Ceil, D, D>},
    {2309, "floor", true, Map<Floor, D, D>},
    {228, "dround", true, Map<Round, D, D>},
    {1342, "round", true, Map<Round, D, D>},
    {229, "dtrunc", true, Map<Truncate, D, D>},
    {1343, "trunc", true, Map<Truncate, D, D>},
    {2310, "sign", true, Map<Sign, D, D>},
    {230, "dsqrt", true, Map<Sqrt, D, D>},
    {1344, "sqrt", true, Map<Sqrt, D, D>},
    {231, "dcbrt", true, Map<Cbrt, D, D>},
    {1345, "cbrt", true, Map<Cbrt, D, D>},
    {232, "dpow", true, Map<Power, D, D, D>},
    {1346, "pow", true, Map<Power, D, D, D>},
    {1368, "power", true, Map<Power, D, D, D>},
    {233, "dexp", true, Map<Exp, D, D>},
    {1347, "exp", true, Map<Exp, D, D>},
    {234, "dlog1", true, Map<Ln, D, D>},
    {1341, "ln", true, Map<Ln, D, D>},
    {1339, "dlog10", true, Map<Log10, D, D>},
    {1340, "log", true, Map<Log10, D, D>},
    {1194, "log10", true, Map<Log10, D, D>},
    {1604, "sin", true, Map<Trigonometric<std::sin>, D, D>},
    {1605, "cos", true, Map<Trigonometric<std::cos>, D, D>},
    {1606, "tan", true, Map<Trigonometric<std::tan>, D, D>},
    {1607, "cot", true, Map<Trigonometric<Cotangent>, D, D>},
    {1600, "asin", true, Map<OfUnitInterval<std::asin>, D, D>},
    {1601, "acos", true, Map<OfUnitInterval<std::acos>, D, D>},
    {1602, "atan", true, Map<Atan, D, D>},
    {1603, "atan2", true, Map<Atan2, D, D, D>},
    {2462, "sinh", true, Map<Sinh, D, D>},
    {2463, "cosh", true, Map<Cosh, D, D>},
    {2464, "tanh", true, Map<Tanh, D, D>},
    {2465, "asinh", true, Map<Asinh, D, D>},
    {2466, "acosh", true, Map<Acosh, D, D>},
    {2467, "atanh", true, Map<OfUnitInterval<std::atanh>, D, D>},
    {1608, "degrees", true, Map<Degrees, D, D>},
    {1609, "radians", true, Map<Radians, D, D>},
    {1610, "pi", true, Map<Pi, D>},
};

}  // namespace

std::span<const Kernel> FloatKernels() {
  return kKernels;
}

}  // namespace sluice
