#include "postmaster/view_feed.h"

#include <charconv>

#include "catalog/quote.h"
#include "common/log.h"
#include "shm/live_views.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

constexpr int64_t kBackoffUsMin = 100'000;
constexpr int64_t kBackoffUsMax = 5'000'000;
// The shard is asked to answer every 10 s (fdw/replication_status.h).
constexpr int64_t kSilenceTimeoutUs = 60'000'000;
constexpr uint32_t kStreamChunks = 16;

std::string ProbeSql(const std::string& name) {
  return fmt::format(
      "SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()), "
      "EXISTS (SELECT FROM pg_catalog.pg_publication WHERE pubname = {0}), "
      "s.slot_name, s.confirmed_flush_lsn, s.wal_status, s.active_pid, "
      "s.database = pg_catalog.current_database() "
      "FROM (VALUES (1)) AS one LEFT JOIN pg_catalog.pg_replication_slots s ON s.slot_name = {0}",
      QuoteLiteral(name));
}
enum { kSystem, kHasPublication, kSlot, kConfirmed, kWalStatus, kActivePid, kSameDatabase };

}  // namespace

std::string FeedRecord::Text() const {
  return system_identifier + " " + LsnText(applied_lsn);
}

FeedRecord FeedRecord::Parse(std::string_view text) {
  FeedRecord record;
  size_t blank = text.find(' ');
  record.system_identifier = text.substr(0, blank);
  record.applied_lsn = ParseLsn(text.substr(blank + 1));
  return record;
}

ShardFeed::ShardFeed(Oid server, std::string server_name, std::string instance, FeedRecord record,
                     ConnectAs connect)
    : server_(server),
      server_name_(std::move(server_name)),
      instance_(std::move(instance)),
      name_("sluice_" + instance_),
      record_(std::move(record)),
      connect_(std::move(connect)),
      pin_(shared_memory->next_pin.fetch_add(1, std::memory_order_relaxed)),
      shared_(FindReplicatedServer(server, true)),
      reader_(instance_) {
  if (shared_ == nullptr)
    Throw(sqlstate::kProgramLimitExceeded, "live views read from at most {} servers",
          kReplicatedServersMax);
  shared_->applied_lsn.store(record_.applied_lsn, std::memory_order_release);  // W2
}

ShardFeed::~ShardFeed() {
  task_.reset();
  stream_.reset();
  shared_->streaming.store(0, std::memory_order_relaxed);
  SubmitRequest({RequestKind::kUnpin, nullptr, pin_, 0});
}

uint64_t ShardFeed::system_identifier() const {
  uint64_t value = 0;
  const std::string& text = record_.system_identifier;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void ShardFeed::Applied(Lsn applied, int64_t commit_time_us) {
  record_.applied_lsn = std::max(record_.applied_lsn, applied);
  if (commit_time_us != 0) shared_->applied_at_us.store(commit_time_us, std::memory_order_relaxed);
  if (wanted_) shared_->applied_lsn.store(record_.applied_lsn, std::memory_order_release);  // W2
}

void ShardFeed::Confirm(Lsn lsn) {
  confirmed_ = std::max(confirmed_, lsn);
  shared_->confirmed_lsn.store(confirmed_, std::memory_order_relaxed);
  if (stream_ != nullptr)
    stream_->stream(0).confirmed_lsn.store(confirmed_, std::memory_order_relaxed);  // S4
}

void ShardFeed::Run(std::vector<std::string> statements) {
  std::vector<RemoteStatement> list;
  for (std::string& sql : statements) {
    RemoteStatement statement;
    statement.sql = std::move(sql);
    list.push_back(std::move(statement));
  }
  rows_.clear();
  task_ = std::make_unique<RemoteTask>([this](Arena* arena) { return connect_(false, arena); },
                                       std::move(list), pin_);
}

bool ShardFeed::Poll(int64_t now_us) {
  wake_at_us_ = state_ == State::kWaiting ? wake_at_us_ : 0;
  try {
    bool backing_off = state_ == State::kWaiting && now_us < wake_at_us_;
    if (!wanted_ && state_ != State::kIdle && state_ != State::kDropping && !backing_off)
      StartDrop();
    if (wanted_ && announced_ &&
        (state_ == State::kIdle || (state_ == State::kWaiting && now_us >= wake_at_us_)))
      StartProbe();
    if (task_ != nullptr) {
      task_->PollText(&rows_);
      if (!task_->ended()) return false;
      std::optional<Error> error = task_->error();
      task_.reset();
      // The connection goes back: others can use it, and one that is lost is not asked for again.
      SubmitRequest({RequestKind::kUnpin, nullptr, pin_, 0});
      if (state_ == State::kDropping) {
        if (error) Log(LogLevel::kWarning, "server \"{}\": {}", server_name_, error->message);
        // Where the slot could not go, it is tried again.
        if (error && !wanted_ && error->state != sqlstate::kUndefinedObject) {
          state_ = State::kWaiting;
          wake_at_us_ = now_us + kBackoffUsMax;
          return false;
        }
        record_ = {};
        state_ = State::kIdle;
        return wanted_;
      }
      if (error) throw QueryError(*error);
      if (probing_) {
        OnProbed();
      } else {
        OnPrepared();
      }
      return true;
    }
    if (state_ != State::kStreaming) return false;
    bool more = false;
    if (reader_.ready_bytes() < ready_bytes_max_)
      more = stream_->Poll(
          [this](size_t, const char* data, size_t size_bytes) { reader_.Take(data, size_bytes); });
    stream_->stream(0).received_lsn.store(reader_.received_lsn(), std::memory_order_relaxed);  // S4
    if (reader_.received_lsn() >= replay_until_) replaying_ = false;
    shared_->server_lsn.store(reader_.server_lsn(), std::memory_order_relaxed);
    shared_->server_time_us.store(reader_.server_time_us(), std::memory_order_relaxed);
    if (stream_->ended()) {
      std::optional<Error> error = stream_->error();
      throw QueryError(error
                           ? *error
                           : MakeError(sqlstate::kConnectionFailure,
                                       "server \"{}\" ended its replication stream", server_name_));
    }
    return more;
  } catch (const QueryError& error) {
    Fail(error.error, now_us);
    return false;
  }
}

void ShardFeed::Fail(const Error& error, int64_t now_us) {
  if (!error_ || error_->message != error.message)
    Log(LogLevel::kLog, "changes of server \"{}\": {}{}{}", server_name_, error.message,
        error.detail.empty() ? "" : " ", error.detail);
  error_ = error;
  const std::string code = SqlStateText(error.state);
  refused_ = record_.system_identifier.empty() || state_ == State::kPreparing
                 ? code.starts_with("42") || code.starts_with("55000") || code == "53400"
                 : false;
  replay_lost_ |= replaying_ && stream_ != nullptr;
  task_.reset();
  stream_.reset();
  // A pin whose connection was lost is of no use until it is let go.
  SubmitRequest({RequestKind::kUnpin, nullptr, pin_, 0});
  reader_.Reset();
  shared_->streaming.store(0, std::memory_order_relaxed);
  state_ = State::kWaiting;
  backoff_us_ = std::clamp(backoff_us_ * 2, kBackoffUsMin, kBackoffUsMax);
  wake_at_us_ = now_us + backoff_us_;
}

void ShardFeed::StartProbe() {
  state_ = State::kPreparing;
  probing_ = true;
  wake_at_us_ = 0;
  Run({ProbeSql(name_)});
}

// What is missing is made; what does not fit is made again.
void ShardFeed::OnProbed() {
  probing_ = false;
  if (rows_.empty() || rows_[0].size() != 1 || rows_[0][0].size() != 7 || !rows_[0][0][kSystem])
    Throw(sqlstate::kProtocolViolation, "malformed answer from server \"{}\"", server_name_);
  const RemoteRow& row = rows_[0][0];
  bool has_slot = row[kSlot].has_value();
  std::string broken;
  if (!record_.system_identifier.empty()) {
    if (record_.system_identifier != *row[kSystem])
      broken = "it is another server than before";
    else if (!has_slot)
      broken = fmt::format("replication slot \"{}\" is not there any more", name_);
    else if (row[kWalStatus].value_or("") == "lost")
      broken = fmt::format("replication slot \"{}\" was invalidated", name_);
    else if (ParseLsn(row[kConfirmed].value_or("0/0")) > record_.applied_lsn)
      broken = fmt::format("replication slot \"{}\" has moved on to {}", name_, *row[kConfirmed]);
  } else if (has_slot) {
    broken = fmt::format("replication slot \"{}\" is not known here", name_);
  }
  if (!broken.empty()) {
    Log(LogLevel::kWarning, "changes of server \"{}\" are lost: {}; its tables are read again",
        server_name_, broken);
    lost_ = true;
  }
  std::vector<std::string> statements;
  if (has_slot && !broken.empty())
    statements.push_back(
        fmt::format("SELECT pg_catalog.pg_drop_replication_slot({})", QuoteLiteral(name_)));
  bool make_slot = !has_slot || !broken.empty();
  if (row[kHasPublication].value_or("f") != "t")
    statements.push_back(fmt::format(
        "CREATE PUBLICATION {} WITH (publish_via_partition_root = true)", QuoteIdentifier(name_)));
  // Behind the publication: the stream begins where the slot does, and must find it.
  if (make_slot) {
    statements.push_back(
        fmt::format("SELECT lsn FROM pg_catalog.pg_create_logical_replication_slot({}, 'pgoutput')",
                    QuoteLiteral(name_)));
    record_ = {*row[kSystem], 0};
    confirmed_ = 0;
  }
  record_.system_identifier = *row[kSystem];
  if (statements.empty()) return StartStream();
  Run(std::move(statements));
}

void ShardFeed::OnPrepared() {
  for (const auto& rows : rows_)
    if (rows.size() == 1 && rows[0].size() == 1 && rows[0][0] &&
        rows[0][0]->find('/') != std::string::npos)
      record_.applied_lsn = ParseLsn(*rows[0][0]);
  StartStream();
}

void ShardFeed::StartStream() {
  // After a restart what was kept for backfills must come again: from where the shard was told.
  Lsn from = replaying_ ? 0 : record_.applied_lsn;
  replay_until_ = record_.applied_lsn;
  reader_.Reset();
  RemoteStatement statement;
  statement.kind = StreamKind::kReplication;
  statement.chunk_quota = kStreamChunks;
  statement.sql = fmt::format(
      "START_REPLICATION SLOT {} LOGICAL {} (proto_version '1', publication_names '{}', "
      "binary 'true', messages 'true')",
      QuoteIdentifier(name_), LsnText(from), QuoteIdentifier(name_));
  stream_ = std::make_unique<RemoteTask>([this](Arena* arena) { return connect_(true, arena); },
                                         std::vector<RemoteStatement>{std::move(statement)}, 0,
                                         kSilenceTimeoutUs);
  stream_->stream(0).confirmed_lsn.store(confirmed_, std::memory_order_relaxed);  // S4
  state_ = State::kStreaming;
  error_.reset();
  refused_ = false;
  backoff_us_ = 0;
  shared_->streaming.store(1, std::memory_order_relaxed);
}

void ShardFeed::StartDrop() {
  stream_.reset();
  task_.reset();
  reader_.Reset();
  shared_->streaming.store(0, std::memory_order_relaxed);
  // No view reads it: nobody is to wait, whoever does already, and however long this takes.
  shared_->applied_lsn.store(~uint64_t{0}, std::memory_order_release);  // W2
  PublishViewNews();
  state_ = State::kDropping;
  // A walsender that has not noticed yet that its client is gone still holds the slot.
  Run({fmt::format(
           "SELECT pg_catalog.pg_terminate_backend(active_pid, 5000) FROM "
           "pg_catalog.pg_replication_slots WHERE slot_name = {} AND active_pid IS NOT NULL",
           QuoteLiteral(name_)),
       fmt::format("SELECT pg_catalog.pg_drop_replication_slot(slot_name) FROM "
                   "pg_catalog.pg_replication_slots WHERE slot_name = {}",
                   QuoteLiteral(name_)),
       fmt::format("DROP PUBLICATION IF EXISTS {}", QuoteIdentifier(name_))});
}

}  // namespace sluice
