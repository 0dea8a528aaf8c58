#include "executor/row_decoder.h"

#include <gtest/gtest.h>
#include <random>

#include "common/bytes.h"
#include "common/error.h"
#include "types/codec.h"

namespace sluice {
namespace {

class RowDecoderTest : public ::testing::Test {
 protected:
  RowDecoderTest() {
    scan_.output = columns_;
    scan_.binary = binary_;
  }
  static void Integer(auto number, std::string* out) {
    char bytes[sizeof number];
    StoreBig(bytes, number);
    out->append(bytes, sizeof number);
  }
  // (int4 in binary, numeric in text, a type without codec in text); nullopt: NULL.
  static std::string Row(std::optional<int32_t> i, std::optional<std::string> n,
                         std::optional<std::string> p) {
    std::string body;
    Integer(int16_t{3}, &body);
    std::string bytes;
    if (i) Integer(*i, &bytes);
    for (auto& field : {i ? std::optional(bytes) : std::nullopt, n, p}) {
      Integer(field ? static_cast<int32_t>(field->size()) : int32_t{-1}, &body);
      if (field) body += *field;
    }
    std::string message = "D";
    Integer(static_cast<int32_t>(body.size() + 4), &message);
    return message + body;
  }
  std::string Text(const Column& column, size_t row) {
    std::string text;
    if (column.IsNull(row)) return "NULL";
    AppendText(column, row, settings_, &text);
    return text;
  }

  SessionSettings settings_;
  const OutputColumn columns_[3] = {{"i", kInt4Oid, -1, kInvalidOid},
                                    {"n", kNumericOid, -1, kInvalidOid},
                                    {"p", kPointOid, -1, kInvalidOid}};
  const bool binary_[3] = {true, false, false};
  ForeignScanPlan scan_{};
};

TEST_F(RowDecoderTest, DecodesBinaryAndTextColumnsWithNulls) {
  std::string bytes;
  for (int i = 0; i < 3000; i++)
    bytes += Row(i % 5 == 0 ? std::nullopt : std::optional(i),
                 i % 7 == 0 ? std::nullopt : std::optional(std::to_string(i) + ".50"),
                 i % 3 == 0 ? std::nullopt : std::optional("(1,2)"));
  RowDecoder decoder(columns_, settings_);
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  int i = 0;
  while (at < end) {
    Batch batch;
    decoder.Decode(scan_, &at, end, &batch);
    for (size_t row = 0; row < batch.rows; row++, i++) {
      ASSERT_EQ(Text(batch.columns[0], row), i % 5 == 0 ? "NULL" : std::to_string(i));
      ASSERT_EQ(Text(batch.columns[1], row), i % 7 == 0 ? "NULL" : std::to_string(i) + ".50");
      ASSERT_EQ(batch.columns[2].IsNull(row), i % 3 == 0);
      if (i % 3 != 0) {
        ASSERT_EQ(batch.columns[2].At<std::string_view>(row), "(1,2)");
      }
    }
  }
  EXPECT_EQ(i, 3000);
}

// Bytes from outside: whatever they are, it is rows or a QueryError, and nothing outside of them is
// read.
TEST_F(RowDecoderTest, DamagedBytesAreAnErrorAndNeverReadBeyondTheirEnd) {
  std::mt19937 random(20261130);
  std::string good;
  for (int i = 0; i < 20; i++) good += Row(i, "1.5", "(3,4)");
  RowDecoder decoder(columns_, settings_);
  int errors = 0;
  for (int round = 0; round < 20'000; round++) {
    std::string bytes = good.substr(0, random() % (good.size() + 1));
    for (uint32_t n = random() % 3; n > 0 && !bytes.empty(); n--)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    // Copied to a block of just that size, so that address sanitizer sees the end.
    std::unique_ptr<char[]> copy(new char[bytes.size()]);
    std::memcpy(copy.get(), bytes.data(), bytes.size());
    const char* at = copy.get();
    const char* end = at + bytes.size();
    try {
      while (at < end) {
        Batch batch;
        decoder.Decode(scan_, &at, end, &batch);
      }
    } catch (const QueryError&) {
      errors++;
    }
  }
  EXPECT_GT(errors, 1000);
}

}  // namespace
}  // namespace sluice
