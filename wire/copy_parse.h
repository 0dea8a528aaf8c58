// What COPY … FROM STDIN is sent, taken apart: lines, fields of lines, tuples of the binary format.
// Only as far as is needed to know where a row belongs: the rest is the shard's to judge.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/copy_format.h"

namespace sluice {

// Text and CSV. Throws 22P04 as Postgres does for lines that end in different ways.
class CopyLines {
 public:
  explicit CopyLines(const CopyOptions& options) : options_(options) {}

  void Add(std::string_view bytes);
  // No more bytes will come: what is left is a line.
  void End() { ended_ = true; }
  // The next line without its end; false: none is whole yet, or there are no more. The view is good
  // until the next Add.
  bool Next(std::string_view* line);
  // The number of the last line in what was sent, from 1; of a CSV line whose quoted fields hold
  // line ends it is that of its own end.
  uint64_t line_number() const { return line_number_; }
  // Whether it had an end: the last one need not.
  bool terminated() const { return terminated_; }
  bool saw_end_marker() const { return marker_; }

 private:
  enum class LineEnd : uint8_t { kUnknown, kNewline, kReturn, kReturnNewline };

  bool FindEnd(size_t* end, size_t* next);
  bool FindTextEnd(size_t* end, size_t* next);
  bool FindCsvEnd(size_t* end, size_t* next);
  // A line end that stands at `at`; false: more bytes are needed to tell.
  bool TakeLineEnd(size_t at, size_t* end, size_t* next);
  [[noreturn]] void ThrowOtherLineEnd(char c) const;

  const CopyOptions& options_;
  std::string buffer_;
  size_t at_ = 0;                                    // where the next line begins
  size_t searched_ = 0;                              // up to here no end of it was found …
  bool in_quote_ = false, last_was_escape_ = false;  // … and what CSV's quotes say there
  LineEnd line_end_ = LineEnd::kUnknown;
  bool ended_ = false, marker_ = false;
  uint64_t line_number_ = 0;
  uint32_t quoted_lines_ = 0;
  bool terminated_ = true;
};

// One line's fields of the given indexes (ascending), nullopt for NULL. Returns how many of
// `wanted` the line has. What escapes and quotes change is kept in `storage`. Throws 22P04 for an
// unterminated quote.
size_t CopyFields(std::string_view line, const CopyOptions& options, std::span<const int> wanted,
                  std::vector<std::optional<std::string_view>>* fields,
                  std::vector<std::string>* storage);

// The binary format.
class CopyTuples {
 public:
  void Add(std::string_view bytes);
  // The next tuple's bytes, its field count in front; false: none is whole yet, or they have ended.
  // Throws 22P04 for what is no such format.
  bool Next(std::string_view* tuple);
  bool ended() const { return ended_; }
  // REQUIRES: ended by the client. Throws where a tuple or the header was cut off.
  void CheckEnd() const;

 private:
  std::string buffer_;
  size_t at_ = 0;
  bool header_done_ = false, ended_ = false;
};

}  // namespace sluice
