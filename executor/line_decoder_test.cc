#include "executor/line_decoder.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "types/codec.h"

namespace sluice {
namespace {

// Lines of (int4, text), as "1|a" with NULL spelled out.
std::vector<std::string> Decode(const std::string& lines, std::string* error = nullptr) {
  SessionSettings settings;
  const OutputColumn columns[] = {{"i", kInt4Oid, -1, kInvalidOid},
                                  {"t", kTextOid, -1, kInvalidOid}};
  const int line_columns[] = {0, 1};
  const Oid types[] = {kInt4Oid, kTextOid};
  ForeignScanPlan scan{};
  scan.output = columns;
  scan.line_columns = line_columns;
  scan.line_types = types;
  scan.server_name = "lines";
  LineDecoder decoder(columns, settings);
  std::vector<std::string> rows;
  const char* at = lines.data();
  const char* end = at + lines.size();
  try {
    while (at < end) {
      Batch batch;
      decoder.Decode(scan, &at, end, &batch);
      for (size_t row = 0; row < batch.rows; row++) {
        std::string& text = rows.emplace_back();
        for (const Column& column : batch.columns) {
          if (!text.empty()) text += '|';
          if (column.IsNull(row))
            text += "NULL";
          else
            AppendText(column, row, settings, &text);
        }
      }
    }
  } catch (const QueryError& e) {
    if (error != nullptr) *error = SqlStateText(e.error.state) + " " + e.error.message;
  }
  return rows;
}
using Rows = std::vector<std::string>;

TEST(LineDecoderTest, ReadsFieldsAsCopysCsvFormatHasThem) {
  EXPECT_EQ(Decode("1,a\n2,\"b, \"\"c\"\"\"\r\n3,\n4,\"\"\n,x\n"),
            (Rows{"1|a", "2|b, \"c\"", "3|NULL", "4|", "NULL|x"}));
  EXPECT_EQ(Decode("5,\"two\nlines\"\n6,last without end"),
            (Rows{"5|two\nlines", "6|last without end"}));
  EXPECT_EQ(Decode("7,a\"b,c\"d\n"), (Rows{"7|ab,cd"}));
}

TEST(LineDecoderTest, ManyLinesComeInBatches) {
  std::string lines;
  for (int i = 0; i < 5000; i++) lines += std::to_string(i) + ",t" + std::to_string(i) + "\n";
  Rows rows = Decode(lines);
  ASSERT_EQ(rows.size(), 5000u);
  EXPECT_EQ(rows[4999], "4999|t4999");
}

TEST(LineDecoderTest, BadLinesRaiseWhatCopyRaises) {
  std::string error;
  Decode("1\n", &error);
  EXPECT_EQ(error.substr(0, 5), "22P04");
  Decode("1,a,b\n", &error);
  EXPECT_EQ(error, "22P04 extra data after last expected column");
  Decode("1,\"a\n", &error);
  EXPECT_EQ(error, "22P04 unterminated CSV quoted field");
  Decode("x,a\n", &error);
  EXPECT_EQ(error, "22P02 invalid input syntax for type integer: \"x\"");
}

}  // namespace
}  // namespace sluice
