// Live views: how fast they are built, and what that costs.
#pragma once

#include <vector>

#include "bench/compare/report.h"
#include "tests/harness.h"

namespace sluice::bench {

// Views of `orders` (loaded by the caller): a copy against raw drain of SELECT *, GROUP BY customer
// against raw drain of its columns. While the copy stands: memory of the view worker, and the
// latency of one changed row, against a table of 10,000 rows under the same view.
std::vector<Measurement> MeasureBackfills(const test::Cluster& cluster, int rounds, long rows);

// A chain a → b → c built one after the other, while each other is being created, and in one
// transaction; how often the table is read for a chain and for a diamond. Over a table of `rows`
// rows a shard.
std::vector<Measurement> MeasureChains(const test::Cluster& cluster, int rounds, long rows);

// How many rows of `orders` are read for a copy whose process is killed ten times on the way.
Measurement MeasureKilledBackfill(const test::Cluster& cluster, long rows);

}  // namespace sluice::bench
