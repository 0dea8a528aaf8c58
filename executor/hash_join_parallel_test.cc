#include <dirent.h>

#include "executor/fake_shards.h"

namespace sluice {
namespace {

class HashJoinParallelTest : public ExecutorTest {
 protected:
  Plan* ParallelAppend(const std::string& script, int shards) {
    std::vector<const Plan*> scans;
    for (int i = 0; i < shards; i++) {
      scans.push_back(Scan(script + " start=" + std::to_string(i), static_cast<Oid>(i + 1)));
    }
    AppendPlan* plan = AppendOf(scans);
    plan->parallel = true;
    plan->partial = true;
    return plan;
  }
  const Expr* IdColumn(int rel) {
    auto* expr = arena_->New<Expr>();
    expr->kind = ExprKind::kColumn;
    expr->type = kInt8Oid;
    expr->rel = rel;
    expr->column = 0;
    return expr;
  }
  // Outer ids 0…n; inner ids multiples of 3. Both lie on 4 shards.
  HashJoinPlan* Join(JoinType type, const std::string& outer, const std::string& inner) {
    auto* plan = NewPlan<HashJoinPlan>(PlanKind::kHashJoin, {ParallelAppend(outer + " step=4", 4),
                                                             ParallelAppend(inner + " step=3", 3)});
    plan->type = type;
    plan->partial = true;
    plan->shared_build = true;
    plan->outer_keys = arena_->CopyArray(std::vector<const Expr*>{IdColumn(kOuter)});
    plan->inner_keys = arena_->CopyArray(std::vector<const Expr*>{IdColumn(kInner)});
    if (type == JoinType::kInner || type == JoinType::kLeft) {
      std::vector<OutputColumn> output;
      for (int side = 0; side < 2; side++) {
        for (const OutputColumn& column : Columns()) output.push_back(column);
      }
      plan->output = arena_->CopyArray(output);
    }
    return plan;
  }
  // Gather's output is its child's.
  const Plan* Gathered(HashJoinPlan* join, int workers) {
    auto* gather = const_cast<Plan*>(GatherOf(join, workers));
    gather->output = join->output;
    return gather;
  }
  static int SpillFilesLeft() {
    int count = 0;
    DIR* directory = opendir("/tmp");
    while (dirent* entry = readdir(directory)) {
      count += std::string_view(entry->d_name)
                   .starts_with("spill_join_" + std::to_string(getpid()) + "_");
    }
    closedir(directory);
    return count;
  }
  uint64_t Spilled(const Executor& executor, const Plan* join) {
    return executor.Statistics(join->id).spilled_bytes;
  }
};

// Inner ids 0…5999; outer ids 0…19999.
TEST_F(HashJoinParallelTest, AllParticipantsProbeOneTable) {
  StartWorkers(2);
  for (int round = 0; round < 20; round++) {
    SCOPED_TRACE(round);
    std::string pace =
        " slice=" + std::to_string(20 + 50 * round) + (round % 3 ? " pause=100" : "");
    EXPECT_EQ(
        Sorted(
            Run(Gathered(Join(JoinType::kInner, "rows=5000" + pace, "rows=2000" + pace), 2)).ids),
        Upto(6000));
    EXPECT_EQ(
        Sorted(Run(Gathered(Join(JoinType::kSemi, "rows=5000" + pace, "rows=2000" + pace), 2)).ids),
        Upto(6000));
    EXPECT_EQ(
        Sorted(Run(Gathered(Join(JoinType::kAnti, "rows=5000" + pace, "rows=2000" + pace), 2)).ids),
        Upto(20000, 6000));
    EXPECT_EQ(
        Sorted(Run(Gathered(Join(JoinType::kLeft, "rows=5000" + pace, "rows=2000" + pace), 2)).ids),
        Upto(20000));
  }
}

TEST_F(HashJoinParallelTest, WithoutWorkersTheLeaderDoesAll) {
  EXPECT_EQ(Sorted(Run(Gathered(Join(JoinType::kInner, "rows=5000", "rows=2000"), 2)).ids),
            Upto(6000));
  context_.work_mem_bytes = 64 << 10;
  EXPECT_EQ(Sorted(Run(Gathered(Join(JoinType::kInner, "rows=5000", "rows=2000"), 2)).ids),
            Upto(6000));
  EXPECT_EQ(SpillFilesLeft(), 0);
}

TEST_F(HashJoinParallelTest, ATableThatDoesNotFitIsJoinedInPartitions) {
  StartWorkers(2);
  context_.work_mem_bytes = 64 << 10;
  for (int round = 0; round < 4; round++) {
    SCOPED_TRACE(round);
    std::string pace =
        " slice=" + std::to_string(20 + 50 * round) + (round % 3 ? " pause=100" : "");
    for (JoinType type : {JoinType::kInner, JoinType::kLeft, JoinType::kSemi, JoinType::kAnti}) {
      HashJoinPlan* join = Join(type, "rows=5000" + pace, "rows=2000" + pace);
      Executor executor(*Statement(Gathered(join, 2)), context_);
      std::vector<int64_t> expected = type == JoinType::kLeft   ? Upto(20000)
                                      : type == JoinType::kAnti ? Upto(20000, 6000)
                                                                : Upto(6000);
      EXPECT_EQ(Sorted(Read(&executor).ids), expected);
      EXPECT_GT(Spilled(executor, join), 0u);
    }
  }
  EXPECT_EQ(SpillFilesLeft(), 0);
}

TEST_F(HashJoinParallelTest, EmptySides) {
  StartWorkers(2);
  EXPECT_EQ(Run(Gathered(Join(JoinType::kInner, "rows=5000", "rows=0"), 2)).ids, Upto(0));
  EXPECT_EQ(Sorted(Run(Gathered(Join(JoinType::kAnti, "rows=5000", "rows=0"), 2)).ids),
            Upto(20000));
  EXPECT_EQ(Run(Gathered(Join(JoinType::kLeft, "rows=0", "rows=2000"), 2)).ids, Upto(0));
}

TEST_F(HashJoinParallelTest, AnErrorOnEitherSideReleasesEveryWaiter) {
  StartWorkers(2);
  for (int64_t work_mem : {int64_t{64} << 20, int64_t{64} << 10}) {
    context_.work_mem_bytes = work_mem;
    for (int round = 0; round < 15; round++) {
      SCOPED_TRACE(round);
      std::string fail = " slice=50 fail=" + std::to_string(round * 130);
      EXPECT_EQ(Run(Gathered(Join(JoinType::kInner, "rows=5000", "rows=2000" + fail), 2)).error,
                "22012");
      EXPECT_EQ(Run(Gathered(Join(JoinType::kInner, "rows=5000" + fail, "rows=2000"), 2)).error,
                "22012");
    }
    EXPECT_EQ(SpillFilesLeft(), 0);
  }
  EXPECT_EQ(Sorted(Run(Gathered(Join(JoinType::kInner, "rows=5000", "rows=2000"), 2)).ids),
            Upto(6000));
}

TEST_F(HashJoinParallelTest, StoppingEarlyLeavesNothingBehind) {
  StartWorkers(2);
  for (int64_t work_mem : {int64_t{64} << 20, int64_t{64} << 10}) {
    context_.work_mem_bytes = work_mem;
    for (int round = 0; round < 10; round++) {
      Executor executor(*Statement(Gathered(Join(JoinType::kLeft, "rows=50000", "rows=2000"), 2)),
                        context_);
      Read(&executor, static_cast<size_t>(round) * 1000 + 1);
    }
    EXPECT_EQ(SpillFilesLeft(), 0);
  }
  for (uint32_t i = 0; i < 2; i++) EXPECT_EQ(Slot(Worker(i)).assignment.load(), nullptr);
}

}  // namespace
}  // namespace sluice
