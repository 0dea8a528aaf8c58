// Chunks: the one unit of bulk data. Fixed-size blocks on a lock-free free list (a Treiber stack
// whose head carries a counter against ABA). Reservations are counted apart from the list: whoever
// holds a reservation of n may have n chunks at once and Acquire() cannot fail for them.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice {

using ChunkId = uint32_t;
inline constexpr ChunkId kNoChunk = ~ChunkId{0};

struct Stream;

struct alignas(64) ChunkHeader {
  // C1: holders of the chunk: its producer while it fills it, and one per published slice. The last
  // one to leave (acq_rel) returns it; so all reads of its bytes happen before its next use.
  std::atomic<uint32_t> references;
  ChunkId next_free;  // guarded by the free list
  Stream* owner;  // whose quota it counts against (null: nobody's); set by the producer at Acquire
};

struct ChunkPool {
  uint32_t chunk_size_bytes;
  uint32_t chunk_count;
  ChunkHeader* headers;
  char* data;                                   // chunk_count × chunk_size_bytes, page-aligned
  alignas(64) std::atomic<uint64_t> free_head;  // C2: counter << 32 | ChunkId
  alignas(64) std::atomic<int64_t> unreserved;  // C3: chunks not promised to anyone
  alignas(64) std::atomic<uint32_t> in_use;     // C4: statistics only
  std::atomic<uint32_t> in_use_max;
};

void InitChunkPool(ChunkPool* pool);  // postmaster; the fields above the atomics are filled in

// Promises `chunks` or nothing.
bool TryReserve(ChunkPool* pool, uint32_t chunks);
void Unreserve(ChunkPool* pool, uint32_t chunks);

// Needs a reservation with room. The chunk comes with one reference, the producer's.
ChunkId AcquireChunk(ChunkPool* pool, Stream* owner);
void AddReference(ChunkPool* pool, ChunkId chunk);
// Drops one; the last returns the chunk to the list, then to its owner's quota, and wakes the
// producer (Stream::producer) if that quota held it back (see Stream::chunks_in_use).
void DropReference(ChunkPool* pool, ChunkId chunk);

inline char* ChunkData(const ChunkPool& pool, ChunkId chunk) {
  return pool.data + size_t{chunk} * pool.chunk_size_bytes;
}

}  // namespace sluice
