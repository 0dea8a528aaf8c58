// The shared-memory primitives by themselves: chunk pool and ready queue, threads playing
// processes.
#include <benchmark/benchmark.h>
#include <thread>

#include "shm/shared_memory.h"

namespace sluice {
namespace {

void MakeMemory() {
  if (shared_memory != nullptr) return;
  SharedMemoryConfig config;
  config.chunk_pool_bytes = 64ull << 20;
  config.sparse_bytes = 1ull << 30;
  if (!CreateSharedMemory(config).ok()) std::abort();
  for (uint32_t i = 0; i < shared_memory->processes.count; i++)
    PrepareSlot(&shared_memory->processes.slots[i], ProcessKind::kClientBackend);
}

// One chunk taken and given back, by 1 to 8 at once.
void BM_ChunkAcquireRelease(benchmark::State& state) {
  if (state.thread_index() == 0) MakeMemory();
  for (auto _ : state) {
    ChunkPool* pool = &shared_memory->chunks;
    ChunkId chunk = AcquireChunk(pool, nullptr);
    benchmark::DoNotOptimize(chunk);
    DropReference(pool, chunk);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_ChunkAcquireRelease)->ThreadRange(1, 8)->UseRealTime();

void BM_ReserveUnreserve(benchmark::State& state) {
  if (state.thread_index() == 0) MakeMemory();
  for (auto _ : state) {
    benchmark::DoNotOptimize(TryReserve(&shared_memory->chunks, 8));
    Unreserve(&shared_memory->chunks, 8);
  }
}
BENCHMARK(BM_ReserveUnreserve)->ThreadRange(1, 8)->UseRealTime();

// Push and claim in one thread: the cost of the ring without waiting.
void BM_QueuePushClaim(benchmark::State& state) {
  MakeMemory();
  AttachProcess(shared_memory->processes.first_backend);
  SharedBlocks blocks;
  Arena arena(blocks);
  ReadyQueue* queue = MakeReadyQueue(&arena, 256, 1);
  ChunkProducer producer(queue);
  ChunkConsumer consumer(queue, 0);
  Slice slice{SliceKind::kBatch, 0, kNoChunk, nullptr, 0, 1};
  for (auto _ : state) {
    producer.Push(slice);
    benchmark::DoNotOptimize(consumer.TryClaim(&slice));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_QueuePushClaim);

// Slices through one queue with `producers` and `consumers` at once, sleeping and waking included.
// Each producer has 8 slices under way at most, as with a quota of chunks.
void BM_QueueTraffic(benchmark::State& state) {
  MakeMemory();
  auto producers = static_cast<uint32_t>(state.range(0)),
       consumers = static_cast<uint32_t>(state.range(1));
  constexpr uint64_t kSlices = 50'000;
  constexpr int64_t kUnderWay = 8;
  for (auto _ : state) {
    SharedBlocks blocks;
    Arena arena(blocks);
    ReadyQueue* queue = MakeReadyQueue(&arena, producers * (kUnderWay + 1), producers);
    std::vector<std::atomic<int64_t>> credits(producers);
    for (auto& credit : credits) credit = kUnderWay;
    std::vector<std::thread> threads;
    for (uint32_t c = 0; c < consumers; c++)
      threads.emplace_back([&, c] {
        AttachProcess(shared_memory->processes.first_backend + c);
        ChunkConsumer consumer(queue, c);
        Slice slice;
        while (consumer.ClaimOrWait(&slice, WaitEvent::kAppendReady))
          if (slice.kind != SliceKind::kEnd) credits[slice.stream].fetch_add(1);
      });
    for (uint16_t p = 0; p < producers; p++)
      threads.emplace_back([&, p] {
        ChunkProducer producer(queue);
        for (uint64_t i = 0; i < kSlices; i++) {
          while (credits[p].load() == 0) std::this_thread::yield();
          credits[p].fetch_sub(1);
          producer.Push({SliceKind::kBatch, p, kNoChunk, nullptr, i, 1});
        }
        producer.End(p);
      });
    for (auto& thread : threads) thread.join();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(producers * kSlices));
}
BENCHMARK(BM_QueueTraffic)
    ->ArgNames({"producers", "consumers"})
    ->ArgsProduct({{1, 2, 4, 8}, {1, 2, 4, 8}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// A latch set by one thread and waited for by another, there and back.
void BM_LatchRoundTrip(benchmark::State& state) {
  MakeMemory();
  ProcSlot* slots = shared_memory->processes.slots + shared_memory->processes.first_backend;
  std::atomic<uint64_t> turn = 0;
  std::atomic<bool> stop = false;
  auto wait_for = [&](Latch* latch, uint64_t parity) {
    for (;;) {
      ResetLatch(latch);
      if (turn.load() % 2 == parity || stop.load()) return;
      WaitLatch(latch, {}, -1, WaitEvent::kPgSleep);
    }
  };
  std::thread echo([&] {
    for (;;) {
      wait_for(&slots[1].latch, 1);
      if (stop.load()) return;
      turn.fetch_add(1);
      SetLatch(&slots[0].latch);
    }
  });
  for (auto _ : state) {
    turn.fetch_add(1);
    SetLatch(&slots[1].latch);
    wait_for(&slots[0].latch, 0);
  }
  stop = true;
  SetLatch(&slots[1].latch);
  echo.join();
}
BENCHMARK(BM_LatchRoundTrip)->UseRealTime();

// What a small query pays for its arena.
void BM_QueryArenaExtent(benchmark::State& state) {
  MakeMemory();
  for (auto _ : state) {
    char* data = AllocateExtents(static_cast<size_t>(state.range(0)));
    benchmark::DoNotOptimize(data);
    FreeExtents(data, static_cast<size_t>(state.range(0)));
  }
}
BENCHMARK(BM_QueryArenaExtent)->Arg(kExtentBytes)->Arg(8 * kExtentBytes);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
