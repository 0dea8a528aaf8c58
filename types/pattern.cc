#include "types/pattern.h"

#include <re2/re2.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include "common/error.h"
#include "types/utf8.h"

namespace sluice {
namespace {

using View = std::string_view;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsLetter(char c) {
  return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}
bool IsAscii(View text) {
  uint8_t all = 0;
  for (char c : text) all |= static_cast<uint8_t>(c);
  return all < 0x80;
}

// Postgres's regular expression → RE2's, with the same language.
class Translator {
 public:
  Translator(View pattern, bool ignore_case)
      : whole_(pattern), rest_(pattern), ignore_case_(ignore_case) {}

  std::string Translate() {
    if (rest_.substr(0, 3) == "***") Unsupported("regular expression director \"***\"");
    Alternatives(0);
    if (!rest_.empty()) Invalid("parentheses () not balanced");
    return out_;
  }
  bool ascii_only() const { return ascii_only_; }

 private:
  [[noreturn]] void Unsupported(std::string_view what) const {
    Refuse("{} is not supported here: \"{}\"", what, whole_);
  }
  [[noreturn]] static void Invalid(const char* why) {
    Throw(sqlstate::kInvalidRegularExpression, "invalid regular expression: {}", why);
  }
  bool Take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // A brace opens a bound only if a digit follows it.
  bool IsBound() const { return rest_.size() > 1 && rest_[0] == '{' && IsDigit(rest_[1]); }

  void Alternatives(int depth) {
    if (depth > 100) Unsupported("deeply nested regular expression");
    while (true) {
      while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') Piece(depth);
      if (!Take('|')) return;
      out_ += '|';
    }
  }

  // An atom or an anchor, and a quantifier behind it.
  void Piece(int depth) {
    char c = rest_[0];
    bool anchor = c == '^' || c == '$';
    if (anchor) {
      rest_.remove_prefix(1);
      out_ += c == '^' ? "\\A" : "\\z";
    } else if (c == '(') {
      rest_.remove_prefix(1);
      if (!rest_.empty() && rest_[0] == '?') {
        if (rest_.substr(0, 2) != "?:") Unsupported("regular expression with \"(?\"");
        rest_.remove_prefix(2);
      }
      out_ += "(?:";
      Alternatives(depth + 1);
      if (!Take(')')) Invalid("parentheses () not balanced");
      out_ += ')';
    } else if (c == '[') {
      Bracket();
    } else if (c == '\\') {
      Escape();
    } else if (c == '.') {
      rest_.remove_prefix(1);
      out_ += "(?s:.)";
    } else if (c == '*' || c == '+' || c == '?') {
      Invalid("quantifier operand invalid");
    } else if (IsBound()) {
      Invalid("quantifier operand invalid");
    } else {
      size_t step = Utf8Step(rest_, 0);
      Literal(rest_.substr(0, step));
      rest_.remove_prefix(step);
    }
    Quantifier(anchor);
  }

  void Quantifier(bool after_anchor) {
    if (rest_.empty()) return;
    char c = rest_[0];
    if (c != '*' && c != '+' && c != '?' && !IsBound()) return;
    if (after_anchor) Unsupported("quantified anchor in a regular expression");
    if (c != '{') {
      out_ += c;
      rest_.remove_prefix(1);
    } else {
      Bounds();
    }
    if (Take('?')) {
    }  // laziness does not change whether there is a match
    if (!rest_.empty() && (rest_[0] == '*' || rest_[0] == '+' || rest_[0] == '?' || IsBound())) {
      Invalid("quantifier operand invalid");
    }
  }

  void Bounds() {
    size_t end = rest_.find('}');
    if (end == View::npos) Invalid("invalid repetition count(s)");
    View bounds = rest_.substr(1, end - 1);
    size_t comma = bounds.find(',');
    auto number = [&](View digits) {
      if (digits.empty() || digits.size() > 3) Invalid("invalid repetition count(s)");
      int value = 0;
      for (char c : digits) {
        if (!IsDigit(c)) Invalid("invalid repetition count(s)");
        value = value * 10 + (c - '0');
      }
      if (value > 255) Invalid("invalid repetition count(s)");
      return value;
    };
    int least = number(bounds.substr(0, comma));
    if (comma != View::npos && comma + 1 < bounds.size() &&
        number(bounds.substr(comma + 1)) < least) {
      Invalid("invalid repetition count(s)");
    }
    out_ += '{';
    out_ += bounds;
    out_ += '}';
    rest_.remove_prefix(end + 1);
  }

  // Beyond ASCII only characters without case can be matched whatever the locale's case rules.
  void CheckCaseless(View character) const {
    if (!ignore_case_ || static_cast<uint8_t>(character[0]) < 0x80) return;
    int32_t at = 0;
    UChar32 code = 0;
    U8_NEXT(character.data(), at, static_cast<int32_t>(character.size()), code);
    if (code < 0 || u_tolower(code) != code || u_toupper(code) != code) {
      Unsupported("case-insensitive regular expression with letters other than ASCII");
    }
  }

  void Literal(View character) {
    char c = character[0];
    CheckCaseless(character);
    if (ignore_case_ && IsLetter(c)) {
      out_ += '[';
      out_ += static_cast<char>(c & ~0x20);
      out_ += static_cast<char>(c | 0x20);
      out_ += ']';
      return;
    }
    if (character.size() == 1 && !IsLetter(c) && !IsDigit(c) && static_cast<uint8_t>(c) < 0x80) {
      out_ += fmt::format("\\x{{{:x}}}", static_cast<uint8_t>(c));
    } else {
      out_ += character;
    }
  }

  // A class that Postgres asks the locale about; on ASCII all locales agree.
  void LocaleClass(const char* ascii) {
    ascii_only_ = true;
    out_ += ascii;
  }

  void Escape() {
    rest_.remove_prefix(1);
    if (rest_.empty()) Invalid("invalid escape \\ sequence");
    char c = rest_[0];
    switch (c) {
      case 'd':
        out_ += "[0-9]";
        break;
      case 'D':
        out_ += "[^0-9]";
        break;
      case 's':
        LocaleClass("[\\x09-\\x0d\\x20]");
        break;
      case 'S':
        LocaleClass("[^\\x09-\\x0d\\x20]");
        break;
      case 'w':
        LocaleClass("[0-9A-Za-z_]");
        break;
      case 'W':
        LocaleClass("[^0-9A-Za-z_]");
        break;
      case 'n':
        out_ += "\\n";
        break;
      case 't':
        out_ += "\\t";
        break;
      case 'r':
        out_ += "\\r";
        break;
      case 'f':
        out_ += "\\f";
        break;
      case 'v':
        out_ += "\\x0b";
        break;
      case 'A':
        out_ += "\\A";
        break;
      case 'Z':
        out_ += "\\z";
        break;
      default:
        if (IsLetter(c) || IsDigit(c) || static_cast<uint8_t>(c) >= 0x80) {
          Unsupported(fmt::format("regular expression escape \"\\{}\"",
                                  rest_.substr(0, Utf8Step(rest_, 0))));
        }
        Literal(rest_.substr(0, 1));
    }
    rest_.remove_prefix(1);
  }

  // [...]: single characters, ranges of ASCII letters and digits, and the named classes.
  void Bracket() {
    rest_.remove_prefix(1);
    out_ += Take('^') ? "[^" : "[";
    bool first = true;
    while (true) {
      if (rest_.empty()) Invalid("brackets [] not balanced");
      if (rest_[0] == ']' && !first) break;
      first = false;
      if (rest_[0] == '[' && rest_.size() > 1 &&
          (rest_[1] == ':' || rest_[1] == '.' || rest_[1] == '=')) {
        NamedClass();
        continue;
      }
      if (rest_[0] == '\\') {
        BracketEscape();
        continue;
      }
      size_t step = Utf8Step(rest_, 0);
      View low = rest_.substr(0, step);
      rest_.remove_prefix(step);
      bool range = rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']';
      if (!range) {
        BracketCharacter(low);
        continue;
      }
      rest_.remove_prefix(1);
      if (rest_[0] == '\\' || rest_[0] == '[')
        Unsupported("range of this kind in a regular expression");
      step = Utf8Step(rest_, 0);
      View high = rest_.substr(0, step);
      rest_.remove_prefix(step);
      if (low.size() != 1 || high.size() != 1)
        Unsupported("range outside of ASCII in a regular expression");
      if (low[0] > high[0]) Invalid("invalid character range");
      for (int c = low[0]; c <= high[0]; c++) {
        char character = static_cast<char>(c);
        BracketCharacter({&character, 1});
      }
    }
    rest_.remove_prefix(1);
    out_ += ']';
  }
  void BracketCharacter(View character) {
    char c = character[0];
    if (character.size() > 1 || static_cast<uint8_t>(c) >= 0x80) {
      CheckCaseless(character);
      out_ += character;
      return;
    }
    if (ignore_case_ && IsLetter(c))
      out_ += fmt::format("{}{}", static_cast<char>(c & ~0x20), static_cast<char>(c | 0x20));
    else
      out_ += fmt::format("\\x{{{:x}}}", static_cast<uint8_t>(c));
  }
  void BracketEscape() {
    if (rest_.size() < 2) Invalid("invalid escape \\ sequence");
    char c = rest_[1];
    switch (c) {
      case 'd':
        out_ += "0-9";
        break;
      case 's':
        LocaleClass("\\x09-\\x0d\\x20");
        break;
      case 'w':
        LocaleClass("0-9A-Za-z_");
        break;
      case 'n':
        out_ += "\\n";
        break;
      case 't':
        out_ += "\\t";
        break;
      case 'r':
        out_ += "\\r";
        break;
      default:
        if (IsLetter(c) || IsDigit(c) || static_cast<uint8_t>(c) >= 0x80) {
          Unsupported("this escape within brackets in a regular expression");
        }
        BracketCharacter(rest_.substr(1, 1));
    }
    rest_.remove_prefix(2);
    if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']')
      Unsupported("range of this kind in a regular expression");
  }
  void NamedClass() {
    size_t end = rest_.find(":]", 2);
    if (rest_[1] != ':' || end == View::npos)
      Unsupported("collating element in a regular expression");
    View name = rest_.substr(2, end - 2);
    static constexpr View kNames[] = {"alpha", "digit", "alnum", "upper", "lower", "space",
                                      "blank", "punct", "cntrl", "graph", "print", "xdigit"};
    if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames))
      Invalid("invalid character class");
    if (name != "digit" && name != "xdigit") ascii_only_ = true;
    if (ignore_case_ && (name == "upper" || name == "lower")) name = "alpha";
    out_ += fmt::format("[:{}:]", name);
    rest_.remove_prefix(end + 2);
  }

  View whole_, rest_;
  bool ignore_case_;
  bool ascii_only_ = false;
  std::string out_;
};

}  // namespace

bool MatchLike(View text, View pattern) {
  size_t t = 0, p = 0;
  // Where to go on after the last %: the pattern behind it, and the text it has swallowed so far.
  size_t retry_pattern = View::npos, retry_text = 0;
  while (true) {
    if (p < pattern.size() && pattern[p] == '%') {
      while (p < pattern.size() && pattern[p] == '%') p++;
      if (p == pattern.size()) return true;
      retry_pattern = p;
      retry_text = t;
      continue;
    }
    if (t == text.size()) {
      // Only what matches nothing may be left, and there is no % here any more.
      if (p < pattern.size() && pattern[p] == '\\' && p + 1 == pattern.size()) {
        return false;
      }
      return p == pattern.size();
    }
    bool matched = false;
    size_t step = 1;
    if (p < pattern.size()) {
      if (pattern[p] == '_') {
        matched = true;
        step = Utf8Step(text, t);
      } else {
        size_t literal = p;
        if (pattern[p] == '\\') {
          if (p + 1 == pattern.size()) {
            Throw(sqlstate::kInvalidEscapeSequence,
                  "LIKE pattern must not end with escape character");
          }
          literal = p + 1;
        }
        matched = pattern[literal] == text[t];
        if (matched) p = literal;
      }
    }
    if (matched) {
      p++;
      t += step;
    } else if (retry_pattern != View::npos) {
      retry_text += Utf8Step(text, retry_text);
      t = retry_text;
      p = retry_pattern;
    } else {
      return false;
    }
  }
}

std::string EscapeLike(View pattern, View escape) {
  std::string out;
  if (escape.empty()) {  // no escape character: backslashes stand for themselves
    for (char c : pattern) {
      if (c == '\\') out.push_back('\\');
      out.push_back(c);
    }
    return out;
  }
  if (Utf8Step(escape, 0) != escape.size()) {
    throw QueryError(MakeError(sqlstate::kInvalidEscapeSequence, "invalid escape string")
                         .Hint("Escape string must be empty or one character."));
  }
  if (escape == "\\") return std::string(pattern);
  bool after_escape = false;
  for (size_t at = 0; at < pattern.size();) {
    size_t step = Utf8Step(pattern, at);
    View character = pattern.substr(at, step);
    at += step;
    if (character == escape && !after_escape) {
      out.push_back('\\');
      after_escape = true;
      continue;
    }
    if (character == "\\" && !after_escape) out.push_back('\\');
    out += character;
    after_escape = false;
  }
  return out;
}

Regex::~Regex() = default;

const Regex& Regex::Compiled(View pattern, bool ignore_case) {
  static auto* cache = new std::map<std::string, std::unique_ptr<Regex>>();
  std::string key = (ignore_case ? "i" : "c") + std::string(pattern);
  auto found = cache->find(key);
  if (found != cache->end()) return *found->second;
  Translator translator(pattern, ignore_case);
  std::string translated = translator.Translate();
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  std::unique_ptr<Regex> regex(new Regex());
  regex->ascii_only_ = translator.ascii_only();
  regex->re2_ = std::make_unique<re2::RE2>(translated, options);
  if (!regex->re2_->ok()) {
    Refuse("this regular expression is not supported here: \"{}\" ({})", pattern,
           regex->re2_->error());
  }
  if (cache->size() >= 64) cache->clear();
  return *(cache->emplace(std::move(key), std::move(regex)).first->second);
}

bool Regex::Matches(View text) const {
  if (ascii_only_ && !IsAscii(text)) {
    Refuse("character classes of the locale are not supported here on text with other than ASCII");
  }
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *re2_);
}

}  // namespace sluice
