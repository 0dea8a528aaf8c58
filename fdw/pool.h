// Connections to shards, for all sessions together. A pool is one server, role and database (the
// pool key); a pin is a session's hold on its connections while a transaction runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fdw/connection.h"
#include "fdw/worker.h"
#include "shm/stream.h"

namespace sluice {

class Pool {
 public:
  Pool(Worker* worker, std::string_view key) : worker_(worker), key_(key) {}
  // Takes the spec's values: the newest count.
  void Update(const ConnectionSpec& spec);

  bool HasRoom(uint32_t connections) const { return in_use_ + connections <= connections_max_; }
  uint32_t connections_max() const { return connections_max_; }
  const std::string& server_name() const { return server_name_; }
  uint64_t instance() const { return instance_; }  // HashInstance
  const std::string& key() const { return key_; }
  uint32_t generation() const { return generation_; }

  // A connection for the caller, idle or just being opened. REQUIRES: HasRoom(1).
  Connection* Acquire(std::string_view session_setup);
  // Tests: an idle connection on a socket that is there already.
  void Adopt(int fd);
  // A fresh one in place of one that was lost.
  Connection* Open();
  // The connection is usable and nobody's.
  void Return(Connection* connection);
  // The connection is closed; the pool gives it away.
  void OnLost(Connection* connection);
  void OnConnected() { failures_ = 0; }
  void OnConnectFailed();
  // When the next connect may be tried (backoff); 0: at once.
  int64_t next_connect_us() const { return next_connect_us_; }

  // Whether a connection may be lent: nobody waits for one.
  bool MayLend() const;
  // Asks for what is lent, for those that wait.
  void RecallLent();

  void Forget();  // closes idle connections now and used ones when they return
  void Sweep();   // closes dead and long idle ones

  std::vector<const char*> keywords() const { return Pointers(keywords_); }
  std::vector<const char*> values() const { return Pointers(values_); }
  std::string_view Option(std::string_view keyword) const;

 private:
  static constexpr ptrdiff_t kForcedOptions = 3;  // ours, behind the spec's
  static std::vector<const char*> Pointers(const std::vector<std::string>& texts);
  void CloseIdle(size_t at);

  Worker* const worker_;
  const std::string key_;
  std::string server_name_;
  uint64_t instance_ = 0;
  std::vector<std::string> keywords_, values_;
  uint32_t connections_max_ = 1;
  uint32_t in_use_ = 0;
  uint32_t generation_ = 0;  // raised by Forget
  int failures_ = 0;
  int64_t next_connect_us_ = 0;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> all_;
  std::vector<Connection*> idle_;  // the last used is at the back
};

class PoolSet {
 public:
  explicit PoolSet(Worker* worker);
  Pool* Get(const ConnectionSpec& spec);
  // The pin's connection to the pool, or null.
  Connection* Pinned(uint64_t pin, const Pool* pool);
  void Pin(uint64_t pin, Connection* connection);
  void OnPinnedLost(Connection* connection);
  // Whether the pin had a connection to the pool that is closed now: whatever its transaction did
  // there is gone, so it must not go on on another one.
  bool HasLost(uint64_t pin, const Pool* pool) const;
  void ForgetLost(uint64_t pin, const Pool* pool);
  // `reset`: more than a transaction may have been done on its connections.
  void Unpin(uint64_t pin, bool reset);
  void CancelPin(uint64_t pin);
  void Forget(uint64_t pool_key_hash);

 private:
  void Sweep();

  Worker* const worker_;
  std::unordered_map<std::string, std::unique_ptr<Pool>> pools_;
  std::unordered_map<uint64_t, std::vector<Connection*>> pins_;
  std::unordered_map<uint64_t, std::vector<const Pool*>> lost_;  // by pin
  Timer sweep_timer_;
};

}  // namespace sluice
