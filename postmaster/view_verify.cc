#include "postmaster/view_verify.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "catalog/privilege.h"
#include "catalog/quote.h"
#include "parser/analyze.h"
#include "parser/raw.h"
#include "postmaster/distributed_transaction.h"
#include "postmaster/remote_query.h"
#include "postmaster/row_sink.h"
#include "postmaster/running_query.h"
#include "postmaster/settings.h"
#include "postmaster/view_definition.h"
#include "postmaster/view_reader.h"
#include "postmaster/view_source.h"
#include "shm/live_views.h"
#include "shm/shared_memory.h"
#include "stream/change_reader.h"

namespace sluice {
namespace {

constexpr int kAttempts = 200;
constexpr int kAgainMs = 10;

// While it lives, the view worker commits no epoch but the one that is asked for.
class EpochHold {
 public:
  EpochHold() : number_(shared_memory->next_pin.fetch_add(1, std::memory_order_relaxed)) {
    Wait([this] {
      uint64_t nobody = 0;
      return hold_.holder.compare_exchange_strong(nobody, number_,
                                                  std::memory_order_acq_rel);  // H1
    });
    try {
      WakeViewWorker();
      Wait([this] { return hold_.held.load(std::memory_order_acquire) == number_; });  // H2
    } catch (...) {
      Release();
      throw;
    }
  }
  ~EpochHold() { Release(); }
  EpochHold(const EpochHold&) = delete;

  uint64_t number() const { return number_; }
  // The epoch that is what the marks' snapshots see; 0: there is none.
  uint64_t AwaitEpoch() const {
    Wait([this] { return hold_.answered.load(std::memory_order_acquire) == number_; });  // H3
    return hold_.epoch.load(std::memory_order_relaxed);
  }

 private:
  template <typename Fn>
  static void Wait(Fn&& done) {
    ViewNewsWaiter waiter;
    for (;;) {
      ResetLatch(&my_proc->latch);
      if (done()) return;
      WaitInterruptibly(WaitEvent::kViewProgress);
    }
  }
  void Release() {
    hold_.holder.store(0, std::memory_order_release);  // H1
    WakeViewWorker();
    PublishViewNews();  // who waits to hold
  }

  ViewHold& hold_ = shared_memory->live_views.hold;
  const uint64_t number_;
};

class Verification {
 public:
  Verification(const QuerySession& session, const Relation& view)
      : session_(session), view_(view), settings_(*session.settings) {
    for (const auto& [name, value] : view.view_settings)
      settings_.Set(name, value, SettingSource::kSession);
    DeriveSessionSettings(settings_, &session_settings_);
    // Sums of floats depend on who adds them up.
    for (const ColumnInfo& column : view.columns)
      if (column.type == kFloat4Oid || column.type == kFloat8Oid)
        settings_.Set("enable_pushdown_aggregate", "off", SettingSource::kSession);
  }

  void Run(const VirtualRowSink& sink) {
    Expand();
    for (int attempt = 0; attempt < kAttempts; attempt++) {
      if (FindCut()) return Compare(sink);
      snapshots_.reset();
      ResetLatch(&my_proc->latch);
      CheckForInterrupts();
      WaitLatch(&my_proc->latch, {}, kAgainMs, WaitEvent::kViewProgress);
    }
    throw QueryError(
        MakeError(sqlstate::kSerializationFailure,
                  "no moment was found at which \"{}\" could be compared", view_.name)
            .Detail("Each time a transaction was committed on a server, and not visible there "
                    "though a later one was: as when it waits for a standby that does not answer.")
            .Hint("Try again."));
  }

 private:
  QuerySession SessionFor(const char* isolation) {
    QuerySession session = session_;
    settings_.Set("transaction_isolation", isolation, SettingSource::kSession);
    settings_.Set("transaction_deferrable", "off", SettingSource::kSession);
    session.settings = &settings_;
    session.session_settings = &session_settings_;
    session.transaction = nullptr;
    session.leases = nullptr;
    return session;
  }

  // A catalog in which the views below are no live ones, and the tables that they read.
  void Expand() {
    auto catalog = std::make_shared<Catalog>(*session_.catalog);
    std::vector<Oid> todo = view_.view_uses;
    std::set<Oid> seen;
    while (!todo.empty()) {
      Oid oid = todo.back();
      todo.pop_back();
      auto relation = catalog->relations.find(oid);
      if (relation == catalog->relations.end() || !seen.insert(oid).second) continue;
      Relation& used = relation->second;
      if (used.kind == RelationKind::kMaterializedView) {
        if (used.view_settings == view_.view_settings) used.kind = RelationKind::kView;
      } else if (used.kind != RelationKind::kView) {
        for (const Relation* leaf : catalog->Leaves(used)) leaves_[leaf->server].push_back(leaf);
      }
      todo.insert(todo.end(), used.view_uses.begin(), used.view_uses.end());
    }
    session_.catalog = std::move(catalog);
  }

  std::vector<RemoteQuery> Locks() const {
    std::vector<RemoteQuery> queries;
    for (const auto& [server, leaves] : leaves_) {
      std::string names;
      for (const Relation* leaf : leaves) names += (names.empty() ? "" : ", ") + RemoteName(*leaf);
      queries.push_back({server, fmt::format("LOCK TABLE {} IN ACCESS SHARE MODE", names)});
    }
    return queries;
  }

  // Servers whose changes the view worker follows, of those that the view's tables are on.
  std::vector<Oid> Streams() const {
    std::vector<Oid> servers;
    for (const auto& [server, leaves] : leaves_) {
      const ReplicatedServer* stream = FindReplicatedServer(server);
      if (stream != nullptr &&
          stream->applied_lsn.load(std::memory_order_acquire) != ~uint64_t{0})  // W2
        servers.push_back(server);
    }
    return servers;
  }

  bool FindCut() {
    const Catalog& catalog = *session_.catalog;
    std::vector<Oid> servers = Streams();
    // The locks may wait: before epochs are held up. They are the same transactions' that read, for
    // behind a TRUNCATE that waits for another's locks these would wait too.
    // Made anew at each call: the settings are shared with the sessions of what runs between.
    snapshots_.emplace([this]() -> const QuerySession& {
      return snapshots_session_ = SessionFor("repeatable read");
    });
    snapshots_->LockBeforeSnapshots(Locks());
    // All that is committed now is to be in the views, so that not much is left to be taken in.
    FlushServers(catalog, RemoteSessionOf(SessionFor("read committed")), servers);
    EpochHold hold;
    std::vector<RemoteQuery> queries;
    for (Oid server : servers)
      queries.push_back({server, "SELECT pg_catalog.pg_current_snapshot()"});
    std::vector<RemoteRows> answers = snapshots_->RunOn(queries);
    std::string instance =
        LookAtViews(session_.data_directory)->Get("instance").value_or("");  // the view is stored
    for (size_t i = 0; i < queries.size(); i++)
      queries[i].sql =
          fmt::format("SELECT pg_catalog.pg_logical_emit_message(true, '{}', '{} verify/{}/{}/{}')",
                      kMarkMessagePrefix, instance, hold.number(), queries.size(),
                      answers[i].rows.at(0).at(0).value_or(""));
    RunRemoteQueries(catalog, RemoteSessionOf(SessionFor("read committed")), queries);
    uint64_t epoch = hold.AwaitEpoch();
    if (epoch == 0) return false;
    stored_ = LookAtViews(session_.data_directory);
    return stored_ != nullptr && stored_->epoch() == epoch;
  }

  // Rows are the same by the types' own equality; what has none is compared as text.
  std::string CompareSql() const {
    std::string columns, names;
    for (size_t i = 0; i < view_.columns.size(); i++) {
      Oid type = view_.columns[i].type;
      bool as_text = type == kJsonOid || type == kXmlOid;
      columns += fmt::format("c{}{}, ", i, as_text ? "::text" : "");
      names += fmt::format("{}c{}", i == 0 ? "" : ", ", i);
    }
    std::string numbers;
    for (size_t i = 0; i < view_.columns.size(); i++) numbers += fmt::format("{}, ", i + 1);
    numbers.resize(numbers.size() - 2);
    return fmt::format(
        "SELECT {0}pg_catalog.sum(s), pg_catalog.sum(e) FROM ("
        "SELECT {1}, 1 AS s, 0 AS e FROM {2} AS stored({1}) UNION ALL "
        "SELECT {1}, 0, 1 FROM ({3}) AS expected({1})) AS u "
        "GROUP BY {4} HAVING pg_catalog.sum(s) <> pg_catalog.sum(e)",
        columns, names, QuoteQualified(view_.schema, view_.name), view_.view_sql, numbers);
  }

  void Compare(const VirtualRowSink& sink) {
    QuerySession session = SessionFor("repeatable read");
    session.transaction = &*snapshots_;
    session.view_snapshot = stored_;
    ParsedSql parsed = ParseSql(CompareSql());
    Arena arena;
    std::vector<Oid> params;
    AnalyzeContext analyze;
    analyze.catalog = session.catalog.get();
    analyze.settings = session.session_settings;
    analyze.user = view_.owner;
    analyze.arena = &arena;
    analyze.param_types = &params;
    const Query* query = AnalyzeSelect(parsed.statements()[0], analyze);
    QueryOptions options;
    options.allow_pass_through = false;
    RunningQuery running(session, *query, options);
    TextSink rows(view_.columns.size() + 2, session_settings_);
    running.Run(&rows, 0);
    for (const auto& row : rows.rows) {
      nlohmann::ordered_json json;
      size_t columns = view_.columns.size();
      for (size_t i = 0; i < columns; i++)
        json[view_.columns[i].name] = row[i] ? nlohmann::ordered_json(*row[i]) : nullptr;
      std::optional<std::string> difference[] = {json.dump(), row[columns], row[columns + 1]};
      sink(difference);
    }
  }

  QuerySession session_;
  const Relation view_;
  Settings settings_;
  SessionSettings session_settings_;
  std::map<Oid, std::vector<const Relation*>> leaves_;  // by server; of session_.catalog
  QuerySession snapshots_session_;
  std::optional<DistributedTransaction> snapshots_;
  std::shared_ptr<const ViewSnapshot> stored_;
};

}  // namespace

std::string_view VerifiedView(std::string_view virtual_name) {
  constexpr std::string_view kBefore = "verify ";
  return virtual_name.starts_with(kBefore) ? virtual_name.substr(kBefore.size()) : "";
}

void VerifyView(const QuerySession& session, std::string_view name, const VirtualRowSink& sink) {
  const Relation& view =
      FindViewByText(*session.catalog, SearchPath(*session.settings, session.user), name);
  const Role* role = session.catalog->FindRole(session.user);
  if (role != nullptr) RequireOwner(*session.catalog, *role, view);
  // What the deadlock detector knows of this session is its own transaction's.
  auto& pin = transaction_table->slots[my_proc_number].pin;
  const uint64_t own = pin.load(std::memory_order_relaxed);  // T6
  try {
    Verification(session, view).Run(sink);
  } catch (...) {
    pin.store(own, std::memory_order_relaxed);  // T6
    throw;
  }
  pin.store(own, std::memory_order_relaxed);  // T6
}

}  // namespace sluice
