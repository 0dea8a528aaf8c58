#include "fdw/group.h"

#include "common/assert.h"
#include "fdw/gate_stream.h"
#include "fdw/line_stream.h"
#include "fdw/pool.h"
#include "fdw/postgres_stream.h"
#include "fdw/replay.h"
#include "shm/lease.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

constexpr int64_t kAdmissionRetryUs = 1'000;

bool NeedsConnection(const Stream& stream) {
  return stream.kind != StreamKind::kLines && stream.kind != StreamKind::kReplay &&
         stream.kind != StreamKind::kGate;
}

void WakeBackend(const StreamGroup& group) {
  SetLatch(&shared_memory->processes.slots[group.backend].latch);
}

// Others wait for their streams' rows or ends only: to be woken before would cost them two switches
// of context in vain.
bool IsAdmissionAwaited(const StreamGroup& group) {
  return group.extra_chunks > 0 || std::ranges::any_of(group.streams, [](const Stream& stream) {
           return stream.kind == StreamKind::kCopyIn;
         });
}

}  // namespace

// --- Group ---

Group::Group(Worker* worker, StreamGroup* shared)
    : worker_(worker),
      shared_(shared),
      admission_timer_(
          &worker->timers, [](void* self) { static_cast<Group*>(self)->OnAdmissionTimeout(); },
          this),
      opened_us_(worker->now_us),
      gate_timer_(
          &worker->timers, [](void* self) { static_cast<Group*>(self)->OnGateTimeout(); }, this) {
  FindGate();
  for (const Stream& stream : shared->streams) shown_.push_back(ShowStream(stream));
  if (shared->admission_timeout_us > 0) {
    admission_timer_.Arm(worker->now_us + shared->admission_timeout_us);
  }
}

Group::~Group() {
  std::erase(worker_->groups->validators(), this);
  for (uint32_t slot : shown_) HideStream(slot);
}

std::unique_ptr<StreamTask> Group::MakeTask(Stream* stream) {
  if (stream->kind == StreamKind::kLines)
    return std::make_unique<LineStream>(worker_, this, stream);
  if (stream->kind == StreamKind::kReplay)
    return std::make_unique<ReplayStream>(worker_, this, stream);
  if (stream->kind == StreamKind::kGate) return std::make_unique<GateStream>(worker_, this, stream);
  if (shared_->gate == StreamGate::kSnapshot && IsInDoubt(*stream)) {
    return std::make_unique<RefusedStream>(worker_, this, stream, InDoubtError(*stream));
  }
  Pool* pool = worker_->pools->Get(*stream->connection);
  return std::make_unique<PostgresStream>(worker_, this, stream, pool);
}

void Group::Admit() {
  SLUICE_ASSERT(!admitted_ && !closing_);
  admitted_ = true;
  admission_timer_.Disarm();
  shared_->state.store(GroupState::kAdmitted, std::memory_order_release);  // G1
  if (IsAdmissionAwaited(*shared_)) WakeBackend(*shared_);
  open_tasks_ = shared_->streams.size();
  TakeGate();
  for (Stream& stream : shared_->streams) tasks_.push_back(MakeTask(&stream));
  for (auto& task : tasks_) {
    bool holds = NeedsConnection(*task->stream()) || task->stream()->kind == StreamKind::kGate;
    if (!holds) task->PassGate();  // it has no snapshot
    task->Start();
  }
}

void Group::Refuse(const Error& error) {
  SLUICE_ASSERT(!admitted_);
  admitted_ = true;
  admission_timer_.Disarm();
  open_tasks_ = shared_->streams.size();
  gate_streams_ = shared_->streams.size();
  for (Stream& stream : shared_->streams) {
    tasks_.push_back(std::make_unique<RefusedStream>(worker_, this, &stream, error));
  }
  for (auto& task : tasks_) task->Start();
}

void Group::OnAdmissionTimeout() {
  if (admitted_ || closing_) return;
  Error error = MakeError(sqlstate::kTooManyConnections,
                          "timeout while waiting for connections to the servers");
  error.detail =
      fmt::format("The statement waited for {} ms in turn.", shared_->admission_timeout_us / 1000);
  error.hint =
      "Raise the servers' connection limits or chunk_pool_size, or run fewer statements at once.";
  worker_->groups->Refuse(this, error);
}

void Group::Close() {
  closing_ = true;
  admission_timer_.Disarm();
  for (auto& task : tasks_) task->Detach();
  if (!admitted_) {
    for (Stream& stream : shared_->streams) {
      if (stream.lease != nullptr) stream.lease->state.store(LeaseState::kNone);  // L3
    }
  }
  worker_->groups->WantsReaping();
}

void Group::OnTaskEnded() {
  SLUICE_ASSERT(open_tasks_ > 0);
  open_tasks_--;
  if (done()) worker_->groups->WantsReaping();
}

SharedSnapshot* Group::SnapshotFor(const Stream& stream) {
  auto reads = [](const Stream& s) {
    return s.pin == 0 && (s.kind == StreamKind::kQuery || s.kind == StreamKind::kCopyOut);
  };
  if (!shared_->shared_snapshot || !reads(stream)) return nullptr;
  auto together = [&](const Stream& s) {
    return reads(s) && s.connection->pool_key == stream.connection->pool_key;
  };
  if (std::count_if(shared_->streams.begin(), shared_->streams.end(), together) < 2) return nullptr;
  return &snapshots_[stream.connection->pool_key];
}

// --- GroupSet ---

GroupSet::GroupSet(Worker* worker)
    : worker_(worker),
      retry_timer_(
          &worker->timers, [](void* self) { static_cast<GroupSet*>(self)->WantsAdmission(); },
          this),
      doubt_timer_(
          &worker->timers, [](void* self) { static_cast<GroupSet*>(self)->WantsAdmission(); },
          this) {}

void GroupSet::Open(StreamGroup* shared) {
  auto group = std::make_unique<Group>(worker_, shared);
  waiting_.push_back(group.get());
  bool is_new = groups_.emplace(shared, std::move(group)).second;
  SLUICE_ASSERT(is_new);
  admit_ = true;
}

void GroupSet::Close(StreamGroup* shared) {
  auto found = groups_.find(shared);
  if (found == groups_.end()) return;
  std::erase(waiting_, found->second.get());
  found->second->Close();
  admit_ = true;  // the one behind it may have waited for nothing else
}

void GroupSet::Refuse(Group* group, const Error& error) {
  std::erase(waiting_, group);
  group->Refuse(error);
  admit_ = true;
}

// Whether the group can have all that it needs now. What an earlier group waits for is claimed: no
// later one may take it, or large statements would starve.
GroupSet::Verdict GroupSet::Judge(const Group& group, Claims* claims, Error* error) {
  std::unordered_map<Pool*, uint32_t> wanted;
  uint64_t chunks = group.shared()->extra_chunks;
  // Streams of one pin share a connection.
  std::vector<std::pair<uint64_t, Pool*>> pins;
  for (const Stream& stream : group.shared()->streams) {
    chunks += stream.chunk_quota;
    if (!NeedsConnection(stream)) continue;
    Pool* pool = worker_->pools->Get(*stream.connection);
    if (stream.pin != 0) {
      std::pair<uint64_t, Pool*> pin(stream.pin, pool);
      if (worker_->pools->Pinned(stream.pin, pool) != nullptr) continue;
      if (std::find(pins.begin(), pins.end(), pin) != pins.end()) continue;
      pins.push_back(pin);
    }
    wanted[pool]++;
  }
  if (chunks > shared_memory->chunks.chunk_count) {
    *error =
        MakeError(sqlstate::kOutOfMemory, "statement needs {} chunks, but the pool has only {}",
                  chunks, shared_memory->chunks.chunk_count);
    error->hint = "Raise chunk_pool_size.";
    return Verdict::kRefuse;
  }
  bool wait = false;
  for (auto& [pool, connections] : wanted) {
    if (connections > pool->connections_max()) {
      *error = MakeError(sqlstate::kTooManyConnections,
                         "statement needs {} connections to server \"{}\", which allows only {}",
                         connections, pool->server_name(), pool->connections_max());
      return Verdict::kRefuse;
    }
    bool claimed =
        std::find(claims->pools.begin(), claims->pools.end(), pool) != claims->pools.end();
    if (claimed || !pool->HasRoom(connections)) {
      wait = true;
      pool->RecallLent();
    }
  }
  // Last, so that nobody holds up a gate while it waits for something else.
  if (!wait && !PassesGate(group, claims)) return Verdict::kWait;
  if (!wait && !claims->chunks && TryReserveGroup(group.shared())) return Verdict::kAdmit;
  if (!wait) claims->chunks = true;
  for (auto& [pool, connections] : wanted) claims->pools.push_back(pool);
  return Verdict::kWait;
}

void GroupSet::Admit() {
  Claims claims;
  for (size_t i = 0; i < waiting_.size();) {
    Group* group = waiting_[i];
    Error error;
    Verdict verdict = Judge(*group, &claims, &error);
    if (verdict == Verdict::kWait) {
      i++;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    if (verdict == Verdict::kAdmit) {
      group->Admit();
    } else {
      group->Refuse(error);
    }
  }
  shared_memory->groups_waiting.store(static_cast<uint32_t>(waiting_.size()),
                                      std::memory_order_relaxed);
  // Chunks come back without a word from the backend that gave them.
  if (claims.chunks) retry_timer_.Arm(worker_->now_us + kAdmissionRetryUs);
}

void GroupSet::Reap() {
  for (auto it = groups_.begin(); it != groups_.end();) {
    if (!it->second->done()) {
      ++it;
      continue;
    }
    StreamGroup* shared = it->first;
    it = groups_.erase(it);
    ProcNumber backend = shared->backend;
    shared->state.store(GroupState::kClosed, std::memory_order_release);  // G1: the last touch
    SetLatch(&shared_memory->processes.slots[backend].latch);
  }
}

void GroupSet::Round() {
  while (admit_ || reap_) {
    if (std::exchange(admit_, false)) Admit();
    if (std::exchange(reap_, false)) Reap();
  }
}

}  // namespace sluice
