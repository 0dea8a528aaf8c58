#include "stream/visibility.h"

#include <gtest/gtest.h>

#include "common/error.h"

namespace sluice {
namespace {

TEST(ShardSnapshot, SeesWhatHadEndedWhenItWasTaken) {
  ShardSnapshot snapshot = ShardSnapshot::Parse("100:110:103,105");
  EXPECT_TRUE(snapshot.Sees(99));
  EXPECT_TRUE(snapshot.Sees(100) && snapshot.Sees(104) && snapshot.Sees(109));
  EXPECT_FALSE(snapshot.Sees(103) || snapshot.Sees(105));
  EXPECT_FALSE(snapshot.Sees(110) || snapshot.Sees(111));
  EXPECT_TRUE(ShardSnapshot::Parse("7:7:").Sees(6));
}

TEST(ShardSnapshot, SeesAcrossTheWrapAroundOfThe32BitsThatTheStreamHas) {
  ShardSnapshot snapshot = ShardSnapshot::Parse("4294967290:4294967300:4294967295,4294967298");
  EXPECT_TRUE(snapshot.Sees(4294967289u));
  EXPECT_FALSE(snapshot.Sees(4294967295u));
  EXPECT_TRUE(snapshot.Sees(3));   // 4294967299
  EXPECT_FALSE(snapshot.Sees(2));  // 4294967298
  EXPECT_FALSE(snapshot.Sees(4));  // 4294967300
}

TEST(ShardSnapshot, RefusesWhatIsNone) {
  for (const char* text : {"", "1", "1:2", "a:2:", "1:2:3;4", "1:2:x", "1:2:3,"})
    EXPECT_THROW(ShardSnapshot::Parse(text), QueryError) << text;
}

}  // namespace
}  // namespace sluice
