// Query → Select: CTEs inlined, simple subqueries of FROM pulled up, sublinks turned into joins.
#include "common/error.h"
#include "optimizer/planning.h"

namespace sluice {
namespace {

constexpr size_t kRelsMax = 64;

bool AllPlainColumns(const std::vector<Target>& targets) {
  for (const Target& target : targets)
    if (target.expr->kind != ExprKind::kColumn || target.expr->levels_up != 0) return false;
  return true;
}

template <typename Fn>
void ForEachOn(JoinNode* node, Fn&& fn) {
  if (node == nullptr || node->rel >= 0) return;
  for (const Expr*& on : node->on) on = fn(on);
  ForEachOn(node->left, fn);
  ForEachOn(node->right, fn);
}

template <typename Fn>
void ForEachSelectExpr(Select& select, Fn&& fn) {
  ForEachOn(select.from, fn);
  for (const Expr*& qual : select.where) qual = fn(qual);
  for (const Expr*& qual : select.having) qual = fn(qual);
  for (Target& target : select.targets) target.expr = fn(target.expr);
  for (SortKey& key : select.order_by)
    if (key.expr != nullptr) key.expr = fn(key.expr);
  for (WindowClause& window : select.windows) {
    window.start_offset = fn(window.start_offset);
    window.end_offset = fn(window.end_offset);
  }
}

void ShiftLeaves(JoinNode* node, int by) {
  if (node == nullptr) return;
  if (node->rel >= 0) {
    node->rel += by;
    return;
  }
  ShiftLeaves(node->left, by);
  ShiftLeaves(node->right, by);
}

// Its own FOR UPDATE locks its rows, whatever the enclosing query takes of them.
bool LocksItself(const Query& query) {
  return std::ranges::any_of(query.row_marks, [](const RowMark& mark) { return !mark.inherited; });
}

bool IsSimple(const Select& select) {
  if (select.from == nullptr || select.has_aggregates || select.distinct ||
      !select.order_by.empty() || select.limit != nullptr || select.offset != nullptr ||
      !select.having.empty())
    return false;
  for (const Target& target : select.targets)
    if (target.junk || HasVolatile(target.expr) || HasSubquery(target.expr) ||
        RunsPerRow(target.expr))
      return false;
  return true;
}

}  // namespace

// Each CTE becomes a subquery wherever it is named. What is named twice is computed twice, which is
// right as long as nothing in it is volatile.
const Query* Planner::InlineCtes(const Query& query, std::vector<std::vector<InlinedCte>>& stack) {
  stack.emplace_back();
  for (const Cte& cte : query.ctes) {
    if (cte.query->command == QueryCommand::kSelect && cte.references > 1 &&
        HasVolatileInQuery(*cte.query))
      Refuse("a WITH query with volatile functions that is used more than once is not supported");
    const Query* inlined = InlineCte(cte, stack);
    if (inlined->command != QueryCommand::kSelect) {
      if (IsCorrelated(*inlined))
        Refuse("a WITH query that refers to an enclosing query is not supported");
      modifying_ctes_.push_back({inlined});
    }
    stack.back().push_back({inlined});
  }
  Query* copy = scratch_.New<Query>(query);
  copy->ctes = {};
  std::span<QueryRel> rels = scratch_.CopyArray(query.rels);
  for (QueryRel& rel : rels) {
    if (rel.kind == RelKind::kCte && rel.cte_levels_up >= 0) {
      const auto& level = stack[stack.size() - 1 - static_cast<size_t>(rel.cte_levels_up)];
      if (static_cast<size_t>(rel.cte) >= level.size()) Refuse("this WITH query is not supported");
      const InlinedCte& inlined = level[static_cast<size_t>(rel.cte)];
      if (inlined.query == nullptr) {
        rel.cte = inlined.work_table;
        rel.cte_levels_up = kWorkTableLevel;
        continue;
      }
      const Query* named = inlined.query;
      if (named->command != QueryCommand::kSelect) {
        auto found = std::find_if(modifying_ctes_.begin(), modifying_ctes_.end(),
                                  [&](const ModifyingCte& cte) { return cte.query == named; });
        rel.cte = static_cast<int>(found - modifying_ctes_.begin());
        rel.cte_levels_up = -1;  // of the planner's list
        continue;
      }
      rel.kind = RelKind::kSubquery;
      rel.subquery = Deeper(*named, rel.cte_levels_up);
    } else if (rel.subquery != nullptr) {
      rel.subquery = InlineCtes(*rel.subquery, stack);
    }
  }
  copy->rels = rels;
  Modification* modification = nullptr;
  if (query.modification != nullptr) {
    modification = scratch_.New<Modification>(*query.modification);
    if (modification->source != nullptr)
      modification->source = InlineCtes(*modification->source, stack);
    copy->modification = modification;
  }
  auto inline_set_op = [&](auto& self, const SetOpTree* tree) -> const SetOpTree* {
    if (tree == nullptr) return nullptr;
    SetOpTree* t = scratch_.New<SetOpTree>(*tree);
    if (t->leaf != nullptr) t->leaf = InlineCtes(*t->leaf, stack);
    t->left = self(self, t->left);
    t->right = self(self, t->right);
    return t;
  };
  copy->set_op = inline_set_op(inline_set_op, query.set_op);
  // Sublinks of this level: their queries see this level's CTEs as one level up.
  DepthRewriter in_sublinks = [&](const Expr& e, int) -> const Expr* {
    if (e.kind != ExprKind::kSubquery) return nullptr;
    Expr* sublink = scratch_.New<Expr>(e);
    std::vector<const Expr*> args;
    for (const Expr* arg : e.args) args.push_back(RewriteExpr(arg, &scratch_, in_sublinks));
    sublink->args = scratch_.CopyArray(args);
    sublink->subquery = InlineCtes(*e.subquery, stack);
    return sublink;
  };
  const Query* result = copy;
  bool any = AnyExprInQuery(
      *copy, [](const Expr& e, int depth) { return e.kind == ExprKind::kSubquery && depth == 0; });
  if (any) {
    // The rels' subqueries are done: only this level's own expressions are rewritten.
    std::span<QueryRel> own = scratch_.CopyArray(copy->rels);
    std::vector<const Query*> subqueries;
    for (QueryRel& rel : own) {
      subqueries.push_back(rel.subquery);
      rel.subquery = nullptr;
    }
    const SetOpTree* set_op = copy->set_op;
    const Query* source = modification == nullptr ? nullptr : modification->source;
    copy->rels = own;
    copy->set_op = nullptr;
    if (source != nullptr) modification->source = nullptr;
    Query* rewritten = const_cast<Query*>(RewriteQuery(*copy, &scratch_, in_sublinks, 0));
    std::span<QueryRel> back = scratch_.CopyArray(rewritten->rels);
    for (size_t i = 0; i < back.size(); i++) back[i].subquery = subqueries[i];
    rewritten->rels = back;
    rewritten->set_op = set_op;
    if (source != nullptr) const_cast<Modification*>(rewritten->modification)->source = source;
    result = rewritten;
  }
  stack.pop_back();
  return result;
}

// A recursive one sees itself as a work table.
const Query* Planner::InlineCte(const Cte& cte, std::vector<std::vector<InlinedCte>>& stack) {
  if (!cte.recursive) return InlineCtes(*cte.query, stack);
  int work_table = work_table_count_++;
  size_t level = stack.size() - 1;
  stack[level].push_back({nullptr, work_table});
  Query* query = scratch_.New<Query>(*InlineCtes(*cte.query, stack));
  query->work_table = work_table;
  stack[level].pop_back();
  return query;
}

// `query` as it reads `levels` further down: what it refers to outside is that much further away.
const Query* Planner::Deeper(const Query& query, int levels) {
  if (levels == 0 || !IsCorrelated(query)) return &query;
  return RewriteQuery(
      query, &scratch_,
      [&](const Expr& e, int depth) -> const Expr* {
        if (e.kind == ExprKind::kAggregate && e.aggregate_levels_up > depth)
          Refuse("an outer aggregate in a WITH query is not supported");
        if (e.kind != ExprKind::kColumn || e.levels_up <= depth) return nullptr;
        Expr* column = scratch_.New<Expr>(e);
        column->levels_up += levels;
        return column;
      },
      0);
}

JoinNode* Planner::NewJoinNode() {
  join_nodes_.push_back(std::make_unique<JoinNode>());
  return join_nodes_.back().get();
}

JoinNode* Planner::CopyTree(const JoinTree* tree) {
  if (tree == nullptr) return nullptr;
  JoinNode* node = NewJoinNode();
  if (tree->is_leaf) {
    node->rel = tree->rel;
    return node;
  }
  node->type = tree->type;
  node->left = CopyTree(tree->left);
  node->right = CopyTree(tree->right);
  SplitConjuncts(tree->on, &node->on);
  if (node->type == JoinType::kRight) {
    std::swap(node->left, node->right);
    node->type = JoinType::kLeft;
  }
  return node;
}

Select Planner::Prepare(const Query& whole) {
  bool grouped = whole.has_aggregates || !whole.group_by.empty() || whole.having != nullptr;
  const Query& query = grouped && joins_sublinks() ? *SplitAboveGroups(whole) : whole;
  Select select;
  select.rels.assign(query.rels.begin(), query.rels.end());
  select.from = CopyTree(query.from);
  SplitConjuncts(query.where, &select.where);
  select.targets.assign(query.targets.begin(), query.targets.end());
  select.has_aggregates = query.has_aggregates || !query.group_by.empty();
  select.group_by.assign(query.group_by.begin(), query.group_by.end());
  select.grouping_sets = query.grouping_sets;
  select.windows.assign(query.windows.begin(), query.windows.end());
  SplitConjuncts(query.having, &select.having);
  select.distinct = query.distinct || !query.distinct_on.empty();
  select.distinct_on.assign(query.distinct_on.begin(), query.distinct_on.end());
  select.order_by.assign(query.order_by.begin(), query.order_by.end());
  select.limit = query.limit;
  select.offset = query.offset;
  select.with_ties = query.with_ties;
  select.row_marks.assign(query.row_marks.begin(), query.row_marks.end());
  if (query.having != nullptr) select.has_aggregates = true;
  PullUpSubqueries(select);
  ConvertSublinks(select);
  if (select.has_aggregates) ExpandGrouping(select);
  if (select.rels.size() > kRelsMax)
    Refuse("more than {} tables in one query are not supported", kRelsMax);
  return select;
}

void Planner::Graft(Select& into, Select& from) {
  int offset = static_cast<int>(into.rels.size());
  auto move = [&](const Expr* expr) {
    return RewriteExpr(expr, &scratch_, [&](const Expr& e, int depth) -> const Expr* {
      if (e.kind != ExprKind::kColumn || e.levels_up < depth) return nullptr;
      Expr* column = scratch_.New<Expr>(e);
      if (e.levels_up == depth)
        column->rel += offset;
      else
        column->levels_up--;
      return column;
    });
  };
  ForEachSelectExpr(from, move);
  ShiftLeaves(from.from, offset);
  for (RowMark mark : from.row_marks) {
    mark.rel += offset;
    into.row_marks.push_back(mark);
  }
  for (QueryRel& rel : from.rels) {
    // Lateral subqueries and functions inside keep seeing the same rels under their new numbers.
    DepthRewriter inside = [&](const Expr& e, int depth) -> const Expr* {
      if (e.kind != ExprKind::kColumn || e.levels_up < depth) return nullptr;
      Expr* column = scratch_.New<Expr>(e);
      if (e.levels_up == depth)
        column->rel += offset;
      else
        column->levels_up--;
      return column;
    };
    if (rel.subquery != nullptr) rel.subquery = RewriteQuery(*rel.subquery, &scratch_, inside, 1);
    rel.function = RewriteExpr(rel.function, &scratch_, inside);
    rel.values = RewriteRows(rel.values, &scratch_, inside);
    into.rels.push_back(rel);
  }
}

bool Planner::PullUp(Select& select, int rel, JoinNode* leaf, bool nullable) {
  const Query& query = *select.rels[static_cast<size_t>(rel)].subquery;
  if (query.set_op != nullptr || query.from == nullptr || !query.windows.empty() ||
      query.has_aggregates || query.distinct || !query.distinct_on.empty() ||
      query.limit != nullptr || query.offset != nullptr || !query.order_by.empty() ||
      LocksItself(query))
    return false;
  Select sub = Prepare(query);
  if (!IsSimple(sub) || (nullable && !AllPlainColumns(sub.targets))) return false;
  Graft(select, sub);
  DepthRewriter replace = [&](const Expr& e, int depth) -> const Expr* {
    if (e.kind != ExprKind::kColumn || e.levels_up != depth || e.rel != rel) return nullptr;
    const Expr* target = sub.targets[static_cast<size_t>(e.column)].expr;
    if (depth == 0) return target;
    return RewriteExpr(target, &scratch_, [&](const Expr& inner, int d) -> const Expr* {
      if (inner.kind != ExprKind::kColumn || inner.levels_up < d) return nullptr;
      Expr* column = scratch_.New<Expr>(inner);
      column->levels_up += depth;
      return column;
    });
  };
  auto substitute = [&](const Expr* expr) { return RewriteExpr(expr, &scratch_, replace); };
  ForEachSelectExpr(select, substitute);
  for (QueryRel& other : select.rels) {  // what looks at it laterally
    if (other.subquery != nullptr)
      other.subquery = RewriteQuery(*other.subquery, &scratch_, replace, 1);
    other.function = RewriteExpr(other.function, &scratch_, replace);
    other.values = RewriteRows(other.values, &scratch_, replace);
  }
  leaf->rel = -1;
  leaf->left = sub.from;
  leaf->right = nullptr;
  leaf->type = JoinType::kInner;
  leaf->on = sub.where;
  return true;
}

void Planner::PullUpSubqueries(Select& select) {
  auto visit = [&](auto& self, JoinNode* node, bool nullable) -> void {
    if (node == nullptr) return;
    if (node->rel >= 0) {
      if (select.rels[static_cast<size_t>(node->rel)].kind == RelKind::kSubquery)
        PullUp(select, node->rel, node, nullable);
      return;
    }
    bool left_nullable = nullable || node->type == JoinType::kFull;
    bool right_nullable =
        nullable || node->type == JoinType::kFull || node->type == JoinType::kLeft;
    self(self, node->left, left_nullable);
    if (node->right != nullptr) self(self, node->right, right_nullable);
  };
  visit(visit, select.from, false);
}

}  // namespace sluice
