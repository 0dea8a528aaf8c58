// Row changes of one shard's table, in the order of its stream, as the wire has them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sluice {

enum class ChangeKind : uint8_t { kInsert, kUpdate, kDelete };

// One column's value in the binary wire format (types without a codec: the text format).
struct WireValue {
  static constexpr int32_t kNull = -1;
  // Not sent: an unchanged TOASTed value of an update's new row, or a column outside the key of an
  // old row.
  static constexpr int32_t kUnchanged = -2;
  const char* data = nullptr;
  int32_t length = kNull;
};

// Up to kBatchRows changes are applied at once; more are divided. The rows, and the bytes that
// values point at, are the caller's and must live until Apply has returned.
class ChangeBatch {
 public:
  explicit ChangeBatch(size_t column_count) : column_count_(column_count) {}

  // `old_row`, `new_row`: column_count values each, of the source's columns in order.
  //   insert: new_row only.   delete: old_row (key columns at least; keyless: all of them).
  //   update: new_row; old_row too where the stream has one (the key changed, or replica identity
  //   FULL), otherwise empty: the key is the new row's.
  void Add(ChangeKind kind, std::span<const WireValue> old_row, std::span<const WireValue> new_row);
  void Clear();

  size_t size() const { return kinds_.size(); }
  size_t column_count() const { return column_count_; }
  ChangeKind kind(size_t i) const { return kinds_[i]; }
  bool has_old(size_t i) const { return old_[i] != nullptr; }
  bool has_new(size_t i) const { return new_[i] != nullptr; }
  const WireValue* old_row(size_t i) const { return old_[i]; }
  const WireValue* new_row(size_t i) const { return new_[i]; }

 private:
  size_t column_count_;
  std::vector<ChangeKind> kinds_;
  std::vector<const WireValue*> old_, new_;  // first values
};

}  // namespace sluice
