// For the fuzzer and its seeded test: one stream on one connection, all in this process, whose
// shard says whatever bytes it is given. Checks what must hold for any bytes: one end, no chunk
// leaked, no crash.
#pragma once

#include <cerrno>
#include <optional>
#include <span>
#include <string>
#include <sys/socket.h>

#include "common/assert.h"
#include "fdw/group.h"
#include "fdw/pool.h"
#include "fdw/worker.h"
#include "shm/shared_memory.h"

namespace sluice {

// Receives come from memory, in pieces; everything else goes well.
class MemoryRing final : public IoRing {
 public:
  MemoryRing(std::span<const uint8_t> bytes, size_t piece_max)
      : bytes_(bytes), piece_max_(piece_max) {}
  void Receive(IoOperation* operation, int, char* to, size_t size_bytes) override {
    operation->in_flight = true;
    operation->buffer = to;
    operation->size_bytes = size_bytes;
    receive_ = operation;
  }
  void Send(IoOperation* operation, int, const char*, size_t size_bytes) override {
    Complete(operation, static_cast<int>(size_bytes));
  }
  void Poll(IoOperation* operation, int, short) override { operation->in_flight = true; }
  void Cancel(IoOperation* operation) override {
    if (!operation->in_flight) return;
    if (operation == receive_) receive_ = nullptr;
    Enqueue(operation, -ECANCELED);
  }
  void Wait(int64_t) override {
    if (receive_ == nullptr) return;
    size_t n = std::min({receive_->size_bytes, bytes_.size(), piece_max_});
    std::memcpy(receive_->buffer, bytes_.data(), n);
    bytes_ = bytes_.subspan(n);
    Enqueue(std::exchange(receive_, nullptr), static_cast<int>(n));
  }
  bool needs_blocking_sockets() const override { return false; }
  const char* name() const override { return "memory"; }

 private:
  std::span<const uint8_t> bytes_;
  const size_t piece_max_;
  IoOperation* receive_ = nullptr;
};

class ParseHarness {
 public:
  ParseHarness() {
    SharedMemoryConfig config;
    config.chunk_size_bytes = 4096;
    config.chunk_pool_bytes = 1 << 20;
    config.sparse_bytes = 256 << 20;
    config.max_connections = 1;
    config.max_parallel_workers = 1;
    SLUICE_ASSERT(CreateSharedMemory(config).ok());
    PrepareSlot(&shared_memory->processes.slots[kIoWorkerProc], ProcessKind::kIoWorker);
    AttachProcess(kIoWorkerProc);
    log_min_messages = LogLevel::kPanic;
  }
  ~ParseHarness() {
    DestroySharedMemory();
    my_proc = nullptr;
  }

  // The first four bytes choose the stream and how the rest arrives.
  StreamState Run(std::span<const uint8_t> input) {
    uint8_t choice[4] = {};
    std::memcpy(choice, input.data(), std::min<size_t>(input.size(), 4));
    input = input.subspan(std::min<size_t>(input.size(), 4));
    constexpr StreamKind kKinds[] = {StreamKind::kQuery, StreamKind::kCopyOut,
                                     StreamKind::kDescribe, StreamKind::kSimple};
    constexpr uint32_t kChunks[] = {64, 100, 333, 4096};
    shared_memory->chunks.chunk_size_bytes = kChunks[choice[1] % 4];

    Worker worker;
    worker.now_us = MonotonicMicros();
    worker.ring = std::make_unique<MemoryRing>(input, 1 + size_t{choice[2]} * choice[2]);
    worker.pools = std::make_unique<PoolSet>(&worker);
    worker.groups = std::make_unique<GroupSet>(&worker);

    Arena arena;
    ConnectionSpec spec{"key", "fake", {}, {}, 1, ""};
    auto* group = new (arena.Allocate(sizeof(StreamGroup), 64)) StreamGroup{};
    group->backend = kIoWorkerProc;
    group->streams = arena.NewArray<Stream>(1);
    group->snapshot_first = choice[3] & 1;
    Stream& stream = group->streams[0];
    stream.kind = kKinds[choice[0] % 4];
    stream.group = group;
    stream.connection = &spec;
    stream.sql = "SELECT 1";
    stream.chunk_quota = 2;
    stream.prepare = choice[3] & 2;
    stream.output = MakeReadyQueue(&arena, SlicesMax(2), 1);

    int pair[2];
    SLUICE_ASSERT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    worker.pools->Get(spec)->Adopt(pair[0]);
    worker.groups->Open(group);
    worker.groups->Round();
    ChunkConsumer consumer(stream.output, 0);
    int ends = 0;
    for (int round = 0; ends == 0; round++) {
      Turn(&worker);
      // A consumer that is slow now and then, and goes in the middle of it if asked to.
      if (choice[3] & 4 && round == choice[3] >> 3) break;
      if (round % 3 == 2 || !worker.waiting.empty()) ends += Consume(&consumer);
    }
    worker.groups->Close(group);
    worker.groups->Round();
    for (int round = 0; group->state.load() != GroupState::kClosed; round++) {
      SLUICE_ASSERT(round < 1000);
      Turn(&worker);
    }
    ends += Consume(&consumer);
    SLUICE_ASSERT(ends == 1);
    Unreserve(&shared_memory->chunks, group->reserved_chunks);
    SLUICE_ASSERT(shared_memory->chunks.in_use.load() == 0);
    SLUICE_ASSERT(shared_memory->extents.used_bytes.load() == 0);
    StreamState state = stream.state.load();
    worker.pools->Forget(0);
    // What the group has left behind ends with the bytes.
    for (int round = 0; round < 5'000'000 && !Quiet(&worker); round++) Turn(&worker);
    worker.graveyard.clear();
    close(pair[1]);
    return state;
  }

 private:
  static bool Quiet(Worker* worker) {
    std::erase_if(worker->graveyard, [](const auto& connection) { return connection->dead(); });
    return shared_memory->shards_connections.load() == 0;
  }
  static void Turn(Worker* worker) {
    worker->ring->Wait(0);
    worker->ring->HandleCompletions();
    std::vector<StreamTask*> waiting = std::exchange(worker->waiting, {});
    for (StreamTask* task : waiting) {
      if (!task->ended()) task->Resume();
    }
    worker->groups->Round();
  }
  static int Consume(ChunkConsumer* consumer) {
    int ends = 0;
    Slice slice;
    while (consumer->TryClaim(&slice) == Claim::kSlice) {
      if (slice.kind == SliceKind::kEnd) ends++;
      if (slice.kind == SliceKind::kDataRows) CheckRows(slice);
      ReleaseSlice(slice);
    }
    return ends;
  }
  static void CheckRows(const Slice& slice) {
    uint32_t rows = 0;
    SLUICE_ASSERT(WalkMessages(slice.data, slice.size_bytes, 'D', &rows) == slice.size_bytes);
    SLUICE_ASSERT(rows == slice.rows && rows > 0);
  }
};

}  // namespace sluice
