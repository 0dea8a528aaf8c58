#include "types/float_sum.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "common/error.h"

namespace sluice {
namespace {

double SumOf(const std::vector<double>& values) {
  Arena arena;
  FloatSum sum;
  for (double value : values) sum.Add(value, &arena);
  return sum.Sum();
}

TEST(FloatSum, CancellationLosesNothing) {
  EXPECT_EQ(1.0, SumOf({1e308, 1.0, -1e308}));
  EXPECT_EQ(5e-324, SumOf({1e300, 5e-324, -1e300}));
  EXPECT_EQ(1.0, SumOf({0.1, 0.2, 0.3, 0.4}));
  EXPECT_EQ(0.30000000000000004, SumOf({0.1, 0.2}));
  EXPECT_EQ(0.0, SumOf({}));
  EXPECT_EQ(1e16 + 2, SumOf({1e16, 1.0, 1e-30}));  // just above the tie
  EXPECT_EQ(1e16, SumOf({1e16, 1.0}));             // the tie, to even
}

TEST(FloatSum, SpecialsRuleTheSum) {
  EXPECT_TRUE(std::isnan(SumOf({1.0, NAN})));
  EXPECT_EQ(INFINITY, SumOf({1.0, INFINITY}));
  EXPECT_EQ(-INFINITY, SumOf({-INFINITY, 1e308}));
  EXPECT_TRUE(std::isnan(SumOf({INFINITY, -INFINITY})));
}

TEST(FloatSum, FiniteValuesThatOverflowAreAnError) {
  EXPECT_THROW(SumOf({1.7e308, 1.7e308}), QueryError);
  EXPECT_EQ(1.7e308, SumOf({1.7e308, 1.7e308, -1.7e308}));
}

TEST(FloatSum, OrderAndPartsDoNotMatter) {
  unsigned seed = std::random_device()();
  printf("seed %u\n", seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; round++) {
    std::vector<double> values;
    for (int i = 0; i < 200; i++) {
      double value = std::bit_cast<double>(random());
      if (std::isfinite(value))
        values.push_back(std::ldexp(value, -1 - static_cast<int>(random() % 40)) / 256);
    }
    double expected = SumOf(values);
    std::shuffle(values.begin(), values.end(), random);
    EXPECT_EQ(expected, SumOf(values));
    Arena arena;
    FloatSum parts[3];
    for (double value : values) parts[random() % 3].Add(value, &arena);
    std::string bytes;
    parts[1].Serialize(&bytes);
    std::string_view rest = bytes;
    parts[0].Merge(FloatSum::Deserialize(&rest, &arena), &arena);
    EXPECT_TRUE(rest.empty());
    parts[0].Merge(parts[2], &arena);
    EXPECT_EQ(expected, parts[0].Sum());
    EXPECT_EQ(static_cast<int64_t>(values.size()), parts[0].count);
  }
}

TEST(FloatSum, RoundsToFloat4Once) {
  Arena arena;
  FloatSum sum;
  sum.Add(16777216.0, &arena);
  sum.Add(1.0, &arena);
  EXPECT_EQ(16777216.0f, sum.SumFloat4());  // the tie, to even
  sum.Add(std::ldexp(1.0, -40), &arena);
  EXPECT_EQ(16777218.0f, sum.SumFloat4());
}

TEST(FloatSum, DamagedStateIsRefused) {
  Arena arena;
  std::string bytes = "short";
  std::string_view rest = bytes;
  EXPECT_THROW(FloatSum::Deserialize(&rest, &arena), QueryError);
}

TEST(FloatMoments, VarianceIsExact) {
  Arena arena;
  FloatMoments moments;
  double variance = 0;
  EXPECT_FALSE(moments.Variance(false, &variance));
  for (double value : {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16}) moments.Add(value, &arena);
  ASSERT_TRUE(moments.Variance(true, &variance));
  EXPECT_EQ(30.0, variance);
  ASSERT_TRUE(moments.Variance(false, &variance));
  EXPECT_EQ(22.5, variance);
  ASSERT_TRUE(moments.Stddev(false, &variance));
  EXPECT_EQ(std::sqrt(22.5), variance);
  FloatMoments equal;
  for (int i = 0; i < 10; i++) equal.Add(0.1, &arena);
  ASSERT_TRUE(equal.Variance(true, &variance));
  EXPECT_EQ(0.0, variance);
}

}  // namespace
}  // namespace sluice
