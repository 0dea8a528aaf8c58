// The ready queue of a Parallel Append: a bounded multi-producer multi-consumer ring of slices (D.
// Vyukov's bounded MPMC queue: each cell carries a sequence number that says whose turn it is). It
// is made with room for every slice that the quotas of its streams allow, so Push never waits and
// never fails.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/arena.h"
#include "shm/chunk_pool.h"
#include "shm/process_table.h"

namespace sluice {

enum class SliceKind : uint8_t {
  kDataRows,     // Postgres DataRow messages, whole, header included ('D', length, …)
  kCopyData,     // CopyData messages, whole
  kLines,        // bytes of the line framing, whole lines
  kBatch,        // a columnar batch (executor/batch_chunk.h)
  kDescription,  // ParameterDescription and RowDescription (or NoData) messages, whole
  kOversized,  // one row larger than a chunk: `data` is a whole message in a range of its own from
               // AllocateExtents(size_bytes), freed by ReleaseSlice. It may carry a reference to an
               // (otherwise unused) chunk, so that it counts against its stream's quota
  kEnd,        // the stream has ended; Stream::state tells how. The last slice of every stream
};

struct Slice {
  SliceKind kind;
  uint16_t stream;  // index into StreamGroup::streams
  ChunkId chunk;    // kNoChunk for kEnd and a kOversized that holds none
  const char* data;
  uint64_t size_bytes;
  uint32_t rows;  // exact number of rows in it
};

// Slices that one chunk may be cut into at most; a producer that reaches it waits for the chunk to
// fill.
inline constexpr uint32_t kSlicesPerChunkMax = 8;
inline constexpr uint32_t kParticipantsMax = 64;

struct ReadyQueue {
  struct Cell {
    std::atomic<uint64_t> sequence;  // Q1: release by the side that is done with the cell
    Slice slice;
  };
  uint64_t mask;
  Cell* cells;
  alignas(64) std::atomic<uint64_t> push_at;
  alignas(64) std::atomic<uint64_t> pop_at;
  // Q2: streams that have not pushed their kEnd; the decrement (release) comes after that push, so
  // a consumer that loads 0 (acquire) and then finds the ring empty is done.
  alignas(64) std::atomic<uint32_t> open_streams;
  // Q3: bit i: participant i sleeps or is about to. Set (seq_cst) by the consumer before it looks
  // again; taken (one bit a push, all bits at the end) by producers after their push (seq_cst).
  std::atomic<uint64_t> waiting;
  // Q4: set once by anyone: consumers stop claiming (early stop, error elsewhere).
  std::atomic<uint32_t> abandoned;
  // Participants (backend = 0, then workers): stored before they first wait.
  std::atomic<ProcNumber> participants[kParticipantsMax];
  // Q5: statistics: since when (MonotonicUs) the ring holds something, 0 while it is empty, and for
  // how long altogether it did before. Opened by the producer whose slice is the first, closed by
  // the consumer that takes the last; who swaps `ready_since_us` adds what it found.
  alignas(64) std::atomic<int64_t> ready_since_us;
  std::atomic<int64_t> ready_us;
};

// For how long so far the queue held something that could be claimed.
int64_t ReadyTimeUs(const ReadyQueue& queue);

// Slices that a stream with this quota can have in a queue at once: those of its chunks, a
// description and its kEnd.
constexpr uint32_t SlicesMax(uint32_t chunk_quota) {
  return chunk_quota * kSlicesPerChunkMax + 2;
}

// Room for `slices_max` (rounded up to a power of two) in `arena` (shared memory).
ReadyQueue* MakeReadyQueue(Arena* arena, uint32_t slices_max, uint32_t streams);

// The producing side. Any process may hold one.
class ChunkProducer {
 public:
  explicit ChunkProducer(ReadyQueue* queue) : queue_(queue) {}
  // Publishes a slice (the caller passes on one chunk reference) and wakes one waiting consumer.
  void Push(const Slice& slice);
  // Pushes kEnd for `stream`; with the last one open, wakes every consumer.
  void End(uint16_t stream);
  // Whether a consumer waits: then a slice with one whole row is worth publishing now.
  bool ConsumerWaits() const { return queue_->waiting.load(std::memory_order_relaxed) != 0; }

 private:
  ReadyQueue* queue_;
};

enum class Claim { kSlice, kEmpty, kDone };

// The consuming side of one participant.
class ChunkConsumer {
 public:
  ChunkConsumer(ReadyQueue* queue, uint32_t participant);
  // Takes the next ready slice, from whichever stream. kDone: all streams ended and all was taken,
  // or the queue is abandoned. Never sleeps.
  Claim TryClaim(Slice* slice);
  // Announces that this participant is about to sleep; TryClaim again after it, then WaitLatch.
  void PrepareToWait();
  // Not sleeping after all; a wake-up that came meanwhile is handed on.
  void CancelWait();
  // Awake again, and about to call TryClaim.
  void EndWait();
  // TryClaim with the wait loop around it (CheckForInterrupts at each wake-up). False: done.
  bool ClaimOrWait(Slice* slice, WaitEvent event);

 private:
  ReadyQueue* queue_;
  uint32_t participant_;
};

// Consumers stop claiming; those who sleep are woken. What is in the queue stays there
// (DrainQueue).
void AbandonQueue(ReadyQueue* queue);
// Takes and releases everything in it, abandoned or not.
void DrainQueue(ReadyQueue* queue);

// Gives back what a slice holds (its chunk reference or its sparse range).
void ReleaseSlice(const Slice& slice);

}  // namespace sluice
