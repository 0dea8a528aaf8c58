#include "executor/key_equality.h"

#include "types/compare.h"

namespace sluice {

bool EqualMeansSameBytes(Oid type) {
  switch (type) {
    case kBoolOid:
    case kInt2Oid:
    case kInt4Oid:
    case kInt8Oid:
    case kOidOid:
    case kRegclassOid:
    case kRegtypeOid:
    case kRegprocOid:
    case kXidOid:
    case kCidOid:
    case kDateOid:
    case kTimeOid:
    case kTimestampOid:
    case kTimestamptzOid:
    case kUuidOid:
    case kTextOid:
    case kVarcharOid:
    case kNameOid:
    case kCharOid:
    case kByteaOid:
      return true;
    default:
      return false;
  }
}

KeyEquality::KeyEquality(const RowLayout* layout, size_t key_count) : layout_(layout) {
  for (size_t c = 0; c < key_count; c++) {
    Oid type = layout->type(c);
    Physical physical = PhysicalOf(type);
    size_t width = WidthOf(physical);
    Compare compare = physical == Physical::kBytes ? Compare::kView
                      : width == 4                 ? Compare::kFour
                      : width == 8                 ? Compare::kEight
                                                   : Compare::kOther;
    compare_.push_back(compare);
    check_slowly_.push_back(compare == Compare::kOther || !EqualMeansSameBytes(type));
  }
}

bool KeyEquality::EqualSlow(const char* stored, size_t column, const Column& keys,
                            size_t row) const {
  return NotDistinct(layout_->View(stored, column), 0, keys, row);
}

}  // namespace sluice
