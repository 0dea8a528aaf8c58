#include "executor/group_table.h"

#include "types/compare.h"

namespace sluice {
namespace {

constexpr size_t kSlotsMin = 1024;
constexpr size_t kPrefetchRows = 16;
constexpr size_t kArenaBlockBytes = 32 * 1024;

// At most half full with `count` keys.
size_t SlotsFor(size_t count) {
  return std::max(kSlotsMin, std::bit_ceil(count * 2));
}

}  // namespace

GroupTable::GroupTable(std::span<const Oid> key_types)
    : layout_(key_types, 0),
      equality_(&layout_, key_types.size()),
      arena_(HeapBlocks(), kArenaBlockBytes),
      list_(kBatchRows) {
  if (KeyPacker::CanPack(key_types)) {
    packer_ = std::make_unique<KeyPacker>(key_types);
    packed_ = std::make_unique<PackedKey[]>(kBatchRows);
    too_long_ = std::make_unique<uint8_t[]>(kBatchRows);
  }
}

void GroupTable::Find(std::span<const Column> keys, size_t rows, bool admit, uint32_t* groups,
                      uint64_t* hashes) {
  SLUICE_ASSERT(rows <= kBatchRows);
  if (packer_ != nullptr) {
    FindPacked(keys, rows, admit, groups, hashes);
    return;
  }
  std::memset(hashes, 0, sizeof(uint64_t) * rows);
  for (const Column& key : keys.first(layout_.column_count())) HashColumn(key, rows, hashes);
  for (size_t i = 0; i < rows; i++) list_[i] = static_cast<uint32_t>(i);
  FindGeneric(keys, list_.data(), rows, admit, groups, hashes);
}

void GroupTable::FindPacked(std::span<const Column> keys, size_t rows, bool admit, uint32_t* groups,
                            uint64_t* hashes) {
  size_t long_count = packer_->Pack(keys, rows, packed_.get(), too_long_.get());
  for (size_t i = 0; i < rows; i++) hashes[i] = HashPackedKey(packed_[i]);
  if (admit) GrowPacked(rows);
  if (packed_slots_.empty()) packed_slots_.resize(kSlotsMin);
  size_t mask = packed_slots_.size() - 1;
  PackedSlot* slots = packed_slots_.data();
  uint32_t new_rows[kBatchRows];
  size_t new_count = 0;
  size_t group_count = group_rows_.size();
  for (size_t i = 0; i < rows; i++) {
    if (i + kPrefetchRows < rows) __builtin_prefetch(&slots[hashes[i + kPrefetchRows] & mask]);
    if (long_count > 0 && too_long_[i]) continue;
    const PackedKey key = packed_[i];
    size_t at = hashes[i] & mask;
    while (slots[at].group_plus_1 != 0 && !(slots[at].key == key)) at = (at + 1) & mask;
    if (slots[at].group_plus_1 != 0) {
      groups[i] = static_cast<uint32_t>(slots[at].group_plus_1 - 1);
    } else if (admit) {
      groups[i] = static_cast<uint32_t>(group_count + new_count);
      slots[at] = {key, uint64_t{groups[i]} + 1};
      new_rows[new_count++] = static_cast<uint32_t>(i);
    } else {
      groups[i] = kNoGroup;
    }
  }
  packed_count_ += new_count;
  StoreNewGroups(keys, new_rows, new_count);
  if (long_count == 0) return;
  size_t count = 0;
  for (size_t i = 0; i < rows; i++) {
    if (too_long_[i]) list_[count++] = static_cast<uint32_t>(i);
  }
  // The packed hash of a row too long to pack says nothing; hash all, keep the ones wanted.
  uint64_t generic[kBatchRows];
  std::memset(generic, 0, sizeof(uint64_t) * rows);
  for (const Column& key : keys.first(layout_.column_count())) HashColumn(key, rows, generic);
  for (size_t i = 0; i < count; i++) hashes[list_[i]] = generic[list_[i]];
  FindGeneric(keys, list_.data(), count, admit, groups, hashes);
}

void GroupTable::FindGeneric(std::span<const Column> keys, const uint32_t* list, size_t count,
                             bool admit, uint32_t* groups, const uint64_t* hashes) {
  if (admit) GrowGeneric(count);
  if (slots_.empty()) slots_.resize(kSlotsMin);
  size_t mask = slots_.size() - 1;
  Slot* slots = slots_.data();
  for (size_t i = 0; i < count; i++) {
    // Three steps ahead of each other: the slot, the row that it names, the comparison.
    if (i + 2 * kPrefetchRows < count) {
      __builtin_prefetch(&slots[hashes[list[i + 2 * kPrefetchRows]] & mask]);
    }
    if (i + kPrefetchRows < count) {
      uint32_t ahead = slots[hashes[list[i + kPrefetchRows]] & mask].group_plus_1;
      if (ahead != 0) __builtin_prefetch(group_rows_[ahead - 1]);
    }
    uint32_t row = list[i];
    uint32_t hash = static_cast<uint32_t>(hashes[row]);
    size_t at = hash & mask;
    while (slots[at].group_plus_1 != 0 &&
           !(slots[at].hash == hash &&
             equality_.Equal(group_rows_[slots[at].group_plus_1 - 1], keys, row))) {
      at = (at + 1) & mask;
    }
    if (slots[at].group_plus_1 != 0) {
      groups[row] = slots[at].group_plus_1 - 1;
    } else if (admit) {
      groups[row] = static_cast<uint32_t>(group_rows_.size());
      slots[at] = {hash, groups[row] + 1};
      generic_count_++;
      StoreNewGroups(keys, &row, 1);
    } else {
      groups[row] = kNoGroup;
    }
  }
}

void GroupTable::StoreNewGroups(std::span<const Column> keys, const uint32_t* rows, size_t count) {
  if (count == 0) return;
  size_t first = group_rows_.size();
  SLUICE_ASSERT(first + count < kNoGroup);
  group_rows_.resize(first + count);
  layout_.Store(keys, rows, count, &arena_, group_rows_.data() + first);
}

void GroupTable::GrowPacked(size_t more) {
  size_t wanted = SlotsFor(packed_count_ + more);
  if (packed_slots_.size() >= wanted) return;
  std::vector<PackedSlot> old(wanted);
  old.swap(packed_slots_);
  size_t mask = wanted - 1;
  for (const PackedSlot& slot : old) {
    if (slot.group_plus_1 == 0) continue;
    size_t at = HashPackedKey(slot.key) & mask;
    while (packed_slots_[at].group_plus_1 != 0) at = (at + 1) & mask;
    packed_slots_[at] = slot;
  }
}

void GroupTable::GrowGeneric(size_t more) {
  size_t wanted = SlotsFor(generic_count_ + more);
  if (slots_.size() >= wanted) return;
  std::vector<Slot> old(wanted);
  old.swap(slots_);
  size_t mask = wanted - 1;
  for (const Slot& slot : old) {
    if (slot.group_plus_1 == 0) continue;
    size_t at = slot.hash & mask;
    while (slots_[at].group_plus_1 != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

size_t GroupTable::memory_bytes() const {
  return arena_.allocated_bytes() + group_rows_.capacity() * sizeof(char*) +
         packed_slots_.capacity() * sizeof(PackedSlot) + slots_.capacity() * sizeof(Slot);
}

void GroupTable::Clear() {
  arena_.Reset();
  group_rows_.clear();
  packed_slots_.clear();
  slots_.clear();
  packed_slots_.shrink_to_fit();
  slots_.shrink_to_fit();
  packed_count_ = generic_count_ = 0;
}

}  // namespace sluice
