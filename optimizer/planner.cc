#include "optimizer/planner.h"

#include "common/assert.h"
#include "common/error.h"
#include "optimizer/deparse.h"
#include "optimizer/evaluable.h"
#include "optimizer/planning.h"
#include "parser/walk.h"
#include "types/codec.h"
#include "types/object_name.h"

namespace sluice {
namespace {

// Costs are for EXPLAIN's readers: a connection's round trip, a row fetched, a row handled here.
constexpr double kRoundTripCost = 100, kFetchedRowCost = 0.01, kLocalRowCost = 0.0025;
constexpr int kDefaultWidthBytes = 32;

int WidthOfType(Oid type) {
  Physical physical = PhysicalOf(type);
  return physical == Physical::kBytes ? kDefaultWidthBytes : static_cast<int>(WidthOf(physical));
}

// Each table of a query, on every level, with conditions that its rows must meet to matter.
struct TableUse {
  const QueryRel* rel;
  int index;
  std::vector<const Expr*> quals;
};

}  // namespace

Planner::Planner(const PlanRequest& request)
    : request_(request),
      catalog_(*request.catalog),
      settings_(*request.settings),
      arena_(*request.arena) {}

namespace {

template <typename AddConstants>
void CollectFrom(const Query& query, const JoinTree* tree, std::vector<const Expr*> quals,
                 const AddConstants& add_constants, std::vector<TableUse>* uses) {
  if (tree == nullptr) return;
  if (tree->is_leaf) {
    const QueryRel& rel = query.rels[static_cast<size_t>(tree->rel)];
    if (rel.kind == RelKind::kTable) uses->push_back({&rel, tree->rel, quals});
    return;
  }
  std::vector<const Expr*> on;
  SplitConjuncts(tree->on, &on);
  std::vector<const Expr*> both = quals;
  both.insert(both.end(), on.begin(), on.end());
  add_constants(&both);
  // Of an outer join's nullable side only what ON says (with constants from the other side) may be
  // used.
  auto side = [&](const JoinTree* child, bool preserved, bool nullable) {
    std::vector<const Expr*> known;
    if (preserved && !nullable) known = tree->type == JoinType::kInner ? both : quals;
    if (nullable && tree->type != JoinType::kFull) {
      known = on;
      for (size_t i = quals.size() + on.size(); i < both.size(); i++) known.push_back(both[i]);
    }
    CollectFrom(query, child, known, add_constants, uses);
  };
  bool left_nullable = tree->type == JoinType::kRight || tree->type == JoinType::kFull;
  bool right_nullable = tree->type == JoinType::kLeft || tree->type == JoinType::kFull;
  side(tree->left, true, left_nullable);
  side(tree->right, true, right_nullable);
}

}  // namespace

namespace {

using LeavesOfRels = std::map<const QueryRel*, std::vector<const Relation*>>;

// Whether each table that the statement and its WITH queries write is one table there. Gives
// ON CONFLICT's rows their table.
bool TakesWholeTargets(const Query& query, LeavesOfRels& leaves) {
  for (const Cte& cte : query.ctes)
    if (!TakesWholeTargets(*cte.query, leaves)) return false;
  if (query.command == QueryCommand::kSelect) return true;
  const auto& target = leaves.at(&query.rels[static_cast<size_t>(query.modification->target)]);
  for (const QueryRel& rel : query.rels)
    if (rel.kind == RelKind::kExcluded) leaves[&rel] = target;
  return target.size() == 1;
}

}  // namespace

// What a statement that goes to one server as it is reads there.
struct Planner::Route {
  std::vector<TableUse> uses;
  LeavesOfRels leaves;
  std::set<const QueryRel*> locked;
  Oid server = kInvalidOid;
  double rows = 1;
  bool modifies = false;
  bool locks = false;
};

// Whether the rows of all its tables lie on one server.
bool Planner::FindRoute(const Query& query, Route* route) {
  return CollectUses(query, route) && PruneUses(route) &&
         (!route->modifies || TakesWholeTargets(query, route->leaves));
}

// What does not depend on the parameters' values.
bool Planner::CollectUses(const Query& query, Route* route) {
  bool all_on = settings_.enable_pushdown_filter && settings_.enable_pushdown_join &&
                settings_.enable_pushdown_aggregate && settings_.enable_pushdown_distinct &&
                settings_.enable_pushdown_sort && settings_.enable_pushdown_limit;
  if (!all_on) return false;
  auto& [uses, leaves, locked, server, rows, modifies, locks] = *route;
  size_t table_count = 0;
  bool other = false;
  auto visit = [&](auto& self, const Query& q) -> void {
    std::vector<const Expr*> where;
    SplitConjuncts(q.where, &where);
    CollectFrom(
        q, q.from, where, [this](std::vector<const Expr*>* quals) { AddEqualConstants(quals); },
        &uses);
    // An INSERT's target, whose rows' place is known before they are.
    if (q.command == QueryCommand::kInsert) {
      const QueryRel& target = q.rels[static_cast<size_t>(q.modification->target)];
      if (target.table->kind == RelationKind::kForeignTable)
        uses.push_back({&target, q.modification->target, {}});
    } else if (q.command == QueryCommand::kUpdate) {
      const QueryRel& target = q.rels[static_cast<size_t>(q.modification->target)];
      other |= ChangesKey(*target.table, q.modification->assignments);
    }
    if (q.command != QueryCommand::kSelect) {
      const QueryRel& target = q.rels[static_cast<size_t>(q.modification->target)];
      other |= target.table->kind == RelationKind::kReplicated;
      modifies = true;
    }
    for (const RowMark& mark : q.row_marks) locked.insert(&q.rels[static_cast<size_t>(mark.rel)]);
    for (const QueryRel& rel : q.rels) {
      table_count += rel.kind == RelKind::kTable;
      other |= rel.kind == RelKind::kVirtual ||
               (rel.table != nullptr && rel.table->kind == RelationKind::kMaterializedView);
      if (rel.subquery != nullptr) self(self, *rel.subquery);
    }
    for (const Cte& cte : q.ctes) self(self, *cte.query);
    auto set_op = [&](auto& again, const SetOpTree* tree) -> void {
      if (tree == nullptr) return;
      if (tree->leaf != nullptr) return self(self, *tree->leaf);
      again(again, tree->left);
      again(again, tree->right);
    };
    set_op(set_op, q.set_op);
    auto sublinks = [&](const Expr& e, int depth) {
      if (e.kind == ExprKind::kSubquery && depth == 0) self(self, *e.subquery);
      return false;
    };
    for (const Target& target : q.targets) AnyExpr(target.expr, sublinks);
    if (q.modification != nullptr) {
      ForEachModificationExpr(*q.modification, [&](const Expr& e) { AnyExpr(&e, sublinks); });
      if (q.modification->source != nullptr) self(self, *q.modification->source);
    }
    AnyExpr(q.where, sublinks);
    AnyExpr(q.having, sublinks);
    AnyExpr(q.limit, sublinks);
    AnyExpr(q.offset, sublinks);
    auto on = [&](auto& again, const JoinTree* tree) -> void {
      if (tree == nullptr || tree->is_leaf) return;
      AnyExpr(tree->on, sublinks);
      again(again, tree->left);
      again(again, tree->right);
    };
    on(on, q.from);
  };
  visit(visit, query);
  if (other || uses.empty() || uses.size() != table_count) return false;
  if (modifies ? !CanShipChange(query) : !CanShipQuery(query, catalog_)) return false;
  // Replicated tables last: they are wherever the others are.
  std::ranges::stable_partition(
      uses, [](const TableUse& use) { return use.rel->table->kind != RelationKind::kReplicated; });
  locks = !locked.empty();
  return true;
}

bool Planner::PruneUses(Route* route) {
  auto& [uses, leaves, locked, server, rows, modifies, locks] = *route;
  server = kInvalidOid;
  for (const TableUse& use : uses) {
    auto found = Prune(*use.rel, use.index, use.quals);
    if (found.empty()) return false;
    if (use.rel->table->kind == RelationKind::kReplicated) {
      auto here = std::ranges::find_if(found, [&](const Relation* leaf) {
        return server == kInvalidOid || leaf->server == server;
      });
      if (here == found.end()) return false;
      found = {*here};
    }
    // Not of a UNION of tables; and of a replicated table always on the same server.
    bool replicated = use.rel->table->kind == RelationKind::kReplicated;
    if (locked.contains(use.rel) && (found.size() > 1 || (replicated && uses.size() > 1)))
      return false;
    for (const Relation* leaf : found) {
      if (server == kInvalidOid) server = leaf->server;
      if (leaf->server != server) return false;
      rows = std::max(rows, leaf->row_estimate);
    }
    leaves[use.rel] = std::move(found);
  }
  return ServerOf(server).wrapper != "lines_fdw";
}

// A statement whose tables' rows all lie on one server goes there as it is.
bool Planner::TryRouter(const Query& query) {
  Route route;
  if (!FindRoute(query, &route)) return false;
  auto& [uses, leaves, locked, server, rows, modifies, locks] = route;
  Deparser deparser(catalog_, [&](const QueryRel& rel) { return leaves.at(&rel); });
  std::string sql = deparser.WholeQuery(query);
  auto* scan = NewNode<ForeignScanPlan>(PlanKind::kForeignScan);
  scan->server = server;
  scan->server_name = arena_.CopyString(ServerOf(server).name);
  std::string names;
  for (const TableUse& use : uses)
    for (const Relation* leaf : leaves[use.rel])
      names += (names.empty() ? "" : ", ") + leaf->schema + "." + leaf->name;
  scan->relation_names = arena_.CopyString(names);
  scan->sql = arena_.CopyString(sql);
  auto params = arena_.NewArray<const Expr*>(deparser.params().size());
  for (size_t i = 0; i < params.size(); i++)
    params[i] = DeepCopyExpr(deparser.params()[i], &arena_);
  scan->params = params;
  std::vector<const Expr*> provides;
  std::vector<OutputColumn> output;
  for (const Target& target : query.targets) {
    if (target.junk) continue;
    provides.push_back(target.expr);
    output.push_back({arena_.CopyString(target.name), target.expr->type, target.expr->typmod,
                      target.expr->collation});
  }
  auto binary = arena_.NewArray<bool>(provides.size());
  for (size_t i = 0; i < binary.size(); i++) binary[i] = HasBinaryCodec(provides[i]->type);
  scan->binary = binary;
  scan->output = arena_.CopyArray(output);
  scan->rows = rows;
  scan->writes = modifies;
  scan->locks = locks;
  if (query.command == QueryCommand::kSelect) {
    Finish({scan, provides}, query);
    return true;
  }
  ModifyPlan* modify = NewModify(query, ModifyMethod::kRemote);
  SetChildren(modify, {scan});
  SetShardOutput(modify, provides);
  modify->rows = provides.empty() ? 0 : rows;
  Finish({modify, provides}, query);
  return true;
}

Local Planner::PlanAny(const Query& query, bool top) {
  if (query.command != QueryCommand::kSelect) return PlanModify(query);
  return query.set_op != nullptr ? PlanSetOp(query) : PlanSelect(query, top);
}

void Planner::Number(sluice::Plan* plan) {
  plan->id = node_count_++;
  for (const sluice::Plan* child : plan->children) Number(const_cast<sluice::Plan*>(child));
  for (int number : plan->sub_plans) {
    auto* sub = const_cast<sluice::Plan*>(sub_plans_[static_cast<size_t>(number)].plan);
    if (numbered_.insert(number).second) Number(sub);
  }
  Estimate(plan);
}

void Planner::Estimate(sluice::Plan* plan) {
  for (const OutputColumn& column : plan->output) plan->width_bytes += WidthOfType(column.type);
  plan->rows = std::max(plan->rows, 0.0);
  double startup = 0, total = 0, rows_in = 0;
  for (const sluice::Plan* child : plan->children) {
    startup += child->startup_cost;
    total += child->total_cost;
    rows_in += child->rows;
  }
  switch (plan->kind) {
    case PlanKind::kForeignScan:
    case PlanKind::kCompletion:
      startup += kRoundTripCost;
      total += kRoundTripCost + plan->rows * kFetchedRowCost;
      break;
    case PlanKind::kAppend:
    case PlanKind::kMergeAppend:  // all scans run at once
      startup = plan->children.empty() ? 0 : plan->children[0]->startup_cost;
      break;
    case PlanKind::kAggregate:
    case PlanKind::kSort:
    case PlanKind::kWindowAgg:
    case PlanKind::kDistinct:
    case PlanKind::kSetOp:
      startup = total + rows_in * kLocalRowCost;
      total = startup + plan->rows * kLocalRowCost;
      break;
    case PlanKind::kNestLoop:
    case PlanKind::kApply:
      total += plan->children[0]->rows * plan->children[1]->rows * kLocalRowCost;
      break;
    default:
      total += rows_in * kLocalRowCost;
  }
  plan->startup_cost = std::min(startup, total);
  plan->total_cost = total;
}

// Their bytes mean the same to the client as they do on the shard.
bool Planner::TypesPassThrough(std::span<const OutputColumn> output) const {
  for (size_t i = 0; i < output.size(); i++) {
    if (ClientFormat(i) == 0) continue;
    if (IsObjectName(output[i].type)) return false;
    auto user = catalog_.types.find(output[i].type);
    if (user != catalog_.types.end() && user->second.enum_labels.empty()) return false;
    const TypeInfo* info = FindType(output[i].type);
    if (info == nullptr || info->kind == 'c' || output[i].type == kRecordOid) return false;
    if (info->element >= kFirstUserOid) return false;
  }
  return true;
}

int16_t Planner::ClientFormat(size_t column) const {
  if (request_.result_formats.empty()) return 0;
  return request_.result_formats[request_.result_formats.size() == 1 ? 0 : column];
}

bool NamesShardsObjects(Oid type) {
  return IsObjectName(type) && type != kRegtypeOid;
}

void RefuseObjectNamesOfShards(const sluice::Plan& plan) {
  if (plan.kind == PlanKind::kForeignScan) {
    for (const OutputColumn& column : plan.output)
      if (NamesShardsObjects(column.type))
        Refuse(
            "type {} of a table on a server, where its values do not pass through unchanged, is "
            "not supported",
            FormatType(column.type));
  }
  for (const sluice::Plan* child : plan.children) RefuseObjectNamesOfShards(*child);
}

void Planner::Finish(Local root, const Query& query) {
  statement_ = arena_.New<PlannedStatement>();
  std::vector<ResultColumn> columns;
  for (const Target& target : query.targets)
    if (!target.junk)
      columns.push_back({arena_.CopyString(target.name), target.expr->type, target.expr->typmod,
                         target.expr->collation});
  statement_->columns = arena_.CopyArray(columns);
  statement_->root = root.plan;
  for (const InitPlan& init : init_plans_) Parameterize(const_cast<sluice::Plan*>(init.plan));
  for (const ModifyingCte& cte : modifying_ctes_) Parameterize(cte.plan);
  Parameterize(root.plan);
  statement_->init_plans = arena_.CopyArray(init_plans_);
  statement_->sub_plans = arena_.CopyArray(sub_plans_);
  statement_->exec_param_count = exec_param_count_;
  statement_->uses_params =
      AnyExprInQuery(query, [](const Expr& e, int) { return e.kind == ExprKind::kParam; });
  for (const InitPlan& init : init_plans_) Number(const_cast<sluice::Plan*>(init.plan));
  std::vector<CtePlan> ctes;
  for (const ModifyingCte& cte : modifying_ctes_) {
    ctes.push_back({cte.plan, cte.scans});
    Number(cte.plan);
  }
  statement_->ctes = arena_.CopyArray(ctes);
  Number(root.plan);
  statement_->node_count = node_count_;
  NoteWrites(query);

  auto is_remote = [](const sluice::Plan& plan) {
    return plan.kind == PlanKind::kForeignScan && !static_cast<const ForeignScanPlan&>(plan).lines;
  };
  bool pass = request_.allow_pass_through && root.plan->output.size() == columns.size();
  if (root.plan->kind == PlanKind::kAppend) {
    pass = pass && !static_cast<AppendPlan*>(root.plan)->parallel;
    for (const sluice::Plan* child : root.plan->children)
      pass = pass && is_remote(*child) && child->output.size() == columns.size();
  } else {
    pass = pass && is_remote(*root.plan);
  }
  for (const InitPlan& init : init_plans_) RefuseObjectNamesOfShards(*init.plan);
  for (const SubPlan& sub_plan : sub_plans_) RefuseObjectNamesOfShards(*sub_plan.plan);
  for (const CtePlan& cte : ctes) RefuseObjectNamesOfShards(*cte.plan);
  if (!pass || !TypesPassThrough(root.plan->output)) return RefuseObjectNamesOfShards(*root.plan);
  // Nobody claims: slices are handed on as they come.
  if (root.plan->kind == PlanKind::kAppend)
    static_cast<AppendPlan*>(root.plan)->claim_whole = false;
  statement_->pass_through = true;
  auto ask = [&](const sluice::Plan* plan) {
    auto* scan = static_cast<ForeignScanPlan*>(const_cast<sluice::Plan*>(plan));
    auto binary = arena_.NewArray<bool>(columns.size());
    for (size_t i = 0; i < binary.size(); i++) binary[i] = ClientFormat(i) == 1;
    scan->binary = binary;
  };
  std::vector<const sluice::Plan*> scans{root.plan};
  if (root.plan->kind == PlanKind::kAppend)
    scans.assign(root.plan->children.begin(), root.plan->children.end());
  for (const sluice::Plan* scan : scans) ask(scan);
  CopyOut(scans);
}

// COPY takes no parameters, and the binary format of no columns would leave nothing to strip.
void Planner::CopyOut(std::span<const sluice::Plan* const> scans) {
  auto can_copy = [](const sluice::Plan* plan) {
    const auto& scan = static_cast<const ForeignScanPlan&>(*plan);
    return scan.params.empty() && scan.row_limit == 0 && !scan.output.empty();
  };
  if (request_.copy_options.empty() || !std::all_of(scans.begin(), scans.end(), can_copy)) return;
  statement_->copy_out = true;
  for (const sluice::Plan* plan : scans) {
    auto* scan = static_cast<ForeignScanPlan*>(const_cast<sluice::Plan*>(plan));
    scan->copy = true;
    scan->sql = arena_.CopyString(
        fmt::format("COPY ({}) TO STDOUT ({})", scan->sql, request_.copy_options));
  }
}

// What the session must know of a statement that writes.
void Planner::NoteWrites(const Query& query) {
  statement_->command = query.command;
  std::vector<Oid> servers;
  bool one_each = true;
  auto visit = [&](auto& self, const sluice::Plan& plan) -> void {
    if (plan.kind == PlanKind::kForeignScan) {
      const auto& scan = static_cast<const ForeignScanPlan&>(plan);
      statement_->writes |= scan.writes;
      one_each &= scan.writes;  // a read beside it would not see one snapshot with it
      if (scan.writes || scan.locks) {
        bool again = std::find(servers.begin(), servers.end(), scan.server) != servers.end();
        if (again) one_each = false;
        if (!again) servers.push_back(scan.server);
      }
    } else if (plan.kind == PlanKind::kModify) {
      statement_->writes = true;
      one_each &= static_cast<const ModifyPlan&>(plan).method == ModifyMethod::kRemote;
    }
    for (const sluice::Plan* child : plan.children) self(self, *child);
    for (int number : plan.sub_plans) self(self, *sub_plans_[static_cast<size_t>(number)].plan);
  };
  visit(visit, *statement_->root);
  for (const InitPlan& init : init_plans_) visit(visit, *init.plan);
  for (const ModifyingCte& cte : modifying_ctes_) visit(visit, *cte.plan);
  one_each &= modifying_ctes_.empty();
  statement_->written_servers = arena_.CopyArray(servers);
  statement_->one_statement_each = one_each;
}

const PlannedStatement* Planner::Plan(const Query& query) {
  const Query* folded = FoldConstantsInQuery(query, Evaluation(false));
  if (TryRouter(*folded)) return statement_;
  AnyExprInQuery(*folded, [](const Expr& e, int) {
    if (e.kind == ExprKind::kSubquery && !e.subquery->row_marks.empty())
      Refuse("{} in a subquery of an expression over several servers is not supported",
             NameOf(e.subquery->row_marks[0].strength));
    return false;
  });
  std::vector<std::vector<InlinedCte>> stack;
  const Query* inlined = InlineCtes(*folded, stack);
  if (!modifying_ctes_.empty()) CheckWritesApart(*folded);
  for (size_t i = 0; i < modifying_ctes_.size(); i++)
    modifying_ctes_[i].plan = PlanModify(*modifying_ctes_[i].query).plan;
  Finish(PlanAny(*inlined, true), *inlined);
  return statement_;
}

struct RouteFinder::Impl {
  const Query& query;
  PlannerSettings settings;
  PlanRequest request;
  Planner planner;
  Planner::Route route;
  bool possible;

  Impl(const Query& q, const PlanRequest& r)
      : query(q), settings(*r.settings), request(r), planner(UseOwn()) {
    possible = planner.CollectUses(query, &route);
  }
  const PlanRequest& UseOwn() {
    request.settings = &settings;
    return request;
  }
};

RouteFinder::RouteFinder(const Query& query, const PlanRequest& request)
    : impl_(std::make_unique<Impl>(query, request)) {}

RouteFinder::~RouteFinder() = default;

std::optional<RouteKey> RouteFinder::Find(const PlanRequest& request) {
  auto& [query, settings, mine, planner, route, possible] = *impl_;
  if (!possible) return std::nullopt;
  Arena values(HeapBlocks(), 1024);
  mine.params = request.params;
  mine.session = request.session;
  planner.values_ = &values;
  bool found =
      planner.PruneUses(&route) && (!route.modifies || TakesWholeTargets(query, route.leaves));
  planner.values_ = &planner.scratch_;
  if (!found) return std::nullopt;
  RouteKey key;
  for (const TableUse& use : route.uses) {
    const auto& leaves = route.leaves.at(use.rel);
    key.insert(key.end(), leaves.begin(), leaves.end());
    key.push_back(nullptr);
  }
  return key;
}

const PlannedStatement* PlanQuery(const Query& query, const PlanRequest& request) {
  return Planner(request).Plan(query);
}

// Nothing in it may have another value at another time or under other settings; and no part of it
// that planning looks into deeper than into expressions.
bool HasReusableRoute(const Query& query) {
  auto is_table = [](const QueryRel& rel) { return rel.kind == RelKind::kTable; };
  bool inserts = query.modification != nullptr && (query.modification->source != nullptr ||
                                                   query.modification->on_conflict != nullptr);
  if (query.command == QueryCommand::kInsert || inserts || query.set_op != nullptr ||
      !query.ctes.empty() || !std::all_of(query.rels.begin(), query.rels.end(), is_table))
    return false;
  bool uses_params = false;
  bool other = AnyExprInQuery(query, [&](const Expr& e, int) {
    switch (e.kind) {
      case ExprKind::kParam:
        uses_params = true;
        return false;
      case ExprKind::kCall: {
        const ProcInfo* proc = FindProc(e.function);
        return proc == nullptr || proc->volatility != 'i';
      }
      case ExprKind::kConst:
      case ExprKind::kColumn:
      case ExprKind::kAnd:
      case ExprKind::kOr:
      case ExprKind::kNot:
      case ExprKind::kIsNull:
      case ExprKind::kIsNotNull:
      case ExprKind::kRelabel:
        return false;
      default:
        return true;
    }
  });
  return uses_params && !other;
}

}  // namespace sluice
