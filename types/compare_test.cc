#include "types/compare.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "types/codec.h"
#include "types/datetime.h"
#include "types/pattern.h"

namespace sluice {
namespace {

struct Ordered {
  Oid type;
  std::vector<std::vector<const char*>> classes;  // ascending; the members of a class are equal
};

// As ORDER BY sorts them in Postgres.
const std::vector<Ordered> kOrdered = {
    {kBoolOid, {{"f"}, {"t"}}},
    {kInt4Oid, {{"-2147483648"}, {"-1"}, {"0"}, {"7"}}},
    {kOidOid, {{"0"}, {"2147483647"}, {"4294967295"}}},
    {kFloat8Oid, {{"-Infinity"}, {"-1"}, {"0", "-0"}, {"5e-324"}, {"Infinity"}, {"NaN"}}},
    {kFloat4Oid, {{"-Infinity"}, {"-1"}, {"0", "-0"}, {"Infinity"}, {"NaN"}}},
    {kNumericOid,
     {{"-Infinity"},
      {"-10000.1"},
      {"-1", "-1.0"},
      {"0", "0.000"},
      {"0.0001"},
      {"1", "1.00000000000000000000"},
      {"1.00000000000000000001"},
      {"9999"},
      {"10000", "1e4"},
      {"1e30"},
      {"Infinity"},
      {"NaN"}}},
    {kTextOid, {{""}, {"B"}, {"a"}, {"a "}, {"ab"}, {"é"}}},
    {kBpcharOid, {{"", "   "}, {"B"}, {"a", "a ", "a   "}, {"ab"}}},
    {kByteaOid, {{""}, {"\\x00"}, {"\\x0001"}, {"\\x7f"}, {"\\xff"}}},
    {kDateOid, {{"-infinity"}, {"0044-03-15 BC"}, {"2000-01-01"}, {"infinity"}}},
    {kTimestamptzOid,
     {{"-infinity"}, {"2000-01-01 00:00+00", "2000-01-01 02:00+02"}, {"infinity"}}},
    {kIntervalOid,
     {{"-1 mon"},
      {"0"},
      {"24:00:00", "1 day"},
      {"1 mon", "30 days", "720:00:00"},
      {"1 year", "360 days"},
      {"366 days"}}},
    {kUuidOid,
     {{"00000000-0000-0000-0000-000000000001"},
      {"7f000000-0000-0000-0000-000000000000"},
      {"ff000000-0000-0000-0000-000000000000"}}},
    {kInt4ArrayOid,
     {{"{}"},
      {"{1}"},
      {"{1,2}"},
      {"[2:3]={1,2}"},
      {"{{1,2}}"},
      {"{1,3}"},
      {"{1,NULL}"},
      {"{2}"},
      {"{NULL}"}}},
    {kNumericArrayOid, {{"{1.0,2}", "{1,2.00}"}, {"{NaN}"}}},
};

TEST(Compare, OrderEqualityAndHashAgreeForEveryType) {
  SessionSettings settings;
  for (const Ordered& ordered : kOrdered) {
    Arena arena;
    CompareFn compare = FindCompare(ordered.type);
    ASSERT_NE(nullptr, compare) << ordered.type;
    EXPECT_TRUE(CanHash(ordered.type));
    std::vector<std::pair<size_t, Column>> values;
    std::vector<const char*> texts;
    for (size_t rank = 0; rank < ordered.classes.size(); rank++) {
      for (const char* text : ordered.classes[rank]) {
        values.emplace_back(
            rank,
            MakeConstantColumn(ordered.type, ParseText(ordered.type, -1, text, settings, &arena),
                               false, &arena));
        texts.push_back(text);
      }
    }
    for (size_t i = 0; i < values.size(); i++) {
      for (size_t j = 0; j < values.size(); j++) {
        auto& [rank_a, a] = values[i];
        auto& [rank_b, b] = values[j];
        std::string label = fmt::format("type {}: {} with {}", ordered.type, texts[i], texts[j]);
        int order = compare(a, 0, b, 0, nullptr);
        EXPECT_EQ(rank_a < rank_b, order < 0) << label;
        EXPECT_EQ(rank_a == rank_b, order == 0) << label;
        EXPECT_EQ(rank_a == rank_b, NotDistinct(a, 0, b, 0)) << label;
        uint64_t hash_a = 17, hash_b = 17;
        HashColumn(a, 1, &hash_a);
        HashColumn(b, 1, &hash_b);
        EXPECT_EQ(rank_a == rank_b, hash_a == hash_b) << label;
      }
    }
  }
}

TEST(Compare, NullsAreNotDistinctFromEachOther) {
  Arena arena;
  Column null = MakeConstantColumn(kInt4Oid, {}, true, &arena);
  Column one = MakeConstantColumn(kInt4Oid, std::string_view("\0\0\0\1", 4), false, &arena);
  EXPECT_TRUE(NotDistinct(null, 0, null, 0));
  EXPECT_FALSE(NotDistinct(null, 0, one, 0));
}

TEST(Compare, JsonHasNoOrderHere) {
  EXPECT_EQ(nullptr, FindCompare(kJsonbOid));
  EXPECT_EQ(nullptr, FindCompare(kJsonOid));
  EXPECT_FALSE(CanHash(kJsonbOid));
}

TEST(Decode, ColumnsHoldNullsAndRefuseWrongLengths) {
  const char* at[3] = {"\0\0\0\5", nullptr, "\xff\xff\xff\xff"};
  int32_t lengths[3] = {4, -1, 4};
  int32_t data[3];
  uint8_t nulls[3] = {};
  Column column{kInt4Oid, Physical::kInt4, ~size_t{0}, nullptr, data};
  DecodeBinaryColumn(kInt4Oid, at, lengths, 3, nulls, &column);
  EXPECT_EQ(5, column.At<int32_t>(0));
  EXPECT_TRUE(column.IsNull(1));
  EXPECT_EQ(-1, column.At<int32_t>(2));
  lengths[2] = 3;
  EXPECT_THROW(DecodeBinaryColumn(kInt4Oid, at, lengths, 3, nulls, &column), QueryError);
}

TEST(Collation, IcuAndLibcSortWords) {
  RegisterCollation({20001, CollationProvider::kIcu, "en-US", ""});
  RegisterCollation({20002, CollationProvider::kIcu, "en-US", "0.0.1"});
  RegisterCollation({20003, CollationProvider::kLibc, "xx_XX.UTF-8", ""});
  RegisterCollation({20004, CollationProvider::kLibc, "C.UTF-8", ""});
  const Collator* english = FindCollator(20001);
  EXPECT_LT(english->Compare("a", "B"), 0);
  EXPECT_LT(english->Compare("resume", "résumé"), 0);
  EXPECT_NE(0, english->Compare("\u00e9", "e\u0301"));  // canonically equal: bytes decide
  EXPECT_EQ(0, english->Compare("same", "same"));
  std::string upper;
  english->AppendUpper("straße", &upper);
  EXPECT_EQ("STRASSE", upper);
  EXPECT_FALSE(CanCollate(20002));  // another version than the servers'
  EXPECT_FALSE(CanCollate(20003));
  EXPECT_FALSE(CanCollate(29999));
  EXPECT_THROW(FindCollator(20003), QueryError);
  EXPECT_TRUE(FindCollator(kInvalidOid)->is_c());
  EXPECT_TRUE(FindCollator(20004)->is_c());
  EXPECT_LT(FindCollator(kCCollationOid)->Compare("B", "a"), 0);
}

TEST(TimeZone, RulesHoldAfterTheFilesLastTransition) {
  const TimeZone* new_york = FindTimeZone("america/new_york");
  ASSERT_NE(nullptr, new_york);
  EXPECT_EQ(-4 * 3600, new_york->At(2540808000).offset_seconds);  // July 2050
  EXPECT_EQ(-5 * 3600, new_york->At(2525000000).offset_seconds);  // January 2050
  EXPECT_EQ("EDT", new_york->At(2540808000).abbreviation);
  EXPECT_EQ(nullptr, FindTimeZone("Nowhere/Town"));
  EXPECT_EQ(nullptr, FindTimeZone("../../etc/passwd"));
  EXPECT_EQ(3 * 3600, FindTimeZone("<+03>-03")->At(0).offset_seconds);
}

TEST(Pattern, LikeTakesCharactersNotBytes) {
  EXPECT_TRUE(MatchLike("é", "_"));
  EXPECT_FALSE(MatchLike("é", "__"));
  EXPECT_TRUE(MatchLike("aXbXc", "%X%X%"));
  EXPECT_TRUE(MatchLike("a%b", "a\\%b"));
  EXPECT_FALSE(MatchLike("axb", "a\\%b"));
  EXPECT_TRUE(MatchLike("\xff", "_"));  // a stray byte is one character
  EXPECT_THROW(MatchLike("ab", "a\\"), QueryError);
}

TEST(Pattern, WhatReadsDifferentlyIsRefused) {
  for (const char* pattern : {"(a)\\1", "(?=a)b", "***=a", "\\ma", "a\\y", "[[.a.]]", "(?i)a"}) {
    EXPECT_THROW(Regex::Compiled(pattern, false), QueryError) << pattern;
  }
  EXPECT_TRUE(Regex::Compiled("^a.c$", false).Matches("a\nc"));
  EXPECT_FALSE(Regex::Compiled("^b", false).Matches("a\nb"));
  EXPECT_TRUE(Regex::Compiled("STRASSE", true).Matches("strasse"));
  EXPECT_FALSE(
      Regex::Compiled("k", true).Matches("\u212a"));  // the Kelvin sign is no k to Postgres
}

}  // namespace
}  // namespace sluice
