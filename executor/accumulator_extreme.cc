// min and max.
#include "executor/accumulator_internal.h"
#include "executor/row_comparator.h"
#include "types/compare.h"

namespace sluice {
namespace {

template <typename T>
struct FixedState {
  T value{};
  uint8_t seen = 0;
};

// Types that C++ orders as Postgres does.
template <typename T>
class NativeExtreme final : public RawAccumulator<FixedState<T>> {
 public:
  explicit NativeExtreme(bool maximum) : maximum_(maximum) {}

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    const Column& arg = args[0];
    rows.ForEachValue(arg, [&](size_t row, uint32_t group) {
      MergeState(&this->states_[group], {arg.At<T>(row), 1});
    });
  }
  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena*) override {
    FinishEach<T>(first, count, out, [this](T* value, size_t group) {
      *value = this->states_[group].value;
      return this->states_[group].seen != 0;
    });
  }

 protected:
  void MergeState(FixedState<T>* state, const FixedState<T>& other) override {
    if (!other.seen) return;
    if (!state->seen || (maximum_ ? state->value < other.value : other.value < state->value)) {
      *state = other;
    }
  }

 private:
  bool maximum_;
};

// Any type with a comparison. Values are kept as bytes in the arena; a state's room grows by
// doubling, so what a shrinking minimum leaves behind stays bounded.
struct AnyState {
  char* data = nullptr;
  uint32_t size = 0, capacity = 0;
  uint8_t seen = 0;
};

class AnyExtreme final : public StateAccumulator<AnyState> {
 public:
  AnyExtreme(Oid type, Oid collation, bool maximum, Arena* arena)
      : type_(type),
        physical_(PhysicalOf(type)),
        width_(WidthOf(physical_)),
        maximum_(maximum),
        compare_(FindCompare(type)),
        collation_(CollatorOrNull(collation)),
        arena_(arena) {
    if (compare_ == nullptr) Refuse("ordering values of type OID {} is not supported here", type);
  }

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    rows.ForEachValue(args[0], [&](size_t row, uint32_t group) { Offer(args[0], row, group); });
  }

  void Serialize(size_t group, std::string* out) override {
    const AnyState& state = states_[group];
    out->push_back(static_cast<char>(state.seen));
    out->append(state.data, state.size);
  }
  void Merge(const Column& states, const GroupedRows& rows) override {
    rows.ForEachValue(states, [&](size_t row, uint32_t group) {
      std::string_view bytes = states.At<std::string_view>(row);
      SLUICE_ASSERT(!bytes.empty());
      if (bytes[0] == 0) return;
      bytes.remove_prefix(1);
      // Alignment: the bytes follow a flag.
      alignas(16) char value[16];
      Column column{type_, physical_, 0, nullptr, value};
      if (physical_ == Physical::kBytes) {
        new (value) std::string_view(bytes);
      } else {
        std::memcpy(value, bytes.data(), width_);
      }
      Offer(column, 0, group);
    });
  }

  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena*) override {
    out->Clear();
    char* values = static_cast<char*>(out->column.data);
    for (size_t i = 0; i < count; i++) {
      const AnyState& state = states_[first + i];
      if (!state.seen) {
        out->Nulls()[i] = 1;
        std::memset(values + i * width_, 0, width_);
      } else if (physical_ == Physical::kBytes) {
        new (values + i * width_) std::string_view(state.data, state.size);
      } else {
        std::memcpy(values + i * width_, state.data, width_);
      }
    }
  }

 private:
  void Offer(const Column& column, size_t row, uint32_t group) {
    AnyState& state = states_[group];
    if (state.seen) {
      std::string_view kept_view(state.data, state.size);
      Column kept{type_, physical_, 0, nullptr,
                  physical_ == Physical::kBytes ? static_cast<void*>(&kept_view) : state.data};
      int order = compare_(column, row, kept, 0, collation_);
      if (maximum_ ? order <= 0 : order >= 0) return;
    }
    std::string_view bytes;
    if (physical_ == Physical::kBytes) {
      bytes = column.At<std::string_view>(row);
    } else {
      bytes = {static_cast<const char*>(column.data) + (row & column.mask) * width_, width_};
    }
    if (bytes.size() > state.capacity || state.data == nullptr) {
      state.capacity = static_cast<uint32_t>(std::max<size_t>(16, bytes.size() + bytes.size() / 2));
      state.data = static_cast<char*>(arena_->Allocate(state.capacity));
    }
    if (!bytes.empty()) std::memcpy(state.data, bytes.data(), bytes.size());
    state.size = static_cast<uint32_t>(bytes.size());
    state.seen = 1;
  }

  Oid type_;
  Physical physical_;
  size_t width_;
  bool maximum_;
  CompareFn compare_;
  const Collator* collation_;
  Arena* arena_;
};

}  // namespace

std::unique_ptr<Accumulator> MakeExtremeAccumulator(const AggregateCall& call, bool maximum,
                                                    Arena* arena) {
  switch (PhysicalOf(call.input_type)) {
    case Physical::kInt2:
      return std::make_unique<NativeExtreme<int16_t>>(maximum);
    case Physical::kInt4:
      return std::make_unique<NativeExtreme<int32_t>>(maximum);
    case Physical::kInt8:
      return std::make_unique<NativeExtreme<int64_t>>(maximum);
    case Physical::kUint4:
      return std::make_unique<NativeExtreme<uint32_t>>(maximum);
    default:
      return std::make_unique<AnyExtreme>(call.input_type, call.collation, maximum, arena);
  }
}

}  // namespace sluice
