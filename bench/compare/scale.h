// What must not grow: memory with the number of rows, cost with the number of streams.
#pragma once

#include "bench/compare/report.h"
#include "tests/harness.h"

namespace sluice::bench {

// Peak of anonymous memory of all Sluice processes (proportional set size) plus chunks in use and
// query arenas, while a client drains 1M and 4M rows. MiB; the limit is 128 for both.
std::vector<Measurement> MeasureMemory(const test::Cluster& cluster);

// 64 databases on the four servers against one each, the same number of rows: each way over its own
// raw drain.
Measurement MeasureManyStreams(const test::Cluster& cluster, long rows_per_shard, int rounds);

}  // namespace sluice::bench
