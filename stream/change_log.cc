#include "stream/change_log.h"

namespace sluice {
namespace {

constexpr size_t kEntryBytes = 64 * 1024;
constexpr size_t kTrimEntries = 1000;

}  // namespace

ChangeLog::ChangeLog(StoreTransaction* transaction, Oid view, ChangeLogMark mark, bool create)
    : table_(transaction, ChangeLogName(view), create), mark_(mark) {}

void ChangeLog::Append(uint64_t epoch, int64_t now_us,
                       std::span<const DeltaBuffer::Entry> changes) {
  if (epoch != epoch_) number_ = 0;
  epoch_ = epoch;
  std::string value;
  auto write = [&] {
    if (!value.empty()) table_.Append(ChangeLogKey(epoch, ++number_), value);
    value.clear();
  };
  for (const DeltaBuffer::Entry& change : changes) {
    if (value.size() >= kEntryBytes) write();
    if (value.empty()) AppendVarint(static_cast<uint64_t>(now_us), &value);
    bool gone = change.weight < 0;
    AppendVarint(static_cast<uint64_t>(gone ? -change.weight : change.weight) << 1 | (gone ? 1 : 0),
                 &value);
    AppendVarint(change.row.size(), &value);
    value.append(change.row);
  }
  write();
}

bool ChangeLog::Trim(int64_t before_us) {
  size_t trimmed = 0;
  for (; trimmed < kTrimEntries; trimmed++) {
    std::string key;
    {
      LmdbCursor cursor(table_);
      if (!cursor.First()) break;
      std::string_view value = cursor.value();
      if (static_cast<int64_t>(TakeVarint(&value)) >= before_us) break;
      key = cursor.key();
    }
    mark_.begin_epoch = ParseChangeLogKey(key).first;
    table_.Delete(key);
  }
  return trimmed > 0;
}

}  // namespace sluice
