#include "types/json.h"

#include "common/error.h"
#include "types/numeric.h"

namespace sluice {
namespace {

constexpr int kDepthMax = 6000;  // what a process's stack holds with room to spare

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xC0 | code >> 6));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | code >> 12));
    out->push_back(static_cast<char>(0x80 | (code >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | code >> 18));
    out->push_back(static_cast<char>(0x80 | (code >> 12 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

// Reads one JSON text. `normal` nullptr: only checks.
class JsonReader {
 public:
  JsonReader(std::string_view text, bool normalize) : text_(text), normalize_(normalize) {}

  std::string Read() {
    std::string normal = Value(0);
    SkipSpace();
    if (at_ != text_.size()) Fail("Expected end of input, but found \"{}\".");
    return normal;
  }
  // REQUIRES: a quote at the front.
  std::string ReadString() { return String(); }

 private:
  void SkipSpace() {
    while (at_ < text_.size() && IsSpace(text_[at_])) at_++;
  }
  // The token at the current place, for messages.
  std::string_view Token() const {
    size_t end = at_;
    auto word = [](char c) {
      return (static_cast<uint8_t>(c) & 0x80) || IsDigit(c) ||
             ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
    };
    while (end < text_.size() && word(text_[end])) end++;
    if (end == at_) end++;
    return text_.substr(at_, end - at_);
  }
  [[noreturn]] void Raise(std::string detail, SqlState state = sqlstate::kInvalidTextRepresentation,
                          const char* message = "invalid input syntax for type json") const {
    size_t line = 1, start = 0;
    for (size_t i = 0; i < std::min(at_, text_.size()); i++) {
      if (text_[i] == '\n') line++, start = i + 1;
    }
    size_t end = std::min(text_.size(), at_ + Token().size() * (at_ < text_.size()));
    bool cut = end < text_.size() && text_.find('\n', end) != end;
    Error error = MakeError(state, "{}", message).Detail(std::move(detail));
    error.context =
        fmt::format("JSON data, line {}: {}{}", line,
                    text_.substr(start, end > start ? end - start : 0), cut ? "..." : "");
    throw QueryError(std::move(error));
  }
  [[noreturn]] void Fail(std::string_view expectation) const {
    if (at_ >= text_.size()) Raise("The input string ended unexpectedly.");
    char c = text_[at_];
    bool known = c == '"' || c == '{' || c == '}' || c == '[' || c == ']' || c == ',' || c == ':' ||
                 IsDigit(c) || c == '-' || Token() == "true" || Token() == "false" ||
                 Token() == "null";
    if (!known) Raise(fmt::format("Token \"{}\" is invalid.", Token()));
    Raise(fmt::format(fmt::runtime(expectation), Token()));
  }

  std::string Value(int depth) {
    if (depth > kDepthMax) {
      throw QueryError(MakeError(sqlstate::kStatementTooComplex, "stack depth limit exceeded"));
    }
    SkipSpace();
    char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '{') return Object(depth);
    if (c == '[') return Array(depth);
    if (c == '"') {
      std::string normal, content = String();
      if (normalize_) AppendJsonString(content, &normal);
      return normal;
    }
    if (c == '-' || IsDigit(c)) return Number();
    for (std::string_view word : {"true", "false", "null"}) {
      if (at_ < text_.size() && Token() == word) {
        at_ += word.size();
        return std::string(word);
      }
    }
    Fail("Expected JSON value, but found \"{}\".");
  }

  std::string Object(int depth) {
    std::vector<std::pair<std::string, std::string>> members;
    at_++;
    SkipSpace();
    if (at_ < text_.size() && text_[at_] == '}') {
      at_++;
      return "{}";
    }
    while (true) {
      SkipSpace();
      if (at_ >= text_.size() || text_[at_] != '"') {
        Fail(members.empty() && first_ ? "Expected string or \"}}\", but found \"{}\"."
                                       : "Expected string, but found \"{}\".");
      }
      std::string key = String();
      SkipSpace();
      if (at_ >= text_.size() || text_[at_] != ':') Fail("Expected \":\", but found \"{}\".");
      at_++;
      std::string value = Value(depth + 1);
      if (normalize_) members.emplace_back(std::move(key), std::move(value));
      SkipSpace();
      if (at_ < text_.size() && text_[at_] == ',') {
        at_++;
        first_ = false;
        continue;
      }
      first_ = true;
      if (at_ >= text_.size() || text_[at_] != '}')
        Fail("Expected \",\" or \"}}\", but found \"{}\".");
      at_++;
      return normalize_ ? ObjectText(&members) : std::string();
    }
  }

  static std::string ObjectText(std::vector<std::pair<std::string, std::string>>* members) {
    std::stable_sort(members->begin(), members->end(), [](const auto& a, const auto& b) {
      if (a.first.size() != b.first.size()) return a.first.size() < b.first.size();
      return a.first < b.first;
    });
    std::string normal = "{";
    for (size_t i = 0; i < members->size(); i++) {
      if (i + 1 < members->size() && (*members)[i].first == (*members)[i + 1].first) continue;
      if (normal.size() > 1) normal += ", ";
      AppendJsonString((*members)[i].first, &normal);
      normal += ": ";
      normal += (*members)[i].second;
    }
    return normal + "}";
  }

  std::string Array(int depth) {
    std::string normal = "[";
    at_++;
    SkipSpace();
    if (at_ < text_.size() && text_[at_] == ']') {
      at_++;
      return "[]";
    }
    while (true) {
      std::string value = Value(depth + 1);
      if (normalize_) normal += value;
      SkipSpace();
      if (at_ < text_.size() && text_[at_] == ',') {
        at_++;
        if (normalize_) normal += ", ";
        continue;
      }
      if (at_ >= text_.size() || text_[at_] != ']')
        Fail("Expected \",\" or \"]\", but found \"{}\".");
      at_++;
      return normal + "]";
    }
  }

  std::string Number() {
    size_t start = at_;
    auto digits = [&] {
      size_t first = at_;
      while (at_ < text_.size() && IsDigit(text_[at_])) at_++;
      return at_ > first;
    };
    bool ok = true;
    if (text_[at_] == '-') at_++;
    if (at_ < text_.size() && text_[at_] == '0')
      at_++;
    else
      ok = digits();
    if (ok && at_ < text_.size() && text_[at_] == '.') {
      at_++;
      ok = digits();
    }
    if (ok && at_ < text_.size() && (text_[at_] | 0x20) == 'e') {
      at_++;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) at_++;
      ok = digits();
    }
    auto trailing = [](char c) {
      return IsDigit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
    };
    if (!ok || (at_ < text_.size() && trailing(text_[at_]))) {
      while (at_ < text_.size() && trailing(text_[at_])) at_++;
      std::string token(text_.substr(start, at_ - start));
      at_ = start;
      Raise(fmt::format("Token \"{}\" is invalid.", token));
    }
    if (!normalize_) return {};
    std::string wire, normal;
    AppendNumericWire(NumericFromText(text_.substr(start, at_ - start)), &wire);
    AppendNumericText(wire, &normal);
    return normal;
  }

  uint32_t HexUnit() {
    uint32_t code = 0;
    for (int i = 0; i < 4; i++, at_++) {
      char c = at_ < text_.size() ? text_[at_] : '\0';
      if (c == '\0') Raise("The input string ended unexpectedly.");
      uint32_t digit = IsDigit(c) ? static_cast<uint32_t>(c - '0')
                                  : static_cast<uint32_t>((c | 0x20) - 'a') + 10;
      if (digit > 15) Raise("\"\\u\" must be followed by four hexadecimal digits.");
      code = code * 16 + digit;
    }
    return code;
  }

  // Content of the string at the current place; behind it afterwards.
  std::string String() {
    std::string content;
    uint32_t high = 0;  // half of a surrogate pair
    at_++;
    while (true) {
      if (at_ >= text_.size()) Fail("{}");
      char c = text_[at_];
      if (high != 0 && !(c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == 'u')) {
        Raise("Unicode low surrogate must follow a high surrogate.");
      }
      if (c == '"') break;
      if (static_cast<uint8_t>(c) < 0x20) {
        Raise(
            fmt::format("Character with value 0x{:02x} must be escaped.", static_cast<uint8_t>(c)));
      }
      at_++;
      if (c != '\\') {
        content.push_back(c);
        continue;
      }
      if (at_ >= text_.size()) Fail("{}");
      char escape = text_[at_++];
      switch (escape) {
        case '"':
        case '\\':
        case '/':
          content.push_back(escape);
          break;
        case 'b':
          content.push_back('\b');
          break;
        case 'f':
          content.push_back('\f');
          break;
        case 'n':
          content.push_back('\n');
          break;
        case 'r':
          content.push_back('\r');
          break;
        case 't':
          content.push_back('\t');
          break;
        case 'u':
          Unicode(&high, &content);
          break;
        default:
          at_--;
          Raise(fmt::format("Escape sequence \"\\{}\" is invalid.", escape));
      }
    }
    at_++;
    return content;
  }

  void Unicode(uint32_t* high, std::string* content) {
    uint32_t code = HexUnit();
    if (!normalize_) return;  // json keeps escapes as they are and does not look into them
    if (code >= 0xD800 && code <= 0xDBFF) {
      if (*high != 0) Raise("Unicode high surrogate must not follow a high surrogate.");
      *high = code;
      return;
    }
    bool low = code >= 0xDC00 && code <= 0xDFFF;
    if (low != (*high != 0)) Raise("Unicode low surrogate must follow a high surrogate.");
    if (low) {
      code = 0x10000 + ((*high - 0xD800) << 10) + (code - 0xDC00);
      *high = 0;
    }
    if (code == 0) {
      Raise("\\u0000 cannot be converted to text.", MakeSqlState("22P05"),
            "unsupported Unicode escape sequence");
    }
    AppendUtf8(code, content);
  }

  std::string_view text_;
  bool normalize_;
  bool first_ = true;
  size_t at_ = 0;
};

// Steps over the parts of a text known to be JSON. Stays inside whatever it is given.
class JsonWalker {
 public:
  explicit JsonWalker(std::string_view text) : text_(text) { SkipSpace(); }

  // Into the object or array at hand; false if it is neither.
  bool Enter(char open) {
    if (Peek() != open) return false;
    at_++;
    SkipSpace();
    return true;
  }
  // The next value (and in objects its key, with quotes); false at the end.
  bool Next(bool object, std::string_view* key, std::string_view* value) {
    if (at_ >= text_.size() || Peek() == '}' || Peek() == ']') return false;
    if (object) {
      *key = Take();
      Skip(':');
    }
    *value = Take();
    Skip(',');
    return true;
  }
  std::string_view Take() {
    size_t start = at_;
    int depth = 0;
    do {
      char c = Peek();
      if (c == '"')
        SkipString();
      else
        at_++;
      if (c == '{' || c == '[') depth++;
      if (c == '}' || c == ']') depth--;
      bool word = depth == 0 && c != '"' && c != '}' && c != ']';
      while (word && at_ < text_.size() && !IsSpace(Peek()) && !std::strchr(",:]}", Peek())) at_++;
    } while (depth > 0 && at_ < text_.size());
    at_ = std::min(at_, text_.size());
    std::string_view taken = text_.substr(start, at_ - start);
    SkipSpace();
    return taken;
  }

 private:
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void SkipSpace() {
    while (at_ < text_.size() && IsSpace(text_[at_])) at_++;
  }
  void Skip(char c) {
    if (Peek() == c) at_++;
    SkipSpace();
  }
  void SkipString() {
    for (at_++; at_ < text_.size() && text_[at_] != '"'; at_++) {
      if (text_[at_] == '\\') at_++;
    }
    at_++;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string DecodeJsonString(std::string_view quoted) {
  return JsonReader(quoted, true).ReadString();
}

JsonKind JsonKindOf(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && IsSpace(text[at])) at++;
  switch (at < text.size() ? text[at] : '\0') {
    case '{':
      return JsonKind::kObject;
    case '[':
      return JsonKind::kArray;
    case '"':
      return JsonKind::kString;
    case 't':
    case 'f':
      return JsonKind::kBoolean;
    case 'n':
      return JsonKind::kNull;
    default:
      return JsonKind::kNumber;
  }
}

bool FindJsonMember(std::string_view text, std::string_view key, std::string_view* value) {
  JsonWalker walker(text);
  if (!walker.Enter('{')) return false;
  std::string_view name, candidate;
  bool found = false;
  while (walker.Next(true, &name, &candidate)) {
    if (name.size() < 2) return false;
    std::string_view plain = name.substr(1, name.size() - 2);
    bool same =
        plain.find('\\') == std::string_view::npos ? plain == key : DecodeJsonString(name) == key;
    if (same) *value = candidate;
    found |= same;
  }
  return found;
}

bool FindJsonElement(std::string_view text, int64_t index, std::string_view* value) {
  if (index < 0) index += JsonKindOf(text) == JsonKind::kArray ? JsonArrayLength(text) : 0;
  JsonWalker walker(text);
  if (index < 0 || !walker.Enter('[')) return false;
  std::string_view none;
  for (int64_t i = 0; walker.Next(false, &none, value); i++) {
    if (i == index) return true;
  }
  return false;
}

int64_t JsonArrayLength(std::string_view text) {
  JsonWalker walker(text);
  if (!walker.Enter('[')) return 0;
  std::string_view none, value;
  int64_t count = 0;
  while (walker.Next(false, &none, &value)) count++;
  return count;
}

void CheckJson(std::string_view text) {
  JsonReader(text, false).Read();
}

std::string NormalizeJsonb(std::string_view text) {
  return JsonReader(text, true).Read();
}

void AppendJsonString(std::string_view text, std::string* out) {
  out->push_back('"');
  for (char c : text) {
    switch (c) {
      case '\b':
        *out += "\\b";
        break;
      case '\f':
        *out += "\\f";
        break;
      case '\n':
        *out += "\\n";
        break;
      case '\r':
        *out += "\\r";
        break;
      case '\t':
        *out += "\\t";
        break;
      case '"':
        *out += "\\\"";
        break;
      case '\\':
        *out += "\\\\";
        break;
      default:
        if (static_cast<uint8_t>(c) < 0x20)
          *out += fmt::format("\\u{:04x}", static_cast<uint8_t>(c));
        else
          out->push_back(c);
    }
  }
  out->push_back('"');
}

}  // namespace sluice
