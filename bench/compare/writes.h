// Writes of many rows: COPY FROM STDIN and INSERT … SELECT, against the same work on the shards.
#pragma once

#include <vector>

#include "bench/compare/report.h"
#include "tests/harness.h"

namespace sluice::bench {

// `rows` orders by COPY … FROM STDIN, against a COPY of the same rows, split beforehand, to each
// shard at once.
Measurement MeasureCopyFrom(const test::Cluster& cluster, int rounds, long rows);
// INSERT INTO … SELECT generate_series(1, rows), against a quarter of it on each shard at once.
Measurement MeasureInsertSelect(const test::Cluster& cluster, int rounds, long rows);

}  // namespace sluice::bench
