// Letting go of a stream early, cancelling at the shard, and the ends of a connection.
#include <cerrno>
#include <sys/socket.h>

#include "common/assert.h"
#include "fdw/connection.h"
#include "fdw/pool.h"
#include "fdw/postgres_stream.h"

namespace sluice {
namespace {

constexpr int64_t kCancelAgainUs = 500'000;

}  // namespace

void Connection::Detach(PostgresStream* stream) {
  if (stream != stream_) {  // not its turn yet
    std::erase(queue_, stream);
    return stream->OnDetached(nullptr);
  }
  if (!stream->sent()) {  // the shard knows nothing of it
    LetStreamGo()->OnDetached(nullptr);
    return BecomeFree();
  }
  if (detaching_) return;
  // In a session's transaction a cancel would abort the whole of it: there the rest is read and
  // dropped.
  if (pin_ == 0 || !in_transaction()) Cancel();
  if (socket_.receiving() && into_ != Into::kScratch) {
    detaching_ = true;  // goes on in OnReceived: the kernel may be writing into the chunk
    return socket_.CancelReceive();
  }
  CompleteDetach();
  // Between the snapshot and the statement that waits for those of other servers nothing is under
  // way: no answer will come that would free it, and its transaction would stay open.
  if (steps_.empty()) return BecomeFree();
  Pump();
}

void Connection::CompleteDetach() {
  PostgresStream* stream = LetStreamGo();
  if (assembly_.active()) {
    skip_bytes_ = assembly_.header.total_bytes - assembly_.filled_bytes;
    DropAssembly();
  }
  std::string rest;
  stream->OnDetached(&rest);
  AppendScratch(rest);
}

void Connection::FailStream(const Error& error) {
  stream_->SetOwnError(error);
  Detach(stream_);
}

void Connection::Cancel() {
  if (state_ != State::kOpen || steps_.empty()) return;
  cancel_deadline_us_ = worker_->now_us + worker_->config.cancel_timeout_us;
  SendCancel();
  // Again after a while: it may have come before the statement began, and only one step is hit at a
  // time.
  cancel_timer_.Arm(worker_->now_us + kCancelAgainUs);
}

void Connection::SendCancel() {
  if (cancelling() || backend_pid_ == 0) return;
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(socket_.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return;
  cancel_ = std::make_unique<CancelRequest>(worker_->ring.get(), address, size, backend_pid_,
                                            cancel_key_, [this] {
                                              cancel_lost_ |= cancel_->lost();
                                              BecomeFree();
                                            });
  if (!cancel_->Start()) cancel_.reset();
}

bool Connection::cancelling() const {
  return cancel_ != nullptr && !cancel_->finished();
}

void Connection::OnCancelTimer() {
  if (state_ != State::kOpen || (steps_.empty() && !cancelling())) return;
  if (worker_->now_us >= cancel_deadline_us_) {
    return Abort(MakeError(sqlstate::kConnectionFailure,
                           "server \"{}\" did not end a cancelled statement",
                           pool_->server_name()));
  }
  if (!steps_.empty()) SendCancel();
  cancel_timer_.Arm(worker_->now_us + kCancelAgainUs);
}

void Connection::OnSilence() {
  if (state_ != State::kOpen || stream_ == nullptr || detaching_) return;
  int64_t timeout_us = stream_->stream()->silence_timeout_us;
  bool expects = socket_.receiving() && !socket_.sending() && !stream_->waits_for_input();
  if (!expects) last_received_us_ = worker_->now_us;
  int64_t at_us = last_received_us_ + timeout_us;
  if (at_us > worker_->now_us) return silence_timer_.Arm(at_us);
  Error error =
      MakeError(sqlstate::kConnectionFailure, "server \"{}\" sends nothing", pool_->server_name());
  error.detail = fmt::format("Nothing came for {} ms.", timeout_us / 1000);
  Abort(std::move(error));
}

void Connection::ReleaseHold() {
  hold_ = nullptr;
  BecomeFree();
}

void Connection::Unpin(bool reset) {
  unpin_wanted_ = true;
  reset_wanted_ = reset;
  if (busy()) EndLease(&lend_to_);
  BecomeFree();
}

bool Connection::CheckIdle() {
  char bytes[4096];
  int got = socket_.TryReceive(bytes, sizeof bytes);
  if (got == -EAGAIN || got == -EINTR) return true;
  if (got <= 0) return false;
  // Notices and changed parameters may come at any time; anything else is a farewell.
  size_t at = 0, size = static_cast<size_t>(got);
  MessageHeader header;
  while (at < size) {
    if (ReadHeader(bytes + at, size - at, &header) != HeaderState::kValid) return false;
    if (!IsAsynchronous(header.type) || header.total_bytes > size - at) return false;
    at += header.total_bytes;
  }
  return true;
}

void Connection::Close() {
  SLUICE_ASSERT(stream_ == nullptr && steps_.empty());
  socket_.SayGoodbye();
  Lost(Error{});
}

void Connection::Abort(Error error) {
  if (!socket_.receiving()) return Lost(std::move(error));
  abort_error_ = std::move(error);
  socket_.CancelReceive();
}

Error Connection::EndOfConnection(int result) const {
  const std::optional<RemoteError>& said =
      !steps_.empty() && steps_.front().error ? steps_.front().error : fatal_;
  Error error =
      MakeError(sqlstate::kConnectionFailure, "server closed the connection unexpectedly");
  error.detail = fmt::format("Server \"{}\"", pool_->server_name());
  if (said) {
    // Class 57P is about a client's own connection; here it is a shard's that ended.
    error.message = said->error.message;
    bool shutdown = SqlStateText(said->error.state).starts_with("57P");
    if (!shutdown) error.state = said->error.state;
  } else if (result < 0) {
    error.detail += fmt::format(": {}", std::strerror(-result));
  }
  error.detail += ".";
  return error;
}

void Connection::Malformed(std::string_view what) {
  Error error =
      MakeError(sqlstate::kProtocolViolation, "server \"{}\" sent {}", pool_->server_name(), what);
  LogError(LogLevel::kWarning, error);
  Lost(std::move(error));
}

void Connection::Lost(Error error) {
  SLUICE_ASSERT(!socket_.receiving());
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  EndLease(&lend_to_);
  EndLease(&lent_to_);
  connect_timer_.Disarm();
  cancel_timer_.Disarm();
  worker_->ring->Cancel(&connect_poll_);
  socket_.Shutdown();
  if (cancel_ != nullptr) cancel_->Abort();
  DropAssembly();
  if (hold_ != nullptr) {  // who has not imported its snapshot never will
    hold_->exporter = nullptr;
    hold_->error = error;
  }
  std::vector<PostgresStream*> streams(queue_.begin(), queue_.end());
  queue_.clear();
  if (stream_ != nullptr) streams.insert(streams.begin(), LetStreamGo());
  if (pin_ != 0) worker_->pools->OnPinnedLost(this);
  HidePin();
  pool_->OnLost(this);  // into the graveyard, before a retry asks for another
  for (PostgresStream* stream : streams) stream->OnConnectionLost(error);
}

bool Connection::dead() const {
  return state_ == State::kClosed && !socket_.busy() && !connect_poll_.in_flight &&
         (cancel_ == nullptr || !cancel_->busy());
}

}  // namespace sluice
