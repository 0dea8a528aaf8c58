#include "fdw/io_worker.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/assert.h"
#include "fdw/connection.h"
#include "fdw/group.h"
#include "fdw/pool.h"
#include "fdw/stream_task.h"
#include "fdw/worker.h"
#include "shm/lease.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

// How long a sleep may last while nothing else bounds it: so often is looked whether the parent is
// there.
constexpr int64_t kParentCheckUs = 1'000'000;

void OnTerminateSignal(int) {
  my_proc->terminate_requested.store(1, std::memory_order_relaxed);
  SetLatch(&my_proc->latch);
}

void InstallSignals() {
  struct sigaction action {};
  action.sa_handler = OnTerminateSignal;
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);  // nothing of what it has can be reloaded
  sigaction(SIGPIPE, &action, nullptr);
}

// Every connection is a descriptor.
void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::unique_ptr<IoRing> MakeRing(const IoWorkerConfig& config) {
  std::unique_ptr<IoRing> ring;
  if (config.io_method != IoMethod::kEpoll) {
    Result<std::unique_ptr<IoRing>> made = MakeIoUringRing();
    if (made.ok()) {
      ring = std::move(*made);
    } else {
      Log(LogLevel::kWarning, "{}; the io worker uses epoll", made.error().message);
    }
  }
  if (ring == nullptr) {
    Result<std::unique_ptr<IoRing>> made = MakeEpollRing();
    if (!made.ok()) {
      LogError(LogLevel::kFatal, made.error());
      _exit(1);
    }
    ring = std::move(*made);
    shared_memory->io_uses_epoll.store(1, std::memory_order_relaxed);
  } else {
    shared_memory->io_uses_epoll.store(0, std::memory_order_relaxed);
  }
  const IoFaults& faults = config.faults;
  bool faulty =
      faults.short_receive || faults.short_send || faults.delay || faults.interrupt || faults.reset;
  if (faulty) ring = MakeFaultyRing(std::move(ring), faults);
  return ring;
}

class Loop {
 public:
  explicit Loop(const IoWorkerConfig& config)
      // Empties the eventfd too; only now, so that a sleep that a socket ended costs no read of it.
      : latch_poll_([](void*, int) { EndSleep(&my_proc->latch); }, nullptr), parent_(getppid()) {
    worker_.config = config;
    worker_.ring = MakeRing(config);
    worker_.now_us = MonotonicMicros();
    worker_.pools = std::make_unique<PoolSet>(&worker_);
    worker_.groups = std::make_unique<GroupSet>(&worker_);
  }

  void Run() {
    while (my_proc->terminate_requested.load(std::memory_order_relaxed) == 0) {
      bool latch_was_set = my_proc->latch.is_set.load(std::memory_order_seq_cst) != 0;
      if (latch_was_set) {
        ResetLatch(&my_proc->latch);
        TakeRequests();
        ResumeWaiting();
      }
      worker_.timers.Run(worker_.now_us);
      worker_.groups->Round();
      BuryDead();
      Sleep();
      worker_.now_us = MonotonicMicros();
      worker_.ring->HandleCompletions();
      if (worker_.now_us - parent_checked_us_ >= kParentCheckUs) {
        parent_checked_us_ = worker_.now_us;
        if (getppid() != parent_) return;
      }
    }
  }

 private:
  void TakeRequests() {
    Request request;
    while (TakeRequest(&request)) {
      switch (request.kind) {
        case RequestKind::kOpen:
          worker_.groups->Open(request.group);
          break;
        case RequestKind::kClose:
          worker_.groups->Close(request.group);
          break;
        case RequestKind::kUnpin:
          worker_.pools->Unpin(request.pin, true);
          break;
        case RequestKind::kEndPin:
          worker_.pools->Unpin(request.pin, false);
          break;
        case RequestKind::kCancelPin:
          worker_.pools->CancelPin(request.pin);
          break;
        case RequestKind::kGiveBack:
          static_cast<Connection*>(request.lease->connection)->TakeBack();
          break;
        case RequestKind::kForget:
          worker_.pools->Forget(request.pool_key_hash);
          break;
      }
      // A close must find its group admitted or waiting, an unpin its pin: one after the other.
      worker_.groups->Round();
    }
  }

  void ResumeWaiting() {
    std::vector<StreamTask*> waiting = std::exchange(worker_.waiting, {});
    for (StreamTask* task : waiting) {
      if (!task->ended()) task->Resume();
    }
  }

  void BuryDead() {
    std::erase_if(worker_.graveyard, [](const auto& connection) { return connection->dead(); });
  }

  // The one wait: over all sockets, the latch and the timers.
  void Sleep() {
    int64_t timeout_us = worker_.timers.UntilNext(worker_.now_us);
    if (timeout_us < 0 || timeout_us > kParentCheckUs) timeout_us = kParentCheckUs;
    if (!latch_poll_.in_flight) worker_.ring->Poll(&latch_poll_, my_proc->latch.event_fd, POLLIN);
    bool sleep = BeginSleep(&my_proc->latch);
    if (sleep) my_proc->wait_event.store(WaitEvent::kIoWorkerMain, std::memory_order_relaxed);
    worker_.ring->Wait(sleep ? timeout_us : 0);
    if (!sleep) return;
    my_proc->latch.sleeping.store(0, std::memory_order_relaxed);
    my_proc->wait_event.store(WaitEvent::kNone, std::memory_order_relaxed);
  }

  Worker worker_;
  IoOperation latch_poll_;
  const pid_t parent_;
  int64_t parent_checked_us_ = 0;
};

}  // namespace

void IoWorkerMain(const IoWorkerConfig& config) {
  SLUICE_ASSERT(my_proc != nullptr && my_proc_number == kIoWorkerProc);
  SetLogProcessName("io worker");
  log_min_messages = config.log_min_messages;
  InstallSignals();
  RaiseDescriptorLimit();
  auto* loop =
      new Loop(config);  // never destroyed: the kernel closes what is open when the process ends
  loop->Run();
  _exit(0);
}

}  // namespace sluice
