#include "fdw/stream_task.h"

#include "common/assert.h"
#include "fdw/group.h"
#include "shm/lease.h"

namespace sluice {

StreamTask::~StreamTask() {
  SLUICE_ASSERT(ended_);
  std::erase(worker_->waiting, this);
}

void StreamTask::End(StreamState state, const Error* error) {
  SLUICE_ASSERT(!ended_);
  ended_ = true;
  stream_->ended_us.store(MonotonicMicros(), std::memory_order_relaxed);
  if (error != nullptr) stream_->error.Store(*error);
  if (stream_->lease != nullptr && !lease_taken_)
    stream_->lease->state.store(LeaseState::kNone, std::memory_order_release);  // L3
  stream_->state.store(state, std::memory_order_release);                       // S1
  if (stream_->output != nullptr) ChunkProducer(stream_->output).End(stream_->index);
  if (group_->shared()->gate == StreamGate::kDecision) group_->OnDecisionEnded(*stream_);
  PassGate();
  group_->OnTaskEnded();
}

void StreamTask::PassGate() {
  if (!std::exchange(gate_passed_, true)) group_->OnGatePassed();
}

void StreamTask::WaitForLatch() {
  auto& waiting = worker_->waiting;
  if (std::find(waiting.begin(), waiting.end(), this) == waiting.end()) waiting.push_back(this);
}

}  // namespace sluice
