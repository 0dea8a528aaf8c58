// COPY's options, and the text and CSV forms of COPY … TO STDOUT as Postgres writes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

enum class CopyFormat { kText, kCsv, kBinary };

struct CopyOptions {
  CopyFormat format = CopyFormat::kText;
  char delimiter = '\t';
  std::string null_text = "\\N";
  bool header = false;
  char quote = '"', escape = '"';                // CSV
  std::vector<bool> force_quote;                 // CSV, a column; empty: none
  std::vector<bool> force_not_null, force_null;  // CSV, FROM: a column; empty: none
  bool header_match = false;                     // FROM: the header names the columns
  bool single_column = false;                    // CSV: a field \. alone on its line must be quoted
};

// One field's text without the delimiter.
void AppendCopyText(std::string_view value, const CopyOptions& options, std::string* out);
void AppendCopyCsv(std::string_view value, bool force_quote, const CopyOptions& options,
                   std::string* out);

// "PGCOPY\n\377\r\n\0", no flags, no extension.
std::string_view CopyBinaryHeader();
inline constexpr std::string_view kCopyBinaryTrailer = "\xff\xff";  // a field count of -1

}  // namespace sluice
