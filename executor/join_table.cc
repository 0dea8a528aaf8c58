#include "executor/join_table.h"

namespace sluice {

JoinRows::JoinRows(const RowLayout* layout, BlockSource& blocks, size_t block_bytes)
    : layout_(layout), blocks_(blocks), block_bytes_(block_bytes) {
  SLUICE_ASSERT(layout->header_bytes() == sizeof(JoinRow));
  Clear();
}

void JoinRows::Add(std::span<const Column> columns, const uint32_t* rows, size_t count,
                   const uint64_t* hashes) {
  size_t first = rows_.size();
  rows_.resize(first + count);
  layout_->Store(columns, rows, count, arena_.get(), rows_.data() + first);
  for (size_t i = 0; i < count; i++) {
    *HeaderOf(rows_[first + i]) = {hashes[rows == nullptr ? i : rows[i]], nullptr, 0};
  }
}

void JoinRows::AddStored(const char* row, uint64_t hash) {
  size_t bytes = layout_->RowBytes(row);
  char* copy = static_cast<char*>(arena_->Allocate(bytes, 8));
  std::memcpy(copy, row, bytes);
  layout_->Relocate(copy);
  *HeaderOf(copy) = {hash, nullptr, 0};
  rows_.push_back(copy);
}

void JoinRows::Clear() {
  std::vector<char*>().swap(rows_);
  arena_ = std::make_unique<Arena>(blocks_, block_bytes_);
}

}  // namespace sluice
