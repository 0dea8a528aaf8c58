// Function calls: which function, its arguments' casts, VARIADIC and defaults.
#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {
namespace {

constexpr Oid kPgTypeofOid = 1619;

// Defaults of built-in functions (pg_proc.proargdefaults), as text of the parameters' types; the
// last ones count. Functions that are not here are refused when called without all arguments.
struct Defaults {
  std::string_view name;
  std::vector<std::string_view> values;
};
const Defaults* FindDefaults(std::string_view name) {
  static const std::vector<Defaults> kDefaults = {
      {"pg_terminate_backend", {"0"}},
      {"jsonb_set", {"true"}},
      {"jsonb_insert", {"false"}},
      {"parse_ident", {"true"}},
      {"normalize", {"NFC"}},
      {"is_normalized", {"NFC"}},
      {"make_interval", {"0", "0", "0", "0", "0", "0", "0.0"}},
  };
  for (const Defaults& defaults : kDefaults)
    if (defaults.name == name) return &defaults;
  return nullptr;
}

std::string Signature(std::string_view name, std::span<Expr* const> args) {
  std::string text(name);
  text += '(';
  for (size_t i = 0; i < args.size(); i++) {
    if (i > 0) text += ", ";
    text += TypeText(args[i]->type);
  }
  return text + ')';
}

[[noreturn]] void ThrowNoFunction(ParseState& p, std::string_view name, std::span<Expr* const> args,
                                  const PgQuery__FuncCall& call, bool several, int location) {
  Error e;
  if (several) {
    e = MakeError(sqlstate::kAmbiguousFunction, "function {} is not unique", Signature(name, args));
    e.Hint(
        "Could not choose a best candidate function. You might need to add explicit type casts.");
  } else {
    e = MakeError(sqlstate::kUndefinedFunction, "function {} does not exist",
                  Signature(name, args));
    e.Hint(call.n_agg_order > 1
               ? "No aggregate function matches the given name and argument types. Perhaps you "
                 "misplaced ORDER BY; ORDER BY must appear after all regular arguments of the "
                 "aggregate."
               : "No function matches the given name and argument types. You might need to add "
                 "explicit type casts.");
  }
  throw QueryError(e.At(ErrorPosition(p, location)));
}

void CheckPlainCall(ParseState& p, const PgQuery__FuncCall& call, std::string_view name,
                    int location) {
  auto fail = [&](const char* what) {
    ThrowAt(p, location, sqlstate::kWrongObjectType,
            "{} specified, but {} is not an aggregate function", what, name);
  };
  if (call.agg_star) fail(fmt::format("{}(*)", name).c_str());
  if (call.agg_distinct) fail("DISTINCT");
  if (call.n_agg_order > 0) fail("ORDER BY");
  if (call.agg_filter != nullptr) fail("FILTER");
  if (call.over != nullptr)
    ThrowAt(p, location, sqlstate::kWrongObjectType,
            "OVER specified, but {} is not a window function nor an aggregate function", name);
}

void CheckSetReturning(ParseState& p, const PgQuery__FuncCall& call, std::string_view name,
                       int location) {
  if (p.set_function == &call) return;
  switch (p.clause) {
    case Clause::kSelectTarget:
    case Clause::kOrderBy:
    case Clause::kGroupBy:
    case Clause::kDistinctOn:
      RefuseAt(p, location, "set-returning function \"{}\" in the select list", name);
    case Clause::kFromFunction:
      ThrowAt(p, location, sqlstate::kFeatureNotSupported,
              "set-returning functions must appear at top level of FROM");
    case Clause::kJoinOn:
      ThrowAt(p, location, sqlstate::kFeatureNotSupported,
              "set-returning functions are not allowed in JOIN conditions");
    default:
      ThrowAt(p, location, sqlstate::kFeatureNotSupported,
              "set-returning functions are not allowed in {}", ClauseName(p.clause));
  }
}

bool IsOrderedSetAggregate(std::string_view name) {
  for (std::string_view known : {"percentile_cont", "percentile_disc", "mode", "rank", "dense_rank",
                                 "percent_rank", "cume_dist"})
    if (name == known) return true;
  return false;
}

void AppendDefaults(ParseState& p, const FunctionChoice& choice, std::vector<Expr*>* args,
                    int location) {
  if (choice.default_count == 0) return;
  const Defaults* defaults = FindDefaults(choice.proc->name);
  auto count = static_cast<size_t>(choice.default_count);
  if (defaults == nullptr || defaults->values.size() < count)
    RefuseAt(p, location, "function \"{}\" without all of its arguments", choice.proc->name);
  for (size_t i = 0; i < count; i++) {
    Oid type = choice.proc->args[args->size()];
    args->push_back(MakeConst(p, type, defaults->values[defaults->values.size() - count + i], -1));
  }
}

// The trailing arguments as the one array that the function takes.
void PackVariadic(ParseState& p, const FunctionChoice& choice, Oid element,
                  std::vector<Expr*>* args, int location) {
  auto count = static_cast<size_t>(choice.variadic_count);
  const TypeInfo* info = FindType(element);
  if (info == nullptr || info->array == kInvalidOid)
    ThrowAt(p, location, sqlstate::kUndefinedObject, "could not find array type for data type {}",
            TypeText(element));
  std::vector<const Expr*> elements(args->end() - static_cast<std::ptrdiff_t>(count), args->end());
  Expr* array = p.New(ExprKind::kArray, info->array, ExprLocation(*elements[0]));
  array->args = p.a.arena->CopyArray(elements);
  args->resize(args->size() - count);
  args->push_back(FoldArray(p, array));
}

}  // namespace

Expr* MakeFunctionCall(ParseState& p, const FunctionChoice& choice, std::vector<Expr*> args,
                       int location) {
  const ProcInfo& proc = *choice.proc;
  std::vector<Oid> actual, declared(choice.declared);
  for (Expr* arg : args) actual.push_back(arg->type);
  Oid result = ResolvePolymorphic(p, actual, declared, proc.result, location);
  for (size_t i = 0; i < args.size(); i++) {
    Oid target = declared[i];
    // An unknown literal for "any" is text to everybody but the one function that tells types
    // apart.
    if (target == kAnyOid && args[i]->type == kUnknownOid && proc.oid != kPgTypeofOid &&
        args[i]->kind == ExprKind::kConst)
      target = kTextOid;
    args[i] = CoerceType(p, args[i], target, -1, CoercionContext::kImplicit, false, -1);
  }
  Expr* call = p.New(ExprKind::kCall, result, location);
  call->function = proc.oid;
  if (choice.variadic_count > 0 && proc.variadic != kAnyOid) {
    PackVariadic(p, choice, declared.back(), &args, location);
    call->variadic = true;
  }
  AppendDefaults(p, choice, &args, location);
  call->args = p.a.arena->CopyArray(std::vector<const Expr*>(args.begin(), args.end()));
  return call;
}

Expr* TransformFuncCall(ParseState& p, const PgQuery__FuncCall& call) {
  int location = p.Location(call.location);
  std::string_view name = RawString(call.funcname[call.n_funcname - 1]);
  std::string_view schema = call.n_funcname > 1 ? RawString(call.funcname[0]) : std::string_view();
  std::string spelled = schema.empty() ? std::string(name) : fmt::format("{}.{}", schema, name);
  std::vector<Expr*> args = TransformList(p, call.args, call.n_args);
  // Another leniency of libpg_query's grammar: extract($1 FROM x).
  if (call.funcformat == PG_QUERY__COERCION_FORM__COERCE_SQL_SYNTAX && name == "extract" &&
      call.n_args > 0 && call.args[0]->node_case == PG_QUERY__NODE__NODE_PARAM_REF)
    ThrowAt(p, p.Location(call.args[0]->param_ref->location), sqlstate::kSyntaxError,
            "syntax error at or near \"${}\"", call.args[0]->param_ref->number);
  if (call.agg_within_group) RefuseAt(p, location, "WITHIN GROUP");
  if (call.n_funcname > 2) RefuseAt(p, location, "function names of more than two parts");
  if (!schema.empty() && schema != "pg_catalog") {
    if (!p.a.context.catalog->HasSchema(schema))
      ThrowAt(p, location, sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist", schema);
    ThrowNoFunction(p, spelled, args, call, false, location);
  }

  std::vector<Oid> types;
  for (Expr* arg : args) types.push_back(arg->type);
  bool literal = !args.empty() && args[0]->kind == ExprKind::kConst;
  FunctionChoice choice = ChooseFunction(name, types, !call.func_variadic, literal);
  if (choice.match == FunctionMatch::kNotFound || choice.match == FunctionMatch::kMultiple)
    ThrowNoFunction(p, spelled, args, call, choice.match == FunctionMatch::kMultiple, location);
  if (choice.match == FunctionMatch::kCoercion) {
    CheckPlainCall(p, call, name, location);
    return CoerceType(p, args[0], choice.coercion_type, -1, CoercionContext::kExplicit, true,
                      location);
  }
  const ProcInfo& proc = *choice.proc;
  if (call.func_variadic && proc.variadic == kAnyOid)
    RefuseAt(p, location, "VARIADIC arguments of \"{}\"", name);
  if (proc.kind == 'a' && IsOrderedSetAggregate(name))
    ThrowAt(p, location, sqlstate::kWrongObjectType,
            "WITHIN GROUP is required for ordered-set aggregate {}", name);
  if (call.over != nullptr && proc.kind != 'f') {
    Expr* window = MakeFunctionCall(p, choice, args, location);
    window->variadic |= call.func_variadic;
    return TransformWindowCall(p, window, call);
  }
  if (proc.kind == 'w')
    ThrowAt(p, location, sqlstate::kWrongObjectType, "window function {} requires an OVER clause",
            name);
  if (proc.kind == 'f') {
    CheckPlainCall(p, call, name, location);
    if (proc.returns_set) CheckSetReturning(p, call, name, location);
    if (proc.result == kRecordOid || proc.result == kVoidOid) {
      if (proc.result == kRecordOid)
        RefuseAt(p, location, "function \"{}\", which returns a record", name);
    }
    Expr* result = MakeFunctionCall(p, choice, std::move(args), location);
    result->variadic |= call.func_variadic;
    if (proc.returns_set && p.clause == Clause::kSelectTarget)
      return AddSelectFunction(p, result, name, location);
    return result;
  }
  if (call.n_args == 0 && !call.agg_star)
    ThrowAt(p, location, sqlstate::kWrongObjectType,
            "{}(*) must be used to call a parameterless aggregate function", name);
  Expr* aggregate = MakeFunctionCall(p, choice, args, location);
  aggregate->kind = ExprKind::kAggregate;
  aggregate->star = call.agg_star;
  aggregate->distinct = call.agg_distinct;
  aggregate->variadic |= call.func_variadic;
  return TransformAggregate(p, aggregate, args, call);
}

}  // namespace sluice
