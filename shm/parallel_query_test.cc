#include "shm/parallel_query.h"

#include "shm/test_memory.h"

namespace sluice {
namespace {

using ParallelQueryTest = SharedMemoryTest;

TEST_F(ParallelQueryTest, WorkersTakeAssignmentsReportTheFirstErrorAndLetGo) {
  Arena arena(blocks_);
  auto* query = arena.New<ParallelQuery>();
  query->leader = my_proc_number;
  std::vector<pid_t> workers;
  for (uint32_t w = 0; w < 3; w++)
    workers.push_back(Fork(Worker(w), ProcessKind::kParallelWorker, [&] {
      ParallelQuery* mine;
      for (;;) {
        ResetLatch(&my_proc->latch);
        if ((mine = TakeAssignment()) != nullptr) break;
        WaitLatch(&my_proc->latch, {}, 20'000, WaitEvent::kParallelWorkerMain);
      }
      mine->participants.fetch_add(1);
      ReportError(mine, MakeError(sqlstate::kDivisionByZero, "division by zero"));
      FinishAssignment(mine);
      return 0;
    }));
  for (uint32_t w = 0; w < 3; w++)
    while (Slot(Worker(w)).pid.load() == 0) usleep(100);
  EXPECT_EQ(LaunchWorkers(query, 2), 2u);
  for (;;) {
    ResetLatch(&my_proc->latch);
    if (query->running.load(std::memory_order_acquire) == 0) break;
    ASSERT_NE(WaitLatch(&my_proc->latch, {}, 20'000, WaitEvent::kParallelFinish), Woken::kTimeout);
  }
  EXPECT_EQ(query->participants.load(), 3u);
  EXPECT_EQ(query->error_state.load(), 2u);
  EXPECT_EQ(query->error.Load().message, "division by zero");
  EXPECT_EQ(query->stop.load(), 1u);
  for (uint32_t w = 0; w < 2; w++) {
    EXPECT_EQ(ExitCode(workers[w]), 0);
    Slot(Worker(w)).pid.store(0);  // as the postmaster does
  }
  EXPECT_EQ(LaunchWorkers(query, 1), 1u);  // the third is still free
  EXPECT_EQ(ExitCode(workers[2]), 0);
}

}  // namespace
}  // namespace sluice
