#include "wire/copy_format.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::string Text(std::string_view value, CopyOptions options = {}) {
  std::string out;
  AppendCopyText(value, options, &out);
  return out;
}

std::string Csv(std::string_view value, CopyOptions options, bool force = false) {
  std::string out;
  AppendCopyCsv(value, force, options, &out);
  return out;
}

TEST(CopyText, EscapesWhatWouldBeReadOtherwise) {
  EXPECT_EQ(Text("plain"), "plain");
  EXPECT_EQ(Text(""), "");
  EXPECT_EQ(Text("a\tb\nc\rd\\e\bf\fg\vh"), "a\\tb\\nc\\rd\\\\e\\bf\\fg\\vh");
  EXPECT_EQ(Text("\\N"), "\\\\N");
  EXPECT_EQ(Text("\x01\x7f\xc3\xa4"), "\x01\x7f\xc3\xa4");
}

TEST(CopyText, EscapesTheDelimiterByItself) {
  CopyOptions options;
  options.delimiter = '|';
  EXPECT_EQ(Text("a|b\tc", options), "a\\|b\\tc");
}

TEST(CopyCsv, QuotesOnlyWhereNeeded) {
  CopyOptions options;
  options.format = CopyFormat::kCsv;
  options.delimiter = ',';
  options.null_text = "";
  EXPECT_EQ(Csv("plain text", options), "plain text");
  EXPECT_EQ(Csv("a,b", options), "\"a,b\"");
  EXPECT_EQ(Csv("a\"b", options), "\"a\"\"b\"");
  EXPECT_EQ(Csv("a\nb", options), "\"a\nb\"");
  EXPECT_EQ(Csv("", options), "\"\"");  // not to be taken for NULL
  EXPECT_EQ(Csv("x", options, true), "\"x\"");
  options.escape = '\\';
  EXPECT_EQ(Csv("a\"b\\c,", options), "\"a\\\"b\\\\c,\"");
}

TEST(CopyCsv, EndOfDataMarkerAloneOnALineIsQuoted) {
  CopyOptions options;
  options.delimiter = ',';
  options.null_text = "";
  EXPECT_EQ(Csv("\\.", options), "\\.");
  options.single_column = true;
  EXPECT_EQ(Csv("\\.", options), "\"\\.\"");
}

}  // namespace
}  // namespace sluice
