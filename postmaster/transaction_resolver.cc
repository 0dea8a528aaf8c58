#include "postmaster/transaction_resolver.h"

#include <map>
#include <set>

#include "catalog/catalog.h"
#include "catalog/options.h"
#include "catalog/quote.h"
#include "common/log.h"
#include "postmaster/activity.h"
#include "postmaster/catalog_follower.h"
#include "postmaster/decision_log.h"
#include "postmaster/remote_query.h"
#include "postmaster/settings.h"
#include "shm/shared_memory.h"
#include "shm/transaction_table.h"

namespace sluice {
namespace {

// A PREPARE TRANSACTION may still be on its way when its backend is dead: servers are looked at
// again and again, more often while something is known to be unfinished.
constexpr int kUnfinishedMs = 1'000;
constexpr int kQuietMs = 5'000;
constexpr int64_t kSilenceUs = 10'000'000;

class Resolver {
 public:
  Resolver(const std::string& directory, const Settings* settings)
      : settings_(*settings), follower_(directory), log_(directory) {}

  // How long it is good to sleep now.
  int Pass() {
    catalog_ = follower_.Refresh();
    found_.clear();
    unseen_.clear();
    for (const auto& [oid, server] : catalog_->servers)
      if (server.wrapper == kPostgresWrapper) Scan(oid);
    // After the scan, in this order: a transaction that was seen prepared and is not live any more
    // has its decision in the log, or was rolled back.
    std::set<TransactionNumber> live;
    for (const auto& [number, places] : found_)
      if (IsLive(number)) live.insert(number);
    std::map<TransactionNumber, Decision> decided;
    for (Decision& decision : log_.Unfinished()) decided[decision.number] = std::move(decision);
    bool all_done = true;
    for (const auto& [number, places] : found_)
      if (!live.contains(number)) all_done &= Finish(number, decided.contains(number), places);
    for (const auto& [number, decision] : decided)
      if (!live.contains(number) && !IsLive(number)) all_done &= MarkIfDone(decision);
    log_.RemoveFinished();
    if (all_done) transaction_table->recovering.store(0, std::memory_order_release);  // T5
    return all_done ? kQuietMs : kUnfinishedMs;
  }

 private:
  struct Place {
    Oid server;
    std::string user;
  };

  RemoteSession SessionOf(const std::string& user) const {
    RemoteSession session;
    session.user = user;
    session.limits.connections_max =
        static_cast<uint32_t>(settings_.Integer("connections_per_server"));
    session.silence_timeout_us = kSilenceUs;
    return session;
  }

  // What this node has prepared there, as each of the roles that sessions use there.
  void Scan(Oid server) {
    RemoteQuery query{server, fmt::format("SELECT gid FROM pg_catalog.pg_prepared_xacts WHERE "
                                          "pg_catalog.starts_with(gid, {}) AND owner = "
                                          "current_user AND database = "
                                          "pg_catalog.current_database()",
                                          QuoteLiteral(GidPrefix()))};
    for (const UserMapping& mapping : catalog_->user_mappings) {
      if (mapping.server != server) continue;
      try {
        Result<RemoteRows> rows =
            TryRemoteQueries(*catalog_, SessionOf(mapping.user), {&query, 1})[0];
        if (!rows.ok()) {
          unseen_.insert(server);
          continue;
        }
        for (const RemoteRow& row : rows->rows)
          if (TransactionNumber number = NumberOfGid(*row[0]))
            found_[number].push_back({server, mapping.user});
      } catch (const QueryError& e) {
        if (e.error.state == sqlstate::kAdminShutdown) throw;
        unseen_.insert(server);
      }
    }
  }

  bool Finish(TransactionNumber number, bool commit, const std::vector<Place>& places) {
    bool all = true;
    for (const Place& place : places) {
      RemoteSession session = SessionOf(place.user);
      session.gate = commit ? StreamGate::kDecision : StreamGate::kNone;
      session.kind = StreamKind::kSimple;
      RemoteQuery query{place.server, fmt::format("{} PREPARED {}", commit ? "COMMIT" : "ROLLBACK",
                                                  QuoteLiteral(GidOf(number)))};
      Result<RemoteRows> result = TryRemoteQueries(*catalog_, session, {&query, 1})[0];
      bool done = result.ok() || result.error().state == sqlstate::kUndefinedObject;
      Log(LogLevel::kLog, "{} of prepared transaction {} on server \"{}\": {}",
          commit ? "commit" : "rollback", GidOf(number), catalog_->servers.at(place.server).name,
          result.ok() ? "done" : result.error().message);
      if (!done) unseen_.insert(place.server);
      all &= done;
    }
    return all;
  }

  // Done: on every server that takes part it was looked for, and is no longer there.
  bool MarkIfDone(const Decision& decision) {
    for (uint32_t server : decision.servers)
      if (catalog_->servers.contains(server) && unseen_.contains(server)) return false;
    Status marked = log_.MarkDone(decision.number);
    if (!marked.ok()) LogError(LogLevel::kWarning, marked.error());
    return marked.ok();
  }

  const Settings& settings_;
  CatalogFollower follower_;
  DecisionLog log_;
  std::shared_ptr<const Catalog> catalog_;
  std::map<TransactionNumber, std::vector<Place>> found_;  // prepared, where
  std::set<Oid> unseen_;  // servers that did not answer, or not as wanted
};

}  // namespace

void TransactionResolverMain(const std::string& directory, const Settings* settings) {
  SetLogProcessName("transaction resolver");
  ReportApplicationName("transaction resolver");
  std::optional<Resolver> resolver;
  for (;;) {
    int sleep_ms = kUnfinishedMs;
    try {
      transaction_table->wake.store(0, std::memory_order_seq_cst);  // T4
      if (!resolver) resolver.emplace(directory, settings);
      sleep_ms = resolver->Pass();
    } catch (const QueryError& e) {
      if (e.error.state == sqlstate::kAdminShutdown) throw;
      LogError(LogLevel::kWarning, e.error);
    }
    int64_t until_us = MonotonicUs() + int64_t{sleep_ms} * 1000;
    for (;;) {
      ResetLatch(&my_proc->latch);
      CheckForInterrupts();
      int64_t rest_us = until_us - MonotonicUs();
      if (transaction_table->wake.load(std::memory_order_seq_cst) != 0 || rest_us <= 0) break;
      WaitLatch(&my_proc->latch, {}, static_cast<int>(rest_us / 1000 + 1),
                WaitEvent::kParallelWorkerMain);
    }
  }
}

}  // namespace sluice
