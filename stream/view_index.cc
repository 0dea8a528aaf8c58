#include "stream/view_index.h"

#include "types/md5.h"

namespace sluice {
namespace {

constexpr size_t kValuesMax = 240;

std::vector<KeyColumn> KeyColumns(const RelationInfo& view, const StoredIndex& index) {
  std::vector<KeyColumn> columns;
  for (int c : index.columns) {
    const StoredColumn& column = view.columns[static_cast<size_t>(c)];
    KeyColumn key{.type = column.type};
    if (EncodesOrder(column.type, column.collation)) key.collation = column.collation;
    columns.push_back(key);
  }
  return columns;
}

std::vector<Oid> IndexedTypes(const RelationInfo& view, const StoredIndex& index) {
  std::vector<Oid> types;
  for (int c : index.columns) types.push_back(view.columns[static_cast<size_t>(c)].type);
  return types;
}

}  // namespace

ViewIndex::ViewIndex(StoreTransaction* transaction, const RelationInfo& view,
                     const StoredIndex& index, bool create)
    : encoder_(KeyColumns(view, index)),
      place_(view.columns.size(), -1),
      codec_(TypesOf(view.columns)),
      values_(IndexedTypes(view, index)),
      table_(transaction, TableName(index.oid), create) {
  for (size_t i = 0; i < index.columns.size(); i++)
    place_[static_cast<size_t>(index.columns[i])] = static_cast<int>(i);
}

std::string ViewIndex::Prefix(std::span<const Column> values) const {
  std::string prefix;
  for (size_t i = 0; i < values.size(); i++) encoder_.AppendColumn(i, values[i], 0, &prefix);
  if (prefix.size() > kValuesMax) prefix.resize(kValuesMax);
  return prefix;
}

void ViewIndex::MakeEntry(std::string_view stored_key, std::string_view row) {
  values_.Clear();
  codec_.Decode(row, 0, place_, &values_);
  Batch batch;
  values_.Show(1, &batch);
  key_.clear();
  value_.clear();
  encoder_.Append(batch.columns, 0, &key_);
  if (key_.size() > kValuesMax) key_.resize(kValuesMax);
  AppendVarint(key_.size(), &value_);
  if (key_.size() + stored_key.size() < kStoredKeyMax) {
    key_.append(stored_key);
  } else {
    key_.append(Md5Hex(stored_key));
    value_.append(stored_key);
  }
}

void ViewIndex::Put(std::string_view stored_key, std::string_view row) {
  MakeEntry(stored_key, row);
  table_.Put(key_, value_);
}

void ViewIndex::Delete(std::string_view stored_key, std::string_view row) {
  MakeEntry(stored_key, row);
  table_.Delete(key_);
}

std::string_view ViewIndex::StoredKeyOf(std::string_view key, std::string_view value) {
  size_t values = TakeVarint(&value);
  return value.empty() ? key.substr(values) : value;
}

std::string_view ViewIndex::ValuesOf(std::string_view key, std::string_view value) {
  return key.substr(0, TakeVarint(&value));
}

void ViewIndex::Apply(const StoredRelation& view, const StoredIndex& index,
                      std::span<const DeltaBuffer::Entry> changes) {
  for (const DeltaBuffer::Entry& change : changes) {
    std::string_view stored = StoredKey(change.key, &buffer_);
    if (!index.complete && stored > index.cursor) continue;
    if (change.weight > 0)
      Put(stored, change.row);
    else if (view.keyed() || !view.table().Get(stored))  // keyless: some of equal rows may be left
      Delete(stored, change.row);
  }
}

void ViewIndex::Build(const StoredRelation& view, size_t rows_max, StoredIndex* index) {
  LmdbCursor cursor(view.table());
  bool found = cursor.Seek(index->cursor);
  if (found && cursor.key() == index->cursor) found = cursor.Next();
  for (size_t rows = 0; found && rows < rows_max; rows++, found = cursor.Next()) {
    Put(cursor.key(), view.Unpack(cursor.key(), cursor.value()).row);
    index->cursor = cursor.key();
  }
  index->complete = !found;
  if (index->complete) index->cursor.clear();
}

}  // namespace sluice
