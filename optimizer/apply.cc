// What runs once for each outer row: subqueries in expressions (sub plans) and LATERAL. The outer
// row's values become per-row parameters, which only this process can see: nothing that depends on
// one is sent to a shard or to a worker. What depends on none is read once and kept (Materialize).
#include "common/error.h"
#include "optimizer/evaluable.h"
#include "optimizer/plan_exprs.h"
#include "optimizer/planning.h"

namespace sluice {
namespace {

using Params = std::set<int>;

bool IsPerRow(const Expr& e, int) {
  return e.kind == ExprKind::kExecParam && e.per_row;
}

void AddParams(const Expr& expr, Params* params) {
  AnyExpr(&expr, [&](const Expr& e, int depth) {
    if (IsPerRow(e, depth)) params->insert(e.param);
    return false;
  });
}

bool HasColumn(const Expr* expr) {
  return AnyExpr(expr, [](const Expr& e, int) { return e.kind == ExprKind::kColumn; });
}

bool Intersect(std::span<const int> a, const Params& b) {
  for (int param : a)
    if (b.contains(param)) return true;
  return false;
}

// Rows that cost nothing to compute again.
bool IsCheap(const Plan& plan) {
  return plan.kind == PlanKind::kMaterialize || plan.kind == PlanKind::kValuesScan ||
         plan.kind == PlanKind::kFunctionScan ||
         (plan.kind == PlanKind::kResult && plan.children.empty());
}

Plan* Mutable(const Plan* plan) {
  return const_cast<Plan*>(plan);
}

}  // namespace

bool IsCorrelated(const Query& query) {
  return AnyExprInQuery(query, [](const Expr& e, int depth) {
    return (e.kind == ExprKind::kColumn && e.levels_up > depth) ||
           (e.kind == ExprKind::kAggregate && e.aggregate_levels_up > depth);
  });
}

bool DependsOnRow(const Query& query) {
  return AnyExprInQuery(query, IsPerRow);
}

bool RunsPerRow(const Expr* expr) {
  return AnyExpr(expr, [](const Expr& e, int depth) {
    return e.kind == ExprKind::kSubPlan || IsPerRow(e, depth);
  });
}

// The parameter that stands for `outer` below; the same one for the same expression.
const Expr* Planner::BindParam(const Expr* outer, BoundParams* bound) {
  size_t at = 0;
  while (at < bound->arguments.size() && !EqualExpr(bound->arguments[at], outer)) at++;
  if (at == bound->arguments.size()) {
    bound->params.push_back(exec_param_count_++);
    bound->arguments.push_back(outer);
  }
  Expr* param = NewExecParam(bound->params[at], *outer);
  param->per_row = true;
  return param;
}

// `query`'s references to the queries around it become parameters; of the next one only `rels`.
// The arguments are in terms of that query.
const Query* Planner::BindQuery(const Query& query, uint64_t rels, BoundParams* bound) {
  auto bind = [&](const Expr& e, int depth) -> const Expr* {
    bool column = e.kind == ExprKind::kColumn && e.rel >= 0 &&
                  (e.levels_up > depth || (e.levels_up == depth && (rels >> e.rel & 1)));
    bool aggregate = e.kind == ExprKind::kAggregate && e.aggregate_levels_up >= depth;
    if (!column && !aggregate) return nullptr;
    // As the query around it sees it.
    const Expr* outer = RewriteExpr(&e, &scratch_, [&](const Expr& inner, int d) -> const Expr* {
      if (inner.kind == ExprKind::kColumn && inner.levels_up >= depth + d) {
        Expr* shifted = scratch_.New<Expr>(inner);
        shifted->levels_up -= depth;
        return shifted;
      }
      return nullptr;
    });
    if (aggregate) {
      Expr* own = scratch_.New<Expr>(*outer);
      own->aggregate_levels_up -= depth;
      outer = own;
    }
    return BindParam(outer, bound);
  };
  return RewriteQuery(query, &scratch_, bind, 1);
}

// x op ANY (…): `test` over the sub plan's rows, x being a parameter.
void Planner::AddTest(const Expr& sublink, std::span<const Expr* const> left, const Local& rows,
                      SubPlan* plan, BoundParams* bound) {
  bool alone = bound->params.empty();
  std::vector<const Expr*> tests;
  for (size_t i = 0; i < left.size(); i++) {
    const Expr& right = *rows.provides[i];
    tests.push_back(MakeOperator(sublink.sublink_operators[i], BindParam(left[i], bound),
                                 MakeColumn(kInput, static_cast<int>(i), right.type, right.typmod,
                                            right.collation, &scratch_),
                                 &scratch_));
    auto* test = const_cast<Expr*>(tests.back());
    if (i == 0 && sublink.input_collation != kInvalidOid)
      test->input_collation = sublink.input_collation;
  }
  bool any = sublink.sublink == SublinkKind::kAny;
  const Expr* test = tests.size() == 1 ? tests[0]
                                       : MakeTyped(any ? ExprKind::kAnd : ExprKind::kOr, kBoolOid,
                                                   tests, &scratch_);
  RequireEvaluable(*test);
  plan->test = DeepCopyExpr(test, &arena_);
  const Expr *value, *key;
  bool hashed = any && alone && tests.size() == 1 && !plan->is_volatile &&
                IsEquality(test, &value, &key) && AlignHashKeys(*test, &value, &key, &scratch_);
  if (!hashed) return;
  std::vector<const Expr*> keys = {DeepCopyExpr(key, &arena_)};
  std::vector<const Expr*> values = {DeepCopyExpr(value, &arena_)};
  plan->hash_keys = arena_.CopyArray(keys);
  plan->hash_values = arena_.CopyArray(values);
}

// Of a sublink that neither a join nor an init plan can stand for.
const Expr* Planner::MakeSubPlan(Select& select, const Expr& sublink) {
  auto found = init_plan_params_.find(&sublink);
  if (found != init_plan_params_.end()) return found->second;
  bool quantified = sublink.sublink == SublinkKind::kAny || sublink.sublink == SublinkKind::kAll;
  if (sublink.sublink == SublinkKind::kAll && sublink.args.size() == 1) {
    // x <> ALL (…) is NOT x = ANY (…), which can be hashed.
    const OperatorInfo* oper = FindOperator(sublink.sublink_operators[0]);
    if (oper != nullptr && oper->name == "<>" && oper->negator != kInvalidOid) {
      Expr* any = scratch_.New<Expr>(sublink);
      any->sublink = SublinkKind::kAny;
      std::vector<Oid> operators = {oper->negator};
      any->sublink_operators = scratch_.CopyArray(operators);
      return MakeTyped(ExprKind::kNot, kBoolOid, {MakeSubPlan(select, *any)}, &scratch_);
    }
  }
  BoundParams bound;
  const Query* query = BindQuery(*sublink.subquery, ~uint64_t{0}, &bound);
  if (sublink.sublink == SublinkKind::kExists && query->limit == nullptr) {
    Query* first = scratch_.New<Query>(*query);
    first->limit = MakeInt8(1, &scratch_);
    query = first;
  }
  SubPlan plan{};
  plan.kind = sublink.sublink;
  plan.type = sublink.type;
  plan.is_volatile = HasVolatileInQuery(*query);
  Local rows = PlanAny(*query, false);
  plan.plan = rows.plan;
  if (quantified) {
    if (rows.provides.size() < sublink.args.size() ||
        sublink.sublink_operators.size() != sublink.args.size())
      Refuse("this kind of subquery comparison is not supported");
    std::vector<const Expr*> left;
    for (const Expr* arg : sublink.args) left.push_back(ReplaceSublinks(select, arg, false));
    if (DependsOnRow(*query) && bound.params.empty()) {
      // Its rows change with a row further out: they cannot be hashed once.
      AddTest(sublink, left, rows, &plan, &bound);
      plan.hash_keys = plan.hash_values = {};
    } else {
      AddTest(sublink, left, rows, &plan, &bound);
    }
  }
  plan.params = arena_.CopyArray(bound.params);
  Expr* expr = scratch_.New<Expr>();
  expr->kind = ExprKind::kSubPlan;
  expr->param = static_cast<int>(sub_plans_.size());
  expr->type = sublink.type;
  expr->typmod = sublink.typmod;
  expr->collation = sublink.collation;
  expr->args = scratch_.CopyArray(bound.arguments);
  sub_plans_.push_back(plan);
  return init_plan_params_[&sublink] = expr;
}

// What `node`'s rels and conditions refer to outside of it: its LATERAL references.
std::vector<const Expr*> Planner::LateralColumns(const Select& select, const JoinNode& node) const {
  uint64_t inside = RelsOfNode(node);
  std::vector<const Expr*> columns;
  auto collect = [&](const Expr& e, int depth) {
    if (e.kind != ExprKind::kColumn || e.levels_up != depth || e.rel < 0) return false;
    if (inside >> e.rel & 1) return false;
    Expr* column = const_cast<Arena&>(scratch_).New<Expr>(e);
    column->levels_up = 0;
    AddUnique(column, &columns);
    return false;
  };
  auto visit = [&](auto& self, const JoinNode& n) -> void {
    for (const Expr* on : n.on) AnyExpr(on, collect);
    if (n.rel >= 0) {
      const QueryRel& rel = select.rels[static_cast<size_t>(n.rel)];
      if (rel.subquery != nullptr) AnyExprInQuery(*rel.subquery, collect, 1);
      AnyExpr(rel.function, collect);
      for (auto row : rel.values)
        for (const Expr* value : row) AnyExpr(value, collect);
      return;
    }
    self(self, *n.left);
    if (n.right != nullptr) self(self, *n.right);
  };
  visit(visit, node);
  return columns;
}

// `select` with the node's LATERAL references bound to parameters.
Select Planner::BindLateral(const Select& select, JoinNode* node, BoundParams* bound) {
  uint64_t outside = ~RelsOfNode(*node);
  Select copy = select;
  auto bind = [&](const Expr& e, int depth) -> const Expr* {
    if (e.kind != ExprKind::kColumn || e.levels_up != depth || e.rel < 0) return nullptr;
    if (!(outside >> e.rel & 1)) return nullptr;
    Expr* column = scratch_.New<Expr>(e);
    column->levels_up = 0;
    return BindParam(column, bound);
  };
  auto visit = [&](auto& self, JoinNode* n) -> void {
    for (const Expr*& on : n->on) on = RewriteExpr(on, &scratch_, bind);
    if (n->rel >= 0) {
      QueryRel& rel = copy.rels[static_cast<size_t>(n->rel)];
      if (rel.subquery != nullptr) rel.subquery = BindQuery(*rel.subquery, outside, bound);
      rel.function = RewriteExpr(rel.function, &scratch_, bind);
      rel.values = RewriteRows(rel.values, &scratch_, bind);
      return;
    }
    self(self, n->left);
    if (n->right != nullptr) self(self, n->right);
  };
  visit(visit, node);
  return copy;
}

// `left` with the LATERAL `node`, planned for one row of it at a time.
Piece Planner::JoinLateral(const Select& select, Piece& left, JoinNode* node, JoinType type,
                           const std::vector<const Expr*>& quals,
                           const std::vector<const Expr*>& conditions,
                           const std::vector<const Expr*>& required) {
  std::vector<const Expr*> below = required;
  for (const Expr* condition : conditions) CollectColumns(condition, &below);
  BoundParams bound;
  Select bound_select = BindLateral(select, node, &bound);
  std::vector<const Expr*> outer_wanted = bound.arguments, inner_wanted;
  uint64_t inner_rels = RelsOfNode(*node);
  for (const Expr* expr : below) {
    if (RelsOf(expr) != 0 && (RelsOf(expr) & ~left.rels) == 0) AddUnique(expr, &outer_wanted);
    if (RelsOf(expr) != 0 && (RelsOf(expr) & ~inner_rels) == 0) AddUnique(expr, &inner_wanted);
  }
  lateral_depth_++;
  Piece right = PlanNode(bound_select, node, quals, inner_wanted);
  lateral_depth_--;
  Local outer = ToLocal(select, left, outer_wanted);
  Local inner = ToLocal(bound_select, right, inner_wanted);
  auto* apply = NewNode<ApplyPlan>(PlanKind::kApply);
  apply->type = type;
  apply->params = arena_.CopyArray(bound.params);
  apply->arguments = LowerAll(bound.arguments, outer);
  apply->condition = LowerConjuncts(conditions, outer, &inner);
  SetChildren(apply, {outer.plan, inner.plan});
  return JoinedPiece(apply, outer, inner, type, left.rels | inner_rels,
                     std::max(1.0, left.rows * std::max(1.0, right.rows / 100)));
}

// ---- the finished plan

// Conjuncts `expression over the rows = expression over parameters`: what rows are looked up by.
void Planner::AddIndex(const FilterPlan& filter, MaterializePlan* rows) {
  std::vector<const Expr*> conjuncts, keys, values;
  SplitConjuncts(filter.condition, &conjuncts);
  for (const Expr* conjunct : conjuncts) {
    const Expr *key, *value;
    if (!IsEquality(conjunct, &key, &value) || HasVolatile(conjunct)) continue;
    if (HasColumn(value)) std::swap(key, value);
    if (HasColumn(value) || !HasColumn(key) || RunsPerRow(key)) continue;
    if (AnyExpr(value, [](const Expr& e, int) { return e.kind == ExprKind::kSubPlan; })) continue;
    if (!AlignHashKeys(*conjunct, &key, &value, &scratch_)) continue;
    keys.push_back(DeepCopyExpr(key, &arena_));
    values.push_back(DeepCopyExpr(value, &arena_));
  }
  rows->index_keys = arena_.CopyArray(keys);
  rows->lookup = arena_.CopyArray(values);
}

sluice::Plan* Planner::Keep(sluice::Plan* plan) {
  auto* rows = NewNode<MaterializePlan>(PlanKind::kMaterialize);
  rows->output = plan->output;
  rows->rows = plan->rows;
  rows->depends_on = plan->depends_on;
  SetChildren(rows, {plan});
  return rows;
}

// `plan` will be rescanned whenever one of `changing` has changed: what depends on none is kept.
sluice::Plan* Planner::MakeRescannable(sluice::Plan* plan, const std::set<int>& changing) {
  if (!Intersect(plan->depends_on, changing)) return IsCheap(*plan) ? plan : Keep(plan);
  if (plan->kind == PlanKind::kAppend) static_cast<AppendPlan*>(plan)->claim_whole = false;
  std::vector<const sluice::Plan*> children;
  for (const sluice::Plan* child : plan->children)
    children.push_back(MakeRescannable(Mutable(child), changing));
  if (plan->kind == PlanKind::kFilter && children[0]->kind == PlanKind::kMaterialize)
    AddIndex(static_cast<const FilterPlan&>(*plan),
             static_cast<MaterializePlan*>(Mutable(children[0])));
  SetChildren(plan, children);
  return plan;
}

// Says of each node which sub plans it runs and which parameters it depends on, bottom up.
void Planner::Parameterize(sluice::Plan* plan) {
  for (const sluice::Plan* child : plan->children) Parameterize(Mutable(child));
  if (plan->kind == PlanKind::kRecursiveUnion) {
    Params round = {static_cast<RecursiveUnionPlan*>(plan)->work_table};
    SetChildren(plan, {plan->children[0], MakeRescannable(Mutable(plan->children[1]), round)});
  }
  if (plan->kind == PlanKind::kApply) {
    auto* apply = static_cast<ApplyPlan*>(plan);
    Params changing(apply->params.begin(), apply->params.end());
    SetChildren(plan, {plan->children[0], MakeRescannable(Mutable(plan->children[1]), changing)});
  }
  Params depends_on;
  if (plan->kind == PlanKind::kWorkTableScan)
    depends_on.insert(static_cast<WorkTableScanPlan*>(plan)->work_table);
  std::vector<int> sub_plans;
  ForEachPlanExpr(*plan, [&](const Expr& expr) {
    AddParams(expr, &depends_on);
    AnyExpr(&expr, [&](const Expr& e, int) {
      if (e.kind != ExprKind::kSubPlan) return false;
      if (std::find(sub_plans.begin(), sub_plans.end(), e.param) == sub_plans.end())
        sub_plans.push_back(e.param);
      return false;
    });
  });
  for (int number : sub_plans) {
    SubPlan& sub_plan = sub_plans_[static_cast<size_t>(number)];
    ParameterizeSubPlan(&sub_plan);
    depends_on.insert(sub_plan.depends_on.begin(), sub_plan.depends_on.end());
  }
  for (size_t i = 0; i < plan->children.size(); i++) {
    Params below(plan->children[i]->depends_on.begin(), plan->children[i]->depends_on.end());
    if (plan->kind == PlanKind::kApply && i == 1)
      for (int param : static_cast<ApplyPlan*>(plan)->params) below.erase(param);
    if (plan->kind == PlanKind::kRecursiveUnion)
      below.erase(static_cast<RecursiveUnionPlan*>(plan)->work_table);
    depends_on.insert(below.begin(), below.end());
  }
  plan->sub_plans = arena_.CopyArray(sub_plans);
  std::vector<int> sorted(depends_on.begin(), depends_on.end());
  plan->depends_on = arena_.CopyArray(sorted);
}

void Planner::ParameterizeSubPlan(SubPlan* sub_plan) {
  if (!parameterized_.insert(sub_plan).second) return;
  auto* plan = Mutable(sub_plan->plan);
  Parameterize(plan);
  Params changing(plan->depends_on.begin(), plan->depends_on.end());
  changing.insert(sub_plan->params.begin(), sub_plan->params.end());
  sub_plan->plan = MakeRescannable(plan, changing);
  Params outside(plan->depends_on.begin(), plan->depends_on.end());
  for (int param : sub_plan->params) outside.erase(param);
  std::vector<int> sorted(outside.begin(), outside.end());
  sub_plan->depends_on = arena_.CopyArray(sorted);
}

}  // namespace sluice
