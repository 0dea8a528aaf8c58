// anyelement, anyarray, anycompatible and their kin: what they stand for in one call.
#include "parser/analyzer.h"

namespace sluice {
namespace {

constexpr Oid kAnymultirangeOid = 4537, kAnycompatiblerangeOid = 5080,
              kAnycompatiblemultirangeOid = 4538;

struct RangeFamily {
  Oid range, multirange, element;
};
constexpr RangeFamily kRanges[] = {
    {3904, 4451, kInt4Oid},        {3906, 4532, kNumericOid}, {3908, 4533, kTimestampOid},
    {3910, 4534, kTimestamptzOid}, {3912, 4535, kDateOid},    {3926, 4536, kInt8Oid},
};

const RangeFamily* FindRange(Oid type, Oid RangeFamily::*member) {
  for (const RangeFamily& family : kRanges)
    if (family.*member == type) return &family;
  return nullptr;
}

bool IsElementLike(Oid type) {
  return type == kAnyelementOid || type == kAnynonarrayOid || type == kAnyenumOid;
}

Oid ArrayOf(Oid element) {
  const TypeInfo* info = FindType(element);
  return info == nullptr ? kInvalidOid : info->array;
}
Oid ElementOf(Oid array) {
  const TypeInfo* info = FindType(array);
  return info == nullptr || info->length != -1 ? kInvalidOid : info->element;
}

// What the arguments say about the two families of polymorphic types.
struct Bindings {
  Oid element = kInvalidOid, array = kInvalidOid, range = kInvalidOid, multirange = kInvalidOid;
  bool any = false, any_compatible = false, non_array = false, is_enum = false;
  bool compatible_non_array = false;
  std::vector<Oid> compatible;  // candidates for anycompatible
  Oid compatible_type = kInvalidOid;
  std::string problem;  // empty: consistent
  std::string detail;
};

bool Bind(Oid* slot, Oid actual, const char* family, Bindings* b) {
  if (*slot != kInvalidOid && *slot != actual) {
    b->problem = fmt::format("arguments declared \"{}\" are not all alike", family);
    b->detail = fmt::format("{} versus {}", TypeText(*slot), TypeText(actual));
    return false;
  }
  *slot = actual;
  return true;
}

bool BindOne(Oid declared, Oid actual, Bindings* b) {
  bool unknown = actual == kUnknownOid;
  if (IsElementLike(declared)) {
    b->any = true;
    b->non_array |= declared == kAnynonarrayOid;
    b->is_enum |= declared == kAnyenumOid;
    return unknown || Bind(&b->element, actual, "anyelement", b);
  }
  switch (declared) {
    case kAnyarrayOid:
      b->any = true;
      return unknown || Bind(&b->array, BaseType(actual), "anyarray", b);
    case kAnyrangeOid:
      b->any = true;
      return unknown || Bind(&b->range, BaseType(actual), "anyrange", b);
    case kAnymultirangeOid:
      b->any = true;
      return unknown || Bind(&b->multirange, BaseType(actual), "anymultirange", b);
    case kAnycompatiblenonarrayOid:
      b->compatible_non_array = true;
      [[fallthrough]];
    case kAnycompatibleOid:
      b->any_compatible = true;
      if (!unknown) b->compatible.push_back(actual);
      return true;
    case kAnycompatiblearrayOid: {
      b->any_compatible = true;
      if (unknown) return true;
      Oid element = ElementOf(BaseType(actual));
      if (element == kInvalidOid) {
        b->problem = fmt::format("argument declared {} is not an array but type {}",
                                 "anycompatiblearray", TypeText(actual));
        return false;
      }
      b->compatible.push_back(element);
      return true;
    }
    case kAnycompatiblerangeOid:
    case kAnycompatiblemultirangeOid: {
      b->any_compatible = true;
      if (unknown) return true;
      const RangeFamily* family = FindRange(BaseType(actual), declared == kAnycompatiblerangeOid
                                                                  ? &RangeFamily::range
                                                                  : &RangeFamily::multirange);
      if (family == nullptr) {
        b->problem = fmt::format("argument declared {} is not a range type but type {}",
                                 "anycompatiblerange", TypeText(actual));
        return false;
      }
      b->compatible.push_back(family->element);
      return true;
    }
  }
  return true;
}

bool BindRange(Oid type, Oid RangeFamily::*member, const char* declared, Bindings* b) {
  if (type == kInvalidOid) return true;
  const RangeFamily* family = FindRange(type, member);
  if (family == nullptr) {
    b->problem = fmt::format("argument declared {} is not a range type but type {}", declared,
                             TypeText(type));
    return false;
  }
  if (b->element != kInvalidOid && b->element != family->element) {
    b->problem = fmt::format("argument declared {} is not consistent with argument declared {}",
                             declared, "anyelement");
    b->detail = fmt::format("{} versus {}", TypeText(type), TypeText(b->element));
    return false;
  }
  if ((b->range != kInvalidOid && b->range != family->range) ||
      (b->multirange != kInvalidOid && b->multirange != family->multirange)) {
    b->problem = fmt::format("argument declared {} is not consistent with argument declared {}",
                             "anymultirange", "anyrange");
    b->detail = fmt::format("{} versus {}", TypeText(b->multirange), TypeText(b->range));
    return false;
  }
  b->element = family->element;
  b->range = family->range;
  b->multirange = family->multirange;
  return true;
}

// The common type of the anycompatible arguments, by the rules of UNION.
bool BindCompatible(Bindings* b) {
  if (b->compatible.empty()) {
    b->compatible_type = kTextOid;
    return true;
  }
  Oid type = BaseType(b->compatible[0]);
  for (Oid other : b->compatible) {
    other = BaseType(other);
    if (other == type) continue;
    if (TypeCategory(other) != TypeCategory(type)) {
      b->problem = fmt::format("arguments of anycompatible family cannot be cast to a common type");
      return false;
    }
    if (!IsPreferred(type) && CanCoerce(type, other, CoercionContext::kImplicit) &&
        !CanCoerce(other, type, CoercionContext::kImplicit))
      type = other;
  }
  for (Oid other : b->compatible)
    if (!CanCoerce(other, type, CoercionContext::kImplicit)) {
      b->problem = fmt::format("arguments of anycompatible family cannot be cast to a common type");
      return false;
    }
  if (b->compatible_non_array && ElementOf(BaseType(type)) != kInvalidOid) {
    b->problem =
        fmt::format("type matched to anycompatiblenonarray is an array type: {}", TypeText(type));
    return false;
  }
  b->compatible_type = type;
  return true;
}

bool BindAll(std::span<const Oid> actual, std::span<const Oid> declared, Bindings* b) {
  for (size_t i = 0; i < actual.size(); i++)
    if (!BindOne(declared[i], actual[i], b)) return false;
  if (b->array != kInvalidOid && b->array != kAnyarrayOid) {
    Oid element = ElementOf(b->array);
    if (element == kInvalidOid) {
      b->problem = fmt::format("argument declared {} is not an array but type {}", "anyarray",
                               TypeText(b->array));
      return false;
    }
    if (b->element == kInvalidOid) b->element = element;
    if (b->element != element) {
      b->problem = fmt::format("argument declared {} is not consistent with argument declared {}",
                               "anyarray", "anyelement");
      b->detail = fmt::format("{} versus {}", TypeText(b->array), TypeText(b->element));
      return false;
    }
  }
  if (!BindRange(b->range, &RangeFamily::range, "anyrange", b)) return false;
  if (!BindRange(b->multirange, &RangeFamily::multirange, "anymultirange", b)) return false;
  if (b->non_array && b->element != kInvalidOid && ElementOf(BaseType(b->element)) != kInvalidOid) {
    b->problem =
        fmt::format("type matched to anynonarray is an array type: {}", TypeText(b->element));
    return false;
  }
  if (b->is_enum) {
    const TypeInfo* info = FindType(b->element);
    if (b->element == kInvalidOid || info == nullptr || info->kind != 'e') {
      b->problem =
          fmt::format("type matched to anyenum is not an enum type: {}", TypeText(b->element));
      return false;
    }
  }
  return !b->any_compatible || BindCompatible(b);
}

Oid Substitute(ParseState& p, Oid declared, const Bindings& b, int location) {
  auto require = [&](Oid type) {
    if (type == kInvalidOid)
      ThrowAt(p, -1, sqlstate::kDatatypeMismatch,
              "could not determine polymorphic type because input has type {}", "unknown");
    return type;
  };
  auto array_of = [&](Oid element) {
    Oid array = ArrayOf(require(element));
    if (array == kInvalidOid)
      ThrowAt(p, location, sqlstate::kUndefinedObject, "could not find array type for data type {}",
              TypeText(element));
    return array;
  };
  if (IsElementLike(declared)) return require(b.element);
  switch (declared) {
    case kAnyarrayOid:
      return b.array == kAnyarrayOid ? b.array : array_of(b.element);
    case kAnyrangeOid:
      return require(b.range);
    case kAnymultirangeOid:
      return require(b.multirange);
    case kAnycompatibleOid:
    case kAnycompatiblenonarrayOid:
      return b.compatible_type;
    case kAnycompatiblearrayOid:
      return array_of(b.compatible_type);
    case kAnycompatiblerangeOid:
    case kAnycompatiblemultirangeOid: {
      const RangeFamily* family = FindRange(b.compatible_type, &RangeFamily::element);
      if (family == nullptr) RefuseAt(p, location, "a range over {}", TypeText(b.compatible_type));
      return declared == kAnycompatiblerangeOid ? family->range : family->multirange;
    }
  }
  return declared;
}

}  // namespace

bool IsPolymorphic(Oid type) {
  switch (type) {
    case kAnyelementOid:
    case kAnyarrayOid:
    case kAnynonarrayOid:
    case kAnyenumOid:
    case kAnyrangeOid:
    case kAnymultirangeOid:
    case kAnycompatibleOid:
    case kAnycompatiblearrayOid:
    case kAnycompatiblenonarrayOid:
    case kAnycompatiblerangeOid:
    case kAnycompatiblemultirangeOid:
      return true;
  }
  return false;
}

bool CanCoerce(std::span<const Oid> from, std::span<const Oid> to, CoercionContext context) {
  bool polymorphic = false;
  for (size_t i = 0; i < from.size(); i++) {
    if (from[i] == to[i] || to[i] == kAnyOid) continue;
    if (IsPolymorphic(to[i])) {
      polymorphic = true;
      continue;
    }
    if (from[i] == kUnknownOid) continue;
    Oid function;
    if (FindCoercion(to[i], from[i], context, &function) == CoercionPath::kNone) return false;
  }
  if (!polymorphic) return true;
  Bindings bindings;
  return BindAll(from, to, &bindings);
}

Oid ResolvePolymorphic(ParseState& p, std::span<const Oid> actual, std::span<Oid> declared,
                       Oid result, int location) {
  bool polymorphic = IsPolymorphic(result);
  for (Oid type : declared) polymorphic = polymorphic || IsPolymorphic(type);
  if (!polymorphic) return result;
  Bindings bindings;
  if (!BindAll(actual, declared, &bindings)) {
    QueryError e(MakeError(sqlstate::kDatatypeMismatch, "{}", bindings.problem)
                     .Detail(bindings.detail)
                     .At(ErrorPosition(p, location)));
    throw e;
  }
  for (Oid& type : declared) type = Substitute(p, type, bindings, location);
  return Substitute(p, result, bindings, location);
}

}  // namespace sluice
