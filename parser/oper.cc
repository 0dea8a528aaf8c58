// Finding the operator that an expression means, and building the call.
#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {
namespace {

const OperatorInfo* FindExact(std::string_view name, Oid left, Oid right) {
  for (const OperatorInfo* oper : FindOperators(name))
    if (oper->left == left && oper->right == right) return oper;
  return nullptr;
}

// One unknown side takes the other side's type, if there is such an operator.
const OperatorInfo* FindBinaryExact(std::string_view name, Oid left, Oid right) {
  bool was_unknown = false;
  if (left == kUnknownOid && right != kInvalidOid) {
    left = right;
    was_unknown = true;
  } else if (right == kUnknownOid && left != kInvalidOid) {
    right = left;
    was_unknown = true;
  }
  if (const OperatorInfo* found = FindExact(name, left, right)) return found;
  if (was_unknown) {
    Oid base = BaseType(left);
    if (base != left) return FindExact(name, base, base);
  }
  return nullptr;
}

[[noreturn]] void ThrowOperatorError(ParseState& p, std::string_view name, Oid left, Oid right,
                                     bool several, int location) {
  std::string signature = left == kInvalidOid
                              ? fmt::format("{} {}", name, TypeText(right))
                              : fmt::format("{} {} {}", TypeText(left), name, TypeText(right));
  Error e =
      several ? MakeError(sqlstate::kAmbiguousFunction, "operator is not unique: {}", signature)
                    .Hint(
                        "Could not choose a best candidate operator. You might need to add "
                        "explicit type casts.")
              : MakeError(sqlstate::kUndefinedFunction, "operator does not exist: {}", signature)
                    .Hint(left == kInvalidOid
                              ? "No operator matches the given name and argument type. You might "
                                "need to add an explicit type cast."
                              : "No operator matches the given name and argument types. You might "
                                "need to add explicit type casts.");
  throw QueryError(e.At(ErrorPosition(p, location)));
}

}  // namespace

std::string_view OperatorName(ParseState& p, RawNode** names, size_t count, int location) {
  if (count == 0) return {};
  if (count > 1 && (count > 2 || RawString(names[0]) != "pg_catalog")) {
    if (!p.a.context.catalog->HasSchema(RawString(names[0])))
      ThrowAt(p, location, sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist",
              RawString(names[0]));
    RefuseAt(p, location, "operators of schema \"{}\"", RawString(names[0]));
  }
  return RawString(names[count - 1]);
}

namespace {

// What built-in types led to: the same statement shapes come again and again, and 60 candidates for
// "=" take a while. Process-local; bounded by the number of built-in operators and types.
struct ChoiceKey {
  std::string name;
  Oid left, right;
  bool operator==(const ChoiceKey&) const = default;
};
struct ChoiceKeyHash {
  size_t operator()(const ChoiceKey& key) const {
    return std::hash<std::string>()(key.name) * 31 + key.left * 65599u + key.right;
  }
};
using ChoiceCache = std::unordered_map<ChoiceKey, const OperatorInfo*, ChoiceKeyHash>;

const OperatorInfo* SelectOperator(ParseState& p, std::string_view name, Oid left, Oid right,
                                   int location) {
  Oid pair_storage[2] = {left, right};
  std::vector<std::array<Oid, 2>> args;
  auto operators = FindOperators(name);
  args.reserve(operators.size());
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < operators.size(); i++) {
    if (operators[i]->left == kInvalidOid) continue;
    args.push_back({operators[i]->left, operators[i]->right});
    candidates.push_back({args.back(), static_cast<int>(i)});
  }
  std::span<const Oid> types(pair_storage, 2);
  candidates = MatchCandidates(types, candidates);
  if (candidates.empty()) ThrowOperatorError(p, name, left, right, false, location);
  const Candidate* best =
      candidates.size() == 1 ? &candidates[0] : SelectCandidate(types, candidates);
  if (best == nullptr) ThrowOperatorError(p, name, left, right, true, location);
  return operators[static_cast<size_t>(best->index)];
}

}  // namespace

const OperatorInfo* ChooseOperator(ParseState& p, std::string_view name, Oid left, Oid right,
                                   int location) {
  if (const OperatorInfo* exact = FindBinaryExact(name, left, right)) return exact;
  if (left >= kFirstUserOid || right >= kFirstUserOid)
    return SelectOperator(p, name, left, right, location);
  static ChoiceCache cache;
  ChoiceKey key{std::string(name), left, right};
  if (auto found = cache.find(key); found != cache.end()) return found->second;
  const OperatorInfo* chosen = SelectOperator(p, name, left, right, location);
  cache.emplace(std::move(key), chosen);
  return chosen;
}

const OperatorInfo* ChoosePrefixOperator(ParseState& p, std::string_view name, Oid right,
                                         int location) {
  if (const OperatorInfo* exact = FindExact(name, kInvalidOid, right)) return exact;
  auto operators = FindOperators(name);
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < operators.size(); i++)
    if (operators[i]->left == kInvalidOid)
      candidates.push_back({std::span(&operators[i]->right, 1), static_cast<int>(i)});
  std::span<const Oid> types(&right, 1);
  candidates = MatchCandidates(types, candidates);
  if (candidates.empty()) ThrowOperatorError(p, name, kInvalidOid, right, false, location);
  const Candidate* best =
      candidates.size() == 1 ? &candidates[0] : SelectCandidate(types, candidates);
  if (best == nullptr) ThrowOperatorError(p, name, kInvalidOid, right, true, location);
  return operators[static_cast<size_t>(best->index)];
}

Expr* MakeOperator(ParseState& p, std::string_view name, Expr* left, Expr* right, int location) {
  const OperatorInfo* oper = left == nullptr
                                 ? ChoosePrefixOperator(p, name, right->type, location)
                                 : ChooseOperator(p, name, left->type, right->type, location);
  if (oper->function == kInvalidOid)
    ThrowAt(p, location, sqlstate::kUndefinedFunction, "operator is only a shell: {}", name);
  Oid actual[2], declared[2];
  Expr* operands[2];
  size_t count = 0;
  if (left != nullptr) {
    actual[count] = left->type;
    declared[count] = oper->left;
    operands[count++] = left;
  }
  actual[count] = right->type;
  declared[count] = oper->right;
  operands[count++] = right;
  Oid result = ResolvePolymorphic(p, std::span(actual, count), std::span(declared, count),
                                  oper->result, location);
  std::span<const Expr*> args = p.a.arena->NewArray<const Expr*>(count);
  for (size_t i = 0; i < count; i++)
    args[i] = CoerceType(p, operands[i], declared[i], -1, CoercionContext::kImplicit, false, -1);
  const ProcInfo* proc = FindProc(oper->function);
  if (proc != nullptr && proc->returns_set)
    RefuseAt(p, location, "set-returning operator {}", name);
  Expr* call = p.New(ExprKind::kCall, result, location);
  call->function = oper->function;
  call->oper = oper->oid;
  call->args = args;
  return call;
}

Expr* MakeScalarArrayOperator(ParseState& p, std::string_view name, bool use_or, Expr* left,
                              Expr* right, int location) {
  Oid left_type = left->type, array_type = right->type;
  Oid element = kUnknownOid;
  if (array_type != kUnknownOid) {
    const TypeInfo* info = FindType(BaseType(array_type));
    element = info == nullptr ? kInvalidOid : info->element;
    if (element == kInvalidOid)
      ThrowAt(p, location, sqlstate::kWrongObjectType,
              "op ANY/ALL (array) requires array on right side");
  }
  const OperatorInfo* oper = ChooseOperator(p, name, left_type, element, location);
  Oid actual[2] = {left_type, element};
  Oid declared[2] = {oper->left, oper->right};
  Oid result = ResolvePolymorphic(p, actual, declared, oper->result, location);
  if (result != kBoolOid)
    ThrowAt(p, location, sqlstate::kWrongObjectType,
            "op ANY/ALL (array) requires operator to yield boolean");
  const TypeInfo* declared_element = FindType(declared[1]);
  Oid declared_array = declared_element == nullptr ? kInvalidOid : declared_element->array;
  if (declared[1] == kAnyarrayOid || declared_array == kInvalidOid)
    ThrowAt(p, location, sqlstate::kUndefinedObject, "could not find array type for data type {}",
            TypeText(declared[1]));
  std::span<const Expr*> args = p.a.arena->NewArray<const Expr*>(2);
  args[0] = CoerceType(p, left, declared[0], -1, CoercionContext::kImplicit, false, -1);
  // The array may be of a type that is binary-coercible to the operator's: text = ANY (varchar[]).
  args[1] = CoerceType(p, right, declared_array, -1, CoercionContext::kImplicit, false, -1);
  Expr* call = p.New(use_or ? ExprKind::kAnyOf : ExprKind::kAllOf, kBoolOid, location);
  call->function = oper->function;
  call->oper = oper->oid;
  call->args = args;
  return call;
}

Expr* MakeBool(ParseState& p, ExprKind kind, std::vector<const Expr*> args, int location) {
  Expr* result = p.New(kind, kBoolOid, location);
  result->args = p.a.arena->CopyArray(args);
  return result;
}

Expr* MakeDistinct(ParseState& p, Expr* left, Expr* right, int location) {
  Expr* equal = MakeOperator(p, "=", left, right, location);
  if (equal->type != kBoolOid)
    ThrowAt(p, location, sqlstate::kDatatypeMismatch,
            "IS DISTINCT FROM requires = operator to yield boolean");
  equal->kind = ExprKind::kIsDistinct;
  return equal;
}

}  // namespace sluice
