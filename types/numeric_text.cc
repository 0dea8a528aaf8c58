// numeric: wire format, text format, and conversions from and to machine numbers.
#include <charconv>
#include <cmath>

#include "common/error.h"
#include "types/numeric.h"

namespace sluice {
namespace {

[[noreturn]] void Overflow() {
  Throw(sqlstate::kNumericValueOutOfRange, "value overflows numeric format");
}

[[noreturn]] void BadSyntax(std::string_view text) {
  Throw(sqlstate::kInvalidTextRepresentation, "invalid input syntax for type numeric: \"{}\"",
        text);
}

[[noreturn]] void BadWire(const char* what) {
  Throw(sqlstate::kInvalidBinaryRepresentation, "invalid {} in external \"numeric\" value", what);
}

bool IsSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool TakeWord(std::string_view* text, std::string_view word) {
  if (text->size() < word.size()) return false;
  for (size_t i = 0; i < word.size(); i++) {
    if (((*text)[i] | 0x20) != word[i]) return false;
  }
  text->remove_prefix(word.size());
  return true;
}

// Decimal digits → base-10000 groups; `point` is the number of digits before the decimal point (may
// be negative or past the end).
void GroupDigits(std::string_view decimals, int64_t point, Numeric* value) {
  size_t first = decimals.find_first_not_of('0');
  if (first == std::string_view::npos) return;
  decimals.remove_prefix(first);
  point -= static_cast<int64_t>(first);
  // Groups are aligned to the point: weight of the first digit's group, and its place in it.
  int64_t weight =
      point > 0 ? (point - 1) / kNumericDigitsPerGroup : -((-point) / kNumericDigitsPerGroup) - 1;
  int64_t lead = (weight + 1) * kNumericDigitsPerGroup - point;  // zeros before the first digit
  if (weight > kNumericWeightMax) Overflow();
  if (weight < -(kNumericWeightMax + 1)) Overflow();
  value->weight = static_cast<int>(weight);
  int64_t groups = (lead + static_cast<int64_t>(decimals.size()) + kNumericDigitsPerGroup - 1) /
                   kNumericDigitsPerGroup;
  value->digits.Resize(static_cast<int>(groups));
  int64_t at = lead;
  for (char c : decimals) {
    static constexpr int kPlace[] = {1000, 100, 10, 1};
    int16_t& digit = value->digits[static_cast<int>(at / kNumericDigitsPerGroup)];
    digit = static_cast<int16_t>(digit + (c - '0') * kPlace[at % kNumericDigitsPerGroup]);
    at++;
  }
}

char* FormatGroup(int digit, char* to) {
  to[0] = static_cast<char>('0' + digit / 1000);
  to[1] = static_cast<char>('0' + digit / 100 % 10);
  to[2] = static_cast<char>('0' + digit / 10 % 10);
  to[3] = static_cast<char>('0' + digit % 10);
  return to + 4;
}

}  // namespace

Numeric NumericFromWire(std::string_view wire) {
  const char* at = wire.data();
  int count = LoadBig<int16_t>(at);
  Numeric value;
  value.sign = static_cast<NumericSign>(LoadBig<uint16_t>(at + 4));
  if (value.special()) return value;
  value.weight = LoadBig<int16_t>(at + 2);
  value.dscale = LoadBig<int16_t>(at + 6);
  value.digits.Resize(count);
  at += kNumericHeaderBytes;
  for (int i = 0; i < count; i++) value.digits[i] = LoadBig<int16_t>(at + 2 * i);
  if (count == 0 || value.digits[0] == 0 || value.digits[count - 1] == 0) value.Strip();
  return value;
}

void CheckNumericWire(std::string_view wire) {
  if (wire.size() < kNumericHeaderBytes) {
    Throw(sqlstate::kProtocolViolation, "insufficient data left in message");
  }
  const char* at = wire.data();
  size_t count = LoadBig<uint16_t>(at);
  if (wire.size() != kNumericHeaderBytes + 2 * count) {
    if (wire.size() < kNumericHeaderBytes + 2 * count) {
      Throw(sqlstate::kProtocolViolation, "insufficient data left in message");
    }
    Throw(sqlstate::kInvalidBinaryRepresentation, "incorrect binary data format");
  }
  if (count > 0x7FFF) BadWire("length");
  uint16_t sign = LoadBig<uint16_t>(at + 4);
  if (sign != 0 && sign != 0x4000 && sign != 0xC000 && sign != 0xD000 && sign != 0xF000) {
    BadWire("sign");
  }
  if (sign >= 0xC000 && count != 0) BadWire("digit");
  if (LoadBig<uint16_t>(at + 6) > kNumericScaleMax) BadWire("scale");
  bool bad = false;
  for (size_t i = 0; i < count; i++)
    bad |= LoadBig<uint16_t>(at + kNumericHeaderBytes + 2 * i) >= kNumericBase;
  if (bad) BadWire("digit");
}

namespace {

size_t WireSize(const Numeric& value) {
  if (value.special()) return kNumericHeaderBytes;
  if (value.weight > kNumericWeightMax || value.weight < -(kNumericWeightMax + 1) ||
      value.dscale > kNumericScaleMax) {
    Overflow();
  }
  return kNumericHeaderBytes + 2 * static_cast<size_t>(value.digits.size());
}

void StoreWire(const Numeric& value, char* to) {
  int count = value.special() ? 0 : value.digits.size();
  StoreBig<int16_t>(to, static_cast<int16_t>(count));
  StoreBig<int16_t>(to + 2, static_cast<int16_t>(value.special() ? 0 : value.weight));
  StoreBig<uint16_t>(to + 4, static_cast<uint16_t>(value.sign));
  // Postgres sends ±Infinity and NaN with these scales.
  StoreBig<int16_t>(
      to + 6, static_cast<int16_t>(value.special() ? (value.nan() ? 0 : 0x20) : value.dscale));
  for (int i = 0; i < count; i++)
    StoreBig<int16_t>(to + kNumericHeaderBytes + 2 * i, value.digits[i]);
}

}  // namespace

void AppendNumericWire(const Numeric& value, std::string* out) {
  size_t at = out->size();
  out->resize(at + WireSize(value));
  StoreWire(value, out->data() + at);
}

std::string_view NumericToWire(const Numeric& value, Arena* arena) {
  size_t size = WireSize(value);
  char* to = static_cast<char*>(arena->Allocate(size, 2));
  StoreWire(value, to);
  return {to, size};
}

Numeric NumericFromText(std::string_view whole) {
  std::string_view text = whole;
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  bool negative = false, sign_given = false;
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
    negative = text.front() == '-';
    sign_given = true;
    text.remove_prefix(1);
  }
  if (!text.empty() && !IsDigit(text.front()) && text.front() != '.') {
    if (!sign_given && TakeWord(&text, "nan") && text.empty()) return NumericNan();
    if ((TakeWord(&text, "infinity") || TakeWord(&text, "inf")) && text.empty()) {
      return NumericInfinity(negative);
    }
    BadSyntax(whole);
  }
  std::string decimals;
  decimals.reserve(text.size());
  int64_t point = -1;
  size_t i = 0;
  for (; i < text.size(); i++) {
    if (IsDigit(text[i]))
      decimals.push_back(text[i]);
    else if (text[i] == '.' && point < 0)
      point = static_cast<int64_t>(decimals.size());
    else
      break;
  }
  if (decimals.empty()) BadSyntax(whole);
  int64_t scale = point < 0 ? 0 : static_cast<int64_t>(decimals.size()) - point;
  if (point < 0) point = static_cast<int64_t>(decimals.size());
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::string_view exponent_text = text.substr(i + 1);
    bool negative_exponent = false;
    if (!exponent_text.empty() && (exponent_text[0] == '+' || exponent_text[0] == '-')) {
      negative_exponent = exponent_text[0] == '-';
      exponent_text.remove_prefix(1);
    }
    if (exponent_text.empty()) BadSyntax(whole);
    int64_t exponent = 0;
    for (char c : exponent_text) {
      if (!IsDigit(c)) BadSyntax(whole);
      exponent = std::min<int64_t>(exponent * 10 + (c - '0'), int64_t{1} << 40);
    }
    if (exponent >= INT32_MAX / 2) Overflow();
    if (negative_exponent) exponent = -exponent;
    point += exponent;
    scale = std::max<int64_t>(scale - exponent, 0);
    i = text.size();
  }
  if (i != text.size()) BadSyntax(whole);
  Numeric value;
  value.dscale = static_cast<int>(std::min<int64_t>(scale, kNumericScaleMax + 1));
  GroupDigits(decimals, point, &value);
  value.sign = negative ? NumericSign::kNegative : NumericSign::kPositive;
  value.Strip();
  return value;
}

void AppendNumericText(std::string_view wire, std::string* out) {
  const char* at = wire.data();
  uint16_t sign = LoadBig<uint16_t>(at + 4);
  if (sign >= 0xC000) {
    *out += sign == 0xC000 ? "NaN" : sign == 0xD000 ? "Infinity" : "-Infinity";
    return;
  }
  int count = LoadBig<int16_t>(at), weight = LoadBig<int16_t>(at + 2);
  int dscale = LoadBig<int16_t>(at + 6);
  // More digits than the scale shows: only bytes from elsewhere; Postgres cuts them on receipt.
  if ((count - weight - 1) * kNumericDigitsPerGroup - dscale >= kNumericDigitsPerGroup) {
    Numeric value = NumericFromWire(wire);
    numeric_internal::TruncateTo(&value, dscale);
    std::string cut;
    AppendNumericWire(value, &cut);
    return AppendNumericText(cut, out);
  }
  auto digit = [&](int i) {
    return i >= 0 && i < count ? LoadBig<int16_t>(at + kNumericHeaderBytes + 2 * i) : int16_t{0};
  };
  if (sign == 0x4000) out->push_back('-');
  size_t start = out->size();
  out->resize(start +
              static_cast<size_t>(std::max(weight + 1, 1) * 4 + (dscale > 0 ? 1 + dscale + 4 : 0)));
  char* to = out->data() + start;
  char* begin = to;
  if (weight < 0) {
    *to++ = '0';
  } else {
    for (int i = 0; i <= weight; i++) to = FormatGroup(digit(i), to);
    size_t zeros = 0, length = static_cast<size_t>(to - begin);
    while (zeros + 1 < length && begin[zeros] == '0') zeros++;
    std::memmove(begin, begin + zeros, length - zeros);
    to -= zeros;
  }
  if (dscale > 0) {
    *to++ = '.';
    char* end = to + dscale;
    for (int i = weight + 1; to < end; i++) to = FormatGroup(digit(i), to);
    to = end;
  }
  out->resize(static_cast<size_t>(to - out->data()));
}

void ApplyNumericTypmod(Numeric* value, int32_t typmod) {
  if (typmod < 4) return;
  int precision = ((typmod - 4) >> 16) & 0xFFFF;
  int scale = (((typmod - 4) & 0x7FF) ^ 1024) - 1024;
  if (value->special()) {
    if (value->nan()) return;
    throw QueryError(MakeError(sqlstate::kNumericValueOutOfRange, "numeric field overflow")
                         .Detail(fmt::format(
                             "A field with precision {}, scale {} cannot hold an infinite value.",
                             precision, scale)));
  }
  numeric_internal::RoundTo(value, scale);
  int digits_max = precision - scale;
  if (value->digits.empty()) return;
  int first = value->digits[0];
  int digits = value->weight * kNumericDigitsPerGroup + (first >= 1000  ? 4
                                                         : first >= 100 ? 3
                                                         : first >= 10  ? 2
                                                                        : 1);
  if (digits > digits_max) {
    throw QueryError(
        MakeError(sqlstate::kNumericValueOutOfRange, "numeric field overflow")
            .Detail(fmt::format(
                "A field with precision {}, scale {} must round to an absolute value less "
                "than {}{}.",
                precision, scale, digits_max != 0 ? "10^" : "", digits_max != 0 ? digits_max : 1)));
  }
}

Numeric NumericFromInt128(__int128 from) {
  Numeric value;
  value.sign = from < 0 ? NumericSign::kNegative : NumericSign::kPositive;
  unsigned __int128 rest =
      from < 0 ? -static_cast<unsigned __int128>(from) : static_cast<unsigned __int128>(from);
  int16_t groups[10];
  int count = 0;
  while (rest > UINT64_MAX) {
    groups[count++] = static_cast<int16_t>(rest % kNumericBase);
    rest /= kNumericBase;
  }
  for (uint64_t low = static_cast<uint64_t>(rest); low != 0; low /= kNumericBase) {
    groups[count++] = static_cast<int16_t>(low % kNumericBase);
  }
  value.digits.Resize(count);
  value.weight = count - 1;
  for (int i = 0; i < count; i++) value.digits[i] = groups[count - 1 - i];
  value.Strip();
  return value;
}

Numeric NumericFromInt(int64_t value) {
  return NumericFromInt128(value);
}

Numeric NumericNan() {
  Numeric value;
  value.sign = NumericSign::kNan;
  return value;
}

Numeric NumericInfinity(bool negative) {
  Numeric value;
  value.sign = negative ? NumericSign::kNegativeInfinity : NumericSign::kPositiveInfinity;
  return value;
}

Numeric NumericFromDouble(double from) {
  if (std::isnan(from)) return NumericNan();
  if (std::isinf(from)) return NumericInfinity(from < 0);
  char text[64];
  snprintf(text, sizeof text, "%.15g", from);
  return NumericFromText(text);
}

Numeric NumericFromFloat(float from) {
  if (std::isnan(from)) return NumericNan();
  if (std::isinf(from)) return NumericInfinity(from < 0);
  char text[64];
  snprintf(text, sizeof text, "%.6g", static_cast<double>(from));
  return NumericFromText(text);
}

bool NumericToInt64(const Numeric& from, int64_t* out) {
  Numeric value = from;
  numeric_internal::RoundTo(&value, 0);
  if (value.weight > 4) {
    *out = 0;
    return value.digits.empty();
  }
  __int128 whole = 0;
  for (int i = 0; !value.digits.empty() && i <= value.weight; i++) {
    whole = whole * kNumericBase + (i < value.digits.size() ? value.digits[i] : 0);
  }
  if (value.negative()) whole = -whole;
  if (whole > INT64_MAX || whole < INT64_MIN) return false;
  *out = static_cast<int64_t>(whole);
  return true;
}

double NumericToDouble(const Numeric& value) {
  if (value.nan()) return NAN;
  if (value.infinite()) return value.negative() ? -INFINITY : INFINITY;
  std::string wire, text;
  AppendNumericWire(value, &wire);
  AppendNumericText(wire, &text);
  double result = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  bool has_digits = !value.digits.empty();
  if (error != std::errc() || (result == 0 && has_digits) || std::isinf(result)) {
    // from_chars reports underflow as an error too; strtod, which Postgres uses, rounds into
    // subnormals.
    result = strtod(text.c_str(), nullptr);
    if (std::isinf(result) || (result == 0 && has_digits)) {
      Throw(sqlstate::kNumericValueOutOfRange, "\"{}\" is out of range for type double precision",
            text);
    }
  }
  return result;
}

// --- on the wire bytes ---

int CompareNumericWire(std::string_view a, std::string_view b) {
  uint64_t head_a, head_b;
  std::memcpy(&head_a, a.data(), 8);
  std::memcpy(&head_b, b.data(), 8);
  uint16_t sign_a = LoadBig<uint16_t>(a.data() + 4), sign_b = LoadBig<uint16_t>(b.data() + 4);
  int count_a = LoadBig<int16_t>(a.data()), count_b = LoadBig<int16_t>(b.data());
  const char* digits_a = a.data() + kNumericHeaderBytes;
  const char* digits_b = b.data() + kNumericHeaderBytes;
  bool plain = count_a > 0 && count_b > 0 && (digits_a[0] | digits_a[1]) != 0 &&
               (digits_b[0] | digits_b[1]) != 0 && sign_a == sign_b;
  if (!plain) return CompareNumeric(NumericFromWire(a), NumericFromWire(b));
  int weight_a = LoadBig<int16_t>(a.data() + 2), weight_b = LoadBig<int16_t>(b.data() + 2);
  int order;
  if (weight_a != weight_b) {
    order = weight_a < weight_b ? -1 : 1;
  } else {
    int common = std::min(count_a, count_b);
    order = std::memcmp(digits_a, digits_b, 2 * static_cast<size_t>(common));
    if (order == 0 && count_a != count_b) {
      const char* rest = count_a > count_b ? digits_a : digits_b;
      int longer = std::max(count_a, count_b);
      for (int i = 2 * common; i < 2 * longer && order == 0; i++) order = rest[i] != 0;
      if (count_b > count_a) order = -order;
    }
  }
  return sign_a == 0 ? order : -order;
}

}  // namespace sluice
