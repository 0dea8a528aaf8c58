#include "parser/raw.h"

#include <pg_query.h>
#include <pg_query/pg_query.pb-c.h>

#include "common/error.h"
#include "parser/prescan.h"

namespace sluice {
namespace {

// The grammar reports only a text; nearly all are syntax errors, and these are not.
SqlState StateOfGrammarError(std::string_view message) {
  auto has = [&](std::string_view part) { return message.find(part) != std::string_view::npos; };
  if (has("LIMIT #,#")) return sqlstate::kSyntaxError;
  if (has("not yet implemented") || has("not supported") || has("is not implemented") ||
      has("unsafe use of string constant with Unicode escapes"))
    return sqlstate::kFeatureNotSupported;
  if (message.starts_with("frame ")) return sqlstate::kWindowingError;
  if (has("unsafe use of \\'")) return MakeSqlState("22P06");
  if (has("precision for type float")) return sqlstate::kInvalidParameterValue;
  if (has("invalid Unicode escape")) return sqlstate::kInvalidEscapeSequence;
  if (has("memory exhausted") || has("stack depth")) return sqlstate::kStatementTooComplex;
  if (has("invalid byte sequence")) return sqlstate::kCharacterNotInRepertoire;
  return sqlstate::kSyntaxError;
}

[[noreturn]] void ThrowGrammarError(const PgQueryError& error, std::string_view text) {
  Error e;
  e.message = error.message != nullptr ? error.message : "syntax error";
  e.state = StateOfGrammarError(e.message);
  e.position = std::max(error.cursorpos, 0);
  // The same words for E'…' and for U&'…', where they are a syntax error.
  size_t quote = text.substr(0, static_cast<size_t>(e.position)).rfind('\'');
  if (e.state == sqlstate::kInvalidEscapeSequence && quote != text.npos && quote > 0 &&
      text[quote - 1] == '&')
    e.state = sqlstate::kSyntaxError;
  // The grammar's hints do not come through.
  if (e.message == "subquery in FROM must have an alias")
    e.hint = "For example, FROM (SELECT ...) [AS] foo.";
  if (e.message == "LIMIT #,# syntax is not supported")
    e.hint = "Use separate LIMIT and OFFSET clauses.";
  if (e.message == "VALUES in FROM must have an alias")
    e.hint = "For example, FROM (VALUES ...) [AS] foo.";
  throw QueryError(std::move(e));
}

bool IsSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

}  // namespace

ParsedSql::ParsedSql(ParsedSql&& other) noexcept
    : text_(std::move(other.text_)),
      tree_(std::exchange(other.tree_, nullptr)),
      statements_(std::move(other.statements_)) {}

ParsedSql& ParsedSql::operator=(ParsedSql&& other) noexcept {
  std::swap(text_, other.text_);
  std::swap(tree_, other.tree_);
  std::swap(statements_, other.statements_);
  return *this;
}

ParsedSql::~ParsedSql() {
  if (tree_ != nullptr) pg_query__parse_result__free_unpacked(tree_, nullptr);
}

ParsedSql ParseSql(std::string_view text) {
  CheckStatementLimits(text);
  ParsedSql parsed;
  parsed.text_ = std::make_unique<std::string>(text);

  // The grammar and (un)packing need a level of C stack for each of the tree's:
  // CheckStatementLimits has seen to that. `guard` frees the packed form whatever happens.
  PgQueryProtobufParseResult packed = pg_query_parse_protobuf(parsed.text_->c_str());
  struct Guard {
    PgQueryProtobufParseResult& result;
    ~Guard() { pg_query_free_protobuf_parse_result(result); }
  } guard{packed};
  if (packed.error != nullptr) ThrowGrammarError(*packed.error, text);
  parsed.tree_ = pg_query__parse_result__unpack(
      nullptr, packed.parse_tree.len, reinterpret_cast<const uint8_t*>(packed.parse_tree.data));
  if (parsed.tree_ == nullptr) Throw(sqlstate::kOutOfMemory, "out of memory");

  std::string_view whole = *parsed.text_;
  for (size_t i = 0; i < parsed.tree_->n_stmts; i++) {
    const PgQuery__RawStmt& raw = *parsed.tree_->stmts[i];
    if (raw.stmt == nullptr) continue;
    size_t start = static_cast<size_t>(std::max(raw.stmt_location, 0));
    size_t length = raw.stmt_len > 0 ? static_cast<size_t>(raw.stmt_len) : whole.size() - start;
    while (length > 0 && IsSpace(whole[start])) start++, length--;
    while (length > 0 && IsSpace(whole[start + length - 1])) length--;
    parsed.statements_.push_back({raw.stmt, whole.substr(start, length), static_cast<int>(start)});
  }
  return parsed;
}

int CharacterPosition(std::string_view text, int byte_offset) {
  if (byte_offset < 0) return 0;
  size_t end = std::min(static_cast<size_t>(byte_offset), text.size());
  int characters = 1;
  for (size_t i = 0; i < end; i++)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) characters++;
  return characters;
}

}  // namespace sluice
