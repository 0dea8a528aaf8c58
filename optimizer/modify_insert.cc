// INSERT: the source's rows, and the statements that carry them to their places.
#include "catalog/quote.h"
#include "optimizer/deparse.h"
#include "optimizer/evaluable.h"
#include "optimizer/planning.h"
#include "types/codec.h"

namespace sluice {
namespace {

// A key that nobody gives a value is NULL here and on the shard: a default that only the shard
// knows could belong elsewhere.
const Query* WithKeyColumns(const Query& source, const Relation& table,
                            const std::vector<const Expr*>& keys, std::vector<int>* columns,
                            Arena* arena) {
  std::vector<const Expr*> needed;
  for (const Expr* key : keys) CollectColumns(key, &needed);
  std::vector<Target> targets(source.targets.begin(), source.targets.end());
  for (const Expr* column : needed) {
    if (std::find(columns->begin(), columns->end(), column->column) != columns->end()) continue;
    columns->push_back(column->column);
    const ColumnInfo& info = table.columns[static_cast<size_t>(column->column)];
    targets.push_back({MakeNull(info.type, arena), info.name, false});
  }
  if (targets.size() == source.targets.size()) return &source;
  Query* copy = arena->New<Query>(source);
  copy->targets = arena->CopyArray(targets);
  return copy;
}

// A row that takes the whole key of the row that was not inserted belongs where that was sent.
bool MayLeave(const OnConflict& conflict, const std::vector<const Expr*>& keys) {
  std::vector<const Expr*> columns;
  for (const Expr* key : keys) CollectColumns(key, &columns);
  for (const Expr* column : columns) {
    bool taken = std::ranges::any_of(conflict.assignments, [&](const Assignment& assignment) {
      const Expr& value = *assignment.value;
      return assignment.column == column->column && value.kind == ExprKind::kColumn &&
             value.rel == conflict.excluded && value.column == column->column;
    });
    if (!taken) return true;
  }
  return false;
}

}  // namespace

void Planner::RequireInsertable(const Relation& table) {
  if (table.kind == RelationKind::kInheritsParent && !table.is_distributed())
    throw QueryError(
        MakeError(sqlstate::kObjectNotInPrerequisiteState, "cannot insert into table \"{}\"",
                  table.name)
            .Detail("It is the parent of foreign tables, and no rule says which of them a row "
                    "belongs to.")
            .Hint("Insert into one of its children."));
}

// Subqueries of ON CONFLICT and RETURNING read all servers, so they run beforehand, as the
// statement's snapshot would have it anyway.
const Expr* Planner::RunSubqueriesBefore(const Expr* expr, const char* clause) {
  if (expr == nullptr) return nullptr;
  return RewriteExpr(expr, &scratch_, [&](const Expr& e, int) -> const Expr* {
    if (e.kind != ExprKind::kSubquery) return nullptr;
    bool once = e.sublink == SublinkKind::kScalar || e.sublink == SublinkKind::kExists ||
                e.sublink == SublinkKind::kArray;
    if (!once || IsCorrelated(*e.subquery) || DependsOnRow(*e.subquery))
      Refuse("a subquery that is run for each row in {} of an INSERT over several servers", clause);
    return AddInitPlan(e);
  });
}

const OnConflict* Planner::RunSubqueriesBefore(const OnConflict* conflict) {
  if (conflict == nullptr) return nullptr;
  OnConflict* copy = scratch_.New<OnConflict>(*conflict);
  std::vector<Assignment> assignments(conflict->assignments.begin(), conflict->assignments.end());
  for (Assignment& assignment : assignments)
    assignment.value = RunSubqueriesBefore(assignment.value, "ON CONFLICT DO UPDATE");
  copy->assignments = scratch_.CopyArray(assignments);
  copy->where = RunSubqueriesBefore(conflict->where, "ON CONFLICT DO UPDATE");
  return copy;
}

Local Planner::PlanInsert(const Query& query) {
  Modification modification = *query.modification;
  modification.on_conflict = RunSubqueriesBefore(modification.on_conflict);
  int target = modification.target;
  const Relation& table = *query.rels[static_cast<size_t>(target)].table;
  RequireInsertable(table);
  std::vector<int> columns(modification.columns.begin(), modification.columns.end());
  std::vector<const Expr*> keys = RoutingKeys(table, target);
  const Query* source = WithKeyColumns(*modification.source, table, keys, &columns, &scratch_);
  Local rows = PlanAny(*source, false);

  ModifyPlan* modify = NewModify(query, ModifyMethod::kInsert);
  modify->single_row = source->from == nullptr;
  Local row{rows.plan, {}};
  std::vector<int> row_columns;
  std::vector<std::string_view> row_types;
  bool all_binary = true;
  for (size_t i = 0; i < columns.size(); i++) {
    const ColumnInfo& info = table.columns[static_cast<size_t>(columns[i])];
    row.provides.push_back(
        MakeColumn(target, columns[i], info.type, info.typmod, info.collation, &scratch_));
    row_columns.push_back(static_cast<int>(i));
    row_types.push_back(TypeNameOf(*row.provides.back()));
    all_binary = all_binary && HasBinaryCodec(info.type);
  }
  modify->replicated = table.kind == RelationKind::kReplicated;
  modify->even = table.kind == RelationKind::kInheritsParent;
  modify->keys = LowerAll(keys, row);
  modify->row_columns = arena_.CopyArray(row_columns);
  modify->row_types = arena_.CopyArray(row_types);
  modify->may_copy =
      modification.on_conflict == nullptr && query.targets.empty() && !columns.empty();
  modify->copy_binary = all_binary;

  // What RETURNING computes is computed by the shard, or here from the columns that it names.
  std::vector<const Expr*> asked, returned;
  for (const Target& t : query.targets) asked.push_back(RunSubqueriesBefore(t.expr, "RETURNING"));
  bool ship = true;
  for (const Expr* expr : asked) ship = ship && CanShipChange(expr);
  if (ship)
    returned = asked;
  else
    for (const Expr* expr : asked) CollectColumns(expr, &returned);
  if (returned.empty() && !asked.empty()) returned.push_back(row.provides[0]);
  std::vector<Target> returning;
  for (const Expr* expr : returned) returning.push_back({expr, "", false});

  std::vector<ModifyTarget> targets;
  for (const Relation* leaf : catalog_.Leaves(table)) {
    Deparser deparser(catalog_,
                      [&](const QueryRel&) -> std::vector<const Relation*> { return {leaf}; });
    deparser.OpenScope(query.rels, true);
    ModifyTarget place{};
    place.leaf = leaf->oid;
    place.server = leaf->server;
    place.server_name = arena_.CopyString(ServerOf(leaf->server).name);
    std::string head = deparser.InsertHead(target, columns);
    place.insert_head =
        arena_.CopyString(head + (columns.empty() ? " DEFAULT VALUES" : " VALUES "));
    place.insert_tail = arena_.CopyString(deparser.InsertTail(modification, returning));
    auto params = arena_.NewArray<const Expr*>(deparser.params().size());
    for (size_t i = 0; i < params.size(); i++)
      params[i] = DeepCopyExpr(deparser.params()[i], &arena_);
    place.params = params;
    std::string names;
    for (int column : columns) {
      int at = leaf->FindColumn(table.columns[static_cast<size_t>(column)].name);
      names += (names.empty() ? "" : ", ") +
               QuoteIdentifier(leaf->columns[static_cast<size_t>(at)].remote_name());
    }
    place.copy_sql = arena_.CopyString(fmt::format(
        "COPY {} ({}) FROM STDIN{}", QuoteQualified(leaf->remote_schema(), leaf->remote_table()),
        names, all_binary ? " (FORMAT binary)" : ""));
    targets.push_back(place);
  }
  modify->targets = arena_.CopyArray(targets);
  if (modification.on_conflict != nullptr && MayLeave(*modification.on_conflict, keys) &&
      ChangesKey(table, modification.on_conflict->assignments))
    throw QueryError(MakeError(sqlstate::kFeatureNotSupported, "invalid ON UPDATE specification")
                         .Detail("The result tuple would appear in a different partition than the "
                                 "original tuple."));
  SetChildren(modify, {rows.plan});
  modify->rows = returned.empty() ? 0 : rows.plan->rows;
  naming_ = nullptr;
  SetShardOutput(modify, returned);
  Local result{modify, returned};
  return ship ? result : Project(std::move(result), asked);
}

}  // namespace sluice
