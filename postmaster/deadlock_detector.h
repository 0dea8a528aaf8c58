// Sessions that wait for each other in a circle over several servers: no server can see that, so it
// is looked for here, and broken by ending the youngest transaction of the circle with 40P01, as
// Postgres ends one within a server.
//
//   session A ──waits on shard 1 for──► session B ──waits on shard 2 for──► session A
//
// While fewer than two transactions that hold servers wait for longer than deadlock_timeout,
// nothing is asked of any server.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "shm/process_table.h"

namespace sluice {

class Settings;

class DeadlockDetector {
 public:
  explicit DeadlockDetector(const Settings* settings) : settings_(*settings) {}
  // Looks once, breaks what it finds. Throws what keeps a server from being asked.
  void Check(const Catalog& catalog);
  // How long to wait at most before the next look.
  int interval_ms() const;

 private:
  // Who waits and is waited for: a session's transaction, by its pin, or where it is none of ours a
  // process of a server instance.
  struct Node {
    uint64_t pin = 0;
    uint64_t instance = 0;
    uint32_t backend_pid = 0;
    auto operator<=>(const Node&) const = default;
  };
  struct Edge {
    Node from, to;
    uint64_t instance;
    std::string since;  // when this wait began, by the server's clock
    std::string lock;   // "ShareLock on transaction 730"
    std::string server_name;
  };
  struct Waiter {
    ProcNumber number;
    int32_t pid;
    int64_t xact_start;
    std::string query;
  };
  using Waiters = std::map<uint64_t, Waiter>;  // by pin

  Waiters FindWaiters() const;
  std::vector<Edge> AskServers(const Catalog& catalog, const Waiters& waiters) const;
  void Break(const std::vector<Edge>& circle, const Waiters& waiters) const;

  const Settings& settings_;
};

}  // namespace sluice
