#include "fdw/pool.h"

#include "common/assert.h"
#include "fdw/group.h"
#include "shm/lease.h"
#include "shm/shared_memory.h"
#include "shm/transaction_table.h"

namespace sluice {
namespace {

constexpr int64_t kSweepUs = 1'000'000;
constexpr int64_t kBackoffFirstUs = 50'000;
constexpr int64_t kBackoffMaxUs = 1'000'000;

}  // namespace

// --- Pool ---

void Pool::Update(const ConnectionSpec& spec) {
  connections_max_ = std::max(spec.connections_max, 1u);
  if (!keywords_.empty() && server_name_ == spec.server_name &&
      std::equal(keywords_.begin(), keywords_.end() - kForcedOptions, spec.keywords.begin(),
                 spec.keywords.end()) &&
      std::equal(values_.begin(), values_.end() - kForcedOptions, spec.values.begin(),
                 spec.values.end())) {
    return;
  }
  server_name_ = spec.server_name;
  instance_ = HashInstance(spec);
  keywords_.assign(spec.keywords.begin(), spec.keywords.end());
  values_.assign(spec.values.begin(), spec.values.end());
  // Of a keyword that comes twice libpq takes the last.
  bool named = std::find(keywords_.begin(), keywords_.end(), "application_name") != keywords_.end();
  keywords_.insert(keywords_.end(), {"gssencmode", "client_encoding",
                                     named ? "fallback_application_name" : "application_name"});
  values_.insert(values_.end(), {"disable", "UTF8", "sluice"});
}

std::vector<const char*> Pool::Pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

std::string_view Pool::Option(std::string_view keyword) const {
  for (size_t i = keywords_.size(); i-- > 0;) {
    if (keywords_[i] == keyword) return values_[i];
  }
  return {};
}

Connection* Pool::Acquire(std::string_view session_setup) {
  SLUICE_ASSERT(HasRoom(1));
  for (;;) {
    if (idle_.empty()) return Open();
    // One that was prepared for the same session settings saves a round trip.
    auto suits = [&](Connection* c) {
      return c->applied_setup() && *c->applied_setup() == session_setup;
    };
    auto found = std::find_if(idle_.rbegin(), idle_.rend(), suits);
    size_t at =
        found == idle_.rend() ? idle_.size() - 1 : static_cast<size_t>(idle_.rend() - found) - 1;
    Connection* connection = idle_[at];
    if (!connection->CheckIdle()) {
      CloseIdle(at);
      continue;
    }
    idle_.erase(idle_.begin() + static_cast<ptrdiff_t>(at));
    in_use_++;
    return connection;
  }
}

Connection* Pool::Open() {
  auto owned = std::make_unique<Connection>(worker_, this, generation_);
  Connection* connection = owned.get();
  all_.emplace(connection, std::move(owned));
  in_use_++;
  // Not from here: a connect that fails at once would report to a stream that is just being
  // started.
  connection->StartConnectSoon();
  return connection;
}

void Pool::Adopt(int fd) {
  auto owned = std::make_unique<Connection>(worker_, this, generation_);
  owned->Adopt(fd);
  idle_.push_back(owned.get());
  all_.emplace(owned.get(), std::move(owned));
}

void Pool::Return(Connection* connection) {
  SLUICE_ASSERT(in_use_ > 0);
  in_use_--;
  idle_.push_back(connection);
  if (connection->generation() != generation_) CloseIdle(idle_.size() - 1);
  worker_->groups->WantsAdmission();
}

void Pool::CloseIdle(size_t at) {
  idle_[at]->Close();
}

void Pool::OnLost(Connection* connection) {
  auto idle = std::find(idle_.begin(), idle_.end(), connection);
  if (idle != idle_.end()) {
    idle_.erase(idle);
  } else {
    SLUICE_ASSERT(in_use_ > 0);
    in_use_--;
  }
  auto found = all_.find(connection);
  SLUICE_ASSERT(found != all_.end());
  worker_->graveyard.push_back(std::move(found->second));
  all_.erase(found);
  worker_->groups->WantsAdmission();
}

// The first try after a failure waits a little, the next ones longer, so that a server that is down
// or full is not flooded.
void Pool::OnConnectFailed() {
  failures_ = std::min(failures_ + 1, 16);
  int64_t wait_us = std::min(kBackoffFirstUs << (failures_ - 1), kBackoffMaxUs);
  next_connect_us_ = worker_->now_us + wait_us;
}

bool Pool::MayLend() const {
  return !worker_->groups->somebody_waits();
}

void Pool::RecallLent() {
  for (auto& [connection, owned] : all_) {
    if (connection->lent_to() == nullptr) continue;
    RecallLeases(&shared_memory->processes.slots[connection->lent_to()->backend]);
  }
}

void Pool::Forget() {
  generation_++;
  RecallLent();
  while (!idle_.empty()) CloseIdle(idle_.size() - 1);
}

void Pool::Sweep() {
  for (size_t i = idle_.size(); i-- > 0;) {
    bool stale = worker_->now_us - idle_[i]->idle_since_us() > worker_->config.idle_timeout_us;
    if (stale || !idle_[i]->CheckIdle()) CloseIdle(i);
  }
}

// --- PoolSet ---

PoolSet::PoolSet(Worker* worker)
    : worker_(worker),
      sweep_timer_(
          &worker->timers, [](void* self) { static_cast<PoolSet*>(self)->Sweep(); }, this) {
  sweep_timer_.Arm(worker->now_us + kSweepUs);
}

Pool* PoolSet::Get(const ConnectionSpec& spec) {
  auto& pool = pools_[std::string(spec.pool_key)];
  if (pool == nullptr) pool = std::make_unique<Pool>(worker_, spec.pool_key);
  pool->Update(spec);
  return pool.get();
}

Connection* PoolSet::Pinned(uint64_t pin, const Pool* pool) {
  auto found = pins_.find(pin);
  if (found == pins_.end()) return nullptr;
  for (Connection* connection : found->second) {
    if (connection->pool() == pool) return connection;
  }
  return nullptr;
}

void PoolSet::Pin(uint64_t pin, Connection* connection) {
  pins_[pin].push_back(connection);
  connection->set_pin(pin);
}

void PoolSet::OnPinnedLost(Connection* connection) {
  auto found = pins_.find(connection->pin());
  if (found == pins_.end()) return;
  lost_[connection->pin()].push_back(connection->pool());
  std::erase(found->second, connection);
  if (found->second.empty()) pins_.erase(found);
}

bool PoolSet::HasLost(uint64_t pin, const Pool* pool) const {
  auto found = lost_.find(pin);
  return found != lost_.end() &&
         std::find(found->second.begin(), found->second.end(), pool) != found->second.end();
}

void PoolSet::ForgetLost(uint64_t pin, const Pool* pool) {
  auto found = lost_.find(pin);
  if (found == lost_.end()) return;
  std::erase(found->second, pool);
  if (found->second.empty()) lost_.erase(found);
}

void PoolSet::Unpin(uint64_t pin, bool reset) {
  lost_.erase(pin);
  auto found = pins_.find(pin);
  if (found == pins_.end()) return;
  std::vector<Connection*> connections = std::move(found->second);
  pins_.erase(found);
  for (Connection* connection : connections) connection->Unpin(reset);
}

void PoolSet::CancelPin(uint64_t pin) {
  auto found = pins_.find(pin);
  if (found == pins_.end()) return;
  for (Connection* connection : found->second) connection->Cancel();
}

void PoolSet::Forget(uint64_t pool_key_hash) {
  for (auto& [key, pool] : pools_) {
    if (pool_key_hash == 0 || PoolKeyHash(key) == pool_key_hash) pool->Forget();
  }
}

void PoolSet::Sweep() {
  for (auto& [key, pool] : pools_) pool->Sweep();
  sweep_timer_.Arm(worker_->now_us + kSweepUs);
}

}  // namespace sluice
