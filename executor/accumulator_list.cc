// string_agg and array_agg: states that grow with their input.
#include "executor/accumulator_internal.h"
#include "executor/array_value.h"
#include "types/codec.h"

namespace sluice {
namespace {

constexpr size_t kValueBytesMax = 0x3fffffff;  // MaxAllocSize

// A growing run of bytes in the arena; room doubles.
struct GrowingBytes {
  char* data = nullptr;
  size_t size = 0, capacity = 0;

  void Append(std::string_view bytes, Arena* arena) {
    if (size + bytes.size() > kValueBytesMax) {
      throw QueryError(
          MakeError(sqlstate::kProgramLimitExceeded, "out of memory")
              .Detail(fmt::format("Cannot enlarge string buffer containing {} bytes by "
                                  "{} more bytes.",
                                  size, bytes.size())));
    }
    if (size + bytes.size() > capacity) {
      size_t bigger = std::max<size_t>({64, capacity * 2, size + bytes.size()});
      char* moved = static_cast<char*>(arena->Allocate(bigger));
      if (size > 0) std::memcpy(moved, data, size);
      data = moved;
      capacity = bigger;
    }
    if (!bytes.empty()) std::memcpy(data + size, bytes.data(), bytes.size());
    size += bytes.size();
  }
  std::string_view view() const { return {data, size}; }
};

template <typename T>
void AppendRaw(const T& value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <typename T>
T TakeRaw(std::string_view* from) {
  SLUICE_ASSERT(from->size() >= sizeof(T));
  T value;
  std::memcpy(&value, from->data(), sizeof value);
  from->remove_prefix(sizeof value);
  return value;
}

// Delimiter, value, delimiter, value, …: the first delimiter is kept, because a merge needs it, and
// left out of the result.
struct StringState {
  GrowingBytes bytes;
  uint32_t first_delimiter_bytes = 0;
  uint8_t seen = 0;
};

class StringAgg final : public StateAccumulator<StringState> {
 public:
  explicit StringAgg(Arena* arena) : arena_(arena) {}

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    const Column& value = args[0];
    const Column& delimiter = args[1];
    rows.ForEachValue(value, [&](size_t row, uint32_t group) {
      StringState& state = states_[group];
      if (!delimiter.IsNull(row)) {
        std::string_view bytes = delimiter.At<std::string_view>(row);
        if (!state.seen) state.first_delimiter_bytes = static_cast<uint32_t>(bytes.size());
        state.bytes.Append(bytes, arena_);
      }
      state.bytes.Append(value.At<std::string_view>(row), arena_);
      state.seen = 1;
    });
  }
  void Serialize(size_t group, std::string* out) override {
    const StringState& state = states_[group];
    AppendRaw(state.seen, out);
    AppendRaw(state.first_delimiter_bytes, out);
    out->append(state.bytes.view());
  }
  void Merge(const Column& states, const GroupedRows& rows) override {
    rows.ForEachValue(states, [&](size_t row, uint32_t group) {
      std::string_view from = states.At<std::string_view>(row);
      if (TakeRaw<uint8_t>(&from) == 0) return;
      uint32_t first_delimiter_bytes = TakeRaw<uint32_t>(&from);
      StringState& state = states_[group];
      if (!state.seen) state.first_delimiter_bytes = first_delimiter_bytes;
      state.bytes.Append(from, arena_);
      state.seen = 1;
    });
  }
  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena*) override {
    FinishEach<std::string_view>(first, count, out, [this](std::string_view* value, size_t group) {
      const StringState& state = states_[group];
      if (state.seen) *value = state.bytes.view().substr(state.first_delimiter_bytes);
      return state.seen != 0;
    });
  }

 private:
  Arena* arena_;
};

struct ArrayState {
  GrowingBytes elements;  // as they are in the array's binary format
  int32_t count = 0;
  uint8_t has_nulls = 0;
};

class ArrayAgg final : public StateAccumulator<ArrayState> {
 public:
  ArrayAgg(Oid element, Arena* arena) : element_(element), arena_(arena) {}

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    const Column& arg = args[0];
    rows.ForEach([&](size_t row, uint32_t group) {
      ArrayState& state = states_[group];
      scratch_.clear();
      AppendArrayElement(arg, row, &scratch_);
      state.elements.Append(scratch_, arena_);
      state.has_nulls |= arg.IsNull(row);
      state.count++;
    });
  }
  void Serialize(size_t group, std::string* out) override {
    const ArrayState& state = states_[group];
    AppendRaw(state.count, out);
    AppendRaw(state.has_nulls, out);
    out->append(state.elements.view());
  }
  void Merge(const Column& states, const GroupedRows& rows) override {
    rows.ForEachValue(states, [&](size_t row, uint32_t group) {
      std::string_view from = states.At<std::string_view>(row);
      ArrayState& state = states_[group];
      state.count += TakeRaw<int32_t>(&from);
      state.has_nulls |= TakeRaw<uint8_t>(&from);
      state.elements.Append(from, arena_);
    });
  }
  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena* arena) override {
    FinishEach<std::string_view>(first, count, out, [&](std::string_view* value, size_t group) {
      const ArrayState& state = states_[group];
      if (state.count == 0) return false;  // no row: NULL, not an empty array
      scratch_.clear();
      ArrayShape shape;
      shape.dimensions = {{state.count, 1}};
      AppendArrayHead(shape, element_, state.has_nulls != 0, &scratch_);
      size_t bytes = scratch_.size() + state.elements.size;
      char* array = static_cast<char*>(arena->Allocate(bytes, 1));
      std::memcpy(array, scratch_.data(), scratch_.size());
      std::memcpy(array + scratch_.size(), state.elements.data, state.elements.size);
      *value = {array, bytes};
      return true;
    });
  }

 private:
  Oid element_;
  Arena* arena_;
  std::string scratch_;
};

}  // namespace

std::unique_ptr<Accumulator> MakeListAccumulator(const AggregateCall& call, AggregateKind kind,
                                                 Arena* arena) {
  if (kind == AggregateKind::kStringAgg) return std::make_unique<StringAgg>(arena);
  if (ElementTypeOf(call.input_type) != kInvalidOid) {
    Refuse("array_agg over arrays is not supported here");
  }
  if (!HasBinaryCodec(call.input_type)) {
    Refuse("array_agg over type OID {} is not supported here", call.input_type);
  }
  return std::make_unique<ArrayAgg>(call.input_type, arena);
}

}  // namespace sluice
