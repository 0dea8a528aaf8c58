// -> and ->> of json and jsonb, and what their values are.
#include "types/array.h"
#include "types/codec.h"
#include "types/json.h"
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"

namespace sluice {
namespace {

using View = std::string_view;

// The JSON text of a json or jsonb value.
template <bool kBinary>
View TextOf(View value) {
  return kBinary ? value.substr(1) : value;
}

bool Find(View text, View key, bool, View* value) {
  return FindJsonMember(text, key, value);
}
bool Find(View text, int32_t index, bool binary, View* value) {
  // To jsonb a scalar is an array of one.
  JsonKind kind = JsonKindOf(text);
  if (binary && kind != JsonKind::kArray && kind != JsonKind::kObject) {
    *value = text;
    return index == 0 || index == -1;
  }
  return FindJsonElement(text, index, value);
}

template <typename Key, bool kBinary>
void Get(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    View found;
    if (!Find(TextOf<kBinary>(call.args[0]->At<View>(i)), call.args[1]->At<Key>(i), kBinary,
              &found)) {
      return SetNull(call, i);
    }
    if (!kBinary) {
      call.out->Data<View>()[i] = found;
      return;
    }
    char* to = static_cast<char*>(call.context->arena->Allocate(found.size() + 1, 1));
    to[0] = 1;
    std::memcpy(to + 1, found.data(), found.size());
    call.out->Data<View>()[i] = View(to, found.size() + 1);
  });
}

template <typename Key, bool kBinary>
void GetText(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    View found;
    bool ok =
        Find(TextOf<kBinary>(call.args[0]->At<View>(i)), call.args[1]->At<Key>(i), kBinary, &found);
    if (!ok || JsonKindOf(found) == JsonKind::kNull) return SetNull(call, i);
    bool string = JsonKindOf(found) == JsonKind::kString;
    call.out->Data<View>()[i] = string ? CopyResult(call, DecodeJsonString(found)) : found;
  });
}

template <bool kBinary>
struct TypeOf {
  View operator()(View value) const {
    switch (JsonKindOf(TextOf<kBinary>(value))) {
      case JsonKind::kObject:
        return "object";
      case JsonKind::kArray:
        return "array";
      case JsonKind::kString:
        return "string";
      case JsonKind::kNumber:
        return "number";
      case JsonKind::kBoolean:
        return "boolean";
      case JsonKind::kNull:
        break;
    }
    return "null";
  }
};

template <bool kBinary>
struct ArrayLength {
  int32_t operator()(View value) const {
    View text = TextOf<kBinary>(value);
    JsonKind kind = JsonKindOf(text);
    if (kind != JsonKind::kArray) {
      Throw(sqlstate::kInvalidParameterValue, "cannot get array length of a {}",
            kind == JsonKind::kObject ? "non-array" : "scalar");
    }
    return static_cast<int32_t>(JsonArrayLength(text));
  }
};

// --- values as JSON: to_json and the functions that build objects and arrays of any values

void AppendAsJson(const Column& value, size_t row, const SessionSettings& settings,
                  std::string* out);

// The elements of one dimension, from where the reader is.
void AppendArrayLevel(ArrayReader* reader, int dimension, Column* slot,
                      const SessionSettings& settings, std::string* out) {
  const ArrayHeader& header = reader->header();
  *out += '[';
  for (int32_t i = 0; i < header.lengths[dimension]; i++) {
    if (i > 0) *out += ',';
    if (dimension + 1 < header.dimensions) {
      AppendArrayLevel(reader, dimension + 1, slot, settings, out);
      continue;
    }
    View element;
    bool is_null = false;
    reader->Next(&element, &is_null);
    if (is_null) {
      *out += "null";
    } else {
      DecodeBinaryValue(slot->type, element, slot, 0);
      AppendAsJson(*slot, 0, settings, out);
    }
  }
  *out += ']';
}

void AppendArrayAsJson(View wire, const SessionSettings& settings, std::string* out) {
  ArrayReader reader(wire);
  if (reader.header().dimensions == 0) {
    *out += "[]";
    return;
  }
  alignas(16) char bytes[16];
  Oid type = reader.header().element_type;
  Column slot{type, PhysicalOf(type), 0, nullptr, bytes};
  AppendArrayLevel(&reader, 0, &slot, settings, out);
}

// Dates as in XML Schema, whatever DateStyle says: 2024-01-31T10:00:00+00:00.
std::string JsonTime(const Column& value, size_t row, const SessionSettings& settings) {
  SessionSettings iso = settings;
  iso.date_style = 0;
  std::string text;
  AppendText(value, row, iso, &text);
  size_t space = text.find(' ');
  if (space != text.npos) text[space] = 'T';
  bool short_zone = value.type == kTimestamptzOid && text.size() > 3 &&
                    (text[text.size() - 3] == '+' || text[text.size() - 3] == '-');
  return short_zone ? text + ":00" : text;
}

void AppendAsJson(const Column& value, size_t row, const SessionSettings& settings,
                  std::string* out) {
  if (value.IsNull(row)) {
    *out += "null";
    return;
  }
  std::string text;
  switch (value.type) {
    case kBoolOid:
      *out += value.At<uint8_t>(row) ? "true" : "false";
      return;
    case kInt2Oid:
    case kInt4Oid:
    case kInt8Oid:
    case kFloat4Oid:
    case kFloat8Oid:
    case kNumericOid:
      AppendText(value, row, settings, &text);
      // NaN and the infinities are no JSON numbers.
      if (text.find_first_of("Nn") != text.npos) text = '"' + text + '"';
      *out += text;
      return;
    case kJsonOid:
    case kJsonbOid:
      AppendText(value, row, settings, out);
      return;
    case kDateOid:
    case kTimestampOid:
    case kTimestamptzOid:
      AppendJsonString(JsonTime(value, row, settings), out);
      return;
  }
  if (ElementTypeOf(value.type) != kInvalidOid)
    return AppendArrayAsJson(value.At<View>(row), settings, out);
  AppendText(value, row, settings, &text);
  AppendJsonString(text, out);
}

// json as it was built, jsonb in its normal form.
View JsonResult(const KernelCall& call, const std::string& text) {
  if (call.out->type != kJsonbOid) return CopyResult(call, text);
  return CopyResult(call, "\x01" + NormalizeJsonb(text));
}

void ToJson(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    std::string text;
    AppendAsJson(*call.args[0], i, *call.context->settings, &text);
    call.out->Data<View>()[i] = JsonResult(call, text);
  });
}

void BuildArray(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    std::string text = "[";
    for (const Column* arg : call.args) {
      if (text.size() > 1) text += ", ";
      AppendAsJson(*arg, i, *call.context->settings, &text);
    }
    call.out->Data<View>()[i] = JsonResult(call, text + "]");
  });
}

void AppendKey(const KernelCall& call, size_t arg, size_t row, std::string* out) {
  const Column& key = *call.args[arg];
  if (key.IsNull(row)) {
    if (call.out->type == kJsonbOid)
      Throw(sqlstate::kInvalidParameterValue, "argument {}: key must not be null", arg + 1);
    throw QueryError(
        MakeError(sqlstate::kInvalidParameterValue, "argument {} cannot be null", arg + 1)
            .Hint("Object keys should be text."));
  }
  if (ElementTypeOf(key.type) != kInvalidOid || key.type == kJsonOid || key.type == kJsonbOid)
    Throw(sqlstate::kInvalidParameterValue,
          "key value must be scalar, not array, composite, or json");
  std::string text;
  AppendText(key, row, *call.context->settings, &text);
  if (key.type == kBoolOid) text = text == "t" ? "true" : "false";
  AppendJsonString(text, out);
}

void BuildObject(const KernelCall& call) {
  if (call.args.size() % 2 != 0)
    throw QueryError(
        MakeError(sqlstate::kInvalidParameterValue,
                  "argument list must have even number of elements")
            .Hint(fmt::format(
                "The arguments of {}() must consist of alternating keys and values.",
                call.out->type == kJsonbOid ? "jsonb_build_object" : "json_build_object")));
  ForEachRow(call, [&](size_t i) {
    std::string text = "{";
    for (size_t arg = 0; arg < call.args.size(); arg += 2) {
      if (arg > 0) text += ", ";
      AppendKey(call, arg, i, &text);
      text += " : ";
      AppendAsJson(*call.args[arg + 1], i, *call.context->settings, &text);
    }
    call.out->Data<View>()[i] = JsonResult(call, text + "}");
  });
}

constexpr Kernel kKernels[] = {
    {3176, "to_json", true, ToJson},
    {3787, "to_jsonb", true, ToJson},
    {3198, "json_build_array", false, BuildArray},
    {3199, "json_build_array", false, BuildArray},
    {3200, "json_build_object", false, BuildObject},
    {3201, "json_build_object", false, BuildObject},
    {3271, "jsonb_build_array", false, BuildArray},
    {3272, "jsonb_build_array", false, BuildArray},
    {3273, "jsonb_build_object", false, BuildObject},
    {3274, "jsonb_build_object", false, BuildObject},
    {3947, "json_object_field", true, Get<View, false>},
    {3948, "json_object_field_text", true, GetText<View, false>},
    {3949, "json_array_element", true, Get<int32_t, false>},
    {3950, "json_array_element_text", true, GetText<int32_t, false>},
    {3478, "jsonb_object_field", true, Get<View, true>},
    {3214, "jsonb_object_field_text", true, GetText<View, true>},
    {3215, "jsonb_array_element", true, Get<int32_t, true>},
    {3216, "jsonb_array_element_text", true, GetText<int32_t, true>},
    {3968, "json_typeof", true, Map<TypeOf<false>, View, View>},
    {3210, "jsonb_typeof", true, Map<TypeOf<true>, View, View>},
    {3956, "json_array_length", true, Map<ArrayLength<false>, int32_t, View>},
    {3207, "jsonb_array_length", true, Map<ArrayLength<true>, int32_t, View>},
};

}  // namespace

std::span<const Kernel> JsonKernels() {
  return kKernels;
}

}  // namespace sluice
