#include "wire/hba.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::vector<HbaLine> Parse(std::string_view text) {
  return ParseHba(text, "hba").OrThrow();
}

std::string FaultOf(std::string_view text) {
  auto lines = ParseHba(text, "hba");
  return lines.ok() ? "" : lines.error().message;
}

// The number of the line that decides, 0: none.
int Decides(std::string_view text, HbaConnection connection) {
  if (connection.database.empty()) connection.database = "db";
  if (connection.user.empty()) connection.user = "u";
  auto lines = Parse(text);
  const HbaLine* line = MatchHba(lines, connection);
  return line == nullptr ? 0 : line->line;
}

TEST(Hba, FirstMatchDecides) {
  std::string_view text =
      "# comment\n"
      "local  db,\"all\"  u, \"+x\"   peer\n"
      "host all all 10.1.0.0/16 reject\n"
      "host all all 10.2.0.0 255.255.0.0 trust # why not\n"
      "hostssl all all all cert\n"
      "host all +staff 192.168.1.7/32 scram-sha-256\n"
      "host sameuser all ::1/128 trust\n";
  EXPECT_EQ(Decides(text, {}), 2);
  EXPECT_EQ(Decides(text, {.user = "+x"}), 2);
  EXPECT_EQ(Decides(text, {.database = "all"}), 2);
  EXPECT_EQ(Decides(text, {.database = "other"}), 0);
  EXPECT_EQ(Decides(text, {.address = "10.1.200.3"}), 3);
  EXPECT_EQ(Decides(text, {.address = "10.2.200.3"}), 4);
  EXPECT_EQ(Decides(text, {.address = "10.3.0.1"}), 0);
  EXPECT_EQ(Decides(text, {.address = "10.3.0.1", .tls = true}), 5);
  auto staff = [](std::string_view role) { return role == "staff"; };
  EXPECT_EQ(Decides(text, {.address = "192.168.1.7", .is_member = staff}), 6);
  EXPECT_EQ(Decides(text, {.address = "192.168.1.7"}), 0);
  EXPECT_EQ(Decides(text, {.address = "::1", .database = "u"}), 7);
  EXPECT_EQ(Decides(text, {.address = "::1"}), 0);
}

TEST(Hba, SameHost) {
  EXPECT_EQ(
      Decides("host all all samehost trust", {.address = "10.0.0.1", .server_address = "10.0.0.1"}),
      1);
  EXPECT_EQ(
      Decides("host all all samehost trust", {.address = "10.0.0.2", .server_address = "10.0.0.1"}),
      0);
}

TEST(Hba, ADefaultLetsNobodyInFromAfarWithoutAPassword) {
  auto lines = Parse(DefaultHbaText());
  auto method = [&](std::string_view address) {
    const HbaLine* line = MatchHba(lines, {.address = address, .database = "d", .user = "u"});
    return line == nullptr ? AuthMethod::kReject : line->method;
  };
  EXPECT_EQ(method(""), AuthMethod::kTrust);
  EXPECT_EQ(method("127.0.0.1"), AuthMethod::kTrust);
  EXPECT_EQ(method("::1"), AuthMethod::kTrust);
  EXPECT_EQ(method("127.0.0.2"), AuthMethod::kScram);
  EXPECT_EQ(method("8.8.8.8"), AuthMethod::kScram);
  EXPECT_EQ(method("2001:db8::1"), AuthMethod::kScram);
}

TEST(Hba, FaultsAreNamed) {
  EXPECT_EQ(FaultOf("nonsense"), "invalid connection type \"nonsense\"");
  EXPECT_EQ(FaultOf("local all"), "end-of-line before role specification");
  EXPECT_EQ(FaultOf("local all all"), "end-of-line before authentication method");
  EXPECT_EQ(FaultOf("local all all md5"), "authentication method \"md5\" is not supported");
  EXPECT_EQ(FaultOf("host all all 1.2.3.4/33 trust"),
            "invalid CIDR mask in address \"1.2.3.4/33\"");
  EXPECT_EQ(FaultOf("host all all 1.2.3.4 ::1 trust"), "IP address and mask do not match");
  EXPECT_EQ(FaultOf("host all all a.example trust"),
            "invalid IP address \"a.example\" (host names are not supported)");
  EXPECT_EQ(FaultOf("host all all all cert"),
            "cert authentication is only supported on hostssl connections");
  EXPECT_EQ(FaultOf("hostssl all all all trust clientcert=1"),
            "authentication option \"clientcert=1\" is not supported");
  EXPECT_EQ(FaultOf("local \"all"), "a quoted word is not closed");
  auto lines = ParseHba("\n\nlocal", "hba");
  ASSERT_FALSE(lines.ok());
  EXPECT_EQ(lines.error().detail, "line 3 of \"hba\"");
}

}  // namespace
}  // namespace sluice
