#include "optimizer/completion.h"

#include "common/error.h"
#include "optimizer/planning.h"
#include "parser/analyze.h"
#include "types/codec.h"

namespace sluice {

// The columns of one table, from all its shards, all in the binary format: the bytes go on to
// another Postgres.
Local Planner::PlanTableCopy(const CompletionTable& table, const std::vector<Oid>& param_types) {
  Select select;
  QueryRel rel{};
  std::vector<QueryColumn> columns;
  for (const OutputColumn& column : table.types)
    columns.push_back({column.name, column.type, column.typmod, column.collation});
  rel.columns = scratch_.CopyArray(columns);
  rel.kind = table.relation != nullptr ? RelKind::kTable : RelKind::kVirtual;
  rel.table = table.relation;
  rel.virtual_name = table.virtual_name;
  select.rels.push_back(rel);
  std::vector<const Expr*> wanted;
  for (int column : table.columns) {
    const QueryColumn& c = columns[static_cast<size_t>(column)];
    wanted.push_back(MakeColumn(0, column, c.type, c.typmod, c.collation, &scratch_));
  }
  const Select* outer_naming = std::exchange(naming_, &select);
  std::vector<const Expr*> quals;
  for (const std::string& sql : table.conditions) {
    try {
      std::vector<Oid> types = param_types;
      AnalyzeContext context{&catalog_, request_.session, {"public"}, "", "", &scratch_, &types};
      const Expr* condition = AnalyzeExpression(sql, table.relation, context);
      if (types != param_types || condition->type != kBoolOid) continue;
      condition = FoldConstants(condition, Evaluation(false));
      if (IsShippable(condition)) SplitConjuncts(condition, &quals);
    } catch (const QueryError&) {
      // All its rows, then.
    }
  }
  Piece piece = PlanLeaf(select, 0, quals);
  Local local = piece.remote ? ToLocal(select, piece, wanted) : Project(piece.local, wanted);
  naming_ = outer_naming;
  auto all_binary = [&](auto& self, const sluice::Plan* plan) -> void {
    for (const sluice::Plan* child : plan->children) self(self, child);
    if (plan->kind != PlanKind::kForeignScan) return;
    auto* scan = static_cast<ForeignScanPlan*>(const_cast<sluice::Plan*>(plan));
    if (scan->lines) return;
    auto binary = arena_.NewArray<bool>(scan->output.size());
    std::fill(binary.begin(), binary.end(), true);
    scan->binary = binary;
  };
  all_binary(all_binary, local.plan);
  return local;
}

static bool ScansAShard(const sluice::Plan& plan) {
  return plan.kind == PlanKind::kForeignScan ||
         std::any_of(plan.children.begin(), plan.children.end(),
                     [](const sluice::Plan* child) { return ScansAShard(*child); });
}

const PlannedStatement* Planner::PlanCompleted(const CompletionRequest& completion) {
  auto* node = NewNode<CompletionPlan>(PlanKind::kCompletion);
  const Server& server = ServerOf(completion.server);
  node->server = completion.server;
  node->server_name = arena_.CopyString(server.name);
  std::vector<std::string_view> setup;
  for (const std::string& sql : completion.setup) setup.push_back(arena_.CopyString(sql));
  node->setup = arena_.CopyArray(setup);
  std::vector<CompletionPlan::Input> inputs;
  std::vector<const sluice::Plan*> children;
  bool reads_shards = false;
  for (const CompletionTable& table : completion.tables) {
    inputs.push_back({{}, arena_.CopyString(table.copy_sql)});
    children.push_back(PlanTableCopy(table, completion.param_types).plan);
    RefuseObjectNamesOfShards(*children.back());
    reads_shards = reads_shards || ScansAShard(*children.back());
  }
  node->inputs = arena_.CopyArray(inputs);
  SetChildren(node, children);
  node->sql = arena_.CopyString(completion.sql);
  auto params = arena_.NewArray<const Expr*>(completion.param_types.size());
  for (size_t i = 0; i < params.size(); i++) {
    Expr* param = arena_.New<Expr>();
    param->kind = ExprKind::kParam;
    param->param = static_cast<int>(i);
    param->type = completion.param_types[i];
    params[i] = param;
  }
  node->params = params;
  auto output = arena_.NewArray<OutputColumn>(completion.columns.size());
  auto binary = arena_.NewArray<bool>(completion.columns.size());
  std::vector<ResultColumn> columns;
  for (size_t i = 0; i < output.size(); i++) {
    output[i] = completion.columns[i];
    // From catalogs alone it is an oid of ours.
    if (reads_shards && NamesShardsObjects(output[i].type))
      Refuse("a result of type {} computed by a server is not supported",
             FormatType(output[i].type));
    output[i].name = arena_.CopyString(output[i].name);
    binary[i] = !completion.as_text[i] && HasBinaryCodec(output[i].type);
    columns.push_back({output[i].name, output[i].type, output[i].typmod, output[i].collation});
  }
  node->output = output;
  node->binary = binary;
  node->rows = 1000;

  statement_ = arena_.New<PlannedStatement>();
  statement_->root = node;
  statement_->columns = arena_.CopyArray(columns);
  statement_->uses_params = !completion.param_types.empty();
  Number(node);
  statement_->node_count = node_count_;
  return statement_;
}

const PlannedStatement* PlanCompletion(const CompletionRequest& completion,
                                       const PlanRequest& request) {
  return Planner(request).PlanCompleted(completion);
}

}  // namespace sluice
