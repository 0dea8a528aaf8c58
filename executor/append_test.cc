#include "executor/fake_shards.h"

namespace sluice {
namespace {

using AppendTest = ExecutorTest;

TEST_F(AppendTest, OneScanGivesAllRowsOverManySlices) {
  for (int64_t rows : {0, 1, 999, 1000, 1001, 2047, 2048, 2049, 20'000}) {
    SCOPED_TRACE(rows);
    EXPECT_EQ(Run(Scan("rows=" + std::to_string(rows))).ids, Upto(rows));
  }
}

TEST_F(AppendTest, NullsComeAndGoBetweenBatches) {
  std::vector<int64_t> ids = Run(Scan("rows=5000 slice=100 null=900")).ids;
  ASSERT_EQ(ids.size(), 5000u);
  for (int64_t i = 0; i < 5000; i++)
    ASSERT_EQ(ids[static_cast<size_t>(i)], i % 900 == 0 ? INT64_MIN : i);
}

TEST_F(AppendTest, GivesTheRowsOfAllShards) {
  const Plan* plan = AppendOf({Scan("rows=3000 start=0 step=4"), Scan("rows=3000 start=1 step=4"),
                               Scan("rows=3000 start=2 step=4"), Scan("rows=3000 start=3 step=4")});
  EXPECT_EQ(Sorted(Run(plan).ids), Upto(12'000));
}

TEST_F(AppendTest, DoesNotWaitForASlowShardWhileOthersHaveRows) {
  const Plan* plan =
      AppendOf({Scan("rows=100 slice=1 pause=2000 start=1000000"), Scan("rows=50000")});
  Executor executor(*Statement(plan), context_);
  std::vector<int64_t> ids = Read(&executor, 50'000).ids;
  auto slow = std::count_if(ids.begin(), ids.end(), [](int64_t id) { return id >= 1'000'000; });
  EXPECT_LT(slow, 90);
}

TEST_F(AppendTest, LocalChildrenAreRunInPlace) {
  const Plan* plan = AppendOf({Values(0, 100), Scan("rows=1000 start=100"), Values(1100, 50)});
  EXPECT_EQ(Sorted(Run(plan).ids), Upto(1150));
}

TEST_F(AppendTest, AnAppendOfAnAppendWorks) {
  const Plan* inner = AppendOf({Scan("rows=10 start=10"), Scan("rows=10 start=20")});
  EXPECT_EQ(Sorted(Run(AppendOf({Scan("rows=10"), inner})).ids), Upto(30));
}

TEST_F(AppendTest, AShardsErrorIsRaisedWithItsServerAndStatement) {
  Outcome outcome = Run(AppendOf({Scan("rows=2000"), Scan("rows=10000 fail=5000", 7)}));
  EXPECT_EQ(outcome.error, "22012");
  EXPECT_EQ(outcome.message, "division by zero");
  EXPECT_EQ(outcome.context, "remote SQL command on server \"s7\": rows=10000 fail=5000");
}

TEST_F(AppendTest, FewerRowsThanTheShardCountedIsAnError) {
  EXPECT_EQ(Run(Scan("rows=500 lie=1")).error, "XX000");
  EXPECT_EQ(Run(Scan("rows=500 lie=0")).error, "");
}

TEST_F(AppendTest, StoppingEarlyLeavesNothingBehind) {
  const Plan* plan = AppendOf({Scan("rows=1000000"), Scan("rows=1000000")});
  Executor executor(*Statement(plan), context_);
  EXPECT_GE(Read(&executor, 1000).ids.size(), 1000u);
}

TEST_F(AppendTest, ACancelEndsTheWaitForASilentShard) {
  Executor executor(*Statement(Scan("rows=10 slice=5 pause=60000000")), context_);
  ProcSlot* slot = my_proc;
  std::thread canceller([slot] {
    usleep(20'000);
    slot->cancel_requested.store(1);
    SetLatch(&slot->latch);
  });
  Outcome outcome = Read(&executor);
  canceller.join();
  EXPECT_EQ(outcome.error, "57014");
  EXPECT_EQ(outcome.ids.size(), 5u);
}

TEST_F(AppendTest, AMergeKeepsTheOrderAndStopsEarly) {
  const Plan* plan =
      MergeOf({Scan("rows=5000 start=0 step=3 slice=7"), Scan("rows=5000 start=1 step=3"),
               Scan("rows=5000 start=2 step=3 slice=333"), Scan("rows=0")});
  EXPECT_EQ(Run(plan).ids, Upto(15'000));
  Executor executor(
      *Statement(MergeOf({Scan("rows=500000 step=2"), Scan("rows=500000 start=1 step=2")})),
      context_);
  std::vector<int64_t> some = Read(&executor, 3000).ids;
  EXPECT_EQ(some, Upto(static_cast<int64_t>(some.size())));
}

TEST_F(AppendTest, PassThroughGivesTheShardsBytes) {
  const Plan* plan = AppendOf({Scan("rows=3000 step=2"), Scan("rows=3000 start=1 step=2")});
  auto* statement = const_cast<PlannedStatement*>(Statement(plan));
  statement->pass_through = true;
  Executor executor(*statement, context_);
  Slice slice;
  uint64_t rows = 0, bytes = 0;
  while (executor.NextSlice(&slice)) {
    EXPECT_EQ(slice.kind, SliceKind::kDataRows);
    rows += slice.rows;
    bytes += slice.size_bytes;
    ReleaseSlice(slice);
  }
  std::string expected;
  for (int64_t i = 0; i < 6000; i++) AppendFakeRow(&expected, i, false);
  EXPECT_EQ(rows, 6000u);
  EXPECT_EQ(bytes, expected.size());
  EXPECT_EQ(executor.Claims(plan->id)[0][1].rows, 3000u);
}

TEST_F(AppendTest, ChildrenClaimedWholeGiveTheSameRows) {
  AppendPlan* plan = AppendOf({Scan("rows=3000"), Values(3000, 10), Scan("rows=2000 start=3010")});
  plan->claim_whole = true;
  EXPECT_EQ(Sorted(Run(plan).ids), Upto(5010));
}

}  // namespace
}  // namespace sluice
