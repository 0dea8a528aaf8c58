// One slot for every process that may exist: the postmaster's view of its children, the rows of
// pg_stat_activity, the latch of each, and the flags by which one process asks another to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/error.h"
#include "shm/latch.h"

namespace sluice {

// X(enumerator, backend_type)
#define SLUICE_PROCESS_KINDS(X)         \
  X(kUnused, "")                        \
  X(kPostmaster, "postmaster")          \
  X(kIoWorker, "io worker")             \
  X(kParallelWorker, "parallel worker") \
  X(kClientBackend, "client backend")   \
  X(kViewWorker, "view worker")         \
  X(kTransactionResolver, "transaction resolver")

enum class ProcessKind : uint32_t {
#define X(enumerator, name) enumerator,
  SLUICE_PROCESS_KINDS(X)
#undef X
};
const char* NameOf(ProcessKind kind);

enum class ActivityState : uint32_t {
  kNone,
  kIdle,
  kActive,
  kIdleInTransaction,
  kIdleInFailedTransaction
};

using ProcNumber = uint32_t;
inline constexpr ProcNumber kNoProc = ~ProcNumber{0};

struct ParallelQuery;  // shm/parallel_query.h

struct alignas(64) ProcSlot {
  Latch latch;

  // P1: kind and pid are stored by the postmaster (at fork, at reap) and read by anyone.
  std::atomic<ProcessKind> kind;
  std::atomic<int32_t> pid;
  // P2: requests to this process: stored by any process, followed by SetLatch; consumed by the
  // owner in CheckForInterrupts().
  std::atomic<uint32_t> cancel_requested;     // 57014; `statement` it is for is the running one
  std::atomic<uint32_t> terminate_requested;  // 57P01
  std::atomic<uint32_t> reload_requested;     // SIGHUP
  std::atomic<uint32_t> recall_requested;     // lent connections are wanted back: shm/lease.h
  std::atomic<int32_t> cancel_key;            // second half of BackendKeyData
  // P3: parallel workers: a backend hands over work by compare-and-swap from null, then SetLatch;
  // the worker stores null when it has let go of everything in it.
  std::atomic<ParallelQuery*> assignment;

  // P4: written by the owner only; read by pg_stat_activity under the seqlock `activity_version`
  // (odd while being written).
  std::atomic<uint32_t> activity_version;
  std::atomic<WaitEvent> wait_event;
  ActivityState state;
  int64_t backend_start;  // µs since 2000-01-01 UTC, as all times here; 0 = none
  int64_t xact_start, query_start, state_change;
  uint64_t query_id;
  ProcNumber leader;    // of a parallel worker at work
  int32_t client_port;  // -1: unix socket
  char client_addr[46];
  char user[64], database[64], application_name[64];
  char query[1024];  // cut at track_activity_query_size
};

struct ProcessTable {
  uint32_t count;
  // [0] postmaster, [1] io worker, then parallel workers, then backends, view worker, transaction
  // resolver.
  ProcSlot* slots;
  uint32_t first_parallel_worker, parallel_workers;
  uint32_t first_backend, backends;
  ProcNumber view_worker, transaction_resolver;
};

inline constexpr ProcNumber kPostmasterProc = 0;
inline constexpr ProcNumber kIoWorkerProc = 1;

// This process's own slot; set once after fork (AttachProcess), null in unit tests without a table.
// (One a thread only for the tests, where threads play processes.)
extern constinit thread_local ProcSlot* my_proc;
extern constinit thread_local ProcNumber my_proc_number;
void AttachProcess(ProcNumber number);
// Postmaster, before it forks the child for a slot: clears what the last process there left behind.
// (The child must not clear requests itself: one may have been made since the fork.)
void PrepareSlot(ProcSlot* slot, ProcessKind kind);

// Copies of a slot's activity that belong together.
struct ActivityRow {
  int32_t pid;
  ProcessKind kind;
  ActivityState state;
  WaitEvent wait_event;
  int64_t backend_start, xact_start, query_start, state_change;
  ProcNumber leader;
  int32_t client_port;
  char client_addr[46];
  char user[64], database[64], application_name[64];
  char query[1024];
};
bool ReadActivity(const ProcSlot& slot, ActivityRow* row);  // false: unused
// Writers (owner only): begin/end bracket changes of the P4 fields.
void BeginActivityWrite();
void EndActivityWrite();

// Throws 57014 / 57P01 in a process that serves a query when it was asked to stop, a statement
// timeout has passed (57014 with its own message), or the client is gone. Cheap: two relaxed loads.
// Called in every loop that may be long, and after every wake-up.
void CheckForInterrupts();
// Sleeps until this process's latch is set, the running statement times out or the client goes
// away; then CheckForInterrupts. The wait of every loop that serves a query (see latch.h for the
// loop).
void WaitInterruptibly(WaitEvent event);
// The same, ended by `fd` too, or at `deadline_us` (MonotonicUs; 0: none).
void WaitInterruptibly(WaitEvent event, pollfd fd, int64_t deadline_us);
// A parallel worker's: if it points at a value that is not 0, CheckForInterrupts throws 57014; the
// worker knows that its leader wants no more.
extern constinit thread_local const std::atomic<uint32_t>* interrupt_stop_flag;
// While it lives, WaitInterruptibly calls `fn` before it sleeps. If that returns true, something
// has changed, and it does not sleep. Null: nothing is called.
class BeforeWait {
 public:
  using Fn = bool (*)(void* self);
  BeforeWait(Fn fn, void* self);
  ~BeforeWait();
  BeforeWait(const BeforeWait&) = delete;
  BeforeWait& operator=(const BeforeWait&) = delete;

 private:
  Fn outer_fn_;
  void* outer_self_;
};
// While > 0 CheckForInterrupts does nothing (cleaning up).
extern constinit thread_local int interrupt_holdoff_count;
class HoldInterrupts {
 public:
  HoldInterrupts() { interrupt_holdoff_count++; }
  ~HoldInterrupts() { interrupt_holdoff_count--; }
};
// µs of CLOCK_MONOTONIC at which the running statement times out, 0 = never; process-local.
extern int64_t statement_deadline_us;
// The client's socket, watched for its end while a statement runs; -1 = none; process-local.
extern int client_socket;
// µs of CLOCK_MONOTONIC.
int64_t MonotonicUs();

}  // namespace sluice
