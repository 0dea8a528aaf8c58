#include "shm/stream.h"

#include "shm/test_memory.h"

namespace sluice {
namespace {

using StreamTest = SharedMemoryTest;

TEST_F(StreamTest, RequestsOfManyProcessesAllArriveOnce) {
  constexpr uint64_t kEach = 5000;
  std::vector<pid_t> children;
  for (uint32_t c = 0; c < 4; c++)
    children.push_back(Fork(Backend(1 + c), ProcessKind::kClientBackend, [&] {
      for (uint64_t i = 0; i < kEach; i++)
        SubmitRequest({RequestKind::kUnpin, nullptr, c * kEach + i, 0});
      return 0;
    }));
  std::vector<int> seen(4 * kEach);
  uint64_t last[4] = {};
  Play(kIoWorkerProc, ProcessKind::kIoWorker);
  for (uint64_t taken = 0; taken < 4 * kEach;) {
    ResetLatch(&my_proc->latch);
    Request request;
    while (TakeRequest(&request)) {
      seen[request.pin]++;
      uint64_t& before = last[request.pin / kEach];
      ASSERT_LE(before, request.pin);  // one process's requests keep their order
      before = request.pin;
      taken++;
    }
    if (taken < 4 * kEach) {
      ASSERT_NE(WaitLatch(&my_proc->latch, {}, 20'000, WaitEvent::kIoWorkerMain), Woken::kTimeout);
    }
  }
  for (int count : seen) EXPECT_EQ(count, 1);
  for (pid_t child : children) EXPECT_EQ(ExitCode(child), 0);
}

StreamGroup* MakeGroup(Arena* arena, uint32_t streams) {
  auto* group = arena->New<StreamGroup>();
  group->backend = my_proc_number;
  group->streams = arena->NewArray<Stream>(streams);
  ReadyQueue* queue = MakeReadyQueue(arena, streams * SlicesMax(2), streams);
  for (uint16_t i = 0; i < streams; i++) {
    Stream& stream = group->streams[i];
    stream.group = group;
    stream.index = i;
    stream.chunk_quota = 2;
    stream.output = queue;
  }
  return group;
}

TEST_F(StreamTest, CloseReleasesWhatNobodyClaimedAndReturnsTheReservation) {
  Arena arena(blocks_);
  StreamGroup* group = MakeGroup(&arena, 3);
  group->extra_chunks = 4;
  CloseStreams(group);  // never opened: nothing happens

  // A stand-in for the io worker: admits, sends two chunks a stream, lets go when asked to close.
  pid_t io = Fork(kIoWorkerProc, ProcessKind::kIoWorker, [&] {
    for (;;) {
      ResetLatch(&my_proc->latch);
      Request request;
      while (TakeRequest(&request)) {
        if (request.kind == RequestKind::kClose) {
          for (Stream& stream : request.group->streams)
            ChunkProducer(stream.output).End(stream.index);
          request.group->state.store(GroupState::kClosed, std::memory_order_release);
          SetLatch(&Slot(request.group->backend).latch);
          return 0;
        }
        if (!TryReserveGroup(request.group)) return 1;
        request.group->state.store(GroupState::kAdmitted, std::memory_order_release);
        for (Stream& stream : request.group->streams)
          for (int i = 0; i < 2; i++) {
            ChunkId chunk = AcquireChunk(&shared_memory->chunks, &stream);
            ChunkProducer(stream.output)
                .Push({SliceKind::kDataRows, stream.index, chunk, nullptr, 0, 1});
          }
      }
      WaitLatch(&my_proc->latch, {}, -1, WaitEvent::kIoWorkerMain);
    }
  });
  OpenStreams(group);
  ChunkConsumer consumer(group->streams[0].output, 0);
  Slice slice;
  ASSERT_TRUE(consumer.ClaimOrWait(&slice, WaitEvent::kAppendReady));
  EXPECT_EQ(shared_memory->chunks.unreserved.load(), kChunks - 10);
  ReleaseSlice(slice);
  CloseStreams(group);
  EXPECT_EQ(ExitCode(io), 0);
  EXPECT_EQ(shared_memory->chunks.in_use.load(), 0u);
  EXPECT_EQ(shared_memory->chunks.unreserved.load(), kChunks);
  for (Stream& stream : group->streams) EXPECT_EQ(stream.chunks_in_use.load(), 0u);
}

}  // namespace
}  // namespace sluice
