#include "types/array.h"

#include <charconv>

#include "common/bytes.h"
#include "common/error.h"
#include "types/codec.h"
#include "types/column.h"
#include "types/value_checks.h"

namespace sluice {
namespace {

constexpr int64_t kArrayElementsMax = 134217727;

[[noreturn]] void BadWire() {
  Throw(sqlstate::kInvalidBinaryRepresentation, "incorrect binary data format");
}

bool IsSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

bool IsNullWord(std::string_view text) {
  return text.size() == 4 && (text[0] | 0x20) == 'n' && (text[1] | 0x20) == 'u' &&
         (text[2] | 0x20) == 'l' && (text[3] | 0x20) == 'l';
}

bool NeedsQuotes(std::string_view text) {
  if (text.empty() || IsNullWord(text)) return true;
  for (char c : text) {
    if (c == '"' || c == '\\' || c == '{' || c == '}' || c == ',' || IsSpace(c)) return true;
  }
  return false;
}

void AppendQuoted(std::string_view text, std::string* out) {
  out->push_back('"');
  for (char c : text) {
    if (c == '"' || c == '\\') out->push_back('\\');
    out->push_back(c);
  }
  out->push_back('"');
}

// {…} text → elements in storage order and the shape.
class ArrayParser {
 public:
  ArrayParser(Oid element_type, int32_t typmod, std::string_view text,
              const SessionSettings& settings, Arena* arena)
      : element_type_(element_type),
        typmod_(typmod),
        whole_(text),
        rest_(text),
        settings_(settings),
        arena_(arena) {}

  std::string Parse() {
    header_.element_type = element_type_;
    SkipSpace();
    ReadBounds();
    SkipSpace();
    if (rest_.empty() || rest_[0] != '{') {
      Malformed(bounds_given_ ? "Array contents must start with \"{\"."
                              : "Array value must start with \"{\" or dimension information.");
    }
    for (int32_t& length : header_.lengths) length = -1;
    ReadLevel(0);
    SkipSpace();
    if (!rest_.empty()) Malformed("Junk after closing right brace.");
    return Finish();
  }

 private:
  [[noreturn]] void Malformed(std::string detail) {
    throw QueryError(
        MakeError(sqlstate::kInvalidTextRepresentation, "malformed array literal: \"{}\"", whole_)
            .Detail(std::move(detail)));
  }
  [[noreturn]] void Unexpected() {
    if (rest_.empty()) Malformed("Unexpected end of input.");
    Malformed(fmt::format("Unexpected \"{}\" character.", rest_[0]));
  }
  void SkipSpace() {
    while (!rest_.empty() && IsSpace(rest_[0])) rest_.remove_prefix(1);
  }
  int32_t ReadBound() {
    int32_t value = 0;
    if (!rest_.empty() && rest_[0] == '+') rest_.remove_prefix(1);
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error == std::errc::result_out_of_range) {
      Throw(sqlstate::kNumericValueOutOfRange, "array bound is out of integer range");
    }
    if (error != std::errc())
      Malformed("\"[\" must introduce explicitly-specified array dimensions.");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  void ReadBounds() {
    while (!rest_.empty() && rest_[0] == '[') {
      if (given_dimensions_ == kArrayDimensionsMax) {
        Throw(sqlstate::kProgramLimitExceeded,
              "number of array dimensions ({}) exceeds the maximum allowed ({})",
              given_dimensions_ + 1, kArrayDimensionsMax);
      }
      bounds_given_ = true;
      rest_.remove_prefix(1);
      int32_t lower = 1, upper = ReadBound();
      if (!rest_.empty() && rest_[0] == ':') {
        rest_.remove_prefix(1);
        lower = upper;
        upper = ReadBound();
      }
      if (rest_.empty() || rest_[0] != ']') Malformed("Missing \"]\" after array dimensions.");
      rest_.remove_prefix(1);
      if (upper < lower) {
        Throw(MakeSqlState("2202E"), "upper bound cannot be less than lower bound");
      }
      header_.lower_bounds[given_dimensions_] = lower;
      given_lengths_[given_dimensions_++] = int64_t{upper} - lower + 1;
    }
    if (!bounds_given_) return;
    SkipSpace();
    if (rest_.empty() || rest_[0] != '=') Malformed("Missing \"=\" after array dimensions.");
    rest_.remove_prefix(1);
  }
  // REQUIRES: rest_ starts with '{'.
  void ReadLevel(int depth) {
    if (depth >= kArrayDimensionsMax) {
      Throw(sqlstate::kProgramLimitExceeded,
            "number of array dimensions ({}) exceeds the maximum allowed ({})", depth + 1,
            kArrayDimensionsMax);
    }
    if (leaf_depth_ >= 0 && depth > leaf_depth_) Unexpected();
    rest_.remove_prefix(1);
    int32_t count = 0;
    SkipSpace();
    if (!rest_.empty() && rest_[0] == '}') {
      if (depth > 0) Unexpected();  // only the whole array may be empty
      rest_.remove_prefix(1);
      if (depth == 0) leaf_depth_ = 0;
      CheckLength(depth, 0);
      return;
    }
    while (true) {
      SkipSpace();
      if (rest_.empty()) Unexpected();
      if (rest_[0] == '{') {
        if (leaf_depth_ >= 0 && depth >= leaf_depth_) Unexpected();
        ReadLevel(depth + 1);
      } else {
        if (leaf_depth_ < 0) leaf_depth_ = depth;
        if (depth != leaf_depth_) MismatchedShape();
        ReadElement();
      }
      count++;
      SkipSpace();
      if (rest_.empty()) Unexpected();
      if (rest_[0] == ',') {
        rest_.remove_prefix(1);
        continue;
      }
      if (rest_[0] != '}') Unexpected();
      rest_.remove_prefix(1);
      break;
    }
    CheckLength(depth, count);
  }
  [[noreturn]] void MismatchedShape() {
    Malformed("Multidimensional arrays must have sub-arrays with matching dimensions.");
  }
  void CheckLength(int depth, int32_t count) {
    int32_t& length = header_.lengths[depth];
    if (length >= 0 && length != count) MismatchedShape();
    length = count;
    header_.dimensions = std::max(header_.dimensions, depth + 1);
  }
  void ReadElement() {
    std::string text;
    bool quoted = false;
    size_t keep = 0;  // trailing blanks behind this are dropped
    while (true) {
      if (rest_.empty()) Unexpected();
      char c = rest_[0];
      if (c == '"') {
        if (quoted || !text.empty()) Unexpected();
        quoted = true;
        for (rest_.remove_prefix(1);; rest_.remove_prefix(1)) {
          if (rest_.empty()) Unexpected();
          if (rest_[0] == '"') break;
          if (rest_[0] == '\\') {
            rest_.remove_prefix(1);
            if (rest_.empty()) Unexpected();
          }
          text.push_back(rest_[0]);
        }
        rest_.remove_prefix(1);
        keep = text.size();
        continue;
      }
      if (c == ',' || c == '}') break;
      if (c == '{') Unexpected();
      if (quoted && !IsSpace(c)) Unexpected();
      bool escaped = c == '\\';
      if (escaped) {
        rest_.remove_prefix(1);
        if (rest_.empty()) Unexpected();
        c = rest_[0];
        escaped_ = true;
      }
      if (!quoted) text.push_back(c);
      rest_.remove_prefix(1);
      if (escaped || !IsSpace(c)) keep = text.size();
    }
    text.resize(keep);
    bool is_null = !quoted && !escaped_ && IsNullWord(text);
    if (!quoted && !escaped_ && text.empty()) Unexpected();
    escaped_ = false;
    has_null_ |= is_null;
    std::string_view value;
    if (!is_null)
      value = ParseText(element_type_, typmod_, arena_->CopyString(text), settings_, arena_);
    AppendArrayElement(value, is_null, &elements_);
  }
  std::string Finish() {
    if (header_.dimensions == 1 && header_.lengths[0] == 0) header_.dimensions = 0;
    if (bounds_given_) {
      if (given_dimensions_ != header_.dimensions) {
        Malformed("Specified array dimensions do not match array contents.");
      }
      for (int i = 0; i < given_dimensions_; i++) {
        if (given_lengths_[i] != header_.lengths[i]) {
          Malformed("Specified array dimensions do not match array contents.");
        }
      }
    } else {
      for (int32_t& bound : header_.lower_bounds) bound = 1;
    }
    std::string wire;
    AppendArrayHeader(header_, has_null_, &wire);
    return wire + elements_;
  }

  Oid element_type_;
  int32_t typmod_;
  std::string_view whole_, rest_;
  const SessionSettings& settings_;
  Arena* arena_;
  ArrayHeader header_;
  int64_t given_lengths_[kArrayDimensionsMax] = {};
  int given_dimensions_ = 0;
  int leaf_depth_ = -1;  // where elements are
  bool bounds_given_ = false, has_null_ = false, escaped_ = false;
  std::string elements_;
};

}  // namespace

int64_t ArrayHeader::Count() const {
  int64_t count = dimensions > 0;
  for (int i = 0; i < dimensions; i++) count *= lengths[i];
  return count;
}

ArrayReader::ArrayReader(std::string_view wire) {
  header_.dimensions = LoadBig<int32_t>(wire.data());
  header_.element_type = LoadBig<uint32_t>(wire.data() + 8);
  for (int i = 0; i < header_.dimensions; i++) {
    header_.lengths[i] = LoadBig<int32_t>(wire.data() + 12 + 8 * i);
    header_.lower_bounds[i] = LoadBig<int32_t>(wire.data() + 16 + 8 * i);
  }
  rest_ = wire.substr(12 + 8 * static_cast<size_t>(header_.dimensions));
}

bool ArrayReader::Next(std::string_view* element, bool* is_null) {
  if (rest_.empty()) return false;
  int32_t length = LoadBig<int32_t>(rest_.data());
  rest_.remove_prefix(4);
  *is_null = length < 0;
  if (length >= 0) {
    *element = rest_.substr(0, static_cast<size_t>(length));
    rest_.remove_prefix(static_cast<size_t>(length));
  }
  return true;
}

void CheckArrayWire(Oid element_type, std::string_view wire) {
  if (wire.size() < 12) BadWire();
  int32_t dimensions = LoadBig<int32_t>(wire.data());
  if (dimensions < 0 || dimensions > kArrayDimensionsMax) BadWire();
  // Types of the text family travel as one another (a domain or varchar column's elements, say).
  Oid found = LoadBig<uint32_t>(wire.data() + 8);
  if (found != element_type && found < kFirstUserOid && element_type < kFirstUserOid &&
      PhysicalOf(found) != PhysicalOf(element_type)) {
    BadWire();
  }
  size_t at = 12 + 8 * static_cast<size_t>(dimensions);
  if (wire.size() < at) BadWire();
  int64_t count = dimensions > 0;
  for (int32_t i = 0; i < dimensions; i++) {
    int32_t length = LoadBig<int32_t>(wire.data() + 12 + 8 * i);
    if (length < 0) BadWire();
    count *= length;
    if (count > kArrayElementsMax) BadWire();
  }
  for (int64_t i = 0; i < count; i++) {
    if (wire.size() - at < 4) BadWire();
    int32_t length = LoadBig<int32_t>(wire.data() + at);
    at += 4;
    if (length < 0) {
      if (length != -1) BadWire();
      continue;
    }
    if (wire.size() - at < static_cast<size_t>(length)) BadWire();
    CheckBinaryValue(element_type, wire.substr(at, static_cast<size_t>(length)));
    at += static_cast<size_t>(length);
  }
  if (at != wire.size()) BadWire();
}

void AppendArrayHeader(const ArrayHeader& header, bool has_null, std::string* out) {
  char bytes[12 + 8 * kArrayDimensionsMax];
  StoreBig<int32_t>(bytes, header.dimensions);
  StoreBig<int32_t>(bytes + 4, has_null);
  StoreBig<uint32_t>(bytes + 8, header.element_type);
  for (int i = 0; i < header.dimensions; i++) {
    StoreBig<int32_t>(bytes + 12 + 8 * i, header.lengths[i]);
    StoreBig<int32_t>(bytes + 16 + 8 * i, header.lower_bounds[i]);
  }
  out->append(bytes, 12 + 8 * static_cast<size_t>(header.dimensions));
}

void AppendArrayElement(std::string_view element, bool is_null, std::string* out) {
  char length[4];
  StoreBig<int32_t>(length, is_null ? -1 : static_cast<int32_t>(element.size()));
  out->append(length, 4);
  if (!is_null) out->append(element);
}

void AppendArrayText(std::string_view wire, const SessionSettings& settings, std::string* out) {
  ArrayReader reader(wire);
  const ArrayHeader& header = reader.header();
  if (header.Count() == 0) {
    *out += "{}";
    return;
  }
  bool bounds = false;
  for (int i = 0; i < header.dimensions; i++) bounds |= header.lower_bounds[i] != 1;
  if (bounds) {
    for (int i = 0; i < header.dimensions; i++) {
      *out += fmt::format("[{}:{}]", header.lower_bounds[i],
                          int64_t{header.lower_bounds[i]} + header.lengths[i] - 1);
    }
    out->push_back('=');
  }
  int32_t index[kArrayDimensionsMax] = {};
  int depth = 0;
  alignas(16) char slot[16];
  Column column{header.element_type, PhysicalOf(header.element_type), 0, nullptr, slot};
  std::string text;
  std::string_view element;
  bool is_null = false;
  while (reader.Next(&element, &is_null)) {
    for (; depth < header.dimensions; depth++) out->push_back('{');
    if (is_null) {
      *out += "NULL";
    } else {
      text.clear();
      DecodeBinaryValue(header.element_type, element, &column, 0);
      AppendText(column, 0, settings, &text);
      if (NeedsQuotes(text))
        AppendQuoted(text, out);
      else
        *out += text;
    }
    // Counts up like an odometer; closes the levels that are full.
    int level = header.dimensions - 1;
    while (level >= 0 && ++index[level] == header.lengths[level]) {
      index[level--] = 0;
      out->push_back('}');
      depth--;
    }
    if (level >= 0) out->push_back(',');
  }
}

std::string_view ParseArray(Oid element_type, int32_t typmod, std::string_view text,
                            const SessionSettings& settings, Arena* arena) {
  return arena->CopyString(ArrayParser(element_type, typmod, text, settings, arena).Parse());
}

}  // namespace sluice
