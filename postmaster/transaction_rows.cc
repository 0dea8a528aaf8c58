// The rows of sluice.transactions: transactions over several servers that sessions are about to
// commit, that are decided and not yet carried out everywhere, or that a crash has left prepared.
#include <map>
#include <set>

#include "catalog/options.h"
#include "catalog/quote.h"
#include "postmaster/decision_log.h"
#include "postmaster/remote_query.h"
#include "postmaster/running_query.h"
#include "postmaster/settings.h"
#include "postmaster/virtual_rows.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

constexpr int64_t kSilenceUs = 5'000'000;

struct Entry {
  std::string state = "undecided";
  std::optional<std::string> pid;
  int64_t started_at = 0;
  std::set<Oid> servers;
};

using Entries = std::map<TransactionNumber, Entry>;

void AddLive(Entries* entries) {
  const ProcessTable& processes = shared_memory->processes;
  for (uint32_t i = 0; i < transaction_table->count; i++) {
    const TransactionSlot& slot = transaction_table->slots[i];
    TransactionNumber number = slot.number.load(std::memory_order_acquire);  // T1
    if (number == 0) continue;
    Entry entry;
    entry.state = NameOf(slot.phase.load(std::memory_order_relaxed));
    entry.pid = std::to_string(processes.slots[i].pid.load(std::memory_order_relaxed));
    entry.started_at = slot.started_at.load(std::memory_order_relaxed);
    for (const std::atomic<uint32_t>& server : slot.server_oids)
      if (Oid oid = server.load(std::memory_order_relaxed)) entry.servers.insert(oid);
    // It may have ended meanwhile, and another begun.
    if (slot.number.load(std::memory_order_acquire) == number) (*entries)[number] = entry;
  }
}

void AddDecided(const QuerySession& session, Entries* entries) {
  for (const Decision& decision : DecisionLog(session.data_directory).Unfinished()) {
    if (decision.by_catalog && !entries->contains(decision.number)) continue;
    Entry& entry = (*entries)[decision.number];
    if (!entry.pid) entry.state = "committed";
    if (entry.started_at == 0) entry.started_at = decision.decided_at;
    entry.servers.insert(decision.servers.begin(), decision.servers.end());
  }
}

}  // namespace

void ScanTransactions(const QuerySession& session, const VirtualRowSink& sink) {
  Entries entries;
  AddLive(&entries);
  AddDecided(session, &entries);
  // What the servers have prepared; those that do not answer are unknown.
  std::vector<RemoteQuery> queries;
  for (const auto& [oid, server] : session.catalog->servers)
    if (server.wrapper == kPostgresWrapper &&
        session.catalog->FindUserMapping(oid, session.user) != nullptr)
      queries.push_back({oid, fmt::format("SELECT gid FROM pg_catalog.pg_prepared_xacts WHERE "
                                          "pg_catalog.starts_with(gid, {}) AND database = "
                                          "pg_catalog.current_database()",
                                          QuoteLiteral(GidPrefix()))});
  RemoteSession remote = RemoteSessionOf(session);
  remote.silence_timeout_us = kSilenceUs;
  std::vector<Result<RemoteRows>> results = TryRemoteQueries(*session.catalog, remote, queries);
  std::set<Oid> answered;
  std::set<std::pair<TransactionNumber, Oid>> prepared;
  for (size_t i = 0; i < queries.size(); i++) {
    if (!results[i].ok()) continue;
    answered.insert(queries[i].server);
    for (const RemoteRow& row : results[i]->rows) {
      TransactionNumber number = NumberOfGid(row.at(0).value_or(""));
      if (number == 0) continue;
      prepared.insert({number, queries[i].server});
      entries[number].servers.insert(queries[i].server);
    }
  }
  for (const auto& [number, entry] : entries) {
    for (Oid oid : entry.servers) {
      auto server = session.catalog->servers.find(oid);
      const char* there = prepared.contains({number, oid}) ? "prepared"
                          : !answered.contains(oid)        ? "unknown"
                          : entry.state == "committed" || entry.state == "committing"
                              ? "committed"
                              : "not prepared";
      std::optional<std::string> row[] = {
          GidOf(number),
          entry.state,
          server == session.catalog->servers.end() ? std::to_string(oid) : server->second.name,
          there,
          entry.pid,
          TimestampValue(entry.started_at)};
      sink(row);
    }
  }
}

}  // namespace sluice
