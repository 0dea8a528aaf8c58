#include "stream/change_batch.h"

#include "common/assert.h"

namespace sluice {

void ChangeBatch::Add(ChangeKind kind, std::span<const WireValue> old_row,
                      std::span<const WireValue> new_row) {
  SLUICE_ASSERT(old_row.empty() || old_row.size() == column_count_);
  SLUICE_ASSERT(new_row.empty() == (kind == ChangeKind::kDelete));
  SLUICE_ASSERT(kind != ChangeKind::kDelete || !old_row.empty());
  auto append = [this](std::span<const WireValue> row) {
    if (row.empty()) return kNone;
    auto first = static_cast<uint32_t>(values_.size());
    values_.insert(values_.end(), row.begin(), row.end());
    return first;
  };
  kinds_.push_back(kind);
  old_.push_back(append(old_row));
  new_.push_back(append(new_row));
}

void ChangeBatch::Clear() {
  kinds_.clear();
  old_.clear();
  new_.clear();
  values_.clear();
}

}  // namespace sluice
