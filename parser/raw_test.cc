#include "parser/raw.h"

#include <gtest/gtest.h>
#include <pg_query/pg_query.pb-c.h>

#include "common/error.h"
#include "parser/prescan.h"

namespace sluice {
namespace {

Error ParseError(const std::string& sql) {
  try {
    ParseSql(sql);
  } catch (const QueryError& e) {
    return e.error;
  }
  return MakeError(sqlstate::kSuccess, "no error");
}

std::string Repeat(std::string_view part, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; i++) all += part;
  return all;
}

TEST(ParseSql, SplitsStatementsAndKeepsTheirPlaces) {
  ParsedSql parsed = ParseSql("SELECT 1;  SELECT 'a;b' ; ;");
  ASSERT_EQ(parsed.statements().size(), 2u);
  EXPECT_EQ(parsed.statements()[0].text, "SELECT 1");
  EXPECT_EQ(parsed.statements()[1].text, "SELECT 'a;b'");
  EXPECT_EQ(parsed.statements()[1].location, 11);
  EXPECT_EQ(parsed.statements()[1].node->node_case, PG_QUERY__NODE__NODE_SELECT_STMT);
  EXPECT_TRUE(ParseSql("").statements().empty());
  EXPECT_TRUE(ParseSql(" -- nothing\n;").statements().empty());
}

TEST(ParseSql, MovesOwnership) {
  ParsedSql a = ParseSql("SELECT 1");
  ParsedSql b = std::move(a);
  a = ParseSql("SELECT 2");
  EXPECT_EQ(b.statements()[0].text, "SELECT 1");
  EXPECT_EQ(a.statements()[0].text, "SELECT 2");
}

TEST(ParseSql, ReportsSyntaxErrorsWithCharacterPositions) {
  Error error = ParseError("SELECT 'é' FORM x y");
  EXPECT_EQ(error.state, sqlstate::kSyntaxError);
  EXPECT_EQ(error.message, "syntax error at or near \"x\"");
  EXPECT_EQ(error.position, 17);
  error = ParseError("SELECT 'abc");
  EXPECT_EQ(error.state, sqlstate::kSyntaxError);
  EXPECT_EQ(error.message, "unterminated quoted string at or near \"'abc\"");
  EXPECT_EQ(ParseError("SELECT").message, "no error");  // an empty target list is Postgres's too
  EXPECT_EQ(ParseError("SELECT 1 +").message, "syntax error at end of input");
}

TEST(ParseSql, RefusesWhatWouldExhaustTheStack) {
  for (const std::string& sql : {
           "SELECT 1" + Repeat("+1", 100'000),
           "SELECT " + Repeat("(", 100'000) + "1" + Repeat(")", 100'000),
           "SELECT " + Repeat("NOT ", 100'000) + "true",
           "SELECT " + Repeat("- ", 100'000) + "1",
           "SELECT " + Repeat("CASE WHEN true THEN ", 100'000) + "1" + Repeat(" END", 100'000),
           "SELECT 1, 2" + Repeat(" UNION SELECT 1, 2", 100'000),
           "SELECT * FROM a" + Repeat(" JOIN b ON (true)", 100'000),
           "SELECT " + Repeat("f(1,", 100'000) + "1" + Repeat(")", 100'000),
           "SELECT " + Repeat("ARRAY[", 100'000) + "1" + Repeat("]", 100'000),
           "SELECT 1" + Repeat("::int", 100'000),
           "SELECT " + Repeat("(", 100'000),
           "SELECT " + Repeat("(SELECT ", 100'000),
           "SELECT 1 " + Repeat("IS NULL ", 100'000),
           // AND is no separator here: each BETWEEN is the operand of the next.
           "SELECT 1 " + Repeat("IS NULL BETWEEN 1 AND 1 ", 100'000),
       }) {
    Error error = ParseError(sql);
    EXPECT_EQ(error.state, sqlstate::kStatementTooComplex) << sql.substr(0, 40);
    EXPECT_FALSE(error.hint.empty());
  }
}

TEST(ParseSql, ParsesWhatJustPassesTheLimit) {
  // Deep trees must be safe right up to the limit, in the grammar, unpacking and freeing.
  size_t limit = EnsureStackForParser();
  size_t terms = limit / 2 - 10;
  EXPECT_EQ(ParseError("SELECT 1" + Repeat("+1", terms)).message, "no error");
  EXPECT_EQ(ParseError("SELECT " + Repeat("- ", limit - 10) + "1").message, "no error");
  EXPECT_EQ(ParseError("SELECT " + Repeat("NOT ", limit - 10) + "true").message, "no error");
  EXPECT_EQ(ParseError("SELECT " + Repeat("(-", limit / 3 - 10) + "1" + Repeat(")", limit / 3 - 10))
                .message,
            "no error");
}

TEST(ParseSql, TakesLongFlatLists) {
  EXPECT_EQ(ParseError("SELECT 1 WHERE 1 IN (0" + Repeat(", 1", 5000) + ")").message, "no error");
  EXPECT_EQ(ParseError("SELECT 1 WHERE a = 1" + Repeat(" AND a = 1 OR b < (2)", 5000)).message,
            "no error");
  EXPECT_EQ(ParseError("SELECT 1 WHERE true" + Repeat(" AND a = 1", 20'000)).message, "no error");
  EXPECT_EQ(ParseError("VALUES (1, 'a')" + Repeat(", (1, 'a')", 50'000)).message, "no error");
  EXPECT_EQ(ParseError(Repeat("SELECT 1;", 20'000)).message, "no error");
}

TEST(Prescan, IsNotFooledByQuotesAndComments) {
  EXPECT_LT(Prescan("SELECT '((((((((((((((((((((', \"((((((((((((((\"").depth, 5u);
  EXPECT_LT(Prescan("SELECT $a$ (((((((((((((((( $b$ (((((((((( $a$").depth, 5u);
  EXPECT_LT(Prescan("SELECT E'\\'((((((((((((((((((' -- (((((((((((((").depth, 5u);
  EXPECT_LT(Prescan("SELECT /* /* (((((((( */ (((((((((((( */ 1").depth, 5u);
  // A quote inside a comment opens nothing, and what follows counts.
  EXPECT_GT(Prescan("SELECT 1 -- '\n" + Repeat("+1", 50)).depth, 90u);
  EXPECT_GT(Prescan("SELECT 'a\\' " + Repeat("+1", 50)).depth, 90u);
  EXPECT_GT(Prescan("SELECT a$b$ " + Repeat("+1", 50) + "$b$").depth, 90u);
}

TEST(CharacterPosition, CountsCharactersFromOne) {
  EXPECT_EQ(CharacterPosition("añb", 0), 1);
  EXPECT_EQ(CharacterPosition("añb", 3), 3);
  EXPECT_EQ(CharacterPosition("añb", -1), 0);
}

}  // namespace
}  // namespace sluice
