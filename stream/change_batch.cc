#include "stream/change_batch.h"

#include "common/assert.h"

namespace sluice {

void ChangeBatch::Add(ChangeKind kind, std::span<const WireValue> old_row,
                      std::span<const WireValue> new_row) {
  SLUICE_ASSERT(old_row.empty() || old_row.size() == column_count_);
  SLUICE_ASSERT(new_row.empty() == (kind == ChangeKind::kDelete));
  SLUICE_ASSERT(kind != ChangeKind::kDelete || !old_row.empty());
  kinds_.push_back(kind);
  old_.push_back(old_row.empty() ? nullptr : old_row.data());
  new_.push_back(new_row.empty() ? nullptr : new_row.data());
}

void ChangeBatch::Clear() {
  kinds_.clear();
  old_.clear();
  new_.clear();
}

}  // namespace sluice
