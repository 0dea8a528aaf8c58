// VALUES, set-returning functions, and what Materialize keeps.
#include "executor/fake_shards.h"
#include "executor/row_store.h"
#include "types/codec.h"

namespace sluice {
namespace {

class ScansTest : public ExecutorTest {
 protected:
  const Expr* Constant(Oid type, std::string_view text) {
    auto* expr = arena_->New<Expr>();
    expr->kind = ExprKind::kConst;
    expr->type = type;
    expr->value = ParseText(type, -1, text, *context_.settings, arena_.get());
    return expr;
  }
  // The rows of a series, as text.
  std::vector<std::string> Series(Oid function, Oid type, std::vector<const Expr*> args,
                                  std::string* error = nullptr) {
    auto* call = arena_->New<Expr>();
    call->kind = ExprKind::kCall;
    call->function = function;
    call->type = type;
    call->args = arena_->CopyArray(args);
    auto* plan = NewPlan<FunctionScanPlan>(PlanKind::kFunctionScan);
    plan->call = call;
    plan->output = arena_->CopyArray(std::vector<OutputColumn>{{"g", type, -1, kInvalidOid}});
    Executor executor(*Statement(plan), context_);
    std::vector<std::string> rows;
    try {
      Batch batch;
      for (executor.Next(&batch); batch.rows > 0; executor.Next(&batch))
        for (size_t i = 0; i < batch.rows; i++) {
          std::string& text = rows.emplace_back();
          if (batch.columns[0].IsNull(i))
            text = "NULL";
          else
            AppendText(batch.columns[0], i, *context_.settings, &text);
        }
    } catch (const QueryError& e) {
      if (error != nullptr) *error = SqlStateText(e.error.state) + " " + e.error.message;
    }
    return rows;
  }
  using Rows = std::vector<std::string>;
};

TEST_F(ScansTest, IntegerSeriesEndAtTheirStopAndAtTheTypesLimit) {
  auto series = [&](const char* start, const char* stop, const char* step,
                    std::string* error = nullptr) {
    return Series(1066, kInt4Oid,
                  {Constant(kInt4Oid, start), Constant(kInt4Oid, stop), Constant(kInt4Oid, step)},
                  error);
  };
  EXPECT_EQ(series("1", "7", "3"), (Rows{"1", "4", "7"}));
  EXPECT_EQ(series("3", "1", "-1"), (Rows{"3", "2", "1"}));
  EXPECT_EQ(series("3", "1", "1"), Rows());
  EXPECT_EQ(series("2147483640", "2147483647", "5"), (Rows{"2147483640", "2147483645"}));
  EXPECT_EQ(series("1", "5000", "1").size(), 5000u);
  std::string error;
  EXPECT_EQ(series("1", "2", "0", &error), Rows());
  EXPECT_EQ(error, "22023 step size cannot equal zero");
}

TEST_F(ScansTest, NumericAndTimestampSeriesAddTheirStep) {
  EXPECT_EQ(Series(3259, kNumericOid,
                   {Constant(kNumericOid, "0.5"), Constant(kNumericOid, "2"),
                    Constant(kNumericOid, "0.75")}),
            (Rows{"0.5", "1.25", "2.00"}));
  EXPECT_EQ(
      Series(938, kTimestampOid,
             {Constant(kTimestampOid, "2024-01-31 00:00:00"),
              Constant(kTimestampOid, "2024-04-30 00:00:00"), Constant(kIntervalOid, "1 month")}),
      (Rows{"2024-01-31 00:00:00", "2024-02-29 00:00:00", "2024-03-29 00:00:00",
            "2024-04-29 00:00:00"}));
  std::string error;
  Series(3260, kNumericOid, {Constant(kNumericOid, "NaN"), Constant(kNumericOid, "2")}, &error);
  EXPECT_EQ(error, "22023 start value cannot be NaN");
}

TEST_F(ScansTest, UnnestGivesTheElements) {
  EXPECT_EQ(Series(2331, kTextOid, {Constant(kTextArrayOid, "{a,NULL,c d}")}),
            (Rows{"a", "NULL", "c d"}));
  EXPECT_EQ(Series(2331, kInt4Oid, {Constant(kInt4ArrayOid, "{{1,2},{3,4}}")}),
            (Rows{"1", "2", "3", "4"}));
  EXPECT_EQ(Series(2331, kInt4Oid, {Constant(kInt4ArrayOid, "{}")}), Rows());
}

TEST_F(ScansTest, ValuesOfManyBatches) {
  EXPECT_EQ(Run(Values(0, 5000)).ids, Upto(5000));
}

// Rows come back as they went in, in memory and through the file, as often as asked.
TEST_F(ScansTest, ARowStoreKeepsRowsInOrderBeyondItsMemory) {
  for (int64_t memory : {int64_t{1} << 30, int64_t{20'000}}) {
    RowStore store(Columns(), memory, "/tmp");
    Executor executor(*Statement(Scan("rows=20000 null=7")), context_);
    Batch batch;
    for (executor.Next(&batch); batch.rows > 0; executor.Next(&batch)) store.Append(batch);
    EXPECT_EQ(store.spilled_bytes() > 0, memory < 1'000'000);
    for (int round = 0; round < 2; round++) {
      store.Rewind();
      int64_t at = 0;
      for (store.Next(&batch); batch.rows > 0; store.Next(&batch))
        for (size_t i = 0; i < batch.rows; i++, at++) {
          ASSERT_EQ(batch.columns[0].IsNull(i), at % 7 == 0);
          if (at % 7 != 0) {
            ASSERT_EQ(batch.columns[0].At<int64_t>(i), at);
          }
          ASSERT_EQ(batch.columns[1].At<std::string_view>(i), FakeText(at));
        }
      EXPECT_EQ(at, 20'000);
    }
  }
}

}  // namespace
}  // namespace sluice
