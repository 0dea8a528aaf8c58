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
  return info;
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
