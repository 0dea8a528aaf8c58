// The map of everything that processes share. One sparse memfd, mapped by the postmaster before the
// first fork and inherited at the same address by every child, so raw pointers into it are valid
// everywhere. Sizes are computed, then allocated once, then initialised (CreateSharedMemory).
#pragma once

#include <atomic>
#include <cstdint>

#include "common/error.h"
#include "shm/chunk_pool.h"
#include "shm/live_views.h"
#include "shm/process_table.h"
#include "shm/query_arena.h"
#include "shm/stream.h"
#include "shm/stream_registry.h"

namespace sluice {

struct SharedMemoryConfig {
  uint32_t chunk_size_bytes = 128 * 1024;
  uint64_t chunk_pool_bytes = 256ull << 20;
  uint64_t sparse_bytes = 64ull << 30;  // reserved address range; memory only where touched
  uint32_t max_connections = 100;
  uint32_t max_parallel_workers = 8;
  uint32_t request_ring_size = 4096;
};

struct RequestRing {
  struct Cell {
    std::atomic<uint64_t> sequence;  // R1: as ReadyQueue's Q1
    Request request;
  };
  uint64_t mask;
  Cell* cells;
  alignas(64) std::atomic<uint64_t> push_at;  // R2: by any process, compare-and-swap
  alignas(64) std::atomic<uint64_t> pop_at;   // R3: by the io worker only
};

struct SharedMemory {
  uint64_t total_bytes;
  SharedMemoryConfig config;
  ProcessTable processes;
  ChunkPool chunks;
  ExtentMap extents;
  RequestRing requests;
  StreamRegistry streams;
  // M1: raised (release) by whoever commits a catalog change; backends compare and load again.
  std::atomic<uint64_t> catalog_generation;
  LiveViews live_views;
  // M2: counters from 1; relaxed: only that they differ matters.
  std::atomic<uint64_t> next_query_id;
  std::atomic<uint64_t> next_pin;
  std::atomic<uint32_t> io_uses_epoll;  // set by the io worker: shown in `sluice status`
  // Set by the io worker: groups that wait for chunks or connections. Relaxed: a hint to those who
  // hold some and do not need them now.
  std::atomic<uint32_t> groups_waiting;
  std::atomic<uint32_t> shards_connections;  // statistics: open connections of the io worker
};

static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<void*>::is_always_lock_free);
static_assert(sizeof(ChunkHeader) == 64 && alignof(ProcSlot) == 64);

extern SharedMemory* shared_memory;  // process-local pointer, the same value in every child

// Makes a new memfd and maps it; sets shared_memory. The previous one, if any, is unmapped (crash
// restart).
Status CreateSharedMemory(const SharedMemoryConfig& config);
void DestroySharedMemory();

// The sparse part's memory, for shm/query_arena.cc: takes it (false: there is none left), gives it
// back.
bool BackSharedMemory(char* data, size_t size_bytes);
void PunchSharedMemory(char* data, size_t size_bytes);

}  // namespace sluice
