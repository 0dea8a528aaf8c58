// Expression trees: comparing, walking, rewriting, building. Expressions are never changed in
// place: a rewrite shares what it leaves alone.
#pragma once

#include <functional>
#include <vector>

#include "common/arena.h"
#include "parser/query.h"

namespace sluice {

// The same expression, whatever its place in the text. Subqueries are equal only if they are one
// object.
bool EqualExpr(const Expr* a, const Expr* b);

// Whether `found` says so for `expr` or anything in it. Subqueries are entered with depth + 1.
using DepthPredicate = std::function<bool(const Expr&, int depth)>;
bool AnyExpr(const Expr* expr, const DepthPredicate& found, int depth = 0);
bool AnyExprInQuery(const Query& query, const DepthPredicate& found, int depth = 0);

// Top-down copy. Where `replace` gives an expression it takes the old one's place and is not
// entered; where it gives null the children are rewritten. Subqueries are entered with depth + 1.
using DepthRewriter = std::function<const Expr*(const Expr&, int depth)>;
const Expr* RewriteExpr(const Expr* expr, Arena* arena, const DepthRewriter& replace,
                        int depth = 0);
std::span<const std::span<const Expr* const>> RewriteRows(  // of a VALUES list
    std::span<const std::span<const Expr* const>> rows, Arena* arena, const DepthRewriter& replace,
    int depth = 0);
const Query* RewriteQuery(const Query& query, Arena* arena, const DepthRewriter& replace,
                          int depth);

// Everything copied, strings too: for expressions that outlive their arena.
const Expr* DeepCopyExpr(const Expr* expr, Arena* arena);

// c1 AND c2 AND … → its conjuncts, appended. nullptr and TRUE add nothing.
void SplitConjuncts(const Expr* condition, std::vector<const Expr*>* conjuncts);
const Expr* MakeAnd(const std::vector<const Expr*>& conjuncts, Arena* arena);  // nullptr for none

const Expr* MakeColumn(int rel, int column, Oid type, int32_t typmod, Oid collation, Arena* arena);
const Expr* MakeNull(Oid type, Arena* arena);
const Expr* MakeBool(bool value, Arena* arena);
const Expr* MakeInt8(int64_t value, Arena* arena);
const Expr* MakeInt4(int32_t value, Arena* arena);
const Expr* MakeCall(Oid function, Oid oper, Oid type, std::vector<const Expr*> args, Arena* arena);
const Expr* MakeTyped(ExprKind kind, Oid type, std::vector<const Expr*> args, Arena* arena);
// The call of an operator by oid; 0A000 if it isn't known.
const Expr* MakeOperator(Oid oper, const Expr* left, const Expr* right, Arena* arena);

// Which rels (kColumn, this level) `expr` refers to, as bits; rels from 64 are refused where rels
// are made.
uint64_t RelsOf(const Expr* expr);
bool HasAggregate(const Expr* expr);
bool HasSubquery(const Expr* expr);
bool HasVolatile(const Expr* expr);
bool HasVolatileInQuery(const Query& query);
// Whether it is NULL (or not true, for a condition) as soon as all columns of `rels` are NULL.
bool IsStrictOver(const Expr* expr, uint64_t rels);
// A plain equality `a = b` of one type's default btree class; sides as written.
// One value for all rows of a plan's node: a constant or a parameter.
bool IsConstantHere(const Expr& expr);
bool IsEquality(const Expr* expr, const Expr** left, const Expr** right);
// `column = value`, or a value that the column is at least or at most (strictly, too), in the
// default order of its type. The value has no columns and no subqueries.
enum class ComparedAs : uint8_t { kEqual, kAtLeast, kAtMost };
bool IsColumnCompared(const Expr* conjunct, const Expr** column, const Expr** value,
                      ComparedAs* as);

}  // namespace sluice
