// A process that speaks just enough of the server side of Postgres's protocol to replay rows at
// memory speed, or at a limited rate: what Sluice costs by itself, without Postgres's work beside
// it.
//
// Every statement but a SELECT is answered with its command tag; a SELECT gets `rows` rows of
// (region text, amount numeric, qty int4) in binary, the table's three columns in this order.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

namespace sluice::bench {

struct FakeShardOptions {
  int port;                    // on loopback
  uint64_t rows;               // a SELECT
  double rows_per_second = 0;  // 0: as fast as the reader takes them
};

// Shared with the parent: when the last SELECT's last row was sent (seconds, monotonic).
struct FakeShardState {
  double started;
  double finished;
};

class FakeShard {
 public:
  explicit FakeShard(const FakeShardOptions& options);
  ~FakeShard();
  FakeShard(const FakeShard&) = delete;
  FakeShard& operator=(const FakeShard&) = delete;

  pid_t pid() const { return pid_; }
  const FakeShardState& state() const { return *state_; }

 private:
  pid_t pid_;
  FakeShardState* state_;  // a shared anonymous page
};

}  // namespace sluice::bench
