#include "executor/remote_end.h"

#include <charconv>

namespace sluice {
namespace {

// The row count in a command tag such as "SELECT 5"; nullopt where there is none.
std::optional<uint64_t> RowsOf(std::string_view tag, std::string_view command) {
  if (!tag.starts_with(command)) return std::nullopt;
  tag.remove_prefix(command.size());
  uint64_t rows = 0;
  auto [end, error] = std::from_chars(tag.data(), tag.data() + tag.size(), rows);
  if (error != std::errc() || end != tag.data() + tag.size()) return std::nullopt;
  return rows;
}

// The shard counted its rows, the io worker those that arrived.
void CheckRowCount(const Stream& stream) {
  bool copy = stream.kind == StreamKind::kCopyOut;
  if (stream.kind != StreamKind::kQuery && !copy) return;
  std::optional<uint64_t> sent = RowsOf(stream.command_tag, copy ? "COPY " : "SELECT ");
  uint64_t received = stream.rows.load(std::memory_order_relaxed);
  // A message a row; the binary format's trailer is one more (its header comes with the first).
  if (copy && !stream.result_formats.empty() && stream.result_formats[0] == 1) received--;
  if (!sent || *sent == received) return;
  Error error =
      MakeError(sqlstate::kInternalError, "server \"{}\" sent {} rows, but {} rows were received",
                stream.connection->server_name, *sent, received);
  throw QueryError(std::move(error));
}

}  // namespace

Error ErrorOf(const Stream& stream) {
  Error error = stream.error.Load();
  // It counts in the remote statement, which the client did not write; who asks what a shard says
  // of a statement (postmaster/completion.cc) knows how to move it.
  if (stream.kind != StreamKind::kDescribe) error.position = 0;
  // What the shard said about a statement has this already.
  if (error.context.find("remote SQL command on server") != std::string::npos) return error;
  if (!error.context.empty()) error.context += '\n';
  std::string_view server = stream.connection->server_name;
  error.context += stream.sql.empty()
                       ? fmt::format("reading from server \"{}\"", server)
                       : fmt::format("remote SQL command on server \"{}\": {}", server, stream.sql);
  return error;
}

void CheckStreamEnd(const Stream& stream) {
  switch (stream.state.load(std::memory_order_acquire)) {  // S1
    case StreamState::kEnded:
      return CheckRowCount(stream);
    case StreamState::kFailed:
      throw QueryError(ErrorOf(stream));
    case StreamState::kCancelled:
      Throw(sqlstate::kQueryCanceled, "canceling statement due to user request");
    case StreamState::kPending:
    case StreamState::kConnecting:
    case StreamState::kRunning:
      break;
  }
  Throw(sqlstate::kInternalError, "a stream of server \"{}\" ended without saying how",
        stream.connection->server_name);
}

}  // namespace sluice
