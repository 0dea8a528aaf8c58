// What the measurements of live views share.
#pragma once

#include <string>
#include <vector>

#include "tests/harness.h"

namespace sluice::bench {

// A materialized view, dropped at the end of the block. Waits until it is complete, and until its
// replication slots are gone, so that what is measured next writes no WAL for it.
class ScopedView {
 public:
  ScopedView(const test::Cluster& cluster, std::string name, const std::string& query);
  ~ScopedView();
  ScopedView(const ScopedView&) = delete;
  ScopedView& operator=(const ScopedView&) = delete;

 private:
  const test::Cluster& cluster_;
  const std::string name_;
};

void DropViews(const test::Cluster& cluster, const std::vector<std::string>& names);
int ViewWorkerPid(const std::string& url);
double Percentile(std::vector<double> values, double percent);

// Commit on the shard → visible through `url`, in ms: updates a random row of `table` (id,
// `column`) on its shard, then asks the view for it until it shows the new value. `ids`: on all
// shards, from 0.
std::vector<double> VisibilityMs(const test::Cluster& cluster, const std::string& table,
                                 const std::string& column, const std::string& view, long ids,
                                 int samples);

}  // namespace sluice::bench
