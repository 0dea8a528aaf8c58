#include "postmaster/settings.h"

#include <gtest/gtest.h>

#include "postmaster/config_file.h"
#include "postmaster/setting_checks.h"

namespace sluice {
namespace {

std::string StateOf(const std::function<void()>& run) {
  try {
    run();
  } catch (const QueryError& e) {
    return SqlStateText(e.error.state);
  }
  return "";
}

void Set(Settings* settings, std::string_view name, std::string_view value, bool local = false) {
  settings->Set(name, value, SettingSource::kSession, local);
}

TEST(Settings, UnitsAreReadAndShownAsPostgresDoes) {
  Settings settings;
  for (auto [text, kb, shown] : {std::tuple{"4MB", 4096, "4MB"},
                                 {"1GB", 1 << 20, "1GB"},
                                 {"1000", 1000, "1000kB"},
                                 {"1536kB", 1536, "1536kB"},
                                 {"1.5MB", 1536, "1536kB"},
                                 {" 2 MB ", 2048, "2MB"}}) {
    Set(&settings, "work_mem", text);
    EXPECT_EQ(settings.Integer("work_mem"), kb) << text;
    EXPECT_EQ(settings.Show("WORK_MEM"), shown) << text;
  }
  Set(&settings, "statement_timeout", "90s");
  EXPECT_EQ(settings.Integer("statement_timeout"), 90000);
  EXPECT_EQ(settings.Show("statement_timeout"), "90s");
  Set(&settings, "statement_timeout", "2min");
  EXPECT_EQ(settings.Show("statement_timeout"), "2min");
}

TEST(Settings, BadValuesAreRefusedWithPostgressStates) {
  Settings settings;
  EXPECT_EQ(StateOf([&] { Set(&settings, "work_mem", "4 parsecs"); }), "22023");
  EXPECT_EQ(StateOf([&] { Set(&settings, "work_mem", "1"); }), "22023");  // below the minimum
  EXPECT_EQ(StateOf([&] { Set(&settings, "enable_pushdown_filter", "maybe"); }), "22023");
  EXPECT_EQ(StateOf([&] { Set(&settings, "bytea_output", "base64"); }), "22023");
  EXPECT_EQ(StateOf([&] { Set(&settings, "TimeZone", "Mars/Olympus"); }), "22023");
  EXPECT_EQ(StateOf([&] { Set(&settings, "no_such", "1"); }), "42704");
  EXPECT_EQ(StateOf([&] { Set(&settings, "port", "1"); }), "55P02");
  EXPECT_EQ(StateOf([&] { Set(&settings, "server_version", "9"); }), "55P02");
  EXPECT_EQ(StateOf([&] { Set(&settings, "client_encoding", "LATIN1"); }), "0A000");
  EXPECT_EQ(StateOf([&] { Set(&settings, "my.9x", "1"); }), "42602");
  EXPECT_EQ(settings.Show("work_mem"), "64MB");
}

TEST(Settings, RollbackGivesBackWhatWasBefore) {
  Settings settings;
  settings.BeginLevel();
  Set(&settings, "work_mem", "1MB");
  settings.EndLevel(false);
  EXPECT_EQ(settings.Show("work_mem"), "64MB");
  settings.BeginLevel();
  Set(&settings, "work_mem", "1MB");
  settings.EndLevel(true);
  EXPECT_EQ(settings.Show("work_mem"), "1MB");
}

TEST(Settings, LocalValuesEndWithTheTransaction) {
  Settings settings;
  settings.BeginLevel();
  Set(&settings, "work_mem", "1MB", true);
  EXPECT_EQ(settings.Show("work_mem"), "1MB");
  settings.EndLevel(true);
  EXPECT_EQ(settings.Show("work_mem"), "64MB");

  settings.BeginLevel();
  Set(&settings, "work_mem", "2MB");
  Set(&settings, "work_mem", "3MB", true);
  settings.EndLevel(true);
  EXPECT_EQ(settings.Show("work_mem"), "2MB");  // the SET below the SET LOCAL

  settings.BeginLevel();
  Set(&settings, "work_mem", "4MB", true);
  Set(&settings, "work_mem", "5MB");
  settings.EndLevel(true);
  EXPECT_EQ(settings.Show("work_mem"), "5MB");
}

TEST(Settings, SavepointsNest) {
  Settings settings;
  settings.BeginLevel();
  Set(&settings, "work_mem", "1MB");
  settings.BeginLevel();
  Set(&settings, "work_mem", "2MB");
  settings.EndLevel(false);  // ROLLBACK TO
  EXPECT_EQ(settings.Show("work_mem"), "1MB");
  settings.BeginLevel();
  Set(&settings, "work_mem", "3MB");
  settings.EndLevel(true);  // RELEASE
  EXPECT_EQ(settings.Show("work_mem"), "3MB");
  settings.EndLevel(false);
  EXPECT_EQ(settings.Show("work_mem"), "64MB");

  // A local value of a released savepoint still ends with the transaction.
  settings.BeginLevel();
  settings.BeginLevel();
  Set(&settings, "work_mem", "7MB", true);
  settings.EndLevel(true);
  EXPECT_EQ(settings.Show("work_mem"), "7MB");
  settings.EndLevel(true);
  EXPECT_EQ(settings.Show("work_mem"), "64MB");
}

TEST(Settings, ResetGoesBackToTheFilesOrTheClientsValue) {
  Settings settings;
  settings.Set("work_mem", "8MB", SettingSource::kFile);
  settings.Set("TimeZone", "europe/berlin", SettingSource::kClient);
  Set(&settings, "work_mem", "1MB");
  Set(&settings, "TimeZone", "UTC");
  settings.ResetAll();
  EXPECT_EQ(settings.Show("work_mem"), "8MB");
  EXPECT_EQ(settings.Show("TimeZone"), "Europe/Berlin");
}

TEST(Settings, ReloadedValuesDoNotOverrideTheSessions) {
  Settings settings;
  Set(&settings, "work_mem", "1MB");
  settings.Set("work_mem", "9MB", SettingSource::kFile);
  EXPECT_EQ(settings.Show("work_mem"), "1MB");
  settings.Reset("work_mem");
  EXPECT_EQ(settings.Show("work_mem"), "9MB");
  settings.DropFileValue("work_mem");
  EXPECT_EQ(settings.Show("work_mem"), "64MB");
}

TEST(Settings, ReportsEachChangeOnce) {
  Settings settings;
  settings.TakeReports();
  Set(&settings, "application_name", "a\tb\xc3\xa4");
  Set(&settings, "work_mem", "1MB");
  auto reports = settings.TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].first, "application_name");
  EXPECT_EQ(reports[0].second, "a?b??");
  EXPECT_TRUE(settings.TakeReports().empty());
}

TEST(Settings, SearchPathIsSplitAsPostgresDoes) {
  Settings settings;
  using Names = std::vector<std::string>;
  EXPECT_EQ(SearchPath(settings, "me"), (Names{"pg_catalog", "me", "public"}));
  Set(&settings, "search_path", "A, \"B\"\"c\", pg_catalog");
  EXPECT_EQ(SearchPath(settings, "me"), (Names{"a", "B\"c", "pg_catalog"}));
  Set(&settings, "search_path", "");
  EXPECT_EQ(SearchPath(settings, "me"), (Names{"pg_catalog"}));
  EXPECT_EQ(StateOf([&] { Set(&settings, "search_path", "a,,b"); }), "22023");
  EXPECT_EQ(StateOf([&] { Set(&settings, "search_path", "\"a"); }), "22023");
}

TEST(Settings, DateStyleIsCombined) {
  Settings settings;
  for (auto [text, shown] : {std::pair{"German", "German, DMY"},
                             {"sql, dmy", "SQL, DMY"},
                             {"ISO", "ISO, MDY"},
                             {"Postgres, European", "Postgres, DMY"},
                             {"ymd", "ISO, YMD"}}) {
    Settings fresh;
    Set(&fresh, "datestyle", text);
    EXPECT_EQ(fresh.Show("DateStyle"), shown) << text;
  }
}

TEST(ParseBoolean, TakesUniquePrefixes) {
  for (const char* text : {"on", "true", "tr", "t", "yes", "y", "1", "ON"})
    EXPECT_EQ(ParseBoolean(text), true) << text;
  for (const char* text : {"off", "of", "false", "f", "no", "n", "0"})
    EXPECT_EQ(ParseBoolean(text), false) << text;
  for (const char* text : {"", "o", "2", "truely"})
    EXPECT_EQ(ParseBoolean(text), std::nullopt) << text;
}

// --- the configuration file

TEST(ConfigFile, ReadsPostgressSyntax) {
  auto lines = ParseConfig(
      "# comment\n\nport = 6000  # why\nwork_mem='1 MB'\nsearch_path 'it''s \\'so\\''\n  "
      "io_method=epoll",
      "f");
  ASSERT_TRUE(lines.ok());
  ASSERT_EQ(lines->size(), 4u);
  EXPECT_EQ((*lines)[0].value, "6000");
  EXPECT_EQ((*lines)[1].value, "1 MB");
  EXPECT_EQ((*lines)[2].value, "it's 'so'");
  EXPECT_EQ((*lines)[3].name, "io_method");
  EXPECT_EQ((*lines)[3].line, 6);
}

TEST(ConfigFile, NamesTheLineOfASyntaxError) {
  for (const char* text : {"a = 1\nport = \n", "a = 1\n= 3", "a = 1\nb = 'x", "a = 1\nb = 1 2"}) {
    auto lines = ParseConfig(text, "f");
    ASSERT_FALSE(lines.ok()) << text;
    EXPECT_NE(lines.error().message.find("line 2"), std::string::npos) << lines.error().message;
    EXPECT_EQ(lines.error().state, sqlstate::kConfigFileError);
  }
}

TEST(ConfigFile, TheWrittenFileIsReadBackAndHoldsTheDefaults) {
  std::string text = DefaultConfigText();
  // With every setting's line made active nothing may be wrong, and nothing may change.
  std::string active;
  size_t settings_seen = 0;
  for (size_t at = 0; at < text.size();) {
    std::string line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    bool setting = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    settings_seen += setting;
    active += setting ? line.substr(1) + "\n" : line + "\n";
  }
  EXPECT_GT(settings_seen, 40u);
  auto lines = ParseConfig(active, "f");
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  EXPECT_EQ(lines->size(), settings_seen);
  Settings settings, defaults;
  for (const Error& error : ApplyConfig(*lines, false, &settings)) ADD_FAILURE() << error.message;
  for (const SettingInfo& info : AllSettings())
    EXPECT_EQ(settings.Show(info.name), defaults.Show(info.name));
}

TEST(ConfigFile, ReloadKeepsWhatNeedsARestartAndDropsLinesThatAreGone) {
  Settings settings;
  ASSERT_TRUE(ApplyConfig(*ParseConfig("port=6000\nwork_mem=1MB", "f"), false, &settings).empty());
  auto errors = ApplyConfig(*ParseConfig("port=6001\nno_such=1", "f"), true, &settings);
  EXPECT_EQ(errors.size(), 2u);
  EXPECT_EQ(settings.Show("port"), "6000");
  EXPECT_EQ(settings.Show("work_mem"), "64MB");
}

}  // namespace
}  // namespace sluice
