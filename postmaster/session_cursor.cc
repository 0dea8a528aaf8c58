// DECLARE, FETCH, MOVE, CLOSE: forward-only cursors, which live as long as their transaction.
#include <limits>
#include <pg_query/pg_query.pb-c.h>

#include "postmaster/session.h"

namespace sluice {
namespace {

// Bits of DECLARE's options (parsenodes.h).
constexpr int kBinary = 1, kScroll = 2, kHold = 0x20;
constexpr int64_t kFetchAll = std::numeric_limits<int64_t>::max();

}  // namespace

Session::CommandResult Session::RunDeclare(const std::shared_ptr<Statement>& statement) {
  const PgQuery__DeclareCursorStmt& command = *statement->raw->node->declare_cursor_stmt;
  if ((command.options & kHold) != 0) Refuse("DECLARE CURSOR WITH HOLD is not supported");
  if ((command.options & kScroll) != 0) Refuse("DECLARE SCROLL CURSOR is not supported");
  if (!transaction_.in_block())
    Throw(sqlstate::kNoActiveSqlTransaction,
          "DECLARE CURSOR can only be used in transaction blocks");
  std::string name = command.portalname;
  if (portals_.contains(name))
    Throw(sqlstate::kDuplicateCursor, "cursor \"{}\" already exists", name);
  auto portal = std::make_shared<Portal>();
  portal->name = name;
  portal->cursor = true;
  portal->level = transaction_.level();
  portal->statement = MakeStatement(statement->parsed, *statement->raw, command.query);
  if ((command.options & kBinary) != 0) portal->formats = {1};
  if (!portal->statement->is_query)
    Refuse("DECLARE CURSOR for {} is not supported", CommandName(*portal->statement->raw));
  StartPortal(portal.get());
  // The statement's rows are those of now, whenever they are fetched.
  portal->running->executor();
  portals_[name] = std::move(portal);
  return {"DECLARE CURSOR", std::nullopt};
}

std::shared_ptr<Portal> Session::FindCursor(const std::string& name) const {
  auto found = portals_.find(name);
  if (found == portals_.end() || !found->second->statement->is_query)
    Throw(sqlstate::kInvalidCursorName, "cursor \"{}\" does not exist", name);
  return found->second;
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
  StartPortal(portal.get());
  int64_t count = command.how_many;
  auto direction = command.direction;
  // Forward in other words: RELATIVE n skips n - 1 rows, ABSOLUTE n those before the n-th.
  int64_t skip = 0;
  if (direction == PG_QUERY__FETCH_DIRECTION__FETCH_RELATIVE ||
      direction == PG_QUERY__FETCH_DIRECTION__FETCH_ABSOLUTE) {
    skip = count - 1;
    if (direction == PG_QUERY__FETCH_DIRECTION__FETCH_ABSOLUTE)
      skip -= static_cast<int64_t>(portal->position);
    count = 1;
  }
  if (direction == PG_QUERY__FETCH_DIRECTION__FETCH_BACKWARD || count < 0 || skip < 0) {
    Error error =
        MakeError(sqlstate::kObjectNotInPrerequisiteState, "cursor can only scan forward");
    throw QueryError(error.Hint("Declare it with SCROLL option to enable backward scan."));
  }
  if (count == 0 && skip == 0) Refuse("{} 0 is not supported", command.ismove ? "MOVE" : "FETCH");
  // The cursor's own format, unless it's text and the protocol asks otherwise.
  bool own = !portal->formats.empty() || portal->running->plan().pass_through;
  std::vector<int16_t> used =
      !own ? std::vector<int16_t>(formats.begin(), formats.end()) : portal->formats;
  CheckFormats(portal->running->plan().columns, used);
  if (describe && !command.ismove) SendRowDescription(portal->statement->columns, used);
  CountingSink nowhere;
  if (skip > 0) portal->position += portal->running->Run(&nowhere, static_cast<uint64_t>(skip));
  uint64_t rows = 0;
  uint64_t rows_max = count == kFetchAll ? 0 : static_cast<uint64_t>(count);
  if (count > 0)
    rows = command.ismove ? portal->running->Run(&nowhere, rows_max)
                          : SendQueryRows(portal.get(), used, rows_max);
  portal->position += rows;
  return fmt::format("{} {}", command.ismove ? "MOVE" : "FETCH", rows);
}

}  // namespace sluice
