// INSERT: its columns, its source as a query of their types, ON CONFLICT.
#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {
namespace {

// An INSERT in work.
struct Insertion {
  ParseState& p;
  const PgQuery__InsertStmt& statement;
  const Relation& table;
  std::vector<int> columns;    // as written, or all
  std::vector<int> locations;  // of their names; -1
  const ColumnInfo& Column(size_t i) const {
    return table.columns[static_cast<size_t>(columns[i])];
  }
};

void CheckColumns(Insertion& insertion) {
  ParseState& p = insertion.p;
  const PgQuery__InsertStmt& statement = insertion.statement;
  if (statement.n_cols == 0) {
    for (size_t i = 0; i < insertion.table.columns.size(); i++) {
      insertion.columns.push_back(static_cast<int>(i));
      insertion.locations.push_back(-1);
    }
    return;
  }
  for (size_t i = 0; i < statement.n_cols; i++) {
    const PgQuery__ResTarget& raw = *statement.cols[i]->res_target;
    int location = p.Location(raw.location);
    int column = FindTargetColumn(p, insertion.table, raw.name, location);
    if (raw.n_indirection > 0)
      RefuseAt(p, location, "INSERT into a part of column \"{}\"", raw.name);
    for (int before : insertion.columns)
      if (before == column)
        ThrowAt(p, location, sqlstate::kDuplicateColumn, "column \"{}\" specified more than once",
                raw.name);
    insertion.columns.push_back(column);
    insertion.locations.push_back(location);
  }
}

// As many columns as values; without a list of columns fewer values will do.
void CheckCount(Insertion& insertion, size_t values, int extra_location) {
  ParseState& p = insertion.p;
  if (values > insertion.columns.size())
    ThrowAt(p, extra_location, sqlstate::kSyntaxError,
            "INSERT has more expressions than target columns");
  if (insertion.statement.n_cols > 0 && values < insertion.columns.size())
    ThrowAt(p, insertion.locations[values], sqlstate::kSyntaxError,
            "INSERT has more target columns than expressions");
  insertion.columns.resize(values);
  insertion.locations.resize(values);
}

using Row = std::vector<Expr*>;  // null: DEFAULT

std::vector<Row> TransformRows(ParseState& source, const PgQuery__SelectStmt& select) {
  ClauseScope scope(source, Clause::kValues);
  std::vector<Row> rows;
  for (size_t i = 0; i < select.n_values_lists; i++) {
    const PgQuery__List& list = *select.values_lists[i]->list;
    Row row;
    for (size_t j = 0; j < list.n_items; j++)
      row.push_back(IsSetToDefault(list.items[j]) ? nullptr : TransformExpr(source, list.items[j]));
    if (!rows.empty() && row.size() != rows[0].size())
      ThrowAt(source, row.empty() || row[0] == nullptr ? -1 : ExprLocation(*row[0]),
              sqlstate::kSyntaxError, "VALUES lists must all be the same length");
    rows.push_back(std::move(row));
  }
  return rows;
}

// DEFAULT in every row is the same as a column that is not named.
void DropDefaults(Insertion& insertion, std::vector<Row>* rows) {
  for (size_t c = insertion.columns.size(); c-- > 0;) {
    bool all = true;
    for (const Row& row : *rows) all = all && row[c] == nullptr;
    if (!all) continue;
    insertion.columns.erase(insertion.columns.begin() + static_cast<ptrdiff_t>(c));
    for (Row& row : *rows) row.erase(row.begin() + static_cast<ptrdiff_t>(c));
  }
}

QueryColumn ColumnLike(const ColumnInfo& column) {
  return {column.name, column.type, column.typmod, column.collation};
}

void AddValuesRel(ParseState& source, Insertion& insertion, const std::vector<Row>& rows,
                  Query* query) {
  QueryRel rel{};
  rel.kind = RelKind::kValues;
  rel.alias = "*VALUES*";
  auto values = source.a.arena->NewArray<std::span<const Expr* const>>(rows.size());
  for (size_t r = 0; r < rows.size(); r++)
    values[r] = source.a.arena->CopyArray(std::vector<const Expr*>(rows[r].begin(), rows[r].end()));
  rel.values = values;
  std::vector<QueryColumn> columns;
  for (size_t c = 0; c < insertion.columns.size(); c++)
    columns.push_back(ColumnLike(insertion.Column(c)));
  rel.columns = source.a.arena->CopyArray(columns);
  int index = AddRel(source, rel);
  query->from = LeafTree(source, index);
  NsItem item = MakeNsItem(source, index, nullptr);
  for (const NsColumn& column : *item.columns)
    source.targets.push_back({MakeColumnExpr(source, column, 0, -1), column.name, false});
}

void CheckMayInsert(const Insertion& insertion, const ColumnInfo& column) {
  bool overriding =
      insertion.statement.override == PG_QUERY__OVERRIDING_KIND__OVERRIDING_SYSTEM_VALUE;
  if (!column.generated && (column.identity != 'a' || overriding)) return;
  Error error = MakeError(kGeneratedAlways, "cannot insert a non-DEFAULT value into column \"{}\"",
                          column.name)
                    .Detail(GeneratedDetail(column));
  if (!column.generated) error.Hint("Use OVERRIDING SYSTEM VALUE to override.");
  throw QueryError(error);
}

Query* ValuesSource(ParseState& source, Insertion& insertion, const PgQuery__SelectStmt& select) {
  std::vector<Row> rows = TransformRows(source, select);
  const Row& first = rows[0];
  int extra = -1;
  if (first.size() > insertion.columns.size() && first[insertion.columns.size()] != nullptr)
    extra = ExprLocation(*first[insertion.columns.size()]);
  CheckCount(insertion, first.size(), extra);
  DropDefaults(insertion, &rows);
  for (const Row& row : rows)
    for (size_t c = 0; c < row.size(); c++)
      if (row[c] != nullptr) CheckMayInsert(insertion, insertion.Column(c));
  for (Row& row : rows) {
    for (size_t c = 0; c < row.size(); c++) {
      const ColumnInfo& column = insertion.Column(c);
      if (row[c] == nullptr && !HasKnownDefault(column) && !insertion.table.is_distributed())
        Refuse("DEFAULT for column \"{}\" in some rows only, where the shard knows its default",
               column.name);
      row[c] =
          row[c] == nullptr ? DefaultOf(source, column) : CoerceAssigned(source, row[c], column);
    }
  }
  Query* query = source.a.arena->New<Query>();
  if (rows.size() == 1) {
    for (size_t c = 0; c < insertion.columns.size(); c++)
      source.targets.push_back({rows[0][c], insertion.Column(c).name, false});
  } else {
    AddValuesRel(source, insertion, rows, query);
  }
  return query;
}

Query* SelectSource(ParseState& source, Insertion& insertion, const PgQuery__SelectStmt& select) {
  Query* inner = TransformSubselect(source, select, false);
  // Literals take the columns' types where they are written.
  std::vector<Expr*> literals;
  std::vector<QueryColumn> columns;
  int extra = -1;
  std::span<Target> targets = source.a.arena->CopyArray(inner->targets);
  for (Target& target : targets) {
    if (target.junk) continue;
    if (literals.size() == insertion.columns.size()) extra = ExprLocation(*target.expr);
    bool literal = target.expr->type == kUnknownOid &&
                   (target.expr->kind == ExprKind::kConst || target.expr->kind == ExprKind::kParam);
    literals.push_back(literal ? const_cast<Expr*>(target.expr) : nullptr);
    if (literal) target.expr = MakeNull(source, kTextOid, -1);
    columns.push_back(
        {target.name, target.expr->type, target.expr->typmod, target.expr->collation});
  }
  CheckCount(insertion, literals.size(), extra);
  inner->targets = targets;
  QueryRel rel{};
  rel.kind = RelKind::kSubquery;
  rel.alias = "*SELECT*";
  rel.subquery = inner;
  rel.columns = source.a.arena->CopyArray(columns);
  int index = AddRel(source, rel);
  NsItem item = MakeNsItem(source, index, nullptr);
  size_t at = 0;
  for (const Target& target : targets) {
    if (target.junk) continue;
    Expr* value = literals[at] != nullptr
                      ? literals[at]
                      : MakeColumnExpr(source, (*item.columns)[at], 0, ExprLocation(*target.expr));
    const ColumnInfo& column = insertion.Column(at++);
    CheckMayInsert(insertion, column);
    source.targets.push_back({CoerceAssigned(source, value, column), column.name, false});
  }
  Query* query = source.a.arena->New<Query>();
  query->from = LeafTree(source, index);
  return query;
}

bool IsPlainValues(const PgQuery__SelectStmt& select) {
  return select.n_values_lists > 0 && select.n_sort_clause == 0 && select.limit_count == nullptr &&
         select.limit_offset == nullptr && select.n_locking_clause == 0 &&
         select.with_clause == nullptr;
}

// Values of the columns that were not named, where they are known here.
void AddDefaults(ParseState& source, Insertion& insertion) {
  for (size_t i = 0; i < insertion.table.columns.size(); i++) {
    const ColumnInfo& column = insertion.table.columns[i];
    auto named = std::find(insertion.columns.begin(), insertion.columns.end(), static_cast<int>(i));
    if (named != insertion.columns.end() || !HasKnownDefault(column)) continue;
    insertion.columns.push_back(static_cast<int>(i));
    source.targets.push_back({DefaultOf(source, column), column.name, false});
  }
}

void TransformArbiter(ParseState& p, const PgQuery__InferClause& infer, const Relation& table,
                      OnConflict* conflict) {
  if (HasText(infer.conname)) {
    conflict->constraint = p.a.arena->CopyString(infer.conname);
    return;
  }
  std::vector<const Expr*> arbiter;
  for (size_t i = 0; i < infer.n_index_elems; i++) {
    const PgQuery__IndexElem& element = *infer.index_elems[i]->index_elem;
    if (element.n_collation > 0 || element.n_opclass > 0)
      RefuseAt(p, p.Location(infer.location), "COLLATE or an operator class in ON CONFLICT");
    if (element.expr != nullptr) {
      arbiter.push_back(TransformExpr(p, element.expr));
      continue;
    }
    Expr* column = FindColumnByName(p, element.name, true, p.Location(infer.location));
    if (column == nullptr)
      ThrowAt(p, p.Location(infer.location), sqlstate::kUndefinedColumn,
              "column \"{}\" does not exist", element.name);
    arbiter.push_back(column);
  }
  (void)table;
  conflict->arbiter = p.a.arena->CopyArray(arbiter);
  conflict->arbiter_where = TransformWhere(p, infer.where_clause, Clause::kWhere, "WHERE");
}

const OnConflict* TransformOnConflict(ParseState& p, int target, const Relation& table,
                                      const PgQuery__OnConflictClause& raw) {
  OnConflict* conflict = p.a.arena->New<OnConflict>();
  conflict->do_update = raw.action == PG_QUERY__ON_CONFLICT_ACTION__ONCONFLICT_UPDATE;
  if (conflict->do_update && raw.infer == nullptr)
    throw QueryError(
        MakeError(sqlstate::kSyntaxError,
                  "ON CONFLICT DO UPDATE requires inference specification or constraint name")
            .Hint("For example, ON CONFLICT (column_name).")
            .At(ErrorPosition(p, p.Location(raw.location))));
  if (raw.infer != nullptr) TransformArbiter(p, *raw.infer, table, conflict);
  if (!conflict->do_update) return conflict;
  QueryRel excluded = p.rels[static_cast<size_t>(target)];
  excluded.kind = RelKind::kExcluded;
  excluded.alias = "excluded";
  conflict->excluded = AddRel(p, excluded);
  p.names.push_back(MakeNsItem(p, conflict->excluded, nullptr));
  conflict->assignments =
      p.a.arena->CopyArray(TransformAssignments(p, target, raw.target_list, raw.n_target_list));
  conflict->where = TransformWhere(p, raw.where_clause, Clause::kWhere, "WHERE");
  p.names.pop_back();
  return conflict;
}

}  // namespace

Query* TransformInsert(ParseState& p, const PgQuery__InsertStmt& statement) {
  if (statement.with_clause != nullptr) TransformWith(p, *statement.with_clause);
  Query* query = p.a.arena->New<Query>();
  Modification* modification = p.a.arena->New<Modification>();
  query->command = QueryCommand::kInsert;
  query->modification = modification;
  modification->target = TransformTargetTable(p, *statement.relation);
  const Relation& table = *p.rels[static_cast<size_t>(modification->target)].table;
  if (statement.override == PG_QUERY__OVERRIDING_KIND__OVERRIDING_USER_VALUE)
    Refuse("OVERRIDING USER VALUE");
  Insertion insertion{p, statement, table, {}, {}};
  CheckColumns(insertion);

  std::vector<NsItem> names = std::exchange(p.names, {});  // the source does not see the target
  ParseState source(p.a, &p);
  Query* rows;
  if (statement.select_stmt == nullptr) {
    insertion.columns.clear();
    rows = p.a.arena->New<Query>();
  } else if (IsPlainValues(*statement.select_stmt->select_stmt)) {
    rows = ValuesSource(source, insertion, *statement.select_stmt->select_stmt);
  } else {
    rows = SelectSource(source, insertion, *statement.select_stmt->select_stmt);
  }
  AddDefaults(source, insertion);
  modification->source = FinishQuery(source, rows);
  modification->columns = p.a.arena->CopyArray(insertion.columns);
  p.names = std::move(names);

  if (statement.on_conflict_clause != nullptr)
    modification->on_conflict =
        TransformOnConflict(p, modification->target, table, *statement.on_conflict_clause);
  TransformReturning(p, statement.returning_list, statement.n_returning_list);
  return FinishQuery(p, query);
}

}  // namespace sluice
