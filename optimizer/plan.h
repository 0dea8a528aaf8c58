// The plan: const plain data in the query's shared arena. Workers read it in place; all that
// changes at run time is the executor's, by node id. Nodes derive from Plan without virtual
// functions: `kind` says what to cast to.
//
// In a Plan's expressions a kColumn refers to the node's input: rel = kInput (the only child, or
// the outer child of a join), rel = kInner (a join's inner child); column = that child's output
// column.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "parser/query.h"
#include "types/oid.h"

namespace sluice {

enum class PlanKind : uint8_t {
  kResult,
  kValuesScan,
  kFunctionScan,
  kVirtualScan,
  kViewScan,
  kForeignScan,
  kAppend,
  kMergeAppend,
  kProject,
  kFilter,
  kAggregate,
  kHashJoin,
  kNestLoop,
  kMaterialize,
  kSort,
  kLimit,
  kDistinct,
  kSetOp,
  kGather,
  kGatherMerge,
  kCompletion,
  kModify,
  kCteScan,
  kApply,
  kRecursiveUnion,
  kWorkTableScan,
  kWindowAgg,
};

struct OutputColumn {
  std::string_view name;
  Oid type;
  int32_t typmod;
  Oid collation;
};

struct Plan {
  PlanKind kind;
  int32_t id;  // unique in the statement, from 0; shared and instrumentation state is found by it
  // Every process of the Gather above runs this node, each on a share of the rows (its
  // parallel-aware descendants divide them). False below a Gather only for the inner sides that
  // every worker repeats.
  bool partial = false;
  double rows = 0;  // estimate
  double startup_cost = 0, total_cost = 0;
  int32_t width_bytes = 0;  // estimate
  std::span<const OutputColumn> output;
  std::span<const Plan* const> children;
  // Sub plans that the node's expressions run (indexes into PlannedStatement::sub_plans).
  std::span<const int> sub_plans;
  // Per-row parameters, set above the node, that its rows depend on. Rescan must compute anew what
  // depends on them; what depends on none may be kept.
  std::span<const int> depends_on;
};

// One row, the expressions over nothing (SELECT without FROM); or no row where one_time_filter is
// not true.
struct ResultPlan : Plan {
  std::span<const Expr* const> expressions;
  const Expr* one_time_filter = nullptr;
};

struct ValuesScanPlan : Plan {
  std::span<const std::span<const Expr* const>> rows_of_expressions;
};

// generate_series(start, stop[, step]) of int4, int8, numeric, timestamp(tz); unnest(array).
struct FunctionScanPlan : Plan {
  const Expr* call;
  bool ordinality = false;
};

// A view that the server itself answers (pg_stat_activity, sluice.…), through
// executor/virtual_tables.h.
struct VirtualScanPlan : Plan {
  std::string_view name;
  std::span<const int> columns;  // of the virtual table
};

// The stored rows of a live view; in a view's own plan also of the copy of a table. Read through
// ExecutorContext::scan_view, by the leader only.
struct ViewScanPlan : Plan {
  Oid relation;
  std::string_view relation_name;             // for EXPLAIN
  std::span<const std::string_view> columns;  // the relation's, by name: one an output column
  // The view's index by which the Filter above is looked up; kInvalidOid: by its key or not at all.
  Oid index = kInvalidOid;
  std::string_view index_name = {};
};

// One statement on one server: one stream. Its rows arrive in the result format `binary[i]` a
// column.
struct ForeignScanPlan : Plan {
  Oid server;  // catalog oid
  std::string_view server_name;
  std::string_view relation_names;  // for EXPLAIN: "orders_1 orders", "(orders_1) INNER JOIN (…)"
  std::string_view sql;             // "Remote SQL"
  std::span<const Expr* const>
      params;  // $1… of `sql`; constants, kParam or kExecParam; sent typed, binary
  std::span<const bool> binary;       // a output column
  bool lines = false;                 // the lines wrapper: rows are CSV lines of the whole table
  std::span<const int> line_columns;  // lines: output column → column of the CSV row
  std::span<const Oid> line_types;
  uint32_t row_limit = 0;
  bool ordered = false;  // the shard sorts: an ordered merge reads this stream
  bool copy = false;     // `sql` is a COPY … TO STDOUT: its rows come as CopyData
  bool writes = false;   // `sql` changes rows …
  bool locks = false;    // … or locks them
};

// Readiness-based Append. Children that are not partial come in through a Scatter each: foreign
// scans are produced by the io worker, any other child by whichever participant is free.
// `parallel`: the ready queue is shared by all participants of the Gather above. claim_whole:
// participants claim whole children instead (SET parallel_append_claim = 'plan').
struct AppendPlan : Plan {
  bool parallel = false;
  bool claim_whole = false;
};

// Ordered merge of sorted children by `keys` (targets index the output).
struct MergeAppendPlan : Plan {
  std::span<const SortKey> keys;
};

struct ProjectPlan : Plan {
  std::span<const Expr* const> expressions;
};

struct FilterPlan : Plan {
  const Expr* condition;
};

enum class AggregateMode : uint8_t {
  kSingle,   // rows in, results out
  kPartial,  // rows in, one opaque bytea state an aggregate out (behind the group columns)
  kFinal,    // states in (input columns group_columns… then one an aggregate), results out
};

// Aggregates that only plans use: they combine what shards or a partial step have aggregated.
inline constexpr Oid kSumInt8ToInt8 = 1;  // sum of counts: int8 → int8, 0 over no rows
inline constexpr Oid kFirstInternalAggregate = 1, kLastInternalAggregate = 15;

struct AggregateCall {
  Oid function;                       // pg_proc oid or one of the internal ones
  std::span<const Expr* const> args;  // over the input (kSingle, kPartial)
  Oid result_type;
  Oid input_type;  // of args[0] or kInvalidOid: kFinal needs it too
  Oid collation = kInvalidOid;
  bool star = false;
  bool distinct = false;
  const Expr* filter = nullptr;
  std::span<const SortKey> order_by = {};  // by `expr` over the input
  int state_column = -1;                   // kFinal: input column
};

// Output: the group expressions, then the aggregates. No group expressions: exactly one row out
// (kSingle, kFinal). Hashes; spills past work_mem.
//
// With grouping sets (kSingle only) each row counts once for each set, with the group expressions
// that are not in it NULL; the set's number (int4) comes out between groups and aggregates.
struct AggregatePlan : Plan {
  AggregateMode mode;
  std::span<const Expr* const> group_by;                // over the input
  std::span<const std::span<const int>> grouping_sets;  // indexes into group_by
  std::span<const AggregateCall> calls;
};

// children[0] outer (probed), children[1] inner (built). Output: outer columns, then inner columns
// (semi and anti: outer only). `condition` (over both) must hold too for a match. null_aware: NOT
// IN's anti join. `shared_build` (partial joins): the participants build one table together.
struct HashJoinPlan : Plan {
  JoinType type;
  std::span<const Expr*const> outer_keys, inner_keys;
  const Expr* condition = nullptr;
  bool null_aware = false;
  bool shared_build = false;
};

struct NestLoopPlan : Plan {
  JoinType type;
  const Expr* condition = nullptr;
};

// Keeps its child's rows. With index_keys (over its rows) it keeps them by the keys' hash, as long
// as they fit into memory, and a scan gives those that may have the keys' present values (lookup,
// over nothing): too many rows at worst, so the same condition is applied above.
struct MaterializePlan : Plan {
  std::span<const Expr*const> index_keys, lookup;
};

// A nested loop that runs its inner child for each outer row, with `arguments` (over the outer row)
// in the parameters `params`: LATERAL. Output as of a hash join; kInner, kLeft, kSemi and kAnti.
struct ApplyPlan : Plan {
  JoinType type;
  std::span<const int> params;
  std::span<const Expr* const> arguments;
  const Expr* condition = nullptr;  // over both
};

// `limit` ≥ 0: only that many first rows are wanted (top-N heap), limit_expr is added up by the
// planner's executor hook at start: bound = limit + offset.
struct SortPlan : Plan {
  std::span<const SortKey> keys;  // target = output column of the child
  const Expr* bound = nullptr;    // int8 expression: top-N; nullptr: all
};

struct LimitPlan : Plan {
  const Expr* limit = nullptr;  // int8, NULL = all
  const Expr* offset = nullptr;
  bool with_ties = false;
  std::span<const SortKey> keys;  // with_ties
};

// All columns distinct (hash), or DISTINCT ON: first row of each group of equal `columns` in sorted
// input.
struct DistinctPlan : Plan {
  std::span<const int> columns;
  bool sorted_input = false;
};

struct SetOpPlan : Plan {  // UNION ALL is an Append, UNION an Append with a Distinct above
  SetOpKind op;
  bool all;
};

// Runs children[0] in `workers` workers (and here too), rows in any order.
struct GatherPlan : Plan {
  int32_t workers;
};
// The same for children whose rows come sorted by `keys`.
struct GatherMergePlan : Plan {
  int32_t workers;
  std::span<const SortKey> keys;
};

// WITH RECURSIVE: children[0]'s rows, then children[1]'s again and again, over the rows of the
// round before, until there are no new ones. Without `all` rows that were there already are left
// out. The parameter `work_table` is the round's number; nodes that depend on it compute anew each
// round.
struct RecursiveUnionPlan : Plan {
  bool all;
  int work_table;
};
struct WorkTableScanPlan : Plan {
  int work_table;
};

enum class WindowKind : uint8_t {
  kAggregate,
  kRowNumber,
  kRank,
  kDenseRank,
  kPercentRank,
  kCumeDist,
  kNtile,
  kLag,
  kLead,
  kFirstValue,
  kLastValue,
  kNthValue,
};

struct WindowCall {
  WindowKind kind;
  AggregateCall aggregate;  // args, filter and result_type of the others too
};

// One window's functions, over input sorted by partition_by, then order_by. Output: the input's
// columns, then the calls.
struct WindowAggPlan : Plan {
  std::span<const SortKey> partition_by, order_by;  // targets: input columns
  int frame_options;                                // Postgres's FRAMEOPTION_ bits
  const Expr* start_offset = nullptr;               // over nothing
  const Expr* end_offset = nullptr;
  // RANGE with an offset: a row's key and the keys its frame starts and ends with, over the input.
  const Expr* range_key = nullptr;
  const Expr* range_start = nullptr;
  const Expr* range_end = nullptr;
  std::span<const WindowCall> calls;
};

// Completion on a shard: each child's rows are copied into a temporary table on one server and
// `sql` runs there; its rows are the output.
struct CompletionPlan : Plan {
  Oid server;
  std::string_view server_name;
  struct Input {
    std::string_view create_sql;  // CREATE TEMPORARY TABLE …; empty: `setup` made it
    // COPY pg_temp.… (…) FROM STDIN (FORMAT binary). The child's scans ask for every column in the
    // binary format, also of types without a codec: such a column's bytes are to be copied as they
    // are.
    std::string_view copy_sql;
  };
  std::span<const Input> inputs;  // one a child
  std::span<const std::string_view>
      setup;  // run first, in order: BEGIN, SET LOCAL, CREATE TEMPORARY …
  std::string_view sql;
  std::span<const Expr* const> params;
  std::span<const bool> binary;
};

enum class ModifyMethod : uint8_t {
  kRemote,  // children[0] is a foreign scan, or an Append of some, whose statements write
  kInsert,  // children[0]'s rows are written, each to its place
  kById,    // UPDATE, DELETE: children[0]'s rows say which row of which target, and the new values
};

// A table on a server that rows are written to. A statement is head + a list of VALUES, whose
// parameters come behind `params`, + tail.
struct ModifyTarget {
  Oid leaf;  // catalog oid
  Oid server;
  std::string_view server_name;
  std::span<const Expr* const> params;
  std::string_view insert_head, insert_tail;
  std::string_view copy_sql;  // COPY … FROM STDIN, in binary if every column has a codec
  std::string_view change_head, change_tail;  // kById: UPDATE or DELETE … (VALUES … ) …
  std::string_view delete_head, delete_tail;  // kById: takes away a row that moves
};

// INSERT, UPDATE, DELETE: runs to its end before it gives a row (RETURNING's). The rows of kById's
// child are: leaf oid, ctid, tableoid, the values of the statement's VALUES list, and what else
// RETURNING and moved rows need.
struct ModifyPlan : Plan {
  QueryCommand command;
  ModifyMethod method;
  std::string_view relation_name;  // for EXPLAIN
  Oid relation;                    // catalog oid: its partition rule says where a row goes
  bool replicated = false;         // every row goes to every target
  bool even = false;               // to any
  std::span<const ModifyTarget> targets;
  // kInsert and moved rows: the values of all partition keys, over the row; the row's columns in
  // the child's output; the SQL names of their types.
  std::span<const Expr* const> keys;
  std::span<const int> row_columns;
  std::span<const std::string_view> row_types;
  bool may_copy = false;
  bool copy_binary = false;
  bool single_row = false;  // no more than one row comes
  // kById: the new values in the child's output, likewise. moves: rows may change their place; the
  // row_columns are the whole new row then.
  std::span<const int> value_columns;
  std::span<const std::string_view> value_types;
  bool moves = false;
  // What a statement with RETURNING gives back (kById: behind the number of the child's row), and
  // of it, with the child's row as the outer and that as the inner side, what is asked for; none:
  // the same.
  std::span<const OutputColumn> shard_output;
  std::span<const bool> binary;
  std::span<const Expr* const> returning;
};

// The rows that a data-modifying WITH query has returned. Each scan has a copy of its own.
struct CteScanPlan : Plan {
  int cte;   // index into PlannedStatement::ctes
  int scan;  // of its scans
};

// A data-modifying WITH query: run once, to its end, before what stands behind it.
struct CtePlan {
  const Plan* plan;
  int scans;
};

struct InitPlan {
  const Plan*
      plan;   // run once by the leader before the main plan, on first use by a stream or expression
  int param;  // kExecParam
  SublinkKind kind;  // kScalar (21000 past one row), kExists, kArray
  Oid type;
};

// A subquery that an expression (kSubPlan) runs for the row that it is computed for: the
// expression's args are put into `params`, the plan is rescanned. Results are remembered by their
// parameters' values.
struct SubPlan {
  const Plan* plan;
  SublinkKind kind;
  Oid type;
  std::span<const int> params;
  const Expr* test = nullptr;  // kAny, kAll: the comparison, over the plan's rows and the params
  // kAny by equality: test is hash_keys (over the plan's rows) = hash_values (over the params), and
  // the plan's rows depend on no parameter: they are hashed once.
  std::span<const Expr*const> hash_keys, hash_values;
  bool is_volatile = false;         // nothing is remembered
  std::span<const int> depends_on;  // per-row parameters set elsewhere
};

// How rows leave.
struct ResultColumn {
  std::string_view name;
  Oid type;
  int32_t typmod;
  Oid collation;
};

struct PlannedStatement {
  const Plan* root = nullptr;
  std::span<const InitPlan> init_plans;
  std::span<const CtePlan> ctes;
  std::span<const SubPlan> sub_plans;
  std::span<const ResultColumn>
      columns;  // output columns of root that the client gets: the first ones
  int32_t node_count = 0;
  int32_t exec_param_count = 0;
  // The root is an Append of foreign scans (or one foreign scan) whose DataRow messages can go to
  // the client as they are: the scans were asked for exactly the client's columns and formats.
  bool pass_through = false;
  bool copy_out = false;  // … and what comes are CopyData messages: PlanRequest::copy_options
  bool uses_params = false;
  QueryCommand command = QueryCommand::kSelect;
  // Whether it writes; the servers that its scans write, or lock rows of, and whether each of them
  // gets no more than one such statement and nothing else. Where an INSERT's rows go is found while
  // it runs.
  bool writes = false;
  std::span<const Oid> written_servers;
  bool one_statement_each = false;
};

}  // namespace sluice
