// Stream groups, from kOpen to kClosed. A group is admitted when all its chunks and all its
// connections are there at once; until then it holds nothing, so two plans never wait for each
// other's halves.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fdw/stream_task.h"

namespace sluice {

class Pool;
class PostgresStream;

// A transaction that is being carried out on several servers: what it is called there. Readers that
// took their snapshots meanwhile tell by it whether all of them see it or none.
struct CarriedOut {
  std::map<std::string, uint64_t> xids;  // by server
  bool over = false;                     // all have answered
};

// What txid_current_snapshot says: "xmin:xmax:xip,xip".
struct TxidSnapshot {
  uint64_t xmin = 0, xmax = 0;
  std::set<uint64_t> running;
  static std::optional<TxidSnapshot> Parse(std::string_view text);
  // Of a transaction that has committed or will.
  bool Sees(uint64_t xid) const { return xid < xmin || (xid < xmax && !running.contains(xid)); }
};

// Streams of one group and one pool that read under one snapshot: the first to run exports it, the
// others import it. The exporter's connection keeps its transaction open until all others have.
struct SharedSnapshot {
  bool exporter_chosen = false;
  std::string id;              // empty: not exported yet
  std::optional<Error> error;  // the export failed, or the exporter's statement after it
  uint32_t importers = 0;      // that have neither imported it nor given up
  std::vector<PostgresStream*> waiting;
  Connection* exporter = nullptr;  // to be told when importers is 0
};

class Group {
 public:
  Group(Worker* worker, StreamGroup* shared);
  ~Group();

  StreamGroup* shared() const { return shared_; }
  bool admitted() const { return admitted_; }
  bool closing() const { return closing_; }
  void Admit();                     // REQUIRES: everything is reserved
  void Refuse(const Error& error);  // every stream ends with it
  void Close();                     // the backend wants it gone
  // Whether nothing points into shared memory any more. Once all streams have ended nobody needs to
  // ask for it: the backend finds the group closed when it comes to close it.
  bool done() const { return (closing_ || admitted_) && open_tasks_ == 0; }
  void OnTaskEnded();
  // One stream needs the gate no more; the last one opens it.
  void OnGatePassed();
  // Transactions are being carried out on servers of the group: its snapshots are compared before
  // its statements are sent.
  bool validates() const { return validates_; }
  void OnSnapshot(size_t stream, const std::string& text);
  // One of those transactions is over.
  void Validate();
  // A COMMIT PREPARED has ended. Where it was not carried out, its server is in doubt.
  void OnDecisionEnded(const Stream& stream);

  // Null where the stream reads under a snapshot of its own.
  SharedSnapshot* SnapshotFor(const Stream& stream);

 private:
  friend class GroupSet;
  std::unique_ptr<StreamTask> MakeTask(Stream* stream);
  void OnAdmissionTimeout();
  // The gate (group_gate.cc).
  void FindGate();
  void TakeGate();
  void LeaveGate();
  void OnGateTimeout();
  bool IsInDoubt(const Stream& stream) const;
  static Error InDoubtError(const Stream& stream);
  bool CanValidate() const;
  bool IsTold() const;
  void Meet(const std::shared_ptr<CarriedOut>& carried_out);
  bool IsOutdated(size_t stream, bool* retake) const;

  Worker* const worker_;
  StreamGroup* const shared_;
  std::vector<std::unique_ptr<StreamTask>> tasks_;
  std::unordered_map<std::string_view, SharedSnapshot> snapshots_;  // by pool key
  Timer admission_timer_;
  std::vector<uint32_t> shown_;  // in the registry, until the group is closed
  size_t open_tasks_ = 0;
  bool admitted_ = false;
  bool closing_ = false;

  // The servers whose gates it needs; empty: none.
  std::vector<std::string> gate_servers_;
  const int64_t opened_us_;
  bool holds_gate_ = false;
  size_t gate_streams_ = 0;  // that have not passed it
  Timer gate_timer_;
  std::shared_ptr<CarriedOut> carried_out_;  // a decision's own
  bool compares_ = false;                    // a read that is not counted in Gate::snapshots …
  bool validates_ = false;                   // … and is not done yet
  std::vector<std::shared_ptr<CarriedOut>> meanwhile_;  // under way since the gate was taken
  std::vector<std::optional<TxidSnapshot>> taken_;      // by stream
};

// Per server: who takes snapshots there for reads over several servers, and who carries out
// decisions. The two exclude each other; a server that has not carried out a decision that others
// have is closed for such snapshots until the transaction resolver has finished it there.
struct Gate {
  int snapshots = 0, decisions = 0;
  // Of the decisions those that readers need not wait for.
  std::set<std::shared_ptr<CarriedOut>> carried_out;
  std::set<std::string, std::less<>> in_doubt;  // the COMMIT PREPARED that did not end well
};

// Ends at once with an error.
class RefusedStream final : public StreamTask {
 public:
  RefusedStream(Worker* worker, Group* group, Stream* stream, const Error& error)
      : StreamTask(worker, group, stream), error_(error) {}
  void Start() override { End(StreamState::kFailed, &error_); }
  void Resume() override {}
  void Detach() override {}

 private:
  Error error_;
};

class GroupSet {
 public:
  explicit GroupSet(Worker* worker);
  void Open(StreamGroup* shared);
  void Close(StreamGroup* shared);
  void Refuse(Group* group, const Error& error);
  // A group may be done; a connection or chunks may have become free.
  void WantsReaping() { reap_ = true; }
  void WantsAdmission() { admit_ = true; }
  // Groups that compare their snapshots with the transactions that are carried out meanwhile.
  std::vector<Group*>& validators() { return validators_; }
  // A decision comes (0), is being carried out (1), has been (-1).
  void CountDecision(int by) {
    decisions_ += by;
    last_decision_us_ = worker_->now_us;
  }
  bool ExpectsDecisions() const;
  bool somebody_waits() const { return !waiting_.empty(); }
  Gate& GateOf(const std::string& server) { return gates_[server]; }
  // Once a round of the loop: admits what can be admitted, in turn, and lets go of what is done.
  void Round();

 private:
  enum class Verdict { kAdmit, kWait, kRefuse };
  struct Claims {
    std::vector<const Pool*> pools;
    bool chunks = false;
    // Gates that earlier groups wait for: nobody of the other kind may come before them.
    std::set<std::string> snapshots, decisions;
  };
  Verdict Judge(const Group& group, Claims* claims, Error* error);
  bool PassesGate(const Group& group, Claims* claims);
  void Admit();
  void Reap();  // stores kClosed in groups that are done

  Worker* const worker_;
  std::unordered_map<StreamGroup*, std::unique_ptr<Group>> groups_;
  std::deque<Group*> waiting_;
  std::vector<Group*> validators_;
  int decisions_ = 0;  // groups that hold gates
  int64_t last_decision_us_ = 0;
  std::unordered_map<std::string, Gate> gates_;  // by server
  Timer retry_timer_;                            // backends give chunks back without telling
  Timer doubt_timer_;                            // groups wait no longer for servers in doubt
  bool reap_ = false;
  bool admit_ = false;
};

}  // namespace sluice
