#include "postmaster/statement_snapshots.h"

#include "postmaster/remote_query.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

constexpr std::string_view kBegin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
// Begins nothing: a pin's connection that is found dead is replaced only where something was to
// begin on it.
constexpr std::string_view kNothing = "SELECT 1";

}  // namespace

StatementSnapshots::StatementSnapshots(const QuerySession& session, bool gate,
                                       std::span<const ServerStreams> servers, Arena* arena) {
  uint32_t streams_max = 0;
  for (const ServerStreams& each : servers) streams_max = std::max(streams_max, each.streams);
  while (pins_.size() < streams_max)
    pins_.push_back(shared_memory->next_pin.fetch_add(1, std::memory_order_relaxed));
  std::vector<RemoteQuery> queries;
  for (const ServerStreams& each : servers) {
    bool exports = each.streams > 1;
    queries.push_back({each.server, exports ? "SELECT pg_catalog.pg_export_snapshot()" : "SELECT 1",
                       StreamTransaction{pins_[0], kBegin}});
    for (uint32_t nth = 1; nth < each.streams; nth++)
      queries.push_back({each.server, "SELECT 1", StreamTransaction{pins_[nth], kNothing}});
  }
  RemoteSession remote = RemoteSessionOf(session);
  if (gate) remote.gate = StreamGate::kSnapshot;
  std::vector<RemoteRows> rows;
  try {
    rows = RunRemoteQueries(*session.catalog, remote, queries);
  } catch (...) {
    Cancel();
    for (uint64_t pin : pins_) SubmitRequest({RequestKind::kEndPin, nullptr, pin, 0});
    throw;
  }
  size_t at = 0;
  for (const ServerStreams& each : servers) {
    std::string id = rows[at].rows.at(0).at(0).value_or("");
    import_by_server_[each.server] =
        arena->CopyString(fmt::format("{}; SET TRANSACTION SNAPSHOT '{}'", kBegin, id));
    at += each.streams;
  }
}

StatementSnapshots::~StatementSnapshots() {
  for (uint64_t pin : pins_) SubmitRequest({RequestKind::kEndPin, nullptr, pin, 0});
}

StreamTransaction StatementSnapshots::For(Oid server, uint32_t nth) const {
  auto found = import_by_server_.find(server);
  if (found == import_by_server_.end()) return {};
  // The first one's transaction runs. If it does not, because its connection was lost, nothing may
  // begin another there: the io worker refuses a pin whose connection is gone.
  if (nth == 0) return {pins_[0], {}};
  return {pins_.at(nth), found->second};
}

void StatementSnapshots::Cancel() {
  for (uint64_t pin : pins_) SubmitRequest({RequestKind::kCancelPin, nullptr, pin, 0});
}

}  // namespace sluice
