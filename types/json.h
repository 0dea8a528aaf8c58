// JSON texts: the check that json's input makes, and jsonb's normal form (keys by length, then
// bytes; the last of equal keys wins; numbers as numeric shows them; ": " and ", ").
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// 22P02 if `text` is not JSON.
void CheckJson(std::string_view text);
// The text that jsonb shows for it. 22P02, 22P05, 22003.
std::string NormalizeJsonb(std::string_view text);
// A JSON string with quotes and escapes, as Postgres writes it; and its content.
void AppendJsonString(std::string_view text, std::string* out);
std::string DecodeJsonString(std::string_view quoted);

// --- looking into texts that were checked ---
enum class JsonKind : uint8_t { kObject, kArray, kString, kNumber, kBoolean, kNull };
JsonKind JsonKindOf(std::string_view text);
// The member's value, the last one of that key; the element, counted from the end if negative.
// Views of `text`; false if there is none.
bool FindJsonMember(std::string_view text, std::string_view key, std::string_view* value);
bool FindJsonElement(std::string_view text, int64_t index, std::string_view* value);
int64_t JsonArrayLength(std::string_view text);  // REQUIRES: an array

}  // namespace sluice
