// A SELECT, clause by clause, in the order in which Postgres analyses them.
#include "parser/analyze.h"

#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {

const char* ClauseName(Clause clause) {
  switch (clause) {
    case Clause::kSelectTarget:
      return "SELECT";
    case Clause::kWhere:
      return "WHERE";
    case Clause::kHaving:
      return "HAVING";
    case Clause::kFilter:
      return "FILTER";
    case Clause::kGroupBy:
      return "GROUP BY";
    case Clause::kOrderBy:
      return "ORDER BY";
    case Clause::kDistinctOn:
      return "DISTINCT ON";
    case Clause::kLimit:
      return "LIMIT";
    case Clause::kOffset:
      return "OFFSET";
    case Clause::kJoinOn:
      return "JOIN/ON";
    case Clause::kJoinUsing:
      return "JOIN/USING";
    case Clause::kFromFunction:
      return "function in FROM";
    case Clause::kFromSubselect:
      return "sub-SELECT in FROM";
    case Clause::kValues:
      return "VALUES";
    case Clause::kStandalone:
      return "partition key expressions";
    case Clause::kWindowPartition:
      return "window PARTITION BY";
    case Clause::kWindowOrder:
      return "window ORDER BY";
    case Clause::kInsertTarget:
      return "INSERT";
    case Clause::kUpdateSource:
      return "UPDATE";
    case Clause::kReturning:
      return "RETURNING";
    case Clause::kCopyWhere:
      return "COPY FROM WHERE conditions";
    case Clause::kWindowFrame:
      return "window frame";
    case Clause::kNone:
      break;
  }
  return "this context";
}

int ErrorPosition(const ParseState& p, int location) {
  return location < 0 || p.a.inside_view ? 0 : CharacterPosition(p.a.text, location);
}

namespace {

Expr* TransformRowCount(ParseState& p, const RawNode* node, Clause clause) {
  ClauseScope scope(p, clause);
  const char* name = ClauseName(clause);
  Expr* expr = CoerceToSpecific(p, TransformExpr(p, node), kInt8Oid, name);
  if (ContainsColumn(*expr))
    ThrowAt(p, ExprLocation(*expr), sqlstate::kInvalidColumnReference,
            "argument of {} must not contain variables", name);
  return expr;
}

bool IsNullConst(const Expr* expr) {
  return expr != nullptr && expr->kind == ExprKind::kConst && expr->is_null;
}

Query* TransformPlainSelect(ParseState& p, const PgQuery__SelectStmt& statement) {
  Query* query = p.a.arena->New<Query>();
  for (size_t i = 0; i < statement.n_window_clause; i++)
    p.window_defs.push_back(statement.window_clause[i]->window_def);
  query->from = TransformFrom(p, statement);
  TransformTargetList(p, statement.target_list, statement.n_target_list);
  query->from = JoinSelectFunctions(p, query->from);
  query->where = TransformWhere(p, statement.where_clause, Clause::kWhere, "WHERE");
  query->having = TransformWhere(p, statement.having_clause, Clause::kHaving, "HAVING");
  std::vector<SortKey> order =
      TransformOrderBy(p, statement.sort_clause, statement.n_sort_clause, Clause::kOrderBy);
  TransformGroupBy(p, statement, query);
  TransformDistinct(p, statement, order, query);
  TransformLimit(p, statement, query);
  TransformWindows(p, query);
  if (p.resolve_unknowns) ResolveUnknownTargets(p);
  query->order_by = p.a.arena->CopyArray(order);
  FinishQuery(p, query);
  // They multiply the rows after grouping, which the FROM items that they became do not.
  bool grouped = p.has_aggregates || !query->group_by.empty() || query->having != nullptr ||
                 !query->windows.empty() || !query->distinct_on.empty();
  if (!p.select_functions.empty() && grouped)
    RefuseAt(p, -1, "a set-returning function in the select list of a grouped query");
  TransformLocking(p, statement, query);
  CheckAggregates(p, *query);
  return query;
}

void NameCteColumns(ParseState& p, const PgQuery__CommonTableExpr& raw, Query* query) {
  std::span<Target> targets = p.a.arena->CopyArray(query->targets);
  size_t named = 0, columns = 0;
  for (Target& target : targets) {
    if (target.junk) continue;
    columns++;
    if (named < raw.n_aliascolnames)
      target.name = p.a.arena->CopyString(RawString(raw.aliascolnames[named++]));
  }
  if (named < raw.n_aliascolnames)
    ThrowAt(p, p.Location(raw.location), sqlstate::kInvalidColumnReference,
            "WITH query \"{}\" has {} columns available but {} columns specified", raw.ctename,
            columns, raw.n_aliascolnames);
  query->targets = targets;
}

// A recursive query's columns are those of its first term: the whole may not decide otherwise.
void CheckRecursiveColumns(ParseState& p, const Recursion& recursion, const Query& query) {
  const PgQuery__CommonTableExpr& raw = *recursion.raw;
  const PgQuery__SelectStmt& statement = *raw.ctequery->select_stmt;
  auto not_implemented = [&](const RawNode* written, const char* what) {
    if (written != nullptr)
      ThrowAt(p, RawLocation(p, written), sqlstate::kFeatureNotSupported,
              "{} in a recursive query is not implemented", what);
  };
  not_implemented(statement.n_sort_clause > 0 ? statement.sort_clause[0]->sort_by->node : nullptr,
                  "ORDER BY");
  not_implemented(statement.limit_offset, "OFFSET");
  not_implemented(statement.limit_count, "LIMIT");
  size_t i = 0;
  for (const Target& target : query.targets) {
    if (target.junk) continue;
    int location = recursion.locations[i];
    const QueryColumn& first = recursion.columns[i++];
    if (first.type != target.expr->type || first.typmod != target.expr->typmod) {
      Error e = MakeError(sqlstate::kDatatypeMismatch,
                          "recursive query \"{}\" column {} has type {} in non-recursive term but "
                          "type {} overall",
                          raw.ctename, i, FormatType(first.type, first.typmod),
                          FormatType(target.expr->type, target.expr->typmod));
      e.Hint("Cast the output of the non-recursive term to the correct type.");
      throw QueryError(e.At(ErrorPosition(p, location)));
    }
    if (first.collation != target.expr->collation)
      ThrowAt(p, location, sqlstate::kCollationMismatch,
              "recursive query \"{}\" column {} has another collation in non-recursive term than "
              "overall",
              raw.ctename, i);
  }
}

void TransformCte(ParseState& p, const PgQuery__CommonTableExpr& raw, CteEntry entry,
                  bool recursive) {
  int location = p.Location(raw.location);
  if (raw.search_clause != nullptr || raw.cycle_clause != nullptr)
    RefuseAt(p, location, "SEARCH and CYCLE clauses");
  Recursion recursion{&p, entry.index, &raw};
  Query* query;
  if (IsModifyStatement(raw.ctequery)) {
    if (p.parent != nullptr)
      ThrowAt(p, location, sqlstate::kFeatureNotSupported,
              "WITH clause containing a data-modifying statement must be at the top level");
    ParseState child(p.a, &p);
    query = TransformModify(child, raw.ctequery);
  } else {
    if (recursive) {
      p.a.recursions.push_back(&recursion);
      p.a.pending_recursion = &recursion;
    }
    query = TransformSubselect(p, *raw.ctequery->select_stmt);
    if (recursive) p.a.recursions.pop_back();
    if (recursion.references > 0) CheckRecursiveColumns(p, recursion, *query);
  }
  if (raw.n_aliascolnames > 0) NameCteColumns(p, raw, query);
  Cte& cte = p.ctes[static_cast<size_t>(entry.index)];
  cte.query = query;
  cte.recursive = recursion.references > 0;
  cte.materialized = raw.ctematerialized == PG_QUERY__CTEMATERIALIZE__CTEMaterializeAlways;
  // NOT MATERIALIZED: never, however often it is referenced (told from the default by FinishQuery).
  if (raw.ctematerialized == PG_QUERY__CTEMATERIALIZE__CTEMaterializeNever)
    cte.never_materialized = true;
}

}  // namespace

void TransformLimit(ParseState& p, const PgQuery__SelectStmt& statement, Query* query) {
  if (statement.limit_offset != nullptr)
    query->offset = TransformRowCount(p, statement.limit_offset, Clause::kOffset);
  if (statement.limit_count != nullptr)
    query->limit = TransformRowCount(p, statement.limit_count, Clause::kLimit);
  query->with_ties = statement.limit_option == PG_QUERY__LIMIT_OPTION__LIMIT_OPTION_WITH_TIES;
  if (query->with_ties && IsNullConst(query->limit))
    ThrowAt(p, -1, sqlstate::kInvalidRowCountInLimitClause,
            "row count cannot be null in FETCH FIRST ... WITH TIES clause");
  // LIMIT ALL is no limit.
  if (IsNullConst(query->limit)) query->limit = nullptr;
  if (IsNullConst(query->offset)) query->offset = nullptr;
}

void TransformWith(ParseState& p, const PgQuery__WithClause& with) {
  for (size_t i = 0; i < with.n_ctes; i++) {
    const PgQuery__CommonTableExpr& raw = *with.ctes[i]->common_table_expr;
    for (size_t j = 0; j < i; j++)
      if (std::string_view(raw.ctename) == with.ctes[j]->common_table_expr->ctename)
        ThrowAt(p, p.Location(raw.location), sqlstate::kDuplicateAlias,
                "WITH query name \"{}\" specified more than once", raw.ctename);
    Cte cte{};
    cte.name = p.a.arena->CopyString(raw.ctename);
    p.ctes.push_back(cte);
    // With RECURSIVE every name is visible everywhere, so that a self-reference is seen as one.
    if (with.recursive) p.cte_names.push_back({cte.name, static_cast<int>(i), true});
  }
  // Without it, those that are not in cte_names yet are only known for a better error message.
  for (size_t i = 0; i < with.n_ctes; i++) {
    CteEntry entry{p.ctes[i].name, static_cast<int>(i), false};
    TransformCte(p, *with.ctes[i]->common_table_expr, entry, with.recursive);
    if (with.recursive)
      p.cte_names[i].in_progress = false;
    else
      p.cte_names.push_back(entry);
  }
}

Query* FinishQuery(ParseState& p, Query* query) {
  std::span<Target> targets = p.a.arena->NewArray<Target>(p.targets.size());
  for (size_t i = 0; i < targets.size(); i++)
    targets[i] = {p.targets[i].expr, p.targets[i].name, p.targets[i].junk};
  query->targets = targets;
  query->rels = p.a.arena->CopyArray(p.rels);
  for (Cte& cte : p.ctes)
    if (!cte.never_materialized)
      cte.materialized |= cte.references > 1 || ContainsVolatile(*cte.query);
  query->ctes = p.a.arena->CopyArray(p.ctes);
  query->has_sublinks = p.has_sublinks;
  AssignCollations(p, *query);
  return query;
}

Query* TransformSelect(ParseState& p, const PgQuery__SelectStmt& statement) {
  if (statement.with_clause != nullptr) TransformWith(p, *statement.with_clause);
  if (statement.into_clause != nullptr) RefuseAt(p, -1, "SELECT INTO");
  if (statement.n_values_lists > 0) {
    RefuseLocking(p, statement, "cannot be applied to VALUES");
    return TransformValues(p, statement);
  }
  if (statement.op != PG_QUERY__SET_OPERATION__SETOP_NONE &&
      statement.op != PG_QUERY__SET_OPERATION__SET_OPERATION_UNDEFINED)
    return TransformSetOperation(p, statement);
  return TransformPlainSelect(p, statement);
}

Query* TransformSubselect(ParseState& p, const PgQuery__SelectStmt& statement,
                          bool resolve_unknowns) {
  ParseState child(p.a, &p);
  child.resolve_unknowns = resolve_unknowns;
  child.recursion = std::exchange(p.a.pending_recursion, nullptr);
  return TransformSelect(child, statement);
}

namespace {

// A parameter whose type other occurrences decided, but not this one.
void CheckUnknownParams(const ParseState& p, const Expr& expr);

void CheckUnknownParams(const ParseState& p, const Query& query) {
  ForEachQueryExpr(query, [&](const Expr& e) { CheckUnknownParams(p, e); });
  ForEachSubquery(query, [&](const Query& q) { CheckUnknownParams(p, q); });
}

void CheckUnknownParams(const ParseState& p, const Expr& expr) {
  if (expr.kind == ExprKind::kParam && expr.type == kUnknownOid &&
      (*p.a.context.param_types)[static_cast<size_t>(expr.param)] != kInvalidOid)
    ThrowAt(p, expr.location, kAmbiguousParameter, "could not determine data type of parameter ${}",
            expr.param + 1);
  ForEachChild(expr, [&](const Expr& child) { CheckUnknownParams(p, child); });
  if (expr.subquery != nullptr) CheckUnknownParams(p, *expr.subquery);
}

void CheckParameters(const ParseState& p, const Query* query) {
  const std::vector<Oid>& types = *p.a.context.param_types;
  bool any_unknown = std::any_of(p.a.params.begin(), p.a.params.end(),
                                 [](const Expr* param) { return param->type == kUnknownOid; });
  if (any_unknown && query != nullptr) CheckUnknownParams(p, *query);
  for (size_t i = 0; i < types.size(); i++)
    if (types[i] == kInvalidOid || types[i] == kUnknownOid)
      Throw(sqlstate::kIndeterminateDatatype, "could not determine data type of parameter ${}",
            i + 1);
}

}  // namespace

const Query* AnalyzeSelect(const RawStatement& statement, const AnalyzeContext& context) {
  LoadBuiltinCatalog();
  bool modifies = IsModifyStatement(statement.node);
  if (!modifies && statement.node->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
    Refuse("analysis of a statement that is neither a query nor INSERT, UPDATE or DELETE");
  Analysis analysis(context);
  // Locations count from the start of the whole query string.
  analysis.text = {statement.text.data() - statement.location,
                   statement.text.size() + static_cast<size_t>(statement.location)};
  ParseState p(analysis, nullptr);
  Query* query = modifies ? TransformModify(p, statement.node)
                          : TransformSelect(p, *statement.node->select_stmt);
  CheckParameters(p, query);
  return query;
}

namespace {

// The relation's columns can be named.
void AddRelationNames(ParseState& p, const Relation& relation) {
  QueryRel rel{};
  rel.kind = RelKind::kTable;
  rel.table = &relation;
  rel.alias = relation.name;
  std::span<QueryColumn> columns = p.a.arena->NewArray<QueryColumn>(relation.columns.size());
  for (size_t i = 0; i < columns.size(); i++) {
    const ColumnInfo& column = relation.columns[i];
    columns[i] = {column.name, column.type, column.typmod, column.collation};
  }
  rel.columns = columns;
  p.names.push_back(MakeNsItem(p, AddRel(p, rel), nullptr));
}

}  // namespace

const Expr* AnalyzeCopyWhere(const PgQuery__Node* node, const Relation* relation,
                             std::string_view text, const AnalyzeContext& context) {
  LoadBuiltinCatalog();
  Analysis analysis(context);
  analysis.text = text;
  ParseState p(analysis, nullptr);
  AddRelationNames(p, *relation);
  Expr* condition = TransformWhere(p, node, Clause::kCopyWhere, "WHERE");
  if (p.has_sublinks) Refuse("cannot use subquery in COPY FROM WHERE condition");
  AssignExprCollations(p, condition);
  CheckParameters(p, nullptr);
  return condition;
}

const Expr* AnalyzeExpression(std::string_view sql, const Relation* relation,
                              const AnalyzeContext& context) {
  LoadBuiltinCatalog();
  std::string select = fmt::format("SELECT {}", sql);
  ParsedSql parsed = ParseSql(select);
  const PgQuery__SelectStmt* statement =
      parsed.statements().size() == 1 &&
              parsed.statements()[0].node->node_case == PG_QUERY__NODE__NODE_SELECT_STMT
          ? parsed.statements()[0].node->select_stmt
          : nullptr;
  if (statement == nullptr || statement->n_target_list != 1 || statement->n_from_clause > 0 ||
      statement->op != PG_QUERY__SET_OPERATION__SETOP_NONE || statement->where_clause != nullptr)
    Throw(sqlstate::kSyntaxError, "not an expression: {}", sql);
  Analysis analysis(context);
  analysis.text = parsed.text();
  analysis.inside_view = true;  // positions would be those of `select`
  ParseState p(analysis, nullptr);
  if (relation != nullptr) AddRelationNames(p, *relation);
  ClauseScope clause(p, Clause::kStandalone);
  Expr* expr = TransformExpr(p, statement->target_list[0]->res_target->val);
  if (expr->type == kUnknownOid)
    expr = CoerceType(p, expr, kTextOid, -1, CoercionContext::kImplicit, false, -1);
  AssignExprCollations(p, expr);
  CheckParameters(p, nullptr);
  return expr;
}

}  // namespace sluice
