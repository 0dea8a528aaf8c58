// A stream that a Postgres connection serves: what it sends, and what the answers mean for it.
#pragma once

#include <optional>
#include <string>

#include "fdw/chunk_writer.h"
#include "fdw/connection.h"
#include "fdw/group.h"
#include "fdw/replication_status.h"
#include "fdw/stream_task.h"

namespace sluice {

class PostgresStream final : public StreamTask {
 public:
  PostgresStream(Worker* worker, Group* group, Stream* stream, Pool* pool);
  ~PostgresStream() override;

  void Start() override;
  void Resume() override;
  void Detach() override;

  // --- called by its connection ---
  // The connection is set up: send the statement (or wait for a snapshot to import, and send it
  // later).
  void OnReady();
  void OnSetupFailed(const RemoteError& error);
  void OnPreludeDone(const Step& step);
  // A message of the stream's own step, but for rows and ReadyForQuery. False: it has no place
  // here.
  bool OnMessage(char type, std::string_view body);
  // The step ended with an error that sending the statement once more may cure, and it was sent.
  bool SendAgain(const Step& step);
  // The stream is over, and the connection has let go of it. `rest` gets the bytes behind its own.
  void OnMainDone(const Step& step, std::string* rest);
  void OnDetached(std::string* rest);
  void OnConnectionLost(const Error& error);
  void OnSent() { TakeInput(); }
  void WaitForRoom() { WaitForLatch(); }

  ChunkWriter* writer() { return writer_ ? &*writer_ : nullptr; }
  // The type of the messages that are its rows; 0: rows are of no interest.
  char row_type() const;
  // It is to end with this error, found here and not by the shard.
  void SetOwnError(const Error& error) { own_error_ = error; }
  // Whether the shard may know of it.
  bool sent() const { return sent_; }
  bool waits_for_input() const { return copying_; }
  std::string_view setup() const { return setup_; }
  void SetConnection(Connection* connection) { connection_ = connection; }

 private:
  void GiveUp(const Error& error) override;
  void Proceed() override;
  void RetakeSnapshot() override;
  // Whether it reads in a transaction opened for it alone, under a snapshot.
  bool HasOwnTransaction() const;
  void StartPinned();
  void SendRequest();
  void SendSnapshot(bool again);
  void SendMain();
  void SendPrelude();
  void SendQuery();
  void SendDescribe();
  void LeaveSnapshot(const Error* error);
  std::optional<Error> ExporterError() const;
  void Fail(const Error& error);
  void TryEnd();
  void AppendDescription(char type, std::string_view body);
  std::optional<Error> PublishDescription();
  void TakeInput();
  bool SafeToRepeat() const;
  Error FromShard(const RemoteError& remote) const;

  Pool* const pool_;
  const std::string_view setup_;
  Connection* connection_ = nullptr;  // null: not started, or over
  std::optional<ChunkWriter> writer_;
  SharedSnapshot* snapshot_ = nullptr;
  bool exporter_ = false;
  bool importer_ = false;  // counted in snapshot_->importers
  bool sent_ = false;
  bool executed_ = false;    // its CommandComplete came
  bool finished_ = false;    // over for the connection; rows may wait in the backlog
  bool retried_ = false;     // on a fresh connection
  bool named_ = false;       // executes a named statement …
  bool parse_sent_ = false;  // … which this request prepares
  std::string statement_key_, statement_name_;
  std::string description_;         // kDescribe
  std::optional<Error> own_error_;  // found here, not by the shard

  std::optional<ReplicationStatus> replication_;  // kReplication, once the shard sends

  // kCopyIn
  std::optional<ChunkConsumer> input_;
  bool input_waits_ = false;
  bool copying_ = false;  // the shard asks for rows
};

}  // namespace sluice
