// The one type of several expressions: CASE, COALESCE, UNION, VALUES, IN, ARRAY[…], JOIN USING.
#include <strings.h>

#include "common/bytes.h"
#include "parser/analyzer.h"
#include "parser/walk.h"
#include "types/codec.h"

namespace sluice {

Oid SelectCommonType(ParseState& p, std::span<Expr* const> exprs, const char* context,
                     Expr** which) {
  SLUICE_ASSERT(!exprs.empty());
  Expr* chosen = exprs[0];
  Oid type = chosen->type;
  if (type != kUnknownOid) {
    bool all_same = true;
    for (Expr* expr : exprs) all_same = all_same && expr->type == type;
    if (all_same) {
      if (which != nullptr) *which = chosen;
      return type;
    }
  }
  type = BaseType(type);
  char category = TypeCategory(type);
  bool preferred = IsPreferred(type);
  for (Expr* expr : exprs.subspan(1)) {
    Oid next = BaseType(expr->type);
    if (next == kUnknownOid || next == type) continue;
    char next_category = TypeCategory(next);
    if (type == kUnknownOid) {
      chosen = expr;
      type = next;
      category = next_category;
      preferred = IsPreferred(next);
    } else if (next_category != category) {
      if (context == nullptr) return kInvalidOid;
      ThrowAt(p, ExprLocation(*expr), sqlstate::kDatatypeMismatch,
              "{} types {} and {} cannot be matched", context, TypeText(type), TypeText(next));
    } else if (!preferred && CanCoerce(type, next, CoercionContext::kImplicit) &&
               !CanCoerce(next, type, CoercionContext::kImplicit)) {
      chosen = expr;
      type = next;
      category = next_category;
      preferred = IsPreferred(next);
    }
  }
  if (type == kUnknownOid) type = kTextOid;
  if (which != nullptr) *which = chosen;
  return type;
}

int32_t SelectCommonTypmod(std::span<Expr* const> exprs, Oid common) {
  int32_t typmod = -1;
  bool first = true;
  for (Expr* expr : exprs) {
    if (expr->type != common) return -1;
    if (!first && expr->typmod != typmod) return -1;
    typmod = expr->typmod;
    first = false;
  }
  return typmod;
}

Expr* CoerceToCommon(ParseState& p, Expr* expr, Oid target, const char* context) {
  if (expr->type == target) return expr;
  if (!CanCoerce(expr->type, target, CoercionContext::kImplicit))
    ThrowAt(p, ExprLocation(*expr), sqlstate::kCannotCoerce, "{} could not convert type {} to {}",
            context, TypeText(expr->type), TypeText(target));
  return CoerceType(p, expr, target, -1, CoercionContext::kImplicit, false, -1);
}

namespace {

void AppendInt4(std::string* to, int32_t value) {
  char bytes[4];
  StoreBig(bytes, value);
  to->append(bytes, 4);
}

// An array's binary format: dimensions, whether there are NULLs, element type, then length and
// lower bound of the one dimension, then the elements.
void AppendBinaryArray(const Expr& array, Oid element, std::string* to) {
  bool has_null =
      std::any_of(array.args.begin(), array.args.end(), [](const Expr* e) { return e->is_null; });
  AppendInt4(to, array.args.empty() ? 0 : 1);
  AppendInt4(to, has_null ? 1 : 0);
  AppendInt4(to, static_cast<int32_t>(element));
  if (array.args.empty()) return;
  AppendInt4(to, static_cast<int32_t>(array.args.size()));
  AppendInt4(to, 1);
  for (const Expr* e : array.args) {
    AppendInt4(to, e->is_null ? -1 : static_cast<int32_t>(e->value.size()));
    if (!e->is_null) to->append(e->value);
  }
}

// Quoted where array_out() quotes.
void AppendElement(std::string_view value, std::string* to) {
  bool is_null_word = value.size() == 4 && strncasecmp(value.data(), "null", 4) == 0;
  bool quote =
      value.empty() || is_null_word || value.find_first_of("{},\"\\ \t\n\r\v\f") != value.npos;
  if (!quote) {
    *to += value;
    return;
  }
  *to += '"';
  for (char c : value) {
    if (c == '"' || c == '\\') *to += '\\';
    *to += c;
  }
  *to += '"';
}

void AppendTextArray(const Expr& array, std::string* to) {
  *to += '{';
  for (size_t i = 0; i < array.args.size(); i++) {
    if (i > 0) *to += ',';
    if (array.args[i]->is_null) {
      *to += "NULL";
      continue;
    }
    AppendElement(array.args[i]->value, to);
  }
  *to += '}';
}

}  // namespace

Expr* FoldArray(ParseState& p, Expr* array) {
  const TypeInfo* info = FindType(array->type);
  Oid element = info == nullptr ? kInvalidOid : info->element;
  for (const Expr* e : array->args)
    if (e->kind != ExprKind::kConst || e->type != element) return array;
  std::string value;
  bool binary = HasBinaryCodec(array->type);
  if (binary != HasBinaryCodec(element)) return array;
  if (binary)
    AppendBinaryArray(*array, element, &value);
  else if (element == 603)
    return array;  // box: the one type whose arrays are delimited by a semicolon
  else
    AppendTextArray(*array, &value);
  Expr* result = p.New(ExprKind::kConst, array->type, array->location);
  result->collation = TypeCollation(array->type);
  result->value = p.a.arena->CopyString(value);
  return result;
}

}  // namespace sluice
