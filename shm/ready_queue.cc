#include "shm/ready_queue.h"

#include <bit>
#include <sched.h>

#include "common/assert.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

// How a sleeper is never forgotten. A consumer that finds nothing sets its bit in `waiting` (Q3),
// looks again, and only then sleeps; a producer publishes its cell (Q1), then looks at `waiting`.
// All four are seq_cst, so in their one order either the producer's look comes after the consumer's
// bit (and wakes it), or the consumer's second look comes after the producer's cell (and finds it).
//
// A wake-up that its target does not need (it found a slice by itself) is handed on, see CancelWait
// and TryClaim; so while slices are ready and participants sleep, someone has been woken for each.

bool NextIsReady(const ReadyQueue* queue) {
  uint64_t at = queue->pop_at.load(std::memory_order_seq_cst);
  return queue->cells[at & queue->mask].sequence.load(std::memory_order_seq_cst) == at + 1;
}

void WakeParticipant(ReadyQueue* queue, uint32_t participant) {
  ProcNumber proc = queue->participants[participant].load(std::memory_order_acquire);
  if (proc != kNoProc) SetLatch(&shared_memory->processes.slots[proc].latch);
}

void WakeOne(ReadyQueue* queue) {
  uint64_t waiting = queue->waiting.load(std::memory_order_seq_cst);
  while (waiting != 0) {
    uint64_t bit = waiting & -waiting;
    uint64_t before = queue->waiting.fetch_and(~bit, std::memory_order_seq_cst);
    if (before & bit) return WakeParticipant(queue, std::countr_zero(bit));
    waiting = before & ~bit;  // another producer took that one
  }
}

void WakeAll(ReadyQueue* queue) {
  uint64_t waiting = queue->waiting.exchange(0, std::memory_order_seq_cst);
  for (; waiting != 0; waiting &= waiting - 1) WakeParticipant(queue, std::countr_zero(waiting));
}

// Q5. The producer of slice `at`, before it can be popped: if all before it were taken, the ring
// was empty until now. An interval that is still open then was overtaken by this push while its
// last consumer was about to close it, whose swap will fail.
void OpenReadyTime(ReadyQueue* queue, uint64_t at) {
  if (queue->pop_at.load(std::memory_order_seq_cst) != at) return;
  int64_t now = MonotonicUs();
  int64_t since = queue->ready_since_us.exchange(now, std::memory_order_seq_cst);
  if (since != 0) queue->ready_us.fetch_add(now - since, std::memory_order_relaxed);
}

// Q5. The consumer that has taken slice `at`; `since` as it was while that lay in the ring.
void CloseReadyTime(ReadyQueue* queue, uint64_t at, int64_t since) {
  if (queue->push_at.load(std::memory_order_seq_cst) != at + 1) return;
  if (queue->ready_since_us.compare_exchange_strong(since, 0, std::memory_order_seq_cst))
    queue->ready_us.fetch_add(MonotonicUs() - since, std::memory_order_relaxed);
}

bool TryPop(ReadyQueue* queue, Slice* slice) {
  uint64_t at = queue->pop_at.load(std::memory_order_relaxed);
  for (;;) {
    ReadyQueue::Cell& cell = queue->cells[at & queue->mask];
    // Q1: acquire part: the slice and the chunk's bytes, as the producer left them.
    uint64_t sequence = cell.sequence.load(std::memory_order_seq_cst);
    auto ahead = static_cast<int64_t>(sequence - (at + 1));
    if (ahead < 0) return false;
    if (ahead > 0) {
      at = queue->pop_at.load(std::memory_order_relaxed);
      continue;
    }
    int64_t since = queue->ready_since_us.load(std::memory_order_relaxed);
    if (!queue->pop_at.compare_exchange_weak(at, at + 1, std::memory_order_seq_cst)) continue;
    CloseReadyTime(queue, at, since);
    *slice = cell.slice;
    // Q1: free for the producer one round later.
    cell.sequence.store(at + queue->mask + 1, std::memory_order_release);
    return true;
  }
}

}  // namespace

int64_t ReadyTimeUs(const ReadyQueue& queue) {
  int64_t since = queue.ready_since_us.load(std::memory_order_relaxed);
  return queue.ready_us.load(std::memory_order_relaxed) + (since != 0 ? MonotonicUs() - since : 0);
}

ReadyQueue* MakeReadyQueue(Arena* arena, uint32_t slices_max, uint32_t streams) {
  uint64_t size = std::bit_ceil(uint64_t{std::max(slices_max, 2u)});
  auto* queue = new (arena->Allocate(sizeof(ReadyQueue), alignof(ReadyQueue))) ReadyQueue{};
  queue->mask = size - 1;
  queue->cells = arena->NewArray<ReadyQueue::Cell>(size).data();
  for (uint64_t i = 0; i < size; i++) queue->cells[i].sequence.store(i, std::memory_order_relaxed);
  queue->open_streams.store(streams, std::memory_order_relaxed);
  for (auto& participant : queue->participants)
    participant.store(kNoProc, std::memory_order_relaxed);
  return queue;
}

void ChunkProducer::Push(const Slice& slice) {
  uint64_t at = queue_->push_at.load(std::memory_order_relaxed);
  for (;;) {
    ReadyQueue::Cell& cell = queue_->cells[at & queue_->mask];
    uint64_t sequence =
        cell.sequence.load(std::memory_order_acquire);  // Q1: the cell's last reader is done
    auto ahead = static_cast<int64_t>(sequence - at);
    if (ahead < 0) {
      // The ring has room for all that the quotas allow, so it is not full (that would be a
      // producer's bug); a consumer that took this cell a round ago was preempted while copying the
      // slice out.
      SLUICE_ASSERT(at - queue_->pop_at.load(std::memory_order_acquire) <= queue_->mask);
      sched_yield();
      at = queue_->push_at.load(std::memory_order_relaxed);
      continue;
    }
    if (ahead > 0) {
      at = queue_->push_at.load(std::memory_order_relaxed);
      continue;
    }
    if (!queue_->push_at.compare_exchange_weak(at, at + 1, std::memory_order_seq_cst)) continue;
    OpenReadyTime(queue_, at);
    cell.slice = slice;
    cell.sequence.store(at + 1, std::memory_order_seq_cst);  // Q1, and the order with Q3
    break;
  }
  WakeOne(queue_);
}

void ChunkProducer::End(uint16_t stream) {
  Push({SliceKind::kEnd, stream, kNoChunk, nullptr, 0, 0});
  uint32_t before = queue_->open_streams.fetch_sub(1, std::memory_order_seq_cst);  // Q2
  SLUICE_ASSERT(before > 0);
  if (before == 1) WakeAll(queue_);
}

ChunkConsumer::ChunkConsumer(ReadyQueue* queue, uint32_t participant)
    : queue_(queue), participant_(participant) {
  SLUICE_ASSERT(participant < kParticipantsMax);
  queue->participants[participant].store(my_proc_number, std::memory_order_release);
}

Claim ChunkConsumer::TryClaim(Slice* slice) {
  if (queue_->abandoned.load(std::memory_order_seq_cst) != 0) return Claim::kDone;
  // Q2 before the ring: with no stream open, nothing can be pushed after the look.
  bool open = queue_->open_streams.load(std::memory_order_seq_cst) != 0;
  if (!TryPop(queue_, slice)) return open ? Claim::kEmpty : Claim::kDone;
  // A producer that was overtaken in the ring may have woken one sleeper for two slices.
  if (queue_->waiting.load(std::memory_order_relaxed) != 0 && NextIsReady(queue_)) WakeOne(queue_);
  return Claim::kSlice;
}

void ChunkConsumer::PrepareToWait() {
  queue_->waiting.fetch_or(uint64_t{1} << participant_, std::memory_order_seq_cst);
}

void ChunkConsumer::CancelWait() {
  uint64_t bit = uint64_t{1} << participant_;
  uint64_t before = queue_->waiting.fetch_and(~bit, std::memory_order_seq_cst);
  // A producer took the bit: its wake-up was for us, who do not need it; someone else may.
  if ((before & bit) == 0 && NextIsReady(queue_)) WakeOne(queue_);
}

void ChunkConsumer::EndWait() {
  // If there is more than one slice, TryClaim hands the wake-up on.
  queue_->waiting.fetch_and(~(uint64_t{1} << participant_), std::memory_order_seq_cst);
}

bool ChunkConsumer::ClaimOrWait(Slice* slice, WaitEvent event) {
  for (;;) {
    CheckForInterrupts();
    Claim claim = TryClaim(slice);
    if (claim != Claim::kEmpty) return claim == Claim::kSlice;
    ResetLatch(&my_proc->latch);
    PrepareToWait();
    claim = TryClaim(slice);
    if (claim != Claim::kEmpty) {
      CancelWait();
      return claim == Claim::kSlice;
    }
    try {
      WaitInterruptibly(event);
    } catch (...) {
      CancelWait();
      throw;
    }
    EndWait();
  }
}

void AbandonQueue(ReadyQueue* queue) {
  queue->abandoned.store(1, std::memory_order_seq_cst);
  WakeAll(queue);
}

void DrainQueue(ReadyQueue* queue) {
  Slice slice;
  while (TryPop(queue, &slice)) ReleaseSlice(slice);
}

void ReleaseSlice(const Slice& slice) {
  if (slice.kind == SliceKind::kOversized)
    FreeExtents(const_cast<char*>(slice.data), slice.size_bytes);
  if (slice.chunk != kNoChunk) DropReference(&shared_memory->chunks, slice.chunk);
}

}  // namespace sluice
