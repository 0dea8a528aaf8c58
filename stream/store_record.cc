#include "stream/store_record.h"

#include "stream/row_codec.h"
#include "stream/stored_relation.h"

namespace sluice {
namespace {

void AppendText(std::string_view text, std::string* out) {
  AppendVarint(text.size(), out);
  out->append(text);
}
std::string TakeText(std::string_view* from) {
  return std::string(TakeBytes(TakeVarint(from), from));
}

}  // namespace

std::string RelationKey(Oid relation) {
  std::string key = "R";
  AppendShard(relation, &key);
  return key;
}

std::string EdgeKey(Oid view, Oid input) {
  std::string key = "E";
  AppendShard(view, &key);
  AppendShard(input, &key);
  return key;
}

std::string StoreInfo(const RelationInfo& info, uint64_t sequence) {
  std::string out;
  AppendVarint(sequence, &out);
  AppendVarint(info.oid, &out);
  AppendVarint(static_cast<uint64_t>(info.kind), &out);
  AppendVarint(static_cast<uint64_t>(info.state), &out);
  AppendVarint(info.keyed, &out);
  AppendVarint(info.by_shard, &out);
  AppendVarint(info.columns.size(), &out);
  for (const StoredColumn& column : info.columns) {
    AppendText(column.name, &out);
    AppendVarint(column.type, &out);
    AppendVarint(static_cast<uint32_t>(column.typmod), &out);
    AppendVarint(column.collation, &out);
  }
  AppendVarint(info.key_columns.size(), &out);
  for (int column : info.key_columns) AppendVarint(static_cast<uint64_t>(column), &out);
  AppendVarint(info.inputs.size(), &out);
  for (Oid input : info.inputs) AppendVarint(input, &out);
  AppendVarint(info.failure.has_value(), &out);
  if (info.failure) {
    AppendText(SqlStateText(info.failure->state), &out);
    AppendText(info.failure->message, &out);
    AppendText(info.failure->detail, &out);
    AppendText(info.failure->hint, &out);
  }
  AppendText(info.definition, &out);
  AppendText(info.plan_fingerprint, &out);
  AppendVarint(info.indexes.size(), &out);
  for (const StoredIndex& index : info.indexes) {
    AppendVarint(index.oid, &out);
    AppendVarint(index.columns.size(), &out);
    for (int column : index.columns) AppendVarint(static_cast<uint64_t>(column), &out);
    AppendVarint(index.complete, &out);
    AppendText(index.cursor, &out);
  }
  AppendVarint(info.storage, &out);
  return out;
}

RelationInfo LoadInfo(std::string_view bytes, uint64_t* sequence) {
  RelationInfo info;
  *sequence = TakeVarint(&bytes);
  info.oid = static_cast<Oid>(TakeVarint(&bytes));
  info.kind = static_cast<StoredRelationKind>(TakeVarint(&bytes));
  info.state = static_cast<RelationState>(TakeVarint(&bytes));
  info.keyed = TakeVarint(&bytes) != 0;
  info.by_shard = TakeVarint(&bytes) != 0;
  for (uint64_t n = TakeVarint(&bytes); n > 0; n--) {
    StoredColumn column;
    column.name = TakeText(&bytes);
    column.type = static_cast<Oid>(TakeVarint(&bytes));
    column.typmod = static_cast<int32_t>(TakeVarint(&bytes));
    column.collation = static_cast<Oid>(TakeVarint(&bytes));
    info.columns.push_back(std::move(column));
  }
  for (uint64_t n = TakeVarint(&bytes); n > 0; n--)
    info.key_columns.push_back(static_cast<int>(TakeVarint(&bytes)));
  for (uint64_t n = TakeVarint(&bytes); n > 0; n--)
    info.inputs.push_back(static_cast<Oid>(TakeVarint(&bytes)));
  if (TakeVarint(&bytes) != 0) {
    Error& failure = info.failure.emplace();
    failure.state = MakeSqlState(TakeText(&bytes));
    failure.message = TakeText(&bytes);
    failure.detail = TakeText(&bytes);
    failure.hint = TakeText(&bytes);
  }
  info.definition = TakeText(&bytes);
  info.plan_fingerprint = TakeText(&bytes);
  if (bytes.empty()) return info;
  for (uint64_t n = TakeVarint(&bytes); n > 0; n--) {
    StoredIndex index;
    index.oid = static_cast<Oid>(TakeVarint(&bytes));
    for (uint64_t c = TakeVarint(&bytes); c > 0; c--)
      index.columns.push_back(static_cast<int>(TakeVarint(&bytes)));
    index.complete = TakeVarint(&bytes) != 0;
    index.cursor = TakeText(&bytes);
    info.indexes.push_back(std::move(index));
  }
  if (!bytes.empty()) info.storage = static_cast<Oid>(TakeVarint(&bytes));
  return info;
}

std::string ChangeLogMarkKey(Oid view) {
  std::string key = "L";
  AppendShard(view, &key);
  return key;
}

std::string ChangeLogName(Oid view) {
  return "c" + std::to_string(view);
}

std::string ChangeLogKey(uint64_t epoch, uint32_t number) {
  std::string key;
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(epoch >> shift));
  AppendShard(number, &key);
  return key;
}

std::pair<uint64_t, uint32_t> ParseChangeLogKey(std::string_view key) {
  uint64_t epoch = 0;
  uint32_t number = 0;
  for (char byte : key.substr(0, 8)) epoch = epoch << 8 | static_cast<uint8_t>(byte);
  for (char byte : key.substr(8)) number = number << 8 | static_cast<uint8_t>(byte);
  return {epoch, number};
}

std::string StoreMark(const ChangeLogMark& mark) {
  std::string out;
  AppendVarint(mark.begin_epoch, &out);
  AppendVarint(static_cast<uint64_t>(mark.wanted_at_us), &out);
  return out;
}

ChangeLogMark LoadMark(std::string_view bytes) {
  ChangeLogMark mark;
  mark.begin_epoch = TakeVarint(&bytes);
  mark.wanted_at_us = static_cast<int64_t>(TakeVarint(&bytes));
  return mark;
}

std::string StoreEdge(const Edge& edge) {
  std::string out;
  AppendVarint(edge.at_end, &out);
  AppendVarint(edge.rows_delivered, &out);
  return out + edge.cursor;
}

Edge LoadEdge(std::string_view bytes) {
  Edge edge;
  edge.at_end = TakeVarint(&bytes) != 0;
  edge.rows_delivered = TakeVarint(&bytes);
  edge.cursor = bytes;
  return edge;
}

uint64_t LoadNumber(const LmdbTable& meta, std::string_view key) {
  std::optional<std::string_view> value = meta.Get(key);
  return value ? TakeVarint(&*value) : 0;
}

void StoreNumber(const LmdbTable& meta, std::string_view key, uint64_t number) {
  std::string value;
  AppendVarint(number, &value);
  meta.Put(key, value);
}

}  // namespace sluice
