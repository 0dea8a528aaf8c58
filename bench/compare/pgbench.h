// Point work by pgbench: Sluice against pgbouncer (transaction pooling) in front of one shard.
#pragma once

#include <vector>

#include "bench/compare/report.h"
#include "tests/harness.h"

namespace sluice::bench {

// Transactions a second of 8 clients in extended mode: one SELECT by key (Sluice's keys lie on all
// shards), and a transaction of SELECT, UPDATE, SELECT on one key (the same rows of one shard for
// both, so that both write the same WAL).
std::vector<Measurement> MeasurePgbench(const test::Cluster& cluster, int rounds);

}  // namespace sluice::bench
