#include "optimizer/copy_from.h"

#include "catalog/quote.h"
#include "optimizer/planning.h"

namespace sluice {
namespace {

std::string RemoteName(const Relation& table, const Relation& leaf, int column) {
  const std::string& name = table.columns[static_cast<size_t>(column)].name;
  int at = leaf.FindColumn(name);
  return at < 0 ? name : leaf.columns[static_cast<size_t>(at)].remote_name();
}

}  // namespace

const CopyFromPlan* Planner::PlanCopy(const CopyFromRequest& copy) {
  const Modification& modification = *copy.insert->modification;
  int target = modification.target;
  const Relation& table = *copy.insert->rels[static_cast<size_t>(target)].table;
  RequireInsertable(table);
  auto column_of = [&](int column) {
    const ColumnInfo& info = table.columns[static_cast<size_t>(column)];
    return MakeColumn(target, column, info.type, info.typmod, info.collation, &scratch_);
  };
  CopyFromPlan* plan = arena_.New<CopyFromPlan>();
  plan->relation = table.oid;
  plan->table_name = arena_.CopyString(table.name);

  std::vector<const Expr*> keys = RoutingKeys(table, target), needed;
  for (const Expr* key : keys) CollectColumns(key, &needed);
  if (copy.where != nullptr) CollectColumns(copy.where, &needed);
  auto is_needed = [&](int column) {
    return std::any_of(needed.begin(), needed.end(),
                       [&](const Expr* e) { return e->column == column; });
  };
  Local row;
  std::vector<int> fields, sent(modification.columns.begin(), modification.columns.end());
  std::vector<std::string_view> names;
  for (size_t i = 0; i < copy.fields; i++) {
    names.push_back(arena_.CopyString(table.columns[static_cast<size_t>(sent[i])].name));
    if (!is_needed(sent[i])) continue;
    fields.push_back(static_cast<int>(i));
    row.provides.push_back(column_of(sent[i]));
  }
  auto inputs = arena_.NewArray<OutputColumn>(fields.size());
  for (size_t i = 0; i < inputs.size(); i++)
    inputs[i] = {names[static_cast<size_t>(fields[i])], row.provides[i]->type,
                 row.provides[i]->typmod, row.provides[i]->collation};
  std::vector<const Expr*> defaults;
  const Query* source = FoldConstantsInQuery(*modification.source, Evaluation(false));
  for (size_t i = copy.fields; i < sent.size(); i++) {
    defaults.push_back(source->targets[i].expr);
    row.provides.push_back(column_of(sent[i]));
  }
  // A key that nobody gives a value is NULL here and on the shard.
  for (const Expr* column : needed) {
    if (std::find(sent.begin(), sent.end(), column->column) != sent.end()) continue;
    sent.push_back(column->column);
    defaults.push_back(MakeNull(column->type, &scratch_));
    row.provides.push_back(column_of(column->column));
  }
  plan->replicated = table.kind == RelationKind::kReplicated;
  plan->even = table.kind == RelationKind::kInheritsParent;
  plan->fields = arena_.CopyArray(fields);
  plan->inputs = inputs;
  plan->field_names = arena_.CopyArray(names);
  plan->defaults = LowerAll(defaults, {});
  plan->keys = LowerAll(keys, row);
  if (copy.where != nullptr) plan->where = Lower(FoldConstants(copy.where, Evaluation(false)), row);

  std::vector<CopyFromTarget> targets;
  for (const Relation* leaf : catalog_.Leaves(table)) {
    std::vector<std::string> remote;
    for (int column : sent) remote.push_back(QuoteIdentifier(RemoteName(table, *leaf, column)));
    std::string list;
    for (const std::string& name : remote) list += (list.empty() ? "" : ", ") + name;
    std::string sql = fmt::format("COPY {} ({}) FROM STDIN ({})",
                                  QuoteQualified(leaf->remote_schema(), leaf->remote_table()), list,
                                  copy.options(std::span(remote).first(copy.fields)));
    targets.push_back({leaf->server, arena_.CopyString(sql)});
  }
  plan->targets = arena_.CopyArray(targets);
  return plan;
}

const CopyFromPlan* PlanCopyFrom(const CopyFromRequest& copy, const PlanRequest& request) {
  return Planner(request).PlanCopy(copy);
}

}  // namespace sluice
