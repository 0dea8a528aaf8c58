// UPDATE and DELETE, and what INSERT shares with them: targets, assignments, RETURNING.
#include "catalog/quote.h"
#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {
namespace {

// The target stands before the rels of FROM or USING, which do not see it.
const JoinTree* TransformTargetAndFrom(ParseState& p, int target, RawNode** list, size_t count) {
  const JoinTree* tree = LeafTree(p, target);
  if (count == 0) return tree;
  std::vector<NsItem> own = std::exchange(p.names, {});
  const JoinTree* others = TransformFromList(p, list, count);
  CheckNameConflicts(p, own, p.names);
  p.names.insert(p.names.begin(), own.begin(), own.end());
  JoinTree* join = p.a.arena->New<JoinTree>();
  join->is_leaf = false;
  join->rel = -1;
  join->left = tree;
  join->right = others;
  return join;
}

Query* TransformUpdate(ParseState& p, const PgQuery__UpdateStmt& statement) {
  if (statement.with_clause != nullptr) TransformWith(p, *statement.with_clause);
  Query* query = p.a.arena->New<Query>();
  Modification* modification = p.a.arena->New<Modification>();
  query->command = QueryCommand::kUpdate;
  query->modification = modification;
  modification->target = TransformTargetTable(p, *statement.relation);
  query->from = TransformTargetAndFrom(p, modification->target, statement.from_clause,
                                       statement.n_from_clause);
  query->where = TransformWhere(p, statement.where_clause, Clause::kWhere, "WHERE");
  TransformReturning(p, statement.returning_list, statement.n_returning_list);
  modification->assignments = p.a.arena->CopyArray(TransformAssignments(
      p, modification->target, statement.target_list, statement.n_target_list));
  return FinishQuery(p, query);
}

Query* TransformDelete(ParseState& p, const PgQuery__DeleteStmt& statement) {
  if (statement.with_clause != nullptr) TransformWith(p, *statement.with_clause);
  Query* query = p.a.arena->New<Query>();
  Modification* modification = p.a.arena->New<Modification>();
  query->command = QueryCommand::kDelete;
  query->modification = modification;
  modification->target = TransformTargetTable(p, *statement.relation);
  query->from = TransformTargetAndFrom(p, modification->target, statement.using_clause,
                                       statement.n_using_clause);
  query->where = TransformWhere(p, statement.where_clause, Clause::kWhere, "WHERE");
  TransformReturning(p, statement.returning_list, statement.n_returning_list);
  return FinishQuery(p, query);
}

// SET (a, b) = ROW (x, y): the part of the row that belongs to this item.
const RawNode* PartOfRow(ParseState& p, const PgQuery__MultiAssignRef& part, int location) {
  if (part.source->node_case != PG_QUERY__NODE__NODE_ROW_EXPR) {
    ThrowAt(p, location, sqlstate::kFeatureNotSupported,
            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression");
  }
  const PgQuery__RowExpr& row = *part.source->row_expr;
  if (row.n_args != static_cast<size_t>(part.ncolumns))
    ThrowAt(p, location, sqlstate::kSyntaxError,
            "number of columns does not match number of values");
  return row.args[part.colno - 1];
}

}  // namespace

std::string GeneratedDetail(const ColumnInfo& column) {
  return column.generated
             ? fmt::format("Column \"{}\" is a generated column.", column.name)
             : fmt::format("Column \"{}\" is an identity column defined as GENERATED ALWAYS.",
                           column.name);
}

bool IsModifyStatement(const RawNode* node) {
  if (node == nullptr) return false;
  return node->node_case == PG_QUERY__NODE__NODE_INSERT_STMT ||
         node->node_case == PG_QUERY__NODE__NODE_UPDATE_STMT ||
         node->node_case == PG_QUERY__NODE__NODE_DELETE_STMT;
}

Query* TransformModify(ParseState& p, const RawNode* node) {
  switch (node->node_case) {
    case PG_QUERY__NODE__NODE_INSERT_STMT:
      return TransformInsert(p, *node->insert_stmt);
    case PG_QUERY__NODE__NODE_UPDATE_STMT:
      return TransformUpdate(p, *node->update_stmt);
    default:
      return TransformDelete(p, *node->delete_stmt);
  }
}

bool IsSetToDefault(const RawNode* node) {
  return node->node_case == PG_QUERY__NODE__NODE_SET_TO_DEFAULT;
}

void TransformReturning(ParseState& p, RawNode** list, size_t count) {
  ClauseScope scope(p, Clause::kReturning);
  p.targets.clear();
  for (size_t i = 0; i < count; i++) {
    const PgQuery__ResTarget& raw = *list[i]->res_target;
    bool star = raw.val->node_case == PG_QUERY__NODE__NODE_COLUMN_REF &&
                raw.val->column_ref->fields[raw.val->column_ref->n_fields - 1]->node_case ==
                    PG_QUERY__NODE__NODE_A_STAR;
    if (star) {
      ExpandStar(p, *raw.val->column_ref);
      continue;
    }
    Expr* expr = TransformExpr(p, raw.val);
    std::string_view name =
        HasText(raw.name) ? p.a.arena->CopyString(raw.name) : FigureColumnName(p, raw.val);
    p.targets.push_back({expr, name, false});
  }
  ResolveUnknownTargets(p);
}

int FindTargetColumn(ParseState& p, const Relation& table, std::string_view name, int location) {
  int column = table.FindColumn(name);
  if (column >= 0) return column;
  if (SystemColumn(name) != nullptr)
    ThrowAt(p, location, sqlstate::kFeatureNotSupported, "cannot assign to system column \"{}\"",
            name);
  ThrowAt(p, location, sqlstate::kUndefinedColumn,
          "column \"{}\" of relation \"{}\" does not exist", name, table.name);
}

Expr* CoerceAssigned(ParseState& p, Expr* expr, const ColumnInfo& column) {
  int location = ExprLocation(*expr);
  Oid type = expr->type;
  Expr* result =
      CoerceToTarget(p, expr, column.type, column.typmod, CoercionContext::kAssignment, false, -1);
  if (result != nullptr) return result;
  throw QueryError(MakeError(sqlstate::kDatatypeMismatch,
                             "column \"{}\" is of type {} but expression is of type {}",
                             column.name, TypeText(column.type), TypeText(type))
                       .Hint("You will need to rewrite or cast the expression.")
                       .At(ErrorPosition(p, location)));
}

bool HasKnownDefault(const ColumnInfo& column) {
  return !column.generated && (!column.default_sql.empty() || column.sequence != kInvalidOid);
}

Expr* DefaultOf(ParseState& p, const ColumnInfo& column) {
  std::string sql = column.default_sql;
  if (column.sequence != kInvalidOid) {
    const Sequence& sequence = p.a.context.catalog->sequences.at(column.sequence);
    sql = fmt::format("nextval({}::regclass)",
                      QuoteLiteral(QuoteQualified(sequence.schema, sequence.name)));
  }
  if (sql.empty()) {
    Expr* null = MakeNull(p, column.type, -1);
    null->typmod = column.typmod;
    return null;
  }
  AnalyzeContext context = p.a.context;
  std::vector<Oid> no_params;
  context.param_types = &no_params;
  Expr* expr = const_cast<Expr*>(AnalyzeExpression(sql, nullptr, context));
  return CoerceAssigned(p, expr, column);
}

// Where only generated columns are set to their default: SQL has no empty SET list.
Assignment UnchangedColumn(ParseState& p, const Relation& table) {
  for (size_t i = 0; i < table.columns.size(); i++) {
    const ColumnInfo& column = table.columns[i];
    if (column.generated) continue;
    Expr* same = p.New(ExprKind::kColumn, column.type, -1);
    same->column = static_cast<int>(i);
    same->typmod = column.typmod;
    same->collation = column.collation;
    return {same->column, same};
  }
  Refuse("an UPDATE of a table that has only generated columns");
}

std::vector<Assignment> TransformAssignments(ParseState& p, int target, RawNode** list,
                                             size_t count) {
  ClauseScope scope(p, Clause::kUpdateSource);
  const Relation& table = *p.rels[static_cast<size_t>(target)].table;
  // Values first, then where they go: the order in which Postgres looks at them.
  std::vector<Expr*> values(count);
  for (size_t i = 0; i < count; i++) {
    const PgQuery__ResTarget& raw = *list[i]->res_target;
    const RawNode* value = raw.val;
    if (value->node_case == PG_QUERY__NODE__NODE_MULTI_ASSIGN_REF) {
      const PgQuery__MultiAssignRef& part = *value->multi_assign_ref;
      if (part.source->node_case == PG_QUERY__NODE__NODE_SUB_LINK) {
        values[i] = TransformRowPart(p, *part.source->sub_link, static_cast<size_t>(part.colno) - 1,
                                     static_cast<size_t>(part.ncolumns));
        continue;
      }
      value = PartOfRow(p, part, p.Location(raw.location));
    }
    values[i] = IsSetToDefault(value) ? nullptr : TransformExpr(p, value);
  }
  std::vector<Assignment> assignments;
  for (size_t i = 0; i < count; i++) {
    const PgQuery__ResTarget& raw = *list[i]->res_target;
    int location = p.Location(raw.location);
    int column = FindTargetColumn(p, table, raw.name, location);
    const ColumnInfo& info = table.columns[static_cast<size_t>(column)];
    if (raw.n_indirection > 0)
      RefuseAt(p, location, "assignment to a part of column \"{}\"", raw.name);
    if (values[i] != nullptr && (info.generated || info.identity == 'a'))
      throw QueryError(
          MakeError(kGeneratedAlways, "column \"{}\" can only be updated to DEFAULT", info.name)
              .Detail(GeneratedDetail(info)));
    if (values[i] == nullptr && info.generated) continue;  // the shard computes it anyway
    values[i] = values[i] != nullptr ? CoerceAssigned(p, values[i], info) : DefaultOf(p, info);
    assignments.push_back({column, values[i]});
  }
  for (size_t i = 0; i < assignments.size(); i++)
    for (size_t j = 0; j < i; j++)
      if (assignments[i].column == assignments[j].column)
        ThrowAt(p, -1, sqlstate::kSyntaxError, "multiple assignments to same column \"{}\"",
                table.columns[static_cast<size_t>(assignments[i].column)].name);
  if (assignments.empty()) assignments.push_back(UnchangedColumn(p, table));
  return assignments;
}

}  // namespace sluice
