// The commit gate: reads over several servers take their snapshots, and transactions over several
// servers are carried out, in intervals that exclude each other on each server. So such a read sees
// all of such a transaction or nothing. Plain data of this process, which sees both sides.
//
// COMMIT PREPARED waits for the shard's disk, and readers should not. Where it is known what the
// transactions under way are called on the servers, a read takes its snapshots meanwhile, but
// before its statements are sent they are compared: each such transaction must be seen by all of
// them or by none. Where one server was ahead, the others' snapshots are taken anew when they have
// caught up. While there are no such transactions a read sends all at once, and one that comes then
// waits for its snapshots.
#include <charconv>

#include "common/assert.h"
#include "fdw/group.h"

namespace sluice {
namespace {

// So long the gate is held at most: a server that does not answer must not keep others' readers and
// writers waiting.
constexpr int64_t kGateUs = 5'000'000;
// So long a read waits for a server in doubt; then what it wants there is refused.
constexpr int64_t kDoubtUs = 5'000'000;
constexpr int64_t kDoubtRetryUs = 100'000;
// So long after a decision others are expected: readers compare rather than make them wait.
constexpr int64_t kRecentUs = 100'000;

bool IsPostgres(const Stream& stream) {
  return stream.kind != StreamKind::kLines && stream.kind != StreamKind::kReplay;
}

bool IsKnown(const std::shared_ptr<CarriedOut>& carried_out) {
  return std::ranges::all_of(carried_out->xids, [](const auto& xid) { return xid.second != 0; });
}

// Which database it is, whoever connects.
std::string ServerOf(const ConnectionSpec& spec) {
  std::string server;
  for (std::string_view wanted : {"hostaddr", "host", "port", "dbname"}) {
    std::string_view value;
    for (size_t i = 0; i < spec.keywords.size(); i++)
      if (spec.keywords[i] == wanted) value = spec.values[i];
    server.append(value).push_back('\n');
  }
  return server;
}

}  // namespace

void Group::FindGate() {
  if (shared_->gate != StreamGate::kSnapshot && shared_->gate != StreamGate::kDecision) return;
  std::set<std::string> servers;
  for (const Stream& stream : shared_->streams)
    if (IsPostgres(stream)) servers.insert(ServerOf(*stream.connection));
  // A snapshot on one server is whole by itself.
  if (servers.size() > 1 || shared_->gate == StreamGate::kDecision)
    gate_servers_.assign(servers.begin(), servers.end());
  if (shared_->gate == StreamGate::kDecision) worker_->groups->CountDecision(0);
}

void Group::TakeGate() {
  gate_streams_ = shared_->streams.size();
  if (gate_servers_.empty()) return;
  holds_gate_ = true;
  GroupSet& groups = *worker_->groups;
  bool snapshot = shared_->gate == StreamGate::kSnapshot;
  compares_ = validates_ = snapshot && CanValidate() && groups.ExpectsDecisions();
  if (compares_) groups.validators().push_back(this);
  if (!snapshot) groups.CountDecision(1);
  if (!snapshot && gate_servers_.size() > 1) {
    carried_out_ = std::make_shared<CarriedOut>();
    for (const Stream& stream : shared_->streams)
      carried_out_->xids[ServerOf(*stream.connection)] = stream.xid;
    for (Group* reader : groups.validators()) reader->Meet(carried_out_);
  }
  for (const std::string& server : gate_servers_) {
    Gate& gate = groups.GateOf(server);
    if (!compares_) (snapshot ? gate.snapshots : gate.decisions)++;
    if (carried_out_ != nullptr) gate.carried_out.insert(carried_out_);
    if (compares_)
      for (const auto& carried_out : gate.carried_out) Meet(carried_out);
  }
  taken_.resize(shared_->streams.size());
  gate_timer_.Arm(worker_->now_us + kGateUs);
}

// Who is met on one server only is seen whole or not at all.
void Group::Meet(const std::shared_ptr<CarriedOut>& carried_out) {
  auto shared = std::ranges::count_if(
      gate_servers_, [&](const std::string& server) { return carried_out->xids.contains(server); });
  if (shared > 1 && std::ranges::find(meanwhile_, carried_out) == meanwhile_.end())
    meanwhile_.push_back(carried_out);
}

void Group::OnGatePassed() {
  SLUICE_ASSERT(gate_streams_ > 0);
  if (--gate_streams_ == 0)
    LeaveGate();
  else if (validates_)  // one that has ended is waited for no more
    Validate();
}

void Group::LeaveGate() {
  gate_timer_.Disarm();
  if (!std::exchange(holds_gate_, false)) return;
  for (const std::string& server : gate_servers_) {
    Gate& gate = worker_->groups->GateOf(server);
    if (!compares_) (shared_->gate == StreamGate::kSnapshot ? gate.snapshots : gate.decisions)--;
    if (carried_out_ != nullptr) gate.carried_out.erase(carried_out_);
  }
  std::vector<Group*>& validators = worker_->groups->validators();
  std::erase(validators, this);
  if (shared_->gate == StreamGate::kDecision) worker_->groups->CountDecision(-1);
  if (carried_out_ != nullptr) {
    carried_out_->over = true;
    for (Group* reader : std::vector<Group*>(validators))
      if (std::ranges::find(validators, reader) != validators.end()) reader->Validate();
  }
  worker_->groups->WantsAdmission();
}

std::optional<TxidSnapshot> TxidSnapshot::Parse(std::string_view text) {
  TxidSnapshot snapshot;
  const char* at = text.data();
  const char* end = at + text.size();
  auto number = [&](uint64_t* value, char behind) {
    auto [next, error] = std::from_chars(at, end, *value);
    if (error != std::errc()) return false;
    at = next;
    if (behind != 0 && (at == end || *at++ != behind)) return false;
    return true;
  };
  if (!number(&snapshot.xmin, ':') || !number(&snapshot.xmax, ':')) return std::nullopt;
  while (at < end) {
    uint64_t running = 0;
    if (!number(&running, 0)) return std::nullopt;
    snapshot.running.insert(running);
    if (at < end && *at++ != ',') return std::nullopt;
  }
  return snapshot;
}

// Plain reads with a snapshot of their own on each server.
bool Group::CanValidate() const {
  return shared_->snapshot_first && !shared_->shared_snapshot &&
         std::ranges::all_of(shared_->streams, [](const Stream& stream) {
           return !IsPostgres(stream) || (stream.pin == 0 && (stream.kind == StreamKind::kQuery ||
                                                              stream.kind == StreamKind::kCopyOut));
         });
}

// One server's decision is the rest of one that is in doubt; such servers are closed for readers.
bool Group::IsTold() const {
  return gate_servers_.size() < 2 ||
         std::ranges::all_of(shared_->streams, [](const Stream& s) { return s.xid != 0; });
}

bool GroupSet::ExpectsDecisions() const {
  return decisions_ > 0 || worker_->now_us - last_decision_us_ < kRecentUs;
}

void Group::OnSnapshot(size_t stream, const std::string& text) {
  taken_[stream] = TxidSnapshot::Parse(text);
  if (!taken_[stream])
    return tasks_[stream]->OnGateTimeout(
        MakeError(sqlstate::kProtocolViolation, "a snapshot of a server cannot be read"));
  Validate();
}

// Whether the snapshot does not see a transaction that another one sees. `retake`: such
// transactions are all over, so that a new one will.
bool Group::IsOutdated(size_t stream, bool* retake) const {
  const std::string server = ServerOf(*shared_->streams[stream].connection);
  bool outdated = false;
  *retake = true;
  for (const auto& carried_out : meanwhile_) {
    auto here = carried_out->xids.find(server);
    if (here == carried_out->xids.end() || taken_[stream]->Sees(here->second)) continue;
    for (size_t other = 0; other < taken_.size(); other++) {
      if (!taken_[other]) continue;
      auto there = carried_out->xids.find(ServerOf(*shared_->streams[other].connection));
      if (there == carried_out->xids.end() || !taken_[other]->Sees(there->second)) continue;
      outdated = true;
      *retake &= carried_out->over;
    }
  }
  return outdated;
}

void Group::Validate() {
  if (!validates_ || closing_) return;
  for (size_t i = 0; i < tasks_.size(); i++)
    if (IsPostgres(shared_->streams[i]) && !tasks_[i]->ended() && !taken_[i]) return;
  std::vector<size_t> again;
  bool good = true;
  for (size_t i = 0; i < tasks_.size(); i++) {
    bool retake = false;
    if (tasks_[i]->ended() || !taken_[i] || !IsOutdated(i, &retake)) continue;
    good = false;
    if (IsInDoubt(shared_->streams[i])) {
      tasks_[i]->OnGateTimeout(InDoubtError(shared_->streams[i]));
    } else if (retake) {
      again.push_back(i);
    }
  }
  if (!validates_) return;  // what was given up ended it
  if (!good) {
    for (size_t i : again) taken_[i].reset();
    for (size_t i : again) tasks_[i]->RetakeSnapshot();
    return;  // or once those that are waited for are over
  }
  validates_ = false;
  std::erase(worker_->groups->validators(), this);
  for (auto& task : tasks_)
    if (!task->ended()) task->Proceed();
}

Error Group::InDoubtError(const Stream& stream) {
  Error error = MakeError(sqlstate::kConnectionFailure,
                          "server \"{}\" has not carried out a transaction that others have",
                          stream.connection->server_name);
  error.hint = "The transaction resolver does it as soon as the server can be reached.";
  return error;
}

bool Group::IsInDoubt(const Stream& stream) const {
  return !gate_servers_.empty() &&
         !worker_->groups->GateOf(ServerOf(*stream.connection)).in_doubt.empty();
}

void Group::OnDecisionEnded(const Stream& stream) {
  Gate& gate = worker_->groups->GateOf(ServerOf(*stream.connection));
  StreamState state = stream.state.load(std::memory_order_relaxed);
  // Not there: it was carried out before.
  bool done = state == StreamState::kEnded ||
              (state == StreamState::kFailed && stream.error.state == sqlstate::kUndefinedObject);
  if (!done) {
    gate.in_doubt.emplace(stream.sql);
  } else if (gate.in_doubt.erase(std::string(stream.sql)) > 0) {
    worker_->groups->WantsAdmission();
  }
}

void Group::OnGateTimeout() {
  if (shared_->gate == StreamGate::kSnapshot) {
    validates_ = false;
    Error error =
        MakeError(sqlstate::kQueryCanceled, "timeout while taking snapshots on several servers");
    for (auto& task : tasks_) task->OnGateTimeout(error);
  } else {
    // Until they answer, these servers are in doubt.
    for (auto& task : tasks_)
      if (!task->ended()) OnDecisionEnded(*task->stream());
  }
  LeaveGate();
}

bool GroupSet::PassesGate(const Group& group, Claims* claims) {
  bool snapshot = group.shared()->gate == StreamGate::kSnapshot;
  const std::set<std::string>& before = snapshot ? claims->decisions : claims->snapshots;
  bool open = true, doubtful = false, validates = snapshot && group.CanValidate();
  // Whose transaction has no known numbers cannot be told apart by anyone.
  if (!snapshot && !group.IsTold() && !validators_.empty()) open = false;
  for (const std::string& server : group.gate_servers_) {
    const Gate& gate = GateOf(server);
    int others = snapshot ? gate.decisions : gate.snapshots;
    if (validates) others -= static_cast<int>(std::ranges::count_if(gate.carried_out, IsKnown));
    open = open && others == 0 && (validates || !before.contains(server));
    doubtful = doubtful || (snapshot && !gate.in_doubt.empty());
  }
  if (open && (!doubtful || worker_->now_us - group.opened_us_ >= kDoubtUs)) return true;
  if (doubtful) doubt_timer_.Arm(worker_->now_us + kDoubtRetryUs);
  // Who waits for the resolver must not keep it waiting.
  if (!doubtful)
    for (const std::string& server : group.gate_servers_)
      (snapshot ? claims->snapshots : claims->decisions).insert(server);
  return false;
}

}  // namespace sluice
