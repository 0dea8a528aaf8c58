// numeric: exact decimal numbers. In columns and on the wire a numeric is Postgres's binary format,
// big-endian int16: ndigits, weight, sign, dscale, then ndigits base-10000 digits (value = Σ
// digit[i]·10000^(weight-i)). Numeric below is the same, unpacked, for arithmetic. Results have the
// scale and rounding Postgres gives.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "common/arena.h"
#include "common/bytes.h"

namespace sluice {

inline constexpr int kNumericBase = 10000;
inline constexpr int kNumericDigitsPerGroup = 4;
inline constexpr int kNumericWeightMax = 0x7FFF;
inline constexpr int kNumericScaleMax = 0x3FFF;
inline constexpr int kNumericDisplayScaleMax = 1000;
inline constexpr int kNumericResultScaleMax = 2000;
inline constexpr int kNumericSignificantDigitsMin = 16;
inline constexpr size_t kNumericHeaderBytes = 8;

enum class NumericSign : uint16_t {
  kPositive = 0x0000,
  kNegative = 0x4000,
  kNan = 0xC000,
  kPositiveInfinity = 0xD000,
  kNegativeInfinity = 0xF000,
};

// Base-10000 digits, most significant first. Short ones need no heap.
class NumericDigits {
 public:
  NumericDigits() = default;
  NumericDigits(const NumericDigits& other) { Assign(other.data_, other.size_); }
  NumericDigits(NumericDigits&& other) noexcept { Steal(other); }
  NumericDigits& operator=(const NumericDigits& other) {
    if (this != &other) Assign(other.data_, other.size_);
    return *this;
  }
  NumericDigits& operator=(NumericDigits&& other) noexcept {
    if (this != &other) {
      if (data_ != inline_) delete[] data_;
      Steal(other);
    }
    return *this;
  }
  ~NumericDigits() {
    if (data_ != inline_) delete[] data_;
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int16_t* data() { return data_; }
  const int16_t* data() const { return data_; }
  int16_t& operator[](int i) { return data_[i]; }
  int16_t operator[](int i) const { return data_[i]; }
  // New digits at the end are zero.
  void Resize(int size) {
    Reserve(size);
    if (size > size_)
      std::memset(data_ + size_, 0, sizeof(int16_t) * static_cast<size_t>(size - size_));
    size_ = size;
  }
  void DropFront(int count) {
    std::memmove(data_, data_ + count, sizeof(int16_t) * static_cast<size_t>(size_ - count));
    size_ -= count;
  }

 private:
  static constexpr int kInline = 20;
  void Reserve(int capacity) {
    if (capacity <= capacity_) return;
    int16_t* bigger = new int16_t[static_cast<size_t>(capacity)];
    std::memcpy(bigger, data_, sizeof(int16_t) * static_cast<size_t>(size_));
    if (data_ != inline_) delete[] data_;
    data_ = bigger;
    capacity_ = capacity;
  }
  void Assign(const int16_t* from, int size) {
    size_ = 0;
    Reserve(size);
    std::memcpy(data_, from, sizeof(int16_t) * static_cast<size_t>(size));
    size_ = size;
  }
  void Steal(NumericDigits& other) {
    size_ = other.size_;
    if (other.data_ == other.inline_) {
      data_ = inline_;
      capacity_ = kInline;
      std::memcpy(inline_, other.inline_, sizeof(int16_t) * static_cast<size_t>(size_));
    } else {
      data_ = other.data_;
      capacity_ = other.capacity_;
      other.data_ = other.inline_;
      other.capacity_ = kInline;
    }
    other.size_ = 0;
  }

  int size_ = 0;
  int capacity_ = kInline;
  int16_t* data_ = inline_;
  int16_t inline_[kInline];
};

// Invariant between operations (Strip()): no leading or trailing zero digits; zero has no digits,
// weight 0 and a positive sign.
struct Numeric {
  NumericSign sign = NumericSign::kPositive;
  int weight = 0;
  int dscale = 0;
  NumericDigits digits;

  bool special() const { return static_cast<uint16_t>(sign) >= 0xC000; }
  bool nan() const { return sign == NumericSign::kNan; }
  bool infinite() const { return special() && !nan(); }
  bool zero() const { return !special() && digits.empty(); }
  bool negative() const {
    return sign == NumericSign::kNegative || sign == NumericSign::kNegativeInfinity;
  }
  bool integral() const { return !special() && digits.size() <= weight + 1; }
  void Strip();
};

// --- wire and text ---
Numeric NumericFromWire(std::string_view wire);  // trusts the bytes: DecodeBinary… has checked them
void AppendNumericWire(const Numeric& value, std::string* out);  // 22003 past the format's limits
std::string_view NumericToWire(const Numeric& value, Arena* arena);  // the same
Numeric NumericFromText(std::string_view text);                      // 22P02, 22003
void AppendNumericText(std::string_view wire, std::string* out);
// Checks the bytes as numeric_recv does; 22P03.
void CheckNumericWire(std::string_view wire);
// numeric(p,s): rounds to the scale, 22003 past the precision. -1: no change.
void ApplyNumericTypmod(Numeric* value, int32_t typmod);

Numeric NumericFromInt(int64_t value);
Numeric NumericFromInt128(__int128 value);
Numeric NumericFromDouble(double value);  // 15 digits, as Postgres's float8_numeric
Numeric NumericFromFloat(float value);    // 6 digits
Numeric NumericNan();
Numeric NumericInfinity(bool negative);
// Rounded half away from zero; false when out of range. REQUIRES: not special.
bool NumericToInt64(const Numeric& value, int64_t* out);
double NumericToDouble(const Numeric& value);  // 22003 when out of range

// --- order and hashing, straight on the wire bytes ---
int CompareNumeric(const Numeric& a, const Numeric& b);
int CompareNumericWire(std::string_view a, std::string_view b);
uint64_t HashNumericWire(std::string_view wire);  // alike for values equal across dscales

// --- arithmetic ---
Numeric NumericAdd(const Numeric& a, const Numeric& b);
Numeric NumericSubtract(const Numeric& a, const Numeric& b);
Numeric NumericMultiply(const Numeric& a, const Numeric& b);
Numeric NumericDivide(const Numeric& a, const Numeric& b);          // 22012
Numeric NumericDivideTruncate(const Numeric& a, const Numeric& b);  // div(a, b)
Numeric NumericModulo(const Numeric& a, const Numeric& b);          // 22012
Numeric NumericNegate(Numeric value);
Numeric NumericAbs(Numeric value);
int NumericSignum(const Numeric& value);         // -1, 0, 1; not for NaN
Numeric NumericRound(Numeric value, int scale);  // half away from zero; scale may be negative
Numeric NumericTruncate(Numeric value, int scale);
Numeric NumericCeil(const Numeric& value);
Numeric NumericFloor(const Numeric& value);
Numeric NumericSqrt(const Numeric& value);                    // 2201F
Numeric NumericSqrtToScale(const Numeric& value, int scale);  // REQUIRES: finite, not negative
Numeric NumericExp(const Numeric& value);
Numeric NumericLn(const Numeric& value);  // 2201E
Numeric NumericLog(const Numeric& base, const Numeric& value);
Numeric NumericPower(const Numeric& base, const Numeric& exponent);

// For numeric.cc's siblings: finite operands only.
namespace numeric_internal {
int CompareMagnitude(const Numeric& a, const Numeric& b);
Numeric Add(const Numeric& a, const Numeric& b, bool negate_b);
Numeric Multiply(const Numeric& a, const Numeric& b,
                 int result_scale);  // rounds if the exact has more
Numeric Divide(const Numeric& a, const Numeric& b, int result_scale, bool round);
int SelectDivideScale(const Numeric& a, const Numeric& b);
void RoundTo(Numeric* value, int scale);
void TruncateTo(Numeric* value, int scale);
}  // namespace numeric_internal

}  // namespace sluice
