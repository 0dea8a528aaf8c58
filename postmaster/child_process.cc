#include "postmaster/child_process.h"

#include <cerrno>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "shm/latch.h"
#include "wire/message.h"

namespace sluice {

Supervision* supervision = nullptr;

namespace {

int quit_client = -1;
volatile sig_atomic_t mid_message_sent = 0, sending = 0, quit_deferred = 0;
// Built before they are needed: a handler may not allocate.
std::string crash_message, shutdown_message, unexpected_message;

constexpr int kExitQuickly = 2;  // Postgres's status after SIGQUIT

void BuildQuitMessages() {
  Error crash = MakeError(sqlstate::kCrashShutdown,
                          "terminating connection because of crash of another server process");
  crash.Detail(
      "The postmaster has commanded this server process to roll back the current transaction and "
      "exit, because another server process exited abnormally and possibly corrupted shared "
      "memory.");
  crash.Hint(
      "In a moment you should be able to reconnect to the database and repeat your command.");
  WriteErrorResponse(&crash_message, crash, "FATAL");
  WriteErrorResponse(&shutdown_message,
                     MakeError(sqlstate::kAdminShutdown,
                               "terminating connection due to immediate shutdown command"),
                     "FATAL");
  WriteErrorResponse(&unexpected_message,
                     MakeError(sqlstate::kAdminShutdown,
                               "terminating connection because of unexpected SIGQUIT signal"),
                     "FATAL");
}

void OnQuit(int) {
  if (sending != 0) {
    quit_deferred = 1;
    return;
  }
  if (quit_client >= 0 && mid_message_sent == 0) {
    QuitReason reason = supervision->quit_reason.load(std::memory_order_relaxed);
    const std::string& message = reason == QuitReason::kCrash               ? crash_message
                                 : reason == QuitReason::kImmediateShutdown ? shutdown_message
                                                                            : unexpected_message;
    [[maybe_unused]] ssize_t sent =
        send(quit_client, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  _exit(kExitQuickly);
}

void Raise(std::atomic<uint32_t> ProcSlot::*flag) {
  if (my_proc == nullptr) return;
  (my_proc->*flag).store(1, std::memory_order_relaxed);
  SetLatch(&my_proc->latch);
}
void OnTerminate(int) {
  if (my_proc == nullptr) _exit(1);  // a child without a slot has nothing to clean up
  Raise(&ProcSlot::terminate_requested);
}
void OnInterrupt(int) {
  Raise(&ProcSlot::cancel_requested);
}
void OnReload(int) {
  Raise(&ProcSlot::reload_requested);
}

void Handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

// Asks the scheduler for short time slices, which let a process that wakes go before one that is in
// the middle of a long one (Linux 6.12 and later; older kernels ignore it). Without, on cores that
// are busy with shards' processes, each hop of a row's way (shard, io worker, backend, client)
// waits for the end of somebody's slice, up to 4 ms. The share of the processor stays the same, and
// no privilege is needed; where a container forbids the call it changes nothing.
//
// Many sessions with point queries are better off with the usual ones: each of the short ones costs
// somebody else a switch of context in the middle of his work.
void SetTimeSlices(TimeSlices slices) {
  struct {  // sched_attr, which glibc does not declare
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
  } attributes{};
  constexpr uint64_t kSliceNs = 100'000;  // the least that the kernel takes
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;                         // an operator's choice
  attributes.runtime_ns = slices == TimeSlices::kShort ? kSliceNs : 0;  // 0: the scheduler's own
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

const char* LogNameOf(ProcessKind kind) {
  return kind == ProcessKind::kUnused ? "client" : NameOf(kind);
}

}  // namespace

void CreateSupervision() {
  void* page =
      mmap(nullptr, sizeof(Supervision), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    Throw(sqlstate::kOutOfMemory, "could not map shared memory: {}", strerror(errno));
  supervision = new (page) Supervision{};
}

int64_t PostgresNow() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  constexpr int64_t kUnixToPostgresSeconds = 946684800;
  return (now.tv_sec - kUnixToPostgresSeconds) * 1'000'000 + now.tv_nsec / 1000;
}

void InitChild(ProcNumber number, ProcessKind kind, int32_t parent) {
  bool serves_client = kind == ProcessKind::kClientBackend || number == kNoProc;
  // Only those that have a client have something to say before they die.
  prctl(PR_SET_PDEATHSIG, serves_client ? SIGQUIT : SIGKILL);
  if (getppid() != parent) _exit(kExitQuickly);  // it died before prctl
  SetLogProcessName(LogNameOf(kind));
  prctl(PR_SET_NAME, LogNameOf(kind));
  if (kind != ProcessKind::kViewWorker) UseTimeSlices(TimeSlices::kShort);
  BuildQuitMessages();
  Handle(SIGTERM, OnTerminate);
  Handle(SIGINT, OnInterrupt);
  Handle(SIGHUP, OnReload);
  Handle(SIGQUIT, OnQuit);
  Handle(SIGPIPE, SIG_IGN);
  Handle(SIGCHLD, SIG_DFL);
  Handle(SIGUSR1, SIG_IGN);
  Handle(SIGUSR2, SIG_IGN);
  if (number != kNoProc) {
    AttachProcess(number);
    my_proc->pid.store(getpid(), std::memory_order_relaxed);
    BeginActivityWrite();
    my_proc->backend_start = PostgresNow();
    EndActivityWrite();
  } else {
    my_proc = nullptr;
    my_proc_number = kNoProc;
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void UseTimeSlices(TimeSlices slices) {
  static TimeSlices used = TimeSlices::kUsual;
  if (std::exchange(used, slices) != slices) SetTimeSlices(slices);
}

void SetQuitClient(int fd) {
  quit_client = fd;
}

void BeginSend() {
  sending = 1;
}

void EndSend(bool mid_message) {
  mid_message_sent = mid_message ? 1 : 0;
  sending = 0;
  if (quit_deferred != 0) OnQuit(SIGQUIT);
}

void ExitChild(int status) {
  _exit(status);
}

}  // namespace sluice
