// Distributed transactions that are alive: who runs which, for the resolver, which must leave a
// live transaction to its backend, and for sluice.transactions. Mapped by the postmaster before the
// first fork; begun anew, with a new epoch, whenever shared memory is.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "shm/process_table.h"
#include "shm/stream.h"

namespace sluice {

// Unique for all time at this node: the epoch (one more at each start) above a counter.
using TransactionNumber = uint64_t;
inline constexpr int kEpochShift = 40;
constexpr uint32_t EpochOf(TransactionNumber number) {
  return static_cast<uint32_t>(number >> kEpochShift);
}

enum class TransactionPhase : uint32_t { kPreparing, kCommitting, kAborting };
const char* NameOf(TransactionPhase phase);

inline constexpr size_t kTransactionServersMax = 16;  // that are shown
inline constexpr size_t kDeadlockDetailBytes = 1024;

// One a process. T1: written by its owner only. `number` is stored (release) before anything that
// carries it is sent to a server, and cleared (release) when the decision is on disk and the owner
// does nothing more about it. The resolver loads it (acquire) after it has seen the transaction
// prepared on a server, and before it reads the decisions.
struct alignas(64) TransactionSlot {
  std::atomic<TransactionNumber> number;  // 0: none
  std::atomic<TransactionPhase> phase;
  std::atomic<int64_t> started_at;  // µs since 2000-01-01 UTC
  // The servers (oids) that it has written, 0: no more; of many only the first.
  std::atomic<uint32_t> server_oids[kTransactionServersMax];
  // T6: the pin of the owner's transaction, 0: it holds no server; by the owner only, relaxed.
  std::atomic<uint64_t> pin;
  // T7: the deadlock detector's sentence: the pin whose transaction is to fail. Stored (release)
  // after `deadlock_detail`, then the owner's cancel_requested and latch; cleared by the owner.
  std::atomic<uint64_t> deadlocked_pin;
  char deadlock_detail[kDeadlockDetailBytes];
};

// Which process of a server works for which pin, for the deadlock detector. T8: written by the io
// worker only: `pin` is 0 while the rest changes, and stored (release) last. A lent connection
// works for whatever its borrower's transaction is: there kLentTo and the borrower's number stand
// for the pin.
struct PinnedConnection {
  std::atomic<uint64_t> pin;       // 0: free
  std::atomic<uint64_t> instance;  // HashInstance of where it is connected to
  std::atomic<uint32_t> backend_pid;
};
inline constexpr uint64_t kLentTo = uint64_t{1} << 63;
inline constexpr uint32_t kPinnedConnectionsMax = 4096;  // deadlocks beyond are not seen
// Servers with decisions of an earlier epoch that are known one by one.
inline constexpr uint32_t kRecoveringServersMax = 64;

struct TransactionTable {
  char node[20];  // 16 hex digits: whose the prepared transactions on a server are
  uint32_t epoch;
  std::atomic<uint64_t> next;       // T2: relaxed: only that they differ matters
  std::atomic<uint64_t> log_units;  // T3: where the decision log's next record goes; relaxed
  std::atomic<uint32_t> wake;       // T4: the resolver has work: stored, then its latch is set
  // T5: the servers (oids) where decisions of an earlier epoch may not be carried out yet: stored
  // by the postmaster, each cleared (release) by the resolver. `recovering`: how many of them there
  // are; more than the list has room for: any server may be one, until it is 0.
  std::atomic<uint32_t> recovering;
  std::atomic<uint32_t> recovering_servers[kRecoveringServersMax];
  // T9: the resolver has taken the decisions of earlier epochs out of the catalog (release): they
  // need not be kept there any more (acquire).
  std::atomic<uint32_t> catalog_taken;
  PinnedConnection pinned[kPinnedConnectionsMax];
  uint32_t count;
  TransactionSlot slots[1];  // by ProcNumber
};

extern TransactionTable* transaction_table;
// Postmaster, after each CreateSharedMemory.
void CreateTransactionTable(uint32_t processes);

TransactionNumber NewTransactionNumber();
// "sluice_<node>_<epoch>_<counter>", the name under which it is prepared.
std::string GidOf(TransactionNumber number);
std::string GidPrefix();
TransactionNumber NumberOfGid(const std::string& gid);  // 0: none of this node's
bool IsLive(TransactionNumber number);
std::set<TransactionNumber> LiveTransactions();
void WakeResolver();

// Postmaster, before the first fork of an epoch.
void SetRecovering(const std::vector<uint32_t>& servers);
bool AnyRecovering();
std::vector<uint32_t> RecoveringServers();  // those of the list
bool IsRecovering(uint32_t server);
// Resolver: all but `servers` have recovered.
void KeepRecovering(const std::vector<uint32_t>& servers);

// Io worker. Returns the entry's number, kPinnedConnectionsMax where none is free.
uint32_t ShowPinned(uint64_t pin, uint64_t instance, uint32_t backend_pid);
void HidePinned(uint32_t entry);
struct PinnedRow {
  uint64_t pin, instance;
  uint32_t backend_pid;
};
std::vector<PinnedRow> ReadPinned();
// Of host, address and port: process ids are unique there.
uint64_t HashInstance(const ConnectionSpec& spec);

// When this process was asked to cancel: throws 40P01 if the deadlock detector has chosen its
// transaction. True: the detector had, but that transaction is over.
bool TakeDeadlock();

}  // namespace sluice
