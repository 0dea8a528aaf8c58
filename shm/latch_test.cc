#include "shm/latch.h"

#include <csignal>

#include "shm/test_memory.h"

namespace sluice {
namespace {

using LatchTest = SharedMemoryTest;

TEST_F(LatchTest, ASetLatchEndsTheWaitAtOnceUntilItIsReset) {
  Latch* latch = &my_proc->latch;
  SetLatch(latch);
  EXPECT_EQ(WaitLatch(latch, {}, -1, WaitEvent::kPgSleep), Woken::kLatch);
  EXPECT_EQ(WaitLatch(latch, {}, -1, WaitEvent::kPgSleep), Woken::kLatch);
  ResetLatch(latch);
  EXPECT_EQ(WaitLatch(latch, {}, 1, WaitEvent::kPgSleep), Woken::kTimeout);
}

TEST_F(LatchTest, AReadyDescriptorEndsTheWait) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pollfd fd{ends[0], POLLIN, 0};
  EXPECT_EQ(WaitLatch(&my_proc->latch, {&fd, 1}, 1, WaitEvent::kPgSleep), Woken::kTimeout);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_EQ(WaitLatch(&my_proc->latch, {&fd, 1}, -1, WaitEvent::kPgSleep), Woken::kFd);
  EXPECT_EQ(fd.revents, POLLIN);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(LatchTest, ASleeperShowsItsWaitEventAndAnotherProcessWakesIt) {
  pid_t child = Fork(Backend(1), ProcessKind::kClientBackend, [&] {
    return WaitLatch(&my_proc->latch, {}, 20'000, WaitEvent::kPgSleep) == Woken::kLatch ? 0 : 1;
  });
  ProcSlot& slot = Slot(Backend(1));
  while (slot.wait_event.load() != WaitEvent::kPgSleep) usleep(100);
  SetLatch(&slot.latch);
  EXPECT_EQ(ExitCode(child), 0);
  EXPECT_EQ(slot.wait_event.load(), WaitEvent::kNone);
}

TEST_F(LatchTest, ASignalHandlersSetWakesAndASignalAloneDoesNot) {
  pid_t child = Fork(Backend(1), ProcessKind::kClientBackend, [&] {
    signal(SIGUSR1, [](int) {});
    signal(SIGUSR2, [](int) { SetLatch(&my_proc->latch); });
    Woken woken = WaitLatch(&my_proc->latch, {}, 20'000, WaitEvent::kPgSleep);
    return woken == Woken::kLatch && my_proc->latch.is_set.load() == 1 ? 0 : 1;
  });
  while (Slot(Backend(1)).latch.sleeping.load() == 0) usleep(100);
  kill(child, SIGUSR1);
  usleep(20'000);
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0);
  kill(child, SIGUSR2);
  EXPECT_EQ(ExitCode(child), 0);
}

// Two processes hand a number back and forth; one lost wake-up and the test hangs into its
// time-out.
TEST_F(LatchTest, NoWakeUpIsLostInAnyOfManyHandOvers) {
  constexpr uint32_t kRounds = 20'000;
  auto* turn = new (AllocateExtents(1)) std::atomic<uint32_t>(0);
  auto play = [&](uint32_t parity, ProcNumber peer) {
    for (uint32_t i = parity; i < kRounds; i += 2) {
      for (;;) {
        ResetLatch(&my_proc->latch);
        if (turn->load() == i) break;
        if (WaitLatch(&my_proc->latch, {}, 20'000, WaitEvent::kPgSleep) == Woken::kTimeout)
          return 1;
      }
      turn->store(i + 1);
      SetLatch(&Slot(peer).latch);
    }
    return 0;
  };
  pid_t odd = Fork(Backend(1), ProcessKind::kClientBackend, [&] { return play(1, Backend(0)); });
  EXPECT_EQ(play(0, Backend(1)), 0);
  EXPECT_EQ(ExitCode(odd), 0);
  EXPECT_EQ(turn->load(), kRounds);
}

}  // namespace
}  // namespace sluice
