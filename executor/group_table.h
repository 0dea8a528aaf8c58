// Finds the group of each row of a batch: an open-addressing hash table from keys to dense group
// numbers (0, 1, …), the keys themselves kept as rows in an arena. NULL is a key like any other.
#pragma once

#include "executor/key_equality.h"
#include "executor/packed_key.h"
#include "executor/row_layout.h"

namespace sluice {

inline constexpr uint32_t kNoGroup = ~uint32_t{0};

class GroupTable {
 public:
  explicit GroupTable(std::span<const Oid> key_types);

  // groups[i] for rows 0..rows. With `admit`, unknown keys become new groups; without, they get
  // kNoGroup. hashes[i] (the tag by which a spilled row is partitioned) is set for all rows.
  void Find(std::span<const Column> keys, size_t rows, bool admit, uint32_t* groups,
            uint64_t* hashes);

  size_t group_count() const { return group_rows_.size(); }
  // Key column `column` of groups first…first+count.
  void LoadKeys(size_t first, size_t count, size_t column, ColumnBuffer* to) const {
    layout_.Load(group_rows_.data() + first, count, column, to);
  }
  size_t memory_bytes() const;
  void Clear();

 private:
  struct PackedSlot {
    PackedKey key;
    uint64_t group_plus_1 = 0;  // 0: free
  };
  struct Slot {
    uint32_t hash = 0;  // low half
    uint32_t group_plus_1 = 0;
  };

  void FindPacked(std::span<const Column> keys, size_t rows, bool admit, uint32_t* groups,
                  uint64_t* hashes);
  // Rows in `list`, whose hashes are set.
  void FindGeneric(std::span<const Column> keys, const uint32_t* list, size_t count, bool admit,
                   uint32_t* groups, const uint64_t* hashes);
  void StoreNewGroups(std::span<const Column> keys, const uint32_t* rows, size_t count);
  void GrowPacked(size_t more);
  void GrowGeneric(size_t more);

  RowLayout layout_;
  KeyEquality equality_;
  std::unique_ptr<KeyPacker> packer_;
  Arena arena_;
  std::vector<char*> group_rows_;

  std::vector<PackedSlot> packed_slots_;
  size_t packed_count_ = 0;
  std::vector<Slot> slots_;
  size_t generic_count_ = 0;

  // Scratch of one Find.
  std::unique_ptr<PackedKey[]> packed_;
  std::unique_ptr<uint8_t[]> too_long_;
  std::vector<uint32_t> list_;
};

}  // namespace sluice
