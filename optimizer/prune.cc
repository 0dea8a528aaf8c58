// Which partitions a table's conditions leave: conditions on a partition key itself, and equalities
// on all the columns of a key expression, which is then computed (`id = 7` under PARTITION BY LIST
// ((id % 4))).
#include "catalog/partition.h"
#include "common/bytes.h"
#include "common/error.h"
#include "optimizer/planning.h"
#include "parser/analyze.h"
#include "types/codec.h"

namespace sluice {
namespace {

// More combinations of key values than these are not worth computing.
constexpr size_t kCombinationsMax = 10000;

using Values = std::vector<Value>;
using Alternatives = std::vector<std::vector<KeyConstraint>>;  // OR of ANDs; empty: contradiction

const Expr* StripRelabel(const Expr* expr) {
  while (expr->kind == ExprKind::kRelabel) expr = expr->args[0];
  return expr;
}

// The elements of a one-dimensional array on the wire; NULL elements are left out: they match
// nothing.
bool ArrayElements(std::string_view wire, Values* elements) {
  if (wire.size() < 12) return false;
  int32_t dimensions = LoadBig<int32_t>(wire.data());
  if (dimensions == 0) return true;
  if (dimensions != 1 || wire.size() < 20) return false;
  int32_t count = LoadBig<int32_t>(wire.data() + 12);
  wire.remove_prefix(20);
  for (int32_t i = 0; i < count; i++) {
    if (wire.size() < 4) return false;
    int32_t length = LoadBig<int32_t>(wire.data());
    wire.remove_prefix(4);
    if (length < 0) continue;
    if (wire.size() < static_cast<size_t>(length)) return false;
    elements->push_back({false, wire.substr(0, static_cast<size_t>(length))});
    wire.remove_prefix(static_cast<size_t>(length));
  }
  return true;
}

class ConditionReader {
 public:
  explicit ConditionReader(EvaluationInput input) : input_(std::move(input)) {}

  // The only values of `subject` for which `condition` can be true; nullopt: it doesn't say.
  std::optional<Values> ValuesOf(const Expr& subject, const Expr& condition) {
    switch (condition.kind) {
      case ExprKind::kOr: {
        Values all;
        for (const Expr* arm : condition.args) {
          auto values = ValuesOf(subject, *arm);
          if (!values) return std::nullopt;
          all.insert(all.end(), values->begin(), values->end());
        }
        return all;
      }
      case ExprKind::kAnd:
        for (const Expr* part : condition.args)
          if (auto values = ValuesOf(subject, *part)) return values;
        return std::nullopt;
      case ExprKind::kIsNull:
        if (!IsSubject(subject, condition.args[0])) return std::nullopt;
        return Values{Value{}};
      case ExprKind::kCall: {
        const Expr *left, *right;
        if (!IsEquality(&condition, &left, &right)) return std::nullopt;
        if (!IsSubject(subject, left)) std::swap(left, right);
        if (!IsSubject(subject, left)) return std::nullopt;
        auto value = Converted(*right, subject.type);
        if (!value) return std::nullopt;
        return value->is_null ? Values{} : Values{*value};
      }
      case ExprKind::kAnyOf:
        return AnyOf(subject, condition);
      default:
        return std::nullopt;
    }
  }

  // subject < value and the like, added to `constraints`.
  void Range(const Expr& subject, const Expr& condition, std::vector<KeyConstraint>* constraints) {
    if (condition.kind != ExprKind::kCall || condition.args.size() != 2) return;
    const OperatorInfo* oper = FindOperator(condition.oper);
    if (oper == nullptr) return;
    const Expr *left = condition.args[0], *right = condition.args[1];
    // Another collation is another order than the partitions'.
    if (condition.input_collation != subject.collation) return;
    bool swapped = !IsSubject(subject, left);
    if (swapped) std::swap(left, right);
    if (!IsSubject(subject, left)) return;
    static constexpr std::pair<std::string_view, KeyConstraint::Kind> kKinds[] = {
        {"<", KeyConstraint::kLess},
        {"<=", KeyConstraint::kLessEqual},
        {">", KeyConstraint::kGreater},
        {">=", KeyConstraint::kGreaterEqual}};
    for (auto [name, kind] : kKinds) {
      if (oper->name != name) continue;
      auto value = Converted(*right, subject.type);
      if (!value || value->is_null) return;
      if (swapped) {
        kind = kind == KeyConstraint::kLess        ? KeyConstraint::kGreater
               : kind == KeyConstraint::kLessEqual ? KeyConstraint::kGreaterEqual
               : kind == KeyConstraint::kGreater   ? KeyConstraint::kLess
                                                   : KeyConstraint::kLessEqual;
      }
      constraints->push_back({kind, value->bytes});
    }
  }

  const EvaluationInput& input() const { return input_; }

 private:
  static bool IsSubject(const Expr& subject, const Expr* expr) {
    expr = StripRelabel(expr);
    if (subject.kind == ExprKind::kColumn)
      return expr->kind == ExprKind::kColumn && expr->levels_up == 0 && expr->rel == subject.rel &&
             expr->column == subject.column;
    return EqualExpr(&subject, expr);
  }

  // The value of `expr` as the subject's type: the same type, binary-coercible text, or an integer
  // that fits.
  std::optional<Value> Converted(const Expr& expr, Oid type) {
    auto value = EvaluateExpr(expr, input_);
    if (!value || value->is_null) return value;
    return ConvertedBytes(*value, expr.type, type);
  }

  std::optional<Value> ConvertedBytes(const Value& value, Oid from, Oid to) {
    if (from == to) return to == kBpcharOid ? std::nullopt : std::optional(value);
    auto is_text = [](Oid type) { return type == kTextOid || type == kVarcharOid; };
    if (is_text(from) && is_text(to)) return value;
    auto width = [](Oid type) {
      return type == kInt2Oid ? 2 : type == kInt4Oid ? 4 : type == kInt8Oid ? 8 : 0;
    };
    if (width(from) == 0 || width(to) == 0) return std::nullopt;
    int64_t number = width(from) == 2   ? LoadBig<int16_t>(value.bytes.data())
                     : width(from) == 4 ? LoadBig<int32_t>(value.bytes.data())
                                        : LoadBig<int64_t>(value.bytes.data());
    char bytes[8];
    if (width(to) == 2) {
      if (number != static_cast<int16_t>(number)) return std::nullopt;
      StoreBig(bytes, static_cast<int16_t>(number));
    } else if (width(to) == 4) {
      if (number != static_cast<int32_t>(number)) return std::nullopt;
      StoreBig(bytes, static_cast<int32_t>(number));
    } else {
      StoreBig(bytes, number);
    }
    return Value{false, input_.arena->CopyString({bytes, static_cast<size_t>(width(to))})};
  }

  std::optional<Values> AnyOf(const Expr& subject, const Expr& condition) {
    const OperatorInfo* oper = FindOperator(condition.oper);
    if (oper == nullptr || oper->name != "=" || !IsSubject(subject, condition.args[0]))
      return std::nullopt;
    const Expr* array = StripRelabel(condition.args[1]);
    Values values;
    if (array->kind == ExprKind::kArray) {
      for (const Expr* element : array->args) {
        auto value = Converted(*element, subject.type);
        if (!value) return std::nullopt;
        if (!value->is_null) values.push_back(*value);
      }
      return values;
    }
    Oid element_type = ElementTypeOf(array->type);
    if (element_type == kInvalidOid || !HasBinaryCodec(array->type)) return std::nullopt;
    auto wire = EvaluateExpr(*array, input_);
    if (!wire) return std::nullopt;
    if (wire->is_null) return values;
    Values elements;
    if (!ArrayElements(wire->bytes, &elements)) return std::nullopt;
    for (const Value& element : elements) {
      auto value = ConvertedBytes(element, element_type, subject.type);
      if (!value) return std::nullopt;
      values.push_back(*value);
    }
    return values;
  }

  EvaluationInput input_;
};

// The values of `key` computed from those of its columns; nullopt: some column is free, or too
// many.
std::optional<Values> ComputedValues(const Expr& key, const std::vector<const Expr*>& quals,
                                     ConditionReader& reader) {
  std::vector<const Expr*> columns;
  CollectColumns(&key, &columns);
  if (columns.empty()) return std::nullopt;
  std::vector<Values> choices;
  size_t combinations = 1;
  for (const Expr* column : columns) {
    if (!EqualMeansSame(column->type)) return std::nullopt;
    std::optional<Values> best;
    for (const Expr* qual : quals) {
      auto values = reader.ValuesOf(*column, *qual);
      if (values && (!best || values->size() < best->size())) best = values;
    }
    if (!best) return std::nullopt;
    combinations *= best->size();
    if (combinations > kCombinationsMax) return std::nullopt;
    choices.push_back(std::move(*best));
  }
  Values results;
  for (size_t combination = 0; combination < combinations; combination++) {
    EvaluationInput input = reader.input();
    input.column = [&](const Expr& column) -> std::optional<Value> {
      size_t rest = combination;
      for (size_t i = 0; i < columns.size(); i++) {
        if (EqualExpr(columns[i], &column)) return choices[i][rest % choices[i].size()];
        rest /= choices[i].size();
      }
      return std::nullopt;
    };
    auto value = EvaluateExpr(key, input);
    if (!value) return std::nullopt;
    results.push_back(*value);
  }
  return results;
}

Alternatives AlternativesOf(const Expr& key, const std::vector<const Expr*>& quals,
                            ConditionReader& reader) {
  std::optional<Values> best;
  std::vector<KeyConstraint> ranges;
  for (const Expr* qual : quals) {
    auto values = reader.ValuesOf(key, *qual);
    if (values && (!best || values->size() < best->size())) best = values;
    reader.Range(key, *qual, &ranges);
  }
  if (!best) best = ComputedValues(key, quals, reader);
  if (!best) return {ranges};
  Alternatives alternatives;
  for (const Value& value : *best) {
    alternatives.push_back(ranges);
    alternatives.back().push_back(value.is_null
                                      ? KeyConstraint{KeyConstraint::kNull, {}}
                                      : KeyConstraint{KeyConstraint::kEqual, value.bytes});
  }
  return alternatives;
}

}  // namespace

namespace {

// Key expressions outlive a statement: analysing one takes as long as the rest of a point query's
// planning. Found by all that they depend on, so that no DDL can make an entry wrong.
struct KeyCache {
  Arena arena;
  std::unordered_map<std::string, std::vector<const Expr*>> keys;
};
constexpr size_t kCachedKeysMax = 1000;

std::string CacheName(const Relation& relation) {
  std::string name = fmt::format("{}.", relation.schema);
  for (const std::string& sql : relation.key.expressions) name += sql + "\n";
  for (const ColumnInfo& column : relation.columns)
    name += fmt::format("{} {} {} {}\n", column.name, column.type, column.typmod, column.collation);
  return name;
}

}  // namespace

// Over rel 0.
const std::vector<const Expr*>& Planner::KeyExpressions(const Relation& relation) {
  auto known = key_expressions_.find(relation.oid);
  if (known != key_expressions_.end()) return known->second;
  static auto cache = std::make_unique<KeyCache>();
  std::string name = CacheName(relation);
  auto found = cache->keys.find(name);
  if (found != cache->keys.end()) return key_expressions_[relation.oid] = found->second;
  // A full cache stays as it is: plans in work point into it.
  bool keep = cache->keys.size() < kCachedKeysMax;
  std::vector<const Expr*>& keys = key_expressions_[relation.oid];
  std::vector<Oid> no_params;
  AnalyzeContext context{&catalog_, request_.session, {relation.schema, "public"}, "", "",
                         &scratch_, &no_params};
  for (const std::string& sql : relation.key.expressions) {
    const Expr* key = FoldConstants(AnalyzeExpression(sql, &relation, context), Evaluation(false));
    keys.push_back(keep ? DeepCopyExpr(key, &cache->arena) : key);
  }
  if (keep) cache->keys.emplace(std::move(name), keys);
  return keys;
}

// The same over a rel. A partition's own partitioning names its own columns: by name they are the
// root's.
const std::vector<const Expr*>& Planner::KeysOver(const QueryRel& rel, int index,
                                                  const Relation& relation) {
  auto [found, is_new] = keys_over_rels_.try_emplace({relation.oid, &rel});
  if (!is_new) return found->second;
  for (const Expr* key : KeyExpressions(relation)) {
    found->second.push_back(RewriteExpr(key, &scratch_, [&](const Expr& e, int) -> const Expr* {
      if (e.kind != ExprKind::kColumn) return nullptr;
      int column = rel.table->FindColumn(relation.columns[static_cast<size_t>(e.column)].name);
      return MakeColumn(index, column, e.type, e.typmod, e.collation, &scratch_);
    }));
  }
  return found->second;
}

std::vector<const Relation*> Planner::Prune(const QueryRel& rel, int index,
                                            const std::vector<const Expr*>& quals) {
  ConditionReader reader(Evaluation(true));
  std::vector<const Relation*> leaves;
  auto descend = [&](auto& self, const Relation& relation) -> void {
    if (relation.kind == RelationKind::kForeignTable) {
      leaves.push_back(&relation);
      return;
    }
    std::vector<bool> keep(relation.children.size(), true);
    if (relation.kind == RelationKind::kPartitioned) {
      std::vector<Alternatives> alternatives;
      size_t combinations = 1;
      for (const Expr* key : KeysOver(rel, index, relation)) {
        alternatives.push_back(AlternativesOf(*key, quals, reader));
        combinations *= alternatives.back().size();
      }
      if (combinations <= kCombinationsMax && !alternatives.empty()) {
        keep.assign(relation.children.size(), false);
        for (size_t c = 0; c < combinations; c++) {
          std::vector<std::vector<KeyConstraint>> keys;
          size_t rest = c;
          for (const Alternatives& choice : alternatives) {
            keys.push_back(choice[rest % choice.size()]);
            rest /= choice.size();
          }
          std::vector<bool> may = MatchPartitions(catalog_, relation, keys);
          for (size_t i = 0; i < keep.size(); i++) keep[i] = keep[i] || may[i];
        }
      }
    }
    for (size_t i = 0; i < relation.children.size(); i++) {
      const Relation* child = catalog_.FindRelation(relation.children[i]);
      if (keep[i] && child != nullptr) self(self, *child);
    }
  };
  // ONLY a table that Sluice made is the whole table: its leaves are no tables of their own.
  if (rel.only && rel.table->kind != RelationKind::kForeignTable && !rel.table->is_distributed())
    return leaves;
  for (const Expr* qual : quals) {
    bool never = qual->kind == ExprKind::kConst && (qual->is_null || qual->value[0] == 0);
    if (never) return leaves;
  }
  descend(descend, *rel.table);
  return leaves;
}

}  // namespace sluice
