// Above FROM and WHERE: aggregation, targets, DISTINCT, ORDER BY, LIMIT; as much of it on the
// shards as stays exact.
#include "common/error.h"
#include "optimizer/evaluable.h"
#include "optimizer/planning.h"

namespace sluice {
namespace {

// The client's columns first, what is only sorted or grouped by behind them. place[target] →
// column. DISTINCT leaves only the client's: it may not see the others, and ORDER BY may not then
// either.
std::vector<const Expr*> OrderedTargets(const Select& select, std::vector<int>* place) {
  std::vector<const Expr*> ordered;
  place->assign(select.targets.size(), 0);
  bool only_output = select.distinct && select.distinct_on.empty();
  for (bool junk : {false, true}) {
    if (junk && only_output) break;
    for (size_t i = 0; i < select.targets.size(); i++) {
      if (select.targets[i].junk != junk) continue;
      (*place)[i] = static_cast<int>(ordered.size());
      ordered.push_back(select.targets[i].expr);
    }
  }
  return ordered;
}

std::vector<SortKey> PlacedKeys(const Select& select, const std::vector<int>& place) {
  std::vector<SortKey> keys = select.order_by;
  for (SortKey& key : keys) key.target = place[static_cast<size_t>(key.target)];
  // DISTINCT ON needs its own columns in order too.
  for (int target : select.distinct_on) {
    int column = place[static_cast<size_t>(target)];
    bool have = false;
    for (const SortKey& key : keys) have |= key.target == column;
    if (have) continue;
    const Expr& expr = *select.targets[static_cast<size_t>(target)].expr;
    keys.push_back(
        {nullptr, column, FindOrderOperators(expr.type).less, false, false, expr.collation});
  }
  return keys;
}

int ChildKeyIndex(const std::vector<const Expr*>& exprs, const Expr* wanted) {
  for (size_t i = 0; i < exprs.size(); i++)
    if (EqualExpr(exprs[i], wanted)) return static_cast<int>(i);
  return -1;
}

}  // namespace

bool EqualMeansSame(Oid type) {
  switch (type) {
    case kBoolOid:
    case kInt2Oid:
    case kInt4Oid:
    case kInt8Oid:
    case kOidOid:
    case kTextOid:
    case kVarcharOid:
    case kDateOid:
    case kTimeOid:
    case kTimestampOid:
    case kTimestamptzOid:
    case kUuidOid:
    case kByteaOid:
    case kNameOid:
    case kCharOid:
      return true;
    default:
      return false;
  }
}

std::optional<int64_t> Planner::RowBound(const Select& select) const {
  if (select.limit == nullptr || select.with_ties) return std::nullopt;
  EvaluationInput input{request_.session, const_cast<Arena*>(&scratch_), request_.params};
  auto number = [&](const Expr* expr, int64_t* value) {
    auto known = EvaluateExpr(*expr, input);
    if (!known || known->is_null || known->bytes.size() != 8) return false;
    uint64_t bits = 0;
    for (char byte : known->bytes) bits = bits << 8 | static_cast<uint8_t>(byte);
    *value = static_cast<int64_t>(bits);
    return *value >= 0;
  };
  int64_t limit = 0, offset = 0, sum = 0;
  if (!number(select.limit, &limit)) return std::nullopt;
  if (select.offset != nullptr) {
    auto known = EvaluateExpr(*select.offset, input);
    bool null_offset = known && known->is_null;  // counts as none
    if (!null_offset && !number(select.offset, &offset)) return std::nullopt;
  }
  if (__builtin_add_overflow(limit, offset, &sum)) return std::nullopt;
  return sum;
}

// Whether rows that agree in `exprs` always lie on one shard.
bool Planner::CoversKey(const Select& select, const Piece& piece,
                        const std::vector<const Expr*>& exprs) {
  for (int rel : piece.key_rels) {
    const Relation& table = *select.rels[static_cast<size_t>(rel)].table;
    bool single_level = true;
    for (Oid child : table.children) {
      const Relation* relation = catalog_.FindRelation(child);
      single_level =
          single_level && relation != nullptr && relation->kind == RelationKind::kForeignTable;
    }
    bool covered = single_level && !table.key.expressions.empty();
    for (const Expr* key : KeyExpressions(table)) {
      std::vector<const Expr*> columns;
      CollectColumns(key, &columns);
      for (const Expr* column : columns) {
        bool found = false;
        for (const Expr* expr : exprs)
          found |= expr->kind == ExprKind::kColumn && expr->levels_up == 0 && expr->rel == rel &&
                   expr->column == column->column;
        covered = covered && found && (key == column || EqualMeansSame(column->type));
      }
      covered = covered && !columns.empty();
    }
    if (covered) return true;
  }
  return false;
}

bool Planner::TryWholeAggregate(const Select& select, const Piece& base,
                                const std::vector<const Expr*>& groups, RemoteSelect* remote) {
  if (!settings_.enable_pushdown_aggregate || !base.remote || !base.pushable ||
      !base.local_quals.empty() || base.shards.empty() || !select.grouping_sets.empty() ||
      !select.windows.empty())
    return false;
  if (base.shards.size() > 1 && (groups.empty() || !CoversKey(select, base, groups))) return false;
  if (!AllShippable(groups) || !AllShippable(select.having)) return false;
  for (const Target& target : select.targets)
    if (!IsShippable(target.expr)) return false;
  remote->piece = &base;
  remote->grouped = true;
  remote->group_by = groups;
  remote->having = select.having;
  return true;
}

// SELECT without set operations.
Local Planner::PlanSelect(const Query& query, bool top) {
  Select select = Prepare(query);
  const Select* outer_naming = std::exchange(naming_, &select);
  Local planned = PlanUpper(select, top);
  naming_ = outer_naming;
  return planned;
}

Local Planner::PlanWithoutFrom(const Select& select) {
  auto* node = NewNode<ResultPlan>(PlanKind::kResult);
  std::vector<int> place;
  std::vector<const Expr*> exprs;
  if (select.has_aggregates || !select.windows.empty())
    exprs.push_back(MakeInt4(1, &scratch_));
  else
    exprs = OrderedTargets(select, &place);
  if (exprs.empty()) exprs.push_back(MakeInt4(1, &scratch_));
  node->expressions = LowerAll(exprs, {});
  node->one_time_filter = LowerConjuncts(select.where, {});
  node->rows = 1;
  SetOutput(node, exprs);
  return {node, exprs};
}

Local Planner::PlanUpper(const Select& select, bool top) {
  std::vector<const Expr*> groups, aggregates, required, target_exprs;
  for (const Target& target : select.targets) target_exprs.push_back(target.expr);
  for (const Expr* expr : target_exprs) CollectColumns(expr, &required);
  for (const Expr* expr : select.having) CollectColumns(expr, &required);
  for (int target : select.group_by) AddUnique(target_exprs[static_cast<size_t>(target)], &groups);
  auto collect = [&](const Expr* expr) {
    AnyExpr(expr, [&](const Expr& e, int depth) {
      if (e.kind == ExprKind::kAggregate && e.aggregate_levels_up == depth)
        AddUnique(&e, &aggregates);
      return false;
    });
  };
  for (const Expr* expr : target_exprs) collect(expr);
  for (const Expr* expr : select.having) collect(expr);

  Piece base;
  if (select.from == nullptr) {
    base.local = PlanWithoutFrom(select);
  } else {
    base = PlanFrom(select, required);
  }
  if (select.has_aggregates) {
    RemoteSelect remote;
    if (TryWholeAggregate(select, base, groups, &remote))
      return PlanRemoteRows(select, remote, top);
    AddDependentColumns(select, &groups);
    if (!select.grouping_sets.empty() && groups.size() != select.group_by.size())
      Refuse("grouping sets with functionally dependent columns are not supported");
    // NULL where a set does not hold it; Lower() would not tell it from the same constant
    // elsewhere.
    for (const Expr* group : groups)
      if (!select.grouping_sets.empty() && IsConstantHere(*group))
        Refuse("grouping sets with a constant are not supported");
    Local grouped = PlanAggregate(select, base, groups, aggregates);
    grouped = Filter(std::move(grouped), select.having);
    if (!select.windows.empty()) grouped = PlanWindows(select, std::move(grouped));
    return FinishLocal(select, std::move(grouped), false, false);
  }
  if (!select.windows.empty()) {
    RemoteSelect remote;
    if (TryWindowsOnShards(select, base, &remote)) return PlanRemoteRows(select, remote, top);
    Local input = ToLocal(select, base, WindowInputs(select));
    return FinishLocal(select, PlanWindows(select, std::move(input)), false, false);
  }
  if (base.remote && base.pushable && base.local_quals.empty() && !base.shards.empty()) {
    RemoteSelect remote;
    remote.piece = &base;
    return PlanRemoteRows(select, remote, top);
  }
  return FinishLocal(select, ToLocal(select, base, target_exprs), false, false);
}

// Columns outside aggregates that aren't grouped by: Postgres lets them in when the primary key is,
// so that grouping by them too changes nothing.
void Planner::AddDependentColumns(const Select& select, std::vector<const Expr*>* groups) {
  auto add = [&](auto& self, const Expr* expr) -> void {
    for (const Expr* group : *groups)
      if (EqualExpr(group, expr)) return;
    if (expr->kind == ExprKind::kAggregate || expr->kind == ExprKind::kGrouping) return;
    if (expr->filter != nullptr) self(self, expr->filter);
    if (expr->kind == ExprKind::kColumn && expr->levels_up == 0) {
      groups->push_back(expr);
      return;
    }
    for (const Expr* arg : expr->args) self(self, arg);
  };
  for (const Target& target : select.targets) add(add, target.expr);
  for (const Expr* expr : select.having) add(add, expr);
}

// Rows that the shards can deliver by themselves: decides what of DISTINCT, ORDER BY and LIMIT goes
// along.
Local Planner::PlanRemoteRows(const Select& select, RemoteSelect remote, bool) {
  std::vector<int> place;
  std::vector<const Expr*> targets = OrderedTargets(select, &place);
  bool all_shipped = remote.windows != nullptr || AllShippable(targets);
  if (all_shipped) {
    remote.targets = targets;
  } else {
    for (const Expr* target : targets) {
      if (IsShippable(target))
        AddUnique(target, &remote.targets);
      else
        CollectColumns(target, &remote.targets);
    }
  }
  bool many = remote.piece->shards.size() > 1;
  bool plain_distinct = select.distinct && select.distinct_on.empty();
  remote.distinct = plain_distinct && all_shipped && settings_.enable_pushdown_distinct;
  bool deduplicate =
      plain_distinct && (!remote.distinct || (many && !CoversKey(select, *remote.piece, targets)));

  std::vector<SortKey> keys = PlacedKeys(select, place);
  bool push_sort = !keys.empty() && settings_.enable_pushdown_sort;
  std::vector<SortKey> remote_keys = keys;
  for (SortKey& key : remote_keys) {
    const Expr* expr = targets[static_cast<size_t>(key.target)];
    key.target = ChildKeyIndex(remote.targets, expr);
    push_sort = push_sort && key.target >= 0 && (!many || CanSortBy(key, expr->type));
  }
  auto bound = RowBound(select);
  bool push_limit = bound && settings_.enable_pushdown_limit && select.distinct_on.empty() &&
                    (!plain_distinct || remote.distinct) && (keys.empty() || push_sort);
  // Sorting on the shards what is put into a hash table here only pays to cut it.
  if (deduplicate && !push_limit) push_sort = false;
  if (push_sort) remote.order_by = remote_keys;
  if (push_limit) remote.limit = *bound;
  if (remote.grouped)
    remote.rows_each = GroupCount(select, remote.group_by, remote.piece->rows);
  else if (remote.distinct)
    remote.rows_each = GroupCount(select, remote.targets, remote.piece->rows);
  remote.divisible =
      !remote.grouped && remote.windows == nullptr && !remote.distinct && !push_sort && !push_limit;
  bool sorted = push_sort && !deduplicate;
  Local input = MakeScans(select, remote, sorted);
  return FinishLocal(select, std::move(input), sorted, plain_distinct && !deduplicate);
}

Local Planner::Deduplicate(Local input) {
  if (!WorthWorkers(*input.plan)) return DistinctRows(std::move(input));
  return AggregateLocally(input, std::vector<const Expr*>(input.provides), {});
}

// What is left to do here above `input`: targets, DISTINCT, ORDER BY, LIMIT.
Local Planner::FinishLocal(const Select& select, Local input, bool sorted, bool deduplicated) {
  std::vector<int> place;
  std::vector<const Expr*> targets = OrderedTargets(select, &place);
  std::vector<SortKey> keys = PlacedKeys(select, place);
  bool on = !select.distinct_on.empty();
  bool only_scans = input.plan->kind == PlanKind::kAppend ||
                    input.plan->kind == PlanKind::kForeignScan ||
                    input.plan->kind == PlanKind::kMergeAppend;
  sluice::Plan* source = input.plan;
  Local output = Project(std::move(input), targets);
  only_scans = only_scans && output.plan == source;
  if (select.distinct && !on && !deduplicated) {
    output = Deduplicate(std::move(output));
    only_scans = true;
  }
  bool sort = !keys.empty() && !sorted;
  auto bound = on ? std::nullopt : RowBound(select);
  bool workers = (sort || !only_scans) && WorthWorkers(*output.plan);
  if (sort) {
    output = Sort(std::move(output), keys, bound);
    if (workers) output = GatherMerge(std::move(output), keys);
  } else if (workers && !sorted) {
    output = Gather(std::move(output));
  }
  if (on) {
    auto* node = NewNode<DistinctPlan>(PlanKind::kDistinct);
    std::vector<int> columns;
    for (int target : select.distinct_on) columns.push_back(place[static_cast<size_t>(target)]);
    node->columns = arena_.CopyArray(columns);
    node->sorted_input = true;
    SetChildren(node, {output.plan});
    node->output = output.plan->output;
    node->rows = std::max(1.0, output.plan->rows * 0.1);
    output.plan = node;
  }
  return Limit(std::move(output), select, keys);
}

}  // namespace sluice
