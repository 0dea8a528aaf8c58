// Reading live views.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/compare/report.h"
#include "tests/harness.h"

namespace sluice::bench {

// A prepared look-up by key, one client: the median latency in ms.
double LookUpMs(const std::string& url, const std::string& sql,
                const std::function<long(int i)>& key_of);

// SELECT * and a prepared look-up by key of a view of `rows` rows, against a table of the same rows
// on one Postgres.
std::vector<Measurement> MeasureViewReads(const test::Cluster& cluster, int rounds, long rows);

}  // namespace sluice::bench
