// Length coercions of the character types. typmod is the length plus 4; below 4 there is no limit.
#pragma once

#include <string_view>

#include "common/arena.h"

namespace sluice {

// 22001 if characters other than blanks would be lost, unless `explicit_cast`. Views of `text`.
std::string_view CoerceVarchar(std::string_view text, int32_t typmod, bool explicit_cast);
// Likewise, padded with blanks.
std::string_view CoerceBpchar(std::string_view text, int32_t typmod, bool explicit_cast,
                              Arena* arena);

}  // namespace sluice
