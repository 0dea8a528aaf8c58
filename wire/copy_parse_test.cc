#include "wire/copy_parse.h"

#include <gtest/gtest.h>

#include "common/error.h"

namespace sluice {
namespace {

using Lines = std::vector<std::string>;

// The lines of `text`, given in pieces of `piece` bytes.
Lines LinesOf(const std::string& text, const CopyOptions& options, size_t piece) {
  CopyLines lines(options);
  Lines found;
  std::string_view line;
  for (size_t at = 0; at < text.size(); at += piece) {
    lines.Add(std::string_view(text).substr(at, piece));
    while (lines.Next(&line)) found.emplace_back(line);
  }
  lines.End();
  while (lines.Next(&line)) found.emplace_back(line);
  return found;
}

CopyOptions Csv() {
  CopyOptions options;
  options.format = CopyFormat::kCsv;
  options.delimiter = ',';
  options.null_text = "";
  return options;
}

TEST(CopyParseTest, CutsLinesHoweverTheyCome) {
  for (size_t piece : {1, 2, 3, 1000}) {
    EXPECT_EQ(LinesOf("a\nb\n\nc", {}, piece), (Lines{"a", "b", "", "c"}));
    EXPECT_EQ(LinesOf("a\r\nb\r\n", {}, piece), (Lines{"a", "b"}));
    EXPECT_EQ(LinesOf("a\rb\r", {}, piece), (Lines{"a", "b"}));
    EXPECT_EQ(LinesOf("a\\\nb\nc\n", {}, piece), (Lines{"a\\\nb", "c"}));
    EXPECT_EQ(LinesOf("a\\\\\nb\n", {}, piece), (Lines{"a\\\\", "b"}));
    EXPECT_EQ(LinesOf("a\n\\.\nb\n", {}, piece), (Lines{"a"}));
    EXPECT_EQ(LinesOf("1,\"x\ny\"\"\n\",3\n4\n", Csv(), piece), (Lines{"1,\"x\ny\"\"\n\",3", "4"}));
    EXPECT_THROW(LinesOf("a\nb\r\n", {}, piece), QueryError);
    EXPECT_THROW(LinesOf("a\r\nb\n", {}, piece), QueryError);
  }
}

TEST(CopyParseTest, CountsTheLinesOfQuotedFields) {
  CopyOptions options = Csv();
  CopyLines lines(options);
  lines.Add("1\n\"a\nb\n\"\n2\n");
  std::string_view line;
  ASSERT_TRUE(lines.Next(&line));
  EXPECT_EQ(lines.line_number(), 1u);
  ASSERT_TRUE(lines.Next(&line));
  EXPECT_EQ(lines.line_number(), 4u);
  ASSERT_TRUE(lines.Next(&line));
  EXPECT_EQ(lines.line_number(), 5u);
  EXPECT_FALSE(lines.Next(&line));
}

std::string Fields(std::string_view line, const CopyOptions& options, std::vector<int> wanted) {
  std::vector<std::optional<std::string_view>> fields;
  std::vector<std::string> storage;
  size_t found = CopyFields(line, options, wanted, &fields, &storage);
  std::string text;
  for (size_t i = 0; i < found; i++) text += "[" + std::string(fields[i].value_or("NULL!")) + "]";
  return text;
}

TEST(CopyParseTest, FindsTheFieldsThatAreWanted) {
  EXPECT_EQ(Fields("a\tb\tc", {}, {0, 2}), "[a][c]");
  EXPECT_EQ(Fields("a\t\\N\tc", {}, {1}), "[NULL!]");
  EXPECT_EQ(Fields("a\tb", {}, {1, 2}), "[b]");
  EXPECT_EQ(Fields("x\\ty\\\\\\101\\x41\\q\t2", {}, {0, 1}), "[x\ty\\AAq][2]");
  EXPECT_EQ(Fields("a\\\tb\tc", {}, {0, 1}), "[a\tb][c]");
  EXPECT_EQ(Fields("", {}, {0}), "[]");
  EXPECT_EQ(Fields("1,\"x,\"\"y\",3", Csv(), {1, 2}), "[x,\"y][3]");
  EXPECT_EQ(Fields(",\"\",x", Csv(), {0, 1, 2}), "[NULL!][][x]");
  CopyOptions forced = Csv();
  forced.force_null = {false, true};
  forced.force_not_null = {true, false};
  EXPECT_EQ(Fields(",\"\"", forced, {0, 1}), "[][NULL!]");
  EXPECT_THROW(Fields("1,\"open", Csv(), {1}), QueryError);
}

TEST(CopyParseTest, TakesTuplesOfTheBinaryFormat) {
  std::string data(CopyBinaryHeader());
  std::string tuple("\0\2\0\0\0\1x\xff\xff\xff\xff", 11);
  data += tuple + tuple;
  data += kCopyBinaryTrailer;
  for (size_t piece : {1, 5, 1000}) {
    CopyTuples tuples;
    int found = 0;
    for (size_t at = 0; at < data.size(); at += piece) {
      tuples.Add(std::string_view(data).substr(at, piece));
      for (std::string_view t; tuples.Next(&t); found++) EXPECT_EQ(t, tuple);
    }
    EXPECT_EQ(found, 2);
    EXPECT_TRUE(tuples.ended());
  }
  CopyTuples none;
  none.Add("this is nothing of the kind");
  std::string_view tuple_view;
  EXPECT_THROW(none.Next(&tuple_view), QueryError);
}

}  // namespace
}  // namespace sluice
