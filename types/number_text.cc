#include "types/number_text.h"

#include <charconv>
#include <cmath>

#include "common/error.h"

namespace sluice {
namespace {

bool IsSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

[[noreturn]] void BadSyntax(const char* type_name, std::string_view text) {
  Throw(sqlstate::kInvalidTextRepresentation, "invalid input syntax for type {}: \"{}\"", type_name,
        text);
}

// `digits` shortest digits and their decimal exponent, laid out as Postgres does: plain notation
// for exponents from -4 up to `plain_end`, otherwise d.ddde+XX.
void AppendShortest(std::string_view scientific, int plain_end, std::string* out) {
  if (scientific[0] == '-') {
    out->push_back('-');
    scientific.remove_prefix(1);
  }
  size_t e = scientific.find('e');
  int exponent = 0;
  const char* from = scientific.data() + e + 1;
  if (*from == '+') from++;
  std::from_chars(from, scientific.data() + scientific.size(), exponent);
  char digits[32] = {};
  size_t count = 0;
  for (char c : scientific.substr(0, e)) {
    if (c != '.') digits[count++] = c;
  }
  if (exponent < -4 || exponent >= plain_end) {
    out->push_back(digits[0]);
    if (count > 1) {
      out->push_back('.');
      out->append(digits + 1, count - 1);
    }
    out->push_back('e');
    out->push_back(exponent < 0 ? '-' : '+');
    exponent = std::abs(exponent);
    if (exponent < 10) out->push_back('0');
    AppendInteger(exponent, out);
    return;
  }
  if (exponent < 0) {
    *out += "0.";
    out->append(static_cast<size_t>(-exponent - 1), '0');
    out->append(digits, count);
    return;
  }
  size_t whole = static_cast<size_t>(exponent) + 1;
  if (count <= whole) {
    out->append(digits, count);
    out->append(whole - count, '0');
  } else {
    out->append(digits, whole);
    out->push_back('.');
    out->append(digits + whole, count - whole);
  }
}

// Whether the shortest decimal is halfway to a neighbour of the value: it reads back as the value
// only by rounding to even, and Postgres wants one digit more then.
template <typename T>
bool LiesOnBound(T value, const std::string& decimal) {
  // Halfway is a dyadic number of few bits: only then is the decimal exact in a long double.
  uint64_t digits = 0;
  int exponent = 0;
  size_t e = decimal.find('e'), point = decimal.find('.');
  for (char c : decimal.substr(0, e)) {
    if (c >= '0' && c <= '9') digits = digits * 10 + static_cast<uint64_t>(c - '0');
  }
  exponent = atoi(decimal.c_str() + e + 1) -
             (point == std::string::npos ? 0 : static_cast<int>(e - point - 1));
  for (; digits % 10 == 0; digits /= 10) exponent++;
  for (; exponent < 0; exponent++) {
    if (digits % 5 != 0) return false;
    digits /= 5;
  }
  for (; exponent > 0; exponent--) {
    if (digits > UINT64_MAX / 5) return false;
    digits *= 5;
  }
  long double read = strtold(decimal.c_str(), nullptr), exact = value;
  if (read == exact) return false;
  T next = std::nextafter(value, read > exact ? std::numeric_limits<T>::infinity()
                                              : -std::numeric_limits<T>::infinity());
  if (std::isinf(next)) return false;
  return read == exact + (static_cast<long double>(next) - exact) / 2;
}

// A bound is M * 2^k with an odd M of one bit more than T has. Below 2^bits it has a fraction, and
// as many digits as M at least.
template <typename T>
bool MayLieOnBound(T value, std::string_view scientific) {
  constexpr int kBits = std::numeric_limits<T>::digits;
  if (std::abs(value) >= std::ldexp(T{1}, kBits)) return true;
  size_t digits = 0;
  for (char c : scientific.substr(0, scientific.find('e'))) digits += c >= '0' && c <= '9';
  return digits > std::numeric_limits<T>::digits10;
}

template <typename T>
void AppendFloating(T value, int extra_float_digits, int decimal_digits, int plain_end,
                    std::string* out) {
  if (std::isnan(value)) {
    *out += "NaN";
    return;
  }
  if (std::isinf(value)) {
    *out += value > 0 ? "Infinity" : "-Infinity";
    return;
  }
  char text[64];
  if (extra_float_digits > 0) {
    auto [end, error] =
        std::to_chars(text, text + sizeof text, value, std::chars_format::scientific);
    if (value == 0) {
      *out += std::signbit(value) ? "-0" : "0";
      return;
    }
    size_t size = static_cast<size_t>(end - text);
    while (MayLieOnBound(value, {text, size}) && LiesOnBound(value, std::string(text, size))) {
      auto digits = std::count_if(text, std::find(text, end, 'e'),
                                  [](char c) { return c >= '0' && c <= '9'; });
      end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific,
                          static_cast<int>(digits))
                .ptr;
      size = static_cast<size_t>(end - text);
    }
    return AppendShortest({text, size}, plain_end, out);
  }
  int digits = std::max(decimal_digits + extra_float_digits, 1);
  snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(value));
  *out += text;
}

// strtod and strtof want a terminated string.
template <typename T>
T ParseFloating(std::string_view whole, const char* type_name, T (*convert)(const char*, char**)) {
  std::string text(Trim(whole));
  if (text.empty() || text.find('\0') != std::string::npos) BadSyntax(type_name, whole);
  char* end = nullptr;
  errno = 0;
  T value = convert(text.c_str(), &end);
  if (end != text.c_str() + text.size()) BadSyntax(type_name, whole);
  if (errno == ERANGE && (value == 0 || std::isinf(value))) {
    Throw(sqlstate::kNumericValueOutOfRange, "\"{}\" is out of range for type {}", text, type_name);
  }
  return value;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') return (c | 0x20) - 'a' + 10;
  return -1;
}

constexpr char kHex[] = "0123456789abcdef";

}  // namespace

int64_t ParseInteger(std::string_view whole, int64_t least, int64_t most, const char* type_name) {
  std::string_view text = Trim(whole);
  if (!text.empty() && text[0] == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text[0] == '-') BadSyntax(type_name, whole);
  }
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    BadSyntax(type_name, whole);
  if (error == std::errc::result_out_of_range || value < least || value > most) {
    Throw(sqlstate::kNumericValueOutOfRange, "value \"{}\" is out of range for type {}", whole,
          type_name);
  }
  return value;
}

uint32_t ParseOid(std::string_view text, const char* type_name) {
  // Negative numbers wrap around, as they always did.
  int64_t value = ParseInteger(text, INT32_MIN, UINT32_MAX, type_name);
  return static_cast<uint32_t>(value);
}

double ParseDouble(std::string_view text) {
  return ParseFloating<double>(text, "double precision", strtod);
}
float ParseFloat(std::string_view text) {
  return ParseFloating<float>(text, "real", strtof);
}

bool ParseBool(std::string_view whole) {
  std::string text;
  for (char c : Trim(whole)) text.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c);
  auto prefix_of = [&](std::string_view word, size_t least) {
    return text.size() >= least && word.substr(0, text.size()) == text;
  };
  if (prefix_of("true", 1) || prefix_of("yes", 1) || text == "on" || text == "1") return true;
  if (prefix_of("false", 1) || prefix_of("no", 1) || prefix_of("off", 2) || text == "0")
    return false;
  BadSyntax("boolean", whole);
}

Uuid ParseUuid(std::string_view whole) {
  std::string_view text = whole;
  bool braces = !text.empty() && text[0] == '{';
  if (braces) text.remove_prefix(1);
  Uuid uuid{};
  for (size_t i = 0; i < 16; i++) {
    if (text.size() < 2) BadSyntax("uuid", whole);
    int high = HexDigit(text[0]), low = HexDigit(text[1]);
    if (high < 0 || low < 0) BadSyntax("uuid", whole);
    uuid.bytes[i] = static_cast<uint8_t>(high * 16 + low);
    text.remove_prefix(2);
    if (i % 2 == 1 && i < 15 && !text.empty() && text[0] == '-') text.remove_prefix(1);
  }
  if (braces) {
    if (text.empty() || text[0] != '}') BadSyntax("uuid", whole);
    text.remove_prefix(1);
  }
  if (!text.empty()) BadSyntax("uuid", whole);
  return uuid;
}

char ParseChar(std::string_view text) {
  auto octal = [&](size_t i, char most) { return text[i] >= '0' && text[i] <= most; };
  if (text.size() == 4 && text[0] == '\\' && octal(1, '3') && octal(2, '7') && octal(3, '7')) {
    return static_cast<char>((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
  }
  return text.empty() ? '\0' : text[0];
}

void AppendCharText(char c, std::string* out) {
  if (static_cast<uint8_t>(c) >= 0x80)
    *out += fmt::format("\\{:03o}", static_cast<uint8_t>(c));
  else if (c != 0)
    out->push_back(c);
}

std::string ParseBytea(std::string_view text) {
  std::string bytes;
  if (text.size() >= 2 && text[0] == '\\' && text[1] == 'x') {
    text.remove_prefix(2);
    while (!text.empty()) {
      if (IsSpace(text[0]) && text[0] != '\v' && text[0] != '\f') {
        text.remove_prefix(1);
        continue;
      }
      int high = HexDigit(text[0]);
      if (high < 0) {
        Throw(sqlstate::kInvalidParameterValue, "invalid hexadecimal digit: \"{}\"", text[0]);
      }
      if (text.size() < 2) {
        Throw(sqlstate::kInvalidParameterValue, "invalid hexadecimal data: odd number of digits");
      }
      int low = HexDigit(text[1]);
      if (low < 0)
        Throw(sqlstate::kInvalidParameterValue, "invalid hexadecimal digit: \"{}\"", text[1]);
      bytes.push_back(static_cast<char>(high * 16 + low));
      text.remove_prefix(2);
    }
    return bytes;
  }
  auto octal = [](char c, char most) { return c >= '0' && c <= most; };
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != '\\') {
      bytes.push_back(text[i]);
    } else if (i + 1 < text.size() && text[i + 1] == '\\') {
      bytes.push_back('\\');
      i++;
    } else if (i + 3 < text.size() && octal(text[i + 1], '3') && octal(text[i + 2], '7') &&
               octal(text[i + 3], '7')) {
      bytes.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                        (text[i + 3] - '0')));
      i += 3;
    } else {
      Throw(sqlstate::kInvalidTextRepresentation, "invalid input syntax for type bytea");
    }
  }
  return bytes;
}

void AppendInteger(int64_t value, std::string* out) {
  char text[24];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  out->append(text, static_cast<size_t>(end - text));
}

void AppendDouble(double value, int extra_float_digits, std::string* out) {
  AppendFloating(value, extra_float_digits, 15, 15, out);
}
void AppendFloat(float value, int extra_float_digits, std::string* out) {
  AppendFloating(value, extra_float_digits, 6, 6, out);
}

void AppendUuid(const Uuid& uuid, std::string* out) {
  for (int i = 0; i < 16; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out->push_back('-');
    out->push_back(kHex[uuid.bytes[i] >> 4]);
    out->push_back(kHex[uuid.bytes[i] & 15]);
  }
}

void AppendBytea(std::string_view bytes, bool escape, std::string* out) {
  if (!escape) {
    *out += "\\x";
    for (char c : bytes) {
      out->push_back(kHex[static_cast<uint8_t>(c) >> 4]);
      out->push_back(kHex[c & 15]);
    }
    return;
  }
  for (char c : bytes) {
    uint8_t byte = static_cast<uint8_t>(c);
    if (c == '\\')
      *out += "\\\\";
    else if (byte < 0x20 || byte > 0x7e)
      *out += fmt::format("\\{:03o}", byte);
    else
      out->push_back(c);
  }
}

}  // namespace sluice
