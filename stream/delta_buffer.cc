#include "stream/delta_buffer.h"

#include <algorithm>

#include "stream/key_encoding.h"
#include "types/hash.h"

namespace sluice {

void DeltaBuffer::Append(std::string_view key, std::string_view row, int64_t weight) {
  // Of a keyless relation the row is the end of its key: one copy serves both.
  bool inside = row.size() <= key.size() && key.ends_with(row);
  std::string_view own_key = arena_.CopyString(key);
  std::string_view own_row =
      inside ? own_key.substr(key.size() - row.size()) : arena_.CopyString(row);
  entries_.push_back({own_key, own_row, weight});
}

void DeltaBuffer::Add(std::string_view key, std::string_view row, int64_t weight) {
  if (weight == 0) return;
  settled_ = false;
  if (ascending_) {
    int order = entries_.empty() ? 1 : key.compare(entries_.back().key);
    for (size_t i = entries_.size(); order == 0 && i > 0 && entries_[i - 1].key == key; i--)
      if (entries_[i - 1].row == row) {
        entries_[i - 1].weight += weight;
        return;
      }
    if (order >= 0) return Append(key, row, weight);
    ascending_ = false;
  }
  if ((entries_.size() + 1) * 2 > slots_.size())
    GrowSlots();
  else if (indexed_ < entries_.size())
    Index(indexed_);
  uint64_t hash = HashCombine(HashBytes(key), HashBytes(row));
  size_t slot = hash & (slots_.size() - 1);
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    size_t i = slots_[slot] - 1;
    if (hashes_[i] == hash && entries_[i].key == key && entries_[i].row == row) {
      entries_[i].weight += weight;
      return;
    }
  }
  Append(key, row, weight);
  slots_[slot] = static_cast<uint32_t>(entries_.size());
  hashes_.push_back(hash);
  indexed_ = entries_.size();
}

void DeltaBuffer::Index(size_t first) {
  indexed_ = entries_.size();
  for (size_t i = first; i < entries_.size(); i++) {
    if (i >= hashes_.size())
      hashes_.push_back(HashCombine(HashBytes(entries_[i].key), HashBytes(entries_[i].row)));
    size_t slot = hashes_[i] & (slots_.size() - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

void DeltaBuffer::GrowSlots() {
  size_t size = std::max<size_t>(64, slots_.size());
  while ((entries_.size() + 1) * 2 > size) size *= 2;
  slots_.assign(size, 0);
  Index(0);
}

std::span<const DeltaBuffer::Entry> DeltaBuffer::Settle() {
  if (settled_) return entries_;
  std::erase_if(entries_, [](const Entry& entry) { return entry.weight == 0; });
  // Positions move: what was indexed is no more.
  hashes_.clear();
  if (indexed_ > 0) std::fill(slots_.begin(), slots_.end(), 0);
  indexed_ = 0;
  auto before = [](const Entry& a, const Entry& b) {
    if (IsLongKey(a.key) || IsLongKey(b.key)) {
      std::string buffer_a, buffer_b;
      std::string_view stored_a = StoredKey(a.key, &buffer_a),
                       stored_b = StoredKey(b.key, &buffer_b);
      if (stored_a != stored_b) return stored_a < stored_b;
      return a.weight < b.weight;
    }
    int order = a.key.compare(b.key);
    return order != 0 ? order < 0 : a.weight < b.weight;
  };
  if (!std::is_sorted(entries_.begin(), entries_.end(), before))
    std::sort(entries_.begin(), entries_.end(), before);
  settled_ = true;
  return entries_;
}

void DeltaBuffer::Clear() {
  entries_.clear();
  hashes_.clear();
  if (slots_.size() > 1 << 16) slots_.clear();
  if (indexed_ > 0) std::fill(slots_.begin(), slots_.end(), 0);
  indexed_ = 0;
  arena_.Reset();
  ascending_ = true;
  settled_ = false;
}

}  // namespace sluice
