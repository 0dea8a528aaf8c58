#include "postmaster/decision_gate.h"

#include "shm/process_table.h"

namespace sluice {

DecisionGate::DecisionGate(const Catalog& catalog, const RemoteSession& session,
                           std::span<const RemoteQuery> statements) {
  group_ = arena_.New<StreamGroup>();
  group_->backend = my_proc_number;
  group_->streams = arena_.NewArray<Stream>(statements.size());
  group_->admission_timeout_us = session.admission_timeout_us;
  group_->gate = StreamGate::kDecision;
  for (size_t i = 0; i < statements.size(); i++) {
    Stream& stream = group_->streams[i];
    stream.kind = StreamKind::kGate;
    stream.index = static_cast<uint16_t>(i);
    stream.group = group_;
    stream.connection = MakeConnectionSpec(catalog, statements[i].server, session.user,
                                           session.settings, session.limits, &arena_);
    stream.sql = arena_.CopyString(statements[i].sql);
    stream.xid = statements[i].xid;
  }
  OpenStreams(group_);
}

bool DecisionGate::Await() {
  HoldInterrupts hold;
  // The last one's: all start together.
  const std::atomic<StreamState>& state = group_->streams.back().state;
  for (;;) {
    ResetLatch(&my_proc->latch);
    StreamState now = state.load(std::memory_order_acquire);  // S1
    if (now == StreamState::kRunning) return true;
    if (now == StreamState::kFailed) return false;
    WaitLatch(&my_proc->latch, {}, -1, WaitEvent::kCommitGate);
  }
}

void DecisionGate::Leave(const std::vector<bool>& carried_out) {
  for (size_t i = 0; i < carried_out.size(); i++) group_->streams[i].carried_out = carried_out[i];
  BeginCloseStreams(group_);
}

}  // namespace sluice
