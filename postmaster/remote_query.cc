#include "postmaster/remote_query.h"

#include "common/assert.h"
#include "common/bytes.h"
#include "shm/query_arena.h"
#include "shm/stream.h"

namespace sluice {

namespace {

constexpr uint32_t kChunkQuota = 2;

// The group's memory may go only when the io worker has let go of it.
class OpenGroup {
 public:
  explicit OpenGroup(StreamGroup* group) : group_(group) { OpenStreams(group_); }
  ~OpenGroup() { CloseStreams(group_); }

 private:
  StreamGroup* group_;
};

StreamGroup* MakeGroup(const Catalog& catalog, const RemoteSession& session,
                       std::span<const RemoteQuery> queries, Arena* arena) {
  auto* group = arena->New<StreamGroup>();
  group->backend = my_proc_number;
  group->streams = arena->NewArray<Stream>(queries.size());
  group->admission_timeout_us = session.admission_timeout_us;
  group->gate = session.gate;
  ReadyQueue* queue =
      MakeReadyQueue(arena, static_cast<uint32_t>(queries.size()) * SlicesMax(kChunkQuota),
                     static_cast<uint32_t>(queries.size()));
  for (size_t i = 0; i < queries.size(); i++) {
    Stream& stream = group->streams[i];
    stream.kind = session.kind;
    stream.index = static_cast<uint16_t>(i);
    stream.group = group;
    stream.connection = MakeConnectionSpec(catalog, queries[i].server, session.user,
                                           session.settings, session.limits, arena);
    stream.sql = arena->CopyString(queries[i].sql);
    stream.xid = queries[i].xid;
    stream.chunk_quota = kChunkQuota;
    stream.output = queue;
    stream.silence_timeout_us = session.silence_timeout_us;
    StreamTransaction transaction = queries[i].transaction;
    if (transaction.pin == 0 && session.transaction != nullptr)
      transaction = session.transaction(queries[i].server);
    if (transaction.pin != 0) {
      stream.pin = transaction.pin;
      stream.begin_sql = arena->CopyString(transaction.begin_sql);
    }
  }
  return group;
}

struct SliceGuard {
  const Slice& slice;
  ~SliceGuard() { ReleaseSlice(slice); }
};

}  // namespace

// The DataRow messages of a slice, each 'D', length, column count, then length and bytes a column.
// The io worker checked that messages are whole; what is inside them is checked here.
void AppendRemoteRows(const char* data, size_t size_bytes, std::vector<RemoteRow>* rows) {
  const char* at = data;
  const char* end = data + size_bytes;
  auto need = [&](const char* limit, size_t bytes) {
    if (static_cast<size_t>(limit - at) < bytes)
      Throw(sqlstate::kProtocolViolation, "malformed DataRow message from a server");
  };
  while (at < end) {
    need(end, 7);
    const char* message_end = at + 1 + LoadBig<uint32_t>(at + 1);
    if (*at != 'D' || message_end > end || message_end < at + 7)
      Throw(sqlstate::kProtocolViolation, "malformed DataRow message from a server");
    int columns = LoadBig<uint16_t>(at + 5);
    at += 7;
    RemoteRow& row = rows->emplace_back();
    for (int i = 0; i < columns; i++) {
      need(message_end, 4);
      int32_t length = LoadBig<int32_t>(at);
      at += 4;
      if (length < 0) {
        row.emplace_back(std::nullopt);
        continue;
      }
      need(message_end, static_cast<size_t>(length));
      row.emplace_back(std::string(at, static_cast<size_t>(length)));
      at += length;
    }
    at = message_end;
  }
}

std::vector<Result<RemoteRows>> TryRemoteQueries(const Catalog& catalog,
                                                 const RemoteSession& session,
                                                 std::span<const RemoteQuery> queries) {
  std::vector<Result<RemoteRows>> results(queries.size(), RemoteRows{});
  if (queries.empty()) return results;
  SharedBlocks blocks;
  Arena arena(blocks, kExtentBytes);
  StreamGroup* group = MakeGroup(catalog, session, queries, &arena);
  OpenGroup open(group);
  ChunkConsumer consumer(group->streams[0].output, 0);
  Slice slice;
  while (consumer.ClaimOrWait(&slice, WaitEvent::kAppendReady)) {
    SliceGuard guard{slice};
    if (slice.kind == SliceKind::kDataRows || slice.kind == SliceKind::kOversized)
      AppendRemoteRows(slice.data, slice.size_bytes, &results[slice.stream]->rows);
  }
  for (size_t i = 0; i < queries.size(); i++) {
    const Stream& stream = group->streams[i];
    StreamState state = stream.state.load(std::memory_order_acquire);
    if (state == StreamState::kFailed) {
      results[i] = stream.error.Load();
    } else if (state != StreamState::kEnded) {
      results[i] = MakeError(sqlstate::kQueryCanceled, "canceling statement due to user request");
    } else {
      results[i]->command_tag = stream.command_tag;
      results[i]->xid = stream.xid;
    }
  }
  return results;
}

std::vector<RemoteRows> RunRemoteQueries(const Catalog& catalog, const RemoteSession& session,
                                         std::span<const RemoteQuery> queries) {
  std::vector<RemoteRows> rows;
  for (Result<RemoteRows>& result : TryRemoteQueries(catalog, session, queries))
    rows.push_back(std::move(result).OrThrow());
  return rows;
}

}  // namespace sluice
