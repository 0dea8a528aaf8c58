#include "wire/copy_parse.h"

#include <cstring>

#include "common/bytes.h"
#include "common/error.h"

namespace sluice {
namespace {

constexpr SqlState kBadCopyFileFormat = MakeSqlState("22P04");

size_t FindChar(std::string_view text, size_t from, char c) {
  const void* found =
      from < text.size() ? std::memchr(text.data() + from, c, text.size() - from) : nullptr;
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

// Whether the character at `at` has a backslash of its own before it.
bool IsEscaped(std::string_view text, size_t line_start, size_t at) {
  size_t backslashes = 0;
  while (at - backslashes > line_start && text[at - backslashes - 1] == '\\') backslashes++;
  return backslashes % 2 == 1;
}

}  // namespace

void CopyLines::Add(std::string_view bytes) {
  if (at_ > 0) {
    buffer_.erase(0, at_);
    searched_ -= at_;
    at_ = 0;
  }
  buffer_.append(bytes);
}

void CopyLines::ThrowOtherLineEnd(char c) const {
  const char* name = c == '\n' ? "newline" : "carriage return";
  if (options_.format == CopyFormat::kCsv)
    throw QueryError(MakeError(kBadCopyFileFormat, "unquoted {} found in data", name)
                         .Hint(fmt::format("Use quoted CSV field to represent {}.", name)));
  throw QueryError(
      MakeError(kBadCopyFileFormat, "literal {} found in data", name)
          .Hint(fmt::format("Use \"{}\" to represent {}.", c == '\n' ? "\\n" : "\\r", name)));
}

// The first line end says how all lines end.
bool CopyLines::TakeLineEnd(size_t at, size_t* end, size_t* next) {
  if (buffer_[at] == '\r') {
    bool is_last = at + 1 == buffer_.size();
    if (is_last && !ended_ && line_end_ != LineEnd::kReturn) return false;
    bool with_newline = !is_last && buffer_[at + 1] == '\n';
    if (line_end_ == LineEnd::kUnknown)
      line_end_ = with_newline ? LineEnd::kReturnNewline : LineEnd::kReturn;
    if (line_end_ == LineEnd::kNewline) ThrowOtherLineEnd('\r');
    if (line_end_ == LineEnd::kReturnNewline && !with_newline) ThrowOtherLineEnd('\r');
    *end = at;
    *next = at + (line_end_ == LineEnd::kReturnNewline ? 2 : 1);
    return true;
  }
  if (line_end_ == LineEnd::kUnknown) line_end_ = LineEnd::kNewline;
  if (line_end_ != LineEnd::kNewline) ThrowOtherLineEnd('\n');
  *end = at;
  *next = at + 1;
  return true;
}

bool CopyLines::FindTextEnd(size_t* end, size_t* next) {
  for (;;) {
    size_t newline = FindChar(buffer_, searched_, '\n');
    size_t limit = newline == std::string::npos ? buffer_.size() : newline;
    size_t carriage = FindChar(std::string_view(buffer_).substr(0, limit), searched_, '\r');
    size_t found = carriage == std::string::npos ? newline : carriage;
    if (found == std::string::npos) {
      searched_ = buffer_.size();
      return false;
    }
    if (IsEscaped(buffer_, at_, found)) {
      searched_ = found + 1;
      continue;
    }
    searched_ = found;
    return TakeLineEnd(found, end, next);
  }
}

bool CopyLines::FindCsvEnd(size_t* end, size_t* next) {
  const char quote = options_.quote;
  const char escape = options_.escape == quote ? '\0' : options_.escape;
  for (; searched_ < buffer_.size(); searched_++) {
    char c = buffer_[searched_];
    if (!in_quote_ && (c == '\n' || c == '\r')) return TakeLineEnd(searched_, end, next);
    // As Postgres counts: it must have seen a line's end before.
    if (in_quote_ && c == (line_end_ == LineEnd::kNewline ? '\n' : '\r')) quoted_lines_++;
    if (in_quote_ && c == escape) last_was_escape_ = !last_was_escape_;
    if (c == quote && !last_was_escape_) in_quote_ = !in_quote_;
    if (c != escape) last_was_escape_ = false;
  }
  return false;
}

bool CopyLines::FindEnd(size_t* end, size_t* next) {
  bool found = options_.format == CopyFormat::kCsv ? FindCsvEnd(end, next) : FindTextEnd(end, next);
  if (found || !ended_ || at_ == buffer_.size()) return found;
  *end = *next = buffer_.size();
  return true;
}

bool CopyLines::Next(std::string_view* line) {
  if (marker_) return false;
  size_t end, next;
  if (!FindEnd(&end, &next)) return false;
  *line = std::string_view(buffer_).substr(at_, end - at_);
  line_number_ += 1 + std::exchange(quoted_lines_, 0);
  terminated_ = next > end;
  at_ = searched_ = next;
  in_quote_ = last_was_escape_ = false;
  if (*line != "\\.") return true;
  marker_ = true;
  return false;
}

namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The text format's escapes.
void AppendUnescaped(std::string_view text, std::string* out) {
  for (size_t i = 0; i < text.size(); i++) {
    char c = text[i];
    if (c != '\\' || i + 1 == text.size()) {
      out->push_back(c);
      continue;
    }
    c = text[++i];
    switch (c) {
      case 'b':
        out->push_back('\b');
        break;
      case 'f':
        out->push_back('\f');
        break;
      case 'n':
        out->push_back('\n');
        break;
      case 'r':
        out->push_back('\r');
        break;
      case 't':
        out->push_back('\t');
        break;
      case 'v':
        out->push_back('\v');
        break;
      case 'x': {
        int value = 0, digits = 0;
        while (digits < 2 && i + 1 < text.size() && HexDigit(text[i + 1]) >= 0) {
          value = value * 16 + HexDigit(text[++i]);
          digits++;
        }
        out->push_back(digits == 0 ? 'x' : static_cast<char>(value));
        break;
      }
      default: {
        if (c < '0' || c > '7') {
          out->push_back(c);
          break;
        }
        int value = c - '0';
        for (int digits = 1;
             digits < 3 && i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '7';
             digits++)
          value = value * 8 + text[++i] - '0';
        out->push_back(static_cast<char>(value & 0377));
      }
    }
  }
}

// Moves `*at` behind the field that begins there, and behind its delimiter; returns the field.
std::string_view TextField(std::string_view line, char delimiter, size_t* at, bool* last) {
  size_t start = *at, search = start;
  for (;;) {
    size_t found = FindChar(line, search, delimiter);
    if (found == std::string_view::npos) {
      *last = true;
      *at = line.size();
      return line.substr(start);
    }
    if (IsEscaped(line, start, found)) {
      search = found + 1;
      continue;
    }
    *at = found + 1;
    return line.substr(start, found - start);
  }
}

// The same for CSV: the value without its quotes.
std::string_view CsvField(std::string_view line, const CopyOptions& options, size_t* at, bool* last,
                          bool* quoted, std::string* storage) {
  size_t start = *at, i = start;
  storage->clear();
  *quoted = false;
  bool in_quote = false;
  for (; i < line.size(); i++) {
    char c = line[i];
    if (!in_quote) {
      if (c == options.delimiter) break;
      if (c == options.quote) {
        in_quote = *quoted = true;
        continue;
      }
      storage->push_back(c);
      continue;
    }
    if (c == options.escape && i + 1 < line.size() &&
        (line[i + 1] == options.escape || line[i + 1] == options.quote)) {
      storage->push_back(line[++i]);
      continue;
    }
    if (c == options.quote) {
      in_quote = false;
      continue;
    }
    storage->push_back(c);
  }
  if (in_quote) Throw(kBadCopyFileFormat, "unterminated CSV quoted field");
  *last = i == line.size();
  *at = *last ? i : i + 1;
  return *storage;
}

bool Flag(const std::vector<bool>& flags, size_t i) {
  return i < flags.size() && flags[i];
}

}  // namespace

size_t CopyFields(std::string_view line, const CopyOptions& options, std::span<const int> wanted,
                  std::vector<std::optional<std::string_view>>* fields,
                  std::vector<std::string>* storage) {
  fields->resize(wanted.size());
  storage->resize(wanted.size() + 1);
  size_t found = 0, at = 0;
  bool last = false;
  for (int index = 0; found < wanted.size() && !last; index++) {
    bool want = index == wanted[found];
    std::string* own = &(*storage)[want ? found : wanted.size()];
    if (options.format == CopyFormat::kCsv) {
      bool quoted;
      std::string_view value = CsvField(line, options, &at, &last, &quoted, own);
      if (!want) continue;
      auto column = static_cast<size_t>(index);
      bool null = value == options.null_text && (quoted ? Flag(options.force_null, column)
                                                        : !Flag(options.force_not_null, column));
      (*fields)[found++] = null ? std::nullopt : std::optional(value);
      continue;
    }
    std::string_view raw = TextField(line, options.delimiter, &at, &last);
    if (!want) continue;
    if (raw == options.null_text) {
      (*fields)[found++] = std::nullopt;
    } else if (FindChar(raw, 0, '\\') == std::string_view::npos) {
      (*fields)[found++] = raw;
    } else {
      own->clear();
      AppendUnescaped(raw, own);
      (*fields)[found++] = *own;
    }
  }
  return found;
}

void CopyTuples::Add(std::string_view bytes) {
  buffer_.erase(0, at_);
  at_ = 0;
  buffer_.append(bytes);
}

bool CopyTuples::Next(std::string_view* tuple) {
  if (ended_) return false;
  std::string_view rest = std::string_view(buffer_).substr(at_);
  if (!header_done_) {
    constexpr std::string_view kSignature("PGCOPY\n\377\r\n\0", 11);
    if (rest.size() < kSignature.size() + 8) return false;
    if (!rest.starts_with(kSignature))
      Throw(kBadCopyFileFormat, "COPY file signature not recognized");
    uint32_t flags = LoadBig<uint32_t>(rest.data() + kSignature.size());
    if ((flags & (1u << 16)) != 0)
      Throw(kBadCopyFileFormat, "invalid COPY file header (WITH OIDS)");
    if ((flags >> 16) != 0)
      Throw(kBadCopyFileFormat, "unrecognized critical flags in COPY file header");
    int32_t extension = LoadBig<int32_t>(rest.data() + kSignature.size() + 4);
    if (extension < 0) Throw(kBadCopyFileFormat, "invalid COPY file header (missing length)");
    size_t size = kSignature.size() + 8 + static_cast<size_t>(extension);
    if (rest.size() < size) return false;
    at_ += size;
    rest.remove_prefix(size);
    header_done_ = true;
  }
  if (rest.size() < 2) return false;
  auto count = LoadBig<int16_t>(rest.data());
  if (count == -1) {
    ended_ = true;
    return false;
  }
  size_t size = 2;
  for (int16_t i = 0; i < count; i++) {
    if (rest.size() < size + 4) return false;
    auto length = LoadBig<int32_t>(rest.data() + size);
    if (length < -1) Throw(kBadCopyFileFormat, "invalid field size");
    size += 4 + static_cast<size_t>(std::max(length, 0));
    if (rest.size() < size) return false;
  }
  *tuple = rest.substr(0, size);
  at_ += size;
  return true;
}

void CopyTuples::CheckEnd() const {
  if (ended_) return;
  if (!header_done_) Throw(kBadCopyFileFormat, "COPY file signature not recognized");
  if (at_ < buffer_.size()) Throw(kBadCopyFileFormat, "unexpected EOF in COPY data");
}

}  // namespace sluice
