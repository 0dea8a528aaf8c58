// What a backend asks of the io worker: streams, opened as a group, admitted all at once.
//
// A backend builds a StreamGroup in its query arena, submits it (SubmitRequest), and consumes the
// slices that arrive in the queues. Only the io worker touches sockets. Each stream ends in exactly
// one kEnd slice, after which `state`, `error` and `command_tag` are final.
//
//   backend ──SubmitRequest(kOpen, group)──► io worker ──slices──► ReadyQueue ──► any participant
//   backend ──SubmitRequest(kClose, group)─► io worker: cancels what still runs, lets go of every
//             chunk and pointer of the group, then stores kClosed and sets the backend's latch.
//
// Once all streams have ended the io worker may store kClosed unasked; it ignores a kClose for a
// group that it does not know (any more). The arena may be freed only when `group->state` is
// kClosed (release by the io worker, acquire here).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/error.h"
#include "shm/process_table.h"
#include "shm/ready_queue.h"

namespace sluice {

// Where and as whom to connect. Connections are pooled by `pool_key` (server, role, database,
// options); two specs with equal keys may share connections.
struct ConnectionSpec {
  std::string_view pool_key;
  std::string_view server_name;  // for messages
  // keyword/value pairs for PQconnectStartParams, hostaddr already resolved by the backend
  std::span<const std::string_view> keywords;
  std::span<const std::string_view> values;
  uint32_t connections_max;  // of this pool
  // SQL that the connection must have run before use ("SET TimeZone = …; …"); part of what it is
  // prepared for, run again only when it differs from what the connection ran last.
  std::string_view session_setup;
};

enum class StreamKind : uint8_t {
  kQuery,   // extended protocol: one statement, DataRows (or none) come back
  kSimple,  // simple protocol, several statements allowed, rows are discarded: transaction control,
            // DDL
  kCopyOut,   // COPY … TO STDOUT: CopyData come back
  kCopyIn,    // COPY … FROM STDIN: rows are taken from `input`
  kDescribe,  // Parse + Describe: one kDescription slice with the shard's messages ('t', then 'T'
              // or 'n')
  kLines,  // a plain socket (`host`/`port` or `path` in the spec's pairs) that sends lines until it
           // closes
  // START_REPLICATION … LOGICAL on a connection with replication=database: CopyData come back
  // (XLogData and keepalives, whole), without end; `confirmed_lsn` is what the shard is told.
  kReplication,
  // No statement: holds its group's gate on the server while the backend carries out a decision
  // itself, on a lent connection. `state` becomes kRunning when the gate is there; the backend's
  // close ends it.
  kGate,
  kReplay,  // tests and benchmarks: slices from a prepared buffer, see fdw/replay.h
};

struct StreamParam {
  uint32_t type;  // pg_type oid to declare at Parse; 0 = let the shard infer it
  bool is_null;
  bool binary;
  std::string_view value;
};

struct Lease;  // shm/lease.h

enum class StreamState : uint32_t { kPending, kConnecting, kRunning, kEnded, kFailed, kCancelled };

struct StreamGroup;

struct Stream {
  // --- const after submission ---
  StreamKind kind;
  uint16_t index;  // in group->streams
  StreamGroup* group;
  const ConnectionSpec* connection;
  std::string_view sql;
  std::span<const StreamParam> params;
  std::span<const int16_t> result_formats;  // as in Bind: none = text, one for all, or one a column
  uint32_t row_limit;    // Execute's limit; 0 = none. With a limit: portal is kept only if pinned
  bool prepare;          // worth a named statement on the connection (bounded cache there)
  uint32_t chunk_quota;  // ≥ 2; reserved at admission; kGate: 0
  ReadyQueue* output;    // one for all streams of an Append, or one each for an ordered merge
  ReadyQueue* input;     // kCopyIn: rows of CopyData payload; its kEnd ends the COPY
  // Who fills chunks on this stream's quota, to be woken when one of them returns: the io worker,
  // or for a kCopyIn's input and for streams inside the server (local children, workers' results) a
  // backend or worker.
  ProcNumber producer = kIoWorkerProc;
  uint64_t pin;  // 0, or the transaction's pin: use (and keep) that pin's connection to this pool
  // Sent first while the pin's connection is in no transaction ("BEGIN …; SAVEPOINT s"); empty: the
  // stream begins none.
  std::string_view begin_sql;
  // If it ends well, lend its connection to the backend afterwards; null: don't.
  Lease* lease = nullptr;
  // The transaction's number on its server (txid_current): of a PREPARE TRANSACTION (kPrepare) what
  // the io worker found, written as `state` is; of a COMMIT PREPARED (kDecision) given, 0: unknown.
  uint64_t xid = 0;
  bool carried_out = false;    // kGate: whether `sql` was; written before the group is closed
  int64_t silence_timeout_us;  // error if the shard sends nothing for so long while unthrottled; 0
                               // never

  // --- written by the io worker, S1: `state` is stored (release) after the fields below it that
  //     describe the end, and before the kEnd slice is pushed ---
  std::atomic<StreamState> state;
  ErrorRecord error;            // kFailed
  char command_tag[64];         // kEnded: CommandComplete's
  uint32_t column_count;        // from RowDescription, if one came
  uint32_t column_types[0x40];  // first 64 columns' type oids, as the shard has them

  // S2: chunks of the quota in use: incremented by the producer at Acquire, decremented by whoever
  // drops the last reference (acq_rel). That one wakes the io worker if `held_back` is set (seq_cst
  // on both: either the io worker sees the chunk or the consumer sees the flag).
  std::atomic<uint32_t> chunks_in_use;
  std::atomic<uint32_t> held_back;

  // S4: kReplication: the positions up to which the consumer has everything, durably or at all;
  // stored (relaxed) by the consumer, loaded by the io worker, which tells them to the shard about
  // once a second, also while the stream is held back.
  std::atomic<uint64_t> confirmed_lsn, received_lsn;

  // S3: statistics, relaxed; written by the io worker, read any time.
  std::atomic<uint64_t> rows, bytes, chunks, slices;
  std::atomic<int64_t> submitted_us, first_row_us, ended_us;  // CLOCK_MONOTONIC
  std::atomic<int64_t> held_back_us;  // total time not received from, because of the quota
};

// Intervals on the servers of a group that exclude each other, so that no reader sees half of a
// transaction over several servers. Each kind is shared within itself.
enum class StreamGate : uint8_t {
  kNone,
  kSnapshot,  // a read over several servers, until all its snapshots are taken
  kDecision,  // COMMIT PREPARED on several servers, until all have answered
  kPrepare,   // none: PREPARE TRANSACTION, whose Stream::xid is wanted
};

enum class GroupState : uint32_t {
  kNew,        // backend → kSubmitted with the request
  kSubmitted,  // io worker: waits for chunks and connections
  kAdmitted,
  kClosed,  // the io worker holds nothing of it any more
};

struct StreamGroup {
  ProcNumber backend;  // whose latch is set at admission (if extra_chunks or a kCopyIn are to be
                       // awaited), at kClosed
  std::span<Stream> streams;
  // Streams that share a server read under one snapshot: the first exports, the others import.
  bool shared_snapshot;
  // Each stream's transaction is to be REPEATABLE READ READ ONLY, its snapshot taken by SELECT 1
  // first.
  bool snapshot_first;
  StreamGate gate;               // taken at admission, on all servers of the group at once
  int64_t admission_timeout_us;  // 53300 on every stream when it passes; 0 = none
  uint32_t extra_chunks;  // reserved beyond the streams' quotas: local producers, see executor
  // G3: what TryReserveGroup promised; stored by the io worker before kAdmitted. It is given back
  // by the backend in CloseStreams, after the last slice was released: chunks may be in use until
  // then.
  uint32_t reserved_chunks;
  std::atomic<GroupState> state;       // G1
  std::atomic<uint32_t> close_wanted;  // G2: set by the backend with kClose
};

// --- requests: a bounded multi-producer ring in shared memory, drained by the io worker ---

enum class RequestKind : uint32_t {
  kOpen,       // group
  kClose,      // group
  kUnpin,      // pin: its connections go back to their pools (after a rollback and a reset)
  kEndPin,     // the same, but nothing beyond a transaction was done there: no reset is needed
  kCancelPin,  // cancel what runs on the pin's connections
  kGiveBack,   // lease: its connection comes back
  kForget,     // pool_key_hash: drop idle connections of a changed or dropped server
};

struct Request {
  RequestKind kind;
  StreamGroup* group;
  uint64_t pin;
  uint64_t pool_key_hash;
  Lease* lease = nullptr;
};

// Io worker, at admission: promises the chunks of all the group's quotas and its extra_chunks, or
// nothing. Not to be unreserved by the io worker (see G3).
bool TryReserveGroup(StreamGroup* group);

// Wakes the io worker. Waits (briefly) if the ring is full.
void SubmitRequest(const Request& request);
bool TakeRequest(Request* request);  // io worker only

// Whether statements wait for chunks or connections that others hold.
bool OthersAwaitAdmission();
// Whether less than half of the chunks, the most that one statement takes, can be promised now.
bool ChunksAreShort();

// Backend helpers. Open: submits and returns at once. Close: cancels, waits for kClosed, releases
// the slices that nobody claimed and gives back the reservation. No other participant may still use
// the group's queues then. Close of a group that was never opened does nothing.
void OpenStreams(StreamGroup* group);
void CloseStreams(StreamGroup* group);
// Only asks for it: the group's memory stays until a CloseStreams.
void BeginCloseStreams(StreamGroup* group);

}  // namespace sluice
