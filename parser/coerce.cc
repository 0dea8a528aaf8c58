// Casts: which conversion leads from one type to another, and the expression that does it.
#include "common/bytes.h"
#include "parser/analyzer.h"
#include "parser/walk.h"
#include "types/codec.h"
#include "types/object_name.h"

namespace sluice {
namespace {

Oid ElementOf(Oid type) {
  const TypeInfo* info = FindType(type);
  if (info == nullptr || info->length != -1) return kInvalidOid;
  return info->element;
}

bool AcceptsAnything(Oid type) {
  switch (type) {
    case kAnyOid:
    case kAnyelementOid:
    case kAnynonarrayOid:
    case kAnycompatibleOid:
    case kAnycompatiblenonarrayOid:
      return true;
  }
  return false;
}

// 'text' of an enum type must be one of its labels.
void CheckEnumLabel(ParseState& p, Oid type, std::string_view text, int location) {
  auto found = p.a.context.catalog->types.find(type);
  if (found == p.a.context.catalog->types.end() || found->second.enum_labels.empty()) return;
  for (const std::string& label : found->second.enum_labels)
    if (label == text) return;
  ThrowAt(p, location, sqlstate::kInvalidTextRepresentation,
          "invalid input value for enum {}: \"{}\"", TypeText(type), text);
}

Expr* Wrap(ParseState& p, ExprKind kind, Expr* expr, Oid target, int32_t typmod, int location) {
  Expr* result = p.New(kind, target, location);
  result->typmod = typmod;
  result->explicit_cast = true;
  std::span<const Expr*> args = p.a.arena->NewArray<const Expr*>(1);
  args[0] = expr;
  result->args = args;
  return result;
}

// The literal as a constant of the type: its input function runs now.
Expr* CoerceUnknownConst(ParseState& p, const Expr& literal, Oid target, int32_t typmod) {
  Oid base = BaseType(target);
  Expr* result = p.New(ExprKind::kConst, base, literal.location);
  if (base == kIntervalOid) result->typmod = typmod;
  result->collation = TypeCollation(base);
  if (literal.is_null) {
    result->is_null = true;
    return result;
  }
  const TypeInfo* info = FindType(base);
  if (info != nullptr && (info->kind == 'p' || info->kind == 'c') && base != kCstringOid) {
    if (base == kAnyarrayOid || base == kRecordOid || info->kind == 'c')
      RefuseAt(p, literal.location, "a literal of type {}", TypeText(base));
    ThrowAt(p, literal.location, sqlstate::kFeatureNotSupported, "cannot accept a value of type {}",
            TypeText(base));
  }
  if (info != nullptr && info->kind == 'e' && p.a.context.catalog->types.contains(base)) {
    CheckEnumLabel(p, base, literal.value, literal.location);
    result->value = literal.value;
    return result;
  }
  if (!HasBinaryCodec(base) && base != kCstringOid) {
    // No input function here: a shard's has to check the text and bring it into the type's own
    // form.
    result->type = kTextOid;
    result->collation = kDefaultCollationOid;
    result->value = literal.value;
    return Wrap(p, ExprKind::kCoerceViaIo, result, base, -1, literal.location);
  }
  try {
    result->value = ParseText(base, base == kIntervalOid ? typmod : -1, literal.value,
                              *p.a.context.settings, p.a.arena);
  } catch (QueryError& e) {
    if (e.error.position == 0) e.error.position = ErrorPosition(p, literal.location);
    throw;
  }
  return result;
}

// $n takes the type that its context wants; all its occurrences must agree.
Expr* CoerceUnknownParam(ParseState& p, Expr* param, Oid target) {
  Oid& declared = (*p.a.context.param_types)[static_cast<size_t>(param->param)];
  if (declared == kInvalidOid || declared == kUnknownOid) {
    declared = target;
  } else if (declared != target) {
    QueryError e(MakeError(kAmbiguousParameter, "inconsistent types deduced for parameter ${}",
                           param->param + 1)
                     .Detail(fmt::format("{} versus {}", TypeText(declared), TypeText(target)))
                     .At(ErrorPosition(p, param->location)));
    throw e;
  }
  param->type = target;
  param->typmod = -1;
  param->collation = TypeCollation(target);
  return param;
}

Expr* CallCast(ParseState& p, Expr* expr, Oid function, Oid target, int32_t typmod,
               bool explicit_cast, int location) {
  const ProcInfo* proc = FindProc(function);
  SLUICE_ASSERT(proc != nullptr);
  Expr* call = p.New(ExprKind::kCall, target, location);
  call->function = function;
  call->explicit_cast = true;
  size_t count = std::clamp<size_t>(proc->args.size(), 1, 3);
  std::span<const Expr*> args = p.a.arena->NewArray<const Expr*>(count);
  args[0] = expr;
  if (count >= 2) {
    args[1] = MakeInt4(p, typmod, -1);
    call->typmod = typmod;
  }
  if (count >= 3) args[2] = MakeBoolConst(p, explicit_cast, -1);
  call->args = args;
  return call;
}

}  // namespace

Oid BaseType(Oid type) {
  const TypeInfo* info = FindType(type);
  while (info != nullptr && info->kind == 'd' && info->base != kInvalidOid) {
    type = info->base;
    info = FindType(type);
  }
  return type;
}

char TypeCategory(Oid type) {
  if (type == kUnknownOid) return 'X';
  const TypeInfo* info = FindType(type);
  return info == nullptr ? 'U' : info->category;
}

bool IsPreferred(Oid type) {
  const TypeInfo* info = FindType(type);
  return info != nullptr && info->preferred;
}

Oid TypeCollation(Oid type) {
  const TypeInfo* info = FindType(type);
  return info == nullptr ? kInvalidOid : info->collation;
}

std::string TypeText(Oid type) {
  return FormatTypeName(type);
}

CoercionPath FindCoercion(Oid target, Oid source, CoercionContext context, Oid* function) {
  *function = kInvalidOid;
  source = BaseType(source);
  target = BaseType(target);
  if (source == target) return CoercionPath::kRelabel;

  if (const CastInfo* cast = FindCast(source, target)) {
    bool allowed = cast->context == 'i' ||
                   (cast->context == 'a' && context != CoercionContext::kImplicit) ||
                   context == CoercionContext::kExplicit;
    if (!allowed) return CoercionPath::kNone;
    if (cast->method == 'i') return CoercionPath::kViaIo;
    if (cast->method == 'b') return CoercionPath::kRelabel;
    *function = cast->function;
    return CoercionPath::kFunction;
  }
  if (target != kOidvectorOid && target != kInt2vectorOid) {
    Oid target_element = ElementOf(target), source_element = ElementOf(source);
    if (target_element != kInvalidOid && source_element != kInvalidOid) {
      Oid element_function;
      if (FindCoercion(target_element, source_element, context, &element_function) !=
          CoercionPath::kNone) {
        *function = element_function;
        return CoercionPath::kArray;
      }
    }
  }
  if (context != CoercionContext::kImplicit && TypeCategory(target) == 'S')
    return CoercionPath::kViaIo;
  if (context == CoercionContext::kExplicit && TypeCategory(source) == 'S')
    return CoercionPath::kViaIo;
  return CoercionPath::kNone;
}

Expr* CoerceType(ParseState& p, Expr* expr, Oid target, int32_t typmod, CoercionContext context,
                 bool explicit_form, int location) {
  Oid input = expr->type;
  if (target == input || AcceptsAnything(target)) return expr;
  if (IsPolymorphic(target) && input != kUnknownOid) return expr;
  const TypeInfo* target_info = FindType(target);
  if (target_info != nullptr && target_info->kind == 'd')
    RefuseAt(p, location < 0 ? ExprLocation(*expr) : location, "casts to domain {}",
             TypeText(target));

  if (input == kUnknownOid && expr->kind == ExprKind::kConst)
    return CoerceUnknownConst(p, *expr, target, typmod);
  if (input == kUnknownOid && expr->kind == ExprKind::kParam)
    return CoerceUnknownParam(p, expr, target);
  if (expr->kind == ExprKind::kCollate) {
    Expr* inner = CoerceType(p, const_cast<Expr*>(expr->args[0]), target, typmod, context,
                             explicit_form, location);
    if (TypeCollation(target) == kInvalidOid) return inner;
    Expr* collate = Wrap(p, ExprKind::kCollate, inner, target, inner->typmod, expr->location);
    collate->collation = expr->collation;
    return collate;
  }
  bool explicit_cast = context == CoercionContext::kExplicit;
  Oid function;
  switch (FindCoercion(target, input, context, &function)) {
    case CoercionPath::kFunction:
      return CallCast(p, expr, function, target, typmod, explicit_cast, location);
    case CoercionPath::kRelabel:
      return Wrap(p, ExprKind::kRelabel, expr, target, -1, location);
    case CoercionPath::kViaIo:
      return Wrap(p, ExprKind::kCoerceViaIo, expr, target, -1, location);
    case CoercionPath::kArray: {
      Expr* array = Wrap(p, ExprKind::kArrayCoerce, expr, target, -1, location);
      Oid unused;
      array->function = function;
      array->explicit_cast = explicit_cast;
      array->param = FindCoercion(ElementOf(target), ElementOf(BaseType(input)), context,
                                  &unused) == CoercionPath::kViaIo
                         ? 1
                         : 0;
      if (function != kInvalidOid && FindProc(function)->args.size() > 1) array->typmod = typmod;
      return array;
    }
    case CoercionPath::kNone:
      break;
  }
  RefuseAt(p, location < 0 ? ExprLocation(*expr) : location, "a cast from {} to {}",
           TypeText(input), TypeText(target));
}

Expr* CoerceTypmod(ParseState& p, Expr* expr, Oid target, int32_t typmod, CoercionContext context,
                   bool, int location) {
  if (typmod == expr->typmod) return expr;
  if (typmod < 0) {
    // Nothing to compute, but the result is no longer limited.
    if (expr->kind == ExprKind::kRelabel || expr->kind == ExprKind::kConst) {
      expr->typmod = -1;
      return expr;
    }
    return Wrap(p, ExprKind::kRelabel, expr, target, -1, location);
  }
  // What has no kernels here is brought to the column's length by the shard that the row is put
  // into.
  if (context == CoercionContext::kAssignment && !HasBinaryCodec(target)) return expr;
  bool explicit_cast = context == CoercionContext::kExplicit;
  Oid element = ElementOf(target);
  const CastInfo* cast =
      element != kInvalidOid ? FindCast(element, element) : FindCast(target, target);
  if (cast == nullptr || cast->function == kInvalidOid) return expr;
  if (element == kInvalidOid)
    return CallCast(p, expr, cast->function, target, typmod, explicit_cast, location);
  Expr* array = Wrap(p, ExprKind::kArrayCoerce, expr, target, typmod, location);
  array->function = cast->function;
  array->explicit_cast = explicit_cast;
  return array;
}

Expr* CoerceToTarget(ParseState& p, Expr* expr, Oid target, int32_t typmod, CoercionContext context,
                     bool explicit_form, int location) {
  if (!CanCoerce(expr->type, target, context)) return nullptr;
  Expr* inner = expr;
  while (inner->kind == ExprKind::kCollate) inner = const_cast<Expr*>(inner->args[0]);
  Expr* result = CoerceType(p, inner, target, typmod, context, explicit_form, location);
  result = CoerceTypmod(p, result, target, typmod, context, explicit_form, location);
  if (inner != expr && TypeCollation(target) != kInvalidOid) {
    Oid collation = expr->collation;
    result = Wrap(p, ExprKind::kCollate, result, target, result->typmod, expr->location);
    result->collation = collation;
  }
  return result;
}

Expr* CoerceToBoolean(ParseState& p, Expr* expr, const char* construct) {
  return CoerceToSpecific(p, expr, kBoolOid, construct);
}

Expr* CoerceToSpecific(ParseState& p, Expr* expr, Oid target, const char* construct) {
  if (expr->type == target) return expr;
  Oid input = expr->type;
  Expr* result = CoerceToTarget(p, expr, target, -1, CoercionContext::kAssignment, false, -1);
  if (result == nullptr)
    ThrowAt(p, ExprLocation(*expr), sqlstate::kDatatypeMismatch,
            "argument of {} must be type {}, not type {}", construct, TypeText(target),
            TypeText(input));
  return result;
}

Expr* MakeConst(ParseState& p, Oid type, std::string_view text, int location) {
  Expr literal{};
  literal.kind = ExprKind::kConst;
  literal.type = kUnknownOid;
  literal.location = location;
  literal.value = p.a.arena->CopyString(text);
  return CoerceUnknownConst(p, literal, type, -1);
}

Expr* MakeNull(ParseState& p, Oid type, int location) {
  Expr* result = p.New(ExprKind::kConst, type, location);
  result->is_null = true;
  result->collation = TypeCollation(type);
  return result;
}

namespace {
template <typename T>
Expr* MakeFixed(ParseState& p, Oid type, T value, int location) {
  Expr* result = p.New(ExprKind::kConst, type, location);
  char bytes[sizeof value];
  StoreBig(bytes, value);
  result->value = p.a.arena->CopyString({bytes, sizeof value});
  return result;
}
}  // namespace

Expr* MakeInt4(ParseState& p, int32_t value, int location) {
  return MakeFixed(p, kInt4Oid, value, location);
}
Expr* MakeInt8(ParseState& p, int64_t value, int location) {
  return MakeFixed(p, kInt8Oid, value, location);
}
Expr* MakeBoolConst(ParseState& p, bool value, int location) {
  Expr* result = p.New(ExprKind::kConst, kBoolOid, location);
  result->value = value ? std::string_view("\1", 1) : std::string_view("\0", 1);
  return result;
}

}  // namespace sluice
