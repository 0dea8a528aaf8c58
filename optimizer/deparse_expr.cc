// Expressions as SQL text.
#include "catalog/builtin.h"
#include "catalog/catalog.h"
#include "catalog/quote.h"
#include "common/assert.h"
#include "common/bytes.h"
#include "common/error.h"
#include "optimizer/deparse.h"
#include "optimizer/expr_util.h"
#include "types/codec.h"
#include "types/kernel.h"

namespace sluice {
namespace {

// The settings constants are written under: texts that any DateStyle reads alike.
const SessionSettings& IsoSettings() {
  static const SessionSettings settings;
  return settings;
}

bool IsLengthCoercion(const ProcInfo& proc, const Expr& expr) {
  // numeric(numeric, int4), varchar(varchar, int4, bool), timestamp(timestamp, int4), …
  return proc.args.size() >= 2 && proc.args[0] == proc.result && proc.args[1] == kInt4Oid &&
         expr.typmod >= 0 && (expr.explicit_cast || FindCast(proc.result, proc.result) != nullptr);
}

// varchar(text, 14, false): too long is an error, where the cast x::varchar(10) cuts. No SQL but
// the call says that.
bool IsAssignmentLength(const ProcInfo& proc, const Expr& expr) {
  if (proc.args.size() != 3 || proc.args[2] != kBoolOid || expr.args.size() != 3) return false;
  const Expr& is_explicit = *expr.args[2];
  return is_explicit.kind == ExprKind::kConst && !is_explicit.is_null && is_explicit.value[0] == 0;
}

bool IsCastFunction(const ProcInfo& proc, const Expr& expr) {
  if (expr.args.empty()) return false;
  const CastInfo* cast = FindCast(expr.args[0]->type, expr.type);
  return cast != nullptr && cast->function == proc.oid;
}

}  // namespace

std::string Deparser::TypeName(Oid type, int32_t typmod) const {
  auto user = catalog_.types.find(type);
  if (user != catalog_.types.end()) {
    const UserType& found = user->second;
    if (found.info.element != kInvalidOid) return TypeName(found.info.element, -1) + "[]";
    return QuoteQualified(found.schema, found.name);
  }
  return FormatType(type, typmod);
}

std::string Deparser::Expression(const Expr& expr) {
  auto arg = [&](size_t i) { return Expression(*expr.args[i]); };
  auto test = [&](const char* suffix) { return "(" + arg(0) + " " + suffix + ")"; };
  auto join = [&](const char* separator) {
    std::string text = "(";
    for (size_t i = 0; i < expr.args.size(); i++) text += (i == 0 ? "" : separator) + arg(i);
    return text + ")";
  };
  auto quantified = [&](const char* word) {
    const OperatorInfo* oper = FindOperator(expr.oper);
    if (oper == nullptr) Refuse("operator {} is not supported", expr.oper);
    return "(" + arg(0) + " " + std::string(oper->name) + " " + word + " (" + arg(1) + "))";
  };
  switch (expr.kind) {
    case ExprKind::kConst:
      return Constant(expr);
    case ExprKind::kColumn:
      return Column(expr);
    case ExprKind::kParam:
    case ExprKind::kExecParam:
      return Parameter(expr);
    case ExprKind::kCall:
      return Call(expr);
    case ExprKind::kAggregate:
      return Aggregate(expr);
    case ExprKind::kAnd:
      return join(" AND ");
    case ExprKind::kOr:
      return join(" OR ");
    case ExprKind::kNot:
      return "(NOT " + arg(0) + ")";
    case ExprKind::kIsNull:
      return test("IS NULL");
    case ExprKind::kIsNotNull:
      return test("IS NOT NULL");
    case ExprKind::kIsTrue:
      return test("IS TRUE");
    case ExprKind::kIsNotTrue:
      return test("IS NOT TRUE");
    case ExprKind::kIsFalse:
      return test("IS FALSE");
    case ExprKind::kIsNotFalse:
      return test("IS NOT FALSE");
    case ExprKind::kIsUnknown:
      return test("IS UNKNOWN");
    case ExprKind::kIsNotUnknown:
      return test("IS NOT UNKNOWN");
    case ExprKind::kIsDistinct:
      return "(" + arg(0) + " IS DISTINCT FROM " + arg(1) + ")";
    case ExprKind::kIsNotDistinct:
      return "(" + arg(0) + " IS NOT DISTINCT FROM " + arg(1) + ")";
    case ExprKind::kCase: {
      std::string text = "CASE";
      for (size_t i = 0; i + 1 < expr.args.size(); i += 2)
        text += " WHEN " + arg(i) + " THEN " + arg(i + 1);
      return text + " ELSE " + arg(expr.args.size() - 1) + " END";
    }
    case ExprKind::kCoalesce:
      return "COALESCE(" + Arguments(expr.args) + ")";
    case ExprKind::kGreatest:
      return "GREATEST(" + Arguments(expr.args) + ")";
    case ExprKind::kLeast:
      return "LEAST(" + Arguments(expr.args) + ")";
    case ExprKind::kNullIf:
      return "NULLIF(" + Arguments(expr.args) + ")";
    case ExprKind::kCollate: {
      std::string name = catalog_.CollationSql(expr.collation);
      if (name.empty()) Refuse("COLLATE with this collation is not supported");
      return "(" + arg(0) + " COLLATE " + name + ")";
    }
    case ExprKind::kRelabel:
    case ExprKind::kCoerceViaIo:
    case ExprKind::kArrayCoerce:
      return "(" + arg(0) + ")::" + TypeName(expr.type, expr.typmod);
    case ExprKind::kAnyOf:
      return quantified("ANY");
    case ExprKind::kAllOf:
      return quantified("ALL");
    case ExprKind::kArray:
      return "ARRAY[" + Arguments(expr.args) + "]::" + TypeName(expr.type, -1);
    case ExprKind::kSubquery:
      return Sublink(expr);
    case ExprKind::kWindow:
      return Window(expr);
    case ExprKind::kGrouping:
      return "GROUPING(" + Arguments(expr.args) + ")";
    case ExprKind::kRow:
    case ExprKind::kSqlValue:
    case ExprKind::kSubPlan:
      break;
  }
  Refuse("this expression cannot be sent to a shard");
}

std::string Deparser::Unpositional(const Expr& expr) {
  if (expr.kind != ExprKind::kConst) return Expression(expr);
  return "(" + Expression(expr) + ")::" + TypeName(expr.type, expr.typmod);
}

std::string Deparser::Column(const Expr& expr) {
  if (static_cast<size_t>(expr.levels_up) >= scopes_.size())
    Refuse("a reference to an enclosing query cannot be sent to a shard");
  Scope& scope = scopes_[scopes_.size() - 1 - static_cast<size_t>(expr.levels_up)];
  SLUICE_ASSERT(expr.rel >= 0 && static_cast<size_t>(expr.rel) < scope.rels.size());
  const QueryRel& rel = scope.rels[static_cast<size_t>(expr.rel)];
  std::string name;
  if (rel.kind == RelKind::kExcluded) {
    // The target is the one table of this scope.
    const Relation& leaf = *find_leaves_(rel)[0];
    name = QuoteIdentifier(RemoteColumn(leaf, rel, expr.column));
  } else if (rel.kind == RelKind::kTable && LeavesOf(scope, expr.rel).size() == 1) {
    // Behind the table's columns: where the row lies (optimizer/modify_by_id.cc).
    size_t own = rel.table->columns.size();
    if (static_cast<size_t>(expr.column) == own)
      return fmt::format("{}::oid", LeavesOf(scope, expr.rel)[0]->oid);
    if (static_cast<size_t>(expr.column) > own) {
      name = expr.column == static_cast<int>(own) + 1 ? "ctid" : "tableoid";
      return scope.qualify ? scope.aliases[static_cast<size_t>(expr.rel)] + "." + name : name;
    }
    name = QuoteIdentifier(RemoteColumn(*LeavesOf(scope, expr.rel)[0], rel, expr.column));
    if (!scope.qualify) return name;
  } else {
    name = fmt::format("c{}", expr.column + 1);
  }
  return scope.aliases[static_cast<size_t>(expr.rel)] + "." + name;
}

std::string Deparser::Constant(const Expr& expr) {
  std::string type = "::" + TypeName(expr.type, -1);
  if (expr.is_null) return "NULL" + type;
  if (!HasBinaryCodec(expr.type)) return QuoteLiteral(expr.value) + type;
  if (expr.type == kBoolOid) return expr.value[0] != 0 ? "true" : "false";
  if (expr.type == kInt4Oid) {
    int32_t value = LoadBig<int32_t>(expr.value.data());
    if (value >= 0) return fmt::format("{}", value);
  }
  Arena arena;
  std::string text;
  AppendText(MakeConstantColumn(expr.type, expr.value, false, &arena), 0, IsoSettings(), &text);
  return QuoteLiteral(text) + type;
}

std::string Deparser::Parameter(const Expr& expr) {
  size_t number = 0;
  while (number < params_.size() && !EqualExpr(params_[number], &expr)) number++;
  if (number == params_.size()) params_.push_back(&expr);
  return fmt::format("${}::{}", number + 1, TypeName(expr.type, -1));
}

std::string Deparser::Arguments(std::span<const Expr* const> args, bool variadic) {
  std::string text;
  for (size_t i = 0; i < args.size(); i++) {
    if (i > 0) text += ", ";
    if (variadic && i + 1 == args.size()) text += "VARIADIC ";
    text += Expression(*args[i]);
  }
  return text;
}

std::string Deparser::Function(Oid function, const Expr& expr) {
  const ProcInfo* proc = FindProc(function);
  if (proc == nullptr) Refuse("function {} cannot be sent to a shard", function);
  return "pg_catalog." + QuoteIdentifier(proc->name) + "(" + Arguments(expr.args, expr.variadic) +
         ")";
}

std::string Deparser::Call(const Expr& expr) {
  constexpr Oid kArraySubscript = 6179;  // array_subscript_handler: stands for a[i][j]
  if (expr.function == kArraySubscript) {
    std::string text = "(" + Expression(*expr.args[0]) + ")";
    for (const Expr* arg : expr.args.subspan(1)) text += "[" + Expression(*arg) + "]";
    return text;
  }
  if (expr.oper != kInvalidOid) {
    const OperatorInfo* oper = FindOperator(expr.oper);
    if (oper == nullptr) Refuse("operator {} cannot be sent to a shard", expr.oper);
    std::string name(oper->name);
    if (expr.args.size() == 1) return "(" + name + " " + Expression(*expr.args[0]) + ")";
    return "(" + Expression(*expr.args[0]) + " " + name + " " + Expression(*expr.args[1]) + ")";
  }
  const ProcInfo* proc = FindProc(expr.function);
  if (proc == nullptr) Refuse("function {} cannot be sent to a shard", expr.function);
  if (IsAssignmentLength(*proc, expr)) return Function(expr.function, expr);
  bool one_step = IsCastFunction(*proc, expr);
  if (one_step || IsLengthCoercion(*proc, expr)) {
    int32_t typmod = proc->args.size() >= 2 || expr.explicit_cast ? expr.typmod : -1;
    return "(" + Expression(*expr.args[0]) + ")::" + TypeName(expr.type, typmod);
  }
  return Function(expr.function, expr);
}

std::string Deparser::Aggregate(const Expr& expr) {
  const ProcInfo* proc = FindProc(expr.function);
  if (proc == nullptr) Refuse("aggregate {} cannot be sent to a shard", expr.function);
  std::string text = "pg_catalog." + QuoteIdentifier(proc->name) + "(";
  if (expr.star) text += "*";
  if (expr.distinct) text += "DISTINCT ";
  text += Arguments(expr.args, expr.variadic);
  for (size_t i = 0; i < expr.order_by.size(); i++) {
    const SortKey& key = expr.order_by[i];
    text += (i == 0 ? " ORDER BY " : ", ") + SortItem(key, Unpositional(*key.expr));
  }
  text += ")";
  if (expr.filter != nullptr) text += " FILTER (WHERE " + Expression(*expr.filter) + ")";
  return text;
}

std::string Deparser::Window(const Expr& expr) {
  const Query* query = scopes_.back().query;
  const ProcInfo* proc = FindProc(expr.function);
  if (query == nullptr || proc == nullptr ||
      static_cast<size_t>(expr.param) >= query->windows.size())
    Refuse("this window function cannot be sent to a shard");
  const WindowClause& window = query->windows[static_cast<size_t>(expr.param)];
  auto target = [&](int index) {
    return Unpositional(*query->targets[static_cast<size_t>(index)].expr);
  };
  std::string text = "pg_catalog." + QuoteIdentifier(proc->name) + "(" +
                     (expr.star ? "*" : Arguments(expr.args, expr.variadic)) + ")";
  if (expr.filter != nullptr) text += " FILTER (WHERE " + Expression(*expr.filter) + ")";
  std::string over;
  for (size_t i = 0; i < window.partition_by.size(); i++)
    over += (i == 0 ? "PARTITION BY " : ", ") + target(window.partition_by[i]);
  for (size_t i = 0; i < window.order_by.size(); i++) {
    const SortKey& key = window.order_by[i];
    over += (i > 0          ? ", "
             : over.empty() ? "ORDER BY "
                            : " ORDER BY ") +
            SortItem(key, key.expr != nullptr ? Unpositional(*key.expr) : target(key.target));
  }
  std::string frame = Frame(window);
  if (!frame.empty()) over += (over.empty() ? "" : " ") + frame;
  return text + " OVER (" + over + ")";
}

// Postgres's FRAMEOPTION_ bits.
std::string Deparser::Frame(const WindowClause& window) {
  constexpr int kNonDefault = 0x1, kRange = 0x2, kRows = 0x4;
  int options = window.frame_options;
  if ((options & kNonDefault) == 0) return {};
  struct Bound {
    int start, end;
    const char* text;
  };
  static constexpr Bound kBounds[] = {{0x20, 0x40, "UNBOUNDED PRECEDING"},
                                      {0x80, 0x100, "UNBOUNDED FOLLOWING"},
                                      {0x200, 0x400, "CURRENT ROW"},
                                      {0x800, 0x1000, "PRECEDING"},
                                      {0x2000, 0x4000, "FOLLOWING"}};
  auto bound = [&](bool start) -> std::string {
    for (const Bound& b : kBounds) {
      if ((options & (start ? b.start : b.end)) == 0) continue;
      const Expr* offset = start ? window.start_offset : window.end_offset;
      bool has_offset = b.start >= 0x800;
      if (has_offset && offset == nullptr) Refuse("this window frame cannot be sent to a shard");
      return (has_offset ? Expression(*offset) + " " : "") + b.text;
    }
    Refuse("this window frame cannot be sent to a shard");
  };
  std::string text = options & kRange ? "RANGE" : options & kRows ? "ROWS" : "GROUPS";
  text += " BETWEEN " + bound(true) + " AND " + bound(false);
  if (options & 0x8000) text += " EXCLUDE CURRENT ROW";
  if (options & 0x10000) text += " EXCLUDE GROUP";
  if (options & 0x20000) text += " EXCLUDE TIES";
  return text;
}

std::string Deparser::Sublink(const Expr& expr) {
  std::string query = "(" + Select(*expr.subquery) + ")";
  switch (expr.sublink) {
    case SublinkKind::kExists:
      return "EXISTS " + query;
    case SublinkKind::kScalar:
      return query;
    case SublinkKind::kArray:
      return "ARRAY" + query;
    case SublinkKind::kAny:
    case SublinkKind::kAll:
      break;
  }
  std::string left = Arguments(expr.args);
  if (expr.args.size() > 1) left = "(" + left + ")";
  const OperatorInfo* oper =
      expr.sublink_operators.empty() ? nullptr : FindOperator(expr.sublink_operators[0]);
  if (oper == nullptr) Refuse("this subquery cannot be sent to a shard");
  return "(" + left + " " + std::string(oper->name) +
         (expr.sublink == SublinkKind::kAny ? " ANY " : " ALL ") + query + ")";
}

std::string Deparser::SortItem(const SortKey& key, const std::string& expression) {
  const OperatorInfo* oper = FindOperator(key.less_operator);
  std::string text = expression;
  if (oper != nullptr && oper->name != "<" && oper->name != ">")
    text += " USING OPERATOR(pg_catalog." + std::string(oper->name) + ")";
  else
    text += key.descending ? " DESC" : " ASC";
  return text + (key.nulls_first ? " NULLS FIRST" : " NULLS LAST");
}

}  // namespace sluice
