// What a transaction over several servers says of itself in their WAL, for live views: each part
// names the others, so that views take in all of them at once or none (stream/change_reader.h).
#include "catalog/quote.h"
#include "postmaster/distributed_transaction.h"
#include "shm/live_views.h"
#include "stream/change_reader.h"

namespace sluice {
namespace {

// Whether live views follow the server: otherwise nobody would wait for its part.
bool IsFollowed(Oid server) {
  const ReplicatedServer* entry = FindReplicatedServer(server);
  return entry != nullptr && entry->applied_lsn.load(std::memory_order_acquire) != ~uint64_t{0};
}

}  // namespace

void DistributedTransaction::Announce(const std::vector<const Participant*>& participants,
                                      const std::string& gid) {
  // A server's identity, asked once a session.
  static auto* identifiers = new std::map<Oid, std::string>;
  std::vector<const Participant*> followed;
  std::vector<RemoteQuery> unknown;
  for (const Participant* participant : participants) {
    if (!IsFollowed(participant->server)) continue;
    followed.push_back(participant);
    if (!identifiers->contains(participant->server))
      unknown.push_back(
          {participant->server, "SELECT system_identifier FROM pg_catalog.pg_control_system()"});
  }
  if (followed.size() < 2) return;
  std::vector<RemoteRows> answers =
      RunRemoteQueries(*session_().catalog, Remote(StreamKind::kQuery), unknown);
  for (size_t i = 0; i < unknown.size(); i++)
    (*identifiers)[unknown[i].server] = answers[i].rows.at(0).at(0).value_or("0");
  std::string content = gid + " " + std::to_string(followed.size());
  for (const Participant* participant : followed)
    content += " " + identifiers->at(participant->server);
  std::vector<Result<RemoteRows>> results = OnParticipants(
      followed, fmt::format("SELECT pg_catalog.pg_logical_emit_message(true, '{}', {})",
                            kTransactionMessagePrefix, QuoteLiteral(content)));
  for (Result<RemoteRows>& result : results)
    if (!result.ok()) throw QueryError(result.error());
}

}  // namespace sluice
