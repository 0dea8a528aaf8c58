// Functions that make arrays of arrays and elements.
#include "types/array.h"
#include "types/codec.h"
#include "types/compare.h"
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"
#include "types/utf8.h"

namespace sluice {
namespace {

using View = std::string_view;

struct Elements {
  ArrayHeader header;
  std::vector<std::optional<std::string>> values;

  explicit Elements(Oid element_type) { header.element_type = element_type; }
  explicit Elements(View wire) {
    ArrayReader reader(wire);
    header = reader.header();
    View element;
    for (bool is_null = false; reader.Next(&element, &is_null);)
      values.push_back(is_null ? std::nullopt : std::optional<std::string>(element));
  }

  // One dimension, from `lower`; none where there are no elements.
  void MakeFlat(int32_t lower) {
    header.dimensions = values.empty() ? 0 : 1;
    header.lengths[0] = static_cast<int32_t>(values.size());
    header.lower_bounds[0] = lower;
  }

  View Wire(const KernelCall& call) const {
    std::string wire, elements;
    bool has_null = false;
    for (const auto& value : values) {
      AppendArrayElement(value ? View(*value) : View(), !value, &elements);
      has_null |= !value;
    }
    AppendArrayHeader(header, has_null, &wire);
    return CopyResult(call, wire + elements);
  }
};

std::optional<std::string> ElementOf(const Column& column, size_t row) {
  if (column.IsNull(row)) return std::nullopt;
  std::string wire;
  AppendBinary(column, row, &wire);
  return wire;
}

Elements FlatOrEmpty(const Column& array, size_t row, Oid element_type) {
  if (array.IsNull(row)) {
    Elements none(element_type);
    none.MakeFlat(1);
    return none;
  }
  Elements elements(array.At<View>(row));
  if (elements.header.dimensions > 1)
    Throw(MakeSqlState("22000"), "argument must be empty or one-dimensional array");
  if (elements.header.dimensions == 0) elements.header.lower_bounds[0] = 1;
  return elements;
}

template <bool kAtEnd>
void AddElement(const KernelCall& call) {
  const Column &array = *call.args[kAtEnd ? 0 : 1], &element = *call.args[kAtEnd ? 1 : 0];
  ForEachRow(call, [&](size_t i) {
    Elements elements = FlatOrEmpty(array, i, element.type);
    auto where = kAtEnd ? elements.values.end() : elements.values.begin();
    elements.values.insert(where, ElementOf(element, i));
    elements.MakeFlat(elements.header.lower_bounds[0]);
    call.out->Data<View>()[i] = elements.Wire(call);
  });
}

[[noreturn]] void Incompatible(const char* why) {
  throw QueryError(MakeError(MakeSqlState("2202E"), "cannot concatenate incompatible arrays")
                       .Detail(fmt::format("Arrays with differing {} are not compatible for "
                                           "concatenation.",
                                           why)));
}

// The shape of a || b: of the same dimensions, or one is an element of the other.
ArrayHeader ConcatenatedShape(const ArrayHeader& a, const ArrayHeader& b) {
  int difference = a.dimensions - b.dimensions;
  if (difference < -1 || difference > 1) {
    throw QueryError(MakeError(MakeSqlState("2202E"), "cannot concatenate incompatible arrays")
                         .Detail(fmt::format("Arrays of {} and {} dimensions are not compatible "
                                             "for concatenation.",
                                             a.dimensions, b.dimensions)));
  }
  ArrayHeader shape = difference >= 0 ? a : b;
  if (difference == 0) shape.lengths[0] = a.lengths[0] + b.lengths[0];
  if (difference != 0) shape.lengths[0]++;
  for (int d = 1; d < shape.dimensions; d++) {
    int in_a = difference < 0 ? d - 1 : d, in_b = difference > 0 ? d - 1 : d;
    if (a.lengths[in_a] != b.lengths[in_b] || a.lower_bounds[in_a] != b.lower_bounds[in_b])
      Incompatible(difference == 0 ? "element dimensions" : "dimensions");
  }
  return shape;
}

void Concatenate(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    bool no_a = call.args[0]->IsNull(i), no_b = call.args[1]->IsNull(i);
    if (no_a && no_b) return SetNull(call, i);
    View& out = call.out->Data<View>()[i];
    if (no_a || no_b) {
      out = call.args[no_a ? 1 : 0]->At<View>(i);
      return;
    }
    View left = call.args[0]->At<View>(i), right = call.args[1]->At<View>(i);
    Elements a(left), b(right);
    if (a.header.dimensions == 0 || b.header.dimensions == 0) {
      out = b.header.dimensions == 0 ? left : right;
      return;
    }
    a.header = ConcatenatedShape(a.header, b.header);
    a.values.insert(a.values.end(), b.values.begin(), b.values.end());
    out = a.Wire(call);
  });
}

// Tells for which elements of an array a value is equal, as IS NOT DISTINCT FROM does.
class Matcher {
 public:
  explicit Matcher(const Column& value)
      : value_(value), slot_{value.type, value.physical, 0, nullptr, bytes_} {}
  bool Matches(const std::optional<std::string>& element, size_t row) {
    if (!element || value_.IsNull(row)) return !element && value_.IsNull(row);
    DecodeBinaryValue(slot_.type, *element, &slot_, 0);
    return NotDistinct(slot_, 0, value_, row);
  }

 private:
  const Column& value_;
  alignas(16) char bytes_[16];
  Column slot_;
};

void RemoveElement(const KernelCall& call) {
  Matcher matcher(*call.args[1]);
  ForEachRow(call, [&](size_t i) {
    if (call.args[0]->IsNull(i)) return SetNull(call, i);
    Elements elements(call.args[0]->At<View>(i));
    if (elements.header.dimensions > 1)
      Refuse("removing elements from multidimensional arrays is not supported");
    std::erase_if(elements.values, [&](const auto& value) { return matcher.Matches(value, i); });
    elements.MakeFlat(elements.header.lower_bounds[0]);
    call.out->Data<View>()[i] = elements.Wire(call);
  });
}

void Position(const KernelCall& call) {
  Matcher matcher(*call.args[1]);
  ForEachRow(call, [&](size_t i) {
    if (call.args[0]->IsNull(i)) return SetNull(call, i);
    Elements elements(call.args[0]->At<View>(i));
    if (elements.header.dimensions > 1)
      Refuse("searching for elements in multidimensional arrays is not supported");
    int32_t lower = elements.header.lower_bounds[0], from = lower;
    if (call.args.size() > 2) {
      if (call.args[2]->IsNull(i))
        Throw(MakeSqlState("22004"), "initial position must not be null");
      from = call.args[2]->At<int32_t>(i);
    }
    for (size_t e = 0; e < elements.values.size(); e++) {
      int32_t position = lower + static_cast<int32_t>(e);
      if (position < from || !matcher.Matches(elements.values[e], i)) continue;
      call.out->Data<int32_t>()[i] = position;
      return;
    }
    SetNull(call, i);
  });
}

std::vector<View> Split(View text, const std::optional<View>& separator) {
  std::vector<View> parts;
  if (text.empty()) return parts;
  if (!separator) {
    while (!text.empty()) {
      View character = Utf8Clip(text, Utf8Length(text[0]));
      parts.push_back(character);
      text.remove_prefix(character.size());
    }
    return parts;
  }
  while (!separator->empty()) {
    size_t at = text.find(*separator);
    if (at == text.npos) break;
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator->size());
  }
  parts.push_back(text);
  return parts;
}

// string_to_array(text, separator [, text that stands for NULL]).
void StringToArray(const KernelCall& call) {
  auto optional = [&](size_t arg, size_t i) {
    bool given = call.args.size() > arg && !call.args[arg]->IsNull(i);
    return given ? std::optional<View>(call.args[arg]->At<View>(i)) : std::nullopt;
  };
  ForEachRow(call, [&](size_t i) {
    if (call.args[0]->IsNull(i)) return SetNull(call, i);
    std::optional<View> null_text = optional(2, i);
    Elements elements(kTextOid);
    for (View part : Split(call.args[0]->At<View>(i), optional(1, i))) {
      bool is_null = null_text && part == *null_text;
      elements.values.push_back(is_null ? std::nullopt : std::optional<std::string>(part));
    }
    elements.MakeFlat(1);
    call.out->Data<View>()[i] = elements.Wire(call);
  });
}

// array[i][j]: the element, or NULL where there is none. The call's type is the element's.
bool FindElement(const KernelCall& call, size_t row, View* element) {
  ArrayReader reader(call.args[0]->At<View>(row));
  const ArrayHeader& header = reader.header();
  if (static_cast<size_t>(header.dimensions) != call.args.size() - 1) return false;
  int64_t index = 0;
  for (int d = 0; d < header.dimensions; d++) {
    int64_t offset =
        int64_t{call.args[static_cast<size_t>(d) + 1]->At<int32_t>(row)} - header.lower_bounds[d];
    if (offset < 0 || offset >= header.lengths[d]) return false;
    index = index * header.lengths[d] + offset;
  }
  bool is_null = true;
  for (; index >= 0; index--)
    if (!reader.Next(element, &is_null)) return false;
  return !is_null;
}
void Subscript(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    View element;
    if (FindElement(call, i, &element))
      DecodeBinaryValue(call.out->type, element, call.out, i);
    else
      SetNull(call, i);
  });
}

constexpr Kernel kKernels[] = {
    {6179, "array_subscript_handler", true, Subscript},
    {378, "array_append", false, AddElement<true>},
    {379, "array_prepend", false, AddElement<false>},
    {383, "array_cat", false, Concatenate},
    {3167, "array_remove", false, RemoveElement},
    {3277, "array_position", false, Position},
    {3278, "array_position", false, Position},
    {394, "string_to_array", false, StringToArray},
    {376, "string_to_array", false, StringToArray},
};

}  // namespace

std::span<const Kernel> ArrayKernels() {
  return kKernels;
}

}  // namespace sluice
