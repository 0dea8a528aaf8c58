// Remote pieces → foreign scans, one a shard, and the Append or merge over them.
#include "catalog/quote.h"
#include "common/assert.h"
#include "common/error.h"
#include "optimizer/deparse.h"
#include "optimizer/evaluable.h"
#include "optimizer/planning.h"
#include "types/codec.h"

namespace sluice {

const std::vector<const Relation*>* Shard::LeavesOf(int rel) const {
  for (const auto& [of, tables] : leaves)
    if (of == rel) return &tables;
  return nullptr;
}

// "(public.orders_1 o) INNER JOIN (public.items_1 i)", as EXPLAIN shows what a scan reads.
std::string Planner::RelationNames(const Select& select, const JoinTree& tree,
                                   const Shard& shard) const {
  if (!tree.is_leaf) {
    static constexpr const char* kWords[] = {" INNER JOIN ", " LEFT JOIN ", " RIGHT JOIN ",
                                             " FULL JOIN ",  " SEMI JOIN ", " ANTI JOIN "};
    return "(" + RelationNames(select, *tree.left, shard) + ")" +
           kWords[static_cast<int>(tree.type)] + "(" + RelationNames(select, *tree.right, shard) +
           ")";
  }
  const QueryRel& rel = select.rels[static_cast<size_t>(tree.rel)];
  const auto& leaves = *shard.LeavesOf(tree.rel);
  std::string text;
  for (const Relation* leaf : leaves)
    text += (text.empty() ? "" : " + ") + QuoteQualified(leaf->schema, leaf->name);
  return rel.alias.empty() || rel.alias == leaves[0]->name ? text
                                                           : text + " " + std::string(rel.alias);
}

ForeignScanPlan* Planner::MakeScan(const Select& select, const RemoteSelect& remote,
                                   const Shard& shard, const std::string& extra_condition) {
  const Piece& piece = *remote.piece;
  auto find = [&](const QueryRel& rel) -> std::vector<const Relation*> {
    int index = static_cast<int>(&rel - select.rels.data());
    return *shard.LeavesOf(index);
  };
  Deparser deparser(catalog_, find);
  bool one_table = piece.tree->is_leaf && shard.LeavesOf(piece.tree->rel)->size() == 1;
  deparser.OpenScope(select.rels, !one_table, remote.windows);

  std::string sql = remote.distinct ? "SELECT DISTINCT " : "SELECT ";
  for (size_t i = 0; i < remote.targets.size(); i++)
    sql += (i == 0 ? "" : ", ") + deparser.Expression(*remote.targets[i]);
  std::vector<std::string> conditions;
  sql += " FROM " + deparser.From(*piece.tree, &conditions);
  for (const Expr* qual : piece.quals) conditions.push_back(deparser.Expression(*qual));
  if (!extra_condition.empty()) conditions.push_back(extra_condition);
  for (size_t i = 0; i < conditions.size(); i++)
    sql += (i == 0 ? " WHERE " : " AND ") + conditions[i];
  auto position = [&](const Expr& expr) {
    for (size_t i = 0; i < remote.targets.size(); i++)
      if (EqualExpr(remote.targets[i], &expr)) return fmt::format("{}", i + 1);
    return deparser.Unpositional(expr);
  };
  for (size_t i = 0; i < remote.group_by.size(); i++)
    sql += (i == 0 ? " GROUP BY " : ", ") + position(*remote.group_by[i]);
  for (size_t i = 0; i < remote.having.size(); i++)
    sql += (i == 0 ? " HAVING " : " AND ") + deparser.Expression(*remote.having[i]);
  for (size_t i = 0; i < remote.order_by.size(); i++)
    sql += (i == 0 ? " ORDER BY " : ", ") +
           deparser.SortItem(remote.order_by[i], fmt::format("{}", remote.order_by[i].target + 1));
  if (remote.limit) sql += fmt::format(" LIMIT {}", *remote.limit);
  bool locks = false;
  if (locked_.select == &select && (piece.rels >> locked_.rel & 1) != 0) {
    locks = true;
    sql += deparser.RowLock({locked_.rel, LockStrength::kForUpdate}, !one_table);
  }
  for (const RowMark& mark : select.row_marks) {
    if ((piece.rels >> mark.rel & 1) == 0) continue;
    if (shard.LeavesOf(mark.rel)->size() > 1)
      Refuse("{} of several tables of one server at once is not supported", NameOf(mark.strength));
    locks = true;
    sql += deparser.RowLock(mark, !one_table);
  }

  auto* scan = NewNode<ForeignScanPlan>(PlanKind::kForeignScan);
  const Server& server = ServerOf(shard.server);
  scan->server = shard.server;
  scan->server_name = arena_.CopyString(server.name);
  scan->relation_names = arena_.CopyString(RelationNames(select, *piece.tree, shard));
  scan->sql = arena_.CopyString(sql);
  scan->locks = locks;
  auto params = arena_.NewArray<const Expr*>(deparser.params().size());
  for (size_t i = 0; i < params.size(); i++)
    params[i] = DeepCopyExpr(deparser.params()[i], &arena_);
  scan->params = params;
  auto binary = arena_.NewArray<bool>(remote.targets.size());
  for (size_t i = 0; i < binary.size(); i++) binary[i] = HasBinaryCodec(remote.targets[i]->type);
  scan->binary = binary;
  SetOutput(scan, remote.targets);
  deparser.CloseScope();
  return scan;
}

// The lines wrapper sends whole rows: columns are picked here, and nothing else is asked for.
ForeignScanPlan* Planner::MakeLinesScan(const Select& select, const RemoteSelect& remote,
                                        const Relation& leaf) {
  auto* scan = NewNode<ForeignScanPlan>(PlanKind::kForeignScan);
  const Server& server = ServerOf(leaf.server);
  scan->server = leaf.oid;  // each table of this wrapper has a socket of its own
  scan->server_name = arena_.CopyString(server.name);
  scan->relation_names = arena_.CopyString(QuoteQualified(leaf.schema, leaf.name));
  scan->lines = true;
  std::vector<int> columns;
  for (const Expr* target : remote.targets) {
    if (target->kind == ExprKind::kConst) {  // a scan that needs no column: any will do
      columns.push_back(0);
      continue;
    }
    const QueryRel& rel = select.rels[static_cast<size_t>(target->rel)];
    columns.push_back(
        leaf.FindColumn(rel.table->columns[static_cast<size_t>(target->column)].name));
  }
  scan->line_columns = arena_.CopyArray(columns);
  std::vector<Oid> types;
  for (const ColumnInfo& column : leaf.columns) types.push_back(column.type);
  scan->line_types = arena_.CopyArray(types);
  scan->binary = arena_.NewArray<bool>(remote.targets.size());
  SetOutput(scan, remote.targets);
  return scan;
}

Local Planner::EmptyResult(const std::vector<const Expr*>& provides) {
  auto* node = NewNode<ResultPlan>(PlanKind::kResult);
  auto nulls = arena_.NewArray<const Expr*>(provides.size());
  for (size_t i = 0; i < nulls.size(); i++) nulls[i] = MakeNull(provides[i]->type, &arena_);
  node->expressions = nulls;
  node->one_time_filter = MakeBool(false, &arena_);
  SetOutput(node, provides);
  return {node, provides};
}

namespace {

constexpr double kPageBytes = 8192;

// Rows by block ranges, so that several connections share one table's scan. The last range is open:
// the estimate of the table's size decides only how even they are.
std::vector<std::string> BlockRanges(const Relation& leaf, int count) {
  if (count <= 1) return {""};
  double width = 24;
  for (const ColumnInfo& column : leaf.columns) width += column.average_width_bytes;
  auto pages = static_cast<int64_t>(leaf.row_estimate * width / kPageBytes);
  int64_t step = pages / count;
  if (step < 1) return {""};
  std::vector<std::string> ranges;
  for (int i = 0; i < count; i++) {
    std::string range;
    if (i > 0) range = fmt::format("ctid >= '({},0)'::tid", step * i);
    if (i + 1 < count)
      range += fmt::format("{}ctid < '({},0)'::tid", range.empty() ? "" : " AND ", step * (i + 1));
    ranges.push_back("(" + range + ")");
  }
  return ranges;
}

}  // namespace

// Several servers lock more rows than the statement gives where joins, conditions or LIMIT are
// applied here. A lock too many makes others wait; but who skips locked rows would miss some.
void Planner::CheckRowMarks(const Select& select, const Piece& piece) {
  for (const RowMark& mark : select.row_marks) {
    if ((piece.rels >> mark.rel & 1) == 0) continue;
    const Relation& table = *select.rels[static_cast<size_t>(mark.rel)].table;
    if (ServerOf(piece.shards.empty() ? table.server : piece.shards[0].server).wrapper ==
        "lines_fdw")
      Refuse("{} of table \"{}\" is not supported", NameOf(mark.strength), table.name);
    // Whoever locks its rows must do it on the same server.
    if (table.kind == RelationKind::kReplicated && (piece.rels & (piece.rels - 1)) != 0)
      Refuse("{} of the replicated table \"{}\" in a join is not supported", NameOf(mark.strength),
             table.name);
    if (mark.wait_policy != LockWaitPolicy::kSkipLocked || piece.shards.size() < 2) continue;
    uint64_t all = RelsOfNode(*select.from);
    if (select.limit != nullptr || select.offset != nullptr || piece.rels != all ||
        !piece.local_quals.empty())
      Refuse(
          "SKIP LOCKED over several servers with LIMIT, OFFSET, or joins and conditions that "
          "are computed here is not supported");
  }
}

Local Planner::MakeScans(const Select& select, const RemoteSelect& remote, bool ordered) {
  const Piece& piece = *remote.piece;
  CheckRowMarks(select, piece);
  RemoteSelect asked = remote;
  if (asked.targets.empty()) asked.targets.push_back(MakeInt4(1, &scratch_));
  std::vector<const sluice::Plan*> scans;
  double rows_each = std::max(1.0, piece.rows / std::max<size_t>(1, piece.shards.size()));
  if (remote.rows_each) rows_each = std::min(rows_each, *remote.rows_each);
  if (remote.limit) rows_each = std::min(rows_each, static_cast<double>(*remote.limit));
  for (const Shard& shard : piece.shards) {
    const auto& leaves = *shard.LeavesOf(shard.leaves[0].first);
    if (ServerOf(shard.server).wrapper == "lines_fdw") {
      scans.push_back(MakeLinesScan(select, asked, *leaves[0]));
    } else {
      bool divide =
          remote.divisible && piece.tree->is_leaf && leaves.size() == 1 && select.row_marks.empty();
      for (const std::string& range :
           BlockRanges(*leaves[0], divide ? settings_.connections_per_scan : 1))
        scans.push_back(MakeScan(select, asked, shard, range));
    }
    const_cast<sluice::Plan*>(scans.back())->rows = rows_each;
  }
  if (scans.empty()) return EmptyResult(asked.targets);
  if (scans.size() == 1) return {const_cast<sluice::Plan*>(scans[0]), asked.targets};
  sluice::Plan* node;
  if (ordered) {
    auto* merge = NewNode<MergeAppendPlan>(PlanKind::kMergeAppend);
    std::vector<SortKey> keys = remote.order_by;
    for (SortKey& key : keys) key.expr = nullptr;
    merge->keys = CopyKeys(keys);
    for (const sluice::Plan* scan : scans)
      static_cast<ForeignScanPlan*>(const_cast<sluice::Plan*>(scan))->ordered = true;
    node = merge;
  } else {
    auto* append = NewNode<AppendPlan>(PlanKind::kAppend);
    append->claim_whole = settings_.claim_whole;
    node = append;
  }
  for (const sluice::Plan* scan : scans) node->rows += scan->rows;
  SetChildren(node, scans);
  node->output = scans[0]->output;
  return {node, asked.targets};
}

// The piece as a plan whose columns are (at least) what `wanted` needs, its own local conditions
// applied.
Local Planner::ToLocal(const Select& select, const Piece& piece,
                       const std::vector<const Expr*>& wanted) {
  if (!piece.remote) return piece.local;
  RemoteSelect remote;
  remote.piece = &piece;
  remote.divisible = true;
  auto want = [&](const Expr* expr) {
    uint64_t rels = RelsOf(expr);
    bool here = rels != 0 && (rels & ~piece.rels) == 0 && !HasAggregate(expr) && !HasSubquery(expr);
    // Below a condition that is applied here, an expression would meet rows it must not see (1 / x
    // WHERE x <> 0): there only what cannot be computed here goes along.
    bool along = piece.local_quals.empty() || !CanComputeHere(*expr);
    if (here && piece.pushable && along && IsShippable(expr))
      return AddUnique(expr, &remote.targets);
    std::vector<const Expr*> columns;
    CollectColumns(expr, &columns);
    for (const Expr* column : columns)
      if (piece.rels >> column->rel & 1) AddUnique(column, &remote.targets);
  };
  for (const Expr* expr : wanted) want(expr);
  for (const Expr* qual : piece.local_quals) {
    std::vector<const Expr*> columns;
    CollectColumns(qual, &columns);
    for (const Expr* column : columns) AddUnique(column, &remote.targets);
  }
  return Filter(MakeScans(select, remote, false), piece.local_quals);
}

}  // namespace sluice
