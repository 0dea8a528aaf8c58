// INSERT, UPDATE, DELETE: what they share, and UPDATE and DELETE as whole statements on the shards.
#include "common/assert.h"
#include "common/error.h"
#include "optimizer/deparse.h"
#include "optimizer/evaluable.h"
#include "optimizer/planning.h"
#include "parser/walk.h"
#include "types/codec.h"

namespace sluice {
namespace {

// Volatile, but each row may have a value of its own, wherever it is computed.
bool IsFreelyVolatile(const Expr& expr) {
  static constexpr std::string_view kNames[] = {"random", "gen_random_uuid", "clock_timestamp"};
  const ProcInfo* proc = FindProc(expr.function);
  if (expr.kind != ExprKind::kCall || proc == nullptr) return false;
  for (std::string_view name : kNames)
    if (proc->name == name) return true;
  return false;
}

// The expression with such calls replaced by constants: whether the rest can be sent.
const Expr* WithoutFreelyVolatile(const Expr* expr, Arena* arena) {
  return RewriteExpr(expr, arena, [&](const Expr& e, int) -> const Expr* {
    return IsFreelyVolatile(e) ? MakeNull(e.type, arena) : nullptr;
  });
}

}  // namespace

namespace {

// WHERE false, or what it was folded to.
bool ChangesNone(const Select& select) {
  return std::ranges::any_of(select.where, [](const Expr* condition) {
    return condition->kind == ExprKind::kConst && (condition->is_null || condition->value[0] == 0);
  });
}

}  // namespace

bool Planner::CanShipChange(const Expr* expr) const {
  Arena arena;
  return IsShippable(WithoutFreelyVolatile(expr, &arena));
}

bool Planner::CanShipChange(const Query& query) const {
  Arena arena;
  const Query* rest = RewriteQuery(
      query, &arena,
      [&](const Expr& e, int) -> const Expr* {
        return IsFreelyVolatile(e) ? MakeNull(e.type, &arena) : nullptr;
      },
      0);
  return CanShipQuery(*rest, catalog_);
}

std::string_view Planner::TypeNameOf(const Expr& expr) {
  Deparser deparser(catalog_, {});
  return arena_.CopyString(deparser.TypeName(expr.type, -1));
}

ModifyPlan* Planner::NewModify(const Query& query, ModifyMethod method) {
  const QueryRel& target = query.rels[static_cast<size_t>(query.modification->target)];
  auto* node = NewNode<ModifyPlan>(PlanKind::kModify);
  node->command = query.command;
  node->method = method;
  node->relation = target.table->oid;
  std::string name = target.table->schema + "." + target.table->name;
  if (target.alias != target.table->name) name += " " + std::string(target.alias);
  node->relation_name = arena_.CopyString(name);
  return node;
}

void Planner::SetShardOutput(ModifyPlan* plan, const std::vector<const Expr*>& exprs) {
  SetOutput(plan, exprs);
  plan->shard_output = plan->output;
  auto binary = arena_.NewArray<bool>(exprs.size());
  for (size_t i = 0; i < binary.size(); i++) binary[i] = HasBinaryCodec(exprs[i]->type);
  plan->binary = binary;
}

// The partition keys' values over rel `rel`'s columns, those of partitions that are partitioned
// themselves behind their parents', in the order of catalog/partition_router.h.
std::vector<const Expr*> Planner::RoutingKeys(const Relation& table, int rel) {
  std::vector<const Expr*> keys;
  auto visit = [&](auto& self, const Relation& relation) -> void {
    if (relation.kind != RelationKind::kPartitioned) return;
    for (const Expr* key : KeyExpressions(relation)) {
      keys.push_back(RewriteExpr(key, &scratch_, [&](const Expr& e, int) -> const Expr* {
        if (e.kind != ExprKind::kColumn) return nullptr;
        int column = table.FindColumn(relation.columns[static_cast<size_t>(e.column)].name);
        return MakeColumn(rel, column, e.type, e.typmod, e.collation, &scratch_);
      }));
    }
    for (Oid child : relation.children)
      if (const Relation* found = catalog_.FindRelation(child)) self(self, *found);
  };
  visit(visit, table);
  return keys;
}

bool Planner::ChangesKey(const Relation& table, std::span<const Assignment> assignments) {
  std::vector<const Expr*> columns;
  for (const Expr* key : RoutingKeys(table, 0)) CollectColumns(key, &columns);
  for (const Assignment& assignment : assignments)
    for (const Expr* column : columns) {
      const Expr& value = *assignment.value;
      bool same = value.kind == ExprKind::kColumn && value.levels_up == 0 && value.rel == 0 &&
                  value.column == assignment.column;
      if (column->column == assignment.column && !same) return true;
    }
  return false;
}

Local Planner::PlanModify(const Query& query) {
  const Relation& table = *query.rels[static_cast<size_t>(query.modification->target)].table;
  for (const Relation* leaf : catalog_.Leaves(table))
    if (ServerOf(leaf->server).wrapper == "lines_fdw")
      Throw(sqlstate::kFeatureNotSupported, "cannot {} foreign table \"{}\"",
            query.command == QueryCommand::kInsert   ? "insert into"
            : query.command == QueryCommand::kUpdate ? "update"
                                                     : "delete from",
            leaf->name);
  std::vector<const Relation*> leaves = catalog_.Leaves(table);
  if (!leaves.empty()) compute_server_ = leaves[0]->server;
  return query.command == QueryCommand::kInsert ? PlanInsert(query) : PlanChange(query);
}

// UPDATE and DELETE as a SELECT of all that they need to know: first the new values, then
// RETURNING's.
Local Planner::PlanChange(const Query& query) {
  const Modification& modification = *query.modification;
  Query select_query = query;
  select_query.command = QueryCommand::kSelect;
  select_query.modification = nullptr;
  std::vector<Target> targets;
  for (const Assignment& assignment : modification.assignments)
    targets.push_back({assignment.value, "", false});
  targets.insert(targets.end(), query.targets.begin(), query.targets.end());
  select_query.targets = scratch_.CopyArray(targets);
  Select select = Prepare(select_query);
  const Select* outer_naming = std::exchange(naming_, &select);
  std::vector<const Expr*> required;
  for (const Target& target : select.targets) CollectColumns(target.expr, &required);
  Local planned;
  auto init_plans = init_plans_;
  auto init_plan_params = init_plan_params_;
  auto shard_expressions = shard_expressions_;
  Piece piece = PlanFrom(select, required);
  if (!TryWholeChange(query, select, piece, &planned)) {
    init_plans_ = std::move(init_plans);
    init_plan_params_ = std::move(init_plan_params);
    shard_expressions_ = std::move(shard_expressions);
    select = Prepare(select_query);
    planned = PlanChangeById(query, select);
  }
  naming_ = outer_naming;
  return planned;
}

bool Planner::TryWholeChange(const Query& query, const Select& select, const Piece& piece,
                             Local* out) {
  const Modification& modification = *query.modification;
  const Relation& table = *query.rels[static_cast<size_t>(modification.target)].table;
  bool none = ChangesNone(select);
  if (!none) {
    if (!piece.remote || !piece.pushable || !piece.local_quals.empty()) return false;
    if (!Deparser::CanChange(*piece.tree, modification.target)) return false;
  }
  if (ChangesKey(table, modification.assignments)) return false;
  for (const Target& target : select.targets)
    if (!CanShipChange(target.expr)) return false;
  // A replicated table's rows are the same on all servers, and so must be what becomes of them.
  bool replicated = table.kind == RelationKind::kReplicated;
  if (replicated) {
    if (piece.replicas.empty() && !none) return false;
    for (const Target& target : select.targets)
      if (!IsShippable(target.expr))
        Refuse("volatile functions in a change of replicated table \"{}\"", table.name);
  }
  std::vector<Shard> shards;
  if (!none) shards = piece.replicas.empty() ? piece.shards : piece.replicas;
  for (const Shard& shard : shards)
    if (shard.LeavesOf(modification.target)->size() != 1) return false;

  size_t count = modification.assignments.size();
  std::vector<Assignment> assignments(modification.assignments.begin(),
                                      modification.assignments.end());
  for (size_t i = 0; i < count; i++) assignments[i].value = select.targets[i].expr;
  std::vector<const Expr*> returned;
  for (size_t i = count; i < select.targets.size(); i++) returned.push_back(select.targets[i].expr);
  std::vector<const sluice::Plan*> scans;
  for (const Shard& shard : shards) {
    Deparser deparser(catalog_, [&](const QueryRel& rel) -> std::vector<const Relation*> {
      return *shard.LeavesOf(static_cast<int>(&rel - select.rels.data()));
    });
    deparser.OpenScope(select.rels, true);
    std::string sql =
        deparser.ChangeStatement({query.command, modification.target, piece.tree, piece.quals,
                                  assignments, std::span(select.targets).subspan(count)});
    // Its rows come from one of them.
    if (replicated && !scans.empty() && !returned.empty())
      sql = "WITH w AS (" + sql + ") SELECT * FROM w WHERE false";
    auto* scan = NewNode<ForeignScanPlan>(PlanKind::kForeignScan);
    scan->server = shard.server;
    scan->server_name = arena_.CopyString(ServerOf(shard.server).name);
    scan->relation_names = arena_.CopyString(RelationNames(select, *piece.tree, shard));
    scan->sql = arena_.CopyString(sql);
    scan->writes = true;
    auto params = arena_.NewArray<const Expr*>(deparser.params().size());
    for (size_t i = 0; i < params.size(); i++)
      params[i] = DeepCopyExpr(deparser.params()[i], &arena_);
    scan->params = params;
    auto binary = arena_.NewArray<bool>(returned.size());
    for (size_t i = 0; i < binary.size(); i++) binary[i] = HasBinaryCodec(returned[i]->type);
    scan->binary = binary;
    SetOutput(scan, returned);
    scan->rows = piece.rows / static_cast<double>(shards.size());
    scans.push_back(scan);
  }
  ModifyPlan* modify = NewModify(query, ModifyMethod::kRemote);
  modify->replicated = replicated;
  SetShardOutput(modify, returned);
  if (scans.empty()) {
    SetChildren(modify, {EmptyResult(returned).plan});
  } else if (scans.size() == 1) {
    SetChildren(modify, scans);
  } else {
    auto* append = NewNode<AppendPlan>(PlanKind::kAppend);
    SetChildren(append, scans);
    append->output = scans[0]->output;
    append->rows = piece.rows;
    SetChildren(modify, {append});
  }
  modify->rows = returned.empty() ? 0 : piece.rows;
  *out = {modify, returned};
  return true;
}

Local Planner::PlanCteScan(const QueryRel& rel, const std::vector<const Expr*>& provides) {
  if (rel.cte_levels_up >= 0) Refuse("this WITH query is not supported");
  ModifyingCte& cte = modifying_ctes_[static_cast<size_t>(rel.cte)];
  SLUICE_ASSERT(cte.plan != nullptr);
  auto* node = NewNode<CteScanPlan>(PlanKind::kCteScan);
  node->cte = rel.cte;
  node->scan = cte.scans++;
  node->output = cte.plan->output;
  node->rows = cte.plan->rows;
  return {node, provides};
}

// All parts of one statement see the tables as they were before it, which parts that run one after
// the other do not: they must read and write different tables.
void Planner::CheckWritesApart(const Query& query) const {
  struct Part {
    Oid written = kInvalidOid;
    QueryCommand command;
    std::vector<Oid> read;
  };
  std::vector<Part> parts;
  auto root_of = [&](const Relation* table) {
    while (table->parent != kInvalidOid) table = catalog_.FindRelation(table->parent);
    return table->oid;
  };
  auto visit = [&](auto& self, const Query& q, size_t part) -> void {
    for (const Cte& cte : q.ctes) {
      if (cte.query->command == QueryCommand::kSelect) {
        self(self, *cte.query, part);
        continue;
      }
      parts.push_back({kInvalidOid, cte.query->command, {}});
      self(self, *cte.query, parts.size() - 1);
    }
    if (q.command != QueryCommand::kSelect)
      parts[part].written = root_of(q.rels[static_cast<size_t>(q.modification->target)].table);
    for (const QueryRel& rel : q.rels)
      if (rel.kind == RelKind::kTable) parts[part].read.push_back(root_of(rel.table));
    ForEachSubquery(q, [&](const Query& below) {
      if (below.command == QueryCommand::kSelect) self(self, below, part);
    });
    ForEachQueryExpr(q, [&](const Expr& expr) {
      AnyExpr(&expr, [&](const Expr& e, int depth) {
        if (e.kind == ExprKind::kSubquery && depth == 0) self(self, *e.subquery, part);
        return false;
      });
    });
  };
  parts.push_back({kInvalidOid, query.command, {}});
  visit(visit, query, 0);
  for (const Part& writer : parts)
    for (const Part& other : parts) {
      if (&writer == &other || writer.written == kInvalidOid) continue;
      bool both_insert = writer.command == QueryCommand::kInsert &&
                         other.command == QueryCommand::kInsert && other.written == writer.written;
      // An INSERT's target is among what it reads: that alone is no reading.
      auto reads = std::count(other.read.begin(), other.read.end(), writer.written);
      if (reads > (both_insert ? 1 : 0))
        Refuse(
            "a data-modifying WITH query over several servers that writes a table which another "
            "part of the statement reads or writes");
    }
}

}  // namespace sluice
