// The jobs over replaying fake shards.
#pragma once

#include <vector>

#include "bench/compare/report.h"
#include "tests/harness.h"

namespace sluice::bench {

// 3 columns decoded and grouped at memory speed: rows a second of CPU time of the processes that
// decode and group (backend and parallel workers); prints every process.
Measurement MeasureReplay(const test::Cluster& cluster, int rounds);
// One of four shards 10 × slower: rows/s until the fast ones are done, claims by chunk against by
// plan.
Measurement MeasureUnevenRates(const test::Cluster& cluster, int rounds);
// The same shards, all done at once, and more to compute than the processes can: for how much of
// the time in which something is ready the laziest worker sleeps, as EXPLAIN ANALYZE has it.
Measurement MeasureIdleWorkers(const test::Cluster& cluster, int rounds);

}  // namespace sluice::bench
