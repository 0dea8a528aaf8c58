// Timers of the io worker: the earliest bounds how long its one wait may sleep.
#pragma once

#include <cstdint>
#include <ctime>
#include <set>
#include <utility>

namespace sluice {

inline int64_t MonotonicMicros() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
}

class TimerQueue;

// Disarms itself when destroyed.
class Timer {
 public:
  using Handler = void (*)(void* owner);
  Timer(TimerQueue* queue, Handler handler, void* owner)
      : queue_(queue), handler_(handler), owner_(owner) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { Disarm(); }

  void Arm(int64_t at_us);  // moves it if it is armed
  void Disarm();
  bool armed() const { return at_us_ != 0; }

 private:
  friend class TimerQueue;
  TimerQueue* queue_;
  Handler handler_;
  void* owner_;
  int64_t at_us_ = 0;
};

class TimerQueue {
 public:
  // Runs what is due. A handler may arm and disarm any timer.
  void Run(int64_t now_us) {
    while (!timers_.empty() && timers_.begin()->first <= now_us) {
      Timer* timer = timers_.begin()->second;
      timer->Disarm();
      timer->handler_(timer->owner_);
    }
  }
  // µs until the next one, -1 without any.
  int64_t UntilNext(int64_t now_us) const {
    if (timers_.empty()) return -1;
    int64_t at_us = timers_.begin()->first;
    return at_us > now_us ? at_us - now_us : 0;
  }

 private:
  friend class Timer;
  std::set<std::pair<int64_t, Timer*>> timers_;
};

inline void Timer::Arm(int64_t at_us) {
  Disarm();
  at_us_ = at_us;
  queue_->timers_.emplace(at_us, this);
}

inline void Timer::Disarm() {
  if (at_us_ == 0) return;
  queue_->timers_.erase({at_us_, this});
  at_us_ = 0;
}

}  // namespace sluice
