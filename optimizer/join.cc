// FROM and WHERE: conditions go down as far as they may, inner joins are ordered greedily, outer
// joins stay where they were written.
#include "common/error.h"
#include "optimizer/evaluable.h"
#include "optimizer/planning.h"

namespace sluice {
namespace {

std::vector<const Expr*> WithColumns(std::vector<const Expr*> required,
                                     const std::vector<const Expr*>& conditions) {
  for (const Expr* condition : conditions) CollectColumns(condition, &required);
  return required;
}

bool Within(const Expr* expr, uint64_t rels) {
  return (RelsOf(expr) & ~rels) == 0;
}

// Moves the members for which `take` holds to the result.
template <typename Take>
std::vector<const Expr*> TakeIf(std::vector<const Expr*>* from, Take&& take) {
  std::vector<const Expr*> taken, rest;
  for (const Expr* expr : *from) (take(expr) ? taken : rest).push_back(expr);
  *from = std::move(rest);
  return taken;
}

bool IsPlainColumn(const Expr* expr) {
  return expr->kind == ExprKind::kColumn && expr->levels_up == 0 && expr->rel >= 0;
}

bool IsKnown(const Expr* expr) {
  return expr->kind == ExprKind::kConst || expr->kind == ExprKind::kParam;
}

// The pairs of hash keys among `conditions`; the others stay in `rest`. Both sides' keys get one
// type, so that equal values hash alike.
struct HashKeys {
  std::vector<const Expr*> outer, inner, rest;
};

int IntegerWidth(Oid type) {
  return type == kInt2Oid ? 2 : type == kInt4Oid ? 4 : type == kInt8Oid ? 8 : 0;
}

const Expr* AsInt8(const Expr* expr, Arena* arena) {
  constexpr Oid kInt4ToInt8 = 481, kInt2ToInt8 = 754;
  if (expr->type == kInt8Oid) return expr;
  return MakeCall(expr->type == kInt4Oid ? kInt4ToInt8 : kInt2ToInt8, kInvalidOid, kInt8Oid, {expr},
                  arena);
}

}  // namespace

bool AlignHashKeys(const Expr& condition, const Expr** a, const Expr** b, Arena* arena) {
  if ((*a)->type != (*b)->type) {
    if (IntegerWidth((*a)->type) == 0 || IntegerWidth((*b)->type) == 0) return false;
    *a = AsInt8(*a, arena);
    *b = AsInt8(*b, arena);
  }
  return CanGroupBy((*a)->type, condition.input_collation);
}

namespace {

HashKeys FindHashKeys(const std::vector<const Expr*>& conditions, uint64_t outer, uint64_t inner,
                      Arena* arena) {
  HashKeys keys;
  for (const Expr* condition : conditions) {
    const Expr *a, *b;
    bool usable = IsEquality(condition, &a, &b) && !HasVolatile(condition);
    if (usable && (RelsOf(a) == 0 || RelsOf(b) == 0)) usable = false;
    if (usable && Within(a, inner) && Within(b, outer)) std::swap(a, b);
    usable = usable && Within(a, outer) && Within(b, inner);
    if (!usable || !AlignHashKeys(*condition, &a, &b, arena)) {
      keys.rest.push_back(condition);
      continue;
    }
    keys.outer.push_back(a);
    keys.inner.push_back(b);
  }
  return keys;
}

}  // namespace

uint64_t RelsOfNode(const JoinNode& node) {
  if (node.rel >= 0) return uint64_t{1} << node.rel;
  uint64_t rels = node.left == nullptr ? 0 : RelsOfNode(*node.left);
  if (node.right != nullptr) rels |= RelsOfNode(*node.right);
  return rels;
}

// a.id = b.id AND a.id = 7 → also b.id = 7: for pruning, and fewer rows to fetch.
void Planner::AddEqualConstants(std::vector<const Expr*>* quals) {
  for (bool again = true; again;) {
    again = false;
    std::vector<const Expr*> found;
    for (const Expr* known : *quals) {
      const Expr *column, *value;
      if (!IsEquality(known, &column, &value)) continue;
      if (IsKnown(column)) std::swap(column, value);
      if (!IsPlainColumn(column) || !IsKnown(value)) continue;
      for (const Expr* equality : *quals) {
        const Expr *a, *b;
        if (!IsEquality(equality, &a, &b) || !IsPlainColumn(a) || !IsPlainColumn(b)) continue;
        if (EqualExpr(b, column)) std::swap(a, b);
        if (!EqualExpr(a, column) || a->type != b->type || a->collation != b->collation) continue;
        Expr* derived = scratch_.New<Expr>(*known);
        std::vector<const Expr*> args = {b, value};
        if (!EqualExpr(known->args[0], column)) std::swap(args[0], args[1]);
        derived->args = scratch_.CopyArray(args);
        found.push_back(derived);
      }
    }
    for (const Expr* derived : found) {
      size_t before = quals->size();
      AddUnique(derived, quals);
      again |= quals->size() > before;
    }
  }
}

Piece Planner::PlanFrom(const Select& select, const std::vector<const Expr*>& required) {
  return PlanNode(select, select.from, select.where, required);
}

Piece Planner::PlanLeaf(const Select& select, int rel, const std::vector<const Expr*>& quals) {
  if (select.rels[static_cast<size_t>(rel)].kind == RelKind::kTable)
    return PlanTable(select, rel, quals);
  if (select.rels[static_cast<size_t>(rel)].kind != RelKind::kSubquery) {
    Piece piece = PlanOtherRel(select, rel, nullptr);
    FilterPiece(select, piece, quals);
    return piece;
  }
  std::vector<const Expr*> rest = quals;
  const Query* subquery = PushIntoSubquery(select, rel, &rest);
  Piece piece = PlanOtherRel(select, rel, subquery);
  FilterPiece(select, piece, rest);
  return piece;
}

// `quals` hold above the node and refer to its rels only. `required`: expressions that the result's
// user needs.
Piece Planner::PlanNode(const Select& select, JoinNode* node, std::vector<const Expr*> quals,
                        const std::vector<const Expr*>& required) {
  if (node->rel >= 0) return PlanLeaf(select, node->rel, quals);
  if (node->right == nullptr || node->type == JoinType::kInner)
    return PlanInnerJoins(select, node, std::move(quals), required);
  if (node->type == JoinType::kLeft) {
    uint64_t nullable = RelsOfNode(*node->right);
    for (const Expr* qual : quals) {
      if (!IsStrictOver(qual, nullable)) continue;
      node->type = JoinType::kInner;  // the rows that it would add are thrown away above
      return PlanInnerJoins(select, node, std::move(quals), required);
    }
  }
  return PlanOuterJoin(select, node, std::move(quals), required);
}

// Conditions of a nullable side that look beyond it, which a pulled up LATERAL subquery has
// brought: they are the join's.
void Planner::LiftConditions(JoinNode* node, std::vector<const Expr*>* on) {
  uint64_t inside = RelsOfNode(*node);
  auto visit = [&](auto& self, JoinNode* n) -> void {
    if (n->rel >= 0 || (n->right != nullptr && n->type != JoinType::kInner)) return;
    auto lifted = TakeIf(&n->on, [&](const Expr* e) { return !Within(e, inside); });
    on->insert(on->end(), lifted.begin(), lifted.end());
    self(self, n->left);
    if (n->right != nullptr) self(self, n->right);
  };
  visit(visit, node);
}

Piece Planner::PlanOuterJoin(const Select& select, JoinNode* node, std::vector<const Expr*> quals,
                             const std::vector<const Expr*>& required) {
  uint64_t left_rels = RelsOfNode(*node->left), right_rels = RelsOfNode(*node->right);
  uint64_t nullable = node->type == JoinType::kFull   ? left_rels | right_rels
                      : node->type == JoinType::kLeft ? right_rels
                                                      : 0;
  for (const RowMark& mark : select.row_marks)
    if ((nullable >> mark.rel & 1) != 0)
      Refuse("{} cannot be applied to the nullable side of an outer join", NameOf(mark.strength));
  std::vector<const Expr*> on = node->on, left_quals, right_quals;
  if (!node->null_aware && node->type != JoinType::kFull) LiftConditions(node->right, &on);
  if (node->type != JoinType::kFull) {
    left_quals =
        TakeIf(&quals, [&](const Expr* e) { return Within(e, left_rels) && !HasVolatile(e); });
    // What the left side's constants say about the right side's columns, through ON.
    std::vector<const Expr*> known = on;
    known.insert(known.end(), left_quals.begin(), left_quals.end());
    size_t before = known.size();
    if (!node->null_aware) AddEqualConstants(&known);
    for (size_t i = before; i < known.size(); i++)
      if (Within(known[i], right_rels)) right_quals.push_back(known[i]);
    if (!node->null_aware) {
      auto own = TakeIf(&on, [&](const Expr* e) {
        return RelsOf(e) != 0 && Within(e, right_rels) && !HasVolatile(e);
      });
      right_quals.insert(right_quals.end(), own.begin(), own.end());
    }
    if (node->type == JoinType::kSemi) {
      auto own =
          TakeIf(&on, [&](const Expr* e) { return Within(e, left_rels) && !HasVolatile(e); });
      left_quals.insert(left_quals.end(), own.begin(), own.end());
    }
  }
  std::vector<const Expr*> below = WithColumns(WithColumns(required, on), quals);
  std::vector<const Expr*> lateral = LateralColumns(select, *node->right);
  Piece left = PlanNode(select, node->left, left_quals, WithColumns(below, lateral));
  if (!lateral.empty() || node->right->apply) {
    if (node->null_aware || node->type == JoinType::kFull)
      Refuse("LATERAL in this join is not supported");
    Piece joined = JoinLateral(select, left, node->right, node->type, right_quals, on, below);
    FilterPiece(select, joined, quals);
    return joined;
  }
  Piece right = PlanNode(select, node->right, right_quals, below);
  Piece joined = Join(select, left, right, node->type, on, node->null_aware, below);
  FilterPiece(select, joined, quals);
  return joined;
}

Piece Planner::PlanInnerJoins(const Select& select, JoinNode* node, std::vector<const Expr*> quals,
                              const std::vector<const Expr*>& required) {
  std::vector<JoinNode*> items;
  std::vector<const Expr*> pool = std::move(quals);
  auto flatten = [&](auto& self, JoinNode* n) -> void {
    if (n->rel >= 0 || (n->right != nullptr && n->type != JoinType::kInner)) {
      items.push_back(n);
      return;
    }
    pool.insert(pool.end(), n->on.begin(), n->on.end());
    self(self, n->left);
    if (n->right != nullptr) self(self, n->right);
  };
  flatten(flatten, node);
  for (bool again = true; again;) {  // outer joins whose added rows some condition here throws away
    again = false;
    for (size_t i = 0; i < items.size() && !again; i++) {
      if (items[i]->rel >= 0 || items[i]->type != JoinType::kLeft) continue;
      uint64_t nullable = RelsOfNode(*items[i]->right);
      for (const Expr* qual : pool) again |= IsStrictOver(qual, nullable);
      if (!again) continue;
      JoinNode* reduced = items[i];
      reduced->type = JoinType::kInner;
      items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
      flatten(flatten, reduced);
    }
  }
  AddEqualConstants(&pool);

  std::vector<std::vector<const Expr*>> item_quals;
  for (size_t i = 0; i < items.size(); i++) {
    uint64_t rels = RelsOfNode(*items[i]);
    item_quals.push_back(TakeIf(
        &pool, [&](const Expr* e) { return Within(e, rels) && (RelsOf(e) != 0 || i == 0); }));
  }
  std::vector<const Expr*> below = WithColumns(required, pool);
  std::vector<bool> is_lateral;
  for (const JoinNode* item : items) {
    std::vector<const Expr*> columns = LateralColumns(select, *item);
    is_lateral.push_back(!columns.empty() || item->apply);
    below = WithColumns(below, columns);
  }
  std::vector<Piece> pieces;
  for (size_t i = 0; i < items.size(); i++)
    if (!is_lateral[i]) pieces.push_back(PlanNode(select, items[i], item_quals[i], below));

  while (pieces.size() > 1) {
    size_t best_left = 0, best_right = 1;
    double best_rows = -1;
    int best_rank = 9;  // 0 on the shards, 1 with a condition, 2 a cross product
    std::vector<const Expr*> best_conditions;
    for (size_t i = 0; i < pieces.size(); i++)
      for (size_t j = i + 1; j < pieces.size(); j++) {
        std::vector<const Expr*> conditions;
        for (const Expr* e : pool)
          if (Within(e, pieces[i].rels | pieces[j].rels)) conditions.push_back(e);
        Piece unused;
        int rank = conditions.empty() ? 2 : 1;
        if (rank == 1 &&
            TryColocate(select, pieces[i], pieces[j], JoinType::kInner, conditions, &unused))
          rank = 0;
        double rows = JoinRows(select, pieces[i], pieces[j], JoinType::kInner, conditions);
        if (rank > best_rank || (rank == best_rank && rows >= best_rows)) continue;
        best_rank = rank;
        best_rows = rows;
        best_left = i;
        best_right = j;
        best_conditions = conditions;
      }
    Piece joined = Join(select, pieces[best_left], pieces[best_right], JoinType::kInner,
                        best_conditions, false, below);
    TakeIf(&pool, [&](const Expr* e) {
      for (const Expr* used : best_conditions)
        if (used == e) return true;
      return false;
    });
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(best_right));
    pieces[best_left] = std::move(joined);
  }
  // LATERAL items look at what is to their left: after all that stands alone, in their order.
  for (size_t i = 0; i < items.size(); i++) {
    if (!is_lateral[i]) continue;
    uint64_t rels = pieces[0].rels | RelsOfNode(*items[i]);
    auto conditions = TakeIf(&pool, [&](const Expr* e) { return Within(e, rels); });
    pieces[0] = JoinLateral(select, pieces[0], items[i], JoinType::kInner, item_quals[i],
                            conditions, below);
  }
  FilterPiece(select, pieces[0], pool);
  return std::move(pieces[0]);
}

double Planner::JoinRows(const Select& select, const Piece& left, const Piece& right, JoinType type,
                         const std::vector<const Expr*>& conditions) const {
  double rows = left.rows * right.rows;
  for (const Expr* condition : conditions) {
    const Expr *a, *b;
    if (!IsEquality(condition, &a, &b)) {
      rows /= 3;
      continue;
    }
    double distinct =
        std::max(DistinctValues(select, a, left.rows), DistinctValues(select, b, right.rows));
    rows /= distinct > 0 ? distinct : std::max(1.0, std::min(left.rows, right.rows));
  }
  switch (type) {
    case JoinType::kLeft:
      rows = std::max(rows, left.rows);
      break;
    case JoinType::kFull:
      rows = std::max({rows, left.rows, right.rows});
      break;
    case JoinType::kSemi:
      rows = std::min(rows, left.rows / 2);
      break;
    case JoinType::kAnti:
      rows = left.rows / 2;
      break;
    default:
      break;
  }
  return std::max(1.0, rows);
}

Piece Planner::Join(const Select& select, Piece& left, Piece& right, JoinType type,
                    std::vector<const Expr*> conditions, bool null_aware,
                    const std::vector<const Expr*>& required) {
  Piece joined;
  if (!null_aware && TryColocate(select, left, right, type, conditions, &joined)) return joined;
  return JoinLocally(select, left, right, type, conditions, null_aware, required);
}

namespace {
bool ReadsWorkTable(const Plan& plan) {
  if (plan.kind == PlanKind::kWorkTableScan) return true;
  for (const Plan* child : plan.children)
    if (ReadsWorkTable(*child)) return true;
  return false;
}
bool ReadsWorkTable(const Piece& piece) {
  return !piece.remote && ReadsWorkTable(*piece.local.plan);
}
}  // namespace

Piece Planner::JoinLocally(const Select& select, Piece& left, Piece& right, JoinType type,
                           const std::vector<const Expr*>& conditions, bool null_aware,
                           const std::vector<const Expr*>& required) {
  double rows = JoinRows(select, left, right, type, conditions);
  bool swap = type == JoinType::kInner && right.rows > left.rows;  // build the smaller side
  // In a recursive query's rounds: the side that stays the same.
  if (type == JoinType::kInner && ReadsWorkTable(left) != ReadsWorkTable(right))
    swap = ReadsWorkTable(right);
  Piece& outer_piece = swap ? right : left;
  Piece& inner_piece = swap ? left : right;
  auto own = [&](const Piece& piece) {
    std::vector<const Expr*> columns;
    for (const Expr* expr : WithColumns({}, WithColumns(required, conditions)))
      if (Within(expr, piece.rels)) AddUnique(expr, &columns);
    return columns;
  };
  Local outer = ToLocal(select, outer_piece, own(outer_piece));
  Local inner = ToLocal(select, inner_piece, own(inner_piece));
  HashKeys keys = FindHashKeys(conditions, outer_piece.rels, inner_piece.rels, &scratch_);
  sluice::Plan* plan;
  if (!keys.outer.empty() && !(null_aware && (keys.outer.size() != 1 || !keys.rest.empty()))) {
    auto* join = NewNode<HashJoinPlan>(PlanKind::kHashJoin);
    join->type = type;
    join->outer_keys = LowerAll(keys.outer, outer);
    auto inner_keys = arena_.NewArray<const Expr*>(keys.inner.size());
    for (size_t i = 0; i < inner_keys.size(); i++) inner_keys[i] = Lower(keys.inner[i], {}, &inner);
    join->inner_keys = inner_keys;
    join->condition = LowerConjuncts(keys.rest, outer, &inner);
    join->null_aware = null_aware;
    plan = join;
    SetChildren(plan, {outer.plan, inner.plan});
  } else {
    if (null_aware) Refuse("NOT IN with this comparison is not supported");
    if (type == JoinType::kFull)
      Refuse("FULL JOIN is only supported with merge-joinable or hash-joinable join conditions");
    auto* join = NewNode<NestLoopPlan>(PlanKind::kNestLoop);
    join->type = type;
    join->condition = LowerConjuncts(conditions, outer, &inner);
    plan = join;
    auto* materialize = NewNode<MaterializePlan>(PlanKind::kMaterialize);
    materialize->output = inner.plan->output;
    materialize->rows = inner.plan->rows;
    SetChildren(materialize, {inner.plan});
    SetChildren(plan, {outer.plan, materialize});
  }
  return JoinedPiece(plan, outer, inner, type, left.rels | right.rels, rows);
}

Piece Planner::JoinedPiece(sluice::Plan* plan, const Local& outer, const Local& inner,
                           JoinType type, uint64_t rels, double rows) {
  bool semi = type == JoinType::kSemi || type == JoinType::kAnti;
  std::vector<const Expr*> provides = outer.provides;
  if (!semi) provides.insert(provides.end(), inner.provides.begin(), inner.provides.end());
  auto output = arena_.NewArray<OutputColumn>(provides.size());
  for (size_t i = 0; i < output.size(); i++)
    output[i] = i < outer.provides.size() ? outer.plan->output[i]
                                          : inner.plan->output[i - outer.provides.size()];
  plan->output = output;
  plan->rows = rows;
  Piece joined;
  joined.rels = rels;
  joined.rows = rows;
  joined.local = {plan, provides};
  return joined;
}

}  // namespace sluice
