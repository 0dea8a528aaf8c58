// The io worker: the one process that owns every socket to every shard. It takes requests from the
// ring in shared memory and fills streams' chunks (shm/stream.h is the contract); see
// fdw/README.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/log.h"
#include "fdw/io_ring.h"

namespace sluice {

struct IoWorkerConfig {
  IoMethod io_method = IoMethod::kAuto;
  LogLevel log_min_messages = LogLevel::kWarning;
  int64_t connect_timeout_us = 30'000'000;  // where the server's options have no connect_timeout
  int64_t idle_timeout_us = 300'000'000;    // an unused connection is closed after it
  int64_t cancel_timeout_us =
      10'000'000;  // a cancelled connection that is not ready by then is closed
  size_t backlog_bytes_max = 256 << 20;   // a pinned stream's, while others wait for its connection
  uint32_t prepared_statements_max = 64;  // a connection
  IoFaults faults;                        // tests only: all zero = none
};

// The child's main function. REQUIRES: forked, AttachProcess(kIoWorkerProc) done. Leaves the
// process at SIGTERM (or terminate_requested), or when its parent is gone.
[[noreturn]] void IoWorkerMain(const IoWorkerConfig& config);

// What Request::pool_key_hash is of a pool key (FNV-1a). In kForget 0 means every pool.
constexpr uint64_t PoolKeyHash(std::string_view pool_key) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : pool_key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace sluice
