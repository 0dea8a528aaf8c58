#include "postmaster/transaction_resolver.h"

#include <map>
#include <set>

#include "catalog/catalog.h"
#include "catalog/options.h"
#include "catalog/quote.h"
#include "common/log.h"
#include "postmaster/catalog_follower.h"
#include "postmaster/deadlock_detector.h"
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

  const std::shared_ptr<const Catalog>& catalog() const { return catalog_; }

  // How long it is good to sleep now.
  int Pass() {
    catalog_ = follower_.Refresh();
    found_.clear();
    unseen_.clear();
    Scan();
    // After the scan, in this order: a transaction that was seen prepared and is not live any more
    // has its decision in the log, or was rolled back.
    std::set<TransactionNumber> live;
    for (const auto& [number, places] : found_)
      if (IsLive(number)) live.insert(number);
    std::map<TransactionNumber, Decision> decided = Decided();
    bool all_done = true;
    for (const auto& [number, places] : found_)
      if (!live.contains(number) && !decided.contains(number))
        all_done &= Finish(number, false, places);
    std::set<Oid> unfinished;
    for (const auto& [number, decision] : decided)
      if (!live.contains(number) && !IsLive(number) && !FinishDecided(decision)) {
        all_done = false;
        unfinished.insert(decision.servers.begin(), decision.servers.end());
      }
    log_.RemoveFinished();
    KeepRecovering({unfinished.begin(), unfinished.end()});
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

  // The log's decisions, and of those that the catalog has the say about those that it has.
  std::map<TransactionNumber, Decision> Decided() {
    std::map<TransactionNumber, Decision> decided;
    // First who is alive, then the log: who is dead has written there all that he ever will.
    TransactionNumber begun = NewTransactionNumber();
    std::set<TransactionNumber> live = LiveTransactions();
    for (Decision& decision : log_.Unfinished()) {
      if (decision.by_catalog) {
        if (live.contains(decision.number) || decision.number > begun) continue;
        follower_.Forget();
        catalog_ = follower_.Refresh();
        bool committed = std::ranges::any_of(
            catalog_->decisions, [&](const auto& known) { return known.first == decision.number; });
        decision.by_catalog = false;
        Status noted = committed ? log_.Append(decision) : log_.MarkDone(decision.number);
        if (!noted.ok()) throw QueryError(noted.error());
        if (!committed) continue;
      }
      TransactionNumber number = decision.number;
      decided[number] = std::move(decision);
    }
    transaction_table->catalog_taken.store(1, std::memory_order_release);  // T9
    return decided;
  }

  // What this node has prepared on all servers, as each of the roles that sessions use there. A
  // role's servers are asked at once, so that one that is down delays no other.
  void Scan() {
    std::map<std::string, std::vector<RemoteQuery>> by_user;
    std::string sql = fmt::format(
        "SELECT gid FROM pg_catalog.pg_prepared_xacts WHERE pg_catalog.starts_with(gid, {}) AND "
        "owner = current_user AND database = pg_catalog.current_database()",
        QuoteLiteral(GidPrefix()));
    for (const UserMapping& mapping : catalog_->user_mappings) {
      auto server = catalog_->servers.find(mapping.server);
      if (server != catalog_->servers.end() && server->second.wrapper == kPostgresWrapper)
        by_user[mapping.user].push_back({mapping.server, sql});
    }
    for (const auto& [user, queries] : by_user) {
      std::vector<Result<RemoteRows>> results = Try(user, queries);
      for (size_t i = 0; i < queries.size(); i++) {
        Oid server = queries[i].server;
        if (!results[i].ok()) {
          unseen_.insert(server);
          continue;
        }
        for (const RemoteRow& row : results[i]->rows)
          if (TransactionNumber number = NumberOfGid(*row[0]))
            found_[number].push_back({server, user});
      }
    }
  }

  // A host name that does not resolve fails all: then each is tried by itself.
  std::vector<Result<RemoteRows>> Try(const std::string& user,
                                      const std::vector<RemoteQuery>& queries) {
    try {
      return TryRemoteQueries(*catalog_, SessionOf(user), queries);
    } catch (const QueryError& e) {
      if (e.error.state == sqlstate::kAdminShutdown) throw;
      if (queries.size() == 1) return {e.error};
    }
    std::vector<Result<RemoteRows>> results;
    for (const RemoteQuery& query : queries) results.push_back(Try(user, {query})[0]);
    return results;
  }

  // Where it was not found it is asked to commit all the same: the answer that there is no such
  // transaction ends the doubt about the server (fdw/group.h) too.
  bool FinishDecided(const Decision& decision) {
    std::vector<Place> places;
    if (auto found = found_.find(decision.number); found != found_.end()) places = found->second;
    bool all = true;
    for (uint32_t server : decision.servers) {
      if (!catalog_->servers.contains(server)) continue;
      bool known = std::ranges::any_of(places, [&](const Place& p) { return p.server == server; });
      auto mapping = std::ranges::find_if(catalog_->user_mappings,
                                          [&](const UserMapping& m) { return m.server == server; });
      if (known) continue;
      if (unseen_.contains(server) || mapping == catalog_->user_mappings.end())
        all = false;
      else
        places.push_back({server, mapping->user});
    }
    all &= Finish(decision.number, true, places);
    if (!all) return false;
    Status marked = log_.MarkDone(decision.number);
    if (!marked.ok()) LogError(LogLevel::kWarning, marked.error());
    return marked.ok();
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
      bool gone = !result.ok() && result.error().state == sqlstate::kUndefinedObject;
      Log(gone ? LogLevel::kDebug : LogLevel::kLog,
          "{} of prepared transaction {} on server \"{}\": {}", commit ? "commit" : "rollback",
          GidOf(number), catalog_->servers.at(place.server).name,
          result.ok() ? "done" : result.error().message);
      all &= result.ok() || gone;
    }
    return all;
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
  std::optional<Resolver> resolver;
  DeadlockDetector deadlocks(settings);
  int64_t pass_at_us = 0;
  for (;;) {
    ResetLatch(&my_proc->latch);
    CheckForInterrupts();
    bool woken = transaction_table->wake.exchange(0, std::memory_order_seq_cst) != 0;  // T4
    try {
      if (woken || MonotonicUs() >= pass_at_us) {
        pass_at_us = MonotonicUs() + int64_t{kUnfinishedMs} * 1000;
        if (!resolver) resolver.emplace(directory, settings);
        pass_at_us = MonotonicUs() + int64_t{resolver->Pass()} * 1000;
      }
      if (resolver) deadlocks.Check(*resolver->catalog());
    } catch (const QueryError& e) {
      if (e.error.state == sqlstate::kAdminShutdown) throw;
      LogError(LogLevel::kWarning, e.error);
    }
    int64_t rest_ms = (pass_at_us - MonotonicUs()) / 1000 + 1;
    WaitLatch(&my_proc->latch, {},
              static_cast<int>(std::clamp<int64_t>(rest_ms, 0, deadlocks.interval_ms())),
              WaitEvent::kTransactionResolverMain);
  }
}

}  // namespace sluice
