#include "shm/transaction_table.h"

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
  transaction_table->resolver.store(kNoProc, std::memory_order_relaxed);
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

void WakeResolver() {
  transaction_table->wake.store(1, std::memory_order_seq_cst);  // T4
  ProcNumber resolver = transaction_table->resolver.load(std::memory_order_acquire);
  if (resolver != kNoProc) SetLatch(&shared_memory->processes.slots[resolver].latch);
}

}  // namespace sluice
