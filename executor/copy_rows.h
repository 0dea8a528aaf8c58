// Rows as COPY data for a shard: binary where every column has a codec here, else text.
#pragma once

#include <string>
#include <string_view>

#include "types/column.h"
#include "types/kernel.h"

namespace sluice {

// Row `row` of the columns. A value whose type has no codec is sent as it is: its text is an enum's
// binary format.
void AppendCopyBinaryRow(std::span<const Column> columns, size_t row, std::string* out);
void AppendCopyTextRow(std::span<const Column> columns, size_t row, const SessionSettings& settings,
                       std::string* out);

}  // namespace sluice
