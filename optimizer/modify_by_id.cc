// UPDATE and DELETE whose rows the shards cannot find alone, or whose rows change their place: the
// statement's join runs here, over scans that lock the target's rows, and gives for each row where
// it lies and its new values.
#include "catalog/quote.h"
#include "optimizer/deparse.h"
#include "optimizer/evaluable.h"
#include "optimizer/planning.h"
#include "types/codec.h"

namespace sluice {
namespace {

constexpr Oid kTidOid = 27;

// Columns that a table's scan gives beyond the table's own.
enum IdColumn { kLeafId, kCtid, kTableOid, kIdColumns };

void AddIdColumns(QueryRel* rel, Arena* arena) {
  std::vector<QueryColumn> columns(rel->columns.begin(), rel->columns.end());
  columns.push_back({"leaf", kOidOid, -1, kInvalidOid});
  columns.push_back({"ctid", kTidOid, -1, kInvalidOid});
  columns.push_back({"tableoid", kOidOid, -1, kInvalidOid});
  rel->columns = arena->CopyArray(columns);
}

// The statements' texts for one leaf.
class ByIdText {
 public:
  ByIdText(const Catalog& catalog, const Relation& table, const Relation& leaf)
      : deparser_(catalog, {}), table_(table), leaf_(leaf) {}

  std::string Table() const { return QuoteQualified(leaf_.remote_schema(), leaf_.remote_table()); }
  std::string Column(int column) const {
    const ColumnInfo& info = table_.columns[static_cast<size_t>(column)];
    int at = leaf_.FindColumn(info.name);
    return QuoteIdentifier(at < 0 ? info.name
                                  : leaf_.columns[static_cast<size_t>(at)].remote_name());
  }
  std::string Columns(const std::vector<const Expr*>& columns, const char* prefix) const {
    std::string text;
    for (const Expr* column : columns)
      text += (text.empty() ? "" : ", ") + std::string(prefix) + Column(column->column);
    return text;
  }
  std::string UpdateHead(std::span<const Assignment> assignments) const {
    std::string text = "UPDATE " + Table() + " t SET ";
    for (size_t i = 0; i < assignments.size(); i++)
      text += fmt::format("{}{} = v.c{}", i == 0 ? "" : ", ", Column(assignments[i].column), i + 1);
    return text + " FROM (VALUES ";
  }
  std::string DeleteHead() const { return "DELETE FROM " + Table() + " t USING (VALUES "; }
  std::string Tail(size_t values, const std::vector<const Expr*>& returned, bool returning) const {
    std::string text = ") v(n, ctid, tableoid";
    for (size_t i = 0; i < values; i++) text += fmt::format(", c{}", i + 1);
    text += ") WHERE t.ctid = v.ctid AND t.tableoid = v.tableoid";
    if (!returning) return text;
    return text + " RETURNING v.n" + (returned.empty() ? "" : ", ") + Columns(returned, "t.");
  }

 private:
  Deparser deparser_;
  const Relation& table_;
  const Relation& leaf_;
};

}  // namespace

Local Planner::PlanChangeById(const Query& query, Select& select) {
  const Modification& modification = *query.modification;
  int target = modification.target;
  QueryRel& rel = select.rels[static_cast<size_t>(target)];
  const Relation& table = *rel.table;
  int own_columns = static_cast<int>(table.columns.size());
  AddIdColumns(&rel, &scratch_);
  auto column_of = [&](int rel_index, int column) {
    const QueryColumn& info = rel.columns[static_cast<size_t>(column)];
    return MakeColumn(rel_index, column, info.type, info.typmod, info.collation, &scratch_);
  };
  if (table.kind == RelationKind::kReplicated)
    Refuse("{} of replicated table \"{}\" joined with tables that are not",
           query.command == QueryCommand::kUpdate ? "UPDATE" : "DELETE", table.name);
  size_t count = modification.assignments.size();
  ModifyPlan* modify = NewModify(query, ModifyMethod::kById);
  modify->moves = ChangesKey(table, modification.assignments);

  // The child's columns.
  std::vector<const Expr*> wanted;
  for (int i = 0; i < kIdColumns; i++) wanted.push_back(column_of(target, own_columns + i));
  std::vector<int> value_columns, row_columns;
  for (size_t i = 0; i < count; i++) {
    value_columns.push_back(static_cast<int>(wanted.size()));
    wanted.push_back(select.targets[i].expr);
  }
  auto place = [&](const Expr* expr) {
    for (size_t i = kIdColumns; i < wanted.size(); i++)
      if (EqualExpr(wanted[i], expr)) return static_cast<int>(i);
    wanted.push_back(expr);
    return static_cast<int>(wanted.size()) - 1;
  };
  for (int c = 0; modify->moves && c < own_columns; c++) {
    if (table.columns[static_cast<size_t>(c)].generated) {
      row_columns.push_back(-1);
      continue;
    }
    int at = -1;
    for (size_t i = 0; i < count; i++)
      if (modification.assignments[i].column == c) at = value_columns[i];
    row_columns.push_back(at >= 0 ? at : place(column_of(target, c)));
  }
  // RETURNING: the target's columns as the shard gives them back (rel -3), the others from the
  // child.
  constexpr int kWritten = -3;
  std::vector<const Expr*> returned, returning;
  for (size_t i = count; i < select.targets.size(); i++) {
    returning.push_back(RewriteExpr(
        select.targets[i].expr, &scratch_, [&](const Expr& e, int depth) -> const Expr* {
          if (e.kind != ExprKind::kColumn || depth > 0 || e.levels_up > 0) return nullptr;
          if (e.rel != target) {
            place(&e);
            return nullptr;
          }
          const Expr* written = column_of(kWritten, e.column);
          AddUnique(written, &returned);
          return written;
        }));
  }

  // An INSERT that moves a row gives something back, so that it is known which row it was.
  if (modify->moves && !returning.empty() && returned.empty())
    returned.push_back(column_of(kWritten, 0));

  // All that stands in `wanted` by now may be computed anywhere below.
  locked_ = {&select, target};
  std::vector<const Expr*> required;
  for (const Expr* expr : wanted) CollectColumns(expr, &required);
  Piece piece = PlanFrom(select, required);
  Local rows = Project(ToLocal(select, piece, wanted), wanted);
  locked_ = {};

  std::vector<std::string_view> value_types, row_types;
  for (int c : value_columns) value_types.push_back(TypeNameOf(*wanted[static_cast<size_t>(c)]));
  modify->value_columns = arena_.CopyArray(value_columns);
  modify->value_types = arena_.CopyArray(value_types);
  std::vector<int> insert_columns, sent_columns;
  if (modify->moves) {
    for (int c = 0; c < own_columns; c++) {
      int at = row_columns[static_cast<size_t>(c)];
      if (at < 0) continue;
      sent_columns.push_back(at);
      row_types.push_back(TypeNameOf(*wanted[static_cast<size_t>(at)]));
      insert_columns.push_back(c);
    }
    std::vector<const Expr*> keys = RoutingKeys(table, target);
    for (const Expr*& key : keys)
      key = RewriteExpr(key, &scratch_, [&](const Expr& e, int) -> const Expr* {
        if (e.kind != ExprKind::kColumn) return nullptr;
        return wanted[static_cast<size_t>(row_columns[static_cast<size_t>(e.column)])];
      });
    modify->keys = LowerAll(keys, rows);
    modify->row_columns = arena_.CopyArray(sent_columns);
    modify->row_types = arena_.CopyArray(row_types);
  }

  std::vector<ModifyTarget> targets;
  for (const Relation* leaf : catalog_.Leaves(table)) {
    ByIdText text(catalog_, table, *leaf);
    ModifyTarget place_of{};
    place_of.leaf = leaf->oid;
    place_of.server = leaf->server;
    place_of.server_name = arena_.CopyString(ServerOf(leaf->server).name);
    bool is_update = query.command == QueryCommand::kUpdate;
    place_of.change_head = arena_.CopyString(is_update ? text.UpdateHead(modification.assignments)
                                                       : text.DeleteHead());
    place_of.change_tail = arena_.CopyString(text.Tail(count, returned, !returning.empty()));
    if (modify->moves) {
      place_of.delete_head = arena_.CopyString(text.DeleteHead());
      place_of.delete_tail = arena_.CopyString(text.Tail(0, {}, true));
      std::string names;
      for (int c : insert_columns) names += (names.empty() ? "" : ", ") + text.Column(c);
      place_of.insert_head =
          arena_.CopyString("INSERT INTO " + text.Table() + " (" + names + ") VALUES ");
      if (!returning.empty())
        place_of.insert_tail = arena_.CopyString(
            " RETURNING " + (returned.empty() ? "1" : text.Columns(returned, "")));
    }
    targets.push_back(place_of);
  }
  modify->targets = arena_.CopyArray(targets);

  auto shard_output = arena_.NewArray<OutputColumn>(returned.size());
  auto binary = arena_.NewArray<bool>(returned.size());
  for (size_t i = 0; i < returned.size(); i++) {
    const Expr& e = *returned[i];
    shard_output[i] = {rel.columns[static_cast<size_t>(e.column)].name, e.type, e.typmod,
                       e.collation};
    shard_output[i].name = arena_.CopyString(shard_output[i].name);
    binary[i] = HasBinaryCodec(e.type);
  }
  modify->shard_output = shard_output;
  modify->binary = binary;
  Local written{nullptr, returned};
  auto lowered = arena_.NewArray<const Expr*>(returning.size());
  for (size_t i = 0; i < lowered.size(); i++) lowered[i] = Lower(returning[i], rows, &written);
  modify->returning = lowered;
  SetChildren(modify, {rows.plan});
  std::vector<const Expr*> provides;
  for (size_t i = count; i < select.targets.size(); i++) provides.push_back(select.targets[i].expr);
  SetOutput(modify, provides);
  modify->rows = provides.empty() ? 0 : rows.plan->rows;
  return {modify, provides};
}

}  // namespace sluice
