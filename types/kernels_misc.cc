// Arrays, bytea, and functions of any types.
#include "types/array.h"
#include "types/codec.h"
#include "types/compare.h"
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"

namespace sluice {
namespace {

using View = std::string_view;

struct Cardinality {
  int32_t operator()(View array) const {
    return static_cast<int32_t>(ArrayReader(array).header().Count());
  }
};

enum class Bound { kLength, kLower, kUpper };

// NULL where the array has no such dimension.
template <Bound kBound>
void ArrayBound(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    const ArrayHeader header = ArrayReader(call.args[0]->At<View>(i)).header();
    int32_t dimension = call.args[1]->At<int32_t>(i);
    if (dimension < 1 || dimension > header.dimensions) return SetNull(call, i);
    int32_t length = header.lengths[dimension - 1], lower = header.lower_bounds[dimension - 1];
    call.out->Data<int32_t>()[i] = kBound == Bound::kLength  ? length
                                   : kBound == Bound::kLower ? lower
                                                             : lower + length - 1;
  });
}
void ArrayDimensions(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    int dimensions = ArrayReader(call.args[0]->At<View>(i)).header().dimensions;
    if (dimensions == 0) return SetNull(call, i);
    call.out->Data<int32_t>()[i] = dimensions;
  });
}

// A one-row column to read elements through.
struct ElementSlot {
  alignas(16) char bytes[16];
  Column column;
  explicit ElementSlot(Oid type) : column{type, PhysicalOf(type), 0, nullptr, bytes} {}
  void Load(View wire) { DecodeBinaryValue(column.type, wire, &column, 0); }
};

// Whether all (or any) elements of `inner` are among those of `outer`. NULL elements equal nothing.
bool Contains(View outer, View inner, bool all) {
  ArrayReader wanted(inner);
  ElementSlot a(wanted.header().element_type), b(wanted.header().element_type);
  View element, other;
  bool is_null = false;
  while (wanted.Next(&element, &is_null)) {
    bool found = false;
    if (!is_null) {
      a.Load(element);
      ArrayReader reader(outer);
      bool other_null = false;
      while (!found && reader.Next(&other, &other_null)) {
        if (other_null) continue;
        b.Load(other);
        found = NotDistinct(a.column, 0, b.column, 0);
      }
    }
    if (found != all) return found;
  }
  return all;
}
void CheckSameElements(View a, View b) {
  if (ArrayReader(a).header().element_type != ArrayReader(b).header().element_type) {
    Throw(sqlstate::kDatatypeMismatch, "cannot compare arrays of different element types");
  }
}
struct ArrayContains {
  bool operator()(View a, View b) const { return CheckSameElements(a, b), Contains(a, b, true); }
};
struct ArrayContained {
  bool operator()(View a, View b) const { return CheckSameElements(a, b), Contains(b, a, true); }
};
struct ArrayOverlap {
  bool operator()(View a, View b) const { return CheckSameElements(a, b), Contains(a, b, false); }
};

// array_to_string: elements in order; NULLs are left out, or shown as the third argument.
void ArrayToString(const KernelCall& call) {
  std::string out;
  bool has_null_text = call.args.size() > 2;
  ForEachRow(call, [&](size_t i) {
    if (call.args[0]->IsNull(i) || call.args[1]->IsNull(i)) return SetNull(call, i);
    ArrayReader reader(call.args[0]->At<View>(i));
    View separator = call.args[1]->At<View>(i), element;
    ElementSlot slot(reader.header().element_type);
    bool is_null = false, first = true;
    out.clear();
    while (reader.Next(&element, &is_null)) {
      if (is_null && (!has_null_text || call.args[2]->IsNull(i))) continue;
      if (!first) out += separator;
      first = false;
      if (is_null) {
        out += call.args[2]->At<View>(i);
        continue;
      }
      slot.Load(element);
      AppendText(slot.column, 0, *call.context->settings, &out);
    }
    call.out->Data<View>()[i] = CopyResult(call, out);
  });
}

struct GetByte {
  int32_t operator()(View bytes, int32_t index) const {
    if (index < 0 || static_cast<size_t>(index) >= bytes.size()) {
      Throw(MakeSqlState("2202E"), "index {} out of valid range, 0..{}", index,
            static_cast<int64_t>(bytes.size()) - 1);
    }
    return static_cast<uint8_t>(bytes[static_cast<size_t>(index)]);
  }
};

template <bool kNulls>
void CountNulls(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    int32_t count = 0;
    for (const Column* arg : call.args) count += arg->IsNull(i) == kNulls;
    call.out->Data<int32_t>()[i] = count;
  });
}

constexpr Kernel kKernels[] = {
    {3179, "cardinality", true, Map<Cardinality, int32_t, View>},
    {2176, "array_length", true, ArrayBound<Bound::kLength>},
    {2091, "array_lower", true, ArrayBound<Bound::kLower>},
    {2092, "array_upper", true, ArrayBound<Bound::kUpper>},
    {748, "array_ndims", true, ArrayDimensions},
    {2748, "arraycontains", true, Map<ArrayContains, uint8_t, View, View>},
    {2749, "arraycontained", true, Map<ArrayContained, uint8_t, View, View>},
    {2747, "arrayoverlap", true, Map<ArrayOverlap, uint8_t, View, View>},
    {395, "array_to_string", true, ArrayToString},
    {384, "array_to_string", false, ArrayToString},
    {721, "get_byte", true, Map<GetByte, int32_t, View, int32_t>},
    {438, "num_nulls", false, CountNulls<true>},
    {440, "num_nonnulls", false, CountNulls<false>},
};

}  // namespace

std::span<const Kernel> MiscKernels() {
  return kKernels;
}

}  // namespace sluice
