// Encoded keys compare as the values do.
#include "stream/key_encoding.h"

#include <gtest/gtest.h>

#include "stream/testing.h"
#include "types/codec.h"
#include "types/compare.h"

namespace sluice::testing {
namespace {

constexpr Oid kLibcCollation = 40001, kIcuCollation = 40002;

struct Case {
  Oid type;
  Oid collation;
  std::vector<std::string> values;
};

const std::vector<Case>& Cases() {
  static const std::vector<std::string> texts = {
      "", "a", "B", "b", "ab", "a b", "á", "z", "Z", "aa", "a-b", "ä", "10", "9", "ß", "ss", "ﬁ"};
  static const std::vector<Case> cases = {
      {kBoolOid, kInvalidOid, {"f", "t"}},
      {kInt2Oid, kInvalidOid, {"-32768", "-1", "0", "1", "32767"}},
      {kInt4Oid, kInvalidOid, {"-2147483648", "-1", "0", "255", "256", "2147483647"}},
      {kInt8Oid, kInvalidOid, {"-9223372036854775808", "-1", "0", "9223372036854775807"}},
      {kFloat8Oid,
       kInvalidOid,
       {"-Infinity", "-1e300", "-1", "-1e-300", "-0", "0", "1e-300", "1.5", "Infinity", "NaN"}},
      {kFloat4Oid, kInvalidOid, {"-Infinity", "-1", "-0", "0", "0.1", "NaN"}},
      {kNumericOid,
       kInvalidOid,
       {"-Infinity", "-10000", "-9999.5", "-1", "-0.0001", "0", "0.00", "0.00001", "0.1", "0.10",
        "1", "1.0", "1.00001", "9999", "10000", "10001", "1e50", "Infinity", "NaN"}},
      {kDateOid, kInvalidOid, {"-infinity", "1999-01-01", "2000-01-01", "infinity"}},
      {kTimestamptzOid, kInvalidOid, {"1970-01-01 00:00:00+00", "2020-05-05 12:00:00+02"}},
      {kIntervalOid, kInvalidOid, {"-1 day", "0", "24 hours", "1 day", "30 days", "1 month"}},
      {kUuidOid,
       kInvalidOid,
       {"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"}},
      {kByteaOid, kInvalidOid, {"", "\\x00", "\\x0000", "\\x00ff", "\\x01", "\\xff"}},
      {kTextOid, kCCollationOid, texts},
      {kTextOid, kLibcCollation, texts},
      {kTextOid, kIcuCollation, texts},
      {kBpcharOid, kCCollationOid, {"a", "a ", "b", "a  b"}},
      {kInt4ArrayOid, kInvalidOid, {"{}", "{1}", "{1,2}", "{2}", "{1,NULL}", "{NULL}", "{-1}"}},
      {kTextArrayOid, kCCollationOid, {"{}", "{a}", "{a,b}", "{ab}", "{\"\"}"}},
  };
  return cases;
}

int Sign(int order) {
  return (order > 0) - (order < 0);
}

TEST(KeyEncodingTest, OrderAndEqualityAreThoseOfTheValues) {
  RegisterCollation({kLibcCollation, CollationProvider::kLibc, "en_US.UTF-8", ""});
  RegisterCollation({kIcuCollation, CollationProvider::kIcu, "de-x-icu", ""});
  SessionSettings settings;
  for (const Case& test : Cases()) {
    if (!CanCollate(test.collation)) continue;  // this host lacks the locale
    ASSERT_TRUE(EncodesOrder(test.type, test.collation)) << test.type;
    KeyEncoder up(std::vector<KeyColumn>{{test.type, false, false, test.collation}});
    KeyEncoder down(std::vector<KeyColumn>{{test.type, true, false, test.collation}});
    CompareFn compare = FindCompare(test.type);
    for (const std::string& a : test.values)
      for (const std::string& b : test.values) {
        Arena arena;
        auto column = [&](const std::string& text) {
          return MakeConstantColumn(test.type, ParseText(test.type, -1, text, settings, &arena),
                                    false, &arena);
        };
        Column x = column(a), y = column(b);
        std::string up_x, up_y, down_x, down_y;
        up.AppendColumn(0, x, 0, &up_x);
        up.AppendColumn(0, y, 0, &up_y);
        down.AppendColumn(0, x, 0, &down_x);
        down.AppendColumn(0, y, 0, &down_y);
        int expected = Sign(compare(x, 0, y, 0, FindCollator(test.collation)));
        EXPECT_EQ(Sign(up_x.compare(up_y)), expected)
            << test.type << "/" << test.collation << ": " << a << " and " << b;
        EXPECT_EQ(Sign(down_x.compare(down_y)), -expected) << a << " and " << b;
      }
  }
}

TEST(KeyEncodingTest, NullsGoWhereTheyAreWanted) {
  Arena arena;
  Column null = MakeConstantColumn(kInt4Oid, {}, true, &arena);
  Column zero = MakeConstantColumn(kInt4Oid, std::string_view("\0\0\0\0", 4), false, &arena);
  for (bool descending : {false, true})
    for (bool first : {false, true}) {
      KeyEncoder encoder(std::vector<KeyColumn>{{kInt4Oid, descending, first}});
      std::string a, b;
      encoder.AppendColumn(0, null, 0, &a);
      encoder.AppendColumn(0, zero, 0, &b);
      EXPECT_EQ(a < b, first);
    }
}

}  // namespace
}  // namespace sluice::testing
