// DECLARE, FETCH, MOVE, CLOSE. A cursor runs its query as far as rows are fetched, and only
// forwards; one with SCROLL runs it to its end at the first FETCH and keeps the rows, one WITH HOLD
// at the transaction's end keeps those that are left.
#include <limits>
#include <pg_query/pg_query.pb-c.h>

#include "postmaster/cursor_store.h"
#include "postmaster/session.h"

namespace sluice {
namespace {

// Bits of DECLARE's options (parsenodes.h).
constexpr int kBinary = 1, kScroll = 2, kNoScroll = 4, kInsensitive = 8, kHold = 0x20;
constexpr int64_t kFetchAll = std::numeric_limits<int64_t>::max();
constexpr SqlState kInvalidCursorDefinition = MakeSqlState("42P11");

[[noreturn]] void ThrowForwardOnly() {
  Error error = MakeError(sqlstate::kObjectNotInPrerequisiteState, "cursor can only scan forward");
  throw QueryError(error.Hint("Declare it with SCROLL option to enable backward scan."));
}

bool IsMove(const RowSink& sink) {
  return dynamic_cast<const CountingSink*>(&sink) != nullptr;
}

// Rows that are locked must be those that are there when they are fetched.
void CheckLocks(const Query& query, int options) {
  for (const Cte& cte : query.ctes)
    if (cte.query->command != QueryCommand::kSelect)
      Refuse("DECLARE CURSOR must not contain data-modifying statements in WITH");
  if (query.row_marks.empty()) return;
  std::string clause = NameOf(query.row_marks[0].strength);
  auto forbid = [&](int option, SqlState state, const char* kind, const char* ending,
                    const char* detail) {
    if ((options & option) == 0) return;
    Error error = MakeError(state, "DECLARE {} ... {} {}", kind, clause, ending);
    throw QueryError(error.Detail(detail));
  };
  forbid(kHold, sqlstate::kFeatureNotSupported, "CURSOR WITH HOLD", "is not supported",
         "Holdable cursors must be READ ONLY.");
  forbid(kScroll, sqlstate::kFeatureNotSupported, "SCROLL CURSOR", "is not supported",
         "Scrollable cursors must be READ ONLY.");
  forbid(kInsensitive, kInvalidCursorDefinition, "INSENSITIVE CURSOR", "is not valid",
         "Insensitive cursors must be READ ONLY.");
}

}  // namespace

Session::CommandResult Session::RunDeclare(const std::shared_ptr<Statement>& statement) {
  const PgQuery__DeclareCursorStmt& command = *statement->raw->node->declare_cursor_stmt;
  bool hold = (command.options & kHold) != 0;
  if (!hold && !transaction_.in_block())
    Throw(sqlstate::kNoActiveSqlTransaction,
          "DECLARE CURSOR can only be used in transaction blocks");
  if ((command.options & kScroll) != 0 && (command.options & kNoScroll) != 0)
    Throw(kInvalidCursorDefinition, "cannot specify both SCROLL and NO SCROLL");
  std::string name = command.portalname;
  if (portals_.contains(name))
    Throw(sqlstate::kDuplicateCursor, "cursor \"{}\" already exists", name);
  auto portal = std::make_shared<Portal>();
  portal->name = name;
  portal->cursor = true;
  portal->hold = hold;
  portal->scroll = (command.options & kScroll) != 0;
  portal->level = transaction_.level();
  portal->statement = MakeStatement(statement->parsed, *statement->raw, command.query);
  if ((command.options & kBinary) != 0) portal->formats = {1};
  if (!portal->statement->is_query)
    Refuse("DECLARE CURSOR for {} is not supported", CommandName(*portal->statement->raw));
  StartPortal(portal.get());
  if (portal->statement->query != nullptr) CheckLocks(*portal->statement->query, command.options);
  // The statement's rows are those of now, whenever they are fetched.
  portal->running->executor();
  portals_[name] = std::move(portal);
  return {"DECLARE CURSOR", std::nullopt};
}

// Runs the rest of the cursor's query into its store.
void Session::StoreCursor(Portal* portal) {
  if (portal->store != nullptr) return;
  auto store = std::make_unique<CursorStore>(
      portal->running->plan().columns, portal->position + 1,
      static_cast<size_t>(settings_.Integer("work_mem")) * 1024, MakeQuerySession().temp_directory);
  portal->running->Run(store.get(), 0);
  if (portal->at_end) portal->position++;
  portal->store = std::move(store);
  portal->running.reset();
}

// At the transaction's end: those WITH HOLD go on without their query.
void Session::HoldCursors() {
  for (auto& [name, portal] : portals_) {
    if (!portal->hold || portal->level < 0) continue;
    StoreCursor(portal.get());
    portal->level = -1;
  }
}

std::shared_ptr<Portal> Session::FindCursor(const std::string& name) const {
  auto found = portals_.find(name);
  if (found == portals_.end() || !found->second->statement->is_query)
    Throw(sqlstate::kInvalidCursorName, "cursor \"{}\" does not exist", name);
  return found->second;
}

// FETCH and MOVE on a store: the cursor stands before the first row (0), on a row, or behind the
// last. Returns how many rows were given.
uint64_t Session::FetchStored(Portal* portal, int direction, int64_t count, RowSink* sink) {
  CursorStore& store = *portal->store;
  uint64_t end = store.last() + 1;
  uint64_t& at = portal->position;
  auto go_to = [&](uint64_t row) -> uint64_t {
    at = std::min(row, end);
    if (at == 0 || at == end) return 0;
    store.Give(at, 1, true, sink);
    return 1;
  };
  if (direction == PG_QUERY__FETCH_DIRECTION__FETCH_ABSOLUTE) {
    uint64_t back = count < 0 ? static_cast<uint64_t>(-count) : 0;
    uint64_t row = count >= 0 ? static_cast<uint64_t>(count) : back > end ? 0 : end - back;
    if (!portal->scroll && row <= at) ThrowForwardOnly();
    return go_to(row);
  }
  bool forward = count >= 0;
  if (direction == PG_QUERY__FETCH_DIRECTION__FETCH_BACKWARD) forward = !forward;
  uint64_t wanted = static_cast<uint64_t>(count < 0 ? -count : count);
  bool on_row = at > 0 && at < end;
  if (!portal->scroll && (!forward || (wanted == 0 && on_row && !IsMove(*sink))))
    ThrowForwardOnly();
  if (wanted == 0) return !on_row ? 0 : IsMove(*sink) ? 1 : go_to(at);
  uint64_t there = forward ? end - std::min(end, at + 1) : at == 0 ? 0 : at - 1;
  if (direction == PG_QUERY__FETCH_DIRECTION__FETCH_RELATIVE) {
    if (wanted > there) return go_to(forward ? end : 0);
    return go_to(forward ? at + wanted : at - wanted);
  }
  uint64_t given = std::min(wanted, there);
  store.Give(forward ? at + 1 : at - 1, given, forward, sink);
  if (given < wanted || count == kFetchAll)
    at = forward ? end : 0;
  else
    at = forward ? at + given : at - given;
  return given;
}

// On a query that runs: forwards only, in other words: RELATIVE n skips n - 1 rows, ABSOLUTE n
// those before the n-th.
uint64_t Session::FetchRunning(Portal* portal, int direction, int64_t count, RowSink* sink) {
  int64_t skip = 0;
  if (direction == PG_QUERY__FETCH_DIRECTION__FETCH_RELATIVE ||
      direction == PG_QUERY__FETCH_DIRECTION__FETCH_ABSOLUTE) {
    bool relative = direction == PG_QUERY__FETCH_DIRECTION__FETCH_RELATIVE;
    if (!relative || count != 0) {
      skip = count - 1;
      if (!relative) skip -= static_cast<int64_t>(portal->position);
      count = 1;
    }
  }
  if (direction == PG_QUERY__FETCH_DIRECTION__FETCH_BACKWARD || count < 0 || skip < 0)
    ThrowForwardOnly();
  if (count == 0) {
    bool on_row = portal->position > 0 && !portal->at_end;
    if (on_row && !IsMove(*sink)) ThrowForwardOnly();
    return on_row ? 1 : 0;
  }
  CountingSink nowhere;
  RunningQuery& running = *portal->running;
  if (skip > 0) {
    uint64_t skipped = running.Run(&nowhere, static_cast<uint64_t>(skip));
    portal->position += skipped;
    if (skipped < static_cast<uint64_t>(skip)) {
      portal->at_end = true;
      return 0;
    }
  }
  uint64_t rows_max = count == kFetchAll ? 0 : static_cast<uint64_t>(count);
  uint64_t rows = running.Run(sink, rows_max);
  portal->position += rows;
  portal->at_end = rows_max == 0 || rows < rows_max;
  return rows;
}

Session::CommandResult Session::RunClose(const RawStatement& raw) {
  const char* name = raw.node->close_portal_stmt->portalname;
  if (name == nullptr || *name == 0) {
    std::erase_if(portals_, [](const auto& entry) { return entry.second->cursor; });
    return {"CLOSE CURSOR ALL", std::nullopt};
  }
  FindCursor(name);
  portals_.erase(name);
  return {"CLOSE CURSOR", std::nullopt};
}

std::string Session::RunFetch(const RawStatement& raw, std::span<const int16_t> formats,
                              bool describe) {
  const PgQuery__FetchStmt& command = *raw.node->fetch_stmt;
  auto portal = FindCursor(command.portalname);
  if (portal->store == nullptr) StartPortal(portal.get());
  if (portal->scroll) StoreCursor(portal.get());
  std::span<const ResultColumn> columns =
      portal->store != nullptr ? portal->store->columns() : portal->running->plan().columns;
  // The cursor's own format, unless it's text and the protocol asks otherwise.
  bool own = !portal->formats.empty() ||
             (portal->running != nullptr && portal->running->plan().pass_through);
  std::vector<int16_t> used =
      !own ? std::vector<int16_t>(formats.begin(), formats.end()) : portal->formats;
  CheckFormats(columns, used);
  if (describe && !command.ismove) SendRowDescription(portal->statement->columns, used);
  CountingSink nowhere;
  DataRowSink client(&client_, columns, used, session_settings_);
  RowSink* sink = command.ismove ? static_cast<RowSink*>(&nowhere) : &client;
  uint64_t rows = portal->store != nullptr
                      ? FetchStored(portal.get(), command.direction, command.how_many, sink)
                      : FetchRunning(portal.get(), command.direction, command.how_many, sink);
  return fmt::format("{} {}", command.ismove ? "MOVE" : "FETCH", rows);
}

}  // namespace sluice
