#include "optimizer/view_plan.h"

#include <algorithm>

#include "catalog/catalog.h"
#include "common/error.h"
#include "optimizer/expr_util.h"
#include "optimizer/plan_text.h"
#include "optimizer/planner.h"
#include "parser/walk.h"

namespace sluice {
namespace {

// A live view shows what its query would give now: an expression whose value changes by itself
// would make that wrong without any row having changed.
bool ChangesByItself(const ProcInfo& proc) {
  return proc.volatility == 'v' || proc.name == "now" || proc.name == "transaction_timestamp" ||
         proc.name == "statement_timestamp" || proc.name == "current_setting" ||
         proc.name == "current_database" || proc.name == "current_schema" ||
         proc.name == "pg_backend_pid";
}

void RefuseVolatile(const Query& query) {
  AnyExprInQuery(query, [](const Expr& e, int) {
    if (e.kind == ExprKind::kSqlValue)
      Refuse(
          "CURRENT_… values (CURRENT_DATE, CURRENT_USER and the like) are not supported in a "
          "live view");
    if (e.kind == ExprKind::kParam)
      Refuse(
          "materialized views may not be defined using bound "
          "parameters");
    if (e.kind != ExprKind::kCall) return false;
    const ProcInfo* proc = FindProc(e.function);
    if (proc != nullptr && ChangesByItself(*proc))
      Refuse("function {}() is not supported in a live view: its value changes by itself",
             proc->name);
    return false;
  });
}

void CollectInputs(const PlannedStatement& statement, const Plan& plan, std::vector<Oid>* inputs) {
  if (plan.kind == PlanKind::kVirtualScan)
    Refuse("a live view on the system view {} is not supported",
           static_cast<const VirtualScanPlan&>(plan).name);
  if (plan.kind == PlanKind::kViewScan) {
    Oid relation = static_cast<const ViewScanPlan&>(plan).relation;
    if (std::find(inputs->begin(), inputs->end(), relation) == inputs->end())
      inputs->push_back(relation);
  }
  if (plan.kind == PlanKind::kRecursiveUnion)
    Refuse("WITH RECURSIVE is not supported in a live view");
  for (const Plan* child : plan.children) CollectInputs(statement, *child, inputs);
  for (int number : plan.sub_plans)
    CollectInputs(statement, *statement.sub_plans[static_cast<size_t>(number)].plan, inputs);
}

// Columns of stored relations that expressions use. `around`: the query they stand in, behind those
// around that.
using UsedColumns = std::map<Oid, std::set<std::string>>;
void CollectColumns(const Query& query, std::vector<const Query*>* around, UsedColumns* used);

void CollectColumns(const Expr& expr, std::vector<const Query*>* around, UsedColumns* used) {
  if (expr.kind == ExprKind::kColumn && expr.rel >= 0) {
    const Query& query = *around->at(around->size() - 1 - static_cast<size_t>(expr.levels_up));
    if (const Relation* table = query.rels[static_cast<size_t>(expr.rel)].table)
      (*used)[table->oid].insert(table->columns.at(static_cast<size_t>(expr.column)).name);
  }
  if (expr.subquery != nullptr) CollectColumns(*expr.subquery, around, used);
  ForEachChild(expr, [&](const Expr& child) { CollectColumns(child, around, used); });
}

void CollectColumns(const Query& query, std::vector<const Query*>* around, UsedColumns* used) {
  around->push_back(&query);
  ForEachQueryExpr(query, [&](const Expr& expr) { CollectColumns(expr, around, used); });
  ForEachSubquery(query, [&](const Query& below) { CollectColumns(below, around, used); });
  around->pop_back();
}

}  // namespace

bool UsesColumn(const ViewPlan& view, Oid input, const std::string& column) {
  auto used = view.columns.find(input);
  return used != view.columns.end() && used->second.contains(column);
}

std::shared_ptr<const ViewPlan> PlanView(const Query& query, const Catalog& catalog,
                                         const SessionSettings& settings) {
  RefuseVolatile(query);
  auto view = std::make_shared<ViewPlan>();
  view->settings = settings;
  std::vector<const Query*> around;
  CollectColumns(query, &around, &view->columns);
  PlannerSettings local;
  local.enable_pushdown_filter = local.enable_pushdown_join = local.enable_pushdown_aggregate =
      local.enable_pushdown_distinct = local.enable_pushdown_sort = local.enable_pushdown_limit =
          false;
  local.max_parallel_workers_per_gather = 0;
  PlanRequest request{};
  request.catalog = &catalog;
  request.session = &view->settings;
  request.settings = &local;
  request.arena = &view->arena;
  request.allow_pass_through = false;
  request.for_view = true;
  view->statement = PlanQuery(query, request);
  const PlannedStatement& statement = *view->statement;
  if (!statement.init_plans.empty() || !statement.ctes.empty())
    Refuse("a subquery that runs first is not supported in a live view");
  CollectInputs(statement, *statement.root, &view->inputs);
  view->fingerprint = PlanTreeText(*view->statement, true);
  return view;
}

}  // namespace sluice
