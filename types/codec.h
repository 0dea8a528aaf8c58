// Postgres's text and binary formats of each type, in both directions.
#pragma once

#include <string>
#include <string_view>

#include "common/arena.h"
#include "types/column.h"
#include "types/kernel.h"

namespace sluice {

// Whether this build reads and writes the binary format of `type`. Where it does not, values are
// kept and sent as text. Arrays have one if their element type has; enums (catalog/ tells which
// oids are enums) count as text: their binary format is the label.
bool HasBinaryCodec(Oid type);

// Element type of a built-in array type, or kInvalidOid; and the other way round.
Oid ElementTypeOf(Oid array_type);
Oid ArrayTypeOf(Oid element_type);

// Binary wire bytes → row `row` of `to` (data array allocated by the caller). Fixed-width types are
// copied, kBytes types become views of `bytes`. Throws 22P03 on bytes of a wrong length or content.
void DecodeBinaryValue(Oid type, std::string_view bytes, Column* to, size_t row);

// `count` values at once: at[i] points at the wire value of row i (length in lengths[i], -1 =
// NULL). The hot path of every scan; sets to->nulls only if a value is NULL (array of kBatchRows
// zeroed bytes in `nulls_buffer`).
void DecodeBinaryColumn(Oid type, const char* const* at, const int32_t* lengths, size_t count,
                        uint8_t* nulls_buffer, Column* to);

// Row `row` of `from`, which must not be NULL, appended to `out`.
void AppendBinary(const Column& from, size_t row, std::string* out);
void AppendText(const Column& from, size_t row, const SessionSettings& settings, std::string* out);

// A text-format value (a literal, a text parameter) → the binary wire format, in `arena`. typmod -1
// means none. Throws with Postgres's SQLSTATE and message for that type's input function.
std::string_view ParseText(Oid type, int32_t typmod, std::string_view text,
                           const SessionSettings& settings, Arena* arena);

// A one-row constant column (mask 0) over a wire value; `is_null` ignores `binary`.
Column MakeConstantColumn(Oid type, std::string_view binary, bool is_null, Arena* arena);

}  // namespace sluice
