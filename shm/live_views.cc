#include "shm/live_views.h"

#include "shm/shared_memory.h"

namespace sluice {

void PublishViewNews() {
  LiveViews* views = &shared_memory->live_views;
  views->news.fetch_add(1, std::memory_order_seq_cst);
  if (views->waiters.load(std::memory_order_seq_cst) == 0) return;
  const ProcessTable& table = shared_memory->processes;
  for (ProcNumber n = table.first_backend; n < table.first_backend + table.backends; n++) {
    ProcSlot& slot = table.slots[n];
    if (slot.kind.load(std::memory_order_relaxed) == ProcessKind::kClientBackend)
      SetLatch(&slot.latch);
  }
}

void WakeViewWorker() {
  const ProcessTable& table = shared_memory->processes;
  SetLatch(&table.slots[table.view_worker].latch);
}

ViewNewsWaiter::ViewNewsWaiter() {
  shared_memory->live_views.waiters.fetch_add(1, std::memory_order_seq_cst);
}

ViewNewsWaiter::~ViewNewsWaiter() {
  shared_memory->live_views.waiters.fetch_sub(1, std::memory_order_seq_cst);
}

ViewSubscription::ViewSubscription(uint32_t view) {
  for (bool again = true; again;) {
    again = false;
    std::atomic<uint64_t>* chosen = nullptr;
    uint64_t seen = 0;
    for (auto& entry : shared_memory->live_views.subscribed) {
      uint64_t value = entry.load(std::memory_order_acquire);  // W6
      bool used = static_cast<uint32_t>(value) != 0;
      bool same = used && value >> 32 == view;
      if (!same && (used || chosen != nullptr)) continue;
      chosen = &entry;
      seen = value;
      if (same) break;
    }
    if (chosen == nullptr) return;
    bool used = static_cast<uint32_t>(seen) != 0;
    uint64_t next = used ? seen + 1 : uint64_t{view} << 32 | 1;
    if (chosen->compare_exchange_strong(seen, next, std::memory_order_acq_rel))  // W6
      entry_ = chosen;
    else
      again = true;
  }
}

ViewSubscription::~ViewSubscription() {
  if (entry_ != nullptr) entry_->fetch_sub(1, std::memory_order_acq_rel);  // W6
}

ReplicatedServer* FindReplicatedServer(uint32_t server, bool make) {
  for (ReplicatedServer& entry : shared_memory->live_views.servers) {
    uint32_t oid = entry.server.load(std::memory_order_acquire);  // W1
    if (oid == server) return &entry;
    if (oid != 0) continue;
    if (!make) return nullptr;
    entry.server.store(server, std::memory_order_release);  // W1
    return &entry;
  }
  return nullptr;
}

}  // namespace sluice
