#include "parser/prescan.h"

#include <algorithm>
#include <sys/resource.h>
#include <vector>

namespace sluice {
namespace {

bool IsIdentifierStart(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}
bool IsIdentifierPart(unsigned char c) {
  return IsIdentifierStart(c) || (c >= '0' && c <= '9') || c == '$';
}

bool EqualsIgnoringCase(std::string_view word, std::string_view lower) {
  if (word.size() != lower.size()) return false;
  for (size_t i = 0; i < word.size(); i++)
    if ((word[i] | 0x20) != lower[i]) return false;
  return true;
}

// One open parenthesis, bracket, or CASE. A separator ends a chain: the parts on both of its sides
// become siblings in a flat list. Set operations and joins do not: they nest over the whole group.
struct Group {
  bool is_case = false;
  size_t chain = 0;      // tokens since the last separator
  size_t inner = 0;      // depth of the deepest group closed since then
  size_t deepest = 0;    // chain + inner of earlier parts
  size_t combining = 0;  // UNION, INTERSECT, EXCEPT, JOIN, BETWEEN so far

  void EndPart() {
    deepest = std::max(deepest, chain + inner);
    chain = inner = 0;
  }
  size_t Depth() {
    EndPart();
    return deepest + combining + 1;
  }
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) { groups_.emplace_back(); }

  PrescanResult Run() {
    while (at_ < text_.size()) Step();
    while (groups_.size() > 1) Close();
    result_.depth = std::max(result_.depth, groups_.back().Depth());
    return result_;
  }

 private:
  char Peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void Token() {
    result_.tokens++;
    groups_.back().chain++;
  }

  void Open(bool is_case) {
    Token();
    groups_.emplace_back().is_case = is_case;
  }
  void Close() {
    size_t depth = groups_.back().Depth();
    groups_.pop_back();
    groups_.back().inner = std::max(groups_.back().inner, depth);
  }
  void CloseBracket() {
    while (groups_.size() > 1 && groups_.back().is_case) Close();  // a syntax error anyway
    if (groups_.size() > 1) Close();
  }

  void Step() {
    unsigned char c = static_cast<unsigned char>(text_[at_]);
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      at_++;
    } else if (c == '-' && Peek(1) == '-') {
      at_ = std::min(text_.find_first_of("\n\r", at_), text_.size());
    } else if (c == '/' && Peek(1) == '*') {
      SkipComment();
    } else if (IsIdentifierStart(c)) {
      Word();
    } else if (c == '\'') {
      Token();
      SkipQuoted('\'', false);
    } else if (c == '"') {
      Token();
      SkipQuoted('"', false);
    } else if (c == '$') {
      Token();
      SkipDollar();
    } else if ((c >= '0' && c <= '9') || (c == '.' && Peek(1) >= '0' && Peek(1) <= '9')) {
      Number();
    } else {
      Punctuation(static_cast<char>(c));
    }
  }

  void Punctuation(char c) {
    at_++;
    switch (c) {
      case '(':
      case '[':
        return Open(false);
      case ')':
      case ']':
        return CloseBracket();
      case ',':
        result_.tokens++;
        return groups_.back().EndPart();
      case ';':
        result_.tokens++;
        if (groups_.size() > 1) return groups_.back().EndPart();
        result_.depth = std::max(result_.depth, groups_.back().Depth());
        groups_.back() = Group{};
        return;
      default:
        return Token();  // a part of an operator counts as one: still an upper bound
    }
  }

  void Word() {
    size_t start = at_;
    while (at_ < text_.size() && IsIdentifierPart(static_cast<unsigned char>(text_[at_]))) at_++;
    std::string_view word = text_.substr(start, at_ - start);
    if (Peek(0) == '\'' && word.size() == 1) {  // E'…', B'…', X'…', N'…'
      Token();
      return SkipQuoted('\'', (word[0] | 0x20) == 'e');
    }
    if (EqualsIgnoringCase(word, "and") || EqualsIgnoringCase(word, "or")) {
      result_.tokens++;
      return groups_.back().EndPart();
    }
    if (EqualsIgnoringCase(word, "case")) return Open(true);
    if (groups_.back().is_case && EqualsIgnoringCase(word, "end")) {
      result_.tokens++;
      return Close();
    }
    if (groups_.back().is_case &&
        (EqualsIgnoringCase(word, "when") || EqualsIgnoringCase(word, "then") ||
         EqualsIgnoringCase(word, "else"))) {
      result_.tokens++;
      return groups_.back().EndPart();
    }
    if (EqualsIgnoringCase(word, "union") || EqualsIgnoringCase(word, "intersect") ||
        EqualsIgnoringCase(word, "except") || EqualsIgnoringCase(word, "join") ||
        EqualsIgnoringCase(word, "between"))
      groups_.back().combining++;
    Token();
  }

  void Number() {
    Token();
    while (at_ < text_.size() &&
           (IsIdentifierPart(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.'))
      at_++;
  }

  void SkipComment() {
    size_t depth = 0;
    while (at_ < text_.size()) {
      if (text_[at_] == '/' && Peek(1) == '*') {
        depth++;
        at_ += 2;
      } else if (text_[at_] == '*' && Peek(1) == '/') {
        at_ += 2;
        if (--depth == 0) return;
      } else {
        at_++;
      }
    }
  }

  void SkipQuoted(char quote, bool backslashes) {
    at_++;
    while (at_ < text_.size()) {
      char c = text_[at_++];
      if (backslashes && c == '\\') {
        at_++;
      } else if (c == quote) {
        if (Peek(0) != quote) return;
        at_++;
      }
    }
  }

  // $1, or $tag$ … $tag$.
  void SkipDollar() {
    size_t end = at_ + 1;
    if (end < text_.size() && IsIdentifierStart(static_cast<unsigned char>(text_[end]))) {
      while (end < text_.size() && text_[end] != '$' &&
             IsIdentifierPart(static_cast<unsigned char>(text_[end])))
        end++;
    }
    if (end >= text_.size() || text_[end] != '$') {
      at_++;
      return;
    }
    std::string_view tag = text_.substr(at_, end + 1 - at_);
    size_t close = text_.find(tag, end + 1);
    at_ = close == std::string_view::npos ? text_.size() : close + tag.size();
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Group> groups_;
  PrescanResult result_;
};

}  // namespace

PrescanResult Prescan(std::string_view text) {
  return Scanner(text).Run();
}

size_t EnsureStackForParser() {
  static const size_t depth_max = [] {
    constexpr rlim_t wanted = kNestingMax * kStackBytesPerLevel;
    // The kernel keeps at least 128 MiB below the stack free of mappings, whatever the limit was
    // when the program started, so that the limit may be raised to less than that at any time.
    rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0) return size_t{500};
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < wanted) {
      rlimit raised = limit;
      raised.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : std::min(wanted, limit.rlim_max);
      if (setrlimit(RLIMIT_STACK, &raised) == 0) limit = raised;
    }
    if (limit.rlim_cur == RLIM_INFINITY) return kNestingMax;
    return std::min<size_t>(kNestingMax, limit.rlim_cur / kStackBytesPerLevel);
  }();
  return depth_max;
}

void CheckStatementLimits(std::string_view text) {
  size_t depth_max = EnsureStackForParser();
  if (text.size() > kStatementBytesMax) {
    throw QueryError(MakeError(sqlstate::kProgramLimitExceeded, "statement is too long")
                         .Detail(fmt::format("It has {} bytes; at most {} are allowed.",
                                             text.size(), kStatementBytesMax)));
  }
  // Tokens are at least one byte each: short texts need no scan.
  if (text.size() <= std::min<size_t>(depth_max, 1000)) return;
  PrescanResult scan = Prescan(text);
  if (scan.tokens > kStatementTokensMax) {
    throw QueryError(MakeError(sqlstate::kProgramLimitExceeded, "statement is too long")
                         .Detail(fmt::format("It has {} tokens; at most {} are allowed.",
                                             scan.tokens, kStatementTokensMax)));
  }
  if (scan.depth > depth_max) {
    throw QueryError(MakeError(sqlstate::kStatementTooComplex, "stack depth limit exceeded")
                         .Detail("The statement is nested too deeply, or has too long a chain of "
                                 "operators, to be parsed.")
                         .Hint("Split the statement, or write long chains as lists: IN (…), = ANY, "
                               "VALUES."));
  }
}

}  // namespace sluice
