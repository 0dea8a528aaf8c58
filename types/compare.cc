#include "types/compare.h"

#include <cmath>

#include "common/error.h"
#include "types/array.h"
#include "types/bpchar.h"
#include "types/codec.h"
#include "types/compare_values.h"
#include "types/datetime.h"
#include "types/numeric.h"
#include "types/object_name.h"

namespace sluice {
namespace {

using View = std::string_view;

template <typename T>
int ComparePlain(const Column& a, size_t row_a, const Column& b, size_t row_b, const Collator*) {
  return CompareValues(a.At<T>(row_a), b.At<T>(row_b));
}

int CompareTextRows(const Column& a, size_t row_a, const Column& b, size_t row_b,
                    const Collator* collation) {
  return CompareText(a.At<View>(row_a), b.At<View>(row_b), collation);
}

int CompareBpcharRows(const Column& a, size_t row_a, const Column& b, size_t row_b,
                      const Collator* collation) {
  return CompareText(TrimBpchar(a.At<View>(row_a)), TrimBpchar(b.At<View>(row_b)), collation);
}

int CompareByteRows(const Column& a, size_t row_a, const Column& b, size_t row_b, const Collator*) {
  return CompareBytes(a.At<View>(row_a), b.At<View>(row_b));
}

int CompareNumericRows(const Column& a, size_t row_a, const Column& b, size_t row_b,
                       const Collator*) {
  return CompareNumericWire(a.At<View>(row_a), b.At<View>(row_b));
}

int CompareArrayRows(const Column& a, size_t row_a, const Column& b, size_t row_b,
                     const Collator* collation) {
  return CompareArrays(a.At<View>(row_a), b.At<View>(row_b), collation);
}

}  // namespace

int CompareArrays(View a, View b, const Collator* collation) {
  ArrayReader reader_a(a), reader_b(b);
  const ArrayHeader &head_a = reader_a.header(), &head_b = reader_b.header();
  Oid type = head_a.element_type;
  CompareFn compare = FindCompare(type);
  if (compare == nullptr || PhysicalOf(type) != PhysicalOf(head_b.element_type)) {
    Throw(sqlstate::kUndefinedFunction,
          "could not identify a comparison function for type with OID {}", type);
  }
  alignas(16) char slot_a[16], slot_b[16];
  Column column_a{type, PhysicalOf(type), 0, nullptr, slot_a},
      column_b{type, PhysicalOf(type), 0, nullptr, slot_b};
  View element_a, element_b;
  bool null_a = false, null_b = false;
  while (reader_a.Next(&element_a, &null_a) && reader_b.Next(&element_b, &null_b)) {
    if (null_a || null_b) {  // NULLs are equal, and last
      if (null_a != null_b) return null_a ? 1 : -1;
      continue;
    }
    DecodeBinaryValue(type, element_a, &column_a, 0);
    DecodeBinaryValue(type, element_b, &column_b, 0);
    int order = compare(column_a, 0, column_b, 0, collation);
    if (order != 0) return order < 0 ? -1 : 1;
  }
  if (int order = CompareValues(head_a.Count(), head_b.Count())) return order;
  if (int order = CompareValues(head_a.dimensions, head_b.dimensions)) return order;
  for (int i = 0; i < head_a.dimensions; i++) {
    if (int order = CompareValues(head_a.lengths[i], head_b.lengths[i])) return order;
  }
  for (int i = 0; i < head_a.dimensions; i++) {
    if (int order = CompareValues(head_a.lower_bounds[i], head_b.lower_bounds[i])) return order;
  }
  return 0;
}

CompareFn FindCompare(Oid type) {
  switch (type) {
    case kBoolOid:
      return ComparePlain<uint8_t>;
    case kInt2Oid:
      return ComparePlain<int16_t>;
    case kInt4Oid:
    case kDateOid:
      return ComparePlain<int32_t>;
    case kInt8Oid:
    case kTimeOid:
    case kTimestampOid:
    case kTimestamptzOid:
      return ComparePlain<int64_t>;
    case kOidOid:
    case kRegclassOid:
    case kRegtypeOid:
    case kRegprocOid:
      return ComparePlain<uint32_t>;
    case kFloat4Oid:
      return ComparePlain<float>;
    case kFloat8Oid:
      return ComparePlain<double>;
    case kIntervalOid:
      return ComparePlain<Interval>;
    case kUuidOid:
      return ComparePlain<Uuid>;
    case kTextOid:
    case kVarcharOid:
    case kUnknownOid:
      return CompareTextRows;
    case kBpcharOid:
      return CompareBpcharRows;
    case kNameOid:
      return CompareTextRows;
    case kByteaOid:
    case kCharOid:
      return CompareByteRows;
    case kNumericOid:
      return CompareNumericRows;
    default:
      // Big-endian numbers: their bytes have their order.
      if (IsWireObjectName(type)) return CompareByteRows;
      break;
  }
  Oid element = ElementTypeOf(type);
  if (element != kInvalidOid && HasBinaryCodec(element) && FindCompare(element) != nullptr)
    return CompareArrayRows;
  return nullptr;
}

bool NotDistinct(const Column& a, size_t row_a, const Column& b, size_t row_b) {
  bool null_a = a.IsNull(row_a), null_b = b.IsNull(row_b);
  if (null_a || null_b) return null_a == null_b;
  switch (a.physical) {
    case Physical::kBool:
      return a.At<uint8_t>(row_a) == b.At<uint8_t>(row_b);
    case Physical::kInt2:
      return a.At<int16_t>(row_a) == b.At<int16_t>(row_b);
    case Physical::kInt4:
      return a.At<int32_t>(row_a) == b.At<int32_t>(row_b);
    case Physical::kInt8:
      return a.At<int64_t>(row_a) == b.At<int64_t>(row_b);
    case Physical::kUint4:
      return a.At<uint32_t>(row_a) == b.At<uint32_t>(row_b);
    case Physical::kFloat4:
      return CompareValues(a.At<float>(row_a), b.At<float>(row_b)) == 0;
    case Physical::kFloat8:
      return CompareValues(a.At<double>(row_a), b.At<double>(row_b)) == 0;
    case Physical::kInterval:
      return CompareValues(a.At<Interval>(row_a), b.At<Interval>(row_b)) == 0;
    case Physical::kUuid:
      return CompareValues(a.At<Uuid>(row_a), b.At<Uuid>(row_b)) == 0;
    case Physical::kBytes:
      break;
  }
  View x = a.At<View>(row_a), y = b.At<View>(row_b);
  if (a.type == kTextOid || a.type == kVarcharOid) return x == y;
  if (x == y) return true;
  if (a.type == kNumericOid) return CompareNumericWire(x, y) == 0;
  if (a.type == kBpcharOid) return TrimBpchar(x) == TrimBpchar(y);
  if (ElementTypeOf(a.type) != kInvalidOid && HasBinaryCodec(a.type))
    return CompareArrays(x, y, nullptr) == 0;
  return false;
}

}  // namespace sluice
