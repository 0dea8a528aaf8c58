// Live views: how fast changes come in, and how soon they show.
#pragma once

#include <vector>

#include "bench/compare/report.h"
#include "tests/harness.h"

namespace sluice::bench {

// The same changes of four shards (transactions of 1,000 rows: inserts, then updates of random
// keys), decoded by each shard's walsender once for pg_recvlogical, four at once writing to
// /dev/null, and once for Sluice until FLUSH returns; both from a backlog that is complete before
// the clock starts. With a copy of the rows as the view, and with GROUP BY region.
std::vector<Measurement> MeasureChangeRates(const test::Cluster& cluster, int rounds, long rows);

// Commit on a shard → visible in a view, and at the end of a chain of three; one update at a time.
std::vector<Measurement> MeasureVisibility(const test::Cluster& cluster);

}  // namespace sluice::bench
