#include "types/numeric.h"

#include <gtest/gtest.h>
#include <random>

#include "common/error.h"
#include "types/numeric_sum.h"

namespace sluice {
namespace {

class NumericRandom : public testing::Test {
 protected:
  NumericRandom() : seed_(std::random_device()()), random_(seed_) { SCOPED_TRACE(seed_); }
  void SetUp() override { printf("seed %u\n", seed_); }

  std::string Text(int digits_max = 40) {
    std::string text = random_() % 2 ? "-" : "";
    size_t whole = random_() % static_cast<unsigned>(digits_max),
           fraction = random_() % static_cast<unsigned>(digits_max);
    // Long runs of zeros and nines are where carries and normal forms go wrong.
    char filler = "0909x"[random_() % 5];
    auto digit = [&] {
      return filler == 'x' || random_() % 4 == 0 ? static_cast<char>('0' + random_() % 10) : filler;
    };
    text.push_back(digit());
    for (size_t i = 0; i < whole; i++) text.push_back(digit());
    if (fraction > 0) text.push_back('.');
    for (size_t i = 0; i < fraction; i++) text.push_back(digit());
    return text;
  }
  Numeric Value(int digits_max = 40) { return NumericFromText(Text(digits_max)); }

  unsigned seed_;
  std::mt19937 random_;
};

std::string Show(const Numeric& value) {
  std::string wire, text;
  AppendNumericWire(value, &wire);
  AppendNumericText(wire, &text);
  return text;
}

std::string Wire(const Numeric& value) {
  std::string wire;
  AppendNumericWire(value, &wire);
  return wire;
}

TEST_F(NumericRandom, TextAndWireRoundTrip) {
  for (int i = 0; i < 5000; i++) {
    Numeric value = Value();
    std::string text = Show(value);
    EXPECT_EQ(text, Show(NumericFromText(text)));
    std::string wire = Wire(value);
    CheckNumericWire(wire);
    EXPECT_EQ(wire, Wire(NumericFromWire(wire)));
  }
}

TEST_F(NumericRandom, AddThenSubtractGivesTheValueBack) {
  for (int i = 0; i < 5000; i++) {
    Numeric a = Value(), b = Value();
    EXPECT_EQ(0, CompareNumeric(a, NumericSubtract(NumericAdd(a, b), b)))
        << Show(a) << " " << Show(b);
    EXPECT_EQ(Show(NumericAdd(a, b)), Show(NumericAdd(b, a)));
  }
}

TEST_F(NumericRandom, MultiplyDistributesOverAdd) {
  for (int i = 0; i < 3000; i++) {
    Numeric a = Value(), b = Value(), c = Value();
    Numeric left = NumericMultiply(a, NumericAdd(b, c));
    Numeric right = NumericAdd(NumericMultiply(a, b), NumericMultiply(a, c));
    EXPECT_EQ(0, CompareNumeric(left, right)) << Show(a) << " " << Show(b) << " " << Show(c);
  }
}

TEST_F(NumericRandom, QuotientTimesDivisorPlusRemainderIsTheDividend) {
  for (int i = 0; i < 5000; i++) {
    Numeric a = Value(), b = Value();
    if (b.zero()) continue;
    Numeric quotient = NumericDivideTruncate(a, b), remainder = NumericModulo(a, b);
    EXPECT_EQ(0, CompareNumeric(a, NumericAdd(NumericMultiply(quotient, b), remainder)))
        << Show(a) << " " << Show(b);
    EXPECT_LT(CompareNumeric(NumericAbs(remainder), NumericAbs(b)), 0);
  }
}

TEST_F(NumericRandom, QuotientIsTheNearestAtItsScale) {
  for (int i = 0; i < 5000; i++) {
    Numeric a = Value(), b = Value();
    if (b.zero()) continue;
    Numeric quotient = NumericDivide(a, b);
    // |quotient·b − a| ≤ |b|·10^-scale / 2
    Numeric error = NumericAbs(NumericSubtract(NumericMultiply(quotient, b), a));
    Numeric unit = NumericFromText(fmt::format("5e-{}", quotient.dscale + 1));
    EXPECT_LE(CompareNumeric(error, NumericMultiply(NumericAbs(b), unit)), 0)
        << Show(a) << " / " << Show(b);
  }
}

TEST_F(NumericRandom, EqualValuesOfDifferentScaleHashAndCompareAlike) {
  for (int i = 0; i < 5000; i++) {
    std::string text = Text(12);
    std::string longer = text + (text.find('.') == std::string::npos ? ".0000000" : "00000");
    std::string a = Wire(NumericFromText(text)), b = Wire(NumericFromText(longer));
    EXPECT_EQ(0, CompareNumericWire(a, b)) << text;
    EXPECT_EQ(HashNumericWire(a), HashNumericWire(b)) << text;
    std::string other = Wire(Value(12));
    EXPECT_EQ(CompareNumericWire(a, other) < 0, CompareNumericWire(other, a) > 0);
    EXPECT_EQ(CompareNumericWire(a, other) < 0,
              NumericSubtract(NumericFromWire(a), NumericFromWire(other)).negative());
  }
}

TEST_F(NumericRandom, RootsAndLogarithmsInvert) {
  for (int i = 0; i < 300; i++) {
    Numeric a = NumericAbs(Value(10));
    if (a.zero()) continue;
    Numeric root = NumericSqrt(a);
    Numeric unit = NumericFromText(fmt::format("1e-{}", root.dscale));
    EXPECT_LE(CompareNumeric(
                  NumericMultiply(NumericSubtract(root, unit), NumericSubtract(root, unit)), a),
              0);
    EXPECT_GE(CompareNumeric(NumericMultiply(NumericAdd(root, unit), NumericAdd(root, unit)), a),
              0);
    Numeric back = NumericExp(NumericLn(a));
    Numeric difference = NumericAbs(NumericSubtract(NumericDivide(back, a), NumericFromInt(1)));
    EXPECT_LT(CompareNumeric(difference, NumericFromText("1e-13")), 0)
        << Show(a) << " " << Show(back);
  }
}

TEST_F(NumericRandom, SumIsExactWhateverThePartsAndTheOrder) {
  for (int round = 0; round < 50; round++) {
    Arena arena;
    std::vector<NumericSum> parts(3);
    Numeric expected;
    bool first = true;
    int digits_max = round % 2 ? 6 : 60;
    for (int i = 0; i < 200; i++) {
      Numeric value = Value(digits_max);
      expected = first ? value : NumericAdd(expected, value);
      first = false;
      parts[random_() % 3].Add(Wire(value), &arena);
    }
    std::string bytes;
    parts[2].Serialize(&bytes);
    std::string_view rest = bytes;
    parts[0].Merge(parts[1], &arena);
    parts[0].Merge(NumericSum::Deserialize(&rest, &arena), &arena);
    EXPECT_TRUE(rest.empty());
    EXPECT_EQ(Wire(expected), parts[0].Sum(&arena));
    EXPECT_EQ(Wire(NumericDivide(expected, NumericFromInt(200))), parts[0].Average(&arena));
  }
}

TEST(NumericSum, ManyLargeValuesDoNotOverflow) {
  Arena arena;
  NumericSum sum;
  std::string wire = Wire(NumericFromText("9999999999999999.99999999"));
  for (int i = 0; i < 100000; i++) sum.Add(wire, &arena);
  for (int i = 0; i < 40; i++) sum.Merge(NumericSum(sum), &arena);  // doubles each time
  Numeric times = NumericPower(NumericFromInt(2), NumericFromInt(40));
  Numeric expected = NumericMultiply(
      NumericMultiply(NumericFromText("9999999999999999.99999999"), NumericFromInt(100000)), times);
  EXPECT_EQ(0, CompareNumericWire(Wire(expected), sum.Sum(&arena)));
}

TEST(NumericSum, SpecialsRuleTheSum) {
  Arena arena;
  auto sum_of = [&](std::vector<const char*> texts) {
    NumericSum sum;
    for (const char* text : texts) sum.Add(Wire(NumericFromText(text)), &arena);
    std::string text;
    AppendNumericText(sum.Sum(&arena), &text);
    return text;
  };
  EXPECT_EQ("NaN", sum_of({"1", "NaN", "Infinity"}));
  EXPECT_EQ("Infinity", sum_of({"1", "Infinity"}));
  EXPECT_EQ("-Infinity", sum_of({"-Infinity", "5"}));
  EXPECT_EQ("NaN", sum_of({"-Infinity", "Infinity"}));
  EXPECT_EQ("3.50", sum_of({"1.50", "2"}));
}

TEST(NumericMoments, VarianceAndStddevAreThoseOfPostgres) {
  Arena arena;
  NumericMoments moments;
  for (const char* text : {"1.5", "2.25", "-3", "100.125"})
    moments.Add(Wire(NumericFromText(text)), &arena);
  auto show = [](std::string_view wire) {
    std::string text;
    AppendNumericText(wire, &text);
    return text;
  };
  std::string_view wire;
  ASSERT_TRUE(moments.Variance(true, &arena, &wire));
  EXPECT_EQ("2499.1289062500000000", show(wire));
  ASSERT_TRUE(moments.Variance(false, &arena, &wire));
  EXPECT_EQ("1874.3466796875000000", show(wire));
  ASSERT_TRUE(moments.Stddev(true, &arena, &wire));
  EXPECT_EQ("49.9912883035634520", show(wire));
  NumericMoments integers;
  EXPECT_FALSE(integers.Variance(false, &arena, &wire));
  integers.AddInt(9223372036854775807, &arena);
  EXPECT_FALSE(integers.Variance(true, &arena, &wire));
  integers.AddInt(-9223372036854775807 - 1, &arena);
  ASSERT_TRUE(integers.Variance(false, &arena, &wire));
  EXPECT_EQ("85070591730234615856620279821087277056", show(wire));
}

TEST(Numeric, DivisionByZeroAndSpecials) {
  EXPECT_THROW(NumericDivide(NumericFromInt(1), Numeric()), QueryError);
  EXPECT_THROW(NumericDivide(NumericInfinity(false), Numeric()), QueryError);
  EXPECT_TRUE(NumericDivide(NumericNan(), Numeric()).nan());
  EXPECT_TRUE(NumericModulo(NumericInfinity(false), NumericFromInt(2)).nan());
  EXPECT_EQ("5", Show(NumericModulo(NumericFromInt(5), NumericInfinity(true))));
  EXPECT_GT(CompareNumeric(NumericNan(), NumericInfinity(false)), 0);
  EXPECT_EQ(0, CompareNumeric(NumericNan(), NumericNan()));
}

TEST(Numeric, DamagedWireIsRefused) {
  for (const std::string& bytes :
       {std::string("\0\1\0\0\0\0\0\0", 8), std::string("\0\0\0\0\x12\0\0\0", 8),
        std::string("\0\1\0\0\0\0\0\0\x27\x10", 10), std::string("\0\0", 2)}) {
    EXPECT_THROW(CheckNumericWire(bytes), QueryError);
  }
}

}  // namespace
}  // namespace sluice
