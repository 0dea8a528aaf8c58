// Arrays in Postgres's binary format: int32 dimensions, has-null flag, element type; length and
// lower bound of each dimension; then each element as int32 length (-1 = NULL) and its bytes.
#pragma once

#include <string>
#include <string_view>

#include "common/arena.h"
#include "types/kernel.h"
#include "types/oid.h"

namespace sluice {

inline constexpr int kArrayDimensionsMax = 6;

struct ArrayHeader {
  int dimensions = 0;
  Oid element_type = kInvalidOid;
  int32_t lengths[kArrayDimensionsMax] = {};
  int32_t lower_bounds[kArrayDimensionsMax] = {};

  int64_t Count() const;  // of elements
};

// Walks the elements in storage order. The bytes must have passed CheckArrayWire.
class ArrayReader {
 public:
  explicit ArrayReader(std::string_view wire);
  const ArrayHeader& header() const { return header_; }
  // False at the end. `element` is unspecified for NULL.
  bool Next(std::string_view* element, bool* is_null);

 private:
  ArrayHeader header_;
  std::string_view rest_;
};

// 22P03 on bytes that are no array of that element type; elements are checked too.
void CheckArrayWire(Oid element_type, std::string_view wire);

void AppendArrayHeader(const ArrayHeader& header, bool has_null, std::string* out);
void AppendArrayElement(std::string_view element, bool is_null, std::string* out);

void AppendArrayText(std::string_view wire, const SessionSettings& settings, std::string* out);
std::string_view ParseArray(Oid element_type, int32_t typmod, std::string_view text,
                            const SessionSettings& settings, Arena* arena);

}  // namespace sluice
