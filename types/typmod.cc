#include "types/typmod.h"

#include "common/error.h"
#include "types/utf8.h"

namespace sluice {
namespace {

std::string_view CutTo(std::string_view text, size_t characters, bool explicit_cast,
                       const char* type_name) {
  size_t end = Utf8Offset(text, characters);
  if (end < text.size() && !explicit_cast &&
      text.find_first_not_of(' ', end) != std::string_view::npos) {
    Throw(sqlstate::kStringDataRightTruncation, "value too long for type {}({})", type_name,
          characters);
  }
  return text.substr(0, end);
}

}  // namespace

std::string_view CoerceVarchar(std::string_view text, int32_t typmod, bool explicit_cast) {
  if (typmod < 4) return text;
  auto characters = static_cast<size_t>(typmod - 4);
  if (text.size() <= characters) return text;
  return CutTo(text, characters, explicit_cast, "character varying");
}

std::string_view CoerceBpchar(std::string_view text, int32_t typmod, bool explicit_cast,
                              Arena* arena) {
  if (typmod < 4) return text;
  auto characters = static_cast<size_t>(typmod - 4);
  size_t count = Utf8Count(text);
  if (count == characters) return text;
  if (count > characters) return CutTo(text, characters, explicit_cast, "character");
  size_t size = text.size() + (characters - count);
  char* to = static_cast<char*>(arena->Allocate(size, 1));
  std::memcpy(to, text.data(), text.size());
  std::memset(to + text.size(), ' ', characters - count);
  return {to, size};
}

}  // namespace sluice
