#include "shm/shared_memory.h"

#include <bit>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/assert.h"
#include "common/fd.h"

namespace sluice {

SharedMemory* shared_memory = nullptr;

namespace {

// The memfd behind the mapping. Children inherit it: memory is taken and punched through it.
int memory_fd = -1;

constexpr size_t kPageBytes = 4096;

// Where each region begins. Sizes first (Plan), then one allocation, then the pointers.
struct Layout {
  size_t slots, requests, chunk_headers, extents_used, extents_warm, chunk_data, extents;
  size_t total;
  uint32_t slot_count, request_count, chunk_count, extent_count;
};

Layout Plan(const SharedMemoryConfig& config) {
  Layout layout{};
  layout.slot_count = 2 + config.max_parallel_workers + config.max_connections + 2;
  layout.request_count = std::bit_ceil(std::max(config.request_ring_size, 2u));
  layout.chunk_count = static_cast<uint32_t>(config.chunk_pool_bytes / config.chunk_size_bytes);
  layout.extent_count = static_cast<uint32_t>(config.sparse_bytes / kExtentBytes);
  size_t words = (layout.extent_count + 63) / 64;

  size_t at = 0;
  auto region = [&at](size_t size_bytes, size_t alignment) {
    at = (at + alignment - 1) / alignment * alignment;
    size_t start = at;
    at += size_bytes;
    return start;
  };
  region(sizeof(SharedMemory), 64);
  layout.slots = region(layout.slot_count * sizeof(ProcSlot), 64);
  layout.requests = region(layout.request_count * sizeof(RequestRing::Cell), 64);
  layout.chunk_headers = region(layout.chunk_count * sizeof(ChunkHeader), 64);
  layout.extents_used = region(words * sizeof(uint64_t), 64);
  layout.extents_warm = region(words * sizeof(uint64_t), 64);
  layout.chunk_data = region(size_t{layout.chunk_count} * config.chunk_size_bytes, kPageBytes);
  layout.extents = region(size_t{layout.extent_count} * kExtentBytes, kExtentBytes);
  layout.total = region(0, kPageBytes);
  return layout;
}

void InitProcesses(ProcessTable* table, char* base, const Layout& layout,
                   const SharedMemoryConfig& config) {
  table->count = layout.slot_count;
  table->slots = reinterpret_cast<ProcSlot*>(base + layout.slots);
  table->first_parallel_worker = 2;
  table->parallel_workers = config.max_parallel_workers;
  table->first_backend = 2 + config.max_parallel_workers;
  table->backends = config.max_connections;
  table->view_worker = layout.slot_count - 2;
  table->transaction_resolver = layout.slot_count - 1;
  for (uint32_t i = 0; i < table->count; i++) {
    auto* slot = new (&table->slots[i]) ProcSlot{};
    InitLatch(&slot->latch);
    PrepareSlot(slot, ProcessKind::kUnused);
  }
}

void InitRequests(RequestRing* ring, char* base, const Layout& layout) {
  ring->mask = layout.request_count - 1;
  ring->cells = reinterpret_cast<RequestRing::Cell*>(base + layout.requests);
  for (uint64_t i = 0; i < layout.request_count; i++) {
    auto* cell = new (&ring->cells[i]) RequestRing::Cell{};
    cell->sequence.store(i, std::memory_order_relaxed);
  }
}

void InitMemory(SharedMemory* memory, char* base, const Layout& layout,
                const SharedMemoryConfig& config) {
  ChunkPool* pool = &memory->chunks;
  pool->chunk_size_bytes = config.chunk_size_bytes;
  pool->chunk_count = layout.chunk_count;
  pool->headers = reinterpret_cast<ChunkHeader*>(base + layout.chunk_headers);
  pool->data = base + layout.chunk_data;
  for (uint32_t i = 0; i < layout.chunk_count; i++) new (&pool->headers[i]) ChunkHeader{};
  InitChunkPool(pool);

  ExtentMap* map = &memory->extents;
  map->base = base + layout.extents;
  map->extent_count = layout.extent_count;
  map->used = reinterpret_cast<uint64_t*>(base + layout.extents_used);
  map->warm = reinterpret_cast<uint64_t*>(base + layout.extents_warm);
  // Beyond the last extent there is nothing to find.
  for (uint32_t i = layout.extent_count; i % 64 != 0; i++)
    map->used[i / 64] |= uint64_t{1} << (i % 64);
}

Error MemoryError(const char* what, size_t size_bytes) {
  return MakeError(sqlstate::kOutOfMemory, "could not create shared memory: {}: {}", what,
                   std::strerror(errno))
      .Detail(fmt::format("Failed on a mapping of {} bytes.", size_bytes))
      .Hint("Reduce chunk_pool_size, or see vm.overcommit_memory.");
}

}  // namespace

Status CreateSharedMemory(const SharedMemoryConfig& config) {
  if (config.chunk_size_bytes < kPageBytes || config.chunk_size_bytes % kPageBytes != 0)
    return MakeError(sqlstate::kInvalidParameterValue, "chunk size must be a multiple of {} bytes",
                     kPageBytes);
  DestroySharedMemory();
  Layout layout = Plan(config);
  UniqueFd fd(memfd_create("sluice", MFD_CLOEXEC));
  if (!fd.valid()) return MemoryError("memfd_create", layout.total);
  if (ftruncate(fd.get(), static_cast<off_t>(layout.total)) != 0)
    return MemoryError("ftruncate", layout.total);
  void* mapped =
      mmap(nullptr, layout.total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (mapped == MAP_FAILED) return MemoryError("mmap", layout.total);
  // All but the sparse part gets its memory now: its lack must not show as a SIGBUS later.
  int error = posix_fallocate(fd.get(), 0, static_cast<off_t>(layout.extents));
  if (error != 0) {
    munmap(mapped, layout.total);
    errno = error;
    return MemoryError("fallocate", layout.extents);
  }
  memory_fd = fd.Release();
  shared_memory = new (mapped) SharedMemory{};
  shared_memory->total_bytes = layout.total;
  shared_memory->config = config;
  char* base = static_cast<char*>(mapped);
  InitProcesses(&shared_memory->processes, base, layout, config);
  InitRequests(&shared_memory->requests, base, layout);
  InitMemory(shared_memory, base, layout, config);
  shared_memory->next_query_id.store(1, std::memory_order_relaxed);
  shared_memory->next_pin.store(1, std::memory_order_relaxed);
  for (uint32_t i = 0; i < layout.slot_count; i++)
    if (shared_memory->processes.slots[i].latch.event_fd < 0) {
      Error failed = MemoryError("eventfd", layout.total);
      DestroySharedMemory();
      return failed;
    }
  return Ok{};
}

void DestroySharedMemory() {
  if (shared_memory == nullptr) return;
  for (uint32_t i = 0; i < shared_memory->processes.count; i++)
    DestroyLatch(&shared_memory->processes.slots[i].latch);
  munmap(shared_memory, shared_memory->total_bytes);
  close(memory_fd);
  shared_memory = nullptr;
  memory_fd = -1;
  my_proc = nullptr;
  my_proc_number = kNoProc;
}

namespace {

off_t OffsetOf(const char* data) {
  return data - reinterpret_cast<char*>(shared_memory);
}

}  // namespace

bool BackSharedMemory(char* data, size_t size_bytes) {
  int result;
  do {
    result = fallocate(memory_fd, 0, OffsetOf(data), static_cast<off_t>(size_bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

void PunchSharedMemory(char* data, size_t size_bytes) {
  int result;
  do {
    result = fallocate(memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, OffsetOf(data),
                       static_cast<off_t>(size_bytes));
  } while (result != 0 && errno == EINTR);
  SLUICE_ASSERT(result == 0);
}

}  // namespace sluice
