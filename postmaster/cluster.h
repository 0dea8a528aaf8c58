// `sluice cluster up|down|urls`: a local cluster for trying, testing and measuring: N real Postgres
// shards and one Sluice in front of them, all below one directory, on loopback and unix sockets
// only.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace sluice {

struct ClusterOptions {
  std::string directory;
  int shards = 4;
  int port = 7432;  // Sluice's; shard i (from 1) listens on shard_port + i - 1
  int shard_port = 7441;
  std::vector<std::string> settings;        // "name = value" lines for Sluice's configuration file
  std::vector<std::string> shard_settings;  // for each shard's postgresql.conf
};

// Runs `sluice ARGS…` in this process's stead (main() gives it); the cluster forks before it calls.
using RunSelf = std::function<int(const std::vector<std::string>& args)>;

// Each returns the process's exit status and says on stderr what went wrong. As root, `up` gives
// the directory to an unprivileged user and goes on as that one: neither Postgres nor Sluice runs
// as root.
int ClusterUp(const ClusterOptions& options, const RunSelf& run_self);
int ClusterDown(const ClusterOptions& options, const RunSelf& run_self);
// Sluice's connection URL on the first line, then one line a shard.
int ClusterUrls(const ClusterOptions& options);

}  // namespace sluice
