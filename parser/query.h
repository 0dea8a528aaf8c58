// The analysed query: names and types resolved. Plain data in one arena, no virtual functions, so
// that the optimizer can copy expressions into shared memory and workers can read them in place.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "types/oid.h"

namespace sluice {

struct Relation;  // catalog/catalog.h
struct Query;

enum class ExprKind : uint8_t {
  kConst,   // value / is_null
  kColumn,  // in a Query: rel = index into Query::rels, column = its column from 0, levels_up
            // in a Plan: rel = kInput (or kOuter / kInner for joins), column = output column there
  kParam,   // $1 is param 0
  kExecParam,  // a plan's own parameter: the result of init plan `param`, or, if `per_row`, a value
               // of an outer row (plan.h: SubPlan, ApplyPlan)
  kCall,       // function or operator: `function`; `oper` if written as an operator
  kAggregate,  // function, args, distinct, filter, order_by; star for count(*)
  kWindow,     // window function: function, args, filter; star; `param` = index into Query::windows
  kAnd,
  kOr,
  kNot,
  kIsNull,
  kIsNotNull,  // args[0]
  kIsTrue,
  kIsNotTrue,
  kIsFalse,
  kIsNotFalse,
  kIsUnknown,
  kIsNotUnknown,
  kIsDistinct,
  kIsNotDistinct,  // args[0], args[1]; function = the equality operator's
  kCase,  // args: [when1, then1, when2, then2, …, else] (else always there, maybe a NULL const);
          // CASE x WHEN … is rewritten to x = … conditions by analysis
  kCoalesce,
  kGreatest,
  kLeast,
  kNullIf,       // args[0], args[1]; function = the equality operator's
  kRelabel,      // binary-coercible cast: the same bytes under another type
  kCoerceViaIo,  // text output of args[0] → input function of `type`
  kArrayCoerce,  // element by element; function = the element cast; 0: the same bytes (param 0), or
                 // by text output and input (param 1)
  kAnyOf,        // args[0] op ANY (args[1] array); function = op's
  kAllOf,
  kArray,     // ARRAY[…]
  kRow,       // only recognised
  kSubquery,  // sublink: `sublink`, `subquery`, args (test expressions for ANY/ALL)
  kSqlValue,  // CURRENT_DATE, CURRENT_TIMESTAMP, …: `param` = SQLValueFunctionOp
  kCollate,   // args[0] COLLATE `collation`: the same value
  kGrouping,  // GROUPING(args): a bit for each arg that the row's grouping set does not hold. In
              // the planner, without args: the number of the row's grouping set
  kSubPlan,   // in a plan: the result of sub plan `param`, run for the values of args
};

inline constexpr int kInput = -1, kOuter = -1, kInner = -2;

enum class SublinkKind : uint8_t { kExists, kAny, kAll, kScalar, kArray };

struct Expr;

struct SortKey {
  const Expr* expr;  // in Query::order_by: nullptr, see `target`
  int target;  // index into Query::targets (Query) or output column (Plan); -1 if `expr` is used
  Oid less_operator;  // the ordering operator (pg_operator oid): < for ASC, > for DESC
  bool descending;
  bool nulls_first;
  Oid collation;
};

struct Expr {
  ExprKind kind;
  Oid type = kInvalidOid;
  int32_t typmod = -1;
  Oid collation = kInvalidOid;
  int location = -1;  // byte offset in the query text, -1 unknown

  // kConst. The value is in the binary wire format (HasBinaryCodec) or else in text format.
  bool is_null = false;
  std::string_view value = {};

  // kColumn
  int rel = 0;
  int column = 0;
  int levels_up = 0;  // 0: this query; 1: the enclosing one (correlated); …

  int param = 0;         // kParam, kExecParam, kSqlValue, kSubPlan
  bool per_row = false;  // kExecParam

  Oid function = kInvalidOid;  // pg_proc oid
  Oid oper = kInvalidOid;      // pg_operator oid
  Oid input_collation = kInvalidOid;
  bool explicit_cast =
      false;  // kCall, kRelabel, kCoerceViaIo: written (or implied) as a cast to type/typmod
  bool variadic = false;

  // kAggregate
  bool star = false;
  bool distinct = false;
  const Expr* filter = nullptr;
  std::span<const SortKey> order_by = {};
  int aggregate_levels_up = 0;

  SublinkKind sublink = SublinkKind::kScalar;
  const Query* subquery = nullptr;
  // For kAny/kAll sublinks: args[i] is the left side; the comparison functions are here.
  std::span<const Oid> sublink_operators = {};  // pg_operator oids, one a subquery column

  std::span<const Expr* const> args = {};
};

enum class JoinType : uint8_t { kInner, kLeft, kRight, kFull, kSemi, kAnti };

// FROM as a tree: leaves are rels; a comma is an inner join without condition.
struct JoinTree {
  bool is_leaf;
  int rel;  // leaf
  JoinType type = JoinType::kInner;
  const JoinTree* left = nullptr;
  const JoinTree* right = nullptr;
  const Expr* on = nullptr;  // may be null
  bool lateral = false;      // the right side refers to the left
};

enum class RelKind : uint8_t {
  kTable,
  kSubquery,
  kValues,
  kFunction,
  kCte,
  kVirtual,
  kExcluded,  // ON CONFLICT's row that was not inserted: `table` is the target
};

struct QueryColumn {
  std::string_view name;
  Oid type;
  int32_t typmod;
  Oid collation;
};

struct QueryRel {
  RelKind kind;
  std::string_view alias;
  std::span<const QueryColumn> columns;
  // kTable: what the catalog knows; `only`: FROM ONLY. kVirtual: a system view by name.
  const Relation* table = nullptr;
  bool only = false;
  std::string_view virtual_name = {};
  const Query* subquery = nullptr;  // kSubquery
  const Relation* view = nullptr;   // the view that `subquery` stands for; nullptr: none
  std::span<const std::span<const Expr* const>> values = {};  // kValues
  const Expr* function = nullptr;                             // kFunction (set-returning)
  bool ordinality = false;
  int cte = -1;  // kCte: index into ctes of the query `cte_levels_up` above
  int cte_levels_up = 0;
  bool lateral = false;
};

struct Target {
  const Expr* expr;
  std::string_view name;
  bool junk;  // sorted or grouped by, but not output
};

enum class SetOpKind : uint8_t { kUnion, kIntersect, kExcept };

// Leaves stand one query level below the query that has the tree: their outer references count from
// there, and its ctes are one level up. Their columns have the types of the whole already.
struct SetOpTree {
  const Query* leaf = nullptr;  // or:
  SetOpKind kind = SetOpKind::kUnion;
  bool all = false;
  const SetOpTree* left = nullptr;
  const SetOpTree* right = nullptr;
};

struct Cte {
  std::string_view name;
  const Query* query;
  bool recursive;     // refers to itself: query->set_op is first UNION [ALL] recursive
  bool materialized;  // MATERIALIZED written, or referenced more than once
  int references;
  bool never_materialized;  // NOT MATERIALIZED written
};

// OVER (…) or WINDOW w AS (…).
struct WindowClause {
  std::span<const int> partition_by;  // indexes into targets
  std::span<const SortKey> order_by;
  int frame_options;         // Postgres's FRAMEOPTION_ bits (nodes/parsenodes.h)
  const Expr* start_offset;  // ROWS and GROUPS: int8; nullptr where the frame has none
  const Expr* end_offset;
};

enum class QueryCommand : uint8_t { kSelect, kInsert, kUpdate, kDelete };

// `column = value` of a SET list.
struct Assignment {
  int column;  // of the target
  const Expr* value;
};

struct OnConflict {
  std::span<const Expr* const> arbiter;  // the index's columns and expressions, over the target
  const Expr* arbiter_where = nullptr;   // of a partial index
  std::string_view constraint;           // ON CONSTRAINT, or empty
  bool do_update = false;
  int excluded = -1;  // rel: the row that was not inserted; its columns are the target's
  std::span<const Assignment> assignments = {};
  const Expr* where = nullptr;
};

// What INSERT, UPDATE and DELETE say beyond a SELECT. The query's targets are RETURNING's list.
// UPDATE and DELETE: the target stands in `from` (first), with FROM's or USING's rels behind it.
struct Modification {
  int target;  // rel, a table
  // INSERT: one column of the target each column of `source`, all distinct, types coerced; the
  // columns left out get what the shard gives them. The source stands one level below.
  std::span<const int> columns = {};
  const Query* source = nullptr;
  const OnConflict* on_conflict = nullptr;
  // UPDATE: SET's list, columns distinct.
  std::span<const Assignment> assignments = {};
};

// FOR KEY SHARE … FOR UPDATE, weakest first.
enum class LockStrength : uint8_t { kForKeyShare, kForShare, kForNoKeyUpdate, kForUpdate };
const char* NameOf(LockStrength strength);  // "FOR UPDATE"
enum class LockWaitPolicy : uint8_t { kBlock, kSkipLocked, kNoWait };

// The rows of a table that a SELECT gives are locked.
struct RowMark {
  int rel;  // a table
  LockStrength strength;
  LockWaitPolicy wait_policy;
  bool inherited;  // from an enclosing query's clause, which names this query's subquery
};

struct Query {
  QueryCommand command = QueryCommand::kSelect;
  const Modification* modification = nullptr;  // not for SELECT
  std::span<const QueryRel> rels = {};
  const JoinTree* from = nullptr;  // nullptr: no FROM (one empty row)
  const Expr* where = nullptr;
  std::span<const Target> targets = {};
  bool has_aggregates = false;         // in targets, having or order by; or group by present
  std::span<const int> group_by = {};  // indexes into targets
  // GROUPING SETS, ROLLUP, CUBE: for each set its members, indexes into group_by.
  std::span<const std::span<const int>> grouping_sets = {};
  const Expr* having = nullptr;
  bool distinct = false;
  std::span<const int> distinct_on = {};  // indexes into targets
  std::span<const SortKey> order_by = {};
  const Expr* limit = nullptr;  // int8; evaluated once
  const Expr* offset = nullptr;
  bool with_ties = false;
  const SetOpTree* set_op = nullptr;  // then targets are columns of the whole (kColumn, rel -1)
  std::span<const Cte> ctes = {};
  std::span<const WindowClause> windows = {};
  std::span<const RowMark> row_marks = {};  // no two of one rel
  bool has_sublinks = false;
  // Set by the planner: a recursive WITH query; set_op is its UNION, whose right side reads this
  // work table as a kCte rel with cte = work_table and cte_levels_up = kWorkTableLevel.
  int work_table = -1;
};

inline constexpr int kWorkTableLevel = -2;

}  // namespace sluice
