#include "postmaster/view_leaf.h"

#include <array>
#include <nlohmann/json.hpp>

#include "catalog/quote.h"
#include "common/bytes.h"
#include "common/log.h"
#include "postmaster/table_state.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

using Json = nlohmann::json;

constexpr int64_t kSettleAgainUs = 20'000;
constexpr int64_t kRetryUs = 500'000;
constexpr int64_t kLookUs = 1'000'000;
constexpr uint32_t kPieceChunks = 8;
// What is read when a process dies is read again: so much of the table at most, unless that is
// next to nothing. A piece costs the shard some statements and a commit, too.
constexpr uint64_t kShareRead = 120, kFewRows = 50'000;
constexpr uint64_t kPieceRowsMin = 1000, kPieceRowsMax = 16'000;
// So much memory one takes at most, by the size of the rows before.
constexpr uint64_t kPieceBytesMax = 4 << 20;
// Rows of a table that is read whole, which wait for an epoch; beyond it the shard is held back.
constexpr size_t kRowsBytesMax = 16 << 20;

// REPEATABLE READ: the mark and the rows are of one snapshot. Not READ ONLY: the mark is written.
// `local`: a standby that does not answer must not keep the mark from being there.
constexpr std::string_view kBeginPiece =
    "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL row_security = off; "
    "SET LOCAL synchronous_commit = local";

std::vector<Oid> TypesOf(const Relation& table) {
  std::vector<Oid> types;
  for (const ColumnInfo& column : table.columns) types.push_back(column.type);
  return types;
}

RemoteStatement Statement(std::string sql) {
  RemoteStatement statement;
  statement.sql = std::move(sql);
  return statement;
}

RemoteStatement Simple(std::string_view sql) {
  RemoteStatement statement = Statement(std::string(sql));
  statement.kind = StreamKind::kSimple;
  return statement;
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string FromHex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

// Values of a whole DataRow message. The io worker has checked its length.
std::vector<WireValue> RowValues(std::string_view message) {
  auto malformed = [] {
    Throw(sqlstate::kProtocolViolation, "malformed DataRow message from a server");
  };
  if (message.size() < 7) malformed();
  std::vector<WireValue> values(LoadBig<uint16_t>(message.data() + 5));
  size_t at = 7;
  for (WireValue& value : values) {
    if (message.size() - at < 4) malformed();
    value.length = LoadBig<int32_t>(message.data() + at);
    at += 4;
    if (value.length < 0) continue;
    if (message.size() - at < static_cast<size_t>(value.length)) malformed();
    value.data = message.data() + at;
    at += static_cast<size_t>(value.length);
  }
  return values;
}

}  // namespace

ViewLeaf::ViewLeaf(const Catalog& catalog, const Relation& table, const Relation& leaf,
                   ShardFeed* feed)
    : relation_(leaf),
      server_(catalog.servers.at(leaf.server)),
      remote_columns_(RemoteColumns(table, leaf)),
      column_types_(TypesOf(table)),
      formats_(PieceFormats(catalog, table)),
      feed_(feed),
      pin_(shared_memory->next_pin.fetch_add(1, std::memory_order_relaxed)) {}

ViewLeaf::~ViewLeaf() {
  task_.reset();
  SubmitRequest({RequestKind::kUnpin, nullptr, pin_, 0});
}

std::string ViewLeaf::Record() const {
  Json cursor;
  if (backfill_->cursor())
    for (const std::string& value : *backfill_->cursor()) cursor.push_back(Hex(value));
  return Json{
      {"remote",
       {relation_.server, relation_.remote_schema(), relation_.remote_table(), remote_columns_}},
      {"state", state_.value_or("")},
      {"truncated", truncated_},
      {"keys", description_.key_columns},
      {"ordered", description_.ordered},
      {"joined", phase_ > Phase::kJoin},
      {"join_xmax", join_xmax_},
      {"complete", backfill_->complete()},
      {"dirty", dirty_},
      {"cursor", cursor},
      {"rows", rows_read_},
      {"dropped", dropped_columns_},
      {"estimate", description_.rows_estimated}}
      .dump();
}

bool ViewLeaf::IsStill(const Relation& leaf, const Relation& table) const {
  if (leaf.server != relation_.server || leaf.remote_schema() != relation_.remote_schema() ||
      leaf.remote_table() != relation_.remote_table())
    return false;
  // A column that the table has no more may be any on the server.
  for (size_t i = 0; i < table.columns.size(); i++) {
    int at = leaf.FindColumn(table.columns[i].name);
    if (at >= 0 && leaf.columns[static_cast<size_t>(at)].remote_name() != remote_columns_[i])
      return false;
  }
  return true;
}

bool ViewLeaf::Restore(std::string_view record) {
  Json json = Json::parse(record);
  if (auto remote = json.find("remote"); remote != json.end()) {
    Json now{relation_.server, relation_.remote_schema(), relation_.remote_table(),
             remote_columns_};
    Json columns = remote->at(3);
    // One that the table has no more may have had another name.
    for (size_t i = 0; i < remote_columns_.size() && i < columns.size(); i++)
      if (std::none_of(relation_.columns.begin(), relation_.columns.end(), [&](const auto& column) {
            return column.remote_name() == remote_columns_[i];
          }))
        now[3][i] = columns[i];
    if (*remote != now) return false;
  }
  if (std::string state = json.value("state", ""); !state.empty()) state_ = state;
  truncated_ = json.value("truncated", false);
  json.at("keys").get_to(description_.key_columns);
  json.at("ordered").get_to(description_.ordered);
  json.at("join_xmax").get_to(join_xmax_);
  json.at("rows").get_to(rows_read_);
  dropped_columns_ = json.value("dropped", std::set<int>{});
  description_.rows_estimated = json.value("estimate", uint64_t{0});
  bool complete = json.at("complete").get<bool>();
  std::optional<std::vector<std::string>> cursor;
  if (json.at("cursor").is_array()) {
    cursor.emplace();
    for (const Json& value : json.at("cursor"))
      cursor->push_back(FromHex(value.get<std::string>()));
  }
  phase_ = Phase::kJoin;
  OnTaskEnded(0);  // as if described just now
  backfill_->Restore(complete, std::move(cursor));
  dirty_ = json.at("dirty").get<bool>() || (!description_.ordered && !complete);
  phase_ = complete                        ? Phase::kComplete
           : json.at("joined").get<bool>() ? Phase::kSettle
                                           : Phase::kJoin;
  return true;
}

void ViewLeaf::SetState(std::string state) {
  state_ = std::move(state);
  truncated_ = false;
}

std::vector<int> ViewLeaf::KeyColumns() const {
  std::vector<int> columns;
  for (const KeyOrder::KeyColumn& key : backfill_->order().columns()) columns.push_back(key.column);
  return columns;
}

bool ViewLeaf::Is(const PublishedTable& table) const {
  return table.name == relation_.remote_table() && table.schema == relation_.remote_schema();
}

Error ViewLeaf::NoSuchColumn(int column) const {
  return MakeError(sqlstate::kUndefinedColumn,
                   "column \"{}\" of table \"{}\" on server \"{}\" is not what it was",
                   remote_columns_[static_cast<size_t>(column)], relation_.remote_table(),
                   server_.name)
      .Detail("It was dropped, renamed, or has another type than when the view was created.");
}

std::vector<int> ViewLeaf::MapColumns(const PublishedTable& table) const {
  std::vector<int> map;
  for (size_t i = 0; i < remote_columns_.size(); i++) {
    auto found = std::find_if(table.columns.begin(), table.columns.end(), [&](const auto& column) {
      return column.name == remote_columns_[i];
    });
    // Types of users have other oids on each server.
    bool same = found != table.columns.end() &&
                (column_types_[i] >= kFirstUserOid || found->type >= kFirstUserOid ||
                 found->type == column_types_[i]);
    const std::vector<std::string>& keys = description_.key_columns;
    bool identifies =
        keys.empty() || std::find(keys.begin(), keys.end(), remote_columns_[i]) != keys.end();
    if (!same && identifies) throw QueryError(NoSuchColumn(static_cast<int>(i)));
    map.push_back(same ? static_cast<int>(found - table.columns.begin()) : -1);
  }
  return map;
}

void ViewLeaf::Run(std::vector<RemoteStatement> statements) {
  text_rows_.clear();
  const auto& connect = feed_->connect();
  task_ = std::make_unique<RemoteTask>([&](Arena* arena) { return connect(false, arena); },
                                       std::move(statements), pin_);
}

void ViewLeaf::Fail(Error error, int64_t now_us) {
  task_.reset();
  reading_ = false;
  piece_ = {};
  // What is left of the piece's transaction goes with the connection's reset.
  SubmitRequest({RequestKind::kUnpin, nullptr, pin_, 0});
  auto is_class = [&](const char* name) { return SqlStateText(error.state).starts_with(name); };
  bool passes = is_class("08") || is_class("57") || is_class("53");
  if (!passes && (phase_ == Phase::kDescribe || is_class("42"))) {
    phase_ = Phase::kFailed;
    error_ = std::move(error);
    return;
  }
  Log(LogLevel::kLog, "backfill of \"{}\" from server \"{}\": {}", relation_.name, server_.name,
      error.message);
  if (phase_ == Phase::kRead || phase_ == Phase::kCount) ReadAgain();
  wake_at_us_ = now_us + kRetryUs;
}

bool ViewLeaf::WantsPiece(int64_t now_us) const {
  return phase_ == Phase::kRead && task_ == nullptr && (read_.empty() || ReadsAhead()) && !dirty_ &&
         now_us >= wake_at_us_ && feed_->state() == ShardFeed::State::kStreaming;
}

bool ViewLeaf::Poll(int64_t now_us, uint64_t rows_max) {
  try {
    if (task_ != nullptr) {
      if (reading_) {
        if (HasRowsToInsert() && piece_.rows.size() > kRowsBytesMax) return false;
        task_->Poll([this](size_t index, const char* data, size_t size_bytes) {
          TakePiece(index, data, size_bytes);
        });
      } else {
        task_->PollText(&text_rows_);
      }
      if (!task_->ended()) return false;
      OnTaskEnded(now_us);
      return true;
    }
    if (now_us < wake_at_us_) return false;
    wake_at_us_ = 0;
    switch (phase_) {
      case Phase::kDescribe:
        Run({Statement(LeafDescriptionSql(relation_))});
        return false;
      case Phase::kJoin:
        if (feed_->state() != ShardFeed::State::kStreaming) return false;
        Run({Statement(fmt::format("ALTER PUBLICATION {} ADD TABLE {}",
                                   QuoteIdentifier(feed_->publication()), RemoteName(relation_))),
             Statement("SELECT pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())")});
        return false;
      case Phase::kSettle:
        if (feed_->state() != ShardFeed::State::kStreaming || dirty_) return false;
        Run({Statement("SELECT pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())"),
             Statement(TableStateSql(std::array{&relation_}, feed_->publication()))});
        return false;
      case Phase::kRead:
        if (!WantsPiece(now_us)) return false;
        if (rows_max == 0) {
          // Paused. What any later piece will have seen need not be kept meanwhile.
          if (backfill_->kept() == 0 || !read_.empty() || now_us < look_at_us_) return false;
          look_at_us_ = now_us + kLookUs;
          Run({Statement("SELECT pg_catalog.pg_current_snapshot()")});
          return false;
        }
        StartPiece(rows_max);
        return false;
      default:
        return false;
    }
  } catch (const QueryError& error) {
    Fail(error.error, now_us);
    return false;
  }
}

void ViewLeaf::OnTaskEnded(int64_t now_us) {
  if (task_ != nullptr) {
    std::optional<Error> error = task_->error();
    task_.reset();
    // A table that is in the publication already: from before a restart.
    if (error && phase_ == Phase::kJoin && error->state == sqlstate::kDuplicateObject)
      error.reset();
    if (error) throw QueryError(*error);
  }
  auto number = [&] {
    const auto& rows = text_rows_.at(phase_ == Phase::kSettle ? 0 : text_rows_.size() - 1);
    if (rows.size() != 1 || rows[0].size() != 1 || !rows[0][0])
      Throw(sqlstate::kProtocolViolation, "malformed answer from server \"{}\"", server_.name);
    return std::stoull(*rows[0][0]);
  };
  switch (phase_) {
    case Phase::kDescribe:
      description_ = ReadLeafDescription(server_, relation_, text_rows_[0]);
      phase_ = Phase::kJoin;
      [[fallthrough]];
    case Phase::kJoin: {
      if (backfill_) {
        join_xmax_ = number();
        phase_ = Phase::kSettle;
        return;
      }
      std::vector<KeyOrder::KeyColumn> keys;
      for (const std::string& name : description_.key_columns) {
        auto at = std::find(remote_columns_.begin(), remote_columns_.end(), name);
        if (at == remote_columns_.end())
          Throw(sqlstate::kUndefinedColumn, "key column \"{}\" of table \"{}\" is missing", name,
                relation_.name);
        auto index = static_cast<int>(at - remote_columns_.begin());
        keys.push_back({index, column_types_[static_cast<size_t>(index)]});
      }
      backfill_.emplace(KeyOrder(std::move(keys)), description_.ordered);
      return;
    }
    case Phase::kSettle:
      if (number() >= join_xmax_) {
        uint64_t lsn = 0;
        SetState(ReadTableState(text_rows_.at(1).at(0), &lsn).Text());
        phase_ = Phase::kRead;
      } else {
        wake_at_us_ = now_us + kSettleAgainUs;
      }
      return;
    case Phase::kRead:
      if (reading_) return OnPieceRead();
      if (!text_rows_.empty() && text_rows_[0].size() == 1 && text_rows_[0][0].at(0))
        backfill_->Seen(ShardSnapshot::Parse(*text_rows_[0][0][0]));
      return;
    default:
      return;
  }
}

uint64_t ViewLeaf::PieceRows() const {
  uint64_t rows =
      std::clamp(description_.rows_estimated / kShareRead, kPieceRowsMin, kPieceRowsMax);
  if (row_bytes_ > 0) rows = std::min(rows, std::max<uint64_t>(1, kPieceBytesMax / row_bytes_));
  return rows;
}

// Whether a piece may be read while one waits for its mark.
bool ViewLeaf::ReadsAhead() const {
  uint64_t estimated = description_.rows_estimated;
  return read_.size() == 1 && (estimated < kFewRows || PieceRows() * 2 <= estimated / kShareRead);
}

void ViewLeaf::StartPiece(uint64_t rows_max) {
  static uint64_t marks = 0;
  piece_ = {};
  mark_passed_ = false;
  // Of this process alone: a mark of a piece that was read before it means nothing.
  piece_.mark = fmt::format("{}.{}.{}", getpid(), MonotonicUs(), ++marks);
  piece_.rows_max = rows_max;
  last_row_.clear();
  RemoteStatement rows;
  rows.result_formats = formats_;
  rows.chunk_quota = kPieceChunks;
  if (backfill_->ordered()) {
    const auto& cursor = ReadFrom();
    rows.sql = PieceSql(relation_, remote_columns_, description_.key_columns, cursor.has_value(),
                        piece_.rows_max);
    if (cursor)
      for (size_t i = 0; i < cursor->size(); i++)
        rows.params.push_back({backfill_->order().columns()[i].type, false, true, (*cursor)[i]});
  } else {
    rows.sql = WholeTableSql(relation_, remote_columns_);
  }
  reading_ = true;
  Run({Simple(kBeginPiece),
       Statement(fmt::format("SELECT pg_catalog.pg_current_snapshot(), "
                             "pg_catalog.pg_logical_emit_message(true, '{}', {})",
                             kMarkMessagePrefix,
                             QuoteLiteral(feed_->publication().substr(7) + " " + piece_.mark))),
       std::move(rows), Simple("COMMIT")});
}

// Behind what has been read, whether it counts already or not.
const std::optional<std::vector<std::string>>& ViewLeaf::ReadFrom() const {
  return read_.empty() ? backfill_->cursor() : read_.back().end;
}

void ViewLeaf::TakePiece(size_t index, const char* data, size_t size_bytes) {
  if (index == 1) {
    std::vector<RemoteRow> rows;
    AppendRemoteRows(data, size_bytes, &rows);
    if (rows.size() != 1 || rows[0].empty() || !rows[0][0])
      Throw(sqlstate::kProtocolViolation, "malformed answer from server \"{}\"", server_.name);
    piece_.snapshot = ShardSnapshot::Parse(*rows[0][0]);
    piece_.has_snapshot = true;
    if (read_.empty()) backfill_->Seen(piece_.snapshot);
    return;
  }
  size_t at = 0, last = 0;
  while (at < size_bytes) {
    last = at;
    at += 1 + LoadBig<uint32_t>(data + at + 1);
    piece_.row_count++;
  }
  if (backfill_->ordered()) last_row_.assign(data + last, size_bytes - last);
  piece_.rows.append(data, size_bytes);
}

// All its rows are here, and it is committed: its mark comes down the stream, or has come.
void ViewLeaf::OnPieceRead() {
  reading_ = false;
  if (mark_passed_) return ReadAgain();
  if (backfill_->ordered() && piece_.row_count > 0)
    row_bytes_ = piece_.rows.size() / piece_.row_count + 1;
  if (backfill_->ordered() && piece_.row_count >= piece_.rows_max) {
    std::vector<WireValue> values = RowValues(last_row_);
    piece_.end.emplace();
    for (const KeyOrder::KeyColumn& key : backfill_->order().columns()) {
      const WireValue& value = values.at(static_cast<size_t>(key.column));
      piece_.end->emplace_back(value.data, static_cast<size_t>(std::max(value.length, 0)));
    }
  }
  if (!piece_.end) phase_ = Phase::kCount;
  read_.push_back(std::exchange(piece_, {}));
}

std::string ViewLeaf::TakeRows() {
  if (!piece_.rows.empty()) dirty_ = false;
  return std::exchange(piece_.rows, {});
}

void ViewLeaf::Counted() {
  rows_read_ += read_.front().row_count;
  read_.pop_front();
  if (backfill_->complete()) {
    phase_ = Phase::kComplete;
    SubmitRequest({RequestKind::kUnpin, nullptr, pin_, 0});
    return;
  }
  // What the next piece sees was kept for the one that has counted now.
  const Piece& next = read_.empty() ? piece_ : read_.front();
  if (next.has_snapshot) backfill_->Seen(next.snapshot);
}

void ViewLeaf::ReadAgain() {
  if (task_ != nullptr) {
    task_.reset();
    SubmitRequest({RequestKind::kUnpin, nullptr, pin_, 0});
  }
  reading_ = false;
  piece_ = {};
  read_.clear();
  phase_ = Phase::kRead;
  if (!backfill_->ordered()) dirty_ = true;  // part of it may be in the copy
}

void ViewLeaf::Stop(const Error& error) {
  ReadAgain();
  phase_ = Phase::kFailed;
  error_ = error;
  dirty_ = false;
}

void ViewLeaf::Restart(bool join) {
  backfill_->Restart();
  ReadAgain();
  dirty_ = true;
  rows_read_ = 0;
  if (join) {
    phase_ = Phase::kJoin;
    state_.reset();
  }
}

}  // namespace sluice
