#include "postmaster/text_rewrite.h"

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

bool IsIdentifierStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

bool IsIdentifierPart(char c) {
  return IsIdentifierStart(c) || (c >= '0' && c <= '9') || c == '$';
}

}  // namespace

void TextRewrite::Replace(int location, int length, std::string with) {
  Piece piece{location, length, std::move(with)};
  auto at =
      std::lower_bound(pieces_.begin(), pieces_.end(), piece,
                       [](const Piece& a, const Piece& b) { return a.location < b.location; });
  pieces_.insert(at, std::move(piece));
}

std::string TextRewrite::Result() const {
  std::string result;
  int at = offset_;
  for (const Piece& piece : pieces_) {
    result += original_.substr(static_cast<size_t>(at - offset_),
                               static_cast<size_t>(piece.location - at));
    result += piece.with;
    at = piece.location + piece.length;
  }
  return result + std::string(original_.substr(static_cast<size_t>(at - offset_)));
}

void TextRewrite::Shift(int by) {
  offset_ += by;
  for (Piece& piece : pieces_) piece.location += by;
}

int TextRewrite::OriginalOffset(int result_offset) const {
  int original = offset_ + result_offset;  // as if nothing had changed before it
  for (const Piece& piece : pieces_) {
    if (original <= piece.location) break;
    int with = static_cast<int>(piece.with.size());
    if (original < piece.location + with) return piece.location;  // inside the new text
    original += piece.length - with;
  }
  return original;
}

int TextRewrite::IdentifiersEnd(int location, int parts, int keep, int* kept_start) const {
  size_t at = static_cast<size_t>(location - offset_);
  auto skip_space = [&] {
    while (at < original_.size() && strchr(" \t\r\n\f\v", original_[at]) != nullptr) at++;
  };
  for (int part = 0; part < parts; part++) {
    if (part > 0) {
      skip_space();
      if (at >= original_.size() || original_[at] != '.') return -1;
      at++;
      skip_space();
    }
    if (part == parts - keep) *kept_start = offset_ + static_cast<int>(at);
    if (at >= original_.size()) return -1;
    if (original_[at] == '"') {
      for (at++;; at++) {
        if (at >= original_.size()) return -1;
        if (original_[at] != '"') continue;
        if (at + 1 < original_.size() && original_[at + 1] == '"')
          at++;
        else
          break;
      }
      at++;
      continue;
    }
    if (original_[at] == '*') {
      at++;
      continue;
    }
    if (!IsIdentifierStart(original_[at])) return -1;
    // U&"…" may hide anything.
    if (at + 2 < original_.size() && original_[at + 1] == '&' && original_[at + 2] == '"')
      return -1;
    while (at < original_.size() && IsIdentifierPart(original_[at])) at++;
  }
  return offset_ + static_cast<int>(at);
}

}  // namespace sluice
