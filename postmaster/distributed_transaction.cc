#include "postmaster/distributed_transaction.h"

#include "catalog/catalog.h"
#include "catalog/options.h"
#include "catalog/quote.h"
#include "common/assert.h"
#include "common/log.h"
#include "postmaster/child_process.h"
#include "postmaster/lease_set.h"
#include "postmaster/settings.h"
#include "shm/shared_memory.h"
#include "shm/transaction_table.h"

namespace sluice {
namespace {

// So long a server may keep silent at the end of a transaction before it counts as lost.
constexpr int64_t kEndSilenceUs = 30'000'000;

constexpr int64_t kRecoveryUs = 10'000'000;

std::string SavepointName(int level) {
  return fmt::format("sluice_{}", level);
}

// Whether decisions of before a crash may not be carried out on the server yet, under whichever of
// its names they were made.
bool StillRecovers(const Catalog& catalog, Oid server) {
  if (IsRecovering(server)) return true;
  auto known = catalog.servers.find(server);
  if (known == catalog.servers.end()) return false;
  auto same_place = [&](const Server& other) {
    return std::ranges::all_of(
        std::initializer_list<const char*>{"host", "hostaddr", "port", "dbname"},
        [&](const char* name) {
          auto a = known->second.options.find(name), b = other.options.find(name);
          bool has_a = a != known->second.options.end(), has_b = b != other.options.end();
          return has_a == has_b && (!has_a || a->second == b->second);
        });
  };
  for (Oid recovering : RecoveringServers()) {
    auto other = catalog.servers.find(recovering);
    if (other != catalog.servers.end() && same_place(other->second)) return true;
  }
  return false;
}

bool IsConnectionError(const Error& error) {
  return SqlStateText(error.state).starts_with("08");
}

void ThrowFirst(std::vector<Result<RemoteRows>>& results) {
  for (Result<RemoteRows>& result : results)
    if (!result.ok()) throw QueryError(std::move(result.error()));
}

}  // namespace

const std::string& DistributedTransaction::Isolation() const {
  return session_().settings->Text("transaction_isolation");
}

bool DistributedTransaction::HasSnapshots() const {
  return !alone_ && Isolation() == "repeatable read";
}

bool DistributedTransaction::Serializable() const {
  return !alone_ && Isolation() == "serializable";
}

std::string DistributedTransaction::BeginSql() const {
  const Settings& settings = *session_().settings;
  std::string sql =
      fmt::format("BEGIN ISOLATION LEVEL {} {}", settings.Text("transaction_isolation"),
                  settings.Boolean("transaction_read_only") ? "READ ONLY" : "READ WRITE");
  if (settings.Boolean("transaction_deferrable")) sql += " DEFERRABLE";
  for (int level = 2; level < 2 + savepoints_; level++)
    sql += "; SAVEPOINT " + SavepointName(level);
  return sql;
}

DistributedTransaction::Participant* DistributedTransaction::Find(Oid server) {
  auto found = by_server_.find(server);
  return found == by_server_.end() ? nullptr : &participants_[found->second];
}

DistributedTransaction::Participant& DistributedTransaction::Join(Oid server) {
  if (Participant* found = Find(server)) {
    if (found->lost) throw QueryError(*found->lost);
    return *found;
  }
  Arena arena;
  std::string key(ConnectionSpecFor(session_(), server, &arena)->pool_key);
  size_t at = 0;
  while (at < participants_.size() && participants_[at].pool_key != key) at++;
  if (at == participants_.size()) {
    if (Serializable() && at > 0)
      Refuse("isolation level SERIALIZABLE over several servers is not supported");
    participants_.push_back({server, std::move(key)});
  }
  if (pin_ == 0) {
    pin_ = shared_memory->next_pin.fetch_add(1, std::memory_order_relaxed);
    transaction_table->slots[my_proc_number].pin.store(pin_, std::memory_order_relaxed);  // T6
  }
  by_server_[server] = at;
  return participants_[at];
}

bool DistributedTransaction::gates_snapshots() const {
  return !HasSnapshots();
}

std::optional<Error> DistributedTransaction::AwaitRecovery(Oid server) const {
  if (!AnyRecovering()) return std::nullopt;
  std::shared_ptr<const Catalog> catalog = session_().catalog;
  int64_t until_us = MonotonicUs() + kRecoveryUs;
  while (StillRecovers(*catalog, server)) {
    if (MonotonicUs() >= until_us) {
      Error error = MakeError(
          sqlstate::kConnectionFailure,
          "server \"{}\" has not carried out all transactions that were committed before a crash",
          catalog->servers.at(server).name);
      error.Hint("The transaction resolver does it as soon as the server can be reached.");
      return error;
    }
    ResetLatch(&my_proc->latch);
    CheckForInterrupts();
    WaitLatch(&my_proc->latch, {}, 10, WaitEvent::kTransactionRecovery);
  }
  return std::nullopt;
}

void DistributedTransaction::AwaitRecovery(std::span<const Oid> servers) const {
  for (Oid server : servers)
    if (std::optional<Error> error = AwaitRecovery(server)) throw QueryError(*error);
}

StreamTransaction DistributedTransaction::For(Oid server) {
  if (HasSnapshots()) TakeSnapshots();
  if (HasSnapshots() || Serializable()) Join(server);
  DropBroken();
  Participant* participant = Find(server);
  if (participant == nullptr) return {};
  if (participant->lost) throw QueryError(*participant->lost);
  HandOver(participant);
  begin_sql_ = BeginSql();
  return {pin_, begin_sql_};
}

std::optional<DistributedTransaction::Held> DistributedTransaction::Hold(Oid server) {
  Participant* participant = Find(server);
  if (participant == nullptr || participant->lost || participant->away) return std::nullopt;
  const QuerySession& session = session_();
  Arena arena;
  auto make_spec = [&] { return ConnectionSpecFor(session, server, &arena); };
  LeaseSet::Origin origin{server, session.catalog, session.settings->version(), session.user};
  begin_sql_ = BeginSql();
  const std::string& name = session.catalog->servers.at(server).name;
  if (participant->held != nullptr) {
    if (!leases_->Suits(participant->held, origin, make_spec)) return std::nullopt;
    return Held{participant->held, name, begin_sql_};
  }
  // Where something can fail and the transaction goes on, it is the io worker's.
  if (session.leases == nullptr || savepoints_ > 0 || HasSnapshots() || Serializable())
    return std::nullopt;
  std::optional<LeaseSet::Found> found = session.leases->Find(origin);
  if (!found) found = session.leases->Find(origin, *make_spec());
  if (!found) return std::nullopt;
  leases_ = session.leases;
  leases_->Hold(found->connection);
  participant->held = found->connection;
  return Held{participant->held, name, begin_sql_};
}

void DistributedTransaction::HandOver(Participant* participant) {
  participant->away = true;
  if (participant->held == nullptr) return;
  SLUICE_ASSERT(participant->held->usable());
  leases_->HandOver(std::exchange(participant->held, nullptr), pin_);
}

void DistributedTransaction::HandOverAll() {
  DropBroken();
  for (Participant& participant : participants_)
    if (participant.held != nullptr) HandOver(&participant);
}

void DistributedTransaction::DropBroken() {
  for (Participant& participant : participants_) {
    if (participant.held == nullptr || participant.held->usable()) continue;
    leases_->Release(std::exchange(participant.held, nullptr));
    participant.lost =
        MakeError(sqlstate::kConnectionFailure, "connection to server \"{}\" was lost",
                  session_().catalog->servers.at(participant.server).name)
            .Detail("What the transaction did there was rolled back.");
  }
}

void DistributedTransaction::ForgetHeld(Oid server) {
  Participant* participant = Find(server);
  leases_->Release(std::exchange(participant->held, nullptr));
}

bool DistributedTransaction::AllHeld(const std::vector<const Participant*>& which) {
  return std::ranges::all_of(which, [](const Participant* participant) {
    return participant->held != nullptr && participant->held->usable();
  });
}

// All at once.
std::vector<Result<RemoteRows>> DistributedTransaction::RunHeld(
    const std::vector<const Participant*>& which, const std::string& sql, int64_t silence_us) {
  std::vector<Result<RemoteRows>> results(which.size(), RemoteRows{});
  const Catalog& catalog = *session_().catalog;
  std::vector<BorrowedQuery> queries;
  for (const Participant* participant : which)
    queries.push_back({.server_name = catalog.servers.at(participant->server).name,
                       .sql = sql,
                       .prepare = false,
                       .silence_timeout_us = silence_us,
                       .repeatable = false});
  auto guarded = [&](size_t i, auto&& run) {
    try {
      run(which[i]->held);
    } catch (const QueryError& e) {
      results[i] = e.error;
    }
  };
  for (size_t i = 0; i < which.size(); i++)
    guarded(i, [&](BorrowedConnection* connection) { connection->Start(queries[i]); });
  for (size_t i = 0; i < which.size(); i++) {
    if (!results[i].ok()) continue;
    guarded(i, [&](BorrowedConnection* connection) {
      auto rows = [&](std::string_view messages) {
        AppendRemoteRows(messages.data(), messages.size(), &results[i]->rows);
      };
      if (connection->Finish(queries[i], rows, [] {})) {
        results[i]->command_tag = connection->command_tag();
      } else {
        results[i] = MakeError(sqlstate::kConnectionFailure, "connection to server \"{}\" was lost",
                               queries[i].server_name);
      }
    });
  }
  DropBroken();
  return results;
}

void DistributedTransaction::LockBeforeSnapshots(std::span<const RemoteQuery> locks) {
  for (const RemoteQuery& lock : locks) Join(lock.server);
  RunRemoteQueries(*session_().catalog, Remote(StreamKind::kSimple), locks);
  locked_first_ = true;
}

void DistributedTransaction::TakeSnapshots() {
  if (!HasSnapshots() || (!participants_.empty() && !locked_first_)) return;
  locked_first_ = false;
  QuerySession session = session_();
  for (const auto& [oid, server] : session.catalog->servers)
    if (server.wrapper == kPostgresWrapper &&
        session.catalog->FindUserMapping(oid, session.user) != nullptr)
      Join(oid);
  std::vector<Participant*> asked;
  for (Participant& participant : participants_) {
    participant.lost = AwaitRecovery(participant.server);
    if (!participant.lost) asked.push_back(&participant);
  }
  if (asked.empty()) return;
  std::vector<RemoteQuery> queries;
  for (const Participant* participant : asked) queries.push_back({participant->server, "SELECT 1"});
  RemoteSession remote = Remote(StreamKind::kSimple);
  remote.gate = StreamGate::kSnapshot;
  std::vector<Result<RemoteRows>> results = TryRemoteQueries(*session.catalog, remote, queries);
  // A server that cannot be reached is an error for the statement that needs it, not for those that
  // do not.
  for (size_t i = 0; i < results.size(); i++) {
    if (results[i].ok()) continue;
    if (!IsConnectionError(results[i].error())) throw QueryError(results[i].error());
    asked[i]->lost = results[i].error();
  }
}

void DistributedTransaction::JoinForWrite(std::span<const Oid> servers, bool one_statement) {
  if (HasSnapshots()) TakeSnapshots();
  bool by_itself = alone_ && one_statement && servers.size() == 1 && participants_.empty() &&
                   Isolation().starts_with("read ");
  if (by_itself) return;
  for (Oid server : servers) Join(server).written = true;
}

void DistributedTransaction::JoinForLocks(std::span<const Oid> servers) {
  if (HasSnapshots()) TakeSnapshots();
  for (Oid server : servers) Join(server).locked = true;
}

RemoteSession DistributedTransaction::Remote(StreamKind kind) {
  HandOverAll();
  RemoteSession remote = RemoteSessionOf(session_());
  remote.kind = kind;
  remote.transaction = [this, begin = BeginSql()](Oid server) {
    Participant* participant = Find(server);
    if (participant == nullptr) return StreamTransaction{};
    participant->away = true;
    return StreamTransaction{pin_, begin};
  };
  return remote;
}

void DistributedTransaction::RunOn(std::span<const Oid> servers, std::string_view sql) {
  JoinForWrite(servers);
  std::vector<RemoteQuery> queries;
  for (Oid server : servers) queries.push_back({server, std::string(sql)});
  RunRemoteQueries(*session_().catalog, Remote(StreamKind::kSimple), queries);
}

std::vector<RemoteRows> DistributedTransaction::RunOn(std::span<const RemoteQuery> queries) {
  std::vector<Oid> servers;
  for (const RemoteQuery& query : queries) servers.push_back(query.server);
  JoinForWrite(servers);
  return RunRemoteQueries(*session_().catalog, Remote(StreamKind::kQuery), queries);
}

bool DistributedTransaction::written() const {
  return std::any_of(participants_.begin(), participants_.end(),
                     [](const Participant& participant) { return participant.written; });
}

std::vector<Result<RemoteRows>> DistributedTransaction::OnParticipants(
    const std::vector<const Participant*>& which, const std::string& sql) {
  if (AllHeld(which)) return RunHeld(which, sql, RemoteSessionOf(session_()).silence_timeout_us);
  std::vector<RemoteQuery> queries;
  for (const Participant* participant : which) queries.push_back({participant->server, sql});
  return TryRemoteQueries(*session_().catalog, Remote(StreamKind::kSimple), queries);
}

void DistributedTransaction::OnAll(const std::string& sql) {
  std::vector<const Participant*> all;
  for (const Participant& participant : participants_)
    if (!participant.lost) all.push_back(&participant);
  std::vector<Result<RemoteRows>> results = OnParticipants(all, sql);
  ThrowFirst(results);
}

// From here on a statement may fail and the transaction go on: that is the io worker's.
void DistributedTransaction::Savepoint(int level) {
  HandOverAll();
  OnAll("SAVEPOINT " + SavepointName(level));
  savepoints_ = level - 1;
}

void DistributedTransaction::Release(int level) {
  OnAll("RELEASE SAVEPOINT " + SavepointName(level));
  savepoints_ = level - 2;
}

void DistributedTransaction::RollbackTo(int level) {
  savepoints_ = level - 1;
  OnAll("ROLLBACK TO SAVEPOINT " + SavepointName(level));
}

void DistributedTransaction::OnError() {
  if (pin_ == 0) return;
  HandOverAll();
  SubmitRequest({RequestKind::kCancelPin, nullptr, pin_, 0});
  if (savepoints_ == 0) End();
}

void DistributedTransaction::Commit(const CommitHere& commit_here) {
  std::vector<const Participant*> committing, locked;
  for (const Participant& participant : participants_) {
    if (participant.written || Serializable())
      committing.push_back(&participant);
    else if (participant.locked)
      locked.push_back(&participant);
  }
  for (const Participant* participant : committing) {
    if (!participant->lost) continue;
    Error error = *participant->lost;
    Rollback();
    throw QueryError(error);
  }
  bool two_phases = committing.size() > 1 || (!committing.empty() && commit_here != nullptr);
  if (two_phases && session_().settings->Text("multi_shard_commit") != "one_phase_unsafe") {
    CommitPrepared(committing, commit_here);
  } else {
    if (commit_here != nullptr) commit_here(nullptr);
    for (const Participant* participant : committing) CommitOne(*participant);
  }
  EndLocks(locked);
  End();
}

// Where rows were only locked nothing is to be decided; but they must be free when the client goes
// on.
void DistributedTransaction::EndLocks(const std::vector<const Participant*>& locked) {
  if (locked.empty()) return;
  HoldInterrupts hold;
  for (const Result<RemoteRows>& result : OnParticipants(locked, "ROLLBACK"))
    if (!result.ok()) LogError(LogLevel::kDebug, result.error());
}

namespace {

std::string FinishSql(const std::string& gid, bool commit) {
  return fmt::format("{} PREPARED {}", commit ? "COMMIT" : "ROLLBACK", QuoteLiteral(gid));
}

// What this process does about a transaction that servers know by name; see TransactionSlot.
class LiveTransaction {
 public:
  LiveTransaction(TransactionNumber number, std::span<const Oid> servers)
      : slot_(transaction_table->slots[my_proc_number]) {
    slot_.started_at.store(PostgresNow(), std::memory_order_relaxed);
    for (size_t i = 0; i < kTransactionServersMax; i++)
      slot_.server_oids[i].store(i < servers.size() ? servers[i] : 0, std::memory_order_relaxed);
    Enter(TransactionPhase::kPreparing);
    slot_.number.store(number, std::memory_order_release);  // T1
  }
  ~LiveTransaction() {
    slot_.number.store(0, std::memory_order_release);  // T1
    if (!finished_) WakeResolver();
  }
  void Enter(TransactionPhase phase) { slot_.phase.store(phase, std::memory_order_relaxed); }
  // Nothing is left for the resolver.
  void Finished() { finished_ = true; }

 private:
  TransactionSlot& slot_;
  bool finished_ = false;
};

}  // namespace

void DistributedTransaction::CommitPrepared(const std::vector<const Participant*>& participants,
                                            const CommitHere& commit_here) {
  TransactionNumber number = NewTransactionNumber();
  std::string gid = GidOf(number);
  std::vector<Oid> servers;
  for (const Participant* participant : participants) servers.push_back(participant->server);
  LiveTransaction live(number, servers);
  std::vector<uint64_t> xids;
  gate_.reset();
  try {
    Announce(participants, gid);
    xids = Prepare(participants, gid);
    // While the decision is on its way to the disk.
    if (AllHeld(participants)) OpenGate(participants, gid, xids);
    Decide({number, PostgresNow(), servers}, commit_here);
  } catch (const QueryError&) {
    live.Enter(TransactionPhase::kAborting);
    // Nothing is in doubt: nobody was told to commit.
    if (gate_) gate_->Leave(std::vector<bool>(participants.size(), true));
    HandOverAll();
    SubmitRequest({RequestKind::kCancelPin, nullptr, pin_, 0});
    // What goes on where a connection was lost is not known.
    bool known = std::ranges::none_of(
        participants, [](const Participant* each) { return each->lost.has_value(); });
    if (FinishPrepared(participants, false, gid, {}) && known) {
      live.Finished();
      if (commit_here != nullptr && log_) MarkDone(number);
    }
    End();
    throw;
  }
  // From here on it is committed, whatever the servers say; the resolver does what is left.
  live.Enter(TransactionPhase::kCommitting);
  bool finished = gate_ && gate_->Await() ? FinishHeld(participants, FinishSql(gid, true))
                                          : FinishPrepared(participants, true, gid, xids);
  if (!finished) return;
  live.Finished();
  MarkDone(number);
}

void DistributedTransaction::MarkDone(TransactionNumber number) {
  Status marked = log_->MarkDone(number);
  if (!marked.ok()) LogError(LogLevel::kWarning, marked.error());
}

std::vector<uint64_t> DistributedTransaction::Prepare(
    const std::vector<const Participant*>& participants, const std::string& gid) {
  std::string sql = "PREPARE TRANSACTION " + QuoteLiteral(gid);
  std::vector<Result<RemoteRows>> results;
  bool held = AllHeld(participants);
  if (held) {
    results = RunHeld(participants, "SELECT pg_catalog.txid_current(); " + sql,
                      RemoteSessionOf(session_()).silence_timeout_us);
  } else {
    RemoteSession remote = Remote(StreamKind::kSimple);
    remote.gate = StreamGate::kPrepare;
    std::vector<RemoteQuery> queries;
    for (const Participant* participant : participants)
      queries.push_back({participant->server, sql});
    results = TryRemoteQueries(*session_().catalog, remote, queries);
  }
  ThrowFirst(results);
  std::vector<uint64_t> xids;
  for (Result<RemoteRows>& result : results) {
    if (result->command_tag != "PREPARE TRANSACTION")
      Throw(sqlstate::kInFailedSqlTransaction, "the transaction was rolled back by a server");
    if (held)
      result->xid = std::strtoull(result->rows.at(0).at(0).value_or("0").c_str(), nullptr, 10);
    xids.push_back(result->xid);
  }
  return xids;
}

void DistributedTransaction::Decide(const Decision& decision, const CommitHere& commit_here) {
  if (!log_) log_.emplace(session_().data_directory);
  if (commit_here == nullptr) {
    Status decided = log_->Append(decision);
    if (!decided.ok()) throw QueryError(decided.error());
    return;
  }
  // The catalog's commit is the decision. After a crash the log says where to look for it.
  Decision by_catalog = decision;
  by_catalog.by_catalog = true;
  Status announced = log_->Append(by_catalog);
  if (!announced.ok()) throw QueryError(announced.error());
  commit_here(&decision);
  // So that the catalog need not keep it.
  Status decided = log_->Append(decision);
  if (!decided.ok()) LogError(LogLevel::kWarning, decided.error());
}

bool DistributedTransaction::FinishPrepared(const std::vector<const Participant*>& participants,
                                            bool commit, const std::string& gid,
                                            const std::vector<uint64_t>& xids) {
  HoldInterrupts hold;
  RemoteSession remote = Remote(StreamKind::kSimple);
  remote.silence_timeout_us = kEndSilenceUs;
  remote.gate = commit ? StreamGate::kDecision : StreamGate::kNone;
  remote.transaction = [this](Oid) { return StreamTransaction{pin_, {}}; };
  std::vector<RemoteQuery> queries;
  for (size_t i = 0; i < participants.size(); i++)
    queries.push_back(
        {participants[i]->server, FinishSql(gid, commit), {}, i < xids.size() ? xids[i] : 0});
  bool all = true;
  for (const Result<RemoteRows>& result : TryRemoteQueries(*session_().catalog, remote, queries))
    all &= IsFinished(result, commit);
  return all;
}

bool DistributedTransaction::IsFinished(const Result<RemoteRows>& result, bool commit) {
  // Not there: it was never prepared, or the resolver was faster.
  if (result.ok() || result.error().state == sqlstate::kUndefinedObject) return true;
  Error error = result.error();
  error.hint = "The transaction resolver will finish it.";
  LogError(commit ? LogLevel::kWarning : LogLevel::kDebug, error);
  return false;
}

void DistributedTransaction::OpenGate(const std::vector<const Participant*>& participants,
                                      const std::string& gid, const std::vector<uint64_t>& xids) {
  std::vector<RemoteQuery> statements;
  for (size_t i = 0; i < participants.size(); i++)
    statements.push_back({participants[i]->server, FinishSql(gid, true), {}, xids[i]});
  gate_.emplace(*session_().catalog, RemoteSessionOf(session_()), statements);
}

// The committing half of FinishPrepared, on held connections. REQUIRES: the gate is ours.
bool DistributedTransaction::FinishHeld(const std::vector<const Participant*>& participants,
                                        const std::string& sql) {
  HoldInterrupts hold;
  std::vector<bool> carried_out;
  for (const Result<RemoteRows>& result : RunHeld(participants, sql, kEndSilenceUs))
    carried_out.push_back(IsFinished(result, true));
  gate_->Leave(carried_out);
  return std::ranges::all_of(carried_out, std::identity());
}

// Its outcome must be known before anything else happens: nothing interrupts it.
void DistributedTransaction::CommitOne(const Participant& participant) {
  HoldInterrupts hold;
  Result<RemoteRows> result = RemoteRows{};
  if (AllHeld({&participant})) {
    result = RunHeld({&participant}, "COMMIT", kEndSilenceUs)[0];
  } else {
    RemoteSession remote = Remote(StreamKind::kSimple);
    remote.silence_timeout_us = kEndSilenceUs;
    RemoteQuery query{participant.server, "COMMIT"};
    result = TryRemoteQueries(*session_().catalog, remote, {&query, 1})[0];
  }
  std::optional<Error> error;
  if (!result.ok()) {
    error = result.error();
    if (IsConnectionError(*error)) {
      error->state = MakeSqlState("08007");
      error->hint = "Whether the transaction was committed is not known.";
    }
  } else if (result->command_tag != "COMMIT") {
    error = MakeError(sqlstate::kInFailedSqlTransaction,
                      "the transaction was rolled back by its server");
  }
  if (!error) return;
  End();
  throw QueryError(*error);
}

void DistributedTransaction::Rollback() {
  if (pin_ == 0) return End();
  std::vector<const Participant*> locked;
  for (const Participant& participant : participants_)
    if (participant.written || participant.locked) locked.push_back(&participant);
  EndLocks(locked);
  End();
}

void DistributedTransaction::End() {
  if (pin_ != 0) {
    DropBroken();
    bool away = false;
    for (Participant& participant : participants_) {
      // What is still open there the io worker rolls back.
      if (participant.held != nullptr && participant.held->in_transaction()) HandOver(&participant);
      if (participant.held != nullptr) leases_->Release(participant.held);
      away |= participant.away;
    }
    if (away) SubmitRequest({RequestKind::kEndPin, nullptr, pin_, 0});
    transaction_table->slots[my_proc_number].pin.store(0, std::memory_order_relaxed);  // T6
  }
  pin_ = 0;
  savepoints_ = 0;
  locked_first_ = false;
  participants_.clear();
  by_server_.clear();
}

void DistributedTransaction::Abandon() {
  HandOverAll();
  if (pin_ != 0) SubmitRequest({RequestKind::kCancelPin, nullptr, pin_, 0});
  End();
}

}  // namespace sluice
