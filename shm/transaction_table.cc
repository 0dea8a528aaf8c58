#include "shm/transaction_table.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fmt/format.h>
#include <new>
#include <sys/mman.h>

#include "common/error.h"
#include "shm/shared_memory.h"

namespace sluice {

TransactionTable* transaction_table = nullptr;

namespace {

size_t table_bytes = 0;

}  // namespace

const char* NameOf(TransactionPhase phase) {
  switch (phase) {
    case TransactionPhase::kPreparing:
      return "preparing";
    case TransactionPhase::kCommitting:
      return "committing";
    case TransactionPhase::kAborting:
      return "aborting";
  }
  return "";
}

void CreateTransactionTable(uint32_t processes) {
  if (transaction_table != nullptr) munmap(transaction_table, table_bytes);
  table_bytes = sizeof(TransactionTable) + processes * sizeof(TransactionSlot);
  void* mapped =
      mmap(nullptr, table_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) Throw(sqlstate::kOutOfMemory, "could not create shared memory");
  transaction_table = new (mapped) TransactionTable{};
  transaction_table->count = processes;
}

TransactionNumber NewTransactionNumber() {
  uint64_t counter = transaction_table->next.fetch_add(1, std::memory_order_relaxed);  // T2
  return (uint64_t{transaction_table->epoch} << kEpochShift) | counter;
}

std::string GidPrefix() {
  return fmt::format("sluice_{}_", transaction_table->node);
}

std::string GidOf(TransactionNumber number) {
  uint64_t counter = number & ((uint64_t{1} << kEpochShift) - 1);
  return fmt::format("{}{}_{}", GidPrefix(), EpochOf(number), counter);
}

TransactionNumber NumberOfGid(const std::string& gid) {
  std::string prefix = GidPrefix();
  if (!gid.starts_with(prefix)) return 0;
  uint32_t epoch = 0;
  uint64_t counter = 0;
  if (std::sscanf(gid.c_str() + prefix.size(), "%" SCNu32 "_%" SCNu64, &epoch, &counter) != 2)
    return 0;
  TransactionNumber number = (uint64_t{epoch} << kEpochShift) | counter;
  return GidOf(number) == gid ? number : 0;
}

bool IsLive(TransactionNumber number) {
  for (uint32_t i = 0; i < transaction_table->count; i++)
    if (transaction_table->slots[i].number.load(std::memory_order_acquire) == number) return true;
  return false;
}

std::set<TransactionNumber> LiveTransactions() {
  std::set<TransactionNumber> live;
  for (uint32_t i = 0; i < transaction_table->count; i++)
    if (TransactionNumber n = transaction_table->slots[i].number.load(std::memory_order_acquire))
      live.insert(n);
  return live;
}

void WakeResolver() {
  transaction_table->wake.store(1, std::memory_order_seq_cst);  // T4
  const ProcessTable& processes = shared_memory->processes;
  SetLatch(&processes.slots[processes.transaction_resolver].latch);
}

void SetRecovering(const std::vector<uint32_t>& servers) {
  TransactionTable& table = *transaction_table;
  for (size_t i = 0; i < kRecoveringServersMax; i++)
    table.recovering_servers[i].store(i < servers.size() ? servers[i] : 0,
                                      std::memory_order_relaxed);
  table.recovering.store(static_cast<uint32_t>(servers.size()), std::memory_order_release);
}

bool AnyRecovering() {
  return transaction_table->recovering.load(std::memory_order_acquire) != 0;  // T5
}

std::vector<uint32_t> RecoveringServers() {
  std::vector<uint32_t> servers;
  for (const std::atomic<uint32_t>& entry : transaction_table->recovering_servers)
    if (uint32_t server = entry.load(std::memory_order_acquire)) servers.push_back(server);
  return servers;
}

bool IsRecovering(uint32_t server) {
  uint32_t count = transaction_table->recovering.load(std::memory_order_acquire);
  if (count > kRecoveringServersMax) return true;
  std::vector<uint32_t> servers = RecoveringServers();
  return count > 0 && std::find(servers.begin(), servers.end(), server) != servers.end();
}

void KeepRecovering(const std::vector<uint32_t>& servers) {
  TransactionTable& table = *transaction_table;
  if (table.recovering.load(std::memory_order_relaxed) > kRecoveringServersMax) {
    if (servers.empty()) table.recovering.store(0, std::memory_order_release);
    return;
  }
  uint32_t left = 0;
  for (std::atomic<uint32_t>& entry : table.recovering_servers) {
    uint32_t server = entry.load(std::memory_order_relaxed);
    if (server == 0) continue;
    bool keep = std::find(servers.begin(), servers.end(), server) != servers.end();
    if (!keep) entry.store(0, std::memory_order_release);
    left += keep;
  }
  table.recovering.store(left, std::memory_order_release);
}

uint32_t ShowPinned(uint64_t pin, uint64_t instance, uint32_t backend_pid) {
  static uint32_t next = 0;  // where the last search ended: mostly the first try finds one
  for (uint32_t i = 0; i < kPinnedConnectionsMax; i++) {
    uint32_t at = (next + i) % kPinnedConnectionsMax;
    PinnedConnection& entry = transaction_table->pinned[at];
    if (entry.pin.load(std::memory_order_relaxed) != 0) continue;
    entry.instance.store(instance, std::memory_order_relaxed);
    entry.backend_pid.store(backend_pid, std::memory_order_relaxed);
    entry.pin.store(pin, std::memory_order_release);  // T8
    next = at + 1;
    return at;
  }
  return kPinnedConnectionsMax;
}

void HidePinned(uint32_t entry) {
  transaction_table->pinned[entry].pin.store(0, std::memory_order_release);  // T8
}

std::vector<PinnedRow> ReadPinned() {
  std::vector<PinnedRow> rows;
  for (const PinnedConnection& entry : transaction_table->pinned) {
    uint64_t pin = entry.pin.load(std::memory_order_acquire);  // T8
    if (pin == 0) continue;
    PinnedRow row{pin, entry.instance.load(std::memory_order_acquire),
                  entry.backend_pid.load(std::memory_order_acquire)};
    // Pins are never used twice: the same one still stands with the same values. A borrower's may
    // have changed: such a wait is not there when it is looked for again.
    if (entry.pin.load(std::memory_order_relaxed) != pin) continue;
    if ((pin & kLentTo) != 0)
      row.pin = transaction_table->slots[pin & ~kLentTo].pin.load(std::memory_order_relaxed);  // T6
    if (row.pin != 0) rows.push_back(row);
  }
  return rows;
}

uint64_t HashInstance(const ConnectionSpec& spec) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (std::string_view wanted : {"hostaddr", "host", "port"}) {
    std::string_view value;
    for (size_t i = 0; i < spec.keywords.size(); i++)
      if (spec.keywords[i] == wanted) value = spec.values[i];
    for (unsigned char c : value) hash = (hash ^ c) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
  }
  return hash;
}

bool TakeDeadlock() {
  if (transaction_table == nullptr) return false;
  TransactionSlot& slot = transaction_table->slots[my_proc_number];
  uint64_t chosen = slot.deadlocked_pin.exchange(0, std::memory_order_acquire);  // T7
  if (chosen == 0) return false;
  if (chosen != slot.pin.load(std::memory_order_relaxed)) return true;
  Error error = MakeError(sqlstate::kDeadlockDetected, "deadlock detected");
  error.Detail(slot.deadlock_detail);
  throw QueryError(error.Hint("See server log for query details."));
}

}  // namespace sluice
