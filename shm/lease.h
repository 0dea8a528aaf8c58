// A pooled connection's socket, lent to a backend. A statement that needs one shard and whose rows
// only pass through then makes one hop (backend ⇄ shard), not two.
//
// The stream that runs such a statement carries a Lease (Stream::lease). When it has ended well, at
// the protocol boundary, the io worker lends its connection: it sends a copy of the descriptor to
// the backend's datagram socket and stops touching the connection. The backend talks to the shard
// by itself, one statement after the other, until it gives the connection back (kGiveBack) between
// two statements: because it was recalled, idle for a while, or wants other settings; or in the
// middle of one, because of a cancel or an error: then the connection is closed, never used again.
// The session's transaction may run on it; what it cannot do by itself there the io worker goes on
// with, on the same connection, which becomes the transaction's pin's.
//
//    kNone ──backend──► kWanted ──io worker──► kLent ──backend──► kReturned ──io worker──► kNone
//                          └────── io worker: not lent ───────────────────────────────────► kNone
//
// If a borrower dies abnormally, the crash rule ends the io worker too.
#pragma once

#include <atomic>
#include <cstdint>
#include <sys/un.h>

#include "shm/process_table.h"

namespace sluice {

enum class LeaseState : uint32_t { kNone, kWanted, kLent, kReturned };

enum class LeaseEnd : uint32_t {
  kReady,   // after its ReadyForQuery
  kCancel,  // a statement may be running: it is cancelled and the connection closed
  kPinned,  // as kReady, but it is `pin`'s, whose transaction may run there
};

// Names that a borrower prepares at most: "lent_0" … on each connection.
inline constexpr uint32_t kLentStatementsMax = 64;

struct Lease {
  // L3: kWanted and kReturned are stored by the backend, with the stream's or its own request to
  // publish them; kLent and kNone by the io worker (release), after what is below.
  std::atomic<LeaseState> state;
  // Const from kWanted on: whose it is, and where the descriptor is to be sent.
  ProcNumber backend;
  sockaddr_un address;
  uint32_t address_bytes;
  // Written by the backend before kReturned.
  LeaseEnd end;
  uint32_t statements;      // names that it has prepared
  uint64_t pin;             // kPinned, with …
  char transaction_status;  // … what ReadyForQuery said last
  // The io worker's own.
  void* connection;
};

// L4 (ProcSlot::recall_requested): asks the owner of `slot` for the connections that are lent to it
// and that it does not use just now. Where it sleeps, wherever that is, it gives them back.
void RecallLeases(ProcSlot* slot);
// The owner's answer to it: called before each sleep (in WaitLatch) while a recall is wanted.
// Process-local; null: nothing is lent to this process.
using LeaseRecallHandler = void (*)();
extern constinit thread_local LeaseRecallHandler on_leases_recalled;
// True once after each recall; owner only.
bool TakeLeaseRecall();

}  // namespace sluice
