// The seam between the io worker and the kernel: operations are submitted, one Wait() sleeps over
// all of them, their completions are queued and then handled. Two implementations (io_uring, epoll)
// and a seeded faulty wrapper for tests behave alike:
//   - Receive/Send/Poll and Cancel never block; only Wait() sleeps.
//   - An operation completes exactly once, later, from HandleCompletions(): never from inside the
//   call
//     that submitted it. Until then the operation, its buffer and its descriptor must stay alive.
//   - Receive and Send may be short; a result is a byte count, 0 at end of file, or -errno (-EINTR
//   and
//     -EAGAIN too: submit again). Poll's result is the ready events.
//   - Per descriptor at most one operation that reads and one that writes is in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/error.h"

namespace sluice {

struct IoOperation {
  enum class Kind : uint8_t { kReceive, kSend, kPoll };
  using Handler = void (*)(void* owner, int result);

  IoOperation(Handler handler, void* owner) : handler(handler), owner(owner) {}
  IoOperation(const IoOperation&) = delete;
  IoOperation& operator=(const IoOperation&) = delete;

  const Handler handler;
  void* const owner;
  bool in_flight = false;  // from submission until just before the handler runs

  // The ring's own.
  Kind kind{};
  int fd = -1;
  char* buffer = nullptr;
  size_t size_bytes = 0;
  short events = 0;
  int result = 0;
  IoOperation* next = nullptr;
};

class IoRing {
 public:
  virtual ~IoRing() = default;

  virtual void Receive(IoOperation* operation, int fd, char* to, size_t size_bytes) = 0;
  virtual void Send(IoOperation* operation, int fd, const char* from, size_t size_bytes) = 0;
  virtual void Poll(IoOperation* operation, int fd, short events) = 0;
  // Ends an operation early: it completes with -ECANCELED, or with what it had already done.
  virtual void Cancel(IoOperation* operation) = 0;

  // Submits what was asked, then sleeps until a completion is queued or `timeout_us` has passed
  // (0: only looks; < 0: no limit).
  virtual void Wait(int64_t timeout_us) = 0;

  // Whether sockets given to Receive and Send must be in blocking mode (io_uring gives -EAGAIN
  // instead of waiting for one that is not).
  virtual bool needs_blocking_sockets() const = 0;
  virtual const char* name() const = 0;

  // Queues a completion that needs no kernel, as if the operation had been submitted and done.
  void Complete(IoOperation* operation, int result);
  bool has_completions() const { return first_ != nullptr; }
  // Runs the handlers of all completions queued so far (not of those that they queue).
  void HandleCompletions();
  // For a ring that wraps this one: the next queued completion, or null. It stays in flight.
  IoOperation* TakeCompletion();

 protected:
  void Enqueue(IoOperation* operation, int result);

 private:
  IoOperation* first_ = nullptr;
  IoOperation* last_ = nullptr;
};

enum class IoMethod : uint8_t { kAuto, kIoUring, kEpoll };

Result<std::unique_ptr<IoRing>> MakeIoUringRing();
Result<std::unique_ptr<IoRing>> MakeEpollRing();

// What a faulty ring does to the operations that pass through it, in thousandths.
struct IoFaults {
  uint64_t seed = 0;
  int short_receive = 0;  // receives fewer bytes than there is room for, often 1
  int short_send = 0;
  int delay = 0;      // hands the completion on some rounds later
  int interrupt = 0;  // -EINTR instead of doing it
  int reset = 0;      // -ECONNRESET instead of doing it
};
std::unique_ptr<IoRing> MakeFaultyRing(std::unique_ptr<IoRing> ring, const IoFaults& faults);

}  // namespace sluice
