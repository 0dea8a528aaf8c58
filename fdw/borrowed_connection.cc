#include "fdw/borrowed_connection.h"

#include <cerrno>
#include <sys/socket.h>

#include "common/assert.h"

namespace sluice {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;
// So long after an answer a shard is taken to be there still. Where it is not, a statement by the
// extended protocol finds that out as well: nothing says that it was begun.
constexpr int64_t kFreshUs = 10'000;

bool Interrupted(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

BorrowedConnection::BorrowedConnection(Lease* lease, UniqueFd fd)
    : lease_(lease), fd_(std::move(fd)), statements_(kLentStatementsMax) {
  SLUICE_ASSERT(lease->state.load(std::memory_order_acquire) == LeaseState::kLent);  // L3
}

BorrowedConnection::~BorrowedConnection() {
  lease_->end = !usable()          ? LeaseEnd::kCancel
                : pin_ != 0        ? LeaseEnd::kPinned
                : in_transaction() ? LeaseEnd::kCancel
                                   : LeaseEnd::kReady;
  lease_->pin = pin_;
  lease_->transaction_status = transaction_status_;
  lease_->statements = statements_used_;
  fd_.Reset();
  lease_->state.store(LeaseState::kReturned, std::memory_order_release);  // L3
  SubmitRequest({RequestKind::kGiveBack, nullptr, 0, 0, lease_});
}

bool BorrowedConnection::CheckIdle() {
  SLUICE_ASSERT(!busy_);
  if (broken_ || begin_ != end_) return false;
  return MonotonicUs() - last_received_us_ < kFreshUs || LookAtIdle();
}

// What the shard says unasked is read; anything else than notices is a farewell.
bool BorrowedConnection::LookAtIdle() {
  char bytes[4096];
  ssize_t got = recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got < 0 && Interrupted(errno)) return true;
  std::string_view rest(bytes, got > 0 ? static_cast<size_t>(got) : 0);
  broken_ = rest.empty();
  while (!broken_ && !rest.empty()) {
    MessageHeader header;
    broken_ = ReadHeader(rest.data(), rest.size(), &header) != HeaderState::kValid ||
              !IsAsynchronous(header.type) || header.total_bytes > rest.size();
    if (!broken_) rest.remove_prefix(header.total_bytes);
  }
  return !broken_;
}

// A name that the running statement is to be prepared by.
void BorrowedConnection::TakeName(RequestWriter* request) {
  if (statements_used_ < kLentStatementsMax) {
    statement_name_ = fmt::format("lent_{}", statements_used_++);
    return;
  }
  if (free_names_.empty()) free_names_.push_back(*statements_.MakeRoom());
  statement_name_ = std::move(free_names_.back());
  free_names_.pop_back();
  request->CloseStatement(statement_name_);
}

// A statement without parameters and with text results needs no more than the simple protocol.
void BorrowedConnection::Request(const BorrowedQuery& query) {
  RequestWriter request(&out_);
  statement_name_.clear();
  parse_sent_ = false;
  out_is_simple_ = false;
  begins_ = Begins(query);
  begun_ = false;
  auto is_text = [](int16_t format) { return format == 0; };
  if (query.params.empty() &&
      std::all_of(query.result_formats.begin(), query.result_formats.end(), is_text)) {
    out_is_simple_ = true;
    begun_ = begins_;  // nothing but the statement's own answer tells
    if (begins_) return request.Query(fmt::format("{}; {}", query.begin_sql, query.sql));
    return request.Query(query.sql);
  }
  // Without a Sync between them: where it fails the statement is not run.
  if (begins_) {
    request.Parse("", query.begin_sql, {});
    request.Bind("", {}, {});
    request.Execute(0);
  }
  parse_sent_ = true;
  if (query.prepare) {
    statement_key_ = StatementCache::KeyOf(query.sql, query.params);
    if (const std::string* name = statements_.Find(statement_key_)) {
      statement_name_ = *name;
      parse_sent_ = false;
    } else {
      TakeName(&request);
    }
  }
  if (parse_sent_) request.Parse(statement_name_, query.sql, query.params);
  request.Bind(statement_name_, query.params, query.result_formats);
  request.Execute(0);
  request.Sync();
}

void BorrowedConnection::Break(const BorrowedQuery& query, SqlState state, std::string_view what,
                               std::string detail) {
  broken_ = true;
  Error error = MakeError(state, "{}", what);
  if (error_) {  // the shard's farewell says more
    error.message = error_->error.message;
    // Class 57P is about a client's own connection; here it is a shard's that ended.
    if (!SqlStateText(error_->error.state).starts_with("57P")) error.state = error_->error.state;
  }
  error.detail = detail.empty() ? fmt::format("Server \"{}\".", query.server_name) : detail;
  throw QueryError(std::move(error));
}

void BorrowedConnection::Wait(const BorrowedQuery& query, short events) {
  int64_t deadline_us =
      query.silence_timeout_us == 0 ? 0 : last_received_us_ + query.silence_timeout_us;
  ResetLatch(&my_proc->latch);
  CheckForInterrupts();
  WaitInterruptibly(WaitEvent::kShardRead, {fd_.get(), events, 0}, deadline_us);
  if (deadline_us == 0 || MonotonicUs() < deadline_us) return;
  pollfd ready{fd_.get(), events, 0};
  if (poll(&ready, 1, 0) == 1) return;
  Break(query, sqlstate::kConnectionFailure,
        fmt::format("server \"{}\" sends nothing", query.server_name),
        fmt::format("Nothing came for {} ms.", query.silence_timeout_us / 1000));
}

// False: the connection is broken.
bool BorrowedConnection::Send(const BorrowedQuery& query) {
  size_t sent = 0;
  while (sent < out_.size()) {
    ssize_t got =
        send(fd_.get(), out_.data() + sent, out_.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (got > 0) {
      sent += static_cast<size_t>(got);
    } else if (Interrupted(errno)) {
      Wait(query, POLLOUT);
    } else {
      return false;
    }
  }
  out_.clear();
  just_sent_ = true;
  return true;
}

// More bytes behind those that are here; 0: the connection has ended.
size_t BorrowedConnection::Receive(const BorrowedQuery& query, size_t wanted_bytes,
                                   const std::function<void()>& before_wait) {
  if (begin_ > 0) {
    std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (in_.size() < std::max(wanted_bytes, kBufferBytes))
    in_.resize(std::max(wanted_bytes, kBufferBytes));
  if (std::exchange(just_sent_, false)) Wait(query, POLLIN);
  for (;;) {
    ssize_t got = recv(fd_.get(), in_.data() + end_, in_.size() - end_, MSG_DONTWAIT);
    if (got > 0) {
      end_ += static_cast<size_t>(got);
      received_bytes_ += static_cast<size_t>(got);
      last_received_us_ = MonotonicUs();
      return static_cast<size_t>(got);
    }
    if (got == 0 || !Interrupted(errno)) return 0;
    if (rows_ > 0) before_wait();
    Wait(query, POLLIN);
  }
}

void BorrowedConnection::Handle(const BorrowedQuery& query, char type, std::string_view body) {
  if (type != 'E' && !IsAsynchronous(type)) answered_ = true;
  switch (type) {
    case 'Z':
      ready_ = true;
      if (body != "I" && !(held_ && (body == "T" || body == "E")))
        Break(query, sqlstate::kProtocolViolation, "a shard is not ready");
      transaction_status_ = body[0];
      return;
    case 'E':
      if (!error_) error_ = ReadErrorResponse(body);
      if (!error_)
        Break(query, sqlstate::kProtocolViolation, "an ErrorResponse that cannot be read");
      return;
    case '1':
      if (begins_ && !begun_) return;  // BEGIN's
      if (!statement_name_.empty()) statements_.Insert(statement_key_, statement_name_);
      return;
    case 'C':
      begun_ = true;
      command_tag_ = body.substr(0, body.find('\0'));
      return;
    case '2':
    case '3':
    case 'I':
    case 'T':
      return;
    default:
      if (IsAsynchronous(type)) return;
      Break(query, sqlstate::kProtocolViolation,
            fmt::format("server \"{}\" sent a message of type 0x{:02x}", query.server_name,
                        static_cast<unsigned char>(type)));
  }
}

// Until ReadyForQuery; false: the connection ended before any byte of an answer.
bool BorrowedConnection::ReadAnswer(const BorrowedQuery& query, const RowReceiver& rows,
                                    const std::function<void()>& before_wait) {
  while (!ready_) {
    uint32_t count = 0;
    size_t bytes = WalkMessages(in_.data() + begin_, end_ - begin_, 'D', &count);
    if (count > 0) {
      std::string_view messages(in_.data() + begin_, bytes);
      begin_ += bytes;
      rows_ += count;
      rows(messages);
    }
    MessageHeader header{};
    HeaderState state = ReadHeader(in_.data() + begin_, end_ - begin_, &header);
    if (state == HeaderState::kMalformed)
      Break(query, sqlstate::kProtocolViolation, "a message of impossible length");
    if (state == HeaderState::kValid && header.total_bytes <= end_ - begin_) {
      std::string_view body(in_.data() + begin_ + kMessageHeaderBytes,
                            header.total_bytes - kMessageHeaderBytes);
      begin_ += header.total_bytes;
      Handle(query, header.type, body);
      continue;
    }
    size_t wanted = state == HeaderState::kValid ? header.total_bytes : kMessageHeaderBytes;
    if (Receive(query, wanted, before_wait) > 0) continue;
    // A FATAL before anything else means that the shard had not begun to read the statement (or
    // ParseComplete would have come before it); the simple protocol does not tell that much.
    bool farewell_only = error_ && error_->severity == "FATAL" && !answered_ && !out_is_simple_;
    // What a transaction that was begun with it has done is gone with the connection.
    bool nothing_done = farewell_only || (begins_ && rows_ == 0);
    if (nothing_done || (received_bytes_ == 0 && query.repeatable)) return false;
    Break(query, sqlstate::kConnectionFailure, "server closed the connection unexpectedly");
  }
  if (begin_ != end_) broken_ = true;  // what follows was not asked for
  begin_ = end_ = 0;
  if (in_.size() > kBufferBytes) std::string().swap(in_);
  return true;
}

// The shard has changed a table since the statement was prepared.
bool BorrowedConnection::IsStale() const {
  if (!error_ || statement_name_.empty() || parse_sent_ || rows_ > 0) return false;
  return error_->error.state == sqlstate::kInvalidSqlStatementName ||
         (error_->error.state == sqlstate::kFeatureNotSupported &&
          error_->routine == "RevalidateCachedQuery");
}

void BorrowedConnection::Start(const BorrowedQuery& query) {
  SLUICE_ASSERT(usable());
  busy_ = true;
  ready_ = false;
  error_.reset();
  rows_ = received_bytes_ = 0;
  answered_ = false;
  command_tag_.clear();
  last_received_us_ = MonotonicUs();
  Request(query);
  // A statement that cannot tell later whether it was begun is not sent to a shard that has gone.
  bool careful = !in_transaction() && (out_is_simple_ || !query.repeatable);
  sent_ = (!careful || LookAtIdle()) && Send(query);
}

std::optional<uint64_t> BorrowedConnection::Finish(const BorrowedQuery& query,
                                                   const RowReceiver& rows,
                                                   const std::function<void()>& before_wait) {
  for (bool again = false;; again = true) {
    if (!sent_ || !ReadAnswer(query, rows, before_wait)) {
      broken_ = true;
      return std::nullopt;
    }
    bool stale = !again && IsStale();
    if (stale) statements_.Erase(statement_key_);
    if (!statement_name_.empty() && statements_.Find(statement_key_) == nullptr)
      free_names_.push_back(statement_name_);
    // A transaction cannot go on after the error.
    if (!stale || in_transaction()) break;
    busy_ = false;
    Start(query);
  }
  busy_ = false;
  if (error_) {
    Error error = error_->error;
    error.position = 0;  // it counts in the remote statement, which the client did not write
    if (!error.context.empty()) error.context += '\n';
    error.context +=
        fmt::format("remote SQL command on server \"{}\": {}", query.server_name, query.sql);
    throw QueryError(std::move(error));
  }
  return rows_;
}

std::optional<uint64_t> BorrowedConnection::Run(const BorrowedQuery& query, const RowReceiver& rows,
                                                const std::function<void()>& before_wait) {
  Start(query);
  return Finish(query, rows, before_wait);
}

}  // namespace sluice
