// Which collation each expression has, and which each function is called with: derived bottom-up,
// as the SQL standard and Postgres do it. An explicit COLLATE beats columns' collations; two
// different ones of equal rank are a conflict, which is an error only where the collation matters.
#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {
namespace {

enum class Strength : uint8_t { kNone, kImplicit, kConflict, kExplicit };

struct Derived {
  Oid collation = kInvalidOid;
  Strength strength = Strength::kNone;
  int location = -1;
  Oid other = kInvalidOid;  // of a conflict
};

std::string CollationName(ParseState& p, Oid collation) {
  std::string name = p.a.context.catalog->CollationSql(collation);
  if (name.size() >= 2 && name.front() == '"' && name.back() == '"')
    name = name.substr(1, name.size() - 2);
  if (name.empty()) name = collation == kDefaultCollationOid ? "default" : "?";
  return name;
}

// Adds what one more operand says.
void Merge(ParseState& p, const Derived& added, Derived* to) {
  if (added.strength > to->strength) {
    *to = added;
    return;
  }
  if (added.strength < to->strength || added.collation == to->collation) return;
  switch (added.strength) {
    case Strength::kImplicit:
      // Any collation beats the default one.
      if (to->collation == kDefaultCollationOid) {
        *to = added;
      } else if (added.collation != kDefaultCollationOid) {
        to->strength = Strength::kConflict;
        to->other = added.collation;
        to->location = added.location;
      }
      return;
    case Strength::kExplicit:
      ThrowAt(p, added.location, sqlstate::kCollationMismatch,
              "collation mismatch between explicit collations \"{}\" and \"{}\"",
              CollationName(p, to->collation), CollationName(p, added.collation));
    default:
      return;
  }
}

[[noreturn]] void ThrowIndeterminate(const char* what) {
  throw QueryError(MakeError(sqlstate::kIndeterminateCollation,
                             "could not determine which collation to use for {}", what)
                       .Hint("Use the COLLATE clause to set the collation explicitly."));
}

// Postgres finds out when such a function runs; here nothing runs without a collation.
void CheckConflict(const Expr& expr) {
  if (expr.kind == ExprKind::kGreatest || expr.kind == ExprKind::kLeast)
    ThrowIndeterminate("string comparison");
  const ProcInfo* proc = expr.function == kInvalidOid ? nullptr : FindProc(expr.function);
  if (proc == nullptr) return;
  std::string_view name = proc->name;
  for (std::string_view compared :
       {"texteq",    "textne",        "text_lt",        "text_le",      "text_gt",
        "text_ge",   "bttextcmp",     "text_larger",    "text_smaller", "bpchareq",
        "bpcharne",  "bpcharlt",      "bpcharle",       "bpchargt",     "bpcharge",
        "bpcharcmp", "bpchar_larger", "bpchar_smaller", "min",          "max"})
    if (name == compared) ThrowIndeterminate("string comparison");
  if (name == "lower") ThrowIndeterminate("lower() function");
  if (name == "upper") ThrowIndeterminate("upper() function");
  if (name == "initcap") ThrowIndeterminate("initcap() function");
  if (name.find("iclike") != name.npos || name.find("icnlike") != name.npos)
    ThrowIndeterminate("ILIKE");
  if (name.find("regex") != name.npos) ThrowIndeterminate("regular expression");
}

Derived Assign(ParseState& p, Expr* expr);

Derived AssignFresh(ParseState& p, const Expr* expr) {
  return Assign(p, const_cast<Expr*>(expr));
}

Derived Leaf(const Expr& expr) {
  if (expr.collation == kInvalidOid) return {kInvalidOid, Strength::kNone, expr.location};
  return {expr.collation, Strength::kImplicit, expr.location};
}

// What the operands that count say together.
Derived Operands(ParseState& p, const Expr& expr) {
  Derived all;
  switch (expr.kind) {
    case ExprKind::kCase:
      // Conditions have collations of their own.
      for (size_t i = 0; i < expr.args.size(); i++) {
        bool is_condition = i % 2 == 0 && i + 1 < expr.args.size();
        Derived one = AssignFresh(p, expr.args[i]);
        if (!is_condition) Merge(p, one, &all);
      }
      return all;
    case ExprKind::kAggregate:
    case ExprKind::kWindow:
      for (const Expr* arg : expr.args) Merge(p, AssignFresh(p, arg), &all);
      if (expr.filter != nullptr) AssignFresh(p, expr.filter);
      for (const SortKey& key : expr.order_by) {
        Derived one = AssignFresh(p, key.expr);
        if (one.strength == Strength::kConflict) ThrowIndeterminate("string comparison");
        const_cast<SortKey&>(key).collation = key.expr->collation;
      }
      return all;
    default:
      for (const Expr* arg : expr.args) Merge(p, AssignFresh(p, arg), &all);
      return all;
  }
}

Derived Assign(ParseState& p, Expr* expr) {
  switch (expr->kind) {
    case ExprKind::kConst:
    case ExprKind::kColumn:
    case ExprKind::kParam:
    case ExprKind::kSqlValue:
      return Leaf(*expr);
    case ExprKind::kCollate: {
      AssignFresh(p, expr->args[0]);
      return {expr->collation, Strength::kExplicit, expr->location};
    }
    case ExprKind::kSubquery: {
      for (const Expr* arg : expr->args) AssignFresh(p, arg);
      bool is_value = expr->sublink == SublinkKind::kScalar || expr->sublink == SublinkKind::kArray;
      return is_value ? Leaf(*expr) : Derived{};
    }
    default:
      break;
  }
  Derived operands = Operands(p, *expr);
  expr->input_collation =
      operands.strength == Strength::kConflict ? kInvalidOid : operands.collation;
  if (operands.strength == Strength::kConflict) CheckConflict(*expr);
  Oid own = TypeCollation(expr->type);
  if (own == kInvalidOid) {
    expr->collation = kInvalidOid;
    return {kInvalidOid, Strength::kNone, expr->location};
  }
  if (operands.strength == Strength::kNone)
    operands = {own, Strength::kImplicit, ExprLocation(*expr)};
  expr->collation = operands.strength == Strength::kConflict ? kInvalidOid : operands.collation;
  return operands;
}

}  // namespace

void AssignExprCollations(ParseState& p, Expr* expr) {
  Assign(p, expr);
}

Oid SelectCommonCollation(ParseState& p, std::span<const Expr* const> exprs, bool none_ok) {
  Derived all;
  for (const Expr* expr : exprs) Merge(p, AssignFresh(p, expr), &all);
  if (all.strength != Strength::kConflict) return all.collation;
  if (none_ok) return kInvalidOid;
  QueryError e(
      MakeError(sqlstate::kCollationMismatch,
                "collation mismatch between implicit collations \"{}\" and \"{}\"",
                CollationName(p, all.collation), CollationName(p, all.other))
          .Hint("You can choose the collation by applying the COLLATE clause to one or both "
                "expressions.")
          .At(ErrorPosition(p, all.location)));
  throw e;
}

void AssignCollations(ParseState& p, Query& query) {
  // The columns of a set operation have got theirs already.
  ForEachQueryExpr(query, [&](const Expr& e) { AssignFresh(p, &e); });
  auto assign_keys = [&](std::span<const SortKey> keys) {
    for (const SortKey& key : keys) {
      const Expr& expr = *query.targets[static_cast<size_t>(key.target)].expr;
      if (expr.collation == kInvalidOid && TypeCollation(expr.type) != kInvalidOid)
        ThrowIndeterminate("string comparison");
      const_cast<SortKey&>(key).collation = expr.collation;
    }
  };
  assign_keys(query.order_by);
  for (const WindowClause& window : query.windows) assign_keys(window.order_by);
}

Oid CollationByName(ParseState& p, RawNode** names, size_t count, int location) {
  std::string_view schema = count > 1 ? RawString(names[count - 2]) : std::string_view();
  std::string_view name = count > 0 ? RawString(names[count - 1]) : std::string_view();
  Oid found = p.a.context.catalog->FindCollationByName(schema, name);
  if (found == kInvalidOid)
    ThrowAt(p, location, sqlstate::kUndefinedObject,
            "collation \"{}{}{}\" for encoding \"UTF8\" does not exist", schema,
            schema.empty() ? "" : ".", name);
  return found;
}

}  // namespace sluice
