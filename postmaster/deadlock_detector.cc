#include "postmaster/deadlock_detector.h"

#include "catalog/options.h"
#include "common/log.h"
#include "postmaster/child_process.h"
#include "postmaster/remote_query.h"
#include "postmaster/settings.h"
#include "shm/query_arena.h"
#include "shm/shared_memory.h"
#include "shm/transaction_table.h"

namespace sluice {
namespace {

constexpr int64_t kSilenceUs = 5'000'000;
constexpr int kIntervalMaxMs = 1'000;

// Each process that waits for a lock with those that it waits for; 0 is a prepared transaction,
// which waits for nobody. Locks are named as Postgres names them.
constexpr const char* kWaitsSql = R"(
SELECT l.pid, b.pid, pg_catalog.to_jsonb(l) ->> 'waitstart', l.mode || ' on ' ||
  CASE l.locktype
    WHEN 'relation' THEN 'relation ' || l.relation || ' of database ' || l.database
    WHEN 'tuple' THEN 'tuple (' || l.page || ',' || l.tuple || ') of relation ' || l.relation ||
      ' of database ' || l.database
    WHEN 'transactionid' THEN 'transaction ' || l.transactionid
    WHEN 'virtualxid' THEN 'virtual transaction ' || l.virtualxid
    ELSE l.locktype END
FROM pg_catalog.pg_locks l, LATERAL pg_catalog.unnest(pg_catalog.pg_blocking_pids(l.pid)) b(pid)
WHERE NOT l.granted AND b.pid <> 0)";

uint32_t NumberOf(const RemoteRow& row, size_t column) {
  return static_cast<uint32_t>(std::strtoul(row.at(column).value_or("0").c_str(), nullptr, 10));
}

}  // namespace

int DeadlockDetector::interval_ms() const {
  return static_cast<int>(
      std::clamp<int64_t>(settings_.Integer("deadlock_timeout") / 2, 10, kIntervalMaxMs));
}

DeadlockDetector::Waiters DeadlockDetector::FindWaiters() const {
  Waiters waiters;
  int64_t since = PostgresNow() - settings_.Integer("deadlock_timeout") * 1000;
  const ProcessTable& processes = shared_memory->processes;
  for (uint32_t i = 0; i < processes.backends; i++) {
    ProcNumber number = processes.first_backend + i;
    uint64_t pin = transaction_table->slots[number].pin.load(std::memory_order_relaxed);
    ActivityRow row;
    if (pin == 0 || !ReadActivity(processes.slots[number], &row)) continue;
    if (row.state == ActivityState::kActive && row.query_start <= since)
      waiters[pin] = {number, row.pid, row.xact_start, row.query};
  }
  return waiters;
}

std::vector<DeadlockDetector::Edge> DeadlockDetector::AskServers(const Catalog& catalog,
                                                                 const Waiters& waiters) const {
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> pins;  // by instance and process
  std::set<uint64_t> wanted;
  for (const PinnedRow& row : ReadPinned()) {
    pins[{row.instance, row.backend_pid}] = row.pin;
    if (waiters.contains(row.pin)) wanted.insert(row.instance);
  }
  // One server and role of each instance.
  std::map<std::string, std::vector<RemoteQuery>> by_user;
  std::map<Oid, uint64_t> instances;
  SharedBlocks blocks;
  Arena arena(blocks, kExtentBytes);
  for (const UserMapping& mapping : catalog.user_mappings) {
    auto server = catalog.servers.find(mapping.server);
    if (server == catalog.servers.end() || server->second.wrapper != kPostgresWrapper) continue;
    uint64_t instance =
        HashInstance(*MakeConnectionSpec(catalog, mapping.server, mapping.user, {}, {}, &arena));
    if (wanted.erase(instance) == 0) continue;
    instances[mapping.server] = instance;
    by_user[mapping.user].push_back({mapping.server, kWaitsSql});
  }
  std::vector<Edge> edges;
  for (const auto& [user, queries] : by_user) {
    RemoteSession session;
    session.user = user;
    session.silence_timeout_us = kSilenceUs;
    std::vector<Result<RemoteRows>> results = TryRemoteQueries(catalog, session, queries);
    for (size_t i = 0; i < queries.size(); i++) {
      if (!results[i].ok()) continue;  // a circle over it cannot be seen now
      uint64_t instance = instances.at(queries[i].server);
      auto node = [&](uint32_t pid) {
        auto found = pins.find({instance, pid});
        return found != pins.end() ? Node{found->second} : Node{0, instance, pid};
      };
      for (const RemoteRow& row : results[i]->rows)
        edges.push_back({node(NumberOf(row, 0)), node(NumberOf(row, 1)), instance,
                         row.at(2).value_or(""), row.at(3).value_or(""),
                         catalog.servers.at(queries[i].server).name});
    }
  }
  return edges;
}

namespace {

// A circle of edges, or nothing. Depth first; `done`: from there none was found.
template <typename Edge, typename Node>
bool FindCircle(const std::vector<Edge>& edges, const Node& at, std::vector<const Edge*>* path,
                std::set<Node>* done) {
  for (size_t i = 0; i < path->size(); i++)
    if ((*path)[i]->from == at) {
      path->erase(path->begin(), path->begin() + static_cast<ptrdiff_t>(i));
      return true;
    }
  if (!done->insert(at).second) return false;
  for (const Edge& edge : edges) {
    if (edge.from != at) continue;
    path->push_back(&edge);
    if (FindCircle(edges, edge.to, path, done)) return true;
    path->pop_back();
  }
  return false;
}

}  // namespace

void DeadlockDetector::Check(const Catalog& catalog) {
  Waiters waiters = FindWaiters();
  if (waiters.size() < 2) return;
  std::vector<Edge> edges = AskServers(catalog, waiters);
  // Servers answer one after the other. A wait that was there before and after any moment in
  // between was there at that moment: so a circle that is seen twice, of the same waits, is one.
  std::vector<Edge> lasting;
  for (bool asked_again = false;;) {
    const std::vector<Edge>& now = asked_again ? lasting : edges;
    std::set<Node> done;
    std::vector<const Edge*> circle;
    bool found = false;
    for (const Edge& edge : now) {
      circle.clear();
      found = FindCircle(now, edge.from, &circle, &done);
      // One that lies on a single server is that server's to break.
      if (found && std::ranges::any_of(circle, [&](const Edge* e) {
            return e->instance != circle.front()->instance;
          }))
        break;
      found = false;
    }
    if (!found) return;
    if (asked_again) {
      std::vector<Edge> broken;
      for (const Edge* edge : circle) broken.push_back(*edge);
      return Break(broken, waiters);
    }
    asked_again = true;
    std::vector<Edge> again = AskServers(catalog, waiters);
    std::ranges::copy_if(edges, std::back_inserter(lasting), [&](const Edge& edge) {
      return std::ranges::any_of(again, [&](const Edge& e) {
        return e.from == edge.from && e.to == edge.to && e.instance == edge.instance &&
               e.since == edge.since;
      });
    });
  }
}

void DeadlockDetector::Break(const std::vector<Edge>& circle, const Waiters& waiters) const {
  std::string detail, queries;
  const std::pair<const uint64_t, Waiter>* youngest = nullptr;
  for (const Edge& edge : circle) {
    auto waiter = waiters.find(edge.from.pin), blocker = waiters.find(edge.to.pin);
    auto pid_of = [&](auto found, const Node& node) {
      return found != waiters.end() ? static_cast<uint32_t>(found->second.pid) : node.backend_pid;
    };
    detail += fmt::format("{}Process {} waits for {} of server \"{}\"; blocked by process {}.",
                          detail.empty() ? "" : "\n", pid_of(waiter, edge.from), edge.lock,
                          edge.server_name, pid_of(blocker, edge.to));
    if (waiter == waiters.end()) continue;
    queries += fmt::format("\nProcess {}: {}", waiter->second.pid, waiter->second.query);
    if (youngest == nullptr || std::pair(waiter->second.xact_start, waiter->first) >
                                   std::pair(youngest->second.xact_start, youngest->first))
      youngest = &*waiter;
  }
  if (youngest == nullptr) return;
  Log(LogLevel::kLog, "deadlock detected over several servers: {}{}", detail, queries);
  TransactionSlot& slot = transaction_table->slots[youngest->second.number];
  size_t length = std::min(detail.size(), kDeadlockDetailBytes - 1);
  std::memcpy(slot.deadlock_detail, detail.data(), length);
  slot.deadlock_detail[length] = 0;
  slot.deadlocked_pin.store(youngest->first, std::memory_order_release);  // T7
  ProcSlot& proc = shared_memory->processes.slots[youngest->second.number];
  proc.cancel_requested.store(1, std::memory_order_relaxed);
  SetLatch(&proc.latch);
}

}  // namespace sluice
