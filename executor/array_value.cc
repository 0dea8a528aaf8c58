#include "executor/array_value.h"

#include "common/bytes.h"
#include "common/error.h"
#include "types/codec.h"

namespace sluice {
namespace {

constexpr int32_t kDimensionsMax = 6;  // MAXDIM

[[noreturn]] void Damaged() {
  Throw(sqlstate::kInvalidBinaryRepresentation, "invalid array in binary format");
}

int32_t TakeInt(std::string_view* from) {
  if (from->size() < 4) Damaged();
  int32_t value = LoadBig<int32_t>(from->data());
  from->remove_prefix(4);
  return value;
}

void AppendInt(int32_t value, std::string* out) {
  char bytes[4];
  StoreBig(bytes, value);
  out->append(bytes, 4);
}

}  // namespace

size_t ArrayShape::element_count() const {
  if (dimensions.empty()) return 0;
  size_t count = 1;
  for (const Dimension& dimension : dimensions) count *= static_cast<size_t>(dimension.size);
  return count;
}

bool ArrayShape::operator==(const ArrayShape& other) const {
  return std::equal(dimensions.begin(), dimensions.end(), other.dimensions.begin(),
                    other.dimensions.end(), [](const Dimension& a, const Dimension& b) {
                      return a.size == b.size && a.lower_bound == b.lower_bound;
                    });
}

Column DecodeArray(std::string_view wire, Oid element_type, Arena* arena, ArrayShape* shape) {
  int32_t dimension_count = TakeInt(&wire);
  TakeInt(&wire);  // has nulls: the lengths say so too
  TakeInt(&wire);  // element type: of the shard, which may differ for user types
  if (dimension_count < 0 || dimension_count > kDimensionsMax) Damaged();
  shape->dimensions.clear();
  size_t count = dimension_count > 0 ? 1 : 0;
  for (int32_t i = 0; i < dimension_count; i++) {
    int32_t size = TakeInt(&wire);
    int32_t lower_bound = TakeInt(&wire);
    if (size < 0) Damaged();
    shape->dimensions.push_back({size, lower_bound});
    count *= static_cast<size_t>(size);
    if (count > wire.size() / 4) Damaged();  // each element has at least its length
  }
  Column column;
  column.type = element_type;
  column.physical = PhysicalOf(element_type);
  column.data = arena->Allocate(std::max<size_t>(count, 1) * WidthOf(column.physical));
  for (size_t i = 0; i < count; i++) {
    int32_t length = TakeInt(&wire);
    if (length < 0) {
      if (column.nulls == nullptr) column.nulls = arena->NewArray<uint8_t>(count).data();
      column.nulls[i] = 1;
      continue;
    }
    if (static_cast<size_t>(length) > wire.size()) Damaged();
    DecodeBinaryValue(element_type, wire.substr(0, static_cast<size_t>(length)), &column, i);
    wire.remove_prefix(static_cast<size_t>(length));
  }
  return column;
}

void AppendArrayHead(const ArrayShape& shape, Oid element_type, bool has_nulls, std::string* out) {
  if (shape.dimensions.size() > static_cast<size_t>(kDimensionsMax))
    Throw(sqlstate::kProgramLimitExceeded,
          "number of array dimensions ({}) exceeds the maximum allowed ({})",
          shape.dimensions.size(), kDimensionsMax);
  AppendInt(static_cast<int32_t>(shape.dimensions.size()), out);
  AppendInt(has_nulls ? 1 : 0, out);
  AppendInt(static_cast<int32_t>(element_type), out);
  for (const ArrayShape::Dimension& dimension : shape.dimensions) {
    AppendInt(dimension.size, out);
    AppendInt(dimension.lower_bound, out);
  }
}

void AppendArrayElement(const Column& from, size_t row, std::string* out) {
  if (from.IsNull(row)) {
    AppendInt(-1, out);
    return;
  }
  size_t head = out->size();
  out->append(4, 0);
  AppendBinary(from, row, out);
  StoreBig(out->data() + head, static_cast<int32_t>(out->size() - head - 4));
}

}  // namespace sluice
