// Pieces of an SQL text replaced, and positions of the result found again in the original.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// Rewrites of a text, and where positions of the result were in the original. Added in any order.
class TextRewrite {
 public:
  // original: the text; offset: its place in the string that locations count in.
  TextRewrite(std::string_view original, int offset) : original_(original), offset_(offset) {}
  void Replace(int location, int length, std::string with);
  std::string Result() const;
  void Shift(int by);                           // all locations count from further before
  int OriginalOffset(int result_offset) const;  // in the string that locations count in

  // The end of the identifiers name.name… (`parts` of them) that start at `location`; and where the
  // last `keep` of them start. -1: not written as expected.
  int IdentifiersEnd(int location, int parts, int keep, int* kept_start) const;

 private:
  struct Piece {
    int location, length;
    std::string with;
  };
  std::string_view original_;
  int offset_;
  std::vector<Piece> pieces_;  // sorted by location
};

}  // namespace sluice
