// A ring that misbehaves in every way that the seam allows, from a seed: for tests.
#include <cerrno>
#include <random>
#include <vector>

#include "fdw/io_ring.h"

namespace sluice {
namespace {

class FaultyRing final : public IoRing {
 public:
  FaultyRing(std::unique_ptr<IoRing> ring, const IoFaults& faults)
      : ring_(std::move(ring)), faults_(faults), random_(faults.seed) {}

  void Receive(IoOperation* operation, int fd, char* to, size_t size_bytes) override {
    if (Fails(operation)) return;
    if (Happens(faults_.short_receive)) size_bytes = Shorter(size_bytes);
    ring_->Receive(operation, fd, to, size_bytes);
  }
  void Send(IoOperation* operation, int fd, const char* from, size_t size_bytes) override {
    if (Fails(operation)) return;
    if (Happens(faults_.short_send)) size_bytes = Shorter(size_bytes);
    ring_->Send(operation, fd, from, size_bytes);
  }
  void Poll(IoOperation* operation, int fd, short events) override {
    ring_->Poll(operation, fd, events);
  }
  void Cancel(IoOperation* operation) override {
    if (!IsOurs(operation)) ring_->Cancel(operation);
  }

  void Wait(int64_t timeout_us) override {
    bool here = has_completions() || !delayed_.empty() || ring_->has_completions();
    ring_->Wait(here ? 0 : timeout_us);
    TakeCompletions();
  }

  bool needs_blocking_sockets() const override { return ring_->needs_blocking_sockets(); }
  const char* name() const override { return "faulty"; }

 private:
  bool Happens(int thousandths) {
    return thousandths > 0 && static_cast<int>(random_() % 1000) < thousandths;
  }
  size_t Shorter(size_t size_bytes) {
    if (random_() % 2 == 0) return 1;
    return 1 + random_() % size_bytes;
  }
  bool Fails(IoOperation* operation) {
    if (Happens(faults_.interrupt)) return Complete(operation, -EINTR), true;
    if (Happens(faults_.reset)) return Complete(operation, -ECONNRESET), true;
    return false;
  }
  bool IsOurs(IoOperation* operation) const {
    for (const Delayed& delayed : delayed_) {
      if (delayed.operation == operation) return true;
    }
    return false;
  }

  // Completions of the ring beneath become ours, now or some rounds later.
  void TakeCompletions() {
    std::vector<Delayed> later;
    for (Delayed& delayed : delayed_) {
      if (--delayed.rounds > 0) {
        later.push_back(delayed);
      } else {
        Enqueue(delayed.operation, delayed.result);
      }
    }
    delayed_ = std::move(later);
    while (IoOperation* operation = ring_->TakeCompletion()) {
      if (Happens(faults_.delay)) {
        delayed_.push_back({operation, operation->result, 1 + static_cast<int>(random_() % 5)});
      } else {
        Enqueue(operation, operation->result);
      }
    }
  }

  struct Delayed {
    IoOperation* operation;
    int result;
    int rounds;
  };

  std::unique_ptr<IoRing> ring_;
  const IoFaults faults_;
  std::mt19937_64 random_;
  std::vector<Delayed> delayed_;
};

}  // namespace

std::unique_ptr<IoRing> MakeFaultyRing(std::unique_ptr<IoRing> ring, const IoFaults& faults) {
  return std::make_unique<FaultyRing>(std::move(ring), faults);
}

}  // namespace sluice
