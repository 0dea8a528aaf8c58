// Checks of wire values that came from outside, for the codecs.
#pragma once

#include <string_view>

#include "types/oid.h"

namespace sluice {

// 22P03 unless `bytes` is a well-formed wire value of the type.
void CheckBinaryValue(Oid type, std::string_view bytes);

}  // namespace sluice
