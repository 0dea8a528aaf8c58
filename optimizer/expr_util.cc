#include "optimizer/expr_util.h"

#include "catalog/builtin.h"
#include "common/assert.h"
#include "common/bytes.h"
#include "common/error.h"

namespace sluice {
namespace {

bool EqualKeys(std::span<const SortKey> a, std::span<const SortKey> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++) {
    if (a[i].target != b[i].target || a[i].less_operator != b[i].less_operator ||
        a[i].nulls_first != b[i].nulls_first || !EqualExpr(a[i].expr, b[i].expr))
      return false;
  }
  return true;
}

std::span<const SortKey> RewriteKeys(std::span<const SortKey> keys, Arena* arena,
                                     const DepthRewriter& replace, int depth) {
  std::span<SortKey> copy = arena->CopyArray(keys);
  for (SortKey& key : copy) key.expr = RewriteExpr(key.expr, arena, replace, depth);
  return copy;
}

const JoinTree* RewriteTree(const JoinTree* tree, Arena* arena, const DepthRewriter& replace,
                            int depth) {
  if (tree == nullptr || tree->is_leaf) return tree;
  JoinTree* copy = arena->New<JoinTree>(*tree);
  copy->left = RewriteTree(tree->left, arena, replace, depth);
  copy->right = RewriteTree(tree->right, arena, replace, depth);
  copy->on = RewriteExpr(tree->on, arena, replace, depth);
  return copy;
}

const SetOpTree* RewriteSetOp(const SetOpTree* tree, Arena* arena, const DepthRewriter& replace,
                              int depth) {
  if (tree == nullptr) return nullptr;
  SetOpTree* copy = arena->New<SetOpTree>(*tree);
  if (tree->leaf != nullptr) {
    copy->leaf = RewriteQuery(*tree->leaf, arena, replace, depth + 1);
  } else {
    copy->left = RewriteSetOp(tree->left, arena, replace, depth);
    copy->right = RewriteSetOp(tree->right, arena, replace, depth);
  }
  return copy;
}

bool AnyInTree(const JoinTree* tree, const DepthPredicate& found, int depth) {
  if (tree == nullptr || tree->is_leaf) return false;
  return AnyInTree(tree->left, found, depth) || AnyInTree(tree->right, found, depth) ||
         AnyExpr(tree->on, found, depth);
}

bool AnyInAssignments(std::span<const Assignment> assignments, const DepthPredicate& found,
                      int depth) {
  for (const Assignment& assignment : assignments)
    if (AnyExpr(assignment.value, found, depth)) return true;
  return false;
}

bool AnyInModification(const Modification* modification, const DepthPredicate& found, int depth) {
  if (modification == nullptr) return false;
  if (modification->source != nullptr && AnyExprInQuery(*modification->source, found, depth + 1))
    return true;
  if (AnyInAssignments(modification->assignments, found, depth)) return true;
  const OnConflict* conflict = modification->on_conflict;
  if (conflict == nullptr) return false;
  for (const Expr* expr : conflict->arbiter)
    if (AnyExpr(expr, found, depth)) return true;
  return AnyExpr(conflict->arbiter_where, found, depth) || AnyExpr(conflict->where, found, depth) ||
         AnyInAssignments(conflict->assignments, found, depth);
}

std::span<const Assignment> RewriteAssignments(std::span<const Assignment> assignments,
                                               Arena* arena, const DepthRewriter& replace,
                                               int depth) {
  std::span<Assignment> copy = arena->CopyArray(assignments);
  for (Assignment& a : copy) a.value = RewriteExpr(a.value, arena, replace, depth);
  return copy;
}

const Modification* RewriteModification(const Modification* modification, Arena* arena,
                                        const DepthRewriter& replace, int depth) {
  if (modification == nullptr) return nullptr;
  Modification* copy = arena->New<Modification>(*modification);
  if (copy->source != nullptr)
    copy->source = RewriteQuery(*copy->source, arena, replace, depth + 1);
  copy->assignments = RewriteAssignments(copy->assignments, arena, replace, depth);
  if (copy->on_conflict == nullptr) return copy;
  OnConflict* conflict = arena->New<OnConflict>(*copy->on_conflict);
  std::span<const Expr*> arbiter = arena->CopyArray(conflict->arbiter);
  for (const Expr*& expr : arbiter) expr = RewriteExpr(expr, arena, replace, depth);
  conflict->arbiter = arbiter;
  conflict->arbiter_where = RewriteExpr(conflict->arbiter_where, arena, replace, depth);
  conflict->where = RewriteExpr(conflict->where, arena, replace, depth);
  conflict->assignments = RewriteAssignments(conflict->assignments, arena, replace, depth);
  copy->on_conflict = conflict;
  return copy;
}

bool AnyInSetOp(const SetOpTree* tree, const DepthPredicate& found, int depth) {
  if (tree == nullptr) return false;
  if (tree->leaf != nullptr) return AnyExprInQuery(*tree->leaf, found, depth + 1);
  return AnyInSetOp(tree->left, found, depth) || AnyInSetOp(tree->right, found, depth);
}

}  // namespace

bool EqualExpr(const Expr* a, const Expr* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  if (a->kind != b->kind || a->type != b->type || a->typmod != b->typmod ||
      a->collation != b->collation || a->is_null != b->is_null || a->value != b->value ||
      a->rel != b->rel || a->column != b->column || a->levels_up != b->levels_up ||
      a->param != b->param || a->per_row != b->per_row || a->function != b->function ||
      a->input_collation != b->input_collation || a->variadic != b->variadic ||
      a->star != b->star || a->distinct != b->distinct || a->sublink != b->sublink ||
      a->subquery != b->subquery || a->args.size() != b->args.size())
    return false;
  if (!EqualExpr(a->filter, b->filter) || !EqualKeys(a->order_by, b->order_by)) return false;
  for (size_t i = 0; i < a->args.size(); i++)
    if (!EqualExpr(a->args[i], b->args[i])) return false;
  return true;
}

bool AnyExpr(const Expr* expr, const DepthPredicate& found, int depth) {
  if (expr == nullptr) return false;
  if (found(*expr, depth)) return true;
  for (const Expr* arg : expr->args)
    if (AnyExpr(arg, found, depth)) return true;
  if (AnyExpr(expr->filter, found, depth)) return true;
  for (const SortKey& key : expr->order_by)
    if (AnyExpr(key.expr, found, depth)) return true;
  return expr->subquery != nullptr && AnyExprInQuery(*expr->subquery, found, depth + 1);
}

bool AnyExprInQuery(const Query& query, const DepthPredicate& found, int depth) {
  for (const QueryRel& rel : query.rels) {
    if (rel.subquery != nullptr && AnyExprInQuery(*rel.subquery, found, depth + 1)) return true;
    if (AnyExpr(rel.function, found, depth)) return true;
    for (auto row : rel.values)
      for (const Expr* value : row)
        if (AnyExpr(value, found, depth)) return true;
  }
  for (const Target& target : query.targets)
    if (AnyExpr(target.expr, found, depth)) return true;
  for (const SortKey& key : query.order_by)
    if (AnyExpr(key.expr, found, depth)) return true;
  for (const Cte& cte : query.ctes)
    if (AnyExprInQuery(*cte.query, found, depth + 1)) return true;
  for (const WindowClause& window : query.windows)
    if (AnyExpr(window.start_offset, found, depth) || AnyExpr(window.end_offset, found, depth))
      return true;
  return AnyInTree(query.from, found, depth) || AnyExpr(query.where, found, depth) ||
         AnyInModification(query.modification, found, depth) ||
         AnyExpr(query.having, found, depth) || AnyExpr(query.limit, found, depth) ||
         AnyExpr(query.offset, found, depth) || AnyInSetOp(query.set_op, found, depth);
}

const Expr* RewriteExpr(const Expr* expr, Arena* arena, const DepthRewriter& replace, int depth) {
  if (expr == nullptr) return nullptr;
  if (const Expr* other = replace(*expr, depth)) return other;
  if (expr->args.empty() && expr->filter == nullptr && expr->order_by.empty() &&
      expr->subquery == nullptr)
    return expr;
  Expr* copy = arena->New<Expr>(*expr);
  std::span<const Expr*> args = arena->NewArray<const Expr*>(expr->args.size());
  for (size_t i = 0; i < args.size(); i++)
    args[i] = RewriteExpr(expr->args[i], arena, replace, depth);
  copy->args = args;
  copy->filter = RewriteExpr(expr->filter, arena, replace, depth);
  copy->order_by = RewriteKeys(expr->order_by, arena, replace, depth);
  if (expr->subquery != nullptr)
    copy->subquery = RewriteQuery(*expr->subquery, arena, replace, depth + 1);
  return copy;
}

std::span<const std::span<const Expr* const>> RewriteRows(
    std::span<const std::span<const Expr* const>> rows, Arena* arena, const DepthRewriter& replace,
    int depth) {
  auto copy = arena->NewArray<std::span<const Expr* const>>(rows.size());
  for (size_t i = 0; i < rows.size(); i++) {
    auto row = arena->NewArray<const Expr*>(rows[i].size());
    for (size_t j = 0; j < row.size(); j++) row[j] = RewriteExpr(rows[i][j], arena, replace, depth);
    copy[i] = row;
  }
  return copy;
}

const Query* RewriteQuery(const Query& query, Arena* arena, const DepthRewriter& replace,
                          int depth) {
  Query* copy = arena->New<Query>(query);
  std::span<QueryRel> rels = arena->CopyArray(query.rels);
  for (QueryRel& rel : rels) {
    if (rel.subquery != nullptr)
      rel.subquery = RewriteQuery(*rel.subquery, arena, replace, depth + 1);
    rel.function = RewriteExpr(rel.function, arena, replace, depth);
    rel.values = RewriteRows(rel.values, arena, replace, depth);
  }
  copy->rels = rels;
  std::span<Target> targets = arena->CopyArray(query.targets);
  for (Target& target : targets) target.expr = RewriteExpr(target.expr, arena, replace, depth);
  copy->targets = targets;
  std::span<Cte> ctes = arena->CopyArray(query.ctes);
  for (Cte& cte : ctes) cte.query = RewriteQuery(*cte.query, arena, replace, depth + 1);
  copy->ctes = ctes;
  copy->from = RewriteTree(query.from, arena, replace, depth);
  copy->where = RewriteExpr(query.where, arena, replace, depth);
  copy->modification = RewriteModification(query.modification, arena, replace, depth);
  copy->having = RewriteExpr(query.having, arena, replace, depth);
  copy->order_by = RewriteKeys(query.order_by, arena, replace, depth);
  copy->limit = RewriteExpr(query.limit, arena, replace, depth);
  copy->offset = RewriteExpr(query.offset, arena, replace, depth);
  copy->set_op = RewriteSetOp(query.set_op, arena, replace, depth);
  std::span<WindowClause> windows = arena->CopyArray(query.windows);
  for (WindowClause& window : windows) {
    window.start_offset = RewriteExpr(window.start_offset, arena, replace, depth);
    window.end_offset = RewriteExpr(window.end_offset, arena, replace, depth);
  }
  copy->windows = windows;
  return copy;
}

const Expr* DeepCopyExpr(const Expr* expr, Arena* arena) {
  if (expr == nullptr) return nullptr;
  SLUICE_ASSERT(expr->subquery == nullptr);
  Expr* copy = arena->New<Expr>(*expr);
  copy->value = arena->CopyString(expr->value);
  std::span<const Expr*> args = arena->NewArray<const Expr*>(expr->args.size());
  for (size_t i = 0; i < args.size(); i++) args[i] = DeepCopyExpr(expr->args[i], arena);
  copy->args = args;
  copy->filter = DeepCopyExpr(expr->filter, arena);
  std::span<SortKey> keys = arena->CopyArray(expr->order_by);
  for (SortKey& key : keys) key.expr = DeepCopyExpr(key.expr, arena);
  copy->order_by = keys;
  copy->sublink_operators = {};
  return copy;
}

void SplitConjuncts(const Expr* condition, std::vector<const Expr*>* conjuncts) {
  if (condition == nullptr) return;
  if (condition->kind == ExprKind::kAnd) {
    for (const Expr* arg : condition->args) SplitConjuncts(arg, conjuncts);
    return;
  }
  bool is_true = condition->kind == ExprKind::kConst && !condition->is_null &&
                 condition->value.size() == 1 && condition->value[0] != 0;
  if (!is_true) conjuncts->push_back(condition);
}

const Expr* MakeAnd(const std::vector<const Expr*>& conjuncts, Arena* arena) {
  if (conjuncts.empty()) return nullptr;
  if (conjuncts.size() == 1) return conjuncts[0];
  return MakeTyped(ExprKind::kAnd, kBoolOid, conjuncts, arena);
}

const Expr* MakeColumn(int rel, int column, Oid type, int32_t typmod, Oid collation, Arena* arena) {
  Expr* expr = arena->New<Expr>();
  expr->kind = ExprKind::kColumn;
  expr->rel = rel;
  expr->column = column;
  expr->type = type;
  expr->typmod = typmod;
  expr->collation = collation;
  return expr;
}

const Expr* MakeNull(Oid type, Arena* arena) {
  Expr* expr = arena->New<Expr>();
  expr->kind = ExprKind::kConst;
  expr->type = type;
  expr->is_null = true;
  return expr;
}

namespace {
Expr* MakeConst(Oid type, std::string_view value, Arena* arena) {
  Expr* expr = arena->New<Expr>();
  expr->kind = ExprKind::kConst;
  expr->type = type;
  expr->value = arena->CopyString(value);
  return expr;
}
}  // namespace

const Expr* MakeBool(bool value, Arena* arena) {
  char byte = value ? 1 : 0;
  return MakeConst(kBoolOid, std::string_view(&byte, 1), arena);
}

const Expr* MakeInt8(int64_t value, Arena* arena) {
  char bytes[8];
  StoreBig(bytes, value);
  return MakeConst(kInt8Oid, std::string_view(bytes, 8), arena);
}

const Expr* MakeInt4(int32_t value, Arena* arena) {
  char bytes[4];
  StoreBig(bytes, value);
  return MakeConst(kInt4Oid, std::string_view(bytes, 4), arena);
}

const Expr* MakeTyped(ExprKind kind, Oid type, std::vector<const Expr*> args, Arena* arena) {
  Expr* expr = arena->New<Expr>();
  expr->kind = kind;
  expr->type = type;
  expr->args = arena->CopyArray(args);
  return expr;
}

const Expr* MakeCall(Oid function, Oid oper, Oid type, std::vector<const Expr*> args,
                     Arena* arena) {
  Expr* expr = arena->New<Expr>(*MakeTyped(ExprKind::kCall, type, std::move(args), arena));
  expr->function = function;
  expr->oper = oper;
  for (const Expr* arg : expr->args)
    if (arg->collation != kInvalidOid) expr->input_collation = arg->collation;
  return expr;
}

const Expr* MakeOperator(Oid oper, const Expr* left, const Expr* right, Arena* arena) {
  const OperatorInfo* info = FindOperator(oper);
  if (info == nullptr) Refuse("operator {} is not supported", oper);
  return MakeCall(info->function, oper, info->result, {left, right}, arena);
}

uint64_t RelsOf(const Expr* expr) {
  uint64_t rels = 0;
  AnyExpr(expr, [&](const Expr& e, int depth) {
    if (e.kind == ExprKind::kColumn && e.levels_up == depth && e.rel >= 0)
      rels |= uint64_t{1} << e.rel;
    return false;
  });
  return rels;
}

bool HasAggregate(const Expr* expr) {
  return AnyExpr(expr, [](const Expr& e, int depth) {
    return e.kind == ExprKind::kAggregate && e.aggregate_levels_up == depth;
  });
}

bool HasSubquery(const Expr* expr) {
  return AnyExpr(expr, [](const Expr& e, int) { return e.kind == ExprKind::kSubquery; });
}

namespace {
bool IsVolatileNode(const Expr& e, int) {
  if (e.kind != ExprKind::kCall) return false;
  const ProcInfo* proc = FindProc(e.function);
  return proc == nullptr || proc->volatility == 'v' || proc->returns_set;
}
}  // namespace

bool HasVolatile(const Expr* expr) {
  return AnyExpr(expr, IsVolatileNode);
}
bool HasVolatileInQuery(const Query& query) {
  return AnyExprInQuery(query, IsVolatileNode);
}

namespace {
// NULL (not merely not true) as soon as all columns of `rels` are NULL.
bool IsNullOver(const Expr* expr, uint64_t rels) {
  switch (expr->kind) {
    case ExprKind::kColumn:
      return expr->levels_up == 0 && expr->rel >= 0 && (rels >> expr->rel & 1);
    case ExprKind::kCall: {
      const ProcInfo* proc = FindProc(expr->function);
      if (proc == nullptr || !proc->strict) return false;
      for (const Expr* arg : expr->args)
        if (IsNullOver(arg, rels)) return true;
      return false;
    }
    case ExprKind::kRelabel:
    case ExprKind::kCollate:
    case ExprKind::kCoerceViaIo:
    case ExprKind::kNot:
      return IsNullOver(expr->args[0], rels);
    default:
      return false;
  }
}
}  // namespace

bool IsStrictOver(const Expr* expr, uint64_t rels) {
  if (expr == nullptr) return false;
  switch (expr->kind) {
    case ExprKind::kIsNotNull:
    case ExprKind::kIsTrue:
    case ExprKind::kIsFalse:
      return IsNullOver(expr->args[0], rels);
    case ExprKind::kAnyOf: {
      const ProcInfo* proc = FindProc(expr->function);
      return proc != nullptr && proc->strict && IsNullOver(expr->args[0], rels);
    }
    case ExprKind::kAnd:
      for (const Expr* arg : expr->args)
        if (IsStrictOver(arg, rels)) return true;
      return false;
    case ExprKind::kOr:
      for (const Expr* arg : expr->args)
        if (!IsStrictOver(arg, rels)) return false;
      return !expr->args.empty();
    default:
      return IsNullOver(expr, rels);
  }
}

bool IsConstantHere(const Expr& expr) {
  return expr.kind == ExprKind::kConst || expr.kind == ExprKind::kParam ||
         expr.kind == ExprKind::kExecParam;
}

bool IsEquality(const Expr* expr, const Expr** left, const Expr** right) {
  if (expr->kind != ExprKind::kCall || expr->args.size() != 2 || expr->oper == kInvalidOid)
    return false;
  const OperatorInfo* oper = FindOperator(expr->oper);
  if (oper == nullptr || oper->name != "=" || !oper->can_hash) return false;
  *left = expr->args[0];
  *right = expr->args[1];
  return true;
}

bool IsColumnCompared(const Expr* conjunct, const Expr** column, const Expr** value,
                      ComparedAs* as) {
  *as = ComparedAs::kEqual;
  const Expr *left, *right;
  bool equal = IsEquality(conjunct, &left, &right);
  if (!equal) {
    if (conjunct->kind != ExprKind::kCall || conjunct->args.size() != 2) return false;
    const OperatorInfo* oper = FindOperator(conjunct->oper);
    if (oper == nullptr || conjunct->oper >= kFirstUserOid) return false;
    bool less = oper->name == "<" || oper->name == "<=";
    if (!less && oper->name != ">" && oper->name != ">=") return false;
    *as = less ? ComparedAs::kAtMost : ComparedAs::kAtLeast;
    left = conjunct->args[0];
    right = conjunct->args[1];
  }
  auto bare = [](const Expr* e) {  // varchar is compared as text
    bool relabeled = e->kind == ExprKind::kRelabel && e->type == kTextOid &&
                     e->args[0]->kind == ExprKind::kColumn;
    return relabeled ? e->args[0] : e;
  };
  if (bare(left)->kind != ExprKind::kColumn) {
    std::swap(left, right);
    if (!equal) *as = *as == ComparedAs::kAtMost ? ComparedAs::kAtLeast : ComparedAs::kAtMost;
  }
  *column = bare(left);
  *value = right;
  if ((*column)->kind != ExprKind::kColumn || (*column)->levels_up != 0) return false;
  if (!equal && conjunct->input_collation != (*column)->collation) return false;
  return !HasVolatile(right) && !AnyExpr(right, [](const Expr& e, int) {
    return e.kind == ExprKind::kColumn || e.kind == ExprKind::kSubquery;
  });
}

}  // namespace sluice
