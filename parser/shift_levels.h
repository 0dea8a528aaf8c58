#pragma once

#include "parser/query.h"

namespace sluice {

// `delta` queries are being put around `query`: its references to queries above it, which it must
// own (they are changed in place), skip them.
void ShiftLevels(Query& query, int delta);

}  // namespace sluice
