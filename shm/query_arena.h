// Memory of one query, visible to every process at the same address: taken from the sparse part of
// the mapping in extents, and hole-punched when given back. A backend owns the arena and frees it
// when no worker and no io worker uses it any more; workers add to it through a SharedBlocks of
// their own.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/arena.h"

namespace sluice {

inline constexpr size_t kExtentBytes = 256 * 1024;

// Runs of extents; first fit over a bitmap under a spin lock (a holder that dies takes the server
// down by the crash rule, so it cannot stay locked).
struct ExtentMap {
  char* base;
  uint32_t extent_count;
  // E1: 0 free, 1 held: taken by exchange (acquire), given back by store (release). Guards the
  // fields below but `used_bytes`.
  std::atomic<uint32_t> lock;
  uint32_t next_search;  // where the last search ended
  uint64_t* used;        // bit an extent
  // Free extents that still have their memory: a few are kept, so that small queries one after the
  // other do not pay for allocating and punching.
  uint64_t* warm;
  uint32_t warm_count;
  // E2: statistics only (relaxed).
  std::atomic<uint64_t> used_bytes;
};
inline constexpr uint32_t kWarmExtentsMax = 64;

// Throws 53200 where none is left. `size_bytes` is rounded up to extents.
char* AllocateExtents(size_t size_bytes);
void FreeExtents(char* data, size_t size_bytes);

// Blocks for an Arena; Acquire gives extents.
class SharedBlocks : public BlockSource {
 public:
  Block Acquire(size_t size_bytes_min) override;
  void Release(Block block) override;
};

// A list of extents that workers allocate and the query's owner frees: hash tables, batches.
// X1: pushed by compare-and-swap (release); walked by the owner after all participants are done.
struct SharedExtentList {
  struct Node {
    Node* next;
    size_t size_bytes;
  };
  std::atomic<Node*> head;
  std::atomic<uint64_t> bytes;
};
class SharedListBlocks : public BlockSource {
 public:
  explicit SharedListBlocks(SharedExtentList* list) : list_(list) {}
  Block Acquire(size_t size_bytes_min) override;
  void Release(Block) override {}  // the owner frees the list

 private:
  SharedExtentList* list_;
};
void FreeExtentList(SharedExtentList* list);

}  // namespace sluice
