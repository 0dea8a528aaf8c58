// SQL text of names and strings, quoted as Postgres's quote_ident and quote_literal do.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// Double-quoted only where needed: not a plain lower-case word, or a word of the grammar.
std::string QuoteIdentifier(std::string_view name);
// "schema"."name", each quoted where needed.
std::string QuoteQualified(std::string_view schema, std::string_view name);
// Single-quoted; with backslashes as an E'' string.
std::string QuoteLiteral(std::string_view text);

}  // namespace sluice
