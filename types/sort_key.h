// Text as bytes whose order is a collation's.
#pragma once

#include <string>
#include <string_view>

#include "types/collation.h"

namespace sluice {

// memcmp of two keys is the locale's order of the texts; texts that it does not tell apart have the
// same key (Collator::Compare then goes by bytes). A C collation's key is the text.
void AppendSortKey(const Collator& collator, std::string_view text, std::string* out);

}  // namespace sluice
