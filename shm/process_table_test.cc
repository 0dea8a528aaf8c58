#include "shm/process_table.h"

#include <sys/socket.h>

#include "shm/test_memory.h"

namespace sluice {
namespace {

using ProcessTableTest = SharedMemoryTest;

template <typename Fn>
std::pair<std::string, std::string> Caught(Fn&& fn) {
  try {
    fn();
  } catch (const QueryError& e) {
    return {SqlStateText(e.error.state), e.error.message};
  }
  return {};
}
using Text = std::pair<std::string, std::string>;

TEST_F(ProcessTableTest, ACancelIsThrownOnceAndATerminateStays) {
  EXPECT_EQ(Caught(CheckForInterrupts), Text());
  my_proc->cancel_requested.store(1);
  Text cancel{"57014", "canceling statement due to user request"};
  EXPECT_EQ(Caught(CheckForInterrupts), cancel);
  EXPECT_EQ(Caught(CheckForInterrupts), Text());
  my_proc->terminate_requested.store(1);
  Text terminate{"57P01", "terminating connection due to administrator command"};
  EXPECT_EQ(Caught(CheckForInterrupts), terminate);
  EXPECT_EQ(Caught(CheckForInterrupts), terminate);
  HoldInterrupts hold;
  EXPECT_EQ(Caught(CheckForInterrupts), Text());
}

// The latch was set for it and reset by the loop that is about to wait.
TEST_F(ProcessTableTest, ARequestBeforeTheResetIsNotSleptOver) {
  my_proc->cancel_requested.store(1);
  SetLatch(&my_proc->latch);
  ResetLatch(&my_proc->latch);
  statement_deadline_us = MonotonicUs() + 5'000'000;  // or the test hangs
  Text cancel{"57014", "canceling statement due to user request"};
  EXPECT_EQ(Caught([] { WaitInterruptibly(WaitEvent::kHashBuild); }), cancel);
  statement_deadline_us = 0;
}

TEST_F(ProcessTableTest, AStatementTimeoutEndsAWait) {
  statement_deadline_us = MonotonicUs() + 2000;
  Text timeout{"57014", "canceling statement due to statement timeout"};
  EXPECT_EQ(Caught([] {
              for (;;) {
                ResetLatch(&my_proc->latch);
                WaitInterruptibly(WaitEvent::kPgSleep);
              }
            }),
            timeout);
  EXPECT_EQ(statement_deadline_us, 0);
}

TEST_F(ProcessTableTest, AClientThatGoesAwayEndsAWait) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  client_socket = ends[0];
  ASSERT_EQ(write(ends[1], "Q", 1), 1);  // a client that pipelines is still there
  std::thread closer([&] {
    usleep(5000);
    close(ends[1]);
  });
  Text lost{"08006", "connection to client lost"};
  EXPECT_EQ(Caught([] {
              for (;;) {
                ResetLatch(&my_proc->latch);
                WaitInterruptibly(WaitEvent::kPgSleep);
              }
            }),
            lost);
  closer.join();
  client_socket = -1;
  close(ends[0]);
}

TEST_F(ProcessTableTest, UnusedSlotsHaveNoActivity) {
  ActivityRow row;
  EXPECT_FALSE(ReadActivity(Slot(Backend(3)), &row));
  EXPECT_TRUE(ReadActivity(*my_proc, &row));
  EXPECT_EQ(row.kind, ProcessKind::kClientBackend);
}

// The writer keeps query_start and query equal; a reader must never see a mixture.
TEST_F(ProcessTableTest, AReaderNeverSeesHalfAnActivity) {
  pid_t writer = Fork(Backend(1), ProcessKind::kClientBackend, [&] {
    for (int64_t i = 1; i <= 200'000; i++) {
      BeginActivityWrite();
      my_proc->query_start = i;
      snprintf(my_proc->query, sizeof my_proc->query, "%ld", static_cast<long>(i));
      my_proc->state_change = i;
      EndActivityWrite();
    }
    return 0;
  });
  ActivityRow row{};
  while (row.query_start != 200'000) {
    if (!ReadActivity(Slot(Backend(1)), &row) || row.query_start == 0) continue;
    ASSERT_EQ(row.query_start, row.state_change);
    ASSERT_EQ(std::to_string(row.query_start), row.query);
  }
  EXPECT_EQ(ExitCode(writer), 0);
}

}  // namespace
}  // namespace sluice
