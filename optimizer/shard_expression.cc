// What statements that write compute, and nothing here can: of constants alone, a shard computes it
// once, before. (Statements that only read are completed on a shard instead.)
#include "catalog/catalog.h"
#include "common/error.h"
#include "optimizer/deparse.h"
#include "optimizer/evaluable.h"
#include "optimizer/expr_util.h"
#include "optimizer/planning.h"
#include "types/codec.h"

namespace sluice {
namespace {

// '10.0.0.1' for a column whose type has no codec here: the shard's input function reads it when
// the row arrives.
bool IsLiteralOfUnknownForm(const Expr& expr) {
  return expr.kind == ExprKind::kCoerceViaIo && !HasBinaryCodec(expr.type) &&
         expr.args[0]->kind == ExprKind::kConst && expr.args[0]->type == kTextOid;
}

bool IsOfConstants(const Expr& expr) {
  return !AnyExpr(&expr, [](const Expr& e, int) {
    return e.kind == ExprKind::kColumn || e.kind == ExprKind::kAggregate ||
           e.kind == ExprKind::kWindow || e.kind == ExprKind::kSubquery ||
           e.kind == ExprKind::kSubPlan || e.kind == ExprKind::kGrouping ||
           (e.kind == ExprKind::kExecParam && e.per_row);
  });
}

}  // namespace

const Expr* Planner::ComputeOnShard(const Expr* expr) {
  if (compute_server_ == kInvalidOid || CanEvaluate(*expr)) return expr;
  return RewriteExpr(expr, &scratch_, [&](const Expr& e, int) -> const Expr* {
    if (CanEvaluate(e)) return &e;
    if (IsLiteralOfUnknownForm(e)) {
      Expr* literal = scratch_.New<Expr>(*e.args[0]);
      literal->type = e.type;
      literal->typmod = e.typmod;
      literal->collation = e.collation;
      return literal;
    }
    if (!IsOfConstants(e) || !IsShippable(&e)) return nullptr;
    return AddShardExpression(e);
  });
}

// SELECT the expression, as an init plan.
const Expr* Planner::AddShardExpression(const Expr& expr) {
  for (const auto& [known, param] : shard_expressions_)
    if (EqualExpr(known, &expr)) return param;
  Deparser deparser(catalog_, {});
  auto* scan = NewNode<ForeignScanPlan>(PlanKind::kForeignScan);
  scan->server = compute_server_;
  scan->server_name = arena_.CopyString(ServerOf(compute_server_).name);
  scan->sql = arena_.CopyString("SELECT " + deparser.Expression(expr));
  auto params = arena_.NewArray<const Expr*>(deparser.params().size());
  for (size_t i = 0; i < params.size(); i++)
    params[i] = DeepCopyExpr(deparser.params()[i], &arena_);
  scan->params = params;
  auto output = arena_.NewArray<OutputColumn>(1);
  output[0] = {"?column?", expr.type, expr.typmod, expr.collation};
  scan->output = output;
  auto binary = arena_.NewArray<bool>(1);
  binary[0] = HasBinaryCodec(expr.type);
  scan->binary = binary;
  scan->rows = 1;
  int number = exec_param_count_++;
  init_plans_.push_back({scan, number, SublinkKind::kScalar, expr.type});
  const Expr* param = NewExecParam(number, expr);
  shard_expressions_.emplace_back(&expr, param);
  return param;
}

}  // namespace sluice
