#include "postmaster/startup_packet.h"

#include "common/log.h"
#include "shm/shared_memory.h"
#include "wire/message.h"

namespace sluice {

void CancelBackend(int32_t pid, int32_t key) {
  const ProcessTable& table = shared_memory->processes;
  for (uint32_t i = 0; i < table.backends; i++) {
    ProcSlot& slot = table.slots[table.first_backend + i];
    if (slot.pid.load(std::memory_order_relaxed) != pid ||
        slot.kind.load(std::memory_order_relaxed) != ProcessKind::kClientBackend)
      continue;
    int32_t expected = slot.cancel_key.load(std::memory_order_relaxed);
    if (expected == 0 || expected != key) {
      Log(LogLevel::kLog, "wrong key in cancel request for process {}", pid);
      return;
    }
    slot.cancel_requested.store(1, std::memory_order_relaxed);
    SetLatch(&slot.latch);
    return;
  }
  Log(LogLevel::kLog, "PID {} in cancel request did not match any process", pid);
}

void HandleCancelRequest(std::string_view body) {
  BodyReader reader(body);
  auto pid = reader.Int<int32_t>();
  auto key = reader.Int<int32_t>();
  CancelBackend(pid, key);
}

}  // namespace sluice
