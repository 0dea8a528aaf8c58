// Set-returning functions: in FROM those that stand for a query, in the select list those that
// become a FROM item; and subscripts.
#include "catalog/builtin.h"
#include "common/bytes.h"
#include "parser/analyzer.h"
#include "parser/raw.h"
#include "parser/walk.h"

namespace sluice {
namespace {

constexpr Oid kSeriesInt4 = 1067, kArrayLower = 2091, kArrayUpper = 2092, kArrayLength = 2176,
              kInt4Plus = 177, kInt4Minus = 181, kInt4LessEqual = 149, kInt8ToInt4 = 480,
              kSubscripts = 1192, kUnnest = 2331,
              kArraySubscript = 6179;  // array_subscript_handler: stands for a[i][j]

Expr* Call(ParseState& p, Oid function, std::initializer_list<const Expr*> args) {
  Expr* call = p.New(ExprKind::kCall, FindProc(function)->result, -1);
  call->function = function;
  call->args = p.a.arena->CopyArray(std::vector<const Expr*>(args));
  return call;
}

Expr* Int4(ParseState& p, int32_t value) {
  Expr* constant = p.New(ExprKind::kConst, kInt4Oid, -1);
  char bytes[4];
  StoreBig(bytes, value);
  constant->value = p.a.arena->CopyString({bytes, 4});
  return constant;
}

Expr* RelColumn(ParseState& p, int rel, int column, int location) {
  const QueryColumn& c = p.rels[static_cast<size_t>(rel)].columns[static_cast<size_t>(column)];
  Expr* expr = p.New(ExprKind::kColumn, c.type, location);
  expr->typmod = c.typmod;
  expr->collation = c.collation;
  expr->rel = rel;
  expr->column = column;
  return expr;
}

// generate_subscripts(a, 1) beside unnest(a): the number of the element, as far as the first
// dimension goes.
Expr* SubscriptBeside(ParseState& p, int rel, const Expr* array, int location) {
  QueryRel& unnest = p.rels[static_cast<size_t>(rel)];
  if (!unnest.ordinality) {
    unnest.ordinality = true;
    std::vector<QueryColumn> columns(unnest.columns.begin(), unnest.columns.end());
    columns.push_back({"ordinality", kInt8Oid, -1, kInvalidOid});
    unnest.columns = p.a.arena->CopyArray(columns);
  }
  Expr* number = Call(p, kInt8ToInt4, {RelColumn(p, rel, 1, location)});
  Expr* there = Call(p, kInt4LessEqual, {number, Call(p, kArrayLength, {array, Int4(p, 1)})});
  Expr* subscript =
      Call(p, kInt4Plus,
           {number, Call(p, kInt4Minus, {Call(p, kArrayLower, {array, Int4(p, 1)}), Int4(p, 1)})});
  Expr* none = Int4(p, 0);
  none->is_null = true;
  Expr* result = p.New(ExprKind::kCase, kInt4Oid, location);
  result->args = p.a.arena->CopyArray(std::vector<const Expr*>{there, subscript, none});
  return result;
}

bool IsOne(const Expr& expr) {
  return expr.kind == ExprKind::kConst && !expr.is_null && expr.type == kInt4Oid &&
         LoadBig<int32_t>(expr.value.data()) == 1;
}

}  // namespace

Expr* NormalizeSetFunction(ParseState& p, Expr* call) {
  if (call->function != kSubscripts) return call;
  Expr* series = Call(p, kSeriesInt4,
                      {Call(p, kArrayLower, {call->args[0], call->args[1]}),
                       Call(p, kArrayUpper, {call->args[0], call->args[1]})});
  series->location = call->location;
  return series;
}

Expr* AddSelectFunction(ParseState& p, Expr* call, std::string_view name, int location) {
  for (int rel : p.select_functions) {
    if (p.rels[static_cast<size_t>(rel)].function == nullptr) continue;
    const Expr& other = *p.rels[static_cast<size_t>(rel)].function;
    bool beside = call->function == kSubscripts && other.function == kUnnest &&
                  IsOne(*call->args[1]) && EqualExprs(call->args[0], other.args[0]);
    if (beside) return SubscriptBeside(p, rel, call->args[0], location);
  }
  call = NormalizeSetFunction(p, call);
  const ProcInfo* proc = FindProc(call->function);
  bool here = proc->name == "generate_series" || call->function == kUnnest;
  if (!here || !p.select_functions.empty())
    RefuseAt(p, location, "set-returning function \"{}\" in the select list", name);
  QueryRel rel{};
  rel.kind = RelKind::kFunction;
  rel.function = call;
  rel.lateral = ContainsColumn(*call);
  rel.alias = p.a.arena->CopyString(name);
  rel.columns = p.a.arena->CopyArray(
      std::vector<QueryColumn>{{rel.alias, call->type, call->typmod, TypeCollation(call->type)}});
  int index = AddRel(p, rel);
  p.select_functions.push_back(index);
  return RelColumn(p, index, 0, location);
}

const JoinTree* JoinSelectFunctions(ParseState& p, const JoinTree* from) {
  for (int index : p.select_functions) {
    JoinTree* leaf = p.a.arena->New<JoinTree>();
    leaf->is_leaf = true;
    leaf->rel = index;
    leaf->lateral = p.rels[static_cast<size_t>(index)].lateral;
    if (from == nullptr) {
      from = leaf;
      continue;
    }
    JoinTree* join = p.a.arena->New<JoinTree>();
    join->is_leaf = false;
    join->rel = -1;
    join->left = from;
    join->right = leaf;
    join->lateral = leaf->lateral;
    from = join;
  }
  return from;
}

const void* SetFunctionOfTarget(const PgQuery__Node* value) {
  while (value != nullptr && value->node_case == PG_QUERY__NODE__NODE_TYPE_CAST)
    value = value->type_cast->arg;
  bool call = value != nullptr && value->node_case == PG_QUERY__NODE__NODE_FUNC_CALL;
  return call ? value->func_call : nullptr;
}

namespace {

// $1 is the call's argument. `numbered`: the same with WITH ORDINALITY's column; empty: refused.
struct QueryFunction {
  std::string_view schema, name, sql, numbered = {};
};
constexpr QueryFunction kQueryFunctions[] = {
    {"pg_catalog", "pg_options_to_table",
     "SELECT pg_catalog.substr(o, 1, pg_catalog.strpos(o, '=') - 1) AS option_name, "
     "pg_catalog.substr(o, pg_catalog.strpos(o, '=') + 1) AS option_value "
     "FROM pg_catalog.unnest($1) AS u(o)"},
    {"information_schema", "_pg_expandarray",
     "SELECT x, n::int4 AS n FROM pg_catalog.unnest($1) WITH ORDINALITY AS u(x, n)"},
    {"pg_catalog", "string_to_table",
     "SELECT t AS string_to_table FROM pg_catalog.unnest(pg_catalog.string_to_array($1, $2)) AS "
     "u(t)"},
    {"pg_catalog", "pg_partition_ancestors",
     "WITH RECURSIVE a(relid) AS (SELECT $1::pg_catalog.oid UNION ALL SELECT i.inhparent FROM a "
     "JOIN pg_catalog.pg_inherits i ON i.inhrelid = a.relid) "
     "SELECT relid::pg_catalog.regclass FROM a",
     "WITH RECURSIVE a(relid, n) AS (SELECT $1::pg_catalog.oid, 1::int8 UNION ALL SELECT "
     "i.inhparent, n + 1 FROM a JOIN pg_catalog.pg_inherits i ON i.inhrelid = a.relid) "
     "SELECT relid::pg_catalog.regclass, n AS ordinality FROM a"},
    {"pg_catalog", "aclexplode",
     "SELECT (SELECT r.oid FROM pg_catalog.pg_authid r WHERE r.rolname = "
     "pg_catalog.btrim(pg_catalog.split_part(i, '/', 2), '\"')) AS grantor, "
     "coalesce((SELECT r.oid FROM pg_catalog.pg_authid r WHERE r.rolname = "
     "pg_catalog.btrim(pg_catalog.split_part(i, '=', 1), '\"')), 0::pg_catalog.oid) AS grantee, "
     "k.name AS privilege_type, pg_catalog.strpos(pg_catalog.split_part(pg_catalog.split_part(i, "
     "'=', 2), '/', 1), k.letter || '*') > 0 AS is_grantable "
     "FROM pg_catalog.unnest($1::text[]) AS u(i) JOIN (VALUES ('r', 'SELECT'), ('a', 'INSERT'), "
     "('w', 'UPDATE'), ('d', 'DELETE'), ('D', 'TRUNCATE'), ('x', 'REFERENCES'), ('t', 'TRIGGER'), "
     "('X', 'EXECUTE'), ('U', 'USAGE'), ('C', 'CREATE'), ('T', 'TEMPORARY'), ('c', 'CONNECT')) AS "
     "k(letter, name) ON pg_catalog.strpos(pg_catalog.split_part(pg_catalog.split_part(i, '=', "
     "2), '/', 1), k.letter) > 0"},
};

}  // namespace

const Query* TransformQueryFunction(ParseState& p, const PgQuery__FuncCall& call, bool ordinality) {
  std::string_view name = RawString(call.funcname[call.n_funcname - 1]);
  std::string_view schema = call.n_funcname > 1 ? RawString(call.funcname[0]) : "pg_catalog";
  for (const QueryFunction& function : kQueryFunctions) {
    if (function.name != name || function.schema != schema) continue;
    auto outer = std::exchange(p.a.query_arguments, {call.args, call.n_args});
    if (ordinality && function.numbered.empty())
      RefuseAt(p, p.Location(call.location), "WITH ORDINALITY of {}", name);
    const Query* query = ExpandView(p.a, &p, name, ordinality ? function.numbered : function.sql);
    p.a.query_arguments = outer;
    return query;
  }
  return nullptr;
}

namespace {

// The call in the select list as a FROM item; the same call again is the same item, as they would
// run in step.
int AddRowFunction(ParseState& p, const PgQuery__FuncCall& call) {
  int location = p.Location(call.location);
  Expr* argument = call.n_args == 1 ? TransformExpr(p, call.args[0]) : nullptr;
  for (const RowFunction& known : p.row_functions)
    if (argument != nullptr && EqualExprs(known.argument, argument) &&
        known.name == RawString(call.funcname[call.n_funcname - 1]))
      return known.rel;
  if (argument == nullptr || !p.select_functions.empty())
    RefuseAt(p, location, "several set-returning functions in the select list");
  QueryRel rel{};
  rel.kind = RelKind::kSubquery;
  rel.alias = p.a.arena->CopyString(RawString(call.funcname[call.n_funcname - 1]));
  {
    ClauseScope clause(p, Clause::kFromSubselect);
    rel.subquery = TransformQueryFunction(p, call, false);
  }
  rel.lateral = ContainsColumn(*rel.subquery, 1);
  std::vector<QueryColumn> columns;
  for (const Target& target : rel.subquery->targets)
    if (!target.junk)
      columns.push_back(
          {target.name, target.expr->type, target.expr->typmod, target.expr->collation});
  rel.columns = p.a.arena->CopyArray(columns);
  int index = AddRel(p, rel);
  p.select_functions.push_back(index);
  p.row_functions.push_back({rel.alias, argument, index});
  return index;
}

bool IsQueryFunction(const PgQuery__Node* node) {
  if (node == nullptr || node->node_case != PG_QUERY__NODE__NODE_FUNC_CALL) return false;
  const PgQuery__FuncCall& call = *node->func_call;
  std::string_view schema = call.n_funcname > 1 ? RawString(call.funcname[0]) : "pg_catalog";
  for (const QueryFunction& function : kQueryFunctions)
    if (function.name == RawString(call.funcname[call.n_funcname - 1]) && function.schema == schema)
      return true;
  return false;
}

// (f(x)).field, (t.rows).field; nullptr: neither.
Expr* TransformField(ParseState& p, const PgQuery__AIndirection& raw) {
  if (raw.n_indirection != 1 || raw.indirection[0]->node_case != PG_QUERY__NODE__NODE_STRING)
    return nullptr;
  std::string_view field = RawString(raw.indirection[0]);
  if (raw.arg->node_case == PG_QUERY__NODE__NODE_COLUMN_REF)
    return FindRowField(p, *raw.arg->column_ref, field);
  if (!IsQueryFunction(raw.arg) || p.clause != Clause::kSelectTarget) return nullptr;
  int rel = AddRowFunction(p, *raw.arg->func_call);
  std::span<const QueryColumn> columns = p.rels[static_cast<size_t>(rel)].columns;
  for (size_t i = 0; i < columns.size(); i++)
    if (columns[i].name == field) return RelColumn(p, rel, static_cast<int>(i), -1);
  return nullptr;
}

}  // namespace

bool AddRowTargets(ParseState& p, const PgQuery__Node* value, std::string_view name) {
  if (!IsQueryFunction(value)) return false;
  if (name.empty()) name = RawString(value->func_call->funcname[value->func_call->n_funcname - 1]);
  int location = p.Location(value->func_call->location);
  // A client would have to be shown a row.
  if (p.parent == nullptr) RefuseAt(p, location, "a row as a value");
  int rel = AddRowFunction(p, *value->func_call);
  std::span<const QueryColumn> columns = p.rels[static_cast<size_t>(rel)].columns;
  for (size_t i = 0; i < columns.size(); i++)
    p.targets.push_back({RelColumn(p, rel, static_cast<int>(i), location),
                         p.a.arena->CopyString(RowFieldName(name, columns[i].name)), false});
  return true;
}

// A name is, to SQL, an array of "char" that starts at 0.
Expr* CharacterOfName(ParseState& p, Expr* name, Expr* subscript, int location) {
  constexpr Oid kSubstr = 877, kTextToChar = 944;
  Expr* text = CoerceToTarget(p, name, kTextOid, -1, CoercionContext::kImplicit, false, location);
  Expr* one = MakeConst(p, kInt4Oid, "1", location);
  Expr* character = p.New(ExprKind::kCall, kTextOid, location);
  character->function = kSubstr;
  character->collation = text->collation;
  character->args = p.a.arena->CopyArray(
      std::vector<const Expr*>{text, MakeOperator(p, "+", subscript, one, location), one});
  Expr* result = p.New(ExprKind::kCall, kCharOid, location);
  result->function = kTextToChar;
  result->args = p.a.arena->CopyArray(std::vector<const Expr*>{character});
  return result;
}

Expr* TransformSubscripts(ParseState& p, const PgQuery__AIndirection& raw) {
  if (Expr* field = TransformField(p, raw)) return field;
  Expr* array = TransformExpr(p, raw.arg);
  const TypeInfo* info = FindType(BaseType(array->type));
  int location = ExprLocation(*array);
  std::vector<const Expr*> args{array};
  for (size_t i = 0; i < raw.n_indirection; i++) {
    const PgQuery__Node* part = raw.indirection[i];
    bool single =
        part->node_case == PG_QUERY__NODE__NODE_A_INDICES && part->a_indices->is_slice == 0;
    if (!single) RefuseAt(p, location, "slices of arrays and fields of values");
    Expr* subscript = TransformExpr(p, part->a_indices->uidx);
    Expr* number =
        CoerceToTarget(p, subscript, kInt4Oid, -1, CoercionContext::kAssignment, false, -1);
    if (number == nullptr)
      ThrowAt(p, ExprLocation(*subscript), sqlstate::kDatatypeMismatch,
              "array subscript must have type integer");
    args.push_back(number);
  }
  if (array->type == kNameOid && args.size() == 2)
    return CharacterOfName(p, array, const_cast<Expr*>(args[1]), location);
  if (info == nullptr || info->element == kInvalidOid) {
    if (array->type == kJsonbOid || array->type == kJsonOid)
      RefuseAt(p, location, "subscripts of {}", TypeText(array->type));
    ThrowAt(p, location, sqlstate::kDatatypeMismatch,
            "cannot subscript type {} because it does not support subscripting",
            TypeText(array->type));
  }
  Expr* result = p.New(ExprKind::kCall, info->element, location);
  result->function = kArraySubscript;
  result->typmod = array->typmod;
  result->collation = TypeCollation(info->element);
  result->args = p.a.arena->CopyArray(args);
  return result;
}

}  // namespace sluice
