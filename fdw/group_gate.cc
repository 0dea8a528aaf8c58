// The commit gate: reads over several servers take their snapshots, and transactions over several
// servers are carried out, in intervals that exclude each other on each server. So such a read sees
// all of such a transaction or nothing. Plain data of this process, which sees both sides.
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

bool IsPostgres(const Stream& stream) {
  return stream.kind != StreamKind::kLines && stream.kind != StreamKind::kReplay;
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
  if (shared_->gate == StreamGate::kNone) return;
  std::set<std::string> servers;
  for (const Stream& stream : shared_->streams)
    if (IsPostgres(stream)) servers.insert(ServerOf(*stream.connection));
  // A snapshot on one server is whole by itself.
  if (servers.size() > 1 || shared_->gate == StreamGate::kDecision)
    gate_servers_.assign(servers.begin(), servers.end());
}

void Group::TakeGate() {
  gate_streams_ = shared_->streams.size();
  if (gate_servers_.empty()) return;
  holds_gate_ = true;
  for (const std::string& server : gate_servers_) {
    Gate& gate = worker_->groups->GateOf(server);
    (shared_->gate == StreamGate::kSnapshot ? gate.snapshots : gate.decisions)++;
  }
  gate_timer_.Arm(worker_->now_us + kGateUs);
}

void Group::OnGatePassed() {
  SLUICE_ASSERT(gate_streams_ > 0);
  if (--gate_streams_ == 0) LeaveGate();
}

void Group::LeaveGate() {
  gate_timer_.Disarm();
  if (!std::exchange(holds_gate_, false)) return;
  for (const std::string& server : gate_servers_) {
    Gate& gate = worker_->groups->GateOf(server);
    (shared_->gate == StreamGate::kSnapshot ? gate.snapshots : gate.decisions)--;
  }
  worker_->groups->WantsAdmission();
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
  bool open = true, doubtful = false;
  for (const std::string& server : group.gate_servers_) {
    const Gate& gate = GateOf(server);
    open = open && (snapshot ? gate.decisions : gate.snapshots) == 0 && !before.contains(server);
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
