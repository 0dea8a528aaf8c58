#include "stream/pgoutput.h"

#include <charconv>

#include "common/bytes.h"
#include "common/error.h"

namespace sluice {
namespace {

[[noreturn]] void Malformed(std::string_view what) {
  Throw(sqlstate::kProtocolViolation, "malformed {} in a replication stream", what);
}

class ByteReader {
 public:
  ByteReader(std::string_view bytes, std::string_view what) : rest_(bytes), what_(what) {}
  template <typename T>
  T Int() {
    Need(sizeof(T));
    T value = LoadBig<T>(rest_.data());
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  char Byte() {
    Need(1);
    char byte = rest_[0];
    rest_.remove_prefix(1);
    return byte;
  }
  std::string_view Bytes(size_t size) {
    Need(size);
    std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }
  std::string_view CString() {
    size_t end = rest_.find('\0');
    if (end == std::string_view::npos) Malformed(what_);
    std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }
  // A count of things of which each takes at least `bytes_min`: no more room is made for them than
  // the message can fill.
  size_t Count(uint32_t count, size_t bytes_min) {
    if (count > rest_.size() / bytes_min) Malformed(what_);
    return count;
  }
  size_t rest_bytes() const { return rest_.size(); }
  void End() const {
    if (!rest_.empty()) Malformed(what_);
  }

 private:
  void Need(size_t size) const {
    if (rest_.size() < size) Malformed(what_);
  }
  std::string_view rest_;
  std::string_view what_;
};

void ReadTuple(ByteReader* reader, Tuple* tuple) {
  size_t columns = reader->Count(reader->Int<uint16_t>(), 1);
  tuple->resize(columns);
  for (TupleValue& value : *tuple) {
    value.kind = reader->Byte();
    value.bytes = {};
    if (value.kind == 'n' || value.kind == 'u') continue;
    if (value.kind != 't' && value.kind != 'b') Malformed("tuple");
    value.bytes = reader->Bytes(reader->Int<uint32_t>());
  }
}

void ReadRelation(ByteReader* reader, PgOutputMessage* message) {
  message->relation = reader->Int<uint32_t>();
  message->schema = reader->CString();
  if (message->schema.empty()) message->schema = "pg_catalog";
  message->name = reader->CString();
  message->replica_identity = reader->Byte();
  size_t columns = reader->Count(reader->Int<uint16_t>(), 10);
  message->columns.clear();
  for (size_t i = 0; i < columns; i++) {
    PublishedColumn column;
    column.is_key = (reader->Byte() & 1) != 0;
    column.name = reader->CString();
    column.type = reader->Int<uint32_t>();
    column.typmod = reader->Int<int32_t>();
    message->columns.push_back(column);
  }
}

// Insert: 'N' new. Update: ['K' key | 'O' old] 'N' new. Delete: 'K' key | 'O' old.
void ReadChange(ByteReader* reader, PgOutputMessage* message) {
  message->relation = reader->Int<uint32_t>();
  message->old_kind = OldTuple::kNone;
  message->old_tuple.clear();
  message->new_tuple.clear();
  char part = reader->Byte();
  if (message->kind != PgOutputKind::kInsert && (part == 'K' || part == 'O')) {
    message->old_kind = static_cast<OldTuple>(part);
    ReadTuple(reader, &message->old_tuple);
    if (message->kind == PgOutputKind::kDelete) return;
    part = reader->Byte();
  }
  if (message->kind == PgOutputKind::kDelete || part != 'N') Malformed("row change");
  ReadTuple(reader, &message->new_tuple);
}

void ReadTruncate(ByteReader* reader, PgOutputMessage* message) {
  auto count = reader->Int<uint32_t>();
  char options = reader->Byte();
  message->cascade = (options & 1) != 0;
  message->restart_identity = (options & 2) != 0;
  message->relations.clear();
  for (size_t i = reader->Count(count, 4); i > 0; i--)
    message->relations.push_back(reader->Int<uint32_t>());
}

}  // namespace

std::string LsnText(Lsn lsn) {
  return fmt::format("{:X}/{:X}", lsn >> 32, lsn & 0xffffffff);
}

Lsn ParseLsn(std::string_view text) {
  auto part = [&](std::string_view digits) {
    uint32_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.empty())
      Throw(sqlstate::kInvalidTextRepresentation, "invalid input syntax for type pg_lsn: \"{}\"",
            text);
    return Lsn{value};
  };
  size_t slash = text.find('/');
  if (slash == std::string_view::npos) return part("");
  return part(text.substr(0, slash)) << 32 | part(text.substr(slash + 1));
}

bool CopyDataReader::Next(std::string_view* body) {
  if (rest_.empty()) return false;
  if (rest_.size() < 5 || rest_[0] != 'd') Malformed("CopyData message");
  size_t length = LoadBig<uint32_t>(rest_.data() + 1);
  if (length < 4 || length > rest_.size() - 1) Malformed("CopyData message");
  *body = rest_.substr(5, length - 4);
  rest_.remove_prefix(1 + length);
  return true;
}

ReplicationFrame DecodeReplicationFrame(std::string_view body) {
  ByteReader reader(body, "replication frame");
  ReplicationFrame frame{};
  char type = reader.Byte();
  if (type == 'k') {
    frame.keepalive = true;
    frame.wal_end = reader.Int<uint64_t>();
    frame.sent_at_us = reader.Int<int64_t>();
    frame.reply_requested = reader.Byte() != 0;
    reader.End();
  } else if (type == 'w') {
    frame.start = reader.Int<uint64_t>();
    frame.wal_end = reader.Int<uint64_t>();
    frame.sent_at_us = reader.Int<int64_t>();
    frame.payload = reader.Bytes(reader.rest_bytes());
  } else {
    Malformed("replication frame");
  }
  return frame;
}

void DecodePgOutput(std::string_view bytes, PgOutputMessage* message) {
  ByteReader reader(bytes, "pgoutput message");
  message->kind = static_cast<PgOutputKind>(reader.Byte());
  switch (message->kind) {
    case PgOutputKind::kBegin:
      message->lsn = reader.Int<uint64_t>();
      message->commit_time_us = reader.Int<int64_t>();
      message->xid = reader.Int<uint32_t>();
      break;
    case PgOutputKind::kCommit:
      reader.Byte();  // flags, none defined
      message->lsn = reader.Int<uint64_t>();
      message->end_lsn = reader.Int<uint64_t>();
      message->commit_time_us = reader.Int<int64_t>();
      break;
    case PgOutputKind::kOrigin:
      message->lsn = reader.Int<uint64_t>();
      message->name = reader.CString();
      break;
    case PgOutputKind::kRelation:
      ReadRelation(&reader, message);
      break;
    case PgOutputKind::kType:
      message->relation = reader.Int<uint32_t>();
      message->schema = reader.CString();
      message->name = reader.CString();
      break;
    case PgOutputKind::kInsert:
    case PgOutputKind::kUpdate:
    case PgOutputKind::kDelete:
      ReadChange(&reader, message);
      break;
    case PgOutputKind::kTruncate:
      ReadTruncate(&reader, message);
      break;
    case PgOutputKind::kMessage:
      message->transactional = (reader.Byte() & 1) != 0;
      message->lsn = reader.Int<uint64_t>();
      message->prefix = reader.CString();
      message->content = reader.Bytes(reader.Int<uint32_t>());
      break;
    default:
      Malformed("pgoutput message");
  }
  reader.End();
}

}  // namespace sluice
