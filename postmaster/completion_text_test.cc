// What completion finds in a statement's tree, and how it rewrites its text.
#include "postmaster/completion_text.h"

#include <gtest/gtest.h>

#include "parser/raw.h"
#include "postmaster/text_rewrite.h"

namespace sluice {
namespace {

StatementReferences ReferencesOf(const std::string& sql) {
  ParsedSql parsed = ParseSql(sql);
  return FindReferences(*parsed.statements().at(0).node);
}

std::vector<std::string> TablesOf(const std::string& sql) {
  std::vector<std::string> names;
  for (const TableReference& table : ReferencesOf(sql).tables)
    names.push_back(table.schema.empty() ? table.name : table.schema + "." + table.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(CompletionText, TablesAreFoundWhereverTheyStand) {
  EXPECT_EQ(TablesOf("SELECT 1"), Names());
  EXPECT_EQ(TablesOf("SELECT * FROM a, s.b JOIN c USING (x)"), (Names{"a", "s.b", "c"}));
  EXPECT_EQ(TablesOf("SELECT (SELECT max(x) FROM d) FROM e WHERE EXISTS (SELECT 1 FROM f)"),
            (Names{"d", "e", "f"}));
  EXPECT_EQ(TablesOf("SELECT 1 FROM a UNION SELECT 2 FROM b ORDER BY (SELECT 1 FROM c)"),
            (Names{"c", "a", "b"}));
}

TEST(CompletionText, WithNamesHideTablesInTheirScopeOnly) {
  EXPECT_EQ(TablesOf("WITH w AS (SELECT * FROM a) SELECT * FROM w"), Names{"a"});
  // Not recursive: inside its own query the name is a table's.
  EXPECT_EQ(TablesOf("WITH w AS (SELECT * FROM w) SELECT * FROM w"), Names{"w"});
  EXPECT_EQ(TablesOf("WITH RECURSIVE w AS (SELECT 1 UNION SELECT * FROM w) SELECT * FROM w"),
            Names());
  EXPECT_EQ(TablesOf("SELECT * FROM (WITH w AS (SELECT 1) SELECT * FROM w) x, w"), Names{"w"});
  EXPECT_EQ(TablesOf("WITH w AS (SELECT 1) SELECT * FROM public.w"), Names{"public.w"});
}

TEST(CompletionText, WhatMustNotRunOnAShardIsNamed) {
  EXPECT_EQ(ReferencesOf("SELECT count(*) FROM a").obstacle, "");
  EXPECT_EQ(ReferencesOf("SELECT nextval('s')").obstacle, "function nextval");
  EXPECT_EQ(ReferencesOf("SELECT pg_catalog.pg_terminate_backend(1)").obstacle,
            "function pg_terminate_backend");
  EXPECT_NE(ReferencesOf("SELECT current_user").obstacle, "");
  EXPECT_EQ(ReferencesOf("SELECT current_date").obstacle, "");
  EXPECT_NE(ReferencesOf("WITH w AS (DELETE FROM a RETURNING 1) SELECT * FROM w").obstacle, "");
  EXPECT_EQ(ReferencesOf("SELECT 1 FROM a FOR UPDATE").obstacle, "FOR UPDATE");
}

TEST(CompletionText, ColumnsThatMayBeReadAreKnownByName) {
  StatementReferences references = ReferencesOf("SELECT a.x, y + 1 FROM a WHERE z");
  EXPECT_EQ(references.column_names, (Names{"x", "y", "z"}));
  EXPECT_FALSE(references.all_columns);
  EXPECT_TRUE(ReferencesOf("SELECT a.* FROM a").all_columns);
  EXPECT_TRUE(ReferencesOf("SELECT x FROM a NATURAL JOIN b").all_columns);
  EXPECT_TRUE(ReferencesOf("SELECT p FROM a AS t (p, q)").all_columns);
  EXPECT_FALSE(ReferencesOf("SELECT count(*) FROM a").all_columns);
}

TEST(CompletionText, ConditionsOnTheOnlyTableAreItsOwn) {
  auto conditions = [](const std::string& sql) {
    ParsedSql parsed = ParseSql(sql);
    std::vector<std::string> found = ConditionsOnOnlyTable(*parsed.statements().at(0).node);
    std::ranges::sort(found);
    return found;
  };
  EXPECT_EQ(
      conditions("SELECT rank() OVER () FROM t AS a WHERE a.x > 1 AND (y = 'b' OR a.z IS NULL)"),
      (Names{"x > 1", "y = 'b' OR z IS NULL"}));
  EXPECT_EQ(conditions("SELECT 1 FROM t WHERE x IN (SELECT 1) AND y = $1"), Names{"y = $1"});
  EXPECT_EQ(conditions("SELECT 1 FROM t, u WHERE x = 1"), Names());
  EXPECT_EQ(conditions("SELECT 1 FROM t WHERE x = 1 UNION SELECT 2 FROM t"), Names());
  EXPECT_EQ(conditions("WITH w AS (SELECT x + 1 AS x FROM t) SELECT 1 FROM w WHERE x = 1"),
            Names());
  EXPECT_EQ(conditions("SELECT 1 FROM t LEFT JOIN u ON true WHERE x = 1"), Names());
}

TEST(CompletionText, QualifiedNamesAreSplicedAndPositionsFoundAgain) {
  std::string sql = "SELECT public.t.x, boom FROM public.\"t\" , t";
  TextRewrite rewrite(sql, 0);
  int column = static_cast<int>(sql.find("public.t.x")),
      table = static_cast<int>(sql.find("public.\""));
  int start = 0;
  ASSERT_GT(rewrite.IdentifiersEnd(column, 2, 1, &start), 0);
  rewrite.Replace(column, start - column, "");
  int end = rewrite.IdentifiersEnd(table, 2, 1, &start);
  ASSERT_EQ(end, table + static_cast<int>(strlen("public.\"t\"")));
  rewrite.Replace(table, end - table, "pg_temp.t");
  std::string result = rewrite.Result();
  EXPECT_EQ(result, "SELECT t.x, boom FROM pg_temp.t , t");
  EXPECT_EQ(rewrite.OriginalOffset(static_cast<int>(result.find("boom"))),
            static_cast<int>(sql.find("boom")));
  EXPECT_EQ(rewrite.OriginalOffset(static_cast<int>(result.rfind("t"))),
            static_cast<int>(sql.rfind("t")));
  EXPECT_EQ(rewrite.OriginalOffset(static_cast<int>(result.find("pg_temp")) + 3), table);
}

TEST(CompletionText, NamesWrittenInAnotherWayAreLeftAlone) {
  TextRewrite comment("a /* . */ . b", 0);
  int start = 0;
  EXPECT_EQ(comment.IdentifiersEnd(0, 2, 1, &start), -1);
  TextRewrite unicode("U&\"a\".b", 0);
  EXPECT_EQ(unicode.IdentifiersEnd(0, 2, 1, &start), -1);
  TextRewrite spaced("\"a\"\"b\" .\n c d", 0);
  EXPECT_EQ(spaced.IdentifiersEnd(0, 2, 1, &start), 11);
}

}  // namespace
}  // namespace sluice
