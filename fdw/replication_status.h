// What a logical replication stream says while it receives: a standby status update about once a
// second, from the position in Stream::confirmed_lsn. Unasked, and also while the stream is held
// back: a shard that hears nothing for wal_sender_timeout ends the stream, and its keepalives wait
// unread behind the rows.
//
// A shard that shuts down waits until all that it has sent is flushed, or where no flushed position
// is told, written. What is confirmed may be behind for as long as another shard is down, so it is
// told once only, and then none.
#pragma once

#include <cstdint>

#include "fdw/timer.h"
#include "fdw/worker.h"
#include "shm/stream.h"

namespace sluice {

class ReplicationStatus {
 public:
  // The shard has answered START_REPLICATION. Lives no longer than the stream has `connection`.
  ReplicationStatus(Worker* worker, Connection* connection, Stream* stream);

 private:
  void Send();

  Worker* const worker_;
  Connection* const connection_;
  Stream* const stream_;
  Timer timer_;
  uint32_t sent_ = 0;
  uint64_t told_ = 0;
};

}  // namespace sluice
