// The net change of one stored relation: rows as stored bytes with weights, equal ones added up.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "common/arena.h"

namespace sluice {

class DeltaBuffer {
 public:
  struct Entry {
    std::string_view key;  // whole, not cut (StoredKey)
    std::string_view row;  // RowCodec's
    int64_t weight;
  };

  void Add(std::string_view key, std::string_view row, int64_t weight);
  // By stored key, what goes before what comes. Entries of weight 0 are gone.
  std::span<const Entry> Settle();
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  size_t memory_bytes() const { return arena_.allocated_bytes(); }
  void Clear();

 private:
  void GrowSlots();
  // Puts entries from `first` into the slots.
  void Index(size_t first);
  void Append(std::string_view key, std::string_view row, int64_t weight);

  Arena arena_{HeapBlocks(), 256 * 1024};
  std::vector<Entry> entries_;
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> slots_;  // entry index + 1; 0: free. A power of two.
  size_t indexed_ = 0;           // so many entries, from the first, are in the slots
  // Keys have come in order so far: an equal row can only be among the last ones, and nothing needs
  // to be in the slots.
  bool ascending_ = true;
  bool settled_ = false;
};

}  // namespace sluice
