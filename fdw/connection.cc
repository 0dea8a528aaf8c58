// Running streams on a connection: steps, receiving, parsing. Connecting is in
// connection_connect.cc, cancelling and ending in connection_end.cc.
#include "fdw/connection.h"

#include "common/assert.h"
#include "fdw/pool.h"
#include "fdw/postgres_stream.h"
#include "shm/lease.h"
#include "shm/query_arena.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

constexpr size_t kScratchBytes = 16 * 1024;
// No honest message but a row or a COPY row comes near this.
constexpr size_t kOtherMessageBytesMax = 64 << 20;

// What may come in answer to our own requests, whether a stream still wants it or not.
bool IsAnswer(char type) {
  return std::string_view("123CDdcGHIKnsTtW").find(type) != std::string_view::npos;
}

}  // namespace

Connection::Connection(Worker* worker, Pool* pool, uint32_t generation)
    : worker_(worker),
      pool_(pool),
      generation_(generation),
      connect_poll_([](void* self, int) { static_cast<Connection*>(self)->OnConnectPoll(); }, this),
      connect_timer_(
          &worker->timers, [](void* self) { static_cast<Connection*>(self)->OnConnectTimer(); },
          this),
      socket_(worker->ring.get(), this),
      statements_(worker->config.prepared_statements_max),
      silence_timer_(
          &worker->timers, [](void* self) { static_cast<Connection*>(self)->OnSilence(); }, this),
      cancel_timer_(
          &worker->timers, [](void* self) { static_cast<Connection*>(self)->OnCancelTimer(); },
          this) {
  shared_memory->shards_connections.fetch_add(1, std::memory_order_relaxed);
}

Connection::~Connection() {
  SLUICE_ASSERT(dead());
  DropAssembly();
  // The socket was shut down, so the Terminate that PQfinish sends cannot block.
  if (libpq_ != nullptr) PQfinish(libpq_);
  CloseTrace();
  shared_memory->shards_connections.fetch_sub(1, std::memory_order_relaxed);
}

void Connection::Run(PostgresStream* stream) {
  stream->SetConnection(this);
  if (stream_ != nullptr || !steps_.empty()) {
    SLUICE_ASSERT(pin_ != 0);
    queue_.push_back(stream);
    return Pump();  // the one before it may be held back, and must not keep this one waiting now
  }
  stream_ = stream;
  begun_ = false;
  idle_ = false;
  received_bytes_ = 0;
  answered_ = only_farewell_ = false;
  last_received_us_ = worker_->now_us;
  int64_t silence_us = stream->stream()->silence_timeout_us;
  if (silence_us > 0) silence_timer_.Arm(worker_->now_us + silence_us);
  if (state_ == State::kOpen) Begin();
}

void Connection::set_pin(uint64_t pin) {
  HidePin();
  pin_ = pin;
}

void Connection::HidePin() {
  if (pin_shown_ != kPinnedConnectionsMax) HidePinned(pin_shown_);
  pin_shown_ = kPinnedConnectionsMax;
}

// Once it is known who serves it there.
void Connection::ShowPin() {
  uint64_t pin = lent_to_ != nullptr ? kLentTo | lent_to_->backend : pin_;
  if (pin == 0 || backend_pid_ == 0 || transaction_table == nullptr) return;
  if (pin_shown_ == kPinnedConnectionsMax)
    pin_shown_ = ShowPinned(pin, pool_->instance(), backend_pid_);
}

void Connection::Begin() {
  SLUICE_ASSERT(stream_ != nullptr && steps_.empty() && !begun_);
  begun_ = true;
  ShowPin();
  bool applied = applied_setup_ && *applied_setup_ == stream_->setup() && !setup_in_transaction_;
  // In an aborted transaction no setting can be made, and nothing but its end asked for.
  if (!applied && transaction_status_ != 'E') {
    SendSetup(stream_->setup());
  } else {
    stream_->OnReady();
  }
}

std::string Connection::BaseSettings() const {
  std::string sql =
      "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; "
      "SET extra_float_digits = 3";
  int version = libpq_ != nullptr ? PQserverVersion(libpq_) : 0;
  // So that a statement ends soon even if this process is killed.
  if (version >= 140000) {
    sql += "; SET client_connection_check_interval = '2s'; SET idle_session_timeout = 0";
  }
  if (version >= 170000) sql += "; SET transaction_timeout = 0";
  return sql;
}

// Settings of one session must not be seen by the next: all are put back first, and what pooled
// connections need is set again. In a transaction (a pin's) nothing can be put back, only set.
void Connection::SendSetup(std::string_view session_setup) {
  if (!in_transaction()) {
    request().Query((applied_setup_ ? "RESET ROLE; RESET ALL; " : "") + BaseSettings());
    PushStep(StepKind::kSetup);
  }
  setup_in_transaction_ = in_transaction();
  applied_setup_.reset();
  pending_setup_ = session_setup;
  if (!session_setup.empty()) {
    request().Query(session_setup);
    PushStep(StepKind::kSetup);
  }
  if (steps_.empty()) return FinishSetup({StepKind::kSetup, std::nullopt, {}});
  Send();
}

void Connection::FinishSetup(Step step) {
  if (step.error && !setup_error_) setup_error_ = std::move(step.error);
  if (!steps_.empty()) return;  // the second part is still to come
  std::optional<RemoteError> error = std::exchange(setup_error_, std::nullopt);
  if (!error) applied_setup_ = pending_setup_;
  if (stream_ == nullptr) return;
  if (!error) return stream_->OnReady();
  LetStreamGo()->OnSetupFailed(*error);
}

PostgresStream* Connection::LetStreamGo() {
  silence_timer_.Disarm();
  detaching_ = false;
  return std::exchange(stream_, nullptr);
}

void Connection::Send() {
  if (state_ != State::kOpen) return;
  socket_.Flush();
  Pump();
}

bool Connection::UsesChunk() const {
  return stream_ != nullptr && stream_->sent() && stream_->writer() != nullptr;
}

void Connection::Pump() {
  auto nothing_to_do = [this] {
    return state_ != State::kOpen || parsing_ || socket_.receiving() || steps_.empty();
  };
  if (nothing_to_do()) return;
  if (assembly_.active() && assembly_.whole() && (!FinishAssembly() || nothing_to_do())) return;
  if (assembly_.active()) {
    into_ = Into::kAssembly;
    socket_.Receive(assembly_.at() + assembly_.filled_bytes,
                    assembly_.header.total_bytes - assembly_.filled_bytes);
  } else if (UsesChunk()) {
    ChunkWriter* writer = stream_->writer();
    // A held-back stream must not keep a session's other streams from the one connection that they
    // share: the consumer may want those first.
    if (!writer->Ready(!queue_.empty())) return stream_->WaitForRoom();
    if (writer->backlog_bytes() > 0) stream_->WaitForRoom();
    if (writer->backlog_bytes() > worker_->config.backlog_bytes_max) {
      Error error =
          MakeError(sqlstate::kOutOfMemory, "too many rows wait for others of one transaction");
      error.detail =
          fmt::format("Streams from server \"{}\" share a connection.", pool_->server_name());
      return FailStream(error);
    }
    into_ = Into::kChunk;
    socket_.Receive(writer->room(), writer->room_bytes());
  } else {
    if (scratch_.size() < scratch_end_ + kScratchBytes / 2)
      scratch_.resize(scratch_end_ + kScratchBytes);
    into_ = Into::kScratch;
    socket_.Receive(scratch_.data() + scratch_end_, scratch_.size() - scratch_end_);
  }
}

void Connection::OnReceived(int result) {
  last_received_us_ = worker_->now_us;
  if (result > 0) {
    received_bytes_ += static_cast<size_t>(result);
    switch (into_) {
      case Into::kAssembly:
        assembly_.filled_bytes += static_cast<size_t>(result);
        break;
      case Into::kChunk:
        stream_->writer()->Received(static_cast<size_t>(result));
        break;
      case Into::kScratch:
        scratch_end_ += static_cast<size_t>(result);
        break;
    }
  }
  if (detaching_) CompleteDetach();
  if (abort_error_) return Lost(*std::exchange(abort_error_, std::nullopt));
  if (result <= 0 && result != -ECANCELED) return Lost(EndOfConnection(result));
  Parse();
  Pump();
}

void Connection::OnSent(int result) {
  if (state_ != State::kOpen) return;
  if (result < 0) {
    // What the shard said before it closed is still to be read; the end of file follows it.
    if (!socket_.receiving()) return Lost(EndOfConnection(result));
    return socket_.Shutdown();
  }
  if (stream_ != nullptr && !detaching_) stream_->OnSent();
}

void Connection::Parse() {
  if (assembly_.active()) return;
  parsing_ = true;
  if (UsesChunk()) ParseChunk();
  if (state_ == State::kOpen && !UsesChunk()) ParseScratch();
  parsing_ = false;
  if (state_ == State::kOpen && steps_.empty()) BecomeFree();
}

void Connection::ParseChunk() {
  ChunkWriter* writer = stream_->writer();
  while (UsesChunk()) {
    if (steps_.front().kind == StepKind::kMain) {
      uint32_t rows = 0;
      size_t bytes =
          WalkMessages(writer->unparsed(), writer->unparsed_bytes(), stream_->row_type(), &rows);
      writer->AddRows(bytes, rows);
    }
    MessageHeader header;
    HeaderState state = ReadHeader(writer->unparsed(), writer->unparsed_bytes(), &header);
    if (state == HeaderState::kMalformed) return Malformed("a message of impossible length");
    if (state == HeaderState::kIncomplete) break;
    size_t here = writer->unparsed_bytes();
    if (header.total_bytes > here) {
      if (header.total_bytes > writer->chunk_bytes()) {
        BeginAssembly(header, std::string_view(writer->unparsed(), here));
        return;
      }
      // It would not fit behind what is here: no use in filling the rest of this chunk.
      if (header.total_bytes > here + writer->room_bytes()) writer->Leave();
      break;
    }
    std::string_view body(writer->unparsed() + kMessageHeaderBytes,
                          header.total_bytes - kMessageHeaderBytes);
    if (header.type == 'Z') {
      // Out first: after it the rest of the bytes is the next step's.
      char status = body.empty() ? 0 : body[0];
      writer->Remove(header.total_bytes);
      if (!HandleReady(status)) return;
      continue;
    }
    if (!Handle(header.type, body)) return;
    if (UsesChunk()) writer->Remove(header.total_bytes);
  }
  if (!UsesChunk()) return;
  // Changes may be followed by nothing for long: they must not lie here because their consumer was
  // busy when they came.
  if (stream_->stream()->kind == StreamKind::kReplication) return writer->Publish();
  writer->PublishIfAwaited();
}

void Connection::ParseScratch() {
  while (state_ == State::kOpen && !UsesChunk()) {
    if (skip_bytes_ > 0) {
      size_t skipped = std::min<uint64_t>(skip_bytes_, scratch_end_ - scratch_begin_);
      scratch_begin_ += skipped;
      skip_bytes_ -= skipped;
      if (skip_bytes_ > 0) break;
    }
    size_t here = scratch_end_ - scratch_begin_;
    const char* at = scratch_.data() + scratch_begin_;
    MessageHeader header;
    HeaderState state = ReadHeader(at, here, &header);
    if (state == HeaderState::kMalformed) return Malformed("a message of impossible length");
    if (state == HeaderState::kIncomplete) break;
    bool row = header.type == 'D' || header.type == 'd';
    bool wanted = !steps_.empty() && steps_.front().kind == StepKind::kExport;
    if (row && !wanted) {
      skip_bytes_ = header.total_bytes;
      continue;
    }
    if (header.total_bytes > here) {
      if (header.total_bytes > kOtherMessageBytesMax)
        return Malformed("a message of excessive length");
      if (scratch_.size() < scratch_begin_ + header.total_bytes) {
        scratch_.resize(scratch_begin_ + header.total_bytes);
      }
      break;
    }
    scratch_begin_ += header.total_bytes;
    std::string_view body(at + kMessageHeaderBytes, header.total_bytes - kMessageHeaderBytes);
    if (header.type == 'Z' ? !HandleReady(body.empty() ? 0 : body[0]) : !Handle(header.type, body))
      return;
  }
  if (scratch_begin_ == scratch_end_) {
    scratch_begin_ = scratch_end_ = 0;
    if (scratch_.size() > 4 * kScratchBytes) std::string().swap(scratch_);
  } else if (scratch_begin_ > kScratchBytes) {
    scratch_.erase(0, scratch_begin_);
    scratch_end_ -= scratch_begin_;
    scratch_begin_ = 0;
  }
}

void Connection::AppendScratch(std::string_view rest) {
  if (scratch_.size() < scratch_end_ + rest.size()) scratch_.resize(scratch_end_ + rest.size());
  std::memcpy(scratch_.data() + scratch_end_, rest.data(), rest.size());
  scratch_end_ += rest.size();
}

// A message that is larger than a chunk gets memory of its own, and the bytes that are here.
void Connection::BeginAssembly(const MessageHeader& header, std::string_view here) {
  ChunkWriter* writer = stream_->writer();
  bool row = steps_.front().kind == StepKind::kMain && header.type == stream_->row_type();
  if (!row && header.total_bytes > kOtherMessageBytesMax)
    return Malformed("a message of excessive length");
  assembly_.header = header;
  if (row) {
    try {
      assembly_.data = AllocateExtents(header.total_bytes);
    } catch (const QueryError& error) {
      assembly_ = {};
      return FailStream(error.error);
    }
  } else {
    assembly_.text.resize(header.total_bytes);
  }
  std::memcpy(assembly_.at(), here.data(), here.size());
  assembly_.filled_bytes = here.size();
  writer->Remove(here.size());
  writer->Finish();  // the rows before it go first, and the chunk is not needed meanwhile
}

// False: it waits for room in the quota, or the connection is gone.
bool Connection::FinishAssembly() {
  if (assembly_.data != nullptr) {
    if (!stream_->writer()->PublishOversized(assembly_.data, assembly_.header.total_bytes)) {
      stream_->WaitForRoom();
      return false;
    }
    assembly_ = {};
    return true;
  }
  Assembly message = std::exchange(assembly_, {});
  std::string_view body = std::string_view(message.text).substr(kMessageHeaderBytes);
  if (message.header.type == 'Z') return Malformed("an oversized ReadyForQuery"), false;
  return Handle(message.header.type, body);
}

void Connection::DropAssembly() {
  if (assembly_.data != nullptr) FreeExtents(assembly_.data, assembly_.header.total_bytes);
  assembly_ = {};
}

// Any message but ReadyForQuery. False: stop parsing, the connection is gone.
bool Connection::Handle(char type, std::string_view body) {
  if (type == 'E' || type == 'N') {
    std::optional<RemoteError> remote = ReadErrorResponse(body);
    if (!remote) return Malformed("an ErrorResponse that cannot be read"), false;
    if (type == 'N') {
      Log(LogLevel::kDebug, "server \"{}\": {}:  {}", pool_->server_name(), remote->severity,
          remote->error.message);
      return true;
    }
    if (remote->severity == "FATAL" || remote->severity == "PANIC") {
      fatal_ = remote;
      only_farewell_ = !answered_;
    }
    answered_ = true;
    if (!steps_.empty() && !steps_.front().error) steps_.front().error = std::move(remote);
    return true;
  }
  if (IsAsynchronous(type)) return true;
  answered_ = true;
  if (steps_.empty() || !IsAnswer(type)) {
    return Malformed(fmt::format("a message of type 0x{:02x}", static_cast<unsigned char>(type))),
           false;
  }
  Step& step = steps_.front();
  if (step.kind == StepKind::kMain && stream_ != nullptr) {
    if (!stream_->OnMessage(type, body)) return Malformed("a message out of place"), false;
    return state_ == State::kOpen;
  }
  if (type == 'G') {
    request().CopyFail("nobody has rows for this COPY any more");
    socket_.Flush();
  }
  if (type == 'W') return Malformed("a CopyBothResponse"), false;
  if (step.kind == StepKind::kExport && type == 'D') {
    std::optional<std::string> value = ReadFirstColumn(body);
    if (!value) return Malformed("a DataRow that cannot be read"), false;
    step.value = std::move(*value);
  }
  return true;
}

// ReadyForQuery: the front step is done. False as in Handle.
bool Connection::HandleReady(char transaction_status) {
  if (transaction_status != 'I' && transaction_status != 'T' && transaction_status != 'E') {
    return Malformed("a ReadyForQuery that cannot be read"), false;
  }
  if (steps_.empty()) return Malformed("a ReadyForQuery that was not asked for"), false;
  answered_ = true;
  transaction_status_ = transaction_status;
  if (setup_in_transaction_ && !in_transaction()) {
    setup_in_transaction_ = false;
    applied_setup_.reset();
  }
  Step step = std::move(steps_.front());
  steps_.pop_front();
  switch (step.kind) {
    case StepKind::kSetup:
      FinishSetup(std::move(step));
      break;
    case StepKind::kHousekeeping:
      if (step.error) return Lost(step.error->error), false;
      break;
    case StepKind::kPrelude:
    case StepKind::kExport:
      if (stream_ != nullptr) stream_->OnPreludeDone(step);
      break;
    case StepKind::kMain:
      if (stream_ != nullptr && !stream_->SendAgain(step)) {
        std::string rest;
        LetStreamGo()->OnMainDone(step, &rest);
        AppendScratch(rest);
      }
      break;
  }
  return state_ == State::kOpen;
}

// Nothing runs here any more.
void Connection::BecomeFree() {
  if (state_ != State::kOpen || parsing_ || idle_ || lent_to_ != nullptr || stream_ != nullptr ||
      !steps_.empty())
    return;
  if (scratch_begin_ != scratch_end_) return Malformed("bytes after its answer");
  if (cancelling() || hold_ != nullptr) return;  // called again when that has ended
  cancel_timer_.Disarm();
  if (cancel_lost_) {
    // A late cancel must not hit another statement than the one it was for.
    return Abort(MakeError(sqlstate::kConnectionFailure,
                           "a request to cancel at server \"{}\" was lost", pool_->server_name()));
  }
  reused_ = true;
  if (!queue_.empty()) {
    PostgresStream* next = queue_.front();
    queue_.pop_front();
    return Run(next);
  }
  if (pin_ != 0 && !unpin_wanted_) return;
  if (reset_wanted_ || in_transaction()) return SendReset();
  set_pin(0);
  unpin_wanted_ = false;
  if (close_when_free_) return Lost(Error{});
  if (lend_to_ != nullptr && Lend(lend_to_)) return;
  EndLease(&lend_to_);
  idle_ = true;
  idle_since_us_ = worker_->now_us;
  pool_->Return(this);
}

// Ends what transaction there is, and for a pin everything that its session may have left here.
void Connection::SendReset() {
  EndLease(&lend_to_);  // who waits for it to be lent should not wait for this
  auto send = [this](std::string_view sql) {
    request().Query(sql);
    PushStep(StepKind::kHousekeeping);
  };
  if (in_transaction()) send("ROLLBACK");
  if (std::exchange(reset_wanted_, false)) {
    send("DISCARD ALL");
    send(BaseSettings());
    statements_.Clear();
    applied_setup_ = "";
  }
  set_pin(0);
  unpin_wanted_ = false;
  Send();
}

}  // namespace sluice
