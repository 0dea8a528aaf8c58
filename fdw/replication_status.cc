#include "fdw/replication_status.h"

#include <algorithm>
#include <ctime>

#include "fdw/connection.h"

namespace sluice {
namespace {

constexpr int64_t kStatusIntervalUs = 1'000'000;
// Every so many updates the shard is asked to answer, so that silence means that it is gone.
constexpr uint32_t kUpdatesPerPing = 10;
// More unsent bytes than this: the shard does not read, and more of the same would not help.
constexpr size_t kUnsentBytesMax = 64 * 1024;
constexpr int64_t kPostgresEpochS = 946'684'800;  // 2000-01-01 UTC

int64_t PostgresNowUs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t{now.tv_sec} - kPostgresEpochS) * 1'000'000 + now.tv_nsec / 1000;
}

}  // namespace

ReplicationStatus::ReplicationStatus(Worker* worker, Connection* connection, Stream* stream)
    : worker_(worker),
      connection_(connection),
      stream_(stream),
      timer_(
          &worker->timers, [](void* self) { static_cast<ReplicationStatus*>(self)->Send(); },
          this) {
  timer_.Arm(worker->now_us + kStatusIntervalUs);
}

void ReplicationStatus::Send() {
  timer_.Arm(worker_->now_us + kStatusIntervalUs);
  if (connection_->unsent_bytes() > kUnsentBytesMax) return;
  uint64_t confirmed = stream_->confirmed_lsn.load(std::memory_order_relaxed);  // S4
  uint64_t received =
      std::max(confirmed, stream_->received_lsn.load(std::memory_order_relaxed));  // S4
  bool news = confirmed == received || confirmed != told_;
  told_ = confirmed;
  char body[34];
  body[0] = 'r';
  StoreBig<uint64_t>(body + 1, received);               // written
  StoreBig<uint64_t>(body + 9, news ? confirmed : 0);   // flushed
  StoreBig<uint64_t>(body + 17, news ? confirmed : 0);  // applied
  StoreBig<int64_t>(body + 25, PostgresNowUs());
  body[33] = sent_++ % kUpdatesPerPing == 0 ? 1 : 0;
  connection_->request().CopyData(std::string_view(body, sizeof body));
  connection_->Send();
}

}  // namespace sluice
