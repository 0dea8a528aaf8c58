#include "types/numeric_sum.h"

#include "common/bytes.h"
#include "common/error.h"
#include "types/numeric.h"
#include "types/numeric_small.h"

namespace sluice {
namespace {

using Int128 = __int128;
using Uint128 = unsigned __int128;

constexpr int64_t kUnitsPerOne =
    100'000'000;                // units are 10^-8: two base-10000 groups behind the point
constexpr int kSlotGroups = 4;  // a slot's 10^16 in base-10000 groups
constexpr int64_t kSlotBase = 10'000'000'000'000'000;

int FloorDivide(int a, int b) {
  return a / b - (a % b < 0);
}

constexpr int64_t kPower10000[] = {1, 10000, 100000000, 1000000000000};

}  // namespace

// value = Σ slots[i]·10^(16·(first + i)); slots are signed and not normalised.
struct NumericSum::Wide {
  int32_t first, count;
  Int128* slots;

  Int128& At(int slot) { return slots[slot - first]; }
};

namespace {

// `wide` with room for slots low…high.
NumericSum::Wide* Cover(NumericSum::Wide* wide, int low, int high, Arena* arena) {
  if (wide != nullptr && low >= wide->first && high < wide->first + wide->count) return wide;
  int first = low, last = high;
  if (wide == nullptr) {
    wide = arena->New<NumericSum::Wide>();
    wide->count = 0;
  } else {
    first = std::min(first, wide->first);
    last = std::max(last, wide->first + wide->count - 1);
  }
  int count = last - first + 1;
  auto slots = arena->NewArray<Int128>(static_cast<size_t>(count));
  for (int i = 0; i < wide->count; i++)
    slots[static_cast<size_t>(wide->first + i - first)] = wide->slots[i];
  *wide = {first, count, slots.data()};
  return wide;
}

// value·10000^exponent, |value| < 10^16, split over the slots it touches.
void AddGroups(NumericSum* sum, int64_t value, int exponent, Arena* arena) {
  int slot = FloorDivide(exponent, kSlotGroups);
  int shift = exponent - slot * kSlotGroups;
  sum->wide = Cover(sum->wide, slot, slot + (shift > 0), arena);
  Int128 shifted = static_cast<Int128>(value) * kPower10000[shift];
  sum->wide->At(slot) += shifted % kSlotBase;
  if (shift > 0) sum->wide->At(slot + 1) += shifted / kSlotBase;
}

// units·10^-8 into the slots.
void AddUnitsWide(NumericSum* sum, Int128 units, Arena* arena) {
  for (int exponent = -2; units != 0; exponent += kSlotGroups, units /= kSlotBase) {
    AddGroups(sum, static_cast<int64_t>(units % kSlotBase), exponent, arena);
  }
}

void AddUnits(NumericSum* sum, Int128 units, Arena* arena) {
  if (__builtin_add_overflow(sum->units, units, &sum->units)) {
    // The builtin wrapped around: take it back, and move both to the slots.
    sum->units =
        static_cast<Int128>(static_cast<Uint128>(sum->units) - static_cast<Uint128>(units));
    AddUnitsWide(sum, sum->units, arena);
    AddUnitsWide(sum, units, arena);
    sum->units = 0;
  }
}

void AddWide(NumericSum* sum, const Numeric& value, Arena* arena) {
  int size = value.digits.size();
  int lowest = value.weight - size + 1;
  sum->wide = Cover(sum->wide, FloorDivide(lowest, kSlotGroups) - 1,
                    FloorDivide(value.weight, kSlotGroups) + 1, arena);
  for (int i = 0; i < size; i += kSlotGroups) {
    int64_t groups = 0;
    int end = std::min(i + kSlotGroups, size);
    for (int j = i; j < end; j++) groups = groups * kNumericBase + value.digits[j];
    AddGroups(sum, value.negative() ? -groups : groups, value.weight - end + 1, arena);
  }
}

void AddSpecial(NumericSum* sum, NumericSign sign) {
  if (sign == NumericSign::kNan) sum->seen_nan = 1;
  if (sign == NumericSign::kPositiveInfinity) sum->seen_positive_infinity = 1;
  if (sign == NumericSign::kNegativeInfinity) sum->seen_negative_infinity = 1;
}

// The digits as units of 10^-8, if the value has no finer ones and is below 10^16.
inline bool UnitsOf(std::string_view wire, Int128* units, uint16_t* sign, int32_t* dscale) {
  // One load of the header: ndigits, weight, sign, dscale.
  uint64_t head = LoadBig<uint64_t>(wire.data());
  int count = static_cast<int16_t>(head >> 48), weight = static_cast<int16_t>(head >> 32);
  *sign = static_cast<uint16_t>(head >> 16);
  *dscale = static_cast<int32_t>(head & 0xFFFF);
  int lowest = weight - count + 1;
  if (weight > 3 || lowest < -2 || *sign >= 0xC000) return false;
  const char* at = wire.data() + kNumericHeaderBytes;
  uint64_t front = 0;  // at most six groups: four before the point, two behind it
  int first = std::min(count, 4);
  for (int i = 0; i < first; i++) front = front * kNumericBase + LoadBig<uint16_t>(at + 2 * i);
  Int128 value = static_cast<Int128>(front);
  for (int i = 4; i < count; i++) value = value * kNumericBase + LoadBig<uint16_t>(at + 2 * i);
  int up = lowest + 2;  // groups of zeros that follow, down to 10^-8
  if (up >= 4) {
    value *= kPower10000[3] * kNumericBase;
    up -= 4;
  }
  value *= kPower10000[up];
  *units = *sign == 0x4000 ? -value : value;
  return true;
}

// The exact sum of what is finite.
Numeric FiniteSum(const NumericSum& sum) {
  Numeric total = NumericFromInt128(sum.units);
  if (!total.digits.empty()) total.weight -= 2;
  if (sum.wide != nullptr) {
    for (int i = 0; i < sum.wide->count; i++) {
      Numeric part = NumericFromInt128(sum.wide->slots[i]);
      if (part.digits.empty()) continue;
      part.weight += (sum.wide->first + i) * kSlotGroups;
      total = numeric_internal::Add(total, part, false);
    }
  }
  total.dscale = sum.dscale;
  return total;
}

// NaN, or the infinity, that rules the sum.
bool SpecialSum(const NumericSum& sum, Numeric* out) {
  bool positive = sum.seen_positive_infinity, negative = sum.seen_negative_infinity;
  if (sum.seen_nan || (positive && negative))
    *out = NumericNan();
  else if (positive || negative)
    *out = NumericInfinity(negative);
  else
    return false;
  return true;
}

Numeric Total(const NumericSum& sum) {
  Numeric total;
  return SpecialSum(sum, &total) ? total : FiniteSum(sum);
}

template <typename T>
void Put(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T Take(std::string_view* from) {
  if (from->size() < sizeof(T)) {
    Throw(sqlstate::kInvalidBinaryRepresentation, "invalid aggregate state");
  }
  T value;
  std::memcpy(&value, from->data(), sizeof value);
  from->remove_prefix(sizeof value);
  return value;
}

}  // namespace

void NumericSum::Add(std::string_view wire, Arena* arena) {
  Int128 value = 0;
  uint16_t sign = 0;
  int32_t scale = 0;
  count++;
  if (__builtin_expect(UnitsOf(wire, &value, &sign, &scale), 1)) {
    if (scale > dscale) dscale = scale;
    AddUnits(this, value, arena);
    return;
  }
  if (sign >= 0xC000) return AddSpecial(this, static_cast<NumericSign>(sign));
  if (scale > dscale) dscale = scale;
  AddWide(this, NumericFromWire(wire), arena);
}

void NumericSum::AddInt(int64_t value, Arena* arena) {
  count++;
  AddUnits(this, static_cast<Int128>(value) * kUnitsPerOne, arena);
}

void NumericSum::AddSquare(std::string_view wire, Arena* arena) {
  count++;
  SmallNumeric small;
  if (LoadSmall(wire, &small) && small.exponent >= -1 && small.weight <= 2) {
    // Below 10^12 with up to four decimals: the square has at most eight.
    dscale = std::max(dscale, 2 * small.dscale);
    int up = 2 * small.exponent + 2;
    Int128 square = static_cast<Int128>(small.mantissa) * small.mantissa;
    for (; up >= 3; up -= 3) square *= kPower10000[3];
    return AddUnits(this, square * kPower10000[up], arena);
  }
  Numeric value = NumericFromWire(wire);
  dscale = std::max(dscale, 2 * value.dscale);
  AddWide(this, numeric_internal::Multiply(value, value, 2 * value.dscale), arena);
}

void NumericSum::AddSquareOfInt(int64_t value, Arena* arena) {
  count++;
  Int128 square = static_cast<Int128>(value) * value;
  if (square < (Int128{1} << 96)) return AddUnits(this, square * kUnitsPerOne, arena);
  for (int exponent = 0; square != 0; exponent += kSlotGroups, square /= kSlotBase) {
    AddGroups(this, static_cast<int64_t>(square % kSlotBase), exponent, arena);
  }
}

void NumericSum::Merge(const NumericSum& other, Arena* arena) {
  count += other.count;
  dscale = std::max(dscale, other.dscale);
  seen_nan |= other.seen_nan;
  seen_positive_infinity |= other.seen_positive_infinity;
  seen_negative_infinity |= other.seen_negative_infinity;
  AddUnits(this, other.units, arena);
  if (other.wide == nullptr) return;
  wide = Cover(wide, other.wide->first, other.wide->first + other.wide->count - 1, arena);
  for (int i = 0; i < other.wide->count; i++)
    wide->At(other.wide->first + i) += other.wide->slots[i];
}

void NumericSum::Serialize(std::string* out) const {
  Put(units, out);
  Put(count, out);
  Put(dscale, out);
  Put(static_cast<uint8_t>(seen_nan | seen_positive_infinity << 1 | seen_negative_infinity << 2),
      out);
  Put(wide == nullptr ? int32_t{0} : wide->count, out);
  if (wide == nullptr) return;
  Put(wide->first, out);
  out->append(reinterpret_cast<const char*>(wide->slots),
              sizeof(Int128) * static_cast<size_t>(wide->count));
}

NumericSum NumericSum::Deserialize(std::string_view* from, Arena* arena) {
  NumericSum sum;
  sum.units = Take<Int128>(from);
  sum.count = Take<int64_t>(from);
  sum.dscale = Take<int32_t>(from);
  if (sum.dscale < 0 || sum.dscale > 2 * kNumericScaleMax) {
    Throw(sqlstate::kInvalidBinaryRepresentation, "invalid aggregate state");
  }
  uint8_t specials = Take<uint8_t>(from);
  sum.seen_nan = specials & 1;
  sum.seen_positive_infinity = specials >> 1 & 1;
  sum.seen_negative_infinity = specials >> 2 & 1;
  int32_t slots = Take<int32_t>(from);
  if (slots != 0) {
    int32_t first = Take<int32_t>(from);
    // More slots than any numeric's digits: damaged.
    if (slots < 0 || slots > 20000 || first < -20000 || first > 20000) {
      Throw(sqlstate::kInvalidBinaryRepresentation, "invalid aggregate state");
    }
    sum.wide = Cover(nullptr, first, first + slots - 1, arena);
    for (int i = 0; i < slots; i++) sum.wide->slots[i] = Take<Int128>(from);
  }
  return sum;
}

void NumericSum::Negate() {
  units = -units;
  if (wide == nullptr) return;
  for (int i = 0; i < wide->count; i++) wide->slots[i] = -wide->slots[i];
}

std::string_view NumericSum::Sum(Arena* arena) const {
  return NumericToWire(Total(*this), arena);
}

std::string_view NumericSum::Average(Arena* arena) const {
  return NumericToWire(NumericDivide(Total(*this), NumericFromInt(count)), arena);
}

void NumericMoments::Add(std::string_view wire, Arena* arena) {
  uint16_t sign = LoadBig<uint16_t>(wire.data() + 4);
  sum.Add(wire, arena);
  if (sign < 0xC000) squares.AddSquare(wire, arena);
}

void NumericMoments::AddInt(int64_t value, Arena* arena) {
  sum.AddInt(value, arena);
  squares.AddSquareOfInt(value, arena);
}

void NumericMoments::Merge(const NumericMoments& other, Arena* arena) {
  sum.Merge(other.sum, arena);
  squares.Merge(other.squares, arena);
}

void NumericMoments::Serialize(std::string* out) const {
  sum.Serialize(out);
  squares.Serialize(out);
}

NumericMoments NumericMoments::Deserialize(std::string_view* from, Arena* arena) {
  NumericMoments moments;
  moments.sum = NumericSum::Deserialize(from, arena);
  moments.squares = NumericSum::Deserialize(from, arena);
  return moments;
}

namespace {

// (N·Σx² − (Σx)²) / (N·N or N·(N−1)), never below zero. False = NULL.
bool VarianceOf(const NumericMoments& moments, bool sample, Numeric* out) {
  int64_t count = moments.sum.count;
  if (count == 0 || (sample && count == 1)) return false;
  Numeric special;
  if (SpecialSum(moments.sum, &special)) {
    *out = NumericNan();
    return true;
  }
  using namespace numeric_internal;
  Numeric n = NumericFromInt(count), sum = FiniteSum(moments.sum),
          squares = FiniteSum(moments.squares);
  int scale = 2 * sum.dscale;
  Numeric numerator = Add(Multiply(n, squares, scale), Multiply(sum, sum, scale), true);
  if (numerator.zero() || numerator.negative()) {
    *out = Numeric();
    return true;
  }
  Numeric divisor = Multiply(n, NumericFromInt(sample ? count - 1 : count), 0);
  *out = Divide(numerator, divisor, SelectDivideScale(numerator, divisor), true);
  return true;
}

}  // namespace

bool NumericMoments::Variance(bool sample, Arena* arena, std::string_view* wire) const {
  Numeric variance;
  if (!VarianceOf(*this, sample, &variance)) return false;
  *wire = NumericToWire(variance, arena);
  return true;
}

bool NumericMoments::Stddev(bool sample, Arena* arena, std::string_view* wire) const {
  Numeric variance;
  if (!VarianceOf(*this, sample, &variance)) return false;
  // Postgres takes the root to the variance's own scale.
  if (!variance.special() && !variance.zero())
    variance = NumericSqrtToScale(variance, variance.dscale);
  *wire = NumericToWire(variance, arena);
  return true;
}

}  // namespace sluice
