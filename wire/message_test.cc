#include "wire/message.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

void Feed(MessageReader* reader, std::string_view bytes) {
  while (!bytes.empty()) {
    size_t room;
    char* to = reader->Buffer(&room);
    size_t now = std::min(room, bytes.size());
    std::memcpy(to, bytes.data(), now);
    reader->Commit(now);
    bytes.remove_prefix(now);
  }
}

std::string Query(std::string_view sql) {
  std::string out;
  MessageWriter writer(&out);
  writer.Begin('Q');
  writer.CString(sql);
  writer.End();
  return out;
}

SqlState StateOf(const std::function<void()>& run) {
  try {
    run();
  } catch (const QueryError& e) {
    return e.error.state;
  }
  return sqlstate::kSuccess;
}

TEST(MessageReader, GivesTheSameMessagesHoweverTheBytesAreCut) {
  std::string bytes;
  for (int i = 0; i < 50; i++) bytes += Query(std::string(i * 37 % 400, 'a' + i % 26));
  for (size_t piece : {1, 2, 3, 5, 7, 64, 1000, 100000}) {
    MessageReader reader;
    int taken = 0;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      Feed(&reader, std::string_view(bytes).substr(at, piece));
      while (auto message = reader.Take(false)) {
        EXPECT_EQ(message->type, 'Q');
        BodyReader body(message->body);
        EXPECT_EQ(body.CString(), std::string(taken * 37 % 400, 'a' + taken % 26));
        body.ExpectEnd();
        taken++;
      }
    }
    EXPECT_EQ(taken, 50);
    EXPECT_TRUE(reader.empty());
  }
}

TEST(MessageReader, RefusesAnUnknownTypeBeforeItWaitsForALength) {
  MessageReader reader;
  Feed(&reader, "G");
  EXPECT_EQ(StateOf([&] { reader.Take(false); }), sqlstate::kProtocolViolation);
}

TEST(MessageReader, RefusesLengthsThatCannotBe) {
  for (std::string bytes : {std::string("Q\0\0\0\3", 5), std::string("Q\xff\xff\xff\xff", 5),
                            std::string("Q\x7f\0\0\0", 5), std::string("S\0\1\0\0", 5)}) {
    MessageReader reader;
    Feed(&reader, bytes);
    EXPECT_EQ(StateOf([&] { reader.Take(false); }), sqlstate::kProtocolViolation) << bytes[0];
  }
  for (const std::string& bytes : {std::string("\0\0\0\7", 4), std::string("\0\0\x27\x11", 4)}) {
    MessageReader reader;
    Feed(&reader, bytes);
    EXPECT_EQ(StateOf([&] { reader.Take(true); }), sqlstate::kProtocolViolation);
  }
}

TEST(MessageReader, ClaimedLengthCostsNoMemory) {
  MessageReader reader;
  Feed(&reader, std::string("Q\x3f\xff\xff\xf0", 5));
  EXPECT_FALSE(reader.Take(false).has_value());
  size_t room;
  reader.Buffer(&room);
  EXPECT_LT(room, 1u << 20);
}

TEST(BodyReader, ThrowsPastTheEnd) {
  EXPECT_EQ(StateOf([] { BodyReader("abc").Int<int32_t>(); }), sqlstate::kProtocolViolation);
  EXPECT_EQ(StateOf([] { BodyReader("abc").CString(); }), sqlstate::kProtocolViolation);
  EXPECT_EQ(StateOf([] { BodyReader("abc").Bytes(4); }), sqlstate::kProtocolViolation);
  EXPECT_EQ(StateOf([] { BodyReader("abc").ExpectEnd(); }), sqlstate::kProtocolViolation);
}

TEST(WriteErrorResponse, WritesTheFieldsThatAreSet) {
  Error error = MakeError(sqlstate::kDivisionByZero, "division by zero");
  error.Hint("none").At(8);
  std::string out;
  WriteErrorResponse(&out, error, "ERROR");
  ASSERT_EQ(out[0], 'E');
  EXPECT_EQ(LoadBig<int32_t>(out.data() + 1), static_cast<int32_t>(out.size() - 1));
  std::string_view expected("SERROR\0VERROR\0C22012\0Mdivision by zero\0Hnone\0P8\0\0", 49);
  EXPECT_EQ(std::string_view(out).substr(5), expected);
}

TEST(WriteErrorResponse, CutsTextAtANul) {
  Error error = MakeError(sqlstate::kInternalError, "a");
  error.message = std::string("before\0after", 12);
  std::string out;
  WriteErrorResponse(&out, error, "ERROR");
  EXPECT_EQ(out.find("after"), std::string::npos);
  EXPECT_EQ(out.substr(out.size() - 2), std::string(2, '\0'));
}

}  // namespace
}  // namespace sluice
