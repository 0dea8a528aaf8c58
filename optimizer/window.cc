// Window functions: whole on the shards where each partition lies on one of them, else here, a sort
// and a WindowAgg for each window.
#include "common/error.h"
#include "optimizer/evaluable.h"
#include "optimizer/planning.h"

namespace sluice {
namespace {

// Postgres's FRAMEOPTION_ bits.
constexpr int kFrameRange = 0x2, kStartPreceding = 0x800, kEndPreceding = 0x1000,
              kStartOffset = 0x800 | 0x2000, kEndOffset = 0x1000 | 0x4000;

void CollectWindowCalls(const Expr* expr, int window, std::vector<const Expr*>* calls) {
  AnyExpr(expr, [&](const Expr& e, int depth) {
    if (e.kind == ExprKind::kWindow && depth == 0 && e.param == window) AddUnique(&e, calls);
    return false;
  });
}

// The columns, aggregates and group expressions that `expr` is made of. What stands around a window
// function is computed above it, for the rows and branches that reach it.
void CollectLeaves(const Expr* expr, const std::vector<const Expr*>& groups,
                   std::vector<const Expr*>* leaves) {
  bool leaf = expr->kind == ExprKind::kColumn || expr->kind == ExprKind::kAggregate ||
              expr->kind == ExprKind::kGrouping;
  for (const Expr* group : groups) leaf = leaf || EqualExpr(group, expr);
  if (leaf) return AddUnique(expr, leaves);
  for (const Expr* arg : expr->args) CollectLeaves(arg, groups, leaves);
  if (expr->filter != nullptr) CollectLeaves(expr->filter, groups, leaves);
}

WindowKind KindOf(const Expr& call) {
  const ProcInfo* proc = FindProc(call.function);
  if (proc == nullptr) Refuse("window function {} is not supported", call.function);
  if (proc->kind == 'a') return WindowKind::kAggregate;
  static constexpr std::pair<std::string_view, WindowKind> kNames[] = {
      {"row_number", WindowKind::kRowNumber},
      {"rank", WindowKind::kRank},
      {"dense_rank", WindowKind::kDenseRank},
      {"percent_rank", WindowKind::kPercentRank},
      {"cume_dist", WindowKind::kCumeDist},
      {"ntile", WindowKind::kNtile},
      {"lag", WindowKind::kLag},
      {"lead", WindowKind::kLead},
      {"first_value", WindowKind::kFirstValue},
      {"last_value", WindowKind::kLastValue},
      {"nth_value", WindowKind::kNthValue}};
  for (const auto& [name, kind] : kNames)
    if (proc->name == name) return kind;
  Refuse("window function {} is not supported", proc->name);
}

// How the keys of RANGE … offset are computed: what key and offset are cast to, and with which
// functions they are added and subtracted (pg_proc oids). Integers as numeric: nothing overflows.
struct RangeArithmetic {
  Oid type, key_cast, offset_cast, plus, minus;
};

RangeArithmetic ArithmeticOf(Oid key, Oid offset) {
  constexpr Oid kInt2ToNumeric = 1782, kInt4ToNumeric = 1740, kInt8ToNumeric = 1781;
  auto to_numeric = [&](Oid type) {
    return type == kInt2Oid   ? kInt2ToNumeric
           : type == kInt4Oid ? kInt4ToNumeric
           : type == kInt8Oid ? kInt8ToNumeric
                              : kInvalidOid;
  };
  switch (key) {
    case kInt2Oid:
    case kInt4Oid:
    case kInt8Oid:
    case kNumericOid:
      return {kNumericOid, to_numeric(key), to_numeric(offset), 1724, 1725};
    case kFloat4Oid:
      return {kFloat8Oid, 311, kInvalidOid, 218, 219};
    case kFloat8Oid:
      return {kFloat8Oid, kInvalidOid, kInvalidOid, 218, 219};
    case kDateOid:
      return {kTimestampOid, 2024, kInvalidOid, 2032, 2033};
    case kTimestampOid:
      return {kTimestampOid, kInvalidOid, kInvalidOid, 2032, 2033};
    case kTimestamptzOid:
      return {kTimestamptzOid, kInvalidOid, kInvalidOid, 1189, 1190};
    case kIntervalOid:
      return {kIntervalOid, kInvalidOid, kInvalidOid, 1169, 1170};
    default:
      Refuse("RANGE with an offset over {} is not supported", FormatType(key));
  }
}

}  // namespace

std::vector<SortKey> Planner::PartitionKeys(const Select& select, const WindowClause& window,
                                            const Local& input) {
  std::vector<SortKey> keys;
  for (int target : window.partition_by) {
    const Expr& expr = *select.targets[static_cast<size_t>(target)].expr;
    keys.push_back({nullptr, PlaceOf(input, expr), FindOrderOperators(expr.type).less, false, false,
                    expr.collation});
  }
  return keys;
}

int Planner::PlaceOf(const Local& input, const Expr& expr) {
  for (size_t i = 0; i < input.provides.size(); i++)
    if (EqualExpr(input.provides[i], &expr)) return static_cast<int>(i);
  Throw(sqlstate::kInternalError, "a window's key is not among its columns");
}

// The window's RANGE offsets as values of each row: the ends of its frame, in the key's terms.
void Planner::SetRangeFrame(const WindowClause& window, const Expr& key, const Local& input,
                            WindowAggPlan* node) {
  const Expr* offset = window.start_offset != nullptr ? window.start_offset : window.end_offset;
  RangeArithmetic arithmetic = ArithmeticOf(key.type, offset->type);
  auto cast = [&](const Expr* expr, Oid function) {
    return function == kInvalidOid
               ? expr
               : MakeCall(function, kInvalidOid, arithmetic.type, {expr}, &scratch_);
  };
  const Expr* base = cast(&key, arithmetic.key_cast);
  bool descending = window.order_by[0].descending;
  auto bound = [&](const Expr* by, bool preceding) {
    Oid function = preceding != descending ? arithmetic.minus : arithmetic.plus;
    return Lower(MakeCall(function, kInvalidOid, arithmetic.type,
                          {base, cast(by, arithmetic.offset_cast)}, &scratch_),
                 input);
  };
  node->range_key = Lower(base, input);
  if ((window.frame_options & kStartOffset) != 0)
    node->range_start = bound(window.start_offset, (window.frame_options & kStartPreceding) != 0);
  if ((window.frame_options & kEndOffset) != 0)
    node->range_end = bound(window.end_offset, (window.frame_options & kEndPreceding) != 0);
}

WindowCall Planner::MakeWindowCall(const Expr& call, const Local& input) {
  WindowCall result{};
  result.kind = KindOf(call);
  Expr* lowered = scratch_.New<Expr>(call);
  lowered->kind = ExprKind::kAggregate;
  lowered->args = LowerAll({call.args.begin(), call.args.end()}, input);
  lowered->filter = Lower(call.filter, input);
  if (result.kind == WindowKind::kAggregate && !CanAggregate(*lowered))
    Refuse("window function {} is not supported", FindProc(call.function)->name);
  result.aggregate.function = call.function;
  result.aggregate.args = lowered->args;
  result.aggregate.filter = lowered->filter;
  result.aggregate.result_type = call.type;
  result.aggregate.input_type = lowered->args.empty() ? kInvalidOid : lowered->args[0]->type;
  result.aggregate.collation = call.input_collation;
  result.aggregate.star = call.star;
  return result;
}

std::vector<const Expr*> Planner::WindowInputs(const Select& select) {
  std::vector<const Expr*> inputs, groups;
  for (int target : select.group_by)
    groups.push_back(select.targets[static_cast<size_t>(target)].expr);
  for (const Target& target : select.targets) {
    bool has_window = AnyExpr(target.expr, [](const Expr& e, int depth) {
      return e.kind == ExprKind::kWindow && depth == 0;
    });
    if (has_window)
      CollectLeaves(target.expr, groups, &inputs);
    else
      AddUnique(target.expr, &inputs);
  }
  return inputs;
}

Local Planner::PlanWindow(const Select& select, const WindowClause& window,
                          const std::vector<const Expr*>& calls, Local input) {
  std::vector<SortKey> partition = PartitionKeys(select, window, input), order, keys = partition;
  for (SortKey key : window.order_by) {
    key.target = PlaceOf(input, *select.targets[static_cast<size_t>(key.target)].expr);
    order.push_back(key);
    bool have = false;
    for (const SortKey& other : keys) have = have || other.target == key.target;
    if (!have) keys.push_back(key);
  }
  if (!keys.empty()) {
    bool workers = WorthWorkers(*input.plan);
    input = Sort(std::move(input), keys, std::nullopt);
    if (workers) input = GatherMerge(std::move(input), keys);
  }
  auto* node = NewNode<WindowAggPlan>(PlanKind::kWindowAgg);
  node->partition_by = CopyKeys(partition);
  node->order_by = CopyKeys(order);
  node->frame_options = window.frame_options;
  node->start_offset = Lower(window.start_offset, {});
  node->end_offset = Lower(window.end_offset, {});
  bool offsets = (window.frame_options & (kStartOffset | kEndOffset)) != 0;
  if (offsets && (window.frame_options & kFrameRange) != 0)
    SetRangeFrame(window, *select.targets[static_cast<size_t>(window.order_by[0].target)].expr,
                  input, node);
  std::vector<WindowCall> lowered;
  for (const Expr* call : calls) lowered.push_back(MakeWindowCall(*call, input));
  node->calls = arena_.CopyArray(lowered);
  SetChildren(node, {input.plan});
  std::vector<const Expr*> provides = input.provides;
  provides.insert(provides.end(), calls.begin(), calls.end());
  SetOutput(node, provides);
  auto output =
      std::span<OutputColumn>(const_cast<OutputColumn*>(node->output.data()), node->output.size());
  for (size_t i = 0; i < input.plan->output.size(); i++)
    output[i].name = input.plan->output[i].name;
  node->rows = input.plan->rows;
  return {node, provides};
}

// `input` provides what WindowInputs names, or what it can be computed of.
Local Planner::PlanWindows(const Select& select, Local input) {
  std::vector<const Expr*> columns = WindowInputs(select);
  if (columns.empty()) columns.push_back(MakeInt4(1, &scratch_));
  input = Project(std::move(input), columns);
  for (size_t w = 0; w < select.windows.size(); w++) {
    std::vector<const Expr*> calls;
    for (const Target& target : select.targets)
      CollectWindowCalls(target.expr, static_cast<int>(w), &calls);
    if (!calls.empty()) input = PlanWindow(select, select.windows[w], calls, std::move(input));
  }
  return input;
}

// Each partition lies whole on one shard: the shards compute everything.
bool Planner::TryWindowsOnShards(const Select& select, const Piece& base, RemoteSelect* remote) {
  if (!settings_.enable_pushdown_aggregate || !base.remote || !base.pushable ||
      !base.local_quals.empty() || base.shards.empty() || select.has_aggregates)
    return false;
  for (const WindowClause& window : select.windows) {
    std::vector<const Expr*> partition;
    for (int target : window.partition_by)
      partition.push_back(select.targets[static_cast<size_t>(target)].expr);
    if (base.shards.size() > 1 && !CoversKey(select, base, partition)) return false;
    for (const Expr* offset : {window.start_offset, window.end_offset})
      if (offset != nullptr &&
          (HasSubquery(offset) || RunsPerRow(offset) || !CanShip(*offset, catalog_)))
        return false;
  }
  for (const Target& target : select.targets)
    if (HasSubquery(target.expr) || RunsPerRow(target.expr) || !CanShip(*target.expr, catalog_))
      return false;
  Query* query = scratch_.New<Query>();
  query->targets = scratch_.CopyArray(select.targets);
  query->windows = scratch_.CopyArray(select.windows);
  remote->piece = &base;
  remote->windows = query;
  return true;
}

}  // namespace sluice
