// What backends and the view worker tell each other. Durable state is in the view store; here is
// only how to wait for it: positions reached, and who is to be woken.
#pragma once

#include <atomic>
#include <cstdint>

#include "shm/process_table.h"

namespace sluice {

inline constexpr uint32_t kReplicatedServersMax = 256;

// One shard's stream of changes, as the view worker sees it.
struct ReplicatedServer {
  // W1: the server's oid; stored (release) by the view worker after the fields below were reset,
  // loaded (acquire) by anyone; 0: no more entries. An entry keeps its server for good.
  std::atomic<uint32_t> server;
  // W2: all relaxed; written by the view worker, but `applied_lsn`, which is stored (release) after
  // the epoch that reached it was committed, and loaded (acquire): who has seen it finds at least
  // that epoch in the store.
  std::atomic<uint64_t> applied_lsn;    // everything committed before it is in the views
  std::atomic<uint64_t> confirmed_lsn;  // … and is durable: the shard was told
  std::atomic<uint64_t> server_lsn;     // the end of the shard's WAL, as it told last
  std::atomic<int64_t> applied_at_us;   // commit time of the last transaction applied
  std::atomic<int64_t> server_time_us;  // the shard's clock when it told server_lsn
  std::atomic<uint32_t> streaming;      // 1: its stream runs
};

// A backend asks the view worker to stop taking in changes, and then to take in exactly what
// snapshots of the shards see (postmaster/view_hold.cc).
struct ViewHold {
  // H1: who holds, a number of its own for each time; 0: nobody. A backend puts its number where 0
  // is, and 0 where its number is.
  std::atomic<uint64_t> holder;
  // H2: the holder for whom the view worker has stopped (release): no epoch is committed from then
  // on until it has answered or lost patience.
  std::atomic<uint64_t> held;
  // H3: the epoch that is what the snapshots see; 0: there was none. Valid (acquire) for the
  // holder whose number is in `answered` (release).
  std::atomic<uint64_t> epoch;
  std::atomic<uint64_t> answered;
};

inline constexpr size_t kSubscribedViewsMax = 256;

struct LiveViews {
  // W3: raised by the view worker after every committed epoch and every change of a job's state
  // (release), before it wakes the waiters; loaded (acquire) by whoever waits.
  std::atomic<uint64_t> news;
  // W4: how many processes wait for news; incremented (seq_cst) before the waiter looks again.
  std::atomic<uint32_t> waiters;
  // W5: 1 + the newest catalog generation whose views the view worker has taken up (release); 0: it
  // has not yet looked at the store, and `servers` says nothing.
  std::atomic<uint64_t> catalog_generation;
  ReplicatedServer servers[kReplicatedServersMax];
  ViewHold hold;
  // W6: subscribed views, each oid << 32 | subscribers; changed (acq_rel) by who subscribes, loaded
  // (acquire) by the view worker. Without subscribers an entry is free.
  std::atomic<uint64_t> subscribed[kSubscribedViewsMax];
};

// View worker: there is news for whoever waits.
void PublishViewNews();
// Any process: the catalog's views or a job were changed.
void WakeViewWorker();

// While it lives, this process's latch is set at news. Look again after making it.
class ViewNewsWaiter {
 public:
  ViewNewsWaiter();
  ~ViewNewsWaiter();
  ViewNewsWaiter(const ViewNewsWaiter&) = delete;
};

// While it lives, the view worker keeps the view's changes. False: too many views are subscribed.
class ViewSubscription {
 public:
  explicit ViewSubscription(uint32_t view);
  ~ViewSubscription();
  ViewSubscription(const ViewSubscription&) = delete;
  bool ok() const { return entry_ != nullptr; }

 private:
  std::atomic<uint64_t>* entry_ = nullptr;
};
// View worker: each subscribed view's oid.
template <typename Fn>
void ForEachSubscribedView(const LiveViews& views, Fn&& fn) {
  for (const auto& entry : views.subscribed) {
    uint64_t value = entry.load(std::memory_order_acquire);  // W6
    if (static_cast<uint32_t>(value) != 0) fn(static_cast<uint32_t>(value >> 32));
  }
}

// The entry of a server; null: its changes are not streamed. `make`: view worker only.
ReplicatedServer* FindReplicatedServer(uint32_t server, bool make = false);

}  // namespace sluice
