// Statements and portals: what a session keeps between Parse, Bind and Execute.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/arena.h"
#include "optimizer/planner.h"
#include "parser/raw.h"
#include "postmaster/completion.h"
#include "postmaster/cursor_store.h"
#include "postmaster/plan_cache.h"
#include "postmaster/running_query.h"

namespace sluice {

// A column as RowDescription tells it. The name is the owner's.
struct ColumnDescription {
  std::string name;
  Oid type = kTextOid;
  int32_t typmod = -1;
  // The relation's column that it is as it stands; drivers write changed rows back by it.
  Oid relation = kInvalidOid;
  int16_t attribute = 0;  // from 1
};

// One statement of a query string. `raw` may be a part of it: the query of a DECLARE, PREPARE,
// COPY, EXPLAIN.
struct Statement {
  bool analysed() const { return query != nullptr || completion != nullptr; }

  std::shared_ptr<const ParsedSql> parsed;
  std::optional<RawStatement> raw;  // nullopt: an empty query string
  bool is_query = false;            // SELECT, VALUES, TABLE; INSERT, UPDATE, DELETE …
  bool modifies = false;            // … the latter
  // Whether its answer has rows: not INSERT, UPDATE and DELETE without RETURNING.
  bool returns_rows() const { return is_query && (!modifies || !columns.empty()); }
  std::string_view text() const { return raw ? raw->text : std::string_view(); }

  std::vector<Oid> declared_types;  // as Parse or PREPARE gave them
  std::vector<Oid> param_types;     // as analysis found them

  // The analysis, good for one catalog generation and one search path. Literals keep what they
  // meant under the settings of then.
  std::shared_ptr<const Catalog> catalog;  // the query points into it
  std::unique_ptr<Arena> arena;
  const Query* query = nullptr;
  // Instead of `query`, or where that cannot be planned: how a shard completes it.
  std::shared_ptr<const CompletionQuery> completion;
  uint64_t catalog_generation = 0;
  uint64_t analysed_version = 0;  // Settings::version()
  std::vector<std::string> search_path;
  std::shared_ptr<PlanCache> plans;
  uint64_t settings_version = 0;       // of the plans
  bool has_session_functions = false;  // pg_backend_pid() and the like: analysed again to be run
  std::vector<ColumnDescription> columns;
};

// Rows that a command made itself (SHOW, EXPLAIN).
struct TextRows {
  std::vector<ColumnDescription> columns;
  std::vector<std::vector<std::optional<std::string>>> rows;
};

struct Portal {
  std::string name;
  std::shared_ptr<Statement> statement;
  std::unique_ptr<Arena> arena =
      std::make_unique<Arena>(HeapBlocks(), 2048);  // the parameters' values
  std::vector<PlanRequest::Param> params;
  std::vector<int16_t> formats;
  int level = 1;             // of the transaction it was made in
  bool cursor = false;       // made by DECLARE
  bool instrument = false;   // EXPLAIN ANALYZE
  std::string copy_options;  // COPY … TO STDOUT: PlanRequest's

  // A query's execution, or the rows of a command.
  std::unique_ptr<RunningQuery> running;
  std::optional<TextRows> rows;
  size_t rows_sent = 0;
  std::string tag;  // a command's
  bool started = false;
  // A cursor: rows fetched so far, and whether it stands behind the last; in a store: the row it
  // stands on.
  uint64_t position = 0;
  bool at_end = false;
  bool scroll = false, hold = false;
  std::unique_ptr<CursorStore> store;  // instead of `running`
};

// A statement's part `node` as a statement of its own.
std::shared_ptr<Statement> MakeStatement(const std::shared_ptr<const ParsedSql>& parsed,
                                         const RawStatement& raw, const PgQuery__Node* node);
// The command's name, as in its CommandComplete tag: "CREATE SERVER", "INSERT".
std::string_view CommandName(const RawStatement& raw);

}  // namespace sluice
