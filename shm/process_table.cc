#include "shm/process_table.h"

#include <sched.h>
#include <time.h>

#include "common/assert.h"
#include "shm/shared_memory.h"
#include "shm/transaction_table.h"

namespace sluice {

constinit thread_local ProcSlot* my_proc = nullptr;
constinit thread_local ProcNumber my_proc_number = kNoProc;
constinit thread_local int interrupt_holdoff_count = 0;
constinit thread_local const std::atomic<uint32_t>* interrupt_stop_flag = nullptr;
int64_t statement_deadline_us = 0;
int client_socket = -1;

const char* NameOf(ProcessKind kind) {
  switch (kind) {
#define X(enumerator, name)     \
  case ProcessKind::enumerator: \
    return name;
    SLUICE_PROCESS_KINDS(X)
#undef X
  }
  return "";
}

int64_t MonotonicUs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

void AttachProcess(ProcNumber number) {
  SLUICE_ASSERT(number < shared_memory->processes.count);
  my_proc = &shared_memory->processes.slots[number];
  my_proc_number = number;
}

void PrepareSlot(ProcSlot* slot, ProcessKind kind) {
  ResetLatch(&slot->latch);
  slot->latch.sleeping.store(0, std::memory_order_relaxed);
  slot->cancel_requested.store(0, std::memory_order_relaxed);
  slot->terminate_requested.store(0, std::memory_order_relaxed);
  slot->reload_requested.store(0, std::memory_order_relaxed);
  slot->recall_requested.store(0, std::memory_order_relaxed);
  slot->cancel_key.store(0, std::memory_order_relaxed);
  slot->assignment.store(nullptr, std::memory_order_relaxed);
  slot->wait_event.store(WaitEvent::kNone, std::memory_order_relaxed);
  slot->activity_version.store(0, std::memory_order_relaxed);
  slot->state = ActivityState::kNone;
  slot->backend_start = slot->xact_start = slot->query_start = slot->state_change = 0;
  slot->query_id = 0;
  slot->leader = kNoProc;
  slot->client_port = -1;
  slot->client_addr[0] = 0;
  slot->user[0] = slot->database[0] = slot->application_name[0] = 0;
  slot->query[0] = 0;
  slot->kind.store(kind, std::memory_order_release);
}

// P4, a seqlock. The writer makes the version odd, writes, makes it even again; a reader that saw
// the same even version before and after its copy has a whole row. Writer: the RMWs order the plain
// stores between them. Reader: the acquire load and the acq_rel RMW (of nothing) do the same for
// its loads; an RMW rather than a fence, which thread sanitizer does not know.
void BeginActivityWrite() {
  uint32_t before = my_proc->activity_version.fetch_add(1, std::memory_order_acq_rel);
  SLUICE_ASSERT(before % 2 == 0);
}

void EndActivityWrite() {
  uint32_t before = my_proc->activity_version.fetch_add(1, std::memory_order_acq_rel);
  SLUICE_ASSERT(before % 2 == 1);
}

namespace {

// Copies a text that may be changing under the reader, and ends it in any case.
template <size_t N>
void CopyText(char (&to)[N], const char (&from)[N]) {
  std::memcpy(to, from, N);
  to[N - 1] = 0;
}

void CopyActivity(const ProcSlot& slot, ActivityRow* row) {
  row->pid = slot.pid.load(std::memory_order_relaxed);
  row->kind = slot.kind.load(std::memory_order_relaxed);
  row->wait_event = slot.wait_event.load(std::memory_order_relaxed);
  row->state = slot.state;
  row->backend_start = slot.backend_start;
  row->xact_start = slot.xact_start;
  row->query_start = slot.query_start;
  row->state_change = slot.state_change;
  row->leader = slot.leader;
  row->client_port = slot.client_port;
  CopyText(row->client_addr, slot.client_addr);
  CopyText(row->user, slot.user);
  CopyText(row->database, slot.database);
  CopyText(row->application_name, slot.application_name);
  CopyText(row->query, slot.query);
}

}  // namespace

bool ReadActivity(const ProcSlot& slot, ActivityRow* row) {
  auto& version = const_cast<std::atomic<uint32_t>&>(slot.activity_version);
  constexpr int kTriesMax = 10'000;  // a writer is preempted at most for moments, and never sleeps
  for (int i = 0; i < kTriesMax; i++) {
    if (slot.kind.load(std::memory_order_acquire) == ProcessKind::kUnused ||
        slot.pid.load(std::memory_order_relaxed) == 0)
      return false;
    uint32_t before = version.load(std::memory_order_acquire);
    if (before % 2 == 0) {
      CopyActivity(slot, row);
      if (version.fetch_add(0, std::memory_order_acq_rel) == before) return true;
    }
    sched_yield();
  }
  return false;
}

namespace {

void CheckClient() {
  if (client_socket < 0) return;
  pollfd fd{client_socket, POLLRDHUP, 0};
  if (poll(&fd, 1, 0) == 1 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
    Throw(sqlstate::kConnectionFailure, "connection to client lost");
}

void CheckDeadline() {
  if (statement_deadline_us == 0 || MonotonicUs() < statement_deadline_us) return;
  statement_deadline_us = 0;
  Throw(sqlstate::kQueryCanceled, "canceling statement due to statement timeout");
}

}  // namespace

void CheckForInterrupts() {
  if (my_proc == nullptr || interrupt_holdoff_count > 0) return;
  // P2: relaxed suffices: the flags carry nothing with them, and a set latch brings us back here.
  if (my_proc->terminate_requested.load(std::memory_order_relaxed) != 0)
    Throw(sqlstate::kAdminShutdown, "terminating connection due to administrator command");
  if (interrupt_stop_flag != nullptr && interrupt_stop_flag->load(std::memory_order_relaxed) != 0)
    Throw(sqlstate::kQueryCanceled, "parallel worker was stopped by its leader");
  if (my_proc->cancel_requested.load(std::memory_order_relaxed) != 0) {
    my_proc->cancel_requested.store(0, std::memory_order_relaxed);
    if (!TakeDeadlock()) Throw(sqlstate::kQueryCanceled, "canceling statement due to user request");
  }
  CheckDeadline();
  // The client's end is a system call away, and no hurry: looked at now and then.
  static thread_local uint32_t calls = 0;
  if (++calls % 256 == 0) CheckClient();
}

namespace {

thread_local BeforeWait::Fn before_wait_fn = nullptr;
thread_local void* before_wait_self = nullptr;

}  // namespace

BeforeWait::BeforeWait(Fn fn, void* self)
    : outer_fn_(before_wait_fn), outer_self_(before_wait_self) {
  before_wait_fn = fn;
  before_wait_self = self;
}

BeforeWait::~BeforeWait() {
  before_wait_fn = outer_fn_;
  before_wait_self = outer_self_;
}

namespace {

// How long the wait may be; -1: no end.
int TimeoutMs(int64_t deadline_us) {
  if (statement_deadline_us != 0 && interrupt_holdoff_count == 0 &&
      (deadline_us == 0 || statement_deadline_us < deadline_us))
    deadline_us = statement_deadline_us;
  if (deadline_us == 0) return -1;
  return static_cast<int>(
      std::clamp<int64_t>((deadline_us - MonotonicUs() + 999) / 1000, 0, 1 << 30));
}

// `fds[0]` may be the client's socket: its end ends the statement.
void WaitWatchingClient(WaitEvent event, std::span<pollfd> fds, int timeout_ms) {
  // A request whose latch was set before the caller reset it would wake nobody any more.
  CheckForInterrupts();
  fds[0] = {client_socket, POLLRDHUP, 0};
  bool watch = client_socket >= 0 && interrupt_holdoff_count == 0;
  WaitLatch(&my_proc->latch, watch ? fds : fds.subspan(1), timeout_ms, event);
  CheckForInterrupts();
  if (watch && fds[0].revents != 0) CheckClient();
}

}  // namespace

void WaitInterruptibly(WaitEvent event) {
  if (before_wait_fn != nullptr && before_wait_fn(before_wait_self)) return CheckForInterrupts();
  pollfd fds[1];
  WaitWatchingClient(event, fds, TimeoutMs(0));
}

void WaitInterruptibly(WaitEvent event, pollfd fd, int64_t deadline_us) {
  pollfd fds[2] = {{}, fd};
  WaitWatchingClient(event, fds, TimeoutMs(deadline_us));
}

}  // namespace sluice
