#include "types/float_sum.h"

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>

#include "common/error.h"

namespace sluice {
namespace {

using Uint128 = unsigned __int128;
using boost::multiprecision::cpp_int;

constexpr int kLimbBits = 32;
constexpr uint32_t kAdditionsMax = 1u << 29;  // each adds less than 2^32 to a limb
// Lowest and highest limbs that squares of doubles reach, and room for carries.
constexpr int kLimbLow = -70, kLimbHigh = 70;

int FloorDivide(int a, int b) {
  return a / b - (a % b < 0);
}

// Limbs low…high exist afterwards.
void Cover(FloatSum* sum, int low, int high, Arena* arena) {
  int first = sum->first_limb, last = first + sum->limb_count - 1;
  if (sum->limb_count == 0) first = low, last = high;
  if (low >= first && high <= last && sum->limb_count > 0) return;
  // A little more than asked for: neighbours are likely to come.
  if (low < first) first = low - 1;
  if (high > last) last = high + 1;
  if (sum->limb_count == 0) last = std::max(last, first + 3);
  auto limbs = arena->NewArray<int64_t>(static_cast<size_t>(last - first + 1));
  for (int i = 0; i < sum->limb_count; i++)
    limbs[static_cast<size_t>(sum->first_limb + i - first)] = sum->limbs[i];
  sum->limbs = limbs.data();
  sum->first_limb = static_cast<int16_t>(first);
  sum->limb_count = static_cast<int16_t>(last - first + 1);
}

// Moves what a limb holds beyond 32 bits up, so that there is room again.
void Carry(FloatSum* sum, Arena* arena) {
  Cover(sum, sum->first_limb, sum->first_limb + sum->limb_count + 1, arena);
  int64_t carry = 0;
  for (int i = 0; i + 1 < sum->limb_count; i++) {
    int64_t value = sum->limbs[i] + carry;
    carry = value >> kLimbBits;
    sum->limbs[i] = value - (carry << kLimbBits);
  }
  sum->limbs[sum->limb_count - 1] += carry;
  sum->additions = 0;
}

// ±magnitude·2^exponent.
inline void AddScaled(FloatSum* sum, Uint128 magnitude, int exponent, bool negative, Arena* arena) {
  if (sum->additions >= kAdditionsMax) Carry(sum, arena);
  sum->additions++;
  int limb = FloorDivide(exponent, kLimbBits), shift = exponent - limb * kLimbBits;
  uint32_t pieces[5];
  // 106 bits shifted by up to 31 need more than 128: the low limb is split off first.
  pieces[0] = static_cast<uint32_t>(static_cast<uint64_t>(magnitude) << shift);
  Uint128 rest = magnitude >> (kLimbBits - shift);
  int count = 1;
  for (; rest != 0; rest >>= kLimbBits) pieces[count++] = static_cast<uint32_t>(rest);
  Cover(sum, limb, limb + count - 1, arena);
  int64_t* to = sum->limbs + (limb - sum->first_limb);
  if (negative) {
    for (int i = 0; i < count; i++) to[i] -= pieces[i];
  } else {
    for (int i = 0; i < count; i++) to[i] += pieces[i];
  }
}

struct Unpacked {
  uint64_t magnitude;
  int exponent;
  bool negative;
};

inline Unpacked Unpack(double value) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  int biased = static_cast<int>(bits >> 52 & 0x7FF);
  uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (biased == 0) return {fraction, -1074, (bits >> 63) != 0};
  return {fraction | uint64_t{1} << 52, biased - 1075, (bits >> 63) != 0};
}

bool AddSpecial(FloatSum* sum, double value) {
  if (__builtin_expect(std::isfinite(value), 1)) return false;
  if (std::isnan(value))
    sum->seen_nan = 1;
  else if (value > 0)
    sum->seen_positive_infinity = 1;
  else
    sum->seen_negative_infinity = 1;
  return true;
}

// The sum's exact value is integer·2^exponent.
cpp_int Exact(const FloatSum& sum, int* exponent) {
  cpp_int total = 0;
  for (int i = sum.limb_count - 1; i >= 0; i--) total = (total << kLimbBits) + sum.limbs[i];
  *exponent = sum.first_limb * kLimbBits;
  return total;
}

// numerator·2^exponent / denominator, rounded once, half to even, to a format of `precision` bits
// whose smallest exponent is `least_exponent`; too large: ±infinity.
double RoundQuotient(cpp_int numerator, int exponent, const cpp_int& denominator, int precision,
                     int least_exponent, int largest_exponent) {
  if (numerator == 0) return 0;
  bool negative = numerator < 0;
  if (negative) numerator = -numerator;
  // Scale so that the quotient has a few bits more than needed; the remainder keeps what is below.
  int have = static_cast<int>(msb(numerator)) - static_cast<int>(msb(denominator));
  int up = precision + 3 - have;
  if (up > 0) numerator <<= up;
  cpp_int scaled_denominator = denominator;
  if (up < 0) scaled_denominator <<= -up;
  exponent -= up;
  cpp_int quotient, remainder;
  divide_qr(numerator, scaled_denominator, quotient, remainder);
  int drop = static_cast<int>(msb(quotient)) + 1 - precision;
  drop = std::max(drop, least_exponent - exponent);
  bool sticky = remainder != 0;
  if (drop > 0) {
    cpp_int kept = quotient >> drop;
    cpp_int cut = quotient - (kept << drop), half = cpp_int(1) << (drop - 1);
    bool up_one = cut > half || (cut == half && (sticky || (kept & 1) != 0));
    quotient = up_one ? cpp_int(kept + 1) : kept;
    exponent += drop;
  }
  if (quotient != 0 && static_cast<int>(msb(quotient)) + exponent > largest_exponent) {
    return negative ? -INFINITY : INFINITY;
  }
  double value = std::ldexp(static_cast<double>(static_cast<uint64_t>(quotient)), exponent);
  return negative ? -value : value;
}

double RoundToDouble(const cpp_int& numerator, int exponent, const cpp_int& denominator) {
  return RoundQuotient(numerator, exponent, denominator, 53, -1074, 1023);
}

bool Special(const FloatSum& sum, double* out) {
  bool positive = sum.seen_positive_infinity, negative = sum.seen_negative_infinity;
  if (sum.seen_nan || (positive && negative))
    *out = NAN;
  else if (positive || negative)
    *out = negative ? -INFINITY : INFINITY;
  else
    return false;
  return true;
}

double CheckOverflow(double value) {
  if (std::isinf(value)) Throw(sqlstate::kNumericValueOutOfRange, "value out of range: overflow");
  return value;
}

template <typename T>
void Put(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

[[noreturn]] void BadState() {
  Throw(sqlstate::kInvalidBinaryRepresentation, "invalid aggregate state");
}

template <typename T>
T Take(std::string_view* from) {
  if (from->size() < sizeof(T)) BadState();
  T value;
  std::memcpy(&value, from->data(), sizeof value);
  from->remove_prefix(sizeof value);
  return value;
}

}  // namespace

void FloatSum::Add(double value, Arena* arena) {
  count++;
  if (AddSpecial(this, value) || value == 0) return;
  Unpacked parts = Unpack(value);
  AddScaled(this, parts.magnitude, parts.exponent, parts.negative, arena);
}

void FloatSum::AddSquare(double value, Arena* arena) {
  count++;
  if (AddSpecial(this, value) || value == 0) return;
  Unpacked parts = Unpack(value);
  AddScaled(this, static_cast<Uint128>(parts.magnitude) * parts.magnitude, 2 * parts.exponent,
            false, arena);
}

void FloatSum::Merge(const FloatSum& other, Arena* arena) {
  count += other.count;
  seen_nan |= other.seen_nan;
  seen_positive_infinity |= other.seen_positive_infinity;
  seen_negative_infinity |= other.seen_negative_infinity;
  if (other.limb_count == 0) return;
  Cover(this, other.first_limb, other.first_limb + other.limb_count - 1, arena);
  if (additions + uint64_t{other.additions} + 1 > kAdditionsMax) Carry(this, arena);
  // Limbs of `other` hold at most 2^32 for each of its additions, and one more of a carry.
  additions += other.additions + 1;
  for (int i = 0; i < other.limb_count; i++)
    limbs[other.first_limb + i - first_limb] += other.limbs[i];
}

void FloatSum::Serialize(std::string* out) const {
  Put(count, out);
  Put(additions, out);
  Put(static_cast<uint8_t>(seen_nan | seen_positive_infinity << 1 | seen_negative_infinity << 2),
      out);
  Put(limb_count, out);
  Put(first_limb, out);
  out->append(reinterpret_cast<const char*>(limbs),
              sizeof(int64_t) * static_cast<size_t>(limb_count));
}

FloatSum FloatSum::Deserialize(std::string_view* from, Arena* arena) {
  FloatSum sum;
  sum.count = Take<int64_t>(from);
  sum.additions = Take<uint32_t>(from);
  uint8_t specials = Take<uint8_t>(from);
  sum.seen_nan = specials & 1;
  sum.seen_positive_infinity = specials >> 1 & 1;
  sum.seen_negative_infinity = specials >> 2 & 1;
  int limbs = Take<int16_t>(from), first = Take<int16_t>(from);
  if (limbs < 0 || first < 2 * kLimbLow || first + limbs > 4 * kLimbHigh) BadState();
  if (limbs > 0) {
    sum.limbs = arena->NewRaw<int64_t>(static_cast<size_t>(limbs));
    sum.first_limb = static_cast<int16_t>(first);
    sum.limb_count = static_cast<int16_t>(limbs);
    for (int i = 0; i < limbs; i++) sum.limbs[i] = Take<int64_t>(from);
  }
  return sum;
}

void FloatSum::Negate() {
  for (int i = 0; i < limb_count; i++) limbs[i] = -limbs[i];
}

double FloatSum::Sum() const {
  double special = 0;
  if (Special(*this, &special)) return special;
  int exponent = 0;
  cpp_int total = Exact(*this, &exponent);
  return CheckOverflow(RoundToDouble(total, exponent, 1));
}

float FloatSum::SumFloat4() const {
  double special = 0;
  if (Special(*this, &special)) return static_cast<float>(special);
  int exponent = 0;
  cpp_int total = Exact(*this, &exponent);
  return static_cast<float>(CheckOverflow(RoundQuotient(total, exponent, 1, 24, -149, 127)));
}

double FloatSum::Average() const {
  double special = 0;
  if (Special(*this, &special)) return special;
  return Sum() / static_cast<double>(count);
}

void FloatMoments::Add(double value, Arena* arena) {
  sum.Add(value, arena);
  squares.AddSquare(value, arena);
}

void FloatMoments::Merge(const FloatMoments& other, Arena* arena) {
  sum.Merge(other.sum, arena);
  squares.Merge(other.squares, arena);
}

void FloatMoments::Serialize(std::string* out) const {
  sum.Serialize(out);
  squares.Serialize(out);
}

FloatMoments FloatMoments::Deserialize(std::string_view* from, Arena* arena) {
  FloatMoments moments;
  moments.sum = FloatSum::Deserialize(from, arena);
  moments.squares = FloatSum::Deserialize(from, arena);
  return moments;
}

bool FloatMoments::Variance(bool sample, double* out) const {
  if (sum.count == 0 || (sample && sum.count == 1)) return false;
  double special = 0;
  if (Special(sum, &special)) {
    *out = NAN;
    return true;
  }
  // (N·Σx² − (Σx)²) / (N·(N or N−1)), exactly, then rounded once.
  int sum_exponent = 0, squares_exponent = 0;
  cpp_int total = Exact(sum, &sum_exponent), total_squares = Exact(squares, &squares_exponent);
  cpp_int n = sum.count, numerator = total * total;
  int exponent = std::min(2 * sum_exponent, squares_exponent);
  numerator = ((n * total_squares) << (squares_exponent - exponent)) -
              (numerator << (2 * sum_exponent - exponent));
  cpp_int denominator = n * (sample ? n - 1 : n);
  *out = CheckOverflow(RoundToDouble(numerator, exponent, denominator));
  return true;
}

bool FloatMoments::Stddev(bool sample, double* out) const {
  if (!Variance(sample, out)) return false;
  *out = std::sqrt(*out);
  return true;
}

}  // namespace sluice
