#include "executor/expression.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "executor/filter.h"
#include "executor/limit.h"
#include "executor/project.h"
#include "executor/testing.h"

namespace sluice {
namespace {

using testing::Harness;
using testing::kNull;
using testing::Rows;

constexpr Oid kInt4Plus = 177, kInt4Div = 154, kInt4Gt = 147, kInt4Eq = 65, kTextEq = 67;

class ExpressionTest : public ::testing::Test {
 protected:
  // The values of `expr` over rows of the given columns.
  Rows Values(const Expr* expr, const std::vector<Oid>& types, const Rows& rows, size_t batch = 3) {
    auto* plan = h.NewPlan<ProjectPlan>(PlanKind::kProject, {expr->type}, {h.SourcePlan(types)});
    plan->expressions = h.List({expr});
    Project node(*plan, h.state, h.Source(types, rows, batch));
    return h.Run(node);
  }
  const Expr* A() { return h.Input(0, kInt4Oid); }
  const Expr* B() { return h.Input(1, kInt4Oid); }
  const Expr* Int(std::optional<std::string> value) {
    return h.Constant(kInt4Oid, std::move(value));
  }
  const Expr* Div(const Expr* a, const Expr* b) { return h.Call(kInt4Div, kInt4Oid, {a, b}); }
  const Expr* Gt(const Expr* a, const Expr* b) { return h.Call(kInt4Gt, kBoolOid, {a, b}); }
  const Expr* Bool(int column) { return h.Input(column, kBoolOid); }

  Harness h;
};

TEST_F(ExpressionTest, StrictFunctionsAreNullWhereAnArgumentIs) {
  Rows rows = {{"1", "2"}, {kNull, "2"}, {"1", kNull}, {"4", "5"}};
  EXPECT_EQ(Values(h.Call(kInt4Plus, kInt4Oid, {A(), B()}), {kInt4Oid, kInt4Oid}, rows),
            (Rows{{"3"}, {kNull}, {kNull}, {"9"}}));
  EXPECT_EQ(Values(h.Call(kInt4Plus, kInt4Oid, {A(), Int(kNull)}), {kInt4Oid, kInt4Oid}, rows),
            (Rows{{kNull}, {kNull}, {kNull}, {kNull}}));
}

TEST_F(ExpressionTest, StrictFunctionsAreNotCalledWhereAnArgumentIsNull) {
  Rows rows = {{kNull, "0"}, {"8", "2"}};
  EXPECT_EQ(Values(Div(A(), B()), {kInt4Oid, kInt4Oid}, rows), (Rows{{kNull}, {"4"}}));
}

TEST_F(ExpressionTest, CaseRaisesNoErrorOfABranchNotTaken) {
  // CASE WHEN b > 0 THEN a / b WHEN a > 5 THEN -1 ELSE NULL END
  const Expr* expr =
      h.Make(ExprKind::kCase, kInt4Oid,
             {Gt(B(), Int("0")), Div(A(), B()), Gt(A(), Int("5")), Int("-1"), Int(kNull)});
  Rows rows = {{"6", "2"}, {"6", "0"}, {"1", "0"}, {"7", kNull}};
  EXPECT_EQ(Values(expr, {kInt4Oid, kInt4Oid}, rows), (Rows{{"3"}, {"-1"}, {kNull}, {"-1"}}));
}

TEST_F(ExpressionTest, AndAndOrStopAtTheFirstArgumentThatDecides) {
  const Expr* safe =
      h.Make(ExprKind::kAnd, kBoolOid, {Gt(B(), Int("0")), Gt(Div(A(), B()), Int("1"))});
  EXPECT_EQ(Values(safe, {kInt4Oid, kInt4Oid}, {{"4", "2"}, {"4", "0"}, {"1", "1"}}),
            (Rows{{"t"}, {"f"}, {"f"}}));
  const Expr* either =
      h.Make(ExprKind::kOr, kBoolOid,
             {h.Call(kInt4Eq, kBoolOid, {B(), Int("0")}), Gt(Div(A(), B()), Int("1"))});
  EXPECT_EQ(Values(either, {kInt4Oid, kInt4Oid}, {{"4", "2"}, {"4", "0"}, {"1", "1"}}),
            (Rows{{"t"}, {"t"}, {"f"}}));
  // Reached, it fails.
  const Expr* unsafe =
      h.Make(ExprKind::kAnd, kBoolOid, {Gt(A(), Int("0")), Gt(Div(A(), B()), Int("1"))});
  EXPECT_THROW(Values(unsafe, {kInt4Oid, kInt4Oid}, {{"4", "0"}}), QueryError);
}

TEST_F(ExpressionTest, AndOrNotFollowThreeValuedLogic) {
  Rows rows;
  std::optional<std::string> values[] = {"t", "f", kNull};
  for (auto& a : values)
    for (auto& b : values) rows.push_back({a, b});
  std::vector<Oid> types = {kBoolOid, kBoolOid};
  EXPECT_EQ(Values(h.Make(ExprKind::kAnd, kBoolOid, {Bool(0), Bool(1)}), types, rows),
            (Rows{{"t"}, {"f"}, {kNull}, {"f"}, {"f"}, {"f"}, {kNull}, {"f"}, {kNull}}));
  EXPECT_EQ(Values(h.Make(ExprKind::kOr, kBoolOid, {Bool(0), Bool(1)}), types, rows),
            (Rows{{"t"}, {"t"}, {"t"}, {"t"}, {"f"}, {kNull}, {"t"}, {kNull}, {kNull}}));
  EXPECT_EQ(Values(h.Make(ExprKind::kNot, kBoolOid, {Bool(0)}), types, rows),
            (Rows{{"f"}, {"f"}, {"f"}, {"t"}, {"t"}, {"t"}, {kNull}, {kNull}, {kNull}}));
}

TEST_F(ExpressionTest, TestsOfTruthAreNeverNull) {
  Rows rows = {{"t"}, {"f"}, {kNull}};
  auto answers = [&](ExprKind kind) {
    std::string text;
    for (auto& row : Values(h.Make(kind, kBoolOid, {Bool(0)}), {kBoolOid}, rows)) {
      text += row[0].value_or("?");
    }
    return text;
  };
  EXPECT_EQ(answers(ExprKind::kIsNull), "fft");
  EXPECT_EQ(answers(ExprKind::kIsNotNull), "ttf");
  EXPECT_EQ(answers(ExprKind::kIsTrue), "tff");
  EXPECT_EQ(answers(ExprKind::kIsNotTrue), "ftt");
  EXPECT_EQ(answers(ExprKind::kIsFalse), "ftf");
  EXPECT_EQ(answers(ExprKind::kIsNotFalse), "tft");
  EXPECT_EQ(answers(ExprKind::kIsUnknown), "fft");
  EXPECT_EQ(answers(ExprKind::kIsNotUnknown), "ttf");
}

TEST_F(ExpressionTest, DistinctFromAndNullIfTreatNullsAsValues) {
  Rows rows = {{"1", "1"}, {"1", "2"}, {kNull, "2"}, {"1", kNull}, {kNull, kNull}};
  std::vector<Oid> types = {kInt4Oid, kInt4Oid};
  auto with_equality = [&](ExprKind kind, Oid type) {
    Expr* expr = h.Make(kind, type, {A(), B()});
    expr->function = kInt4Eq;
    return Values(expr, types, rows);
  };
  EXPECT_EQ(with_equality(ExprKind::kIsDistinct, kBoolOid),
            (Rows{{"f"}, {"t"}, {"t"}, {"t"}, {"f"}}));
  EXPECT_EQ(with_equality(ExprKind::kIsNotDistinct, kBoolOid),
            (Rows{{"t"}, {"f"}, {"f"}, {"f"}, {"t"}}));
  EXPECT_EQ(with_equality(ExprKind::kNullIf, kInt4Oid),
            (Rows{{kNull}, {"1"}, {kNull}, {"1"}, {kNull}}));
}

TEST_F(ExpressionTest, CoalesceGreatestLeast) {
  Rows rows = {{"3", "7"}, {kNull, "7"}, {"3", kNull}, {kNull, kNull}};
  std::vector<Oid> types = {kInt4Oid, kInt4Oid};
  auto values = [&](ExprKind kind) {
    return Values(h.Make(kind, kInt4Oid, {A(), B()}), types, rows);
  };
  EXPECT_EQ(values(ExprKind::kCoalesce), (Rows{{"3"}, {"7"}, {"3"}, {kNull}}));
  EXPECT_EQ(values(ExprKind::kGreatest), (Rows{{"7"}, {"7"}, {"3"}, {kNull}}));
  EXPECT_EQ(values(ExprKind::kLeast), (Rows{{"3"}, {"7"}, {"3"}, {kNull}}));
  // COALESCE evaluates no further than it has to.
  const Expr* lazy = h.Make(ExprKind::kCoalesce, kInt4Oid, {A(), Div(Int("1"), Int("0"))});
  EXPECT_EQ(Values(lazy, {kInt4Oid}, {{"1"}, {"2"}}), (Rows{{"1"}, {"2"}}));
}

TEST_F(ExpressionTest, AnyAndAllOverConstantArrays) {
  auto quantified = [&](ExprKind kind, Oid function, const char* array) {
    Expr* expr = h.Make(kind, kBoolOid, {A(), h.Constant(kInt4ArrayOid, array)});
    expr->function = function;
    return Values(expr, {kInt4Oid}, {{"1"}, {"5"}, {kNull}});
  };
  EXPECT_EQ(quantified(ExprKind::kAnyOf, kInt4Eq, "{1,2}"), (Rows{{"t"}, {"f"}, {kNull}}));
  EXPECT_EQ(quantified(ExprKind::kAnyOf, kInt4Eq, "{1,NULL}"), (Rows{{"t"}, {kNull}, {kNull}}));
  EXPECT_EQ(quantified(ExprKind::kAnyOf, kInt4Eq, "{}"), (Rows{{"f"}, {"f"}, {"f"}}));
  EXPECT_EQ(quantified(ExprKind::kAllOf, kInt4Gt, "{0,2}"), (Rows{{"f"}, {"t"}, {kNull}}));
  EXPECT_EQ(quantified(ExprKind::kAllOf, 144, "{}"), (Rows{{"t"}, {"t"}, {"t"}}));
  // Long enough to be looked up by hash.
  const char* many = "{1,2,3,4,6,7,8,9,10,11,12}";
  EXPECT_EQ(quantified(ExprKind::kAnyOf, kInt4Eq, many), (Rows{{"t"}, {"f"}, {kNull}}));
  EXPECT_EQ(quantified(ExprKind::kAllOf, 144, many), (Rows{{"f"}, {"t"}, {kNull}}));
  const char* with_null = "{1,2,3,4,6,7,8,9,10,11,NULL}";
  EXPECT_EQ(quantified(ExprKind::kAnyOf, kInt4Eq, with_null), (Rows{{"t"}, {kNull}, {kNull}}));
  EXPECT_EQ(quantified(ExprKind::kAllOf, 144, with_null), (Rows{{"f"}, {kNull}, {kNull}}));
}

TEST_F(ExpressionTest, AnyOverAnArrayOfEachRow) {
  Expr* expr = h.Make(ExprKind::kAnyOf, kBoolOid, {A(), h.Input(1, kInt4ArrayOid)});
  expr->function = kInt4Eq;
  Rows rows = {{"1", "{1,2}"}, {"3", "{1,2}"}, {"3", "{NULL}"}, {"3", kNull}, {kNull, "{}"}};
  EXPECT_EQ(Values(expr, {kInt4Oid, kInt4ArrayOid}, rows),
            (Rows{{"t"}, {"f"}, {kNull}, {kNull}, {"f"}}));
}

TEST_F(ExpressionTest, ArraysAreBuiltFromRows) {
  const Expr* array = h.Make(ExprKind::kArray, kInt4ArrayOid, {A(), B()});
  EXPECT_EQ(Values(array, {kInt4Oid, kInt4Oid}, {{"1", "2"}, {kNull, "3"}}),
            (Rows{{"{1,2}"}, {"{NULL,3}"}}));
  const Expr* nested = h.Make(ExprKind::kArray, kInt4ArrayOid, {array, array});
  EXPECT_EQ(Values(nested, {kInt4Oid, kInt4Oid}, {{"1", "2"}}), (Rows{{"{{1,2},{1,2}}"}}));
}

TEST_F(ExpressionTest, CastsThroughText) {
  const Expr* expr = h.Make(ExprKind::kCoerceViaIo, kInt4Oid, {h.Input(0, kTextOid)});
  EXPECT_EQ(Values(expr, {kTextOid}, {{"12"}, {kNull}, {"-3"}}), (Rows{{"12"}, {kNull}, {"-3"}}));
  EXPECT_THROW(Values(expr, {kTextOid}, {{"x"}}), QueryError);
}

TEST_F(ExpressionTest, FilterKeepsTheRowsForWhichTheConditionIsTrue) {
  for (size_t count : {size_t{0}, size_t{1}, kBatchRows - 1, kBatchRows, kBatchRows + 1}) {
    Rows rows, expected;
    for (size_t i = 0; i < count; i++) {
      rows.push_back({i % 5 == 0 ? testing::Row::value_type(kNull) : std::to_string(i % 7), "x"});
      if (i % 5 != 0 && i % 7 > 3) expected.push_back(rows.back());
    }
    std::vector<Oid> types = {kInt4Oid, kTextOid};
    auto* plan = h.NewPlan<FilterPlan>(PlanKind::kFilter, types, {h.SourcePlan(types)});
    plan->condition = Gt(A(), Int("3"));
    Filter node(*plan, h.state, h.Source(types, rows));
    EXPECT_EQ(h.Run(node), expected);
    node.Rescan();
    EXPECT_EQ(h.Run(node), expected);
  }
}

TEST_F(ExpressionTest, LimitAndOffsetCutAcrossBatches) {
  Rows rows;
  for (int i = 0; i < 10; i++) rows.push_back({std::to_string(i / 2)});
  auto run = [&](std::optional<std::string> limit, std::optional<std::string> offset, bool ties) {
    auto* plan = h.NewPlan<LimitPlan>(PlanKind::kLimit, {kInt4Oid}, {h.SourcePlan({kInt4Oid})});
    plan->limit = h.Constant(kInt8Oid, limit);
    plan->offset = h.Constant(kInt8Oid, offset);
    plan->with_ties = ties;
    plan->keys = h.Keys({{nullptr, 0, 0, false, false, kInvalidOid}});
    Limit node(*plan, h.state, h.Source({kInt4Oid}, rows, 4));
    std::string text;
    for (auto& row : h.Run(node)) text += *row[0];
    node.Rescan();
    std::string again;
    for (auto& row : h.Run(node)) again += *row[0];
    EXPECT_EQ(text, again);
    return text;
  };
  EXPECT_EQ(run("3", kNull, false), "001");
  EXPECT_EQ(run("3", kNull, true), "0011");
  EXPECT_EQ(run("4", kNull, true), "0011");
  EXPECT_EQ(run("7", kNull, true), "00112233");
  EXPECT_EQ(run("3", "5", false), "233");
  EXPECT_EQ(run(kNull, "8", false), "44");
  EXPECT_EQ(run(kNull, "80", false), "");
  EXPECT_EQ(run("0", kNull, true), "");
  EXPECT_THROW(run("-1", kNull, false), QueryError);
  EXPECT_THROW(run("1", "-1", false), QueryError);
}

}  // namespace
}  // namespace sluice
