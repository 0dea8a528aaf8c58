#include "executor/fake_shards.h"
#include "types/codec.h"

namespace sluice {
namespace {

class CompletionTest : public ExecutorTest {
 protected:
  const Plan* CompletionOf(std::vector<const Plan*> children) {
    size_t inputs = children.size();
    auto* plan = NewPlan<CompletionPlan>(PlanKind::kCompletion, std::move(children));
    plan->server = 1;
    plan->server_name = "s1";
    auto given = arena_->NewArray<CompletionPlan::Input>(inputs);
    for (auto& input : given)
      input = {"CREATE TEMPORARY TABLE i (id int8, t text)", "COPY i FROM STDIN (FORMAT binary)"};
    plan->inputs = given;
    plan->sql = "copied";
    auto binary = arena_->NewArray<bool>(2);
    binary[0] = binary[1] = true;
    plan->binary = binary;
    return plan;
  }
};

TEST_F(CompletionTest, CopiesItsInputToTheServerAndGivesTheStatementsRows) {
  for (int64_t rows : {0, 1, 3000, 40'000}) {
    SCOPED_TRACE(rows);
    EXPECT_EQ(Run(CompletionOf({Scan("rows=" + std::to_string(rows))})).ids, Upto(rows));
  }
}

TEST_F(CompletionTest, NullsAreCopied) {
  std::vector<int64_t> ids = Run(CompletionOf({Scan("rows=10 null=2")})).ids;
  EXPECT_EQ(std::count(ids.begin(), ids.end(), INT64_MIN), 5);
  EXPECT_EQ(ids.size(), 10u);
}

TEST_F(CompletionTest, AnErrorOfItsInputEndsIt) {
  EXPECT_EQ(Run(CompletionOf({Scan("rows=100000 fail=50000")})).error, "22012");
}

}  // namespace
}  // namespace sluice
