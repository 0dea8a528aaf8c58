// SQLSTATEs of window functions and grouping sets; the others are in common/sqlstate.h.
#pragma once

#include "common/sqlstate.h"

namespace sluice::sqlstate {

inline constexpr SqlState kNullValueNotAllowed = MakeSqlState("22004");
inline constexpr SqlState kInvalidPrecedingOrFollowingSize = MakeSqlState("22013");
inline constexpr SqlState kInvalidArgumentForNtile = MakeSqlState("22014");
inline constexpr SqlState kInvalidArgumentForNthValue = MakeSqlState("22016");
inline constexpr SqlState kTooManyColumns = MakeSqlState("54011");
inline constexpr SqlState kTooManyArguments = MakeSqlState("54023");

}  // namespace sluice::sqlstate
