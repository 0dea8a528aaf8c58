// The commit gate (fdw/group_gate.cc) for a decision that this process carries out itself, on
// connections that are lent to it: asked for before it is needed, given back without waiting.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "postmaster/remote_query.h"
#include "shm/query_arena.h"
#include "shm/stream.h"

namespace sluice {

class DecisionGate {
 public:
  // `statements`: COMMIT PREPARED for each server, with the transaction's number there.
  DecisionGate(const Catalog& catalog, const RemoteSession& session,
               std::span<const RemoteQuery> statements);
  // Waits until the io worker has let go, which it mostly has.
  ~DecisionGate() { CloseStreams(group_); }
  DecisionGate(const DecisionGate&) = delete;
  DecisionGate& operator=(const DecisionGate&) = delete;

  bool closed() const {
    return group_->state.load(std::memory_order_acquire) == GroupState::kClosed;  // G1
  }
  // False: it cannot be had.
  bool Await();
  // Servers that have not carried it out are in doubt from now on.
  void Leave(const std::vector<bool>& carried_out);

 private:
  SharedBlocks blocks_;
  Arena arena_{blocks_, 16 * 1024};
  StreamGroup* group_;
};

}  // namespace sluice
