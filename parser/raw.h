// SQL text → raw parse trees: Postgres's own grammar, by libpg_query.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct PgQuery__Node;
struct PgQuery__ParseResult;

namespace sluice {

struct RawStatement {
  const PgQuery__Node* node;
  std::string_view text;  // this statement's part of the query string, without the semicolon
  int location;           // byte offset of `text` in the query string
};

// Owns the query text and its trees.
class ParsedSql {
 public:
  ParsedSql() = default;
  ParsedSql(ParsedSql&&) noexcept;
  ParsedSql& operator=(ParsedSql&&) noexcept;
  ~ParsedSql();

  const std::string& text() const { return *text_; }
  const std::vector<RawStatement>& statements() const { return statements_; }

 private:
  friend ParsedSql ParseSql(std::string_view text);
  std::unique_ptr<std::string> text_;
  PgQuery__ParseResult* tree_ = nullptr;
  std::vector<RawStatement> statements_;
};

// Throws 42601 with a position; 54001 for text that is too long or nested too deep for the
// grammar's stack (checked with the scanner before the grammar runs: libpg_query does not check
// it).
ParsedSql ParseSql(std::string_view text);

// A byte offset in `text` → the 1-based character position of an ErrorResponse.
int CharacterPosition(std::string_view text, int byte_offset);

}  // namespace sluice
