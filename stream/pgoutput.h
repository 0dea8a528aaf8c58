// The bytes of a logical replication stream: CopyData frames, and in them pgoutput's messages
// (proto_version 1, binary, messages on). Everything is checked against its bounds: what is
// malformed throws 08P01. The results point into the bytes given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "types/oid.h"

namespace sluice {

using Lsn = uint64_t;  // as in pg_lsn; 0: none
std::string LsnText(Lsn lsn);
Lsn ParseLsn(std::string_view text);  // throws 22P02

// Walks over the CopyData messages of a slice (kCopyData or kOversized).
class CopyDataReader {
 public:
  CopyDataReader(const char* data, size_t size_bytes) : rest_(data, size_bytes) {}
  // The next message's body; false: there is none.
  bool Next(std::string_view* body);

 private:
  std::string_view rest_;
};

struct ReplicationFrame {
  bool keepalive;      // else XLogData
  Lsn start;           // XLogData: of the WAL that the payload is from; 0 for Relation messages
  Lsn wal_end;         // everything before it has been sent (keepalive), or the server's end of WAL
  int64_t sent_at_us;  // the server's clock, since 2000-01-01
  bool reply_requested;
  std::string_view payload;  // XLogData: one pgoutput message
};
ReplicationFrame DecodeReplicationFrame(std::string_view body);

struct PublishedColumn {
  bool is_key;  // part of the replica identity
  std::string_view name;
  Oid type;
  int32_t typmod;
};

// One column of a row as it travelled.
struct TupleValue {
  char kind;  // 'n' NULL, 'u' an unchanged TOAST value that was not sent, 't' text, 'b' binary
  std::string_view bytes;
};
using Tuple = std::vector<TupleValue>;

// X(enumerator, the byte that it begins with)
#define SLUICE_PGOUTPUT_MESSAGES(X) \
  X(kBegin, 'B')                    \
  X(kCommit, 'C')                   \
  X(kOrigin, 'O')                   \
  X(kRelation, 'R')                 \
  X(kType, 'Y')                     \
  X(kInsert, 'I')                   \
  X(kUpdate, 'U')                   \
  X(kDelete, 'D')                   \
  X(kTruncate, 'T')                 \
  X(kMessage, 'M')

enum class PgOutputKind : char {
#define X(enumerator, byte) enumerator = byte,
  SLUICE_PGOUTPUT_MESSAGES(X)
#undef X
};

// What the old row of an update or delete is.
enum class OldTuple : char {
  kNone,        // update: the key did not change, and the identity is not FULL
  kKey = 'K',   // the key's columns; the others are 'n'
  kFull = 'O',  // REPLICA IDENTITY FULL
};

// One message. Only the fields of its kind are set; reused from message to message, so that the
// vectors keep their memory.
struct PgOutputMessage {
  PgOutputKind kind;
  // kBegin: `lsn` is the commit record's start; kCommit: the same, `end_lsn` behind it; kMessage:
  // its own.
  Lsn lsn;
  Lsn end_lsn;
  int64_t commit_time_us;
  uint32_t xid;
  // kRelation, and the one that a row belongs to.
  Oid relation;
  std::string_view schema, name;
  char replica_identity;  // 'd' default, 'n' nothing, 'f' full, 'i' index
  std::vector<PublishedColumn> columns;
  // kInsert, kUpdate, kDelete
  OldTuple old_kind;
  Tuple old_tuple, new_tuple;
  // kTruncate
  std::vector<Oid> relations;
  bool cascade, restart_identity;
  // kMessage
  bool transactional;
  std::string_view prefix, content;
};
void DecodePgOutput(std::string_view bytes, PgOutputMessage* message);

}  // namespace sluice
