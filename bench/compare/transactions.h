// Transactions over several shards, and many idle clients.
#pragma once

#include <vector>

#include "bench/compare/report.h"
#include "tests/harness.h"

namespace sluice::bench {

// Median latency of moving money between two shards: BEGIN, two UPDATEs, COMMIT through Sluice,
// against the same two-phase commit by hand over two connections (both PREPARE at once, a decision
// record written with fdatasync, both COMMIT PREPARED at once), and against that without a decision
// record, which no crash may meet (shown, no limit of the plan's).
std::vector<Measurement> MeasureTransfer(const test::Cluster& cluster, int rounds);

// Transfers and sums over all shards at once, against each at the same share of the CPU without the
// commit gate between them: the baseline is the same mix with the transfers through one Sluice and
// the sums through another one over the same shards. Their gates know nothing of each other, all
// the rest is the same work on the same processors.
std::vector<Measurement> MeasureTransfersAndSums(test::Cluster* cluster, int rounds);

// Private memory of the largest of 1,000 backends whose clients idle, each of which ran statements
// before; and connections to the shard that had most of them while they all did.
// REQUIRES: the server takes so many clients.
std::vector<Measurement> MeasureIdleClients(const test::Cluster& cluster);

}  // namespace sluice::bench
