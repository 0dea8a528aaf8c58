#include "parser/print.h"

#include "catalog/builtin.h"
#include "catalog/catalog.h"
#include "common/bytes.h"

namespace sluice {
namespace {

class Printer {
 public:
  std::string text;

  void Print(const Query& query) {
    text += "(query";
    for (const Cte& cte : query.ctes) {
      text += fmt::format(" (with {}{} refs {} ", cte.name, cte.materialized ? " materialized" : "",
                          cte.references);
      Print(*cte.query);
      text += ')';
    }
    text += " (select";
    for (const Target& target : query.targets) {
      text += target.junk ? " (junk " : fmt::format(" ({} ", target.name);
      Print(*target.expr);
      text += ')';
    }
    text += ')';
    if (query.from != nullptr) {
      text += " (from ";
      Print(query, *query.from);
      text += ')';
    }
    if (query.set_op != nullptr) Print(*query.set_op);
    Clause("where", query.where);
    Indexes("group", query.group_by);
    Clause("having", query.having);
    if (query.has_aggregates) text += " aggregated";
    if (query.distinct) text += " distinct";
    Indexes("distinct-on", query.distinct_on);
    for (const WindowClause& window : query.windows) {
      text += " (window";
      Indexes("partition", window.partition_by);
      Keys(window.order_by);
      text += fmt::format(" frame {:x}", window.frame_options);
      Clause("start", window.start_offset);
      Clause("end", window.end_offset);
      text += ')';
    }
    Keys(query.order_by);
    Clause("limit", query.limit);
    if (query.with_ties) text += " ties";
    Clause("offset", query.offset);
    text += ')';
  }

  void Print(const Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kConst:
        return Constant(expr);
      case ExprKind::kColumn:
        text += fmt::format("{}.{}", expr.rel, expr.column);
        if (expr.levels_up > 0) text += fmt::format("^{}", expr.levels_up);
        return;
      case ExprKind::kParam:
        text += fmt::format("${}:{}", expr.param + 1, FormatType(expr.type));
        return;
      case ExprKind::kExecParam:
        text += fmt::format("?{}", expr.param);
        return;
      case ExprKind::kSqlValue:
        text += fmt::format("sqlvalue{}", expr.param);
        return;
      default:
        break;
    }
    text += '(';
    text += Name(expr);
    for (const Expr* arg : expr.args) {
      text += ' ';
      Print(*arg);
    }
    if (expr.star) text += " *";
    if (expr.kind == ExprKind::kWindow) text += fmt::format(" over {}", expr.param);
    if (expr.distinct) text += " distinct";
    Clause("filter", expr.filter);
    Keys(expr.order_by);
    if (expr.aggregate_levels_up > 0) text += fmt::format(" ^{}", expr.aggregate_levels_up);
    if (expr.subquery != nullptr) {
      text += ' ';
      Print(*expr.subquery);
    }
    text += ')';
  }

 private:
  void Clause(const char* name, const Expr* expr) {
    if (expr == nullptr) return;
    text += fmt::format(" ({} ", name);
    Print(*expr);
    text += ')';
  }
  void Indexes(const char* name, std::span<const int> indexes) {
    if (indexes.empty()) return;
    text += fmt::format(" ({}", name);
    for (int index : indexes) text += fmt::format(" {}", index);
    text += ')';
  }
  void Keys(std::span<const SortKey> keys) {
    if (keys.empty()) return;
    text += " (order";
    for (const SortKey& key : keys) {
      text += ' ';
      if (key.expr != nullptr)
        Print(*key.expr);
      else
        text += fmt::format("{}", key.target);
      text += key.descending ? ">" : "<";
      if (key.nulls_first) text += "nulls-first";
    }
    text += ')';
  }

  void Print(const Query& query, const JoinTree& tree) {
    if (tree.is_leaf) return Rel(query.rels[static_cast<size_t>(tree.rel)]);
    static constexpr const char* kJoins[] = {"join", "left", "right", "full", "semi", "anti"};
    text +=
        fmt::format("({}{} ", kJoins[static_cast<int>(tree.type)], tree.lateral ? " lateral" : "");
    Print(query, *tree.left);
    text += ' ';
    Print(query, *tree.right);
    Clause("on", tree.on);
    text += ')';
  }

  void Rel(const QueryRel& rel) {
    switch (rel.kind) {
      case RelKind::kTable:
        text += fmt::format("{}{}", rel.only ? "only " : "", rel.alias);
        break;
      case RelKind::kVirtual:
        text += fmt::format("(virtual {})", rel.virtual_name);
        break;
      case RelKind::kCte:
        text += fmt::format("(cte {}^{})", rel.cte, rel.cte_levels_up);
        break;
      case RelKind::kSubquery:
        text += fmt::format("({} ", rel.alias);
        Print(*rel.subquery);
        text += ')';
        break;
      case RelKind::kFunction:
        text += fmt::format("({} ", rel.alias);
        Print(*rel.function);
        text += rel.ordinality ? " ordinality)" : ")";
        break;
      case RelKind::kValues:
        text += "(values";
        for (auto row : rel.values) {
          text += " (";
          for (size_t i = 0; i < row.size(); i++) {
            if (i > 0) text += ' ';
            Print(*row[i]);
          }
          text += ')';
        }
        text += ')';
        break;
    }
  }

  void Print(const SetOpTree& tree) {
    if (tree.leaf != nullptr) {
      text += ' ';
      return Print(*tree.leaf);
    }
    static constexpr const char* kOps[] = {"union", "intersect", "except"};
    text += fmt::format(" ({}{}", kOps[static_cast<int>(tree.kind)], tree.all ? " all" : "");
    Print(*tree.left);
    Print(*tree.right);
    text += ')';
  }

  void Constant(const Expr& expr) {
    if (expr.is_null) {
      text += fmt::format("null:{}", FormatType(expr.type));
      return;
    }
    switch (expr.type) {
      case kInt4Oid:
        text += fmt::format("{}", LoadBig<int32_t>(expr.value.data()));
        return;
      case kInt8Oid:
        text += fmt::format("{}:bigint", LoadBig<int64_t>(expr.value.data()));
        return;
      case kBoolOid:
        text += expr.value[0] != 0 ? "true" : "false";
        return;
      case kTextOid:
      case kUnknownOid:
      case kVarcharOid:
      case kBpcharOid:
        text += fmt::format("'{}'", expr.value);
        if (expr.type != kTextOid) text += fmt::format(":{}", FormatType(expr.type));
        return;
      default:
        text += fmt::format("const:{}", FormatType(expr.type));
        return;
    }
  }

  static std::string Name(const Expr& expr) {
    auto function = [&] {
      if (const OperatorInfo* oper = FindOperator(expr.oper)) return std::string(oper->name);
      const ProcInfo* proc = FindProc(expr.function);
      return proc != nullptr ? std::string(proc->name) : std::to_string(expr.function);
    };
    switch (expr.kind) {
      case ExprKind::kCall:
      case ExprKind::kAggregate:
      case ExprKind::kWindow:
        return function();
      case ExprKind::kAnd:
        return "and";
      case ExprKind::kOr:
        return "or";
      case ExprKind::kNot:
        return "not";
      case ExprKind::kIsNull:
        return "is-null";
      case ExprKind::kIsNotNull:
        return "is-not-null";
      case ExprKind::kIsTrue:
        return "is-true";
      case ExprKind::kIsNotTrue:
        return "is-not-true";
      case ExprKind::kIsFalse:
        return "is-false";
      case ExprKind::kIsNotFalse:
        return "is-not-false";
      case ExprKind::kIsUnknown:
        return "is-unknown";
      case ExprKind::kIsNotUnknown:
        return "is-not-unknown";
      case ExprKind::kIsDistinct:
        return "distinct-from";
      case ExprKind::kIsNotDistinct:
        return "not-distinct-from";
      case ExprKind::kCase:
        return "case";
      case ExprKind::kCoalesce:
        return "coalesce";
      case ExprKind::kGreatest:
        return "greatest";
      case ExprKind::kLeast:
        return "least";
      case ExprKind::kNullIf:
        return "nullif";
      case ExprKind::kRelabel:
        return "relabel:" + FormatType(expr.type);
      case ExprKind::kCoerceViaIo:
        return "via-io:" + FormatType(expr.type);
      case ExprKind::kArrayCoerce:
        return "array-cast:" + FormatType(expr.type);
      case ExprKind::kAnyOf:
        return function() + "any";
      case ExprKind::kAllOf:
        return function() + "all";
      case ExprKind::kArray:
        return "array:" + FormatType(expr.type);
      case ExprKind::kRow:
        return "row";
      case ExprKind::kCollate:
        return "collate";
      case ExprKind::kSubquery: {
        static constexpr const char* kNames[] = {"exists", "any", "all", "scalar", "array-of"};
        std::string name = kNames[static_cast<int>(expr.sublink)];
        for (Oid oper : expr.sublink_operators) name += std::string(FindOperator(oper)->name);
        return name;
      }
      default:
        return "?";
    }
  }
};

}  // namespace

std::string PrintExpr(const Expr& expr) {
  Printer printer;
  printer.Print(expr);
  return std::move(printer.text);
}

std::string PrintQuery(const Query& query) {
  Printer printer;
  printer.Print(query);
  return std::move(printer.text);
}

}  // namespace sluice
