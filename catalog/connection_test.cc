#include "catalog/connection.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "catalog/options.h"
#include "catalog/virtual_tables.h"

namespace sluice {
namespace {

class Connection : public testing::Test {
 protected:
  Connection() {
    LoadBuiltinCatalog();
    catalog_.servers[20000] = {20000,
                               "s1",
                               "",
                               "",
                               "postgres_fdw",
                               {{"host", "127.0.0.1"}, {"port", "6000"}, {"fetch_size", "10"}},
                               "me",
                               ""};
    catalog_.servers[20001] = {20001, "l1", "", "", "lines_fdw", {{"host", "127.0.0.1"}}, "me", ""};
    catalog_.user_mappings.push_back({20000, "public", {{"user", "app"}, {"password", "a;b=c"}}});
    catalog_.user_mappings.push_back({20000, "ada", {{"user", "lovelace"}}});
  }
  const ConnectionSpec& Make(std::string_view user, RemoteSettings settings = {}) {
    return *MakeConnectionSpec(catalog_, 20000, user, settings, {}, &arena_);
  }
  static std::string Value(const ConnectionSpec& spec, std::string_view keyword) {
    for (size_t i = 0; i < spec.keywords.size(); i++)
      if (spec.keywords[i] == keyword) return std::string(spec.values[i]);
    return "(none)";
  }
  SqlState StateOf(std::function<void()> body) {
    try {
      body();
    } catch (const QueryError& failure) {
      return failure.error.state;
    }
    return sqlstate::kSuccess;
  }

  Catalog catalog_;
  Arena arena_;
};

TEST_F(Connection, MapsOptionsToLibpqKeywordsAndLeavesTheWrappersOut) {
  const ConnectionSpec& spec = Make("bob");
  EXPECT_EQ(Value(spec, "user"), "app");
  EXPECT_EQ(Value(spec, "password"), "a;b=c");
  EXPECT_EQ(Value(spec, "port"), "6000");
  EXPECT_EQ(Value(spec, "client_encoding"), "UTF8");
  EXPECT_EQ(Value(spec, "gssencmode"), "disable");
  EXPECT_EQ(Value(spec, "fetch_size"), "(none)");
  EXPECT_EQ(spec.server_name, "s1");
}

// The io worker must not meet a service: libpq would read files and look names up there.
TEST_F(Connection, AServiceIsReadHereAndItsHostResolved) {
  std::string path = testing::TempDir() + "sluice_pg_service.conf";
  std::ofstream(path) << "# comment\n[other]\nport=1\n\n[far]\nhost=localhost\nport=7000\n"
                         "dbname=space\nuser=hidden\n[broken]\nno equal sign\n";
  setenv("PGSERVICEFILE", path.c_str(), 1);
  setenv("PGSYSCONFDIR", "/nonexistent", 1);
  catalog_.servers[20000].options = {{"service", "far"}, {"port", "6000"}};
  const ConnectionSpec& spec = Make("bob");
  EXPECT_EQ(Value(spec, "service"), "(none)");
  EXPECT_EQ(Value(spec, "port"), "6000");  // what is said explicitly comes first
  EXPECT_EQ(Value(spec, "dbname"), "space");
  EXPECT_EQ(Value(spec, "user"), "app");
  EXPECT_NE(Value(spec, "hostaddr").find("127.0.0.1"), std::string::npos);
  for (const char* name : {"nowhere", "broken"}) {
    catalog_.servers[20000].options = {{"service", name}};
    EXPECT_EQ(StateOf([&] { Make("bob"); }), sqlstate::kUnableToEstablishConnection) << name;
  }
  unsetenv("PGSERVICEFILE");
  unsetenv("PGSYSCONFDIR");
  unlink(path.c_str());
}

TEST_F(Connection, TheUsersOwnMappingComesBeforeThePublicOne) {
  EXPECT_EQ(Value(Make("ada"), "user"), "lovelace");
  EXPECT_NE(Make("ada").pool_key, Make("bob").pool_key);
  EXPECT_EQ(Make("bob").pool_key, Make("carl").pool_key);
}

TEST_F(Connection, SessionSettingsAreNoPartOfThePoolKey) {
  RemoteSettings berlin;
  berlin.time_zone = "Europe/Berlin";
  EXPECT_EQ(Make("bob").pool_key, Make("bob", berlin).pool_key);
  EXPECT_NE(Make("bob").session_setup, Make("bob", berlin).session_setup);
  EXPECT_NE(Make("bob", berlin).session_setup.find("SET TimeZone = 'Europe/Berlin'"),
            std::string::npos);
}

TEST_F(Connection, SettingsAreQuoted) {
  RemoteSettings evil;
  evil.time_zone = "x'; DROP TABLE t; --";
  EXPECT_NE(Make("bob", evil).session_setup.find("'x''; DROP TABLE t; --'"), std::string::npos);
}

TEST_F(Connection, HostNamesAreResolvedToEveryAddress) {
  Options& options = catalog_.servers[20000].options;
  options = {{"host", "127.0.0.1,/tmp"}, {"port", "1,2"}};
  const ConnectionSpec& spec = Make("bob");
  EXPECT_EQ(Value(spec, "host"), "127.0.0.1,/tmp");
  EXPECT_EQ(Value(spec, "hostaddr"), "127.0.0.1,");
  EXPECT_EQ(Value(spec, "port"), "1,2");
  options = {{"host", "no-such-host.invalid"}};
  EXPECT_EQ(StateOf([&] { Make("bob"); }), sqlstate::kUnableToEstablishConnection);
}

TEST_F(Connection, NeedsAUserMapping) {
  catalog_.user_mappings.clear();
  EXPECT_EQ(StateOf([&] { Make("bob"); }), sqlstate::kUndefinedObject);
}

TEST_F(Connection, LinesTablesOverrideTheirServersOptions) {
  Relation table;
  table.name = "t";
  table.server = 20001;
  table.options = {{"port", "7000"}, {"format", "csv"}};
  const ConnectionSpec& spec = *MakeLinesSpec(catalog_, table, {}, &arena_);
  EXPECT_EQ(Value(spec, "hostaddr"), "127.0.0.1");
  EXPECT_EQ(Value(spec, "port"), "7000");
  EXPECT_EQ(Value(spec, "format"), "(none)");
  table.options = {{"path", "/tmp/sock"}};
  EXPECT_EQ(Value(*MakeLinesSpec(catalog_, table, {}, &arena_), "path"), "/tmp/sock");
  table.options.clear();
  EXPECT_EQ(StateOf([&] { MakeLinesSpec(catalog_, table, {}, &arena_); }), sqlstate::kFdwError);
}

TEST_F(Connection, OptionsAreCheckedAsPostgresFdwDoes) {
  auto check = [&](OptionContext context, Options options) {
    return StateOf([&] { CheckOptions(kPostgresWrapper, context, options); });
  };
  EXPECT_EQ(check(OptionContext::kServer, {{"host", "a"}, {"use_remote_estimate", "TRUE"}}),
            sqlstate::kSuccess);
  EXPECT_EQ(check(OptionContext::kServer, {{"user", "a"}}), sqlstate::kFdwInvalidOptionName);
  EXPECT_EQ(check(OptionContext::kUserMapping, {{"user", "a"}}), sqlstate::kSuccess);
  EXPECT_EQ(check(OptionContext::kServer, {{"fetch_size", "0"}}), sqlstate::kInvalidParameterValue);
  EXPECT_EQ(check(OptionContext::kServer, {{"fdw_tuple_cost", "x"}}),
            sqlstate::kInvalidParameterValue);
  EXPECT_EQ(check(OptionContext::kTable, {{"async_capable", "maybe"}}), sqlstate::kSyntaxError);
  EXPECT_EQ(check(OptionContext::kColumn, {{"column_name", "x"}}), sqlstate::kSuccess);
}

TEST_F(Connection, SystemViewsAreFoundBySchema) {
  ASSERT_NE(FindVirtualTable("", "pg_stat_activity"), nullptr);
  EXPECT_EQ(FindVirtualTable("", "pg_stat_activity")->columns.size(), 22u);
  EXPECT_EQ(FindVirtualTable("", "servers"), nullptr);
  EXPECT_NE(FindVirtualTable("sluice", "servers"), nullptr);
}

}  // namespace
}  // namespace sluice
