// Text formats of machine numbers, bool, "char", bytea and uuid. Parsers throw as the types' input
// functions do.
#pragma once

#include <string>
#include <string_view>

#include "types/column.h"

namespace sluice {

int64_t ParseInteger(std::string_view text, int64_t least, int64_t most, const char* type_name);
uint32_t ParseOid(std::string_view text, const char* type_name);
double ParseDouble(std::string_view text);
float ParseFloat(std::string_view text);
bool ParseBool(std::string_view text);
Uuid ParseUuid(std::string_view text);
char ParseChar(std::string_view text);  // "char": one byte, or \ooo
std::string ParseBytea(std::string_view text);

void AppendInteger(int64_t value, std::string* out);
void AppendDouble(double value, int extra_float_digits, std::string* out);
void AppendFloat(float value, int extra_float_digits, std::string* out);
void AppendCharText(char c, std::string* out);
void AppendUuid(const Uuid& uuid, std::string* out);
void AppendBytea(std::string_view bytes, bool escape, std::string* out);

}  // namespace sluice
