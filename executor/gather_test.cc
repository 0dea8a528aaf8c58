#include "executor/fake_shards.h"

namespace sluice {
namespace {

class GatherTest : public ExecutorTest {
 protected:
  AppendPlan* ParallelAppend(std::vector<const Plan*> children) {
    AppendPlan* plan = AppendOf(std::move(children));
    plan->parallel = true;
    return plan;
  }
  std::vector<const Plan*> FourShards(const std::string& more = "") {
    std::vector<const Plan*> scans;
    for (int i = 0; i < 4; i++)
      scans.push_back(
          Scan("rows=5000 step=4 start=" + std::to_string(i) + more, static_cast<Oid>(i + 1)));
    return scans;
  }
};

TEST_F(GatherTest, WorksWithoutAnyWorker) {
  EXPECT_EQ(Sorted(Run(GatherOf(ParallelAppend(FourShards()), 2)).ids), Upto(20'000));
}

TEST_F(GatherTest, WorkersShareTheSlices) {
  StartWorkers(2);
  AppendPlan* append = ParallelAppend(FourShards(" slice=50 pause=50"));
  Executor executor(*Statement(GatherOf(append, 2)), context_);
  EXPECT_EQ(Sorted(Read(&executor).ids), Upto(20'000));
  uint64_t rows = 0;
  int took_part = 0;
  for (auto& participant : executor.Claims(append->id)) {
    uint64_t own = 0;
    for (auto& claim : participant) own += claim.rows;
    took_part += own > 0;
    rows += own;
  }
  EXPECT_EQ(rows, 20'000u);
  EXPECT_EQ(took_part, 3);
  EXPECT_EQ(executor.Statistics(append->id).rows, 20'000u);
}

TEST_F(GatherTest, LocalChildrenAreScatteredAmongTheWorkers) {
  StartWorkers(2);
  for (int round = 0; round < 20; round++) {
    SCOPED_TRACE(round);
    const Plan* plan = GatherOf(ParallelAppend({Values(0, 5000), Scan("rows=3000 start=5000"),
                                                Values(8000, 1), Values(8001, 0)}),
                                2);
    EXPECT_EQ(Sorted(Run(plan).ids), Upto(8001));
  }
}

TEST_F(GatherTest, OnlyLocalChildrenNeedNoIoWorker) {
  StartWorkers(2);
  EXPECT_EQ(Sorted(Run(GatherOf(ParallelAppend({Values(0, 3000), Values(3000, 3000)}), 2)).ids),
            Upto(6000));
}

TEST_F(GatherTest, AChildOfItsOwnQueueIsSharedToo) {
  StartWorkers(2);
  auto* scan = const_cast<Plan*>(Scan("rows=20000 slice=100"));
  EXPECT_EQ(Sorted(Run(GatherOf(scan, 2)).ids), Upto(20'000));
}

TEST_F(GatherTest, ChildrenClaimedWholeGiveTheSameRows) {
  StartWorkers(2);
  std::vector<const Plan*> children = FourShards();
  children.push_back(Values(20'000, 100));
  AppendPlan* append = ParallelAppend(children);
  append->claim_whole = true;
  EXPECT_EQ(Sorted(Run(GatherOf(append, 2)).ids), Upto(20'100));
}

TEST_F(GatherTest, AnErrorInAWorkerOrHereEndsTheQueryForAll) {
  StartWorkers(2);
  for (int round = 0; round < 30; round++) {
    std::vector<const Plan*> scans = FourShards(" pause=20");
    scans.push_back(Scan("rows=10000 slice=10 fail=" + std::to_string(round * 100)));
    Outcome outcome = Run(GatherOf(ParallelAppend(scans), 2));
    EXPECT_EQ(outcome.error, "22012");
    EXPECT_EQ(outcome.message, "division by zero");
  }
  EXPECT_EQ(Sorted(Run(GatherOf(ParallelAppend(FourShards()), 2)).ids), Upto(20'000));
}

TEST_F(GatherTest, StoppingEarlyStopsTheWorkers) {
  StartWorkers(2);
  for (int round = 0; round < 30; round++) {
    const Plan* plan =
        GatherOf(ParallelAppend({Scan("rows=1000000"), Scan("rows=1000000"), Values(0, 9000)}), 2);
    Executor executor(*Statement(plan), context_);
    Read(&executor, static_cast<size_t>(round) * 500 + 1);
  }
  for (uint32_t i = 0; i < 2; i++) EXPECT_EQ(Slot(Worker(i)).assignment.load(), nullptr);
}

TEST_F(GatherTest, ACancelReachesTheWorkers) {
  StartWorkers(2);
  const Plan* plan = GatherOf(ParallelAppend(FourShards(" slice=2 pause=3000")), 2);
  Executor executor(*Statement(plan), context_);
  ProcSlot* slot = my_proc;
  std::thread canceller([slot] {
    usleep(30'000);
    slot->cancel_requested.store(1);
    SetLatch(&slot->latch);
  });
  EXPECT_EQ(Read(&executor).error, "57014");
  canceller.join();
}

// The leader waits for rows that only a worker can produce, who waits for the leader to take its
// results.
TEST_F(GatherTest, NobodyWaitsInACircleWhenResultsFillUp) {
  StartWorkers(2);
  for (int round = 0; round < 10; round++) {
    SCOPED_TRACE(round);
    std::vector<const Plan*> children{Scan("rows=40 slice=1 pause=1000 start=30000")};
    for (int i = 0; i < 6; i++) children.push_back(Values(i * 5000, 5000));
    std::vector<int64_t> expected = Upto(30'040);
    EXPECT_EQ(Sorted(Run(GatherOf(ParallelAppend(children), 2)).ids), expected);
  }
}

TEST_F(GatherTest, TheMergeOfSortedSharesIsSorted) {
  StartWorkers(2);
  // Each participant's share of one sorted stream is sorted.
  for (int round = 0; round < 10; round++) {
    auto* scan = const_cast<Plan*>(Scan("rows=30000 slice=" + std::to_string(20 + 37 * round)));
    EXPECT_EQ(Run(GatherMergeOf(scan, 2)).ids, Upto(30'000));
  }
}

TEST_F(GatherTest, WorkersShowTheirLeadersQuery) {
  StartWorkers(1);
  context_.query_text = "SELECT the rows";
  Executor executor(*Statement(GatherOf(ParallelAppend(FourShards(" slice=1 pause=1000")), 1)),
                    context_);
  Batch batch;
  executor.Next(&batch);
  ActivityRow row{};
  for (int i = 0; i < 1000 && row.leader != my_proc_number; i++) {
    ASSERT_TRUE(ReadActivity(Slot(Worker(0)), &row));
    usleep(100);
  }
  EXPECT_STREQ(row.query, "SELECT the rows");
  EXPECT_EQ(row.state, ActivityState::kActive);
}

}  // namespace
}  // namespace sluice
