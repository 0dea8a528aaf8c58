// Text for the client of what types/ cannot write by itself: regtype and regproc are oids whose
// text is a name in the built-in catalog.
#pragma once

#include <string>

#include "types/column.h"
#include "types/kernel.h"

namespace sluice {

// AppendText (types/codec.h), and the names of built-in types and functions. An oid that is a
// shard's own is refused by name (0A000).
void AppendClientText(const Column& from, size_t row, const SessionSettings& settings,
                      std::string* out);

}  // namespace sluice
