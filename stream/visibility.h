// Which changes of a stream a snapshot has seen: the rule that backfills rest on. LSNs cannot tell:
// a commit record may be in the WAL, and decoded, well before its transaction is visible.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice {

// A shard's snapshot, as pg_current_snapshot() prints it: "xmin:xmax:xip,xip…".
class ShardSnapshot {
 public:
  static ShardSnapshot Parse(std::string_view text);  // throws 22P02
  // Whether the changes of a *committed* transaction are in what the snapshot reads. The stream has
  // the low 32 bits only; the transaction is taken to be within 2^31 of xmax.
  bool Sees(uint32_t xid) const;
  uint64_t xmin() const { return xmin_; }
  uint64_t xmax() const { return xmax_; }

 private:
  uint64_t xmin_ = 0, xmax_ = 0;
  std::vector<uint64_t> running_;  // sorted
};

}  // namespace sluice
