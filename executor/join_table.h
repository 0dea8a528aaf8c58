// The build side of a hash join: rows in an arena, chained from buckets by the hash of their keys.
//
// A bucket's upper 16 bits are a small filter over its chain (one bit for each value of 4 bits of
// the hash), so that most probes that find nothing never leave the bucket array.
#pragma once

#include <atomic>

#include "common/arena.h"
#include "executor/key_equality.h"
#include "executor/row_layout.h"

namespace sluice {

struct JoinRow {  // header of each stored row
  uint64_t hash;
  char* next;        // in the bucket's chain
  uint64_t matched;  // right and full joins: joined with some outer row
};

inline JoinRow* HeaderOf(char* row) {
  return reinterpret_cast<JoinRow*>(row);
}

class JoinBuckets {
 public:
  static size_t CountFor(size_t rows) { return std::bit_ceil(std::max<size_t>(rows, 16)); }

  JoinBuckets() = default;
  // `buckets`: `count` (a power of two) zeroed words, not owned.
  JoinBuckets(uint64_t* buckets, size_t count) : buckets_(buckets), mask_(count - 1) {}

  bool empty() const { return buckets_ == nullptr; }
  void Prefetch(uint64_t hash) const { __builtin_prefetch(&buckets_[hash & mask_]); }
  // The first row that may have this hash, or nullptr.
  char* Find(uint64_t hash) const {
    uint64_t bucket = buckets_[hash & mask_];
    return bucket & FilterBit(hash) ? reinterpret_cast<char*>(bucket & kPointerMask) : nullptr;
  }
  void Insert(char* row) {
    JoinRow* header = HeaderOf(row);
    uint64_t& bucket = buckets_[header->hash & mask_];
    header->next = reinterpret_cast<char*>(bucket & kPointerMask);
    bucket = (bucket & ~kPointerMask) | FilterBit(header->hash) | reinterpret_cast<uint64_t>(row);
  }
  // The same while other processes insert too.
  void InsertShared(char* row) {
    JoinRow* header = HeaderOf(row);
    std::atomic_ref<uint64_t> bucket(buckets_[header->hash & mask_]);
    uint64_t seen = bucket.load(std::memory_order_relaxed);
    uint64_t changed;
    do {
      header->next = reinterpret_cast<char*>(seen & kPointerMask);
      changed = (seen & ~kPointerMask) | FilterBit(header->hash) | reinterpret_cast<uint64_t>(row);
      // Relaxed: nobody follows a chain before the barrier that ends insertion.
    } while (!bucket.compare_exchange_weak(seen, changed, std::memory_order_relaxed));
  }

 private:
  static constexpr uint64_t kPointerMask = (uint64_t{1} << 48) - 1;
  static uint64_t FilterBit(uint64_t hash) {
    // Of all bits: within a spilled partition the upper ones are alike.
    return uint64_t{1} << (48 + ((hash * 0x9e3779b97f4a7c15) >> 60));
  }

  uint64_t* buckets_ = nullptr;
  uint64_t mask_ = 0;
};

// Rows of one process, not yet or no longer in buckets.
class JoinRows {
 public:
  JoinRows(const RowLayout* layout, BlockSource& blocks, size_t block_bytes);

  // `rows` of the batch (null: all).
  void Add(std::span<const Column> columns, const uint32_t* rows, size_t count,
           const uint64_t* hashes);
  // A copy of a row as it lies in a spill file.
  void AddStored(const char* row, uint64_t hash);

  std::span<char* const> rows() const { return rows_; }
  size_t memory_bytes() const {
    return arena_->allocated_bytes() + rows_.capacity() * sizeof(char*);
  }
  void Clear();

 private:
  const RowLayout* layout_;
  BlockSource& blocks_;
  size_t block_bytes_;
  std::unique_ptr<Arena> arena_;
  std::vector<char*> rows_;
};

}  // namespace sluice
