#include "stream/join_side.h"

#include "common/error.h"

namespace sluice {
namespace {

// Begins every key of the table: LMDB has no empty ones.
constexpr char kRow = 'j';

// A join key of this length stands in the prefix only by its digest.
bool IsCut(std::string_view join_key) {
  return join_key.size() > kKeyPrefixMax;
}

}  // namespace

void JoinSide::AppendPrefix(std::string_view join_key, std::string* out) {
  out->push_back(kRow);
  AppendKeyPrefix(join_key, out);
}

// value: multiplicity, [join key, where it is cut], [row, where the whole is cut]
void JoinSide::Add(std::string_view join_key, std::string_view row, int64_t weight) {
  std::string prefix;
  AppendPrefix(join_key, &prefix);
  key_buffer_ = prefix;
  if (IsCut(join_key)) {  // the digest may be another key's too: both are told apart in the rest
    AppendVarint(join_key.size(), &key_buffer_);
    key_buffer_.append(join_key);
  }
  key_buffer_.append(row);
  std::string_view stored = StoredKey(key_buffer_, &cut_buffer_);
  int64_t count = weight;
  if (std::optional<std::string_view> value = table_.Get(stored)) {
    JoinSideRow old;
    if (!Unpack(prefix, join_key, stored, *value, &old) || old.row != row)
      Throw(sqlstate::kInternalError, "two rows of a join have the same digest");
    count += old.count;
  }
  if (count < 0)
    Throw(sqlstate::kDataCorrupted, "a row is to be removed that is not in a join's input");
  if (count == 0) {
    table_.Delete(stored);
  } else {
    value_buffer_.clear();
    AppendVarint(static_cast<uint64_t>(count), &value_buffer_);
    if (IsCut(join_key)) {
      AppendVarint(join_key.size(), &value_buffer_);
      value_buffer_.append(join_key);
    }
    if (IsCut(join_key) || IsLongKey(key_buffer_)) value_buffer_.append(row);
    table_.Put(stored, value_buffer_);
  }
  if (counted_ && !IsCut(join_key)) AddCount(prefix, weight);
}

void JoinSide::AddCount(const std::string& prefix, int64_t weight) {
  int64_t count = weight;
  if (std::optional<std::string_view> value = table_.Get(prefix))
    count += static_cast<int64_t>(TakeVarint(&*value));
  if (count == 0) {
    table_.Delete(prefix);
    return;
  }
  value_buffer_.clear();
  AppendVarint(static_cast<uint64_t>(count), &value_buffer_);
  table_.Put(prefix, value_buffer_);
}

bool JoinSide::Unpack(std::string_view prefix, std::string_view join_key, std::string_view stored,
                      std::string_view value, JoinSideRow* row) const {
  if (stored.size() == prefix.size()) return false;
  row->count = static_cast<int64_t>(TakeVarint(&value));
  if (IsCut(join_key)) {
    if (TakeBytes(TakeVarint(&value), &value) != join_key) return false;
    row->row = value;
  } else {
    row->row = IsLongKey(stored) ? value : stored.substr(prefix.size());
  }
  return true;
}

int64_t JoinSide::Count(std::string_view join_key) const {
  std::string prefix;
  AppendPrefix(join_key, &prefix);
  if (counted_ && !IsCut(join_key)) {
    std::optional<std::string_view> value = table_.Get(prefix);
    return value ? static_cast<int64_t>(TakeVarint(&*value)) : 0;
  }
  int64_t count = 0;
  LmdbCursor cursor(table_);
  JoinSideRow row;
  for (bool found = cursor.Seek(prefix); found && cursor.key().starts_with(prefix);
       found = cursor.Next())
    if (Unpack(prefix, join_key, cursor.key(), cursor.value(), &row)) count += row.count;
  return count;
}

bool JoinSide::Read(std::string_view join_key, size_t rows_max, std::string* place,
                    std::vector<JoinSideRow>* rows) const {
  std::string prefix;
  AppendPrefix(join_key, &prefix);
  LmdbCursor cursor(table_);
  bool found = cursor.Seek(place->empty() ? prefix : *place);
  if (found && !place->empty() && cursor.key() == *place) found = cursor.Next();
  size_t end = rows->size() + rows_max;
  for (; found && cursor.key().starts_with(prefix); found = cursor.Next()) {
    if (rows->size() == end) return true;
    JoinSideRow row;
    if (Unpack(prefix, join_key, cursor.key(), cursor.value(), &row))
      rows->push_back(std::move(row));
    *place = cursor.key();
  }
  return false;
}

}  // namespace sluice
