// One rel of FROM as a piece, and guesses at how many rows conditions leave.
#include "common/error.h"
#include "optimizer/planning.h"
#include "parser/query.h"

namespace sluice {
namespace {

constexpr double kEqualityGuess = 0.005, kRangeGuess = 1.0 / 3, kOtherGuess = 0.25;

// A table that was never analysed has the catalog's default: rather prepare for many rows than for
// few.
constexpr double kNeverAnalysedRows = 1000, kRowsUnknown = 20000;

double RowsOf(const Relation& table) {
  return table.row_estimate == kNeverAnalysedRows ? kRowsUnknown : table.row_estimate;
}

const ColumnInfo* InfoOf(const Select& select, const Expr* expr) {
  while (expr->kind == ExprKind::kRelabel) expr = expr->args[0];
  if (expr->kind != ExprKind::kColumn || expr->rel < 0 || expr->levels_up != 0) return nullptr;
  const QueryRel& rel = select.rels[static_cast<size_t>(expr->rel)];
  if (rel.kind != RelKind::kTable || expr->column < 0) return nullptr;
  return &rel.table->columns[static_cast<size_t>(expr->column)];
}

}  // namespace

double Planner::DistinctValues(const Select& select, const Expr* expr, double rows) const {
  const ColumnInfo* column = InfoOf(select, expr);
  // A view's plan must stay the same whatever the statistics are.
  if (column == nullptr || column->distinct == 0 || request_.for_view) return 0;
  return column->distinct > 0 ? column->distinct : std::max(1.0, -column->distinct * rows);
}

double Planner::Selectivity(const Select& select, const Expr* qual) const {
  auto table_rows = [&](const Expr* expr) {
    return expr->kind == ExprKind::kColumn && expr->rel >= 0 &&
                   select.rels[static_cast<size_t>(expr->rel)].table != nullptr &&
                   !request_.for_view
               ? RowsOf(*select.rels[static_cast<size_t>(expr->rel)].table)
               : 1000.0;
  };
  auto equality = [&](const Expr* expr) {
    double distinct = DistinctValues(select, expr, table_rows(expr));
    return distinct > 0 ? 1 / distinct : kEqualityGuess;
  };
  switch (qual->kind) {
    case ExprKind::kAnd: {
      double product = 1;
      for (const Expr* arg : qual->args) product *= Selectivity(select, arg);
      return product;
    }
    case ExprKind::kOr: {
      double none = 1;
      for (const Expr* arg : qual->args) none *= 1 - Selectivity(select, arg);
      return 1 - none;
    }
    case ExprKind::kNot:
      return 1 - Selectivity(select, qual->args[0]);
    case ExprKind::kIsNull: {
      const ColumnInfo* column = InfoOf(select, qual->args[0]);
      return column == nullptr || request_.for_view ? 0.01
                                                    : std::max(0.0001, column->null_fraction);
    }
    case ExprKind::kIsNotNull:
      return 0.99;
    case ExprKind::kAnyOf: {
      size_t count = qual->args[1]->kind == ExprKind::kArray ? qual->args[1]->args.size()
                                                             : qual->args[1]->value.size() / 8;
      return std::min(1.0,
                      equality(qual->args[0]) * static_cast<double>(std::max<size_t>(1, count)));
    }
    case ExprKind::kCall: {
      const OperatorInfo* oper = FindOperator(qual->oper);
      if (oper == nullptr) return kOtherGuess;
      if (oper->name == "=") {
        const Expr* side = InfoOf(select, qual->args[0]) != nullptr ? qual->args[0] : qual->args[1];
        return equality(side);
      }
      if (oper->name == "<>") return 1 - equality(qual->args[0]);
      if (oper->name == "<" || oper->name == "<=" || oper->name == ">" || oper->name == ">=")
        return kRangeGuess;
      return kOtherGuess;
    }
    default:
      return kOtherGuess;
  }
}

// Applies conditions over the piece's own rels, above all that is in it.
void Planner::FilterPiece(const Select& select, Piece& piece,
                          const std::vector<const Expr*>& quals) {
  for (const Expr* qual : quals) piece.rows *= Selectivity(select, qual);
  piece.rows = std::max(1.0, piece.rows);
  if (!piece.remote) {
    piece.local = Filter(std::move(piece.local), quals);
    if (!quals.empty()) piece.local.plan->rows = piece.rows;
    return;
  }
  for (const Expr* qual : quals) {
    // Off only where there is another way: what can't be computed here goes to the shards anyway.
    bool push = piece.pushable && IsShippable(qual) &&
                (settings_.enable_pushdown_filter || !CanComputeHere(*qual));
    (push ? piece.quals : piece.local_quals).push_back(qual);
  }
}

Piece Planner::PlanTable(const Select& select, int rel, const std::vector<const Expr*>& quals) {
  const QueryRel& table = select.rels[static_cast<size_t>(rel)];
  if (request_.for_view || table.table->kind == RelationKind::kMaterializedView)
    return PlanStored(select, rel, quals);
  Piece piece;
  piece.rels = uint64_t{1} << rel;
  piece.remote = true;
  JoinTree* leaf_tree = scratch_.New<JoinTree>();
  leaf_tree->is_leaf = true;
  leaf_tree->rel = rel;
  piece.tree = leaf_tree;
  auto shard_of = [&](const Relation* leaf) {
    if (ServerOf(leaf->server).wrapper == "lines_fdw") piece.pushable = false;
    return Shard{leaf->server, {{rel, {leaf}}}};
  };
  for (const Relation* leaf : Prune(table, rel, {})) piece.unpruned.push_back(shard_of(leaf));
  piece.rows = 0;
  for (const Relation* leaf : Prune(table, rel, quals)) {
    piece.shards.push_back(shard_of(leaf));
    piece.rows += RowsOf(*leaf);
  }
  if (table.table->kind == RelationKind::kReplicated && !piece.shards.empty()) {
    piece.replicas = std::move(piece.shards);
    piece.shards = {piece.replicas[0]};
    piece.rows /= static_cast<double>(piece.replicas.size());
  }
  // Single-level partitioning: then a row's key says which shard it is on.
  if (table.table->kind == RelationKind::kPartitioned) piece.key_rels = {rel};
  FilterPiece(select, piece, quals);
  return piece;
}

// The index of which most columns are compared with values: equal, and then perhaps a range.
void Planner::ChooseIndex(const Relation& view, int rel, const std::vector<const Expr*>& quals,
                          ViewScanPlan* scan) {
  auto compared = [&](int column, bool equal) {
    for (const Expr* qual : quals) {
      const Expr *found, *value;
      ComparedAs as;
      if (IsColumnCompared(qual, &found, &value, &as) && found->rel == rel &&
          found->column == column && (as == ComparedAs::kEqual) == equal)
        return true;
    }
    return false;
  };
  size_t best = 0;
  for (const Index& index : view.indexes) {
    size_t matched = 0;
    while (matched < index.columns.size() && compared(index.columns[matched], true)) matched++;
    size_t worth = 2 * matched;
    if (matched < index.columns.size() && compared(index.columns[matched], false)) worth++;
    if (worth <= best) continue;
    best = worth;
    scan->index = index.oid;
    scan->index_name = arena_.CopyString(index.name);
  }
}

// A live view, or in a live view's own plan any table: its rows are in the view store.
Piece Planner::PlanStored(const Select& select, int index, const std::vector<const Expr*>& quals) {
  const QueryRel& rel = select.rels[static_cast<size_t>(index)];
  if (request_.for_view && !select.row_marks.empty())
    Refuse("{} in a materialized view is not supported", NameOf(select.row_marks[0].strength));
  Piece piece;
  piece.rels = uint64_t{1} << index;
  auto* node = NewNode<ViewScanPlan>(PlanKind::kViewScan);
  node->relation = rel.table->oid;
  // A live view's plan must not change with names.
  node->relation_name =
      arena_.CopyString(request_.for_view ? std::to_string(rel.table->oid) : rel.table->name);
  std::vector<std::string_view> columns;
  std::vector<const Expr*> provides;
  for (size_t i = 0; i < rel.columns.size(); i++) {
    const QueryColumn& column = rel.columns[i];
    columns.push_back(arena_.CopyString(rel.table->columns[i].name));
    provides.push_back(MakeColumn(index, static_cast<int>(i), column.type, column.typmod,
                                  column.collation, &scratch_));
  }
  node->columns = arena_.CopyArray(columns);
  node->rows = request_.for_view ? kRowsUnknown : RowsOf(*rel.table);
  SetOutput(node, provides);
  if (!request_.for_view) ChooseIndex(*rel.table, index, quals, node);
  piece.rows = node->rows;
  piece.local = {node, provides};
  FilterPiece(select, piece, quals);
  return piece;
}

// The rel's subquery with those of the conditions that hold for its rows before they are grouped:
// on what it groups by, all rows of a group say the same. The others stay in `quals`.
const Query* Planner::PushIntoSubquery(const Select& select, int index,
                                       std::vector<const Expr*>* quals) {
  const Query& query = *select.rels[static_cast<size_t>(index)].subquery;
  bool whole = query.set_op != nullptr || query.from == nullptr || query.limit != nullptr ||
               query.offset != nullptr || !query.windows.empty() || !query.distinct_on.empty() ||
               !query.grouping_sets.empty() || query.work_table >= 0 ||
               (query.has_aggregates && query.group_by.empty());
  if (whole || query.command != QueryCommand::kSelect) return &query;
  auto stays = [](const Expr* expr) {
    return HasVolatile(expr) || HasSubquery(expr) || RunsPerRow(expr);
  };
  auto is_known_before = [&](int column) {
    auto at = static_cast<size_t>(column);
    if (at >= query.targets.size() || query.targets[at].junk || stays(query.targets[at].expr))
      return false;
    return !query.has_aggregates ||
           std::find(query.group_by.begin(), query.group_by.end(), column) != query.group_by.end();
  };
  std::vector<const Expr*> pushed, rest;
  for (const Expr* qual : *quals) {
    bool has_column = false;
    bool other = AnyExpr(qual, [&](const Expr& e, int) {
      if (e.kind != ExprKind::kColumn) return false;
      has_column = true;
      return e.levels_up != 0 || e.rel != index || !is_known_before(e.column);
    });
    if (other || !has_column || stays(qual)) {
      rest.push_back(qual);
      continue;
    }
    pushed.push_back(RewriteExpr(qual, &scratch_, [&](const Expr& e, int) -> const Expr* {
      return e.kind == ExprKind::kColumn ? query.targets[static_cast<size_t>(e.column)].expr
                                         : nullptr;
    }));
  }
  if (pushed.empty()) return &query;
  *quals = rest;
  if (query.where != nullptr) pushed.insert(pushed.begin(), query.where);
  Query* narrowed = scratch_.New<Query>(query);
  narrowed->where = MakeAnd(pushed, &scratch_);
  return narrowed;
}

Piece Planner::PlanOtherRel(const Select& select, int index, const Query* subquery) {
  const QueryRel& rel = select.rels[static_cast<size_t>(index)];
  Piece piece;
  piece.rels = uint64_t{1} << index;
  std::vector<const Expr*> provides;
  for (size_t i = 0; i < rel.columns.size(); i++) {
    const QueryColumn& column = rel.columns[i];
    provides.push_back(MakeColumn(index, static_cast<int>(i), column.type, column.typmod,
                                  column.collation, &scratch_));
  }
  sluice::Plan* plan = nullptr;
  switch (rel.kind) {
    case RelKind::kSubquery: {
      Local child = PlanAny(*subquery, false);
      plan = child.plan;
      // The subquery's junk columns stay behind unnamed.
      for (size_t i = provides.size(); i < child.provides.size(); i++)
        provides.push_back(MakeColumn(index, static_cast<int>(i), child.provides[i]->type, -1,
                                      child.provides[i]->collation, &scratch_));
      break;
    }
    case RelKind::kValues: {
      auto* node = NewNode<ValuesScanPlan>(PlanKind::kValuesScan);
      auto rows = arena_.NewArray<std::span<const Expr* const>>(rel.values.size());
      for (size_t i = 0; i < rows.size(); i++)
        rows[i] = LowerAll({rel.values[i].begin(), rel.values[i].end()}, {});
      node->rows_of_expressions = rows;
      node->rows = static_cast<double>(rows.size());
      SetOutput(node, provides);
      plan = node;
      break;
    }
    case RelKind::kFunction: {
      auto* node = NewNode<FunctionScanPlan>(PlanKind::kFunctionScan);
      const ProcInfo* proc = FindProc(rel.function->function);
      if (rel.function->kind != ExprKind::kCall || proc == nullptr ||
          (proc->name != "generate_series" && proc->name != "unnest") || RelsOf(rel.function) != 0)
        Refuse("function {} in FROM is not supported", proc == nullptr ? "" : proc->name);
      // The set-returning call itself is the node's; its arguments are ordinary expressions.
      Expr* call = arena_.New<Expr>(*rel.function);
      call->args = LowerAll({rel.function->args.begin(), rel.function->args.end()}, {});
      node->call = call;
      node->ordinality = rel.ordinality;
      node->rows = 1000;
      SetOutput(node, provides);
      plan = node;
      break;
    }
    case RelKind::kVirtual: {
      auto* node = NewNode<VirtualScanPlan>(PlanKind::kVirtualScan);
      node->name = arena_.CopyString(rel.virtual_name);
      std::vector<int> columns;
      for (size_t i = 0; i < rel.columns.size(); i++) columns.push_back(static_cast<int>(i));
      node->columns = arena_.CopyArray(columns);
      node->rows = 20;
      SetOutput(node, provides);
      plan = node;
      break;
    }
    case RelKind::kCte: {
      if (rel.cte_levels_up != kWorkTableLevel) {
        plan = PlanCteScan(rel, provides).plan;
        break;
      }
      auto found = work_table_params_.find(rel.cte);
      if (found == work_table_params_.end()) Refuse("this WITH query is not supported");
      auto* node = NewNode<WorkTableScanPlan>(PlanKind::kWorkTableScan);
      node->work_table = found->second;
      node->rows = 100;
      SetOutput(node, provides);
      plan = node;
      break;
    }
    case RelKind::kTable:
    case RelKind::kExcluded:
      Refuse("this FROM item is not supported");
  }
  piece.rows = std::max(1.0, plan->rows);
  piece.local = {plan, provides};
  return piece;
}

}  // namespace sluice
