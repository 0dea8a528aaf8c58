#include "shm/query_arena.h"

#include <cerrno>
#include <fcntl.h>
#include <sched.h>

#include "common/assert.h"
#include "common/error.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

// E1. Held for a bitmap search, never across a system call but the yield of those who wait.
class ExtentLock {
 public:
  explicit ExtentLock(ExtentMap* map) : map_(map) {
    while (map_->lock.exchange(1, std::memory_order_acquire) != 0) sched_yield();
  }
  ~ExtentLock() { map_->lock.store(0, std::memory_order_release); }

 private:
  ExtentMap* map_;
};

bool TestBit(const uint64_t* bits, uint32_t at) {
  return bits[at / 64] >> (at % 64) & 1;
}
void SetBit(uint64_t* bits, uint32_t at) {
  bits[at / 64] |= uint64_t{1} << (at % 64);
}
void ClearBit(uint64_t* bits, uint32_t at) {
  bits[at / 64] &= ~(uint64_t{1} << (at % 64));
}

constexpr uint32_t kNone = ~uint32_t{0};

// The first run of `count` free extents within [from, to).
uint32_t FindRun(const ExtentMap& map, uint32_t from, uint32_t to, uint32_t count) {
  uint32_t run = 0;
  for (uint32_t at = from; at < to; at++) {
    if (run == 0 && at % 64 == 0) {  // whole words of used extents at once
      while (at + 64 <= to && map.used[at / 64] == ~uint64_t{0}) at += 64;
      if (at >= to) break;
    }
    run = TestBit(map.used, at) ? 0 : run + 1;
    if (run == count) return at + 1 - count;
  }
  return kNone;
}

// A single free extent that still has its memory.
uint32_t FindWarm(const ExtentMap& map) {
  for (uint32_t word = 0; word * 64 < map.extent_count; word++)
    if (map.warm[word] != 0) return word * 64 + std::countr_zero(map.warm[word]);
  return kNone;
}

// Takes `count` extents out of the map, or kNone. `*warm`: they have their memory.
uint32_t TakeRun(ExtentMap* map, uint32_t count, bool* warm) {
  ExtentLock lock(map);
  if (count == 1 && map->warm_count > 0) {
    uint32_t at = FindWarm(*map);
    SLUICE_ASSERT(at != kNone && !TestBit(map->used, at));
    ClearBit(map->warm, at);
    map->warm_count--;
    SetBit(map->used, at);
    *warm = true;
    return at;
  }
  uint32_t at = FindRun(*map, map->next_search, map->extent_count, count);
  if (at == kNone) at = FindRun(*map, 0, map->extent_count, count);
  if (at == kNone) return kNone;
  for (uint32_t i = at; i < at + count; i++) {
    SetBit(map->used, i);
    if (!TestBit(map->warm, i)) continue;
    ClearBit(map->warm, i);
    map->warm_count--;
  }
  map->next_search = at + count;
  *warm = false;
  return at;
}

uint32_t ExtentsFor(size_t size_bytes) {
  return static_cast<uint32_t>((size_bytes + kExtentBytes - 1) / kExtentBytes);
}

[[noreturn]] void OutOfMemory(size_t size_bytes) {
  throw QueryError(
      MakeError(sqlstate::kOutOfMemory, "out of shared memory")
          .Detail(fmt::format("Failed on request of size {} in the query arena.", size_bytes)));
}

}  // namespace

char* AllocateExtents(size_t size_bytes) {
  ExtentMap* map = &shared_memory->extents;
  if (size_bytes > size_t{map->extent_count} * kExtentBytes) OutOfMemory(size_bytes);
  uint32_t count = std::max(ExtentsFor(size_bytes), 1u);
  bool warm = false;
  uint32_t at = TakeRun(map, count, &warm);
  if (at == kNone) OutOfMemory(size_bytes);
  char* data = map->base + size_t{at} * kExtentBytes;
  map->used_bytes.fetch_add(size_t{count} * kExtentBytes, std::memory_order_relaxed);
  // The memory is taken here, where its lack is an error, and not at the first touch, where it is a
  // SIGBUS.
  if (!warm && !BackSharedMemory(data, size_t{count} * kExtentBytes)) {
    FreeExtents(data, size_bytes);
    OutOfMemory(size_bytes);
  }
  return data;
}

void FreeExtents(char* data, size_t size_bytes) {
  ExtentMap* map = &shared_memory->extents;
  uint32_t count = std::max(ExtentsFor(size_bytes), 1u);
  auto offset = static_cast<size_t>(data - map->base);
  SLUICE_ASSERT(offset % kExtentBytes == 0);
  auto at = static_cast<uint32_t>(offset / kExtentBytes);
  SLUICE_ASSERT(at + count <= map->extent_count);
  map->used_bytes.fetch_sub(size_t{count} * kExtentBytes, std::memory_order_relaxed);
  if (count == 1) {
    ExtentLock lock(map);
    if (map->warm_count < kWarmExtentsMax) {
      SLUICE_ASSERT(TestBit(map->used, at) && !TestBit(map->warm, at));
      ClearBit(map->used, at);
      SetBit(map->warm, at);
      map->warm_count++;
      return;
    }
  }
  // Punched while still marked as used: nobody else can have them yet.
  PunchSharedMemory(data, size_t{count} * kExtentBytes);
  ExtentLock lock(map);
  for (uint32_t i = at; i < at + count; i++) {
    SLUICE_ASSERT(TestBit(map->used, i));
    ClearBit(map->used, i);
  }
  map->next_search = std::min(map->next_search, at);
}

BlockSource::Block SharedBlocks::Acquire(size_t size_bytes_min) {
  size_t size = std::max(ExtentsFor(size_bytes_min), 1u) * kExtentBytes;
  return {AllocateExtents(size), size};
}

void SharedBlocks::Release(Block block) {
  FreeExtents(block.data, block.size_bytes);
}

BlockSource::Block SharedListBlocks::Acquire(size_t size_bytes_min) {
  size_t size = ExtentsFor(size_bytes_min + sizeof(SharedExtentList::Node)) * kExtentBytes;
  char* data = AllocateExtents(size);
  auto* node = new (data) SharedExtentList::Node{list_->head.load(std::memory_order_relaxed), size};
  while (!list_->head.compare_exchange_weak(node->next, node, std::memory_order_release,
                                            std::memory_order_relaxed)) {
  }
  list_->bytes.fetch_add(size, std::memory_order_relaxed);
  return {data + sizeof *node, size - sizeof *node};
}

void FreeExtentList(SharedExtentList* list) {
  SharedExtentList::Node* node = list->head.exchange(nullptr, std::memory_order_acquire);
  while (node != nullptr) {
    SharedExtentList::Node* next = node->next;
    FreeExtents(reinterpret_cast<char*>(node), node->size_bytes);
    node = next;
  }
  list->bytes.store(0, std::memory_order_relaxed);
}

}  // namespace sluice
