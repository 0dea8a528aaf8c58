// The session's transaction as the servers see it: which of them take part, and how they begin,
// commit and roll back. One per session; it lives through many transactions.
//
//   BeginStatement ─► For / JoinForWrite / RunOn: servers join ─► Commit or Rollback ─► (empty)
//
// A server joins when it is first written (or locked) in the transaction: its statements then run
// on one pinned connection (its own pin's in the io worker, or one that is lent to the session, on
// which it does what it can by itself; the io worker goes on with the rest), whose BEGIN (with the
// savepoints there are) travels with the first of them. In READ COMMITTED all others are read
// through the pool. REPEATABLE READ joins all servers at its first query, so that their snapshots
// are taken together. In SERIALIZABLE one server takes part: no server could see a conflict that
// lies across two.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "postmaster/decision_gate.h"
#include "postmaster/decision_log.h"
#include "postmaster/remote_query.h"
#include "postmaster/running_query.h"

namespace sluice {

class DistributedTransaction {
 public:
  // `session` gives what the session is now: the same object each time.
  template <typename Session>
  explicit DistributedTransaction(Session session) : session_(std::move(session)) {
    static_assert(std::is_reference_v<std::invoke_result_t<Session&>>, "a temporary would be gone");
  }
  ~DistributedTransaction() { Abandon(); }
  DistributedTransaction(const DistributedTransaction&) = delete;
  DistributedTransaction& operator=(const DistributedTransaction&) = delete;

  // Before each statement. `alone`: it is the only one of its transaction, so what one remote
  // statement can do on one server needs no transaction there.
  void BeginStatement(bool alone) {
    alone_ = alone && participants_.empty();
    if (gate_ && gate_->closed()) gate_.reset();
  }
  // Before each query or write: REPEATABLE READ takes its snapshots, if it has none.
  void TakeSnapshots();
  // REPEATABLE READ only, before anything else: LOCK TABLE statements, which take no snapshot. They
  // may wait, and the snapshots that are taken then see all that they have waited for.
  void LockBeforeSnapshots(std::span<const RemoteQuery> locks);

  // How a stream on the server is to run; the text is good until the next call that joins or ends.
  // From then on the io worker has the server's part.
  StreamTransaction For(Oid server);
  // The lent connection that the server's part runs on, if it does or can, and what begins it.
  struct Held {
    BorrowedConnection* connection;
    std::string_view server_name;
    std::string_view begin_sql;
  };
  std::optional<Held> Hold(Oid server);
  // After a held connection has broken: what was done there is gone.
  void DropBroken();
  // The same where nothing had been done there: the part can begin elsewhere.
  void ForgetHeld(Oid server);
  // Reads over several servers take their snapshots under the commit gate.
  bool gates_snapshots() const;

  // The statement is about to write on (or lock rows of) these servers: from now on For() pins
  // them. `one_statement`: each gets a single remote statement, which commits by itself where
  // nothing else belongs to the transaction.
  void JoinForWrite(std::span<const Oid> servers, bool one_statement = false);
  // The statement only locks rows there.
  void JoinForLocks(std::span<const Oid> servers);
  // Before a read over several servers: after a crash one of them may have been told to commit what
  // others have not yet. Waits for the resolver, throws 08006 where it takes too long.
  void AwaitRecovery(std::span<const Oid> servers) const;
  // Runs SQL (several statements are allowed, rows are dropped) on the servers at once, as a part
  // of this transaction. Throws the first error.
  void RunOn(std::span<const Oid> servers, std::string_view sql);
  // The same for different SQL a server, or with rows wanted (one statement each then).
  std::vector<RemoteRows> RunOn(std::span<const RemoteQuery> queries);

  bool TakesPart(Oid server) const { return by_server_.contains(server); }
  // Something was, or may have been, written on a server.
  bool written() const;

  void Savepoint(int level);  // Transaction::level() that it opens
  void Release(int level);
  void RollbackTo(int level);
  // Commits what belongs to the transaction here, durably, and with it `decision`, if there is one.
  using CommitHere = std::function<void(const Decision* decision)>;
  // Throws where it could not commit; then it is rolled back on all servers. `commit_here` (may be
  // null) is called once every server has promised to commit.
  void Commit(const CommitHere& commit_here);
  void Rollback();
  // A statement has failed: what still runs is cancelled, and without savepoints, where nothing can
  // be saved, the servers roll back at once.
  void OnError();
  // The session ends: all is rolled back without waiting.
  void Abandon();

 private:
  struct Participant {
    Oid server;
    std::string pool_key;
    bool written = false;
    bool locked = false;             // rows there, if not written
    std::optional<Error> lost = {};  // why no snapshot could be taken, or that it has gone
    BorrowedConnection* held = nullptr;
    bool away = false;  // with the io worker, under pin_
  };

  std::optional<Error> AwaitRecovery(Oid server) const;
  void EndLocks(const std::vector<const Participant*>& locked);
  bool HasSnapshots() const;
  bool Serializable() const;
  const std::string& Isolation() const;
  std::string BeginSql() const;
  Participant* Find(Oid server);
  Participant& Join(Oid server);
  RemoteSession Remote(StreamKind kind);
  void HandOver(Participant* participant);
  void HandOverAll();
  static bool AllHeld(const std::vector<const Participant*>& which);
  std::vector<Result<RemoteRows>> RunHeld(const std::vector<const Participant*>& which,
                                          const std::string& sql, int64_t silence_us);
  // One text on all participants for which `which` holds, at once.
  std::vector<Result<RemoteRows>> OnParticipants(const std::vector<const Participant*>& which,
                                                 const std::string& sql);
  void OnAll(const std::string& sql);  // throws the first error
  void CommitOne(const Participant& participant);
  void CommitPrepared(const std::vector<const Participant*>& participants,
                      const CommitHere& commit_here);
  void Announce(const std::vector<const Participant*>& participants, const std::string& gid);
  // What the transaction is called on each server.
  std::vector<uint64_t> Prepare(const std::vector<const Participant*>& participants,
                                const std::string& gid);
  void Decide(const Decision& decision, const CommitHere& commit_here);
  void MarkDone(TransactionNumber number);
  // Whether all have done it.
  bool FinishPrepared(const std::vector<const Participant*>& participants, bool commit,
                      const std::string& gid, const std::vector<uint64_t>& xids);
  void OpenGate(const std::vector<const Participant*>& participants, const std::string& gid,
                const std::vector<uint64_t>& xids);
  bool FinishHeld(const std::vector<const Participant*>& participants, const std::string& sql);
  static bool IsFinished(const Result<RemoteRows>& result, bool commit);
  // Lets go of the pins; what is open there is rolled back by the io worker.
  void End();

  std::function<const QuerySession&()> session_;
  bool alone_ = false;
  int savepoints_ = 0;  // open ones
  uint64_t pin_ = 0;    // 0: nobody takes part
  std::vector<Participant> participants_;
  std::map<Oid, size_t> by_server_;  // servers that are one database share a participant
  std::string begin_sql_;
  bool locked_first_ = false;         // … and TakeSnapshots is still to come
  std::optional<DecisionLog> log_;    // opened with the first decision
  std::optional<DecisionGate> gate_;  // of the last one
  LeaseSet* leases_ = nullptr;        // whose connections are held
};

}  // namespace sluice
