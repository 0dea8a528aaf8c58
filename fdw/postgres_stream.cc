#include "fdw/postgres_stream.h"

#include "common/assert.h"
#include "fdw/pool.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

constexpr std::string_view kBegin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ";
// So much may wait to be sent before more input is taken.
constexpr size_t kUnsentBytesMax = 256 * 1024;

bool StartsWithWord(std::string_view sql, std::string_view word) {
  size_t at = sql.find_first_not_of(" \t\r\n(");
  if (at == std::string_view::npos || sql.size() - at <= word.size()) return false;
  for (size_t i = 0; i < word.size(); i++) {
    if (std::toupper(static_cast<unsigned char>(sql[at + i])) != word[i]) return false;
  }
  return std::isalnum(static_cast<unsigned char>(sql[at + word.size()])) == 0;
}

SliceKind SliceKindOf(StreamKind kind) {
  return kind == StreamKind::kQuery ? SliceKind::kDataRows : SliceKind::kCopyData;
}

}  // namespace

PostgresStream::PostgresStream(Worker* worker, Group* group, Stream* stream, Pool* pool)
    : StreamTask(worker, group, stream), pool_(pool), setup_(stream->connection->session_setup) {}

PostgresStream::~PostgresStream() {
  SLUICE_ASSERT(connection_ == nullptr);
}

char PostgresStream::row_type() const {
  switch (stream()->kind) {
    case StreamKind::kQuery:
      return 'D';
    case StreamKind::kCopyOut:
    case StreamKind::kReplication:
      return 'd';
    default:
      return 0;
  }
}

void PostgresStream::Start() {
  stream()->state.store(StreamState::kConnecting, std::memory_order_relaxed);
  if (stream()->pin == 0) {
    snapshot_ = group()->SnapshotFor(*stream());
    if (snapshot_ != nullptr) {
      exporter_ = !std::exchange(snapshot_->exporter_chosen, true);
      importer_ = !exporter_;
      if (importer_) snapshot_->importers++;
    }
    return pool_->Acquire(setup_)->Run(this);
  }
  StartPinned();
}

void PostgresStream::StartPinned() {
  Connection* connection = worker_->pools->Pinned(stream()->pin, pool_);
  if (connection == nullptr) {
    if (worker_->pools->HasLost(stream()->pin, pool_)) {
      return Fail(MakeError(sqlstate::kConnectionFailure, "connection to server \"{}\" was lost",
                            pool_->server_name())
                      .Detail("What the transaction did there was rolled back."));
    }
    connection = retried_ ? pool_->Open() : pool_->Acquire(setup_);
    worker_->pools->Pin(stream()->pin, connection);
  }
  // In a transaction of its own the snapshot of each statement is taken when its turn comes, which
  // nobody should wait for.
  if (connection->busy()) PassGate();
  connection->Run(this);
}

void PostgresStream::Resume() {
  if (ended()) return;
  if (writer_ && !writer_->FlushBacklog()) WaitForLatch();
  if (finished_) return TryEnd();
  if (connection_ == nullptr) return;
  if (copying_) TakeInput();
  if (connection_ != nullptr) connection_->Resume();
}

void PostgresStream::Detach() {
  if (ended()) return;
  if (finished_) {  // only its backlog is left
    writer_->Abandon();
    return End(StreamState::kCancelled);
  }
  if (connection_ == nullptr) return;
  if (copying_) {
    copying_ = false;
    connection_->request().CopyFail("canceled");
    connection_->Send();
  }
  connection_->Detach(this);
}

void PostgresStream::GiveUp(const Error& error) {
  if (connection_ == nullptr) return;
  SetOwnError(error);
  connection_->Detach(this);
}

// --- sending ---

void PostgresStream::OnReady() {
  if (importer_ && snapshot_->id.empty()) {
    if (snapshot_->error) return connection_->FailStream(*snapshot_->error);
    snapshot_->waiting.push_back(this);
    return;
  }
  SendRequest();
}

void PostgresStream::SendRequest() {
  sent_ = true;
  stream()->state.store(StreamState::kRunning, std::memory_order_relaxed);
  if (row_type() != 0 && !writer_) writer_.emplace(stream(), SliceKindOf(stream()->kind));
  if (group()->validates() && HasOwnTransaction()) return SendSnapshot(false);
  if (HasOwnTransaction()) SendPrelude();
  SendMain();
}

// The snapshot alone: the statement follows when the group has seen that all its snapshots belong
// together. `again`: the one before did not.
void PostgresStream::SendSnapshot(bool again) {
  connection_->request().Query(fmt::format("{}{}SELECT pg_catalog.txid_current_snapshot()",
                                           again ? "ROLLBACK; " : "", kBegin));
  connection_->PushStep(StepKind::kExport);
  connection_->Send();
}

void PostgresStream::Proceed() {
  PassGate();
  if (connection_ != nullptr) SendMain();
}

void PostgresStream::RetakeSnapshot() {
  if (connection_ != nullptr) SendSnapshot(true);
}

void PostgresStream::SendMain() {
  bool own_transaction = HasOwnTransaction();
  if (!stream()->begin_sql.empty() && !connection_->in_transaction()) {
    connection_->request().Query(stream()->begin_sql);
    connection_->PushStep(StepKind::kPrelude);
  }
  if (group()->shared()->gate == StreamGate::kPrepare) {
    connection_->request().Query("SELECT pg_catalog.txid_current()");
    connection_->PushStep(StepKind::kExport);
  }
  switch (stream()->kind) {
    case StreamKind::kQuery:
      SendQuery();
      break;
    case StreamKind::kDescribe:
      SendDescribe();
      break;
    default:
      connection_->request().Query(stream()->sql);
      break;
  }
  connection_->PushStep(StepKind::kMain);
  // The exporter's transaction has to stay open: its connection ends it when all others have
  // imported.
  if (own_transaction && !exporter_ && stream()->kind != StreamKind::kQuery) {
    connection_->request().Query("COMMIT");
    connection_->PushStep(StepKind::kHousekeeping);
  }
  connection_->Send();
}

bool PostgresStream::HasOwnTransaction() const {
  if (stream()->pin != 0 || row_type() == 0 || stream()->kind == StreamKind::kReplication)
    return false;
  return snapshot_ != nullptr || group()->shared()->snapshot_first;
}

// In the same send as the statement, so that it costs no round trip.
void PostgresStream::SendPrelude() {
  std::string sql(kBegin);
  if (exporter_) {
    sql += "SELECT pg_catalog.pg_export_snapshot()";
  } else if (importer_) {
    sql += "SET TRANSACTION SNAPSHOT '" + snapshot_->id + "'";
  } else {
    sql += "SELECT 1";
  }
  connection_->request().Query(sql);
  connection_->PushStep(exporter_ ? StepKind::kExport : StepKind::kPrelude);
}

void PostgresStream::SendQuery() {
  StatementCache& cache = connection_->statements();
  RequestWriter request = connection_->request();
  named_ = stream()->prepare;
  parse_sent_ = true;
  statement_name_.clear();
  if (named_) {
    statement_key_ = StatementCache::KeyOf(stream()->sql, stream()->params);
    const std::string* name = cache.Find(statement_key_);
    parse_sent_ = name == nullptr;
    statement_name_ = name != nullptr ? *name : cache.NewName();
  }
  for (const std::string& unused : std::exchange(cache.to_close, {}))
    request.CloseStatement(unused);
  if (parse_sent_) request.Parse(statement_name_, stream()->sql, stream()->params);
  request.Bind(statement_name_, stream()->params, stream()->result_formats);
  // In the session's transaction a SELECT takes its snapshot at Bind, which is to be told at once.
  if (group()->shared()->gate == StreamGate::kSnapshot && stream()->pin != 0) request.Flush();
  request.Describe('P', "");
  request.Execute(stream()->row_limit);
  if (HasOwnTransaction() && !exporter_) {
    // Before the Sync, so that the connection is free with the statement's own ReadyForQuery. After
    // an error the shard skips it, and the connection rolls back.
    request.Parse("", "COMMIT", {});
    request.Bind("", {}, {});
    request.Execute(0);
  }
  request.Sync();
}

void PostgresStream::SendDescribe() {
  RequestWriter request = connection_->request();
  request.Parse("", stream()->sql, stream()->params);
  request.Describe('S', "");
  request.Sync();
}

// --- answers ---

void PostgresStream::OnSetupFailed(const RemoteError& error) {
  connection_ = nullptr;
  Fail(FromShard(error));
}

void PostgresStream::OnPreludeDone(const Step& step) {
  if (step.kind == StepKind::kExport && group()->shared()->gate == StreamGate::kPrepare) {
    // Without it readers only wait longer.
    stream()->xid = step.error ? 0 : std::strtoull(step.value.c_str(), nullptr, 10);
    return;
  }
  if (!step.error && step.kind == StepKind::kExport && !exporter_)
    return group()->OnSnapshot(stream()->index, step.value);
  if (!step.error && HasOwnTransaction()) PassGate();
  if (exporter_ && !step.error) {
    snapshot_->id = step.value;
    if (snapshot_->importers > 0) {
      snapshot_->exporter = connection_;
      connection_->Hold(snapshot_);
    }
    for (PostgresStream* waiting : std::exchange(snapshot_->waiting, {})) waiting->SendRequest();
  }
  // The statement is on its way already, but what it answers is not what was asked.
  std::optional<Error> failed;
  if (step.error) failed = ExporterError();
  if (step.error && !failed) failed = FromShard(*step.error);
  if (importer_) LeaveSnapshot(nullptr);
  if (failed) connection_->FailStream(*failed);
}

// Where the exporter's statement failed or its connection was lost, that is the reason, not the
// snapshot's name that means nothing any more.
std::optional<Error> PostgresStream::ExporterError() const {
  if (snapshot_ == nullptr || exporter_) return std::nullopt;
  if (snapshot_->error) return snapshot_->error;
  const RemoteError* said =
      snapshot_->exporter == nullptr ? nullptr : snapshot_->exporter->answered_error();
  if (said == nullptr) return std::nullopt;
  Error error = said->error;
  error.context += fmt::format("{}remote SQL command on server \"{}\"",
                               error.context.empty() ? "" : "\n", pool_->server_name());
  return error;
}

// Gives up the part in the shared snapshot, because it is over or not needed any more.
void PostgresStream::LeaveSnapshot(const Error* error) {
  if (snapshot_ == nullptr) return;
  SharedSnapshot* snapshot = snapshot_;
  if (importer_) {
    importer_ = false;
    std::erase(snapshot->waiting, this);
    snapshot->importers--;
    if (snapshot->importers == 0 && snapshot->exporter != nullptr) {
      std::exchange(snapshot->exporter, nullptr)->ReleaseHold();
    }
  } else if (exporter_ && snapshot->id.empty() && !snapshot->error) {
    snapshot->error = error != nullptr ? *error
                                       : MakeError(sqlstate::kQueryCanceled,
                                                   "canceling statement due to user request");
    // Their connections have no step under way, so this ends them at once.
    for (PostgresStream* waiting : std::exchange(snapshot->waiting, {})) {
      waiting->connection_->FailStream(*snapshot->error);
    }
  } else if (exporter_ && error != nullptr && !snapshot->error) {
    snapshot->error = *error;  // for those that have not imported it yet
  }
}

bool PostgresStream::OnMessage(char type, std::string_view body) {
  StreamKind kind = stream()->kind;
  if (executed_ && HasOwnTransaction())
    return type == '1' || type == '2' || type == 'C';  // COMMIT's
  switch (type) {
    case '1':  // ParseComplete
      if (named_ && parse_sent_) {
        std::optional<std::string> unused =
            connection_->statements().Insert(statement_key_, statement_name_);
        if (unused) connection_->statements().to_close.push_back(std::move(*unused));
      }
      return true;
    case '2':
      if (stream()->pin != 0) PassGate();
      return true;
    case '3':
    case 'c':
    case 'D':
    case 'd':
      // Rows come here only where nobody wants them.
      return type != row_type();
    case 'I':
    case 's':  // PortalSuspended: the row limit is reached
      executed_ = true;
      return true;
    case 't':
    case 'n':
      if (kind == StreamKind::kDescribe) AppendDescription(type, body);
      return true;
    case 'T': {
      if (kind == StreamKind::kDescribe) AppendDescription(type, body);
      std::optional<uint32_t> columns = ReadRowDescription(body, stream()->column_types);
      if (!columns) return false;
      stream()->column_count = *columns;
      return true;
    }
    case 'C': {
      executed_ = true;
      std::string_view tag = body.substr(0, body.find('\0'));
      size_t size = std::min(tag.size(), sizeof stream()->command_tag - 1);
      std::memcpy(stream()->command_tag, tag.data(), size);
      stream()->command_tag[size] = 0;
      return true;
    }
    case 'G':  // CopyInResponse
      if (kind == StreamKind::kCopyIn) {
        copying_ = true;
        TakeInput();
      } else {
        connection_->request().CopyFail("COPY FROM STDIN has no rows here");
        connection_->Send();
      }
      return kind != StreamKind::kQuery;
    case 'W':  // CopyBothResponse
      if (kind != StreamKind::kReplication) return false;
      replication_.emplace(worker_, connection_, stream());
      return true;
    case 'H':
      return kind == StreamKind::kCopyOut || kind == StreamKind::kSimple;
    default:
      return false;
  }
}

bool PostgresStream::SendAgain(const Step& step) {
  if (!step.error || !named_ || parse_sent_ || own_error_) return false;
  SqlState state = step.error->error.state;
  bool stale =
      state == sqlstate::kInvalidSqlStatementName ||
      (state == sqlstate::kFeatureNotSupported && step.error->routine == "RevalidateCachedQuery");
  if (!stale) return false;
  connection_->statements().Erase(statement_key_);
  if (state != sqlstate::kInvalidSqlStatementName) {
    connection_->statements().to_close.push_back(statement_name_);
  }
  // A transaction cannot go on after the error.
  if (connection_->in_transaction() || HasOwnTransaction()) return false;
  SendQuery();
  connection_->PushStep(StepKind::kMain);
  connection_->Send();
  return true;
}

void PostgresStream::OnMainDone(const Step& step, std::string* rest) {
  Connection* connection = std::exchange(connection_, nullptr);
  copying_ = false;
  replication_.reset();
  if (writer_) writer_->Finish(rest);
  std::optional<Error> error = own_error_;
  if (!error && step.error) error = FromShard(*step.error);
  if (!error && stream()->kind == StreamKind::kDescribe) error = PublishDescription();
  if (!error && stream()->lease != nullptr) connection->LendAfter(TakeLease());
  LeaveSnapshot(error ? &*error : nullptr);
  finished_ = true;
  own_error_ = error;
  TryEnd();
}

// Its rows come before its end.
void PostgresStream::TryEnd() {
  if (writer_ && !writer_->FlushBacklog()) return WaitForLatch();
  if (own_error_) return End(StreamState::kFailed, &*own_error_);
  End(StreamState::kEnded);
}

void PostgresStream::OnDetached(std::string* rest) {
  connection_ = nullptr;
  replication_.reset();
  if (writer_) writer_->Abandon(rest);
  LeaveSnapshot(own_error_ ? &*own_error_ : nullptr);
  if (own_error_) return End(StreamState::kFailed, &*own_error_);
  End(StreamState::kCancelled);
}

void PostgresStream::OnConnectionLost(const Error& error) {
  bool unused = connection_->died_unused();
  // A transaction that had not begun yet is begun on another connection: nothing of it is
  // committed.
  bool begins = !stream()->begin_sql.empty() && !connection_->in_transaction();
  connection_ = nullptr;
  copying_ = false;
  replication_.reset();
  if (writer_) writer_->Abandon();
  // An idle connection may have been dead for long: that is no reason to fail. But a statement that
  // may have run must not run twice.
  bool safe = stream()->pin == 0 ? !sent_ || SafeToRepeat() : begins;
  if (unused && safe && !retried_ && !own_error_) {
    retried_ = true;
    sent_ = false;
    if (stream()->pin == 0) return pool_->Open()->Run(this);
    worker_->pools->ForgetLost(stream()->pin, pool_);
    return StartPinned();
  }
  Fail(own_error_ ? *own_error_ : error);
}

bool PostgresStream::SafeToRepeat() const {
  switch (stream()->kind) {
    case StreamKind::kQuery:
      return StartsWithWord(stream()->sql, "SELECT");
    case StreamKind::kCopyOut:
      return StartsWithWord(stream()->sql, "COPY");
    case StreamKind::kDescribe:
      return true;
    default:
      return false;
  }
}

void PostgresStream::Fail(const Error& error) {
  LeaveSnapshot(&error);
  End(StreamState::kFailed, &error);
}

Error PostgresStream::FromShard(const RemoteError& remote) const {
  Error error = remote.error;
  if (!error.context.empty()) error.context += "\n";
  error.context +=
      fmt::format("remote SQL command on server \"{}\": {}", pool_->server_name(), stream()->sql);
  return error;
}

void PostgresStream::AppendDescription(char type, std::string_view body) {
  char header[kMessageHeaderBytes] = {type};
  StoreBig<uint32_t>(header + 1, static_cast<uint32_t>(body.size() + 4));
  description_.append(header, sizeof header);
  description_.append(body);
}

std::optional<Error> PostgresStream::PublishDescription() {
  writer_.emplace(stream(), SliceKind::kDescription);
  // The stream has used none of its quota so far.
  SLUICE_ASSERT(writer_->Ready());
  if (description_.size() > writer_->room_bytes()) {
    writer_->Abandon();
    return MakeError(sqlstate::kProgramLimitExceeded,
                     "description of {} bytes does not fit into a chunk", description_.size());
  }
  std::memcpy(writer_->room(), description_.data(), description_.size());
  writer_->Received(description_.size());
  writer_->AddRows(description_.size(), 1);
  writer_->Finish();
  return std::nullopt;
}

// --- kCopyIn ---

void PostgresStream::TakeInput() {
  if (!copying_ || connection_ == nullptr) return;
  if (!input_) input_.emplace(stream()->input, 0);
  if (std::exchange(input_waits_, false)) input_->EndWait();
  while (connection_->unsent_bytes() < kUnsentBytesMax) {
    Slice slice;
    Claim claim = input_->TryClaim(&slice);
    if (claim == Claim::kEmpty) {
      input_->PrepareToWait();
      claim = input_->TryClaim(&slice);
      if (claim == Claim::kEmpty) {
        input_waits_ = true;
        WaitForLatch();
        break;
      }
      input_->CancelWait();
    }
    if (claim == Claim::kDone || slice.kind == SliceKind::kEnd) {
      copying_ = false;
      connection_->request().CopyDone();
      break;
    }
    if (slice.size_bytes > 0) {
      connection_->request().CopyData(std::string_view(slice.data, slice.size_bytes));
    }
    ReleaseSlice(slice);
  }
  connection_->Send();
}

}  // namespace sluice
