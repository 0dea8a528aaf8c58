#include "shm/chunk_pool.h"

#include <set>

#include "shm/test_memory.h"

namespace sluice {
namespace {

using ChunkPoolTest = SharedMemoryTest;

TEST_F(ChunkPoolTest, PromisesNoMoreThanThereIs) {
  ChunkPool* pool = &shared_memory->chunks;
  EXPECT_TRUE(TryReserve(pool, kChunks - 1));
  EXPECT_FALSE(TryReserve(pool, 2));
  EXPECT_TRUE(TryReserve(pool, 1));
  EXPECT_FALSE(TryReserve(pool, 1));
  Unreserve(pool, kChunks);
  EXPECT_TRUE(TryReserve(pool, kChunks));
}

TEST_F(ChunkPoolTest, GivesEachChunkOnceAndTakesItBackWithTheLastReference) {
  ChunkPool* pool = &shared_memory->chunks;
  ASSERT_TRUE(TryReserve(pool, kChunks));
  std::set<ChunkId> chunks;
  for (uint32_t i = 0; i < kChunks; i++) chunks.insert(AcquireChunk(pool, nullptr));
  EXPECT_EQ(chunks.size(), kChunks);
  EXPECT_EQ(pool->in_use.load(), kChunks);
  AddReference(pool, 5);
  DropReference(pool, 5);
  EXPECT_EQ(pool->in_use.load(), kChunks);
  DropReference(pool, 5);
  EXPECT_EQ(pool->in_use.load(), kChunks - 1);
  EXPECT_EQ(AcquireChunk(pool, nullptr), 5u);
}

TEST_F(ChunkPoolTest, AReturnedChunkCountsForItsStreamAndWakesTheProducerThatWasHeldBack) {
  ChunkPool* pool = &shared_memory->chunks;
  ASSERT_TRUE(TryReserve(pool, 2));
  Stream stream{};
  stream.producer = Backend(1);
  PrepareSlot(&Slot(Backend(1)), ProcessKind::kClientBackend);
  ChunkId a = AcquireChunk(pool, &stream), b = AcquireChunk(pool, &stream);
  EXPECT_EQ(stream.chunks_in_use.load(), 2u);
  DropReference(pool, a);
  EXPECT_EQ(stream.chunks_in_use.load(), 1u);
  EXPECT_EQ(Slot(Backend(1)).latch.is_set.load(), 0u);
  stream.held_back.store(1);
  DropReference(pool, b);
  EXPECT_EQ(Slot(Backend(1)).latch.is_set.load(), 1u);
}

// Each thread writes its mark over a chunk and finds it unchanged: no chunk has two owners.
TEST_F(ChunkPoolTest, ManyThreadsNeverShareAChunk) {
  ChunkPool* pool = &shared_memory->chunks;
  constexpr int kThreads = 8, kRounds = 20'000;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; i++) {
        if (!TryReserve(pool, 2)) continue;
        ChunkId a = AcquireChunk(pool, nullptr), b = AcquireChunk(pool, nullptr);
        int mark = t * kRounds + i;
        std::memcpy(ChunkData(*pool, a), &mark, sizeof mark);
        std::memcpy(ChunkData(*pool, b), &mark, sizeof mark);
        if (std::memcmp(ChunkData(*pool, a), ChunkData(*pool, b), sizeof mark) != 0) failures++;
        DropReference(pool, a);
        DropReference(pool, b);
        Unreserve(pool, 2);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(pool->in_use.load(), 0u);
  EXPECT_EQ(pool->unreserved.load(), kChunks);
}

}  // namespace
}  // namespace sluice
