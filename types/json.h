// JSON texts: the check that json's input makes, and jsonb's normal form (keys by length, then bytes; the last of
// equal keys wins; numbers as numeric shows them; ": " and ", ").
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// 22P02 if `text` is not JSON.
void CheckJson(std::string_view text);
// The text that jsonb shows for it. 22P02, 22P05, 22003.
std::string NormalizeJsonb(std::string_view text);
// A JSON string with quotes and escapes, as Postgres writes it.
void AppendJsonString(std::string_view text, std::string* out);

}  // namespace sluice
