#include "shm/ready_queue.h"

#include "shm/test_memory.h"

namespace sluice {
namespace {

using ReadyQueueTest = SharedMemoryTest;

// A slice that carries a number instead of a chunk.
Slice Number(uint16_t stream, uint64_t number) {
  return {SliceKind::kBatch, stream, kNoChunk, nullptr, number, 1};
}

TEST_F(ReadyQueueTest, GivesSlicesInOrderThenIsDoneAfterEveryStreamsEnd) {
  Arena arena(blocks_);
  ReadyQueue* queue = MakeReadyQueue(&arena, 16, 2);
  ChunkProducer producer(queue);
  ChunkConsumer consumer(queue, 0);
  Slice slice;
  EXPECT_EQ(consumer.TryClaim(&slice), Claim::kEmpty);
  producer.Push(Number(0, 1));
  producer.Push(Number(1, 2));
  producer.End(0);
  EXPECT_EQ(consumer.TryClaim(&slice), Claim::kSlice);
  EXPECT_EQ(slice.size_bytes, 1u);
  EXPECT_EQ(consumer.TryClaim(&slice), Claim::kSlice);
  EXPECT_EQ(slice.size_bytes, 2u);
  EXPECT_EQ(consumer.TryClaim(&slice), Claim::kSlice);
  EXPECT_EQ(slice.kind, SliceKind::kEnd);
  EXPECT_EQ(consumer.TryClaim(&slice), Claim::kEmpty);
  producer.End(1);
  EXPECT_TRUE(consumer.ClaimOrWait(&slice, WaitEvent::kAppendReady));
  EXPECT_EQ(slice.kind, SliceKind::kEnd);
  EXPECT_FALSE(consumer.ClaimOrWait(&slice, WaitEvent::kAppendReady));
}

TEST_F(ReadyQueueTest, APushWakesExactlyOneOfThoseWhoWait) {
  Arena arena(blocks_);
  ReadyQueue* queue = MakeReadyQueue(&arena, 16, 1);
  for (uint32_t i = 0; i < 3; i++) {
    Play(Backend(i), ProcessKind::kClientBackend);
    ChunkConsumer(queue, i).PrepareToWait();
  }
  auto woken = [&] {
    uint32_t count = 0;
    for (uint32_t i = 0; i < 3; i++) count += Slot(Backend(i)).latch.is_set.load();
    return count;
  };
  ChunkProducer producer(queue);
  EXPECT_TRUE(producer.ConsumerWaits());
  producer.Push(Number(0, 1));
  EXPECT_EQ(woken(), 1u);
  producer.Push(Number(0, 2));
  EXPECT_EQ(woken(), 2u);
  producer.End(0);
  EXPECT_EQ(woken(), 3u);
  EXPECT_FALSE(producer.ConsumerWaits());
}

TEST_F(ReadyQueueTest, AWakeUpThatIsNotNeededIsHandedOn) {
  Arena arena(blocks_);
  ReadyQueue* queue = MakeReadyQueue(&arena, 16, 1);
  for (uint32_t i = 0; i < 2; i++) {
    Play(Backend(i), ProcessKind::kClientBackend);
    ChunkConsumer(queue, i).PrepareToWait();
  }
  ChunkProducer(queue).Push(Number(0, 1));  // takes participant 0's bit
  EXPECT_EQ(Slot(Backend(1)).latch.is_set.load(), 0u);
  ChunkConsumer(queue, 0).CancelWait();  // which goes away instead
  EXPECT_EQ(Slot(Backend(1)).latch.is_set.load(), 1u);
}

TEST_F(ReadyQueueTest, AnAbandonedQueueIsDoneForConsumersAndCanBeDrained) {
  Arena arena(blocks_);
  ReadyQueue* queue = MakeReadyQueue(&arena, 16, 1);
  ASSERT_TRUE(TryReserve(&shared_memory->chunks, 1));
  ChunkId chunk = AcquireChunk(&shared_memory->chunks, nullptr);
  ChunkProducer(queue).Push({SliceKind::kBatch, 0, chunk, nullptr, 0, 1});
  AbandonQueue(queue);
  Slice slice;
  EXPECT_EQ(ChunkConsumer(queue, 0).TryClaim(&slice), Claim::kDone);
  EXPECT_EQ(shared_memory->chunks.in_use.load(), 1u);
  DrainQueue(queue);
  EXPECT_EQ(shared_memory->chunks.in_use.load(), 0u);
}

// Producers push numbers, bounded as quotas bound them; consumers add them up, sleeping when there
// is nothing. A lost wake-up hangs, a lost or doubled slice spoils the sum.
struct Traffic {
  std::atomic<uint64_t> sum, count, ends;
  std::atomic<int64_t> credits[8];
};

constexpr uint64_t kNumbers = 20'000;
constexpr int64_t kCredits = 8;

int Produce(ReadyQueue* queue, Traffic* traffic, uint16_t stream) {
  ChunkProducer producer(queue);
  for (uint64_t i = 1; i <= kNumbers; i++) {
    while (traffic->credits[stream].load() == 0) sched_yield();
    traffic->credits[stream].fetch_sub(1);
    producer.Push(Number(stream, i));
    if (i % 1000 == 0) usleep(10);
  }
  producer.End(stream);
  return 0;
}

int Consume(ReadyQueue* queue, Traffic* traffic, uint32_t participant) {
  ChunkConsumer consumer(queue, participant);
  Slice slice;
  while (consumer.ClaimOrWait(&slice, WaitEvent::kAppendReady)) {
    if (slice.kind == SliceKind::kEnd) {
      traffic->ends.fetch_add(1);
      continue;
    }
    traffic->sum.fetch_add(slice.size_bytes);
    traffic->count.fetch_add(1);
    traffic->credits[slice.stream].fetch_add(1);
  }
  return 0;
}

void CheckTraffic(const Traffic& traffic, uint64_t producers) {
  EXPECT_EQ(traffic.count.load(), producers * kNumbers);
  EXPECT_EQ(traffic.sum.load(), producers * kNumbers * (kNumbers + 1) / 2);
  EXPECT_EQ(traffic.ends.load(), producers);
}

class ReadyQueueTrafficTest : public SharedMemoryTest,
                              public ::testing::WithParamInterface<std::pair<int, int>> {
 protected:
  void SetUp() override {
    SharedMemoryTest::SetUp();
    auto [producers, consumers] = GetParam();
    queue_ = MakeReadyQueue(&arena_, producers * (kCredits + 1), producers);
    traffic_ = new (arena_.Allocate(sizeof(Traffic))) Traffic{};
    for (auto& credit : traffic_->credits) credit.store(kCredits);
    for (int i = 0; i < 16; i++) PrepareSlot(&Slot(Backend(i)), ProcessKind::kClientBackend);
  }
  void TearDown() override {}  // the arena goes first
  ~ReadyQueueTrafficTest() override {}

  Arena arena_{blocks_};
  ReadyQueue* queue_ = nullptr;
  Traffic* traffic_ = nullptr;
};

TEST_P(ReadyQueueTrafficTest, ThreadsLoseNothing) {
  auto [producers, consumers] = GetParam();
  std::vector<std::thread> threads;
  for (int i = 0; i < consumers; i++)
    threads.emplace_back([&, i] {
      AttachProcess(Backend(i));
      Consume(queue_, traffic_, i);
    });
  for (int i = 0; i < producers; i++)
    threads.emplace_back([&, i] {
      AttachProcess(Backend(8 + i));
      Produce(queue_, traffic_, static_cast<uint16_t>(i));
    });
  for (auto& thread : threads) thread.join();
  CheckTraffic(*traffic_, producers);
}

TEST_P(ReadyQueueTrafficTest, ProcessesLoseNothing) {
  auto [producers, consumers] = GetParam();
  std::vector<pid_t> children;
  for (int i = 0; i < consumers; i++)
    children.push_back(Fork(Backend(i), ProcessKind::kParallelWorker,
                            [&] { return Consume(queue_, traffic_, i); }));
  for (int i = 0; i < producers; i++)
    children.push_back(Fork(Backend(8 + i), ProcessKind::kIoWorker,
                            [&] { return Produce(queue_, traffic_, static_cast<uint16_t>(i)); }));
  for (pid_t child : children) EXPECT_EQ(ExitCode(child), 0);
  CheckTraffic(*traffic_, producers);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ReadyQueueTrafficTest,
                         ::testing::Values(std::pair{1, 1}, std::pair{1, 4}, std::pair{4, 1},
                                           std::pair{4, 3}, std::pair{8, 8}));

}  // namespace
}  // namespace sluice
