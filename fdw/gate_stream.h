// A stream without a statement (StreamKind::kGate): its group holds the gate while the backend
// carries out a decision itself. A backend that dies takes the io worker with it (the crash rule),
// and its servers are in doubt until the resolver has looked at them.
#pragma once

#include "fdw/stream_task.h"
#include "shm/shared_memory.h"

namespace sluice {

class GateStream final : public StreamTask {
 public:
  using StreamTask::StreamTask;
  void Start() override {
    stream()->state.store(StreamState::kRunning, std::memory_order_release);  // S1
    SetLatch(&shared_memory->processes.slots[stream()->group->backend].latch);
  }
  void Resume() override {}
  void Detach() override {
    if (!ended()) End(stream()->carried_out ? StreamState::kEnded : StreamState::kCancelled);
  }
};

}  // namespace sluice
