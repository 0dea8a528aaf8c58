// Whether a stored row's keys equal a batch row's: NULLs equal each other, as GROUP BY and DISTINCT
// want.
#pragma once

#include "executor/row_layout.h"

namespace sluice {

// Whether values of `type` are equal exactly if their bytes are. Not so: -0 = 0, 1.0 = 1.00, '1
// month' = '30 days', trailing blanks of char(n).
bool EqualMeansSameBytes(Oid type);

class KeyEquality {
 public:
  // The first `key_count` columns of `layout` are the keys.
  KeyEquality(const RowLayout* layout, size_t key_count);

  bool Equal(const char* stored, std::span<const Column> keys, size_t row) const {
    for (size_t c = 0; c < check_slowly_.size(); c++) {
      if (!EqualColumn(stored, c, keys[c], row)) return false;
    }
    return true;
  }

 private:
  bool EqualColumn(const char* stored, size_t column, const Column& keys, size_t row) const {
    bool stored_null = layout_->IsNull(stored, column);
    if (stored_null != keys.IsNull(row)) return false;
    if (stored_null) return true;
    const char* slot = layout_->Slot(stored, column);
    bool same = false;
    switch (compare_[column]) {
      case Compare::kFour:
        same = SameRaw<4>(slot, keys, row);
        break;
      case Compare::kEight:
        same = SameRaw<8>(slot, keys, row);
        break;
      case Compare::kView:
        same = *reinterpret_cast<const std::string_view*>(slot) == keys.At<std::string_view>(row);
        break;
      case Compare::kOther:
        break;
    }
    return same || (check_slowly_[column] && EqualSlow(stored, column, keys, row));
  }
  template <size_t width>
  static bool SameRaw(const char* slot, const Column& keys, size_t row) {
    return std::memcmp(slot, static_cast<const char*>(keys.data) + (row & keys.mask) * width,
                       width) == 0;
  }
  bool EqualSlow(const char* stored, size_t column, const Column& keys, size_t row) const;

  const RowLayout* layout_;
  std::vector<uint8_t> check_slowly_;  // different bytes may be equal all the same
  enum class Compare : uint8_t { kFour, kEight, kView, kOther };
  std::vector<Compare> compare_;
};

}  // namespace sluice
