// FROM: tables, views, subqueries, functions, WITH queries, and the name space they make.
#include "catalog/virtual_tables.h"
#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {
namespace {

constexpr int kViewDepthMax = 64;

std::span<const QueryColumn> ColumnsOfTargets(ParseState& p, const Query& query) {
  std::vector<QueryColumn> columns;
  for (const Target& target : query.targets)
    if (!target.junk)
      columns.push_back(
          {target.name, target.expr->type, target.expr->typmod, target.expr->collation});
  return p.a.arena->CopyArray(columns);
}

std::span<const QueryColumn> ColumnsOfTable(ParseState& p, const Relation& table) {
  std::span<QueryColumn> columns = p.a.arena->NewArray<QueryColumn>(table.columns.size());
  for (size_t i = 0; i < columns.size(); i++) {
    const ColumnInfo& column = table.columns[i];
    columns[i] = {column.name, column.type, column.typmod, column.collation};
  }
  return columns;
}

// The view's own query, in a level of its own: it sees nothing of the query around it.
}  // namespace

const Query* ExpandView(Analysis& a, ParseState* parent, std::string_view name,
                        std::string_view sql) {
  if (a.view_depth >= kViewDepthMax)
    Throw(sqlstate::kInvalidObjectDefinition,
          "infinite recursion detected in rules for relation \"{}\"", name);
  ParsedSql parsed = ParseSql(sql);
  if (parsed.statements().size() != 1 ||
      parsed.statements()[0].node->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
    Throw(sqlstate::kInvalidObjectDefinition, "view \"{}\" is not a SELECT", name);
  bool saved_inside = std::exchange(a.inside_view, true);
  a.view_depth++;
  struct Restore {
    Analysis& a;
    bool inside;
    ~Restore() {
      a.inside_view = inside;
      a.view_depth--;
    }
  } restore{a, saved_inside};
  ParseState state(a, parent);
  const Query* query = TransformSelect(state, *parsed.statements()[0].node->select_stmt);
  // The raw tree dies here; its scalar sublinks' addresses may be used again.
  a.scalar_sublinks.clear();
  return query;
}

namespace {

const CteEntry* FindCte(ParseState& p, std::string_view name, ParseState** owner, int* levels_up) {
  *levels_up = 0;
  for (ParseState* state = &p; state != nullptr; state = state->parent, ++*levels_up) {
    for (const CteEntry& cte : state->cte_names) {
      if (cte.name != name) continue;
      *owner = state;
      return &cte;
    }
  }
  return nullptr;
}

// A reference to a WITH RECURSIVE query inside itself: as many columns as its first term has.
void MakeRecursiveRel(ParseState& p, const PgQuery__RangeVar& var, const CteEntry& entry,
                      const ParseState* owner, QueryRel* rel) {
  int location = p.Location(var.location);
  Recursion* recursion = nullptr;
  for (Recursion* other : p.a.recursions)
    if (other->owner == owner && other->index == entry.index) recursion = other;
  // Mutual recursion, or a reference to a query that is yet to come.
  if (recursion == nullptr)
    RefuseAt(p, location, "this reference to WITH query \"{}\"", entry.name);
  if (recursion->part == Recursion::Part::kNoUnion)
    ThrowAt(p, p.Location(recursion->raw->location), sqlstate::kInvalidRecursion,
            "recursive query \"{}\" does not have the form non-recursive-term UNION [ALL] "
            "recursive-term",
            entry.name);
  const char* where =
      recursion->part == Recursion::Part::kFirst ? "its non-recursive term" : recursion->forbidden;
  if (where != nullptr)
    ThrowAt(p, location, sqlstate::kInvalidRecursion,
            "recursive reference to query \"{}\" must not appear within {}", entry.name, where);
  if (recursion->references++ > 0)
    ThrowAt(p, location, sqlstate::kInvalidRecursion,
            "recursive reference to query \"{}\" must not appear more than once", entry.name);
  p.refers_to_itself = true;
  rel->columns = p.a.arena->CopyArray(recursion->columns);
}

bool MakeCteRel(ParseState& p, const PgQuery__RangeVar& var, QueryRel* rel) {
  if (HasText(var.schemaname)) return false;
  ParseState* owner;
  int levels_up;
  const CteEntry* entry = FindCte(p, var.relname, &owner, &levels_up);
  if (entry == nullptr) return false;
  rel->kind = RelKind::kCte;
  rel->cte = entry->index;
  rel->cte_levels_up = levels_up;
  if (entry->in_progress) {
    MakeRecursiveRel(p, var, *entry, owner, rel);
    return true;
  }
  Cte& cte = owner->ctes[static_cast<size_t>(entry->index)];
  if (cte.query->command != QueryCommand::kSelect && cte.query->targets.empty())
    ThrowAt(p, p.Location(var.location), sqlstate::kFeatureNotSupported,
            "WITH query \"{}\" does not have a RETURNING clause", entry->name);
  cte.references++;
  rel->columns = ColumnsOfTargets(p, *cte.query);
  return true;
}

// Columns named by WITH x(a, b) or CREATE VIEW v(a, b) take precedence over the query's.
std::span<const QueryColumn> Rename(ParseState& p, std::span<const QueryColumn> columns,
                                    const Relation& view) {
  std::span<QueryColumn> renamed = p.a.arena->NewArray<QueryColumn>(columns.size());
  for (size_t i = 0; i < columns.size(); i++) {
    renamed[i] = columns[i];
    if (i < view.columns.size()) renamed[i].name = view.columns[i].name;
  }
  return renamed;
}

const Relation* LookUpTable(ParseState& p, const PgQuery__RangeVar& var) {
  const AnalyzeContext& context = p.a.context;
  int location = p.Location(var.location);
  if (HasText(var.catalogname) && context.database != var.catalogname)
    ThrowAt(p, location, sqlstate::kFeatureNotSupported,
            "cross-database references are not implemented: \"{}.{}.{}\"", var.catalogname,
            var.schemaname, var.relname);
  return HasText(var.schemaname)
             ? context.catalog->FindRelation(std::string_view(var.schemaname), var.relname)
             : context.catalog->FindRelation(context.search_path, var.relname);
}

bool IsFutureCte(const ParseState& p, std::string_view name) {
  for (const ParseState* state = &p; state != nullptr; state = state->parent)
    for (size_t i = state->cte_names.size(); i < state->ctes.size(); i++)
      if (state->ctes[i].name == name) return true;
  return false;
}

[[noreturn]] void ThrowNoSuchTable(ParseState& p, const PgQuery__RangeVar& var) {
  int location = p.Location(var.location);
  std::string_view schema = HasText(var.schemaname) ? var.schemaname : "";
  std::string_view name = var.relname;
  bool system = schema == "pg_catalog" || schema == "information_schema" ||
                (schema.empty() && name.starts_with("pg_"));
  if (system) RefuseAt(p, location, "system catalog \"{}\"", name);
  if (schema.empty()) {
    Error e = MakeError(sqlstate::kUndefinedTable, "relation \"{}\" does not exist", name);
    if (IsFutureCte(p, name)) {
      e.Detail(
          fmt::format("There is a WITH item named \"{}\", but it cannot be referenced from this "
                      "part of the query.",
                      name));
      e.Hint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references.");
    }
    throw QueryError(e.At(ErrorPosition(p, location)));
  }
  ThrowAt(p, location, sqlstate::kUndefinedTable, "relation \"{}.{}\" does not exist", schema,
          name);
}

void MakeVirtualRel(ParseState& p, std::string_view name, std::span<const VirtualColumn> from,
                    QueryRel* rel) {
  rel->kind = RelKind::kVirtual;
  rel->virtual_name = name;
  std::span<QueryColumn> columns = p.a.arena->NewArray<QueryColumn>(from.size());
  for (size_t i = 0; i < columns.size(); i++)
    columns[i] = {from[i].name, from[i].type, -1, TypeCollation(from[i].type)};
  rel->columns = columns;
}

void MakeTableRel(ParseState& p, const PgQuery__RangeVar& var, QueryRel* rel) {
  std::string_view schema = HasText(var.schemaname) ? var.schemaname : "";
  // pg_catalog comes first in every search path.
  if (const VirtualTable* table = FindVirtualTable(schema, var.relname)) {
    if (!table->sql.empty()) {
      rel->kind = RelKind::kSubquery;
      rel->subquery = ExpandView(p.a, nullptr, table->name, table->sql);
      rel->columns = ColumnsOfTargets(p, *rel->subquery);
      return;
    }
    MakeVirtualRel(p, table->name, table->columns, rel);
    return;
  }
  const Relation* table = LookUpTable(p, var);
  if (table == nullptr) ThrowNoSuchTable(p, var);
  if (table->kind == RelationKind::kView) {
    rel->kind = RelKind::kSubquery;
    rel->subquery = ExpandView(p.a, nullptr, table->name, table->view_sql);
    rel->view = table;
    rel->columns = Rename(p, ColumnsOfTargets(p, *rel->subquery), *table);
    return;
  }
  rel->kind = RelKind::kTable;
  rel->table = table;
  rel->only = !var.inh;
  rel->columns = ColumnsOfTable(p, *table);
}

const JoinTree* Leaf(ParseState& p, int rel, bool lateral) {
  JoinTree* leaf = p.a.arena->New<JoinTree>();
  leaf->is_leaf = true;
  leaf->rel = rel;
  leaf->lateral = lateral;
  return leaf;
}

const JoinTree* TransformRangeVar(ParseState& p, const PgQuery__RangeVar& var,
                                  std::vector<NsItem>* names) {
  QueryRel rel{};
  std::string_view name = var.alias != nullptr ? var.alias->aliasname : var.relname;
  rel.alias = p.a.arena->CopyString(name);
  bool is_cte = MakeCteRel(p, var, &rel);
  if (!is_cte) MakeTableRel(p, var, &rel);
  int index = AddRel(p, rel);
  names->push_back(MakeNsItem(p, index, var.alias));
  if (!is_cte && rel.table == nullptr) {
    std::string_view schema = HasText(var.schemaname) ? var.schemaname : "";
    const VirtualTable* table = FindVirtualTable(schema, var.relname);
    if (table != nullptr) names->back().system_schema = table->schema;
  }
  return Leaf(p, index, false);
}

const JoinTree* TransformRangeSubselect(ParseState& p, const PgQuery__RangeSubselect& range,
                                        std::vector<NsItem>* names) {
  if (range.subquery->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
    RefuseAt(p, -1, "this kind of subquery in FROM");
  QueryRel rel{};
  rel.kind = RelKind::kSubquery;
  rel.alias = range.alias != nullptr ? p.a.arena->CopyString(range.alias->aliasname)
                                     : std::string_view("unnamed_subquery");
  {
    ClauseScope clause(p, Clause::kFromSubselect);
    bool saved = std::exchange(p.lateral_active, range.lateral);
    rel.subquery = TransformSubselect(p, *range.subquery->select_stmt);
    p.lateral_active = saved;
  }
  rel.lateral = range.lateral && ContainsColumn(*rel.subquery, 1);
  rel.columns = ColumnsOfTargets(p, *rel.subquery);
  int index = AddRel(p, rel);
  names->push_back(MakeNsItem(p, index, range.alias));
  return Leaf(p, index, rel.lateral);
}

bool IsKnownSetFunction(const Expr& call) {
  const ProcInfo* proc = FindProc(call.function);
  return call.kind == ExprKind::kCall && proc != nullptr && proc->returns_set &&
         (proc->name == "generate_series" || proc->name == "unnest") && proc->args.size() >= 1;
}

// A function that stands for a query, as a subquery; nullptr: it is not one.
const JoinTree* TransformRangeQueryFunction(ParseState& p, const PgQuery__RangeFunction& range,
                                            const PgQuery__FuncCall& call,
                                            std::vector<NsItem>* names) {
  QueryRel rel{};
  rel.kind = RelKind::kSubquery;
  std::string_view name = RawString(call.funcname[call.n_funcname - 1]);
  rel.alias = p.a.arena->CopyString(range.alias != nullptr ? range.alias->aliasname : name);
  {
    ClauseScope clause(p, Clause::kFromSubselect);
    bool saved = std::exchange(p.lateral_active, true);
    rel.subquery = TransformQueryFunction(p, call, range.ordinality);
    p.lateral_active = saved;
  }
  if (rel.subquery == nullptr) return nullptr;
  rel.lateral = ContainsColumn(*rel.subquery, 1);
  rel.columns = ColumnsOfTargets(p, *rel.subquery);
  int index = AddRel(p, rel);
  names->push_back(MakeNsItem(p, index, range.alias));
  return Leaf(p, index, rel.lateral);
}

// sluice.verify('view'): rows that the server makes itself, of what its argument names.
const JoinTree* TransformVerify(ParseState& p, const PgQuery__RangeFunction& range,
                                const PgQuery__FuncCall& call, std::vector<NsItem>* names) {
  bool constant = call.n_args == 1 && call.args[0]->node_case == PG_QUERY__NODE__NODE_A_CONST &&
                  call.args[0]->a_const->val_case == PG_QUERY__A__CONST__VAL_SVAL;
  if (!constant)
    RefuseAt(p, p.Location(call.location),
             "sluice.verify of anything but one view's name in quotes");
  QueryRel rel{};
  MakeVirtualRel(p,
                 p.a.arena->CopyString(fmt::format("verify {}", call.args[0]->a_const->sval->sval)),
                 VerifyColumns(), &rel);
  rel.alias = p.a.arena->CopyString(range.alias != nullptr ? range.alias->aliasname : "verify");
  int index = AddRel(p, rel);
  names->push_back(MakeNsItem(p, index, range.alias));
  return Leaf(p, index, false);
}

const JoinTree* TransformRangeFunction(ParseState& p, const PgQuery__RangeFunction& range,
                                       std::vector<NsItem>* names) {
  if (range.is_rowsfrom || range.n_functions != 1) RefuseAt(p, -1, "ROWS FROM");
  if (range.n_coldeflist > 0) RefuseAt(p, -1, "a column definition list in FROM");
  const RawNode* item = range.functions[0];
  if (item->node_case != PG_QUERY__NODE__NODE_LIST || item->list->n_items == 0)
    RefuseAt(p, -1, "this kind of function in FROM");
  const RawNode* raw = item->list->items[0];
  if (raw->node_case != PG_QUERY__NODE__NODE_FUNC_CALL)
    RefuseAt(p, -1, "this kind of function in FROM");

  if (raw->func_call->n_funcname == 2 && RawString(raw->func_call->funcname[0]) == "sluice" &&
      RawString(raw->func_call->funcname[1]) == "verify")
    return TransformVerify(p, range, *raw->func_call, names);
  if (raw->func_call->n_args > 1 &&
      RawString(raw->func_call->funcname[raw->func_call->n_funcname - 1]) == "unnest")
    RefuseAt(p, p.Location(raw->func_call->location), "unnest of several arrays");
  std::string_view function_name =
      RawString(raw->func_call->funcname[raw->func_call->n_funcname - 1]);
  if (const JoinTree* tree = TransformRangeQueryFunction(p, range, *raw->func_call, names))
    return tree;
  QueryRel rel{};
  rel.kind = RelKind::kFunction;
  rel.ordinality = range.ordinality;
  Expr* call;
  {
    ClauseScope clause(p, Clause::kFromFunction);
    // Functions may always refer to what stands before them.
    bool saved = std::exchange(p.lateral_active, true);
    p.set_function = raw->func_call;
    call = TransformExpr(p, raw);
    p.set_function = nullptr;
    p.lateral_active = saved;
  }
  call = NormalizeSetFunction(p, call);
  if (!IsKnownSetFunction(*call))
    RefuseAt(p, p.Location(raw->func_call->location), "function \"{}\" in FROM", function_name);
  rel.function = call;
  rel.lateral = ContainsColumn(*call);
  rel.alias =
      p.a.arena->CopyString(range.alias != nullptr ? range.alias->aliasname : function_name);
  std::vector<QueryColumn> columns{
      {rel.alias, call->type, call->typmod, TypeCollation(call->type)}};
  if (range.ordinality) columns.push_back({"ordinality", kInt8Oid, -1, kInvalidOid});
  rel.columns = p.a.arena->CopyArray(columns);
  int index = AddRel(p, rel);
  names->push_back(MakeNsItem(p, index, range.alias));
  return Leaf(p, index, rel.lateral);
}

}  // namespace

const JoinTree* LeafTree(ParseState& p, int rel) {
  return Leaf(p, rel, false);
}

int TransformTargetTable(ParseState& p, const PgQuery__RangeVar& var) {
  int location = p.Location(var.location);
  QueryRel rel{};
  rel.alias = p.a.arena->CopyString(var.alias != nullptr ? var.alias->aliasname : var.relname);
  MakeTableRel(p, var, &rel);
  if (rel.kind == RelKind::kVirtual)
    ThrowAt(p, -1, sqlstate::kInsufficientPrivilege,
            "permission denied: \"{}\" is a system catalog", var.relname);
  if (rel.kind == RelKind::kSubquery) RefuseAt(p, location, "writing to view \"{}\"", var.relname);
  if (rel.table != nullptr && rel.table->kind == RelationKind::kMaterializedView)
    ThrowAt(p, -1, sqlstate::kWrongObjectType, "cannot change materialized view \"{}\"",
            var.relname);
  int index = AddRel(p, rel);
  p.names.push_back(MakeNsItem(p, index, var.alias));
  return index;
}

int AddRel(ParseState& p, QueryRel rel) {
  p.rels.push_back(rel);
  return static_cast<int>(p.rels.size()) - 1;
}

NsItem MakeNsItem(ParseState& p, int index, const PgQuery__Alias* alias) {
  QueryRel& rel = p.rels[static_cast<size_t>(index)];
  NsItem item;
  item.name = rel.alias;
  item.table = rel.table;
  item.has_alias = alias != nullptr;
  item.rel = index;
  item.columns = p.a.NewColumnList();
  item.columns->reserve(rel.columns.size());
  size_t renamed = alias != nullptr ? alias->n_colnames : 0;
  if (renamed > rel.columns.size())
    ThrowAt(p, -1, sqlstate::kInvalidColumnReference,
            "table \"{}\" has {} columns available but {} columns specified", rel.alias,
            rel.columns.size(), renamed);
  if (renamed > 0) {
    std::span<QueryColumn> columns = p.a.arena->CopyArray(rel.columns);
    for (size_t i = 0; i < renamed; i++)
      columns[i].name = p.a.arena->CopyString(RawString(alias->colnames[i]));
    rel.columns = columns;
  }
  for (size_t i = 0; i < rel.columns.size(); i++) {
    const QueryColumn& column = rel.columns[i];
    item.columns->push_back({column.name, nullptr, index, static_cast<int>(i), column.type,
                             column.typmod, column.collation});
  }
  return item;
}

void CheckNameConflicts(ParseState& p, const std::vector<NsItem>& existing,
                        const std::vector<NsItem>& added) {
  for (const NsItem& a : added) {
    if (!a.rel_visible) continue;
    for (const NsItem& b : existing) {
      if (!b.rel_visible || a.name != b.name) continue;
      // The same name for tables of two schemas is no conflict, as long as neither is an alias.
      if (a.table != nullptr && b.table != nullptr && !a.has_alias && !b.has_alias &&
          a.table->oid != b.table->oid)
        continue;
      ThrowAt(p, -1, sqlstate::kDuplicateAlias, "table name \"{}\" specified more than once",
              a.name);
    }
  }
}

const JoinTree* TransformFromItem(ParseState& p, const RawNode* node, std::vector<NsItem>* names) {
  switch (node->node_case) {
    case PG_QUERY__NODE__NODE_RANGE_VAR:
      return TransformRangeVar(p, *node->range_var, names);
    case PG_QUERY__NODE__NODE_RANGE_SUBSELECT:
      return TransformRangeSubselect(p, *node->range_subselect, names);
    case PG_QUERY__NODE__NODE_RANGE_FUNCTION:
      return TransformRangeFunction(p, *node->range_function, names);
    case PG_QUERY__NODE__NODE_JOIN_EXPR:
      return TransformJoin(p, *node->join_expr, names);
    case PG_QUERY__NODE__NODE_RANGE_TABLE_SAMPLE:
      RefuseAt(p, p.Location(node->range_table_sample->location), "TABLESAMPLE");
    case PG_QUERY__NODE__NODE_RANGE_TABLE_FUNC:
      RefuseAt(p, p.Location(node->range_table_func->location), "XMLTABLE");
    default:
      Refuse("this kind of FROM item");
  }
}

const JoinTree* TransformFrom(ParseState& p, const PgQuery__SelectStmt& statement) {
  return TransformFromList(p, statement.from_clause, statement.n_from_clause);
}

const JoinTree* TransformFromList(ParseState& p, RawNode** list, size_t count) {
  const JoinTree* tree = nullptr;
  for (size_t i = 0; i < count; i++) {
    std::vector<NsItem> names;
    // What stands to the left can be seen by LATERAL items only.
    for (NsItem& item : p.names) item.lateral_only = true;
    size_t first_rel = p.rels.size();
    const JoinTree* right = TransformFromItem(p, list[i], &names);
    CheckNameConflicts(p, p.names, names);
    for (NsItem& item : names) {
      item.lateral_only = true;
      item.lateral_ok = true;
    }
    p.names.insert(p.names.end(), names.begin(), names.end());
    if (tree == nullptr) {
      tree = right;
      continue;
    }
    JoinTree* join = p.a.arena->New<JoinTree>();
    join->is_leaf = false;
    join->rel = -1;
    join->left = tree;
    join->right = right;
    for (size_t r = first_rel; r < p.rels.size(); r++) join->lateral |= p.rels[r].lateral;
    tree = join;
  }
  for (NsItem& item : p.names) {
    item.lateral_only = false;
    item.lateral_ok = true;
  }
  return tree;
}

}  // namespace sluice
