// Distributed transactions that are alive: who runs which, for the resolver, which must leave a
// live transaction to its backend, and for sluice.transactions. Mapped by the postmaster before the
// first fork; begun anew, with a new epoch, whenever shared memory is.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "shm/process_table.h"

namespace sluice {

// Unique for all time at this node: the epoch (one more at each start) above a counter.
using TransactionNumber = uint64_t;
inline constexpr int kEpochShift = 40;
constexpr uint32_t EpochOf(TransactionNumber number) {
  return static_cast<uint32_t>(number >> kEpochShift);
}

enum class TransactionPhase : uint32_t { kPreparing, kCommitting, kAborting };
const char* NameOf(TransactionPhase phase);

// One a process. T1: written by its owner only. `number` is stored (release) before anything that
// carries it is sent to a server, and cleared (release) when the decision is on disk and the owner
// does nothing more about it. The resolver loads it (acquire) after it has seen the transaction
// prepared on a server, and before it reads the decisions.
struct alignas(64) TransactionSlot {
  std::atomic<TransactionNumber> number;  // 0: none
  std::atomic<TransactionPhase> phase;
  std::atomic<int64_t> started_at;  // µs since 2000-01-01 UTC
  std::atomic<uint32_t> servers;    // that it has written
};

struct TransactionTable {
  char node[20];  // 16 hex digits: whose the prepared transactions on a server are
  uint32_t epoch;
  std::atomic<uint64_t> next;       // T2: relaxed: only that they differ matters
  std::atomic<uint64_t> log_units;  // T3: where the decision log's next record goes; relaxed
  std::atomic<uint32_t> wake;       // T4: the resolver has work: stored, then its latch is set
  // T5: decisions of an earlier epoch are not carried out everywhere yet: stored by the postmaster,
  // cleared (release) by the resolver.
  std::atomic<uint32_t> recovering;
  std::atomic<ProcNumber> resolver;
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
void WakeResolver();

}  // namespace sluice
