#include "postmaster/redact.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Redact, LiteralsBehindPassword) {
  EXPECT_EQ(RedactPasswords("ALTER ROLE a PASSWORD 'x''y' VALID UNTIL 'z'"),
            "ALTER ROLE a PASSWORD '<redacted>' VALID UNTIL 'z'");
  EXPECT_EQ(RedactPasswords("alter role a password E'x\\'y', 'b'"),
            "alter role a password '<redacted>', 'b'");
  EXPECT_EQ(RedactPasswords("ALTER ROLE a PASSWORD $q$x'y$q$ 1"),
            "ALTER ROLE a PASSWORD '<redacted>' 1");
  EXPECT_EQ(RedactPasswords("OPTIONS (user 'u', password 'p', host 'h')"),
            "OPTIONS (user 'u', password '<redacted>', host 'h')");
  EXPECT_EQ(RedactPasswords("ALTER ROLE a PASSWORD 'never closed\nnext"),
            "ALTER ROLE a PASSWORD '<redacted>'");
  EXPECT_EQ(RedactPasswords("ALTER ROLE a PASSWORD $$never closed"),
            "ALTER ROLE a PASSWORD '<redacted>'");
  EXPECT_EQ(RedactPasswords("SELECT password FROM t WHERE x = 'y'"),
            "SELECT password FROM t WHERE x = 'y'");
  EXPECT_EQ(RedactPasswords("SELECT 1"), "SELECT 1");
}

}  // namespace
}  // namespace sluice
