// GROUP BY and aggregates: whole on the shards, in two steps (partial ones there, combined here),
// or here.
#include "common/error.h"
#include "optimizer/evaluable.h"
#include "optimizer/planning.h"
#include "types/aggregate_list.h"

namespace sluice {
namespace {

// pg_proc oids.
constexpr Oid kSumInt8 = 2107, kSumInt4 = 2108, kSumInt2 = 2109, kSumInterval = 2113,
              kSumNumeric = 2114;
constexpr Oid kAvgInt8 = 2100, kAvgInt4 = 2101, kAvgInt2 = 2102, kAvgNumeric = 2103;
constexpr Oid kCountAny = 2147, kCountStar = 2803;
constexpr Oid kNumericToInt8 = 1779, kInt8ToNumeric = 1781, kNumericDivide = 1727,
              kNumericDivideOper = 1761;
constexpr Oid kInt2ToInt8 = 754, kInt4ToInt8 = 481, kInt8Multiply = 465, kInt8MultiplyOper = 686,
              kNumericMultiply = 1726, kNumericMultiplyOper = 1760;
constexpr Oid kNumericVarPop = 2514, kNumericVarSamp = 1838, kNumericStddevPop = 2596,
              kNumericStddevSamp = 1839;

const Expr* WithFunction(const Expr& aggregate, Oid function, Oid type, Arena* arena) {
  Expr* copy = arena->New<Expr>(aggregate);
  copy->function = function;
  copy->type = type;
  copy->typmod = -1;
  if (type != aggregate.type) copy->collation = kInvalidOid;
  return copy;
}

const Expr* CombineWith(Oid function, const Expr* partial, Oid type, Arena* arena) {
  Expr* combine = arena->New<Expr>();
  combine->kind = ExprKind::kAggregate;
  combine->function = function;
  combine->type = type;
  combine->collation = partial->type == type ? partial->collation : kInvalidOid;
  combine->input_collation = partial->collation;
  std::vector<const Expr*> args = {partial};
  combine->args = arena->CopyArray(args);
  return combine;
}

// One aggregate in two steps: `partials` are asked of the shards, `result` computes it from
// aggregates over them. Only what is exact: no float sums (their rounding would depend on the
// split).
struct TwoSteps {
  std::vector<const Expr*> partials;
  const Expr* result = nullptr;
};

// x² of the aggregate's argument, in a type that holds it.
const Expr* SquareOf(const Expr* x, Arena* arena) {
  if (x->type == kInt2Oid || x->type == kInt4Oid) {
    Oid widen = x->type == kInt2Oid ? kInt2ToInt8 : kInt4ToInt8;
    const Expr* wide = MakeCall(widen, kInvalidOid, kInt8Oid, {x}, arena);
    return MakeCall(kInt8Multiply, kInt8MultiplyOper, kInt8Oid, {wide, wide}, arena);
  }
  if (x->type == kInt8Oid) x = MakeCall(kInt8ToNumeric, kInvalidOid, kNumericOid, {x}, arena);
  return MakeCall(kNumericMultiply, kNumericMultiplyOper, kNumericOid, {x, x}, arena);
}

// stddev and variance of integers and numeric, whose moments are exact.
std::optional<TwoSteps> DecomposeVariance(const Expr& aggregate, Arena* arena) {
  const AggregateInfo* info = FindAggregate(aggregate.function);
  if (info == nullptr || aggregate.type != kNumericOid || aggregate.args.size() != 1)
    return std::nullopt;
  Oid final = kInvalidOid;
  if (info->kind == AggregateKind::kVarPop) final = kNumericVarPop;
  if (info->kind == AggregateKind::kVarSamp) final = kNumericVarSamp;
  if (info->kind == AggregateKind::kStddevPop) final = kNumericStddevPop;
  if (info->kind == AggregateKind::kStddevSamp) final = kNumericStddevSamp;
  const Expr* x = aggregate.args[0];
  Oid sum = x->type == kInt2Oid      ? kSumInt2
            : x->type == kInt4Oid    ? kSumInt4
            : x->type == kInt8Oid    ? kSumInt8
            : x->type == kNumericOid ? kSumNumeric
                                     : kInvalidOid;
  if (final == kInvalidOid || sum == kInvalidOid) return std::nullopt;
  bool small = sum == kSumInt2 || sum == kSumInt4;
  const Expr* counts = WithFunction(aggregate, kCountAny, kInt8Oid, arena);
  const Expr* sums = WithFunction(aggregate, sum, small ? kInt8Oid : kNumericOid, arena);
  Expr* squares = arena->New<Expr>(
      *WithFunction(aggregate, small ? kSumInt8 : kSumNumeric, kNumericOid, arena));
  std::vector<const Expr*> square = {SquareOf(x, arena)};
  squares->args = arena->CopyArray(square);
  return TwoSteps{{counts, sums, squares},
                  MakeCall(final, kInvalidOid, kNumericOid,
                           {CombineWith(kSumInt8ToInt8, counts, kInt8Oid, arena),
                            CombineWith(small ? kSumInt8 : kSumNumeric, sums, kNumericOid, arena),
                            CombineWith(kSumNumeric, squares, kNumericOid, arena)},
                           arena)};
}

std::optional<TwoSteps> Decompose(const Expr& aggregate, Arena* arena) {
  if (aggregate.distinct || !aggregate.order_by.empty() || aggregate.aggregate_levels_up != 0)
    return std::nullopt;
  auto combined = [&](const Expr* partial, Oid function, Oid type) {
    return TwoSteps{{partial}, CombineWith(function, partial, type, arena)};
  };
  auto average = [&](Oid sum, Oid sum_type) {
    const Expr* sums = WithFunction(aggregate, sum, sum_type, arena);
    const Expr* counts = WithFunction(aggregate, kCountAny, kInt8Oid, arena);
    const Expr* total =
        CombineWith(sum_type == kInt8Oid ? kSumInt8 : kSumNumeric, sums, kNumericOid, arena);
    const Expr* count = CombineWith(kSumInt8ToInt8, counts, kInt8Oid, arena);
    const Expr* divisor = MakeCall(kInt8ToNumeric, kInvalidOid, kNumericOid, {count}, arena);
    // Over no rows the sum is NULL, and so is the quotient.
    return TwoSteps{
        {sums, counts},
        MakeCall(kNumericDivide, kNumericDivideOper, kNumericOid, {total, divisor}, arena)};
  };
  switch (aggregate.function) {
    case kCountAny:
    case kCountStar:
      return combined(&aggregate, kSumInt8ToInt8, kInt8Oid);
    case kSumInt2:
    case kSumInt4: {
      const Expr* total = CombineWith(kSumInt8, &aggregate, kNumericOid, arena);
      return TwoSteps{{&aggregate},
                      MakeCall(kNumericToInt8, kInvalidOid, kInt8Oid, {total}, arena)};
    }
    case kSumInt8:
    case kSumNumeric:
      return combined(&aggregate, kSumNumeric, kNumericOid);
    case kSumInterval:
      return combined(&aggregate, kSumInterval, kIntervalOid);
    case kAvgInt2:
      return average(kSumInt2, kInt8Oid);
    case kAvgInt4:
      return average(kSumInt4, kInt8Oid);
    case kAvgInt8:
      return average(kSumInt8, kNumericOid);
    case kAvgNumeric:
      return average(kSumNumeric, kNumericOid);
    default:
      break;
  }
  if (auto steps = DecomposeVariance(aggregate, arena)) return steps;
  const ProcInfo* proc = FindProc(aggregate.function);
  if (proc == nullptr) return std::nullopt;
  for (std::string_view name : {"min", "max", "bool_and", "bool_or", "every"})
    if (proc->name == name) return combined(&aggregate, aggregate.function, aggregate.type);
  return std::nullopt;
}

bool IsInsensitiveToDuplicates(const Expr& aggregate) {
  const ProcInfo* proc = FindProc(aggregate.function);
  if (proc == nullptr || aggregate.filter != nullptr || !aggregate.order_by.empty() ||
      aggregate.args.size() != 1)
    return false;
  return aggregate.distinct || proc->name == "min" || proc->name == "max";
}

// States of these cannot be combined without saying in which order.
bool KeepsOrder(const Expr& aggregate) {
  const ProcInfo* proc = FindProc(aggregate.function);
  return proc == nullptr || proc->name == "string_agg" || proc->name == "array_agg";
}

}  // namespace

// The number of a row's grouping set: what the Aggregate gives between groups and aggregates.
static const Expr* GroupingSetNumber(Arena* arena) {
  Expr* number = arena->New<Expr>();
  number->kind = ExprKind::kGrouping;
  number->type = kInt4Oid;
  number->param = -1;
  return number;
}

// GROUPING(a, b) → CASE set WHEN 0 THEN … END: one value for each grouping set.
void Planner::ExpandGrouping(Select& select) {
  constexpr Oid kInt4Equal = 96;
  if (!select.grouping_sets.empty())
    for (size_t i = 0; i < select.group_by.size(); i++)
      for (size_t j = 0; j < i; j++)
        if (EqualExpr(select.targets[static_cast<size_t>(select.group_by[i])].expr,
                      select.targets[static_cast<size_t>(select.group_by[j])].expr))
          Refuse("grouping sets with the same expression twice are not supported");
  auto expand = [&](const Expr* expr) {
    return RewriteExpr(expr, &scratch_, [&](const Expr& e, int depth) -> const Expr* {
      if (e.kind != ExprKind::kGrouping || depth != 0) return nullptr;
      if (select.grouping_sets.empty()) return MakeInt4(0, &scratch_);
      std::vector<const Expr*> branches;
      for (size_t s = 0; s < select.grouping_sets.size(); s++) {
        int32_t bits = 0;
        for (const Expr* arg : e.args) {
          bool held = false;
          for (int member : select.grouping_sets[s]) {
            int target = select.group_by[static_cast<size_t>(member)];
            held = held || EqualExpr(select.targets[static_cast<size_t>(target)].expr, arg);
          }
          bits = bits * 2 + (held ? 0 : 1);
        }
        branches.push_back(MakeOperator(kInt4Equal, GroupingSetNumber(&scratch_),
                                        MakeInt4(static_cast<int32_t>(s), &scratch_), &scratch_));
        branches.push_back(MakeInt4(bits, &scratch_));
      }
      branches.push_back(MakeNull(kInt4Oid, &scratch_));
      return MakeTyped(ExprKind::kCase, kInt4Oid, branches, &scratch_);
    });
  };
  for (const Expr*& qual : select.having) qual = expand(qual);
  for (Target& target : select.targets) target.expr = expand(target.expr);
}

Local Planner::PlanAggregate(const Select& select, const Piece& base,
                             const std::vector<const Expr*>& groups,
                             const std::vector<const Expr*>& aggregates) {
  Local result;
  if (TryPartialOnShards(select, base, groups, aggregates, &result)) return result;
  if (TryDistinctOnShards(select, base, groups, aggregates, &result)) return result;
  std::vector<const Expr*> wanted = groups;
  for (const Expr* aggregate : aggregates) {
    wanted.insert(wanted.end(), aggregate->args.begin(), aggregate->args.end());
    if (aggregate->filter != nullptr) wanted.push_back(aggregate->filter);
    for (const SortKey& key : aggregate->order_by) wanted.push_back(key.expr);
  }
  return AggregateLocally(ToLocal(select, base, wanted), groups, aggregates, select.grouping_sets);
}

bool Planner::TryPartialOnShards(const Select& select, const Piece& base,
                                 const std::vector<const Expr*>& groups,
                                 const std::vector<const Expr*>& aggregates, Local* out) {
  if (!settings_.enable_pushdown_aggregate || !base.remote || !base.pushable ||
      !base.local_quals.empty() || base.shards.empty() || !AllShippable(groups))
    return false;
  for (const Expr* group : groups)
    if (!CanGroupBy(group->type, group->collation)) return false;
  RemoteSelect remote;
  remote.piece = &base;
  remote.grouped = true;
  remote.divisible = true;
  remote.group_by = groups;
  remote.targets = groups;
  std::vector<const Expr*> combines, results = groups;
  for (const Expr* aggregate : aggregates) {
    auto steps = Decompose(*aggregate, &scratch_);
    if (!steps || !AllShippable(steps->partials)) return false;
    for (const Expr* partial : steps->partials) AddUnique(partial, &remote.targets);
    AnyExpr(steps->result, [&](const Expr& e, int) {
      if (e.kind != ExprKind::kAggregate) return false;
      // The partial below it is an argument: not entered, it is a column by then.
      bool is_combine = e.args.size() == 1 && e.args[0]->kind == ExprKind::kAggregate;
      if (is_combine) AddUnique(&e, &combines);
      return false;
    });
    results.push_back(steps->result);
  }
  for (const Expr* combine : combines) {
    Expr* column = scratch_.New<Expr>(*combine);
    std::vector<const Expr*> args = {
        MakeColumn(0, 0, combine->args[0]->type, -1, combine->args[0]->collation, &scratch_)};
    column->args = scratch_.CopyArray(args);
    if (!CanAggregate(*column)) return false;
  }
  double groups_each = GroupCount(select, groups, base.rows);
  remote.rows_each = groups_each;
  Local input = MakeScans(select, remote, false);
  Local combined = AggregateLocally(std::move(input), groups, combines, select.grouping_sets);
  if (!select.grouping_sets.empty()) {
    std::vector<const Expr*> with_set = groups;
    with_set.push_back(GroupingSetNumber(&scratch_));
    with_set.insert(with_set.end(), results.begin() + static_cast<std::ptrdiff_t>(groups.size()),
                    results.end());
    results = with_set;
  }
  combined = Project(std::move(combined), results);
  // From here on the columns are what the query asked for.
  combined.provides.assign(results.begin(),
                           results.end() - static_cast<std::ptrdiff_t>(aggregates.size()));
  combined.provides.insert(combined.provides.end(), aggregates.begin(), aggregates.end());
  combined.plan->rows = std::min(combined.plan->rows, groups_each);
  SetOutput(combined.plan, combined.provides);
  *out = std::move(combined);
  return true;
}

// count(DISTINCT x) … GROUP BY g: the shards send SELECT DISTINCT g, x.
bool Planner::TryDistinctOnShards(const Select& select, const Piece& base,
                                  const std::vector<const Expr*>& groups,
                                  const std::vector<const Expr*>& aggregates, Local* out) {
  if (!settings_.enable_pushdown_aggregate || !settings_.enable_pushdown_distinct || !base.remote ||
      !base.pushable || !base.local_quals.empty() || base.shards.empty())
    return false;
  RemoteSelect remote;
  remote.piece = &base;
  remote.distinct = true;
  for (const Expr* group : groups) AddUnique(group, &remote.targets);
  size_t group_count = remote.targets.size();
  for (const Expr* aggregate : aggregates) {
    if (!IsInsensitiveToDuplicates(*aggregate)) return false;
    AddUnique(aggregate->args[0], &remote.targets);
  }
  if (remote.targets.empty() || remote.targets.size() > group_count + 1 ||
      !AllShippable(remote.targets))
    return false;
  for (const Expr* target : remote.targets)
    if (!CanGroupBy(target->type, target->collation)) return false;
  remote.rows_each = GroupCount(select, remote.targets, base.rows);
  Local input = MakeScans(select, remote, false);
  *out = AggregateLocally(std::move(input), groups, aggregates, select.grouping_sets);
  return true;
}

double Planner::GroupCount(const Select& select, const std::vector<const Expr*>& groups,
                           double rows) const {
  double count = 1;
  for (const Expr* group : groups) {
    double distinct = DistinctValues(select, group, rows);
    count *= distinct > 0 ? distinct : 200;
  }
  return std::max(1.0, std::min(count, rows));
}

Local Planner::AggregateLocally(Local input, const std::vector<const Expr*>& groups,
                                const std::vector<const Expr*>& aggregates,
                                std::span<const std::span<const int>> grouping_sets) {
  for (const Expr* group : groups)
    if (!CanGroupBy(group->type, group->collation))
      Refuse("grouping by {} here is not supported", FormatType(group->type));
  std::vector<AggregateCall> calls;
  bool divisible = grouping_sets.empty();
  for (const Expr* group : groups)
    divisible = divisible && !RunsPerRow(group) && !RunsInSession(*group);
  for (const Expr* aggregate : aggregates) {
    Expr* lowered = scratch_.New<Expr>(*aggregate);
    lowered->args = LowerAll({aggregate->args.begin(), aggregate->args.end()}, input);
    lowered->filter = Lower(aggregate->filter, input);
    std::span<SortKey> keys = arena_.CopyArray(aggregate->order_by);
    for (SortKey& key : keys) key.expr = Lower(key.expr, input);
    lowered->order_by = keys;
    if (!CanAggregate(*lowered)) RequireEvaluable(*lowered);
    AggregateCall call{};
    call.function = aggregate->function;
    call.args = lowered->args;
    call.result_type = aggregate->type;
    call.input_type = lowered->args.empty() ? kInvalidOid : lowered->args[0]->type;
    call.collation = aggregate->input_collation;
    call.star = aggregate->star;
    call.distinct = aggregate->distinct;
    call.filter = lowered->filter;
    call.order_by = keys;
    calls.push_back(call);
    divisible = divisible && !aggregate->distinct && keys.empty() && !KeepsOrder(*aggregate) &&
                !RunsPerRow(aggregate) && !RunsInSession(*aggregate);
  }
  std::vector<const Expr*> provides = groups;
  if (!grouping_sets.empty()) provides.push_back(GroupingSetNumber(&scratch_));
  provides.insert(provides.end(), aggregates.begin(), aggregates.end());
  double rows = naming_ == nullptr ? 200 : GroupCount(*naming_, groups, input.plan->rows);
  auto make = [&](AggregateMode mode, Local below) {
    auto* node = NewNode<AggregatePlan>(PlanKind::kAggregate);
    node->mode = mode;
    node->rows = rows;
    SetChildren(node, {below.plan});
    return node;
  };
  bool workers = WorthWorkers(*input.plan);
  if (workers && divisible) {
    AggregatePlan* partial = make(AggregateMode::kPartial, input);
    partial->group_by = LowerAll(groups, input);
    partial->calls = arena_.CopyArray(calls);
    SetOutput(partial, provides);
    auto states =
        std::span<OutputColumn>(const_cast<OutputColumn*>(partial->output.data()), provides.size());
    for (size_t i = groups.size(); i < states.size(); i++) {
      states[i].type = kByteaOid;
      states[i].collation = kInvalidOid;
    }
    Local gathered = Gather({partial, provides});
    AggregatePlan* final_node = make(AggregateMode::kFinal, gathered);
    final_node->group_by = LowerAll(groups, gathered);
    for (size_t i = 0; i < calls.size(); i++) {
      calls[i].state_column = static_cast<int>(groups.size() + i);
      calls[i].args = {};
      calls[i].filter = nullptr;
    }
    final_node->calls = arena_.CopyArray(calls);
    SetOutput(final_node, provides);
    return {final_node, provides};
  }
  // Only where there is more to do below than to read.
  bool only_scans =
      input.plan->kind == PlanKind::kAppend || input.plan->kind == PlanKind::kForeignScan;
  if (workers && !only_scans) input = Gather(std::move(input));
  AggregatePlan* node = make(AggregateMode::kSingle, input);
  node->group_by = LowerAll(groups, input);
  auto sets = arena_.NewArray<std::span<const int>>(grouping_sets.size());
  for (size_t i = 0; i < sets.size(); i++) sets[i] = arena_.CopyArray(grouping_sets[i]);
  node->grouping_sets = sets;
  if (!sets.empty()) node->rows *= static_cast<double>(sets.size());
  node->calls = arena_.CopyArray(calls);
  SetOutput(node, provides);
  return {node, provides};
}

}  // namespace sluice
