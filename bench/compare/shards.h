// What several measurements do on the shards.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/harness.h"

namespace sluice::bench {

// The columns of tests/workloads/orders.sql.
extern const char* const kOrdersColumns;

// A table on every shard, and a table of Sluice's over them: `key` modulo the number of shards says
// where a row belongs. A table of that name that is there already is dropped.
void CreateTables(const test::Cluster& cluster, const std::string& name, const std::string& columns,
                  const std::string& key);
// The second half of it, for one more Sluice over the same shards.
void RegisterTables(const std::string& url, int shards, const std::string& name,
                    const std::string& columns, const std::string& key);
void DropTables(const test::Cluster& cluster, const std::string& name);
void Truncate(const test::Cluster& cluster, const std::string& name);

// Seconds that `run` takes for all shards at once, each in a thread.
double OnAllShards(int shards, const std::function<void(int shard)>& run);
void OnShards(const test::Cluster& cluster, const std::string& sql);

std::string PortOf(const std::string& url);
// A process and all that descend from it.
std::vector<int> ProcessTree(int root);
// A line of /proc/PID/smaps_rollup in bytes; 0 if it cannot be read.
uint64_t MemoryOf(int pid, const std::string& what);

}  // namespace sluice::bench
