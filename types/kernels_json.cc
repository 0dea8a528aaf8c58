// -> and ->> of json and jsonb, and what their values are.
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

constexpr Kernel kKernels[] = {
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
