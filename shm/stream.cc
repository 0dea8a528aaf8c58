#include "shm/stream.h"

#include <time.h>

#include "common/assert.h"
#include "shm/lease.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

bool TryPut(RequestRing* ring, const Request& request) {
  uint64_t at = ring->push_at.load(std::memory_order_relaxed);
  for (;;) {
    RequestRing::Cell& cell = ring->cells[at & ring->mask];
    uint64_t sequence =
        cell.sequence.load(std::memory_order_acquire);  // R1: the io worker is done with it
    auto ahead = static_cast<int64_t>(sequence - at);
    if (ahead < 0) return false;
    if (ahead > 0) {
      at = ring->push_at.load(std::memory_order_relaxed);
      continue;
    }
    if (!ring->push_at.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
    cell.request = request;
    cell.sequence.store(at + 1,
                        std::memory_order_release);  // R1: publishes the request and all behind it
    return true;
  }
}

void WakeIoWorker() {
  SetLatch(&shared_memory->processes.slots[kIoWorkerProc].latch);
}

// Releases what is in every queue of the group; queues that several streams share are visited more
// often.
void DrainGroup(StreamGroup* group) {
  for (Stream& stream : group->streams) {
    if (stream.output != nullptr) DrainQueue(stream.output);
    if (stream.input != nullptr) DrainQueue(stream.input);
  }
}

}  // namespace

bool TryReserveGroup(StreamGroup* group) {
  uint32_t chunks = group->extra_chunks;
  for (const Stream& stream : group->streams) chunks += stream.chunk_quota;
  if (!TryReserve(&shared_memory->chunks, chunks)) return false;
  group->reserved_chunks = chunks;
  return true;
}

void SubmitRequest(const Request& request) {
  // A full ring means that the io worker has thousands of requests before it: it is awake and will
  // get on.
  while (!TryPut(&shared_memory->requests, request)) {
    WakeIoWorker();
    timespec pause{0, 200'000};
    nanosleep(&pause, nullptr);
  }
  WakeIoWorker();
}

bool TakeRequest(Request* request) {
  RequestRing* ring = &shared_memory->requests;
  uint64_t at = ring->pop_at.load(std::memory_order_relaxed);  // R3: ours alone
  RequestRing::Cell& cell = ring->cells[at & ring->mask];
  if (cell.sequence.load(std::memory_order_acquire) != at + 1) return false;
  *request = cell.request;
  cell.sequence.store(at + ring->mask + 1, std::memory_order_release);
  ring->pop_at.store(at + 1, std::memory_order_relaxed);
  return true;
}

bool OthersAwaitAdmission() {
  return shared_memory->groups_waiting.load(std::memory_order_relaxed) > 0;
}

bool ChunksAreShort() {
  const ChunkPool& pool = shared_memory->chunks;
  return pool.unreserved.load(std::memory_order_relaxed) < int64_t{pool.chunk_count / 2};
}

void OpenStreams(StreamGroup* group) {
  SLUICE_ASSERT(group->state.load(std::memory_order_relaxed) == GroupState::kNew);
  int64_t now = MonotonicUs();
  for (size_t i = 0; i < group->streams.size(); i++) {
    Stream& stream = group->streams[i];
    SLUICE_ASSERT(stream.group == group && stream.index == i);
    SLUICE_ASSERT(stream.chunk_quota >= 2 || stream.kind == StreamKind::kGate);
    stream.submitted_us.store(now, std::memory_order_relaxed);
    // L3: the request publishes it.
    if (stream.lease != nullptr)
      stream.lease->state.store(LeaseState::kWanted, std::memory_order_relaxed);
  }
  group->state.store(GroupState::kSubmitted,
                     std::memory_order_relaxed);  // the request publishes it
  SubmitRequest({RequestKind::kOpen, group, 0, 0});
}

void BeginCloseStreams(StreamGroup* group) {
  // Where all streams have ended the io worker may have let go by itself: no need to ask.
  bool closed_already = group->state.load(std::memory_order_acquire) == GroupState::kClosed;
  if (!closed_already && group->close_wanted.exchange(1, std::memory_order_acq_rel) == 0)
    SubmitRequest({RequestKind::kClose, group, 0, 0});
}

void CloseStreams(StreamGroup* group) {
  if (group->state.load(std::memory_order_relaxed) == GroupState::kNew) return;
  HoldInterrupts hold;
  BeginCloseStreams(group);
  for (;;) {
    ResetLatch(&my_proc->latch);
    bool closed = group->state.load(std::memory_order_acquire) == GroupState::kClosed;  // G1
    DrainGroup(group);
    if (closed) break;
    WaitLatch(&my_proc->latch, {}, -1, WaitEvent::kStreamClose);
  }
  if (group->reserved_chunks > 0) Unreserve(&shared_memory->chunks, group->reserved_chunks);
  group->reserved_chunks = 0;
}

}  // namespace sluice
