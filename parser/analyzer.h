// Shared by the files that make up the analysis (analyze_*.cc, coerce.cc, func.cc, …); nobody else
// includes it. A ParseState is one query level while it is analysed, as in Postgres; expressions
// are built as mutable Expr in the arena and become const when the Query is finished.
#pragma once

#include <pg_query/pg_query.pb-c.h>
#include <string>
#include <unordered_map>
#include <vector>

#include "catalog/catalog.h"
#include "common/arena.h"
#include "common/error.h"
#include "parser/analyze.h"
#include "parser/query.h"

namespace sluice {

using RawNode = PgQuery__Node;

inline constexpr SqlState kAmbiguousParameter = MakeSqlState("42P08");

// Where an expression stands: what is allowed in it, and how messages name the place.
enum class Clause : uint8_t {
  kNone,
  kSelectTarget,
  kWhere,
  kHaving,
  kFilter,
  kGroupBy,
  kOrderBy,
  kDistinctOn,
  kLimit,
  kOffset,
  kJoinOn,
  kJoinUsing,
  kFromFunction,
  kFromSubselect,
  kValues,
  kStandalone,
  kWindowPartition,
  kWindowOrder,
  kWindowFrame,
  kInsertTarget,
  kUpdateSource,
  kReturning,
  kCopyWhere,
};
const char* ClauseName(Clause clause);

// A name that an expression can refer to: a relation's column, or the column that JOIN USING
// merged.
struct NsColumn {
  std::string_view name;
  const Expr* merged = nullptr;  // else rel/column
  int rel = 0;
  int column = 0;
  Oid type = kInvalidOid;
  int32_t typmod = -1;
  Oid collation = kInvalidOid;
};

struct NsItem {
  std::string_view name;            // "" for a join without alias
  const Relation* table = nullptr;  // schema.table.column can name it, if without alias
  std::string_view system_schema;   // likewise, of a system catalog or view; "" for others
  bool has_alias = false;
  std::vector<NsColumn>* columns = nullptr;
  int rel = -1;  // -1: a join
  bool rel_visible = true;
  bool columns_visible = true;
  bool lateral_only = false;
  bool lateral_ok = true;
};

struct TargetEntry {
  Expr* expr;
  std::string_view name;
  bool junk;
};

struct ParseState;

struct CteEntry {
  std::string_view name;
  int index;         // into ParseState::ctes
  bool in_progress;  // WITH RECURSIVE, while its own query is analysed
};

// A WITH RECURSIVE query whose own query is being analysed.
struct Recursion {
  const ParseState* owner;  // of the WITH clause
  int index;                // into its ctes
  const PgQuery__CommonTableExpr* raw;
  enum class Part { kNoUnion, kFirst, kRecursive } part = Part::kNoUnion;
  std::vector<QueryColumn> columns = {};  // of the first term: what a reference to it sees
  std::vector<int> locations = {};        // of their expressions
  int references = 0;                     // of itself
  const char* forbidden = nullptr;        // "a subquery", …: where no reference may stand
};

// Owns what outlives no statement: column lists of the namespaces.
struct Analysis {
  const AnalyzeContext& context;
  Arena* arena;
  std::string_view text;     // the whole query string, for positions
  bool inside_view = false;  // locations would be those of the view's text: none are kept
  int view_depth = 0;
  size_t copies = 1;          // how often the expression being transformed stands in the result
  std::vector<Expr*> params;  // all $n nodes, checked at the end
  std::vector<Recursion*> recursions;      // innermost last
  Recursion* pending_recursion = nullptr;  // for the ParseState that is made next
  std::vector<std::unique_ptr<std::vector<NsColumn>>> column_lists;
  // Analysed scalar sublinks by raw node: FigureColumnName wants their first column's name.
  std::unordered_map<const void*, const Query*> scalar_sublinks;

  // While the query that a function stands for is transformed: what its $n are.
  std::span<PgQuery__Node* const> query_arguments;

  explicit Analysis(const AnalyzeContext& c) : context(c), arena(c.arena) {}
  std::vector<NsColumn>* NewColumnList() {
    return column_lists.emplace_back(std::make_unique<std::vector<NsColumn>>()).get();
  }
};

// A function of the select list that gives rows of several columns: the FROM item that it became.
struct RowFunction {
  std::string_view name;
  const Expr* argument;
  int rel;
};

struct ParseState {
  Analysis& a;
  ParseState* parent;
  std::vector<QueryRel> rels;
  std::vector<NsItem> names;
  std::vector<Cte> ctes;
  std::vector<CteEntry> cte_names;
  std::vector<TargetEntry> targets;
  Clause clause = Clause::kNone;
  Recursion* recursion = nullptr;  // this is its own query
  bool refers_to_itself = false;   // a rel of this level is a recursive reference
  bool lateral_active = false;
  bool has_aggregates = false;
  bool has_sublinks = false;
  std::vector<const PgQuery__WindowDef*> window_defs;  // WINDOW's, then those of OVER (…)
  std::vector<Expr*> window_calls;
  const void* set_function = nullptr;  // the one raw call that may return a set: FROM's
  std::vector<int> select_functions;  // rels that set-returning functions of the select list became
  std::vector<RowFunction> row_functions;  // among them
  bool resolve_unknowns = true;            // unknown literals in the select list become text

  ParseState(Analysis& analysis, ParseState* parent_state) : a(analysis), parent(parent_state) {}
  ParseState(const ParseState&) = delete;

  Expr* New(ExprKind kind, Oid type, int location) {
    Expr* expr = a.arena->New<Expr>();
    expr->kind = kind;
    expr->type = type;
    expr->location = location;
    return expr;
  }
  int Location(int raw_location) const { return a.inside_view ? -1 : raw_location; }
};

// Forbids references to the recursive queries around for a scope.
class ForbidRecursion {
 public:
  ForbidRecursion(Analysis& a, const char* where) {
    if (where == nullptr) return;
    for (Recursion* recursion : a.recursions) {
      if (recursion->forbidden != nullptr) continue;
      recursion->forbidden = where;
      set_.push_back(recursion);
    }
  }
  ~ForbidRecursion() {
    for (Recursion* recursion : set_) recursion->forbidden = nullptr;
  }

 private:
  std::vector<Recursion*> set_;
};

// Sets a clause for a scope.
class ClauseScope {
 public:
  ClauseScope(ParseState& p, Clause clause) : p_(p), saved_(p.clause) { p.clause = clause; }
  ~ClauseScope() { p_.clause = saved_; }

 private:
  ParseState& p_;
  Clause saved_;
};

// While an operand is transformed that the result will contain several times (BETWEEN, CASE x WHEN,
// rows): nested ones multiply, and walking the result must stay possible. Throws 54001.
class CopiesScope {
 public:
  CopiesScope(ParseState& p, size_t factor) : a_(p.a), saved_(p.a.copies) {
    constexpr size_t kCopiesMax = 100'000;
    if (factor > 1) a_.copies *= factor;
    if (a_.copies <= kCopiesMax || saved_ == 1) return;
    a_.copies = saved_;
    Throw(sqlstate::kStatementTooComplex,
          "statement is too complex: nested BETWEEN, CASE or row comparisons");
  }
  ~CopiesScope() { a_.copies = saved_; }

 private:
  Analysis& a_;
  size_t saved_;
};

// --- errors (analyze.cc)
int ErrorPosition(const ParseState& p, int location);
template <typename... Args>
[[noreturn]] void ThrowAt(const ParseState& p, int location, SqlState state,
                          fmt::format_string<Args...> format, Args&&... args) {
  throw QueryError(
      MakeError(state, format, std::forward<Args>(args)...).At(ErrorPosition(p, location)));
}
template <typename... Args>
[[noreturn]] void RefuseAt(const ParseState& p, int location, fmt::format_string<Args...> format,
                           Args&&... args) {
  ThrowAt(p, location, sqlstate::kFeatureNotSupported, format, std::forward<Args>(args)...);
}

// --- statements (analyze.cc, analyze_setop.cc, analyze_values.cc)
// `p` is a fresh state of that query level.
Query* TransformSelect(ParseState& p, const PgQuery__SelectStmt& statement);
// A subquery in its own level below `p`.
Query* TransformSubselect(ParseState& p, const PgQuery__SelectStmt& statement,
                          bool resolve_unknowns = true);
Query* TransformSetOperation(ParseState& p, const PgQuery__SelectStmt& statement);
Query* TransformValues(ParseState& p, const PgQuery__SelectStmt& statement);
// The query with its output columns cast to `types`: in its own select list where that changes
// nothing else, or in a query around it.
Query* CoerceQueryColumns(ParseState& p, Query* query, std::span<const QueryColumn> types);
Query* FinishQuery(ParseState& p, Query* query);  // rels, targets, ctes into the arena
void TransformWith(ParseState& p, const PgQuery__WithClause& with);
void TransformLimit(ParseState& p, const PgQuery__SelectStmt& statement, Query* query);

// --- FOR UPDATE and its kin (analyze_locking.cc)
void TransformLocking(ParseState& p, const PgQuery__SelectStmt& statement, Query* query);
// Where the statement has such a clause: "FOR UPDATE <problem>".
void RefuseLocking(const ParseState& p, const PgQuery__SelectStmt& statement,
                   std::string_view problem);

// --- INSERT, UPDATE, DELETE (analyze_insert.cc, analyze_modify.cc)
bool IsModifyStatement(const RawNode* node);
// `p` is a fresh state of that query level.
Query* TransformModify(ParseState& p, const RawNode* node);
Query* TransformInsert(ParseState& p, const PgQuery__InsertStmt& statement);
// The target as a rel that names can refer to.
int TransformTargetTable(ParseState& p, const PgQuery__RangeVar& var);
void TransformReturning(ParseState& p, RawNode** list, size_t count);
std::vector<Assignment> TransformAssignments(ParseState& p, int target, RawNode** list,
                                             size_t count);
// The target's column of that name: 42703 if there is none.
int FindTargetColumn(ParseState& p, const Relation& table, std::string_view name, int location);
// `expr` as a value for the column, by an assignment cast: 42804 where there is none.
Expr* CoerceAssigned(ParseState& p, Expr* expr, const ColumnInfo& column);
inline constexpr SqlState kGeneratedAlways = MakeSqlState("428C9");
// Why it takes no value but its own.
std::string GeneratedDetail(const ColumnInfo& column);
// Whether what a column gets that is not named is known here, and not the shard's to say.
bool HasKnownDefault(const ColumnInfo& column);
// The column's default, or NULL.
Expr* DefaultOf(ParseState& p, const ColumnInfo& column);
bool IsSetToDefault(const RawNode* node);

// --- FROM (analyze_from.cc, analyze_join.cc)
const JoinTree* TransformFromList(ParseState& p, RawNode** list, size_t count);
const JoinTree* LeafTree(ParseState& p, int rel);
const JoinTree* TransformFrom(ParseState& p, const PgQuery__SelectStmt& statement);
const Query* ExpandView(Analysis& a, ParseState* parent, std::string_view name,
                        std::string_view sql);
const JoinTree* TransformFromItem(ParseState& p, const RawNode* node, std::vector<NsItem>* names);
const JoinTree* TransformJoin(ParseState& p, const PgQuery__JoinExpr& join,
                              std::vector<NsItem>* names);
int AddRel(ParseState& p, QueryRel rel);
// --- set-returning functions, subscripts (analyze_set_function.cc)
// generate_subscripts as the generate_series that it is.
Expr* NormalizeSetFunction(ParseState& p, Expr* call);
// The call of the select list that becomes a FROM item: the column that stands for it; and FROM
// with these items.
Expr* AddSelectFunction(ParseState& p, Expr* call, std::string_view name, int location);
const JoinTree* JoinSelectFunctions(ParseState& p, const JoinTree* from);
// The raw call that may return a set in this place of the select list: only casts around it.
const void* SetFunctionOfTarget(const RawNode* value);
// nullptr: the function is not one that stands for a query.
const Query* TransformQueryFunction(ParseState& p, const PgQuery__FuncCall& call, bool ordinality);
// A row in a subquery's select list is its fields, under names that nobody can write.
inline constexpr char kRowFieldMark = '\x01';
inline std::string RowFieldName(std::string_view row, std::string_view field) {
  return std::string(row) + kRowFieldMark + std::string(field);
}
// Adds the fields of such a function's row to the select list; false: it is another expression.
bool AddRowTargets(ParseState& p, const RawNode* value, std::string_view name);
// The column of (row).field; nullptr where there is none.
Expr* FindRowField(ParseState& p, const PgQuery__ColumnRef& ref, std::string_view field);
Expr* TransformSubscripts(ParseState& p, const PgQuery__AIndirection& raw);

// The name-space item of rel `index`, with an alias's column names laid over the rel's own.
NsItem MakeNsItem(ParseState& p, int index, const PgQuery__Alias* alias);
void CheckNameConflicts(ParseState& p, const std::vector<NsItem>& existing,
                        const std::vector<NsItem>& added);

// --- names (analyze_names.cc)
Expr* TransformColumnRef(ParseState& p, const PgQuery__ColumnRef& ref);
// nullptr if there is none; local_only: not in outer queries.
Expr* FindColumnByName(ParseState& p, std::string_view name, bool local_only, int location);
Expr* MakeColumnExpr(ParseState& p, const NsColumn& column, int levels_up, int location);
// `*` or `t.*`, as targets.
void ExpandStar(ParseState& p, const PgQuery__ColumnRef& ref);
const char* SystemColumn(std::string_view name);  // nullptr if it is none

// --- functions and operators (func.cc, oper.cc, polymorphic.cc)
enum class FunctionMatch : uint8_t { kNotFound, kMultiple, kFunction, kCoercion };
struct FunctionChoice {
  FunctionMatch match = FunctionMatch::kNotFound;
  const ProcInfo* proc = nullptr;
  std::vector<Oid> declared;  // argument types, variadic ones spread out
  int variadic_count = 0;     // how many arguments the VARIADIC array takes, 0: none
  int default_count = 0;      // how many trailing arguments are to be defaults
  Oid coercion_type = kInvalidOid;
};

// --- expressions (analyze_expr.cc, analyze_operator.cc, analyze_sublink.cc, analyze_func.cc)
Expr* TransformExpr(ParseState& p, const RawNode* node);
Expr* TransformWhere(ParseState& p, const RawNode* node, Clause clause, const char* construct);
Expr* TransformAExpr(ParseState& p, const PgQuery__AExpr& expr);
Expr* TransformSublink(ParseState& p, const PgQuery__SubLink& sublink);
// Column `part` of `count` of UPDATE … SET (…) = (SELECT …), as a subquery of its own.
Expr* TransformRowPart(ParseState& p, const PgQuery__SubLink& raw, size_t part, size_t count);
Expr* TransformFuncCall(ParseState& p, const PgQuery__FuncCall& call);
Expr* TransformArray(ParseState& p, const PgQuery__AArrayExpr& array, Oid array_type,
                     Oid element_type, int32_t typmod);
Expr* TransformConst(ParseState& p, const PgQuery__AConst& constant);
// `name` of an operator: "=", or the last of OPERATOR(pg_catalog.=).
std::string_view OperatorName(ParseState& p, RawNode** names, size_t count, int location);
Expr* MakeOperator(ParseState& p, std::string_view name, Expr* left, Expr* right, int location);
Expr* MakeScalarArrayOperator(ParseState& p, std::string_view name, bool use_or, Expr* left,
                              Expr* right, int location);
Expr* MakeDistinct(ParseState& p, Expr* left, Expr* right, int location);
Expr* MakeBool(ParseState& p, ExprKind kind, std::vector<const Expr*> args, int location);
// name(args) with all of Postgres's rules but aggregates'; `call` for what else was written, or
// nullptr.
Expr* MakeFunctionCall(ParseState& p, const FunctionChoice& choice, std::vector<Expr*> args,
                       int location);
std::vector<Expr*> TransformList(ParseState& p, RawNode** list, size_t count);
// (a, b) < (c, d) and the like, spelled out as conditions over the pairs.
Expr* MakeRowComparison(ParseState& p, std::string_view name, const std::vector<Expr*>& left,
                        const std::vector<Expr*>& right, int location);

// `literal`: the first argument is a constant, which f('…') casts if f is a type.
FunctionChoice ChooseFunction(std::string_view name, std::span<const Oid> types,
                              bool expand_variadic, bool literal);
const OperatorInfo* ChooseOperator(ParseState& p, std::string_view name, Oid left, Oid right,
                                   int location);  // throws 42883, 42725
const OperatorInfo* ChoosePrefixOperator(ParseState& p, std::string_view name, Oid right,
                                         int location);
// Replaces polymorphic types in `declared` by what `actual` makes of them; returns the result type.
Oid ResolvePolymorphic(ParseState& p, std::span<const Oid> actual, std::span<Oid> declared,
                       Oid result, int location);
bool IsPolymorphic(Oid type);

struct Candidate {
  std::span<const Oid> args;
  int index;
};
// func_match_argtypes and func_select_candidate; nullptr: none or several.
std::vector<Candidate> MatchCandidates(std::span<const Oid> types, std::span<const Candidate> from);
const Candidate* SelectCandidate(std::span<const Oid> types, std::vector<Candidate>& candidates);

// --- types and coercion (coerce.cc, common_type.cc, type_name.cc)
enum class CoercionContext : uint8_t { kImplicit, kAssignment, kExplicit };
enum class CoercionPath : uint8_t { kNone, kFunction, kRelabel, kArray, kViaIo };
CoercionPath FindCoercion(Oid target, Oid source, CoercionContext context, Oid* function);
Oid BaseType(Oid type);
char TypeCategory(Oid type);
bool IsPreferred(Oid type);
Oid TypeCollation(Oid type);
std::string TypeText(Oid type);  // for messages
bool CanCoerce(std::span<const Oid> from, std::span<const Oid> to, CoercionContext context);
inline bool CanCoerce(Oid from, Oid to, CoercionContext context) {
  return CanCoerce(std::span(&from, 1), std::span(&to, 1), context);
}
// Requires CanCoerce; no typmod coercion.
Expr* CoerceType(ParseState& p, Expr* expr, Oid target, int32_t typmod, CoercionContext context,
                 bool explicit_form, int location);
// With the typmod's; nullptr where there is no such cast.
Expr* CoerceToTarget(ParseState& p, Expr* expr, Oid target, int32_t typmod, CoercionContext context,
                     bool explicit_form, int location);
Expr* CoerceTypmod(ParseState& p, Expr* expr, Oid target, int32_t typmod, CoercionContext context,
                   bool explicit_form, int location);
Expr* CoerceToBoolean(ParseState& p, Expr* expr, const char* construct);
Expr* CoerceToSpecific(ParseState& p, Expr* expr, Oid target, const char* construct);
Oid SelectCommonType(ParseState& p, std::span<Expr* const> exprs, const char* context,
                     Expr** which = nullptr);  // context nullptr: kInvalidOid instead of an error
int32_t SelectCommonTypmod(std::span<Expr* const> exprs, Oid common);
Expr* CoerceToCommon(ParseState& p, Expr* expr, Oid target, const char* context);
Expr* MakeConst(ParseState& p, Oid type, std::string_view text, int location);
Expr* MakeNull(ParseState& p, Oid type, int location);
Expr* MakeInt4(ParseState& p, int32_t value, int location);
Expr* MakeInt8(ParseState& p, int64_t value, int location);
Expr* MakeBoolConst(ParseState& p, bool value, int location);
// kArray of constants → one constant; others as they are.
Expr* FoldArray(ParseState& p, Expr* array);

struct TypeSpec {
  Oid type;
  int32_t typmod;
};
TypeSpec ResolveTypeName(ParseState& p, const PgQuery__TypeName& name);
// An unqualified (or pg_catalog) type name; kInvalidOid if there is none.
Oid FindTypeByName(const ParseState& p, std::string_view schema, std::string_view name);

// --- select list, GROUP BY, ORDER BY, DISTINCT (analyze_target.cc, analyze_clause.cc)
void TransformTargetList(ParseState& p, RawNode** list, size_t count);
std::string_view FigureColumnName(ParseState& p, const RawNode* node);
void ResolveUnknownTargets(ParseState& p);
int FindTargetSql92(ParseState& p, const RawNode* node, Clause clause);
int FindTargetSql99(ParseState& p, const RawNode* node, Clause clause);
void TransformGroupBy(ParseState& p, const PgQuery__SelectStmt& statement, Query* query);
std::vector<SortKey> TransformOrderBy(ParseState& p, RawNode** list, size_t count, Clause clause);
std::vector<int> TransformPartitionBy(ParseState& p, RawNode** list, size_t count);
SortKey MakeSortKey(ParseState& p, const Expr* expr, const PgQuery__SortBy* sort, int location);
void CheckEqualityOperator(ParseState& p, const Expr& expr, int location);
void TransformDistinct(ParseState& p, const PgQuery__SelectStmt& statement,
                       const std::vector<SortKey>& order, Query* query);

// --- aggregates (analyze_agg.cc)
// `written`: the arguments before they were cast to what the aggregate takes.
Expr* TransformAggregate(ParseState& p, Expr* aggregate, std::span<Expr* const> written,
                         const PgQuery__FuncCall& call);
Expr* TransformGrouping(ParseState& p, const PgQuery__GroupingFunc& raw);
void CheckAggregates(ParseState& p, Query& query);

// --- window functions (analyze_window.cc)
Expr* TransformWindowCall(ParseState& p, Expr* window, const PgQuery__FuncCall& call);
// After all expressions of the query: partition and sort expressions become targets.
void TransformWindows(ParseState& p, Query* query);
[[noreturn]] void ThrowWindowNotAllowed(ParseState& p, Clause clause, int location);

// --- collations (collate.cc)
void AssignCollations(ParseState& p, Query& query);
void AssignExprCollations(ParseState& p, Expr* expr);
// The collation of a column that several expressions make: 42P21 if they differ, unless `none_ok`.
Oid SelectCommonCollation(ParseState& p, std::span<const Expr* const> exprs, bool none_ok);
Oid CollationByName(ParseState& p, RawNode** names, size_t count, int location);

// --- strings of the raw tree
inline std::string_view RawString(const RawNode* node) {
  return node->node_case == PG_QUERY__NODE__NODE_STRING ? std::string_view(node->string->sval)
                                                        : std::string_view();
}
// Where a raw expression's text starts; -1 where the tree does not tell.
int RawLocation(const ParseState& p, const RawNode* node);
inline bool HasText(const char* text) {
  return text != nullptr && text[0] != '\0';
}

}  // namespace sluice
