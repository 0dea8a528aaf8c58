#include "shm/chunk_pool.h"

#include "common/assert.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

constexpr uint64_t Head(uint64_t counter, ChunkId chunk) {
  return counter << 32 | chunk;
}
constexpr ChunkId ChunkOf(uint64_t head) {
  return static_cast<ChunkId>(head);
}
constexpr uint64_t CounterOf(uint64_t head) {
  return head >> 32;
}

// C2. A push stores with release, a pop loads with acquire: the popper sees `next_free` as the
// pusher wrote it. A popper may read `next_free` of a chunk that another has just popped; it then
// reads a stale number, and its compare-and-swap fails because the counter has moved. That is why
// the read is atomic, relaxed.
std::atomic_ref<ChunkId> NextFree(ChunkHeader& header) {
  return std::atomic_ref(header.next_free);
}

ChunkId Pop(ChunkPool* pool) {
  uint64_t head = pool->free_head.load(std::memory_order_acquire);
  for (;;) {
    ChunkId chunk = ChunkOf(head);
    if (chunk == kNoChunk) return kNoChunk;
    ChunkId next = NextFree(pool->headers[chunk]).load(std::memory_order_relaxed);
    if (pool->free_head.compare_exchange_weak(head, Head(CounterOf(head) + 1, next),
                                              std::memory_order_acquire, std::memory_order_acquire))
      return chunk;
  }
}

void PushFree(ChunkPool* pool, ChunkId chunk) {
  uint64_t head = pool->free_head.load(std::memory_order_relaxed);
  do {
    NextFree(pool->headers[chunk]).store(ChunkOf(head), std::memory_order_relaxed);
  } while (!pool->free_head.compare_exchange_weak(head, Head(CounterOf(head) + 1, chunk),
                                                  std::memory_order_acq_rel,
                                                  std::memory_order_relaxed));
}

void ReturnToQuota(Stream* owner) {
  // S2. Both accesses are seq_cst, as are the producer's store of `held_back` and its re-check of
  // `chunks_in_use`: one of the two sees the other.
  uint32_t before = owner->chunks_in_use.fetch_sub(1, std::memory_order_seq_cst);
  SLUICE_ASSERT(before > 0);
  if (owner->held_back.load(std::memory_order_seq_cst) == 0) return;
  SetLatch(&shared_memory->processes.slots[owner->producer].latch);
}

}  // namespace

void InitChunkPool(ChunkPool* pool) {
  for (ChunkId i = 0; i < pool->chunk_count; i++) {
    pool->headers[i].references.store(0, std::memory_order_relaxed);
    pool->headers[i].next_free = i + 1 < pool->chunk_count ? i + 1 : kNoChunk;
    pool->headers[i].owner = nullptr;
  }
  pool->free_head.store(Head(0, pool->chunk_count > 0 ? 0 : kNoChunk), std::memory_order_relaxed);
  pool->unreserved.store(pool->chunk_count, std::memory_order_relaxed);
  pool->in_use.store(0, std::memory_order_relaxed);
  pool->in_use_max.store(0, std::memory_order_relaxed);
}

// C3. Acquire pairs with Unreserve's release: who gets a promise sees the chunks behind it on the
// list.
bool TryReserve(ChunkPool* pool, uint32_t chunks) {
  int64_t unreserved = pool->unreserved.load(std::memory_order_relaxed);
  do {
    if (unreserved < int64_t{chunks}) return false;
  } while (!pool->unreserved.compare_exchange_weak(
      unreserved, unreserved - chunks, std::memory_order_acquire, std::memory_order_relaxed));
  return true;
}

void Unreserve(ChunkPool* pool, uint32_t chunks) {
  int64_t before = pool->unreserved.fetch_add(chunks, std::memory_order_release);
  SLUICE_ASSERT(before + chunks <= int64_t{pool->chunk_count});
}

ChunkId AcquireChunk(ChunkPool* pool, Stream* owner) {
  ChunkId chunk = Pop(pool);
  SLUICE_ASSERT(chunk != kNoChunk);  // the caller had a reservation
  ChunkHeader& header = pool->headers[chunk];
  SLUICE_ASSERT(header.references.load(std::memory_order_relaxed) == 0);
  header.owner = owner;
  header.references.store(1, std::memory_order_relaxed);
  if (owner != nullptr) owner->chunks_in_use.fetch_add(1, std::memory_order_relaxed);

  uint32_t in_use = pool->in_use.fetch_add(1, std::memory_order_relaxed) + 1;
  uint32_t max = pool->in_use_max.load(std::memory_order_relaxed);
  while (max < in_use &&
         !pool->in_use_max.compare_exchange_weak(max, in_use, std::memory_order_relaxed)) {
  }
  return chunk;
}

void AddReference(ChunkPool* pool, ChunkId chunk) {
  uint32_t before = pool->headers[chunk].references.fetch_add(1, std::memory_order_relaxed);
  SLUICE_ASSERT(before > 0);  // only a holder may add one
}

void DropReference(ChunkPool* pool, ChunkId chunk) {
  SLUICE_ASSERT(chunk < pool->chunk_count);
  ChunkHeader& header = pool->headers[chunk];
  uint32_t before = header.references.fetch_sub(1, std::memory_order_acq_rel);
  SLUICE_ASSERT(before > 0);
  if (before > 1) return;
  Stream* owner = header.owner;
  pool->in_use.fetch_sub(1, std::memory_order_relaxed);
  // On the list first: once the quota says so, AcquireChunk must find it.
  PushFree(pool, chunk);
  if (owner != nullptr) ReturnToQuota(owner);
}

}  // namespace sluice
