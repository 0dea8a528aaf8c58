#include "catalog/builtin.h"

#include <chrono>
#include <gtest/gtest.h>

#include "catalog/quote.h"

namespace sluice {
namespace {

class Builtin : public testing::Test {
 protected:
  static void SetUpTestSuite() { LoadBuiltinCatalog(); }
};

TEST_F(Builtin, FindsTypesByOidAndName) {
  EXPECT_EQ(FindType("int4")->oid, kInt4Oid);
  EXPECT_EQ(FindType(kInt4Oid)->array, kInt4ArrayOid);
  EXPECT_EQ(FindType(kInt4ArrayOid)->element, kInt4Oid);
  EXPECT_EQ(FindType(kPointOid)->element, kInvalidOid);  // subscripted, but no array
  EXPECT_EQ(FindType(kTextOid)->collation, kDefaultCollationOid);
  EXPECT_TRUE(FindType(kTextOid)->preferred);
  EXPECT_EQ(FindType("no_such_type"), nullptr);
  EXPECT_EQ(FindType(4), nullptr);
}

TEST_F(Builtin, FindsFunctionsWithAllTheirOverloads) {
  const ProcInfo* int4pl = FindProc(177);
  ASSERT_NE(int4pl, nullptr);
  EXPECT_EQ(int4pl->name, "int4pl");
  ASSERT_EQ(int4pl->args.size(), 2u);
  EXPECT_EQ(int4pl->args[0], kInt4Oid);
  EXPECT_EQ(int4pl->volatility, 'i');
  EXPECT_TRUE(int4pl->strict);
  size_t aggregates = 0;
  for (const ProcInfo* sum : FindProcs("sum")) aggregates += sum->kind == 'a';
  EXPECT_EQ(aggregates, 8u);
  EXPECT_EQ(FindProcs("percentile_cont")[0]->aggregate_kind, 'o');
  EXPECT_EQ(FindProcs("now")[0]->volatility, 's');
  EXPECT_EQ(FindProcs("concat")[0]->variadic, kAnyOid);
  EXPECT_TRUE(FindProcs("generate_series")[0]->returns_set);
  EXPECT_TRUE(FindProcs("no_such_function").empty());
}

TEST_F(Builtin, FindsOperatorsAndCasts) {
  const OperatorInfo* less = FindOperator(97);  // int4 < int4
  EXPECT_EQ(less->name, "<");
  EXPECT_EQ(FindOperator(less->commutator)->name, ">");
  EXPECT_EQ(FindOperator(less->negator)->name, ">=");
  EXPECT_TRUE(FindOperator(96)->can_hash);
  EXPECT_GT(FindOperators("=").size(), 50u);
  EXPECT_EQ(FindCast(kInt4Oid, kInt8Oid)->context, 'i');
  EXPECT_EQ(FindCast(kInt8Oid, kInt4Oid)->context, 'a');
  EXPECT_EQ(FindCast(kVarcharOid, kTextOid)->method, 'b');
  EXPECT_EQ(FindCast(kUuidOid, kInt4Oid), nullptr);
}

TEST_F(Builtin, OrderOperatorsFollowTheDefaultOperatorClass) {
  EXPECT_EQ(FindOrderOperators(kInt4Oid).less, 97u);
  EXPECT_EQ(FindOrderOperators(kInt4Oid).equal, 96u);
  EXPECT_EQ(FindOrderOperators(kInt4Oid).greater, 521u);
  EXPECT_EQ(FindOrderOperators(kVarcharOid).less, FindOrderOperators(kTextOid).less);
  EXPECT_EQ(FindOrderOperators(kBpcharOid).less, 1058u);
  EXPECT_EQ(FindOrderOperators(kInt4ArrayOid).less, 1072u);
  EXPECT_EQ(FindOrderOperators(kJsonOid).less, kInvalidOid);
  EXPECT_EQ(FindOrderOperators(kJsonArrayOid).less, kInvalidOid);
}

TEST_F(Builtin, FormatsTypesAsPostgresDoes) {
  EXPECT_EQ(FormatType(kInt4Oid), "integer");
  EXPECT_EQ(FormatType(kInt4ArrayOid), "integer[]");
  EXPECT_EQ(FormatType(kVarcharOid, 14), "character varying(10)");
  EXPECT_EQ(FormatType(kBpcharOid, 9), "character(5)");
  EXPECT_EQ(FormatType(kBpcharOid), "bpchar");
  EXPECT_EQ(FormatTypeName(kBpcharOid), "character");
  EXPECT_EQ(FormatType(kNumericOid, ((10 << 16) | 2) + 4), "numeric(10,2)");
  EXPECT_EQ(FormatType(kNumericOid, ((5 << 16) | (2047 & -2)) + 4), "numeric(5,-2)");
  EXPECT_EQ(FormatType(kTimestamptzOid, 3), "timestamp(3) with time zone");
  EXPECT_EQ(FormatType(kTimestampOid), "timestamp without time zone");
  EXPECT_EQ(FormatType(kIntervalOid, 3 | (0x7fff << 16)), "interval(3)");
  EXPECT_EQ(FormatType(kCharOid), "\"char\"");
  EXPECT_EQ(FormatType(kBitOid), "\"bit\"");
  EXPECT_EQ(FormatType(22), "int2vector");
  EXPECT_EQ(FormatType(999999), "???");
}

TEST_F(Builtin, UserTypesAreFoundOnceRegistered) {
  TypeInfo mood{20000, "app", "Mood", 4, 'e', 'E', false, 0, 20001, 0, 0};
  TypeInfo moods{20001, "app", "_Mood", -1, 'b', 'A', false, 20000, 0, 0, 0};
  RegisterUserType(mood);
  RegisterUserType(moods);
  EXPECT_EQ(FormatType(20001), "app.\"Mood\"[]");
  EXPECT_EQ(FindOrderOperators(20000).less, FindOrderOperators(kAnyenumOid).less);
  EXPECT_NE(FindOrderOperators(20001).less, kInvalidOid);
  mood.name = "feeling";
  RegisterUserType(mood);
  EXPECT_EQ(FormatType(20000), "app.feeling");
}

TEST_F(Builtin, QuotesOnlyWhereNeeded) {
  EXPECT_EQ(QuoteIdentifier("orders_1"), "orders_1");
  EXPECT_EQ(QuoteIdentifier("Orders"), "\"Orders\"");
  EXPECT_EQ(QuoteIdentifier("select"), "\"select\"");
  EXPECT_EQ(QuoteIdentifier("1a"), "\"1a\"");
  EXPECT_EQ(QuoteIdentifier("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(QuoteIdentifier(""), "\"\"");
  EXPECT_EQ(QuoteLiteral("it's"), "'it''s'");
  EXPECT_EQ(QuoteLiteral("a\\b"), "E'a\\\\b'");
}

}  // namespace
}  // namespace sluice
