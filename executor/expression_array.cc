// op ANY (array), op ALL (array), ARRAY[…], element-wise casts.
#include "common/error.h"
#include "executor/array_value.h"
#include "executor/expression_internal.h"
#include "types/codec.h"
#include "types/collation.h"
#include "types/compare.h"

namespace sluice {
namespace {

Oid ElementTypeOrRefuse(Oid array_type) {
  Oid element = ElementTypeOf(array_type);
  if (element == kInvalidOid || !HasBinaryCodec(array_type)) {
    Refuse("arrays of type OID {} are not supported here", array_type);
  }
  return element;
}

// The = of a type with itself (pg_proc oids): what a hash set can answer.
bool IsSameTypeEquality(Oid function) {
  constexpr Oid kEqualities[] = {60 /*bool*/,
                                 61 /*char*/,
                                 62 /*name*/,
                                 63 /*int2*/,
                                 65 /*int4*/,
                                 67 /*text*/,
                                 184 /*oid*/,
                                 287 /*float4*/,
                                 293 /*float8*/,
                                 467 /*int8*/,
                                 1048 /*bpchar*/,
                                 1086 /*date*/,
                                 1145 /*time*/,
                                 1152 /*timestamptz*/,
                                 1162 /*interval*/,
                                 1718 /*numeric*/,
                                 1948 /*bytea*/,
                                 2052 /*timestamp*/,
                                 2956 /*uuid*/};
  return std::find(std::begin(kEqualities), std::end(kEqualities), function) !=
         std::end(kEqualities);
}

bool IsSameTypeInequality(Oid function) {
  constexpr Oid kInequalities[] = {84 /*bool*/,
                                   70 /*char*/,
                                   659 /*name*/,
                                   145 /*int2*/,
                                   144 /*int4*/,
                                   157 /*text*/,
                                   185 /*oid*/,
                                   288 /*float4*/,
                                   294 /*float8*/,
                                   468 /*int8*/,
                                   1053 /*bpchar*/,
                                   1091 /*date*/,
                                   1106 /*time*/,
                                   1153 /*timestamptz*/,
                                   1163 /*interval*/,
                                   1719 /*numeric*/,
                                   1953 /*bytea*/,
                                   2053 /*timestamp*/,
                                   2959 /*uuid*/};
  return std::find(std::begin(kInequalities), std::end(kInequalities), function) !=
         std::end(kInequalities);
}

// The elements of a constant array, found by hash.
class ElementSet {
 public:
  explicit ElementSet(const Column& elements, size_t count) : elements_(elements) {
    size_t slots = std::bit_ceil(count * 2 + 1);
    slots_.assign(slots, 0);
    std::vector<uint64_t> hashes(count, 0);
    HashColumn(elements, count, hashes.data());
    for (size_t i = 0; i < count; i++) {
      if (elements.IsNull(i)) {
        has_null_ = true;
        continue;
      }
      size_t at = hashes[i] & (slots - 1);
      while (slots_[at] != 0 && !NotDistinct(elements_, slots_[at] - 1, elements_, i)) {
        at = (at + 1) & (slots - 1);
      }
      slots_[at] = static_cast<uint32_t>(i + 1);
    }
  }

  bool has_null() const { return has_null_; }
  bool Contains(const Column& column, size_t row, uint64_t hash) const {
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
      if (NotDistinct(elements_, slots_[at] - 1, column, row)) return true;
    }
    return false;
  }

 private:
  Column elements_;
  std::vector<uint32_t> slots_;  // element + 1; 0 is free
  bool has_null_ = false;
};

// ANY is an OR over the elements, ALL an AND. Rows are decided by the first element that decides.
class QuantifiedStep : public Step {
 public:
  QuantifiedStep(const Expr& expr, ExecutionState& state)
      : decisive_(expr.kind == ExprKind::kAnyOf),
        kernel_(KernelOrRefuse(expr.function)),
        collation_(expr.input_collation == kInvalidOid ? nullptr
                                                       : FindCollator(expr.input_collation)),
        settings_(state.context->settings),
        element_(ElementTypeOrRefuse(expr.args[1]->type)),
        hashable_(
            expr.args[0]->type == element_ && CanHash(element_) &&
            (decisive_ ? IsSameTypeEquality(expr.function) : IsSameTypeInequality(expr.function))),
        args_(CompileSteps(expr.args, state)),
        answer_(kBoolOid),
        out_(kBoolOid) {}

  const Column& Evaluate(const StepInput& input) override {
    const Column& left = args_[0]->Evaluate(input);
    const Column& array = args_[1]->Evaluate(input);
    out_.Clear();
    if (input.count == 0) return out_.column;
    if (!array.constant()) {
      for (size_t i = 0; i < input.count; i++) AskOneRow(left, array, input.Row(i), input.arena);
    } else if (array.IsNull(0)) {
      for (size_t i = 0; i < input.count; i++) out_.Nulls()[input.Row(i)] = 1;
    } else {
      AskConstantArray(left, array.At<std::string_view>(0), input);
    }
    return out_.column;
  }

 private:
  static constexpr size_t kHashedElementsMin = 9;

  void AskConstantArray(const Column& left, std::string_view wire, const StepInput& input) {
    if (elements_.data == nullptr || wire != decoded_) Decode(wire);
    size_t count = shape_.element_count();
    if (count > 0 && set_ == nullptr && hashable_ && count >= kHashedElementsMin) {
      set_ = std::make_unique<ElementSet>(elements_, count);
    }
    if (set_ != nullptr) {
      AskSet(left, input);
    } else {
      AskEachElement(left, count, input);
    }
  }

  // Keeps the decoded elements: the array is nearly always the same in every batch.
  void Decode(std::string_view wire) {
    arena_.Reset();
    set_ = nullptr;
    decoded_ = arena_.CopyString(wire);
    elements_ = DecodeArray(decoded_, element_, &arena_, &shape_);
  }

  void AskSet(const Column& left, const StepInput& input) {
    // Hashing asks for all rows up to the last one wanted; a NULL's data is never read by
    // HashColumn, but rows not asked for have no defined value, so gather first.
    ColumnBuffer& wanted =
        *(wanted_ ? wanted_ : wanted_ = std::make_unique<ColumnBuffer>(element_));
    const Column* asked = &left;
    if (input.rows != nullptr && !left.constant()) {
      GatherColumn(left, input.rows, input.count, &wanted);
      asked = &wanted.column;
    }
    uint64_t hashes[kBatchRows];
    std::memset(hashes, 0, sizeof(uint64_t) * input.count);
    HashColumn(*asked, input.count, hashes);
    uint8_t* values = out_.column.Data<uint8_t>();
    for (size_t i = 0; i < input.count; i++) {
      size_t row = input.Row(i);
      if (asked->IsNull(i)) {
        out_.Nulls()[row] = 1;
      } else if (set_->Contains(*asked, i, hashes[i])) {
        values[row] = decisive_;
      } else if (set_->has_null()) {
        out_.Nulls()[row] = 1;
      } else {
        values[row] = !decisive_;
      }
    }
  }

  void AskEachElement(const Column& left, size_t count, const StepInput& input) {
    uint8_t* values = out_.column.Data<uint8_t>();
    for (size_t i = 0; i < input.count; i++) values[input.Row(i)] = !decisive_;
    const uint32_t* rows = input.rows;
    size_t open = input.count;
    EvalContext context{input.arena, settings_};
    for (size_t e = 0; e < count && open > 0; e++) {
      Column element = elements_;
      element.mask = 0;
      element.data = static_cast<char*>(elements_.data) + e * WidthOf(elements_.physical);
      element.nulls = elements_.IsNull(e) ? elements_.nulls + e : nullptr;
      const Column* columns[] = {&left, &element};
      CallKernel(kernel_, columns, input.With(rows, open), collation_, &context, &answer_);
      size_t kept = 0;
      for (size_t i = 0; i < open; i++) {
        uint32_t row = rows == nullptr ? static_cast<uint32_t>(i) : rows[i];
        if (answer_.column.IsNull(row)) {
          out_.Nulls()[row] = 1;
        } else if ((answer_.column.At<uint8_t>(row) != 0) == decisive_) {
          values[row] = decisive_;
          if (out_.column.nulls != nullptr) out_.column.nulls[row] = 0;
          continue;
        }
        open_.rows[kept++] = row;
      }
      rows = open_.rows;
      open = kept;
    }
  }

  // An array of its own a row: its elements are the rows of the kernel's call, up to kBatchRows at
  // a time.
  void AskOneRow(const Column& left, const Column& array, size_t row, Arena* arena) {
    uint8_t* value = out_.column.Data<uint8_t>() + row;
    *value = !decisive_;
    if (array.IsNull(row)) {
      out_.Nulls()[row] = 1;
      return;
    }
    ArrayShape shape;
    Column elements = DecodeArray(array.At<std::string_view>(row), element_, arena, &shape);
    Column left_value = left;
    left_value.mask = 0;
    left_value.data = static_cast<char*>(left.data) + (row & left.mask) * WidthOf(left.physical);
    left_value.nulls = left.IsNull(row) ? left.nulls + (row & left.mask) : nullptr;
    EvalContext context{arena, settings_};
    bool null_seen = false;
    size_t count = shape.element_count();
    for (size_t start = 0; start < count; start += kBatchRows) {
      Column some = elements;
      some.data = static_cast<char*>(elements.data) + start * WidthOf(elements.physical);
      if (elements.nulls != nullptr) some.nulls = elements.nulls + start;
      size_t some_count = std::min(kBatchRows, count - start);
      const Column* columns[] = {&left_value, &some};
      StepInput asked{nullptr, nullptr, nullptr, some_count, arena};
      CallKernel(kernel_, columns, asked, collation_, &context, &answer_);
      for (size_t i = 0; i < some_count; i++) {
        if (answer_.column.IsNull(i)) {
          null_seen = true;
        } else if ((answer_.column.At<uint8_t>(i) != 0) == decisive_) {
          *value = decisive_;
          return;
        }
      }
    }
    if (null_seen) out_.Nulls()[row] = 1;
  }

  bool decisive_;
  const Kernel& kernel_;
  const Collator* collation_;
  const SessionSettings* settings_;
  Oid element_;
  bool hashable_;
  std::vector<StepPtr> args_;

  Arena arena_;  // of the constant array last seen
  std::string_view decoded_;
  Column elements_;
  ArrayShape shape_;
  std::unique_ptr<ElementSet> set_;
  std::unique_ptr<ColumnBuffer> wanted_;

  RowList open_;
  ColumnBuffer answer_, out_;
};

// ARRAY[a, b, …]; of arrays, a multidimensional one.
class ArrayStep : public Step {
 public:
  ArrayStep(const Expr& expr, ExecutionState& state)
      : element_(ElementTypeOrRefuse(expr.type)),
        nested_(!expr.args.empty() && ElementTypeOf(expr.args[0]->type) == element_),
        args_(CompileSteps(expr.args, state)),
        columns_(args_.size()),
        out_(expr.type) {}

  const Column& Evaluate(const StepInput& input) override {
    for (size_t i = 0; i < args_.size(); i++) columns_[i] = &args_[i]->Evaluate(input);
    out_.Clear();
    for (size_t i = 0; i < input.count; i++) {
      size_t row = input.Row(i);
      bytes_.clear();
      if (nested_) {
        Nest(row, input.arena);
      } else {
        List(row);
      }
      out_.column.Data<std::string_view>()[row] = input.arena->CopyString(bytes_);
    }
    return out_.column;
  }

 private:
  void List(size_t row) {
    ArrayShape shape;
    bool has_nulls = false;
    for (const Column* column : columns_) has_nulls |= column->IsNull(row);
    if (!columns_.empty()) shape.dimensions = {{static_cast<int32_t>(columns_.size()), 1}};
    AppendArrayHead(shape, element_, has_nulls, &bytes_);
    for (const Column* column : columns_) AppendArrayElement(*column, row, &bytes_);
  }

  void Nest(size_t row, Arena* arena) {
    ArrayShape inner;
    bool first = true, has_nulls = false;
    std::string elements;
    int32_t arrays = 0;
    for (const Column* column : columns_) {
      if (column->IsNull(row)) continue;  // as Postgres: a NULL array counts as nothing here
      ArrayShape shape;
      Column values = DecodeArray(column->At<std::string_view>(row), element_, arena, &shape);
      if (!first && !(shape == inner)) {
        Throw(MakeSqlState("2202E"),
              "multidimensional arrays must have array expressions with matching dimensions");
      }
      inner = shape;
      first = false;
      arrays++;
      for (size_t i = 0; i < shape.element_count(); i++) {
        has_nulls |= values.IsNull(i);
        AppendArrayElement(values, i, &elements);
      }
    }
    if (!inner.dimensions.empty()) inner.dimensions.insert(inner.dimensions.begin(), {arrays, 1});
    AppendArrayHead(inner, element_, has_nulls, &bytes_);
    bytes_ += elements;
  }

  Oid element_;
  bool nested_;
  std::vector<StepPtr> args_;
  std::vector<const Column*> columns_;
  std::string bytes_;
  ColumnBuffer out_;
};

// Element by element through a cast function, or none where the bytes are the same.
class ArrayCoerceStep : public Step {
 public:
  ArrayCoerceStep(const Expr& expr, ExecutionState& state)
      : cast_(expr.function == kInvalidOid ? nullptr : &KernelOrRefuse(expr.function)),
        from_(ElementTypeOrRefuse(expr.args[0]->type)),
        to_(ElementTypeOrRefuse(expr.type)),
        typmod_(expr.typmod),
        explicit_(expr.explicit_cast),
        settings_(state.context->settings),
        arg_(CompileStep(*expr.args[0], state)),
        answer_(to_),
        out_(expr.type) {}

  const Column& Evaluate(const StepInput& input) override {
    const Column& arrays = arg_->Evaluate(input);
    out_.Clear();
    size_t count = arrays.constant() && input.count > 0 ? 1 : input.count;
    for (size_t i = 0; i < count; i++) {
      size_t row = arrays.constant() ? 0 : input.Row(i);
      if (arrays.IsNull(row)) {
        out_.Nulls()[row] = 1;
      } else {
        Convert(arrays.At<std::string_view>(row), row, input.arena);
      }
    }
    if (arrays.constant()) out_.column.mask = 0;
    return out_.column;
  }

 private:
  void Convert(std::string_view wire, size_t row, Arena* arena) {
    ArrayShape shape;
    Column elements = DecodeArray(wire, from_, arena, &shape);
    size_t count = shape.element_count();
    std::string bytes;
    AppendArrayHead(shape, to_, elements.nulls != nullptr, &bytes);
    for (size_t start = 0; start < count; start += kBatchRows) {
      size_t some_count = std::min(kBatchRows, count - start);
      Column some = elements;
      some.data = static_cast<char*>(elements.data) + start * WidthOf(elements.physical);
      if (elements.nulls != nullptr) some.nulls = elements.nulls + start;
      if (cast_ == nullptr) {
        some.type = to_;
      } else {
        some = Cast(some, some_count, arena);
      }
      for (size_t i = 0; i < some_count; i++) AppendArrayElement(some, i, &bytes);
    }
    out_.column.Data<std::string_view>()[row] = arena->CopyString(bytes);
  }

  // A cast to a type with a modifier takes it, and whether it is explicit, as further arguments.
  Column Cast(const Column& elements, size_t count, Arena* arena) {
    uint8_t is_explicit = explicit_;
    Column typmod{kInt4Oid, Physical::kInt4, 0, nullptr, &typmod_};
    Column explicit_flag{kBoolOid, Physical::kBool, 0, nullptr, &is_explicit};
    const Column* columns[] = {&elements, &typmod, &explicit_flag};
    size_t argument_count = typmod_ >= 0 ? 3 : 1;
    EvalContext context{arena, settings_};
    CallKernel(*cast_, std::span(columns).first(argument_count),
               StepInput{nullptr, nullptr, nullptr, count, arena}, nullptr, &context, &answer_);
    return answer_.column;
  }

  const Kernel* cast_;
  Oid from_, to_;
  int32_t typmod_;
  bool explicit_;
  const SessionSettings* settings_;
  StepPtr arg_;
  ColumnBuffer answer_, out_;
};

}  // namespace

StepPtr CompileArrayStep(const Expr& expr, ExecutionState& state) {
  switch (expr.kind) {
    case ExprKind::kArray:
      return std::make_unique<ArrayStep>(expr, state);
    case ExprKind::kArrayCoerce:
      return std::make_unique<ArrayCoerceStep>(expr, state);
    default:
      return std::make_unique<QuantifiedStep>(expr, state);
  }
}

}  // namespace sluice
