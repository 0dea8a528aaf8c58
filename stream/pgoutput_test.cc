#include "stream/pgoutput.h"

#include <gtest/gtest.h>
#include <random>

#include "common/bytes.h"
#include "common/error.h"

namespace sluice {
namespace {

using namespace std::string_literals;

class Bytes {
 public:
  explicit Bytes(char type) { out_.push_back(type); }
  template <typename T>
  Bytes& Int(T value) {
    char bytes[sizeof(T)];
    StoreBig<T>(bytes, value);
    out_.append(bytes, sizeof(T));
    return *this;
  }
  Bytes& Byte(char byte) {
    out_.push_back(byte);
    return *this;
  }
  Bytes& Text(std::string_view text) {
    out_.append(text).push_back('\0');
    return *this;
  }
  Bytes& Value(char kind, std::string_view bytes) {
    out_.push_back(kind);
    Int<uint32_t>(static_cast<uint32_t>(bytes.size()));
    out_.append(bytes);
    return *this;
  }
  const std::string& get() const { return out_; }

 private:
  std::string out_;
};

std::string Relation() {
  Bytes bytes('R');
  bytes.Int<uint32_t>(16384).Text("public").Text("t").Byte('d').Int<uint16_t>(2);
  bytes.Byte(1).Text("id").Int<uint32_t>(23).Int<int32_t>(-1);
  bytes.Byte(0).Text("v").Int<uint32_t>(25).Int<int32_t>(-1);
  return bytes.get();
}

std::string Update() {
  Bytes bytes('U');
  bytes.Int<uint32_t>(16384).Byte('K').Int<uint16_t>(2).Value('b', "abcd").Byte('n');
  bytes.Byte('N').Int<uint16_t>(2).Value('b', "abce").Byte('u');
  return bytes.get();
}

std::string Message() {
  Bytes bytes('M');
  bytes.Byte(1).Int<uint64_t>(77).Text("sluice").Int<uint32_t>(3);
  return bytes.get() + "a\0b"s;
}

TEST(PgOutput, ARelationHasItsColumns) {
  PgOutputMessage message;
  std::string bytes = Relation();
  DecodePgOutput(bytes, &message);
  EXPECT_EQ(message.kind, PgOutputKind::kRelation);
  EXPECT_EQ(message.relation, 16384u);
  EXPECT_EQ(message.name, "t");
  ASSERT_EQ(message.columns.size(), 2u);
  EXPECT_TRUE(message.columns[0].is_key);
  EXPECT_EQ(message.columns[1].name, "v");
  EXPECT_EQ(message.columns[1].type, 25u);
}

TEST(PgOutput, AnUpdateOfTheKeyHasTheOldKeyAndAnUnchangedValue) {
  PgOutputMessage message;
  std::string bytes = Update();
  DecodePgOutput(bytes, &message);
  EXPECT_EQ(message.old_kind, OldTuple::kKey);
  EXPECT_EQ(message.old_tuple[0].bytes, "abcd");
  EXPECT_EQ(message.old_tuple[1].kind, 'n');
  EXPECT_EQ(message.new_tuple[0].bytes, "abce");
  EXPECT_EQ(message.new_tuple[1].kind, 'u');
}

TEST(PgOutput, AMessageMayHoldAnyBytes) {
  PgOutputMessage message;
  std::string bytes = Message();
  DecodePgOutput(bytes, &message);
  EXPECT_TRUE(message.transactional);
  EXPECT_EQ(message.prefix, "sluice");
  EXPECT_EQ(message.content, "a\0b"s);
}

TEST(PgOutput, WhatIsCutShortOrTooLongIsMalformed) {
  PgOutputMessage message;
  for (const std::string& whole : {Relation(), Update(), Message()}) {
    DecodePgOutput(whole, &message);
    for (size_t size = 0; size < whole.size(); size++)
      EXPECT_THROW(DecodePgOutput(whole.substr(0, size), &message), QueryError) << size;
    EXPECT_THROW(DecodePgOutput(whole + "x", &message), QueryError);
  }
}

TEST(PgOutput, RandomDamageNeverReadsOutOfBounds) {
  unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  PgOutputMessage message;
  for (int i = 0; i < 20000; i++) {
    std::string bytes = i % 3 == 0 ? Relation() : i % 3 == 1 ? Update() : Message();
    for (unsigned n = random() % 4 + 1; n > 0; n--)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    try {
      DecodePgOutput(bytes, &message);
    } catch (const QueryError& error) {
      EXPECT_EQ(error.error.state, sqlstate::kProtocolViolation);
    }
  }
}

TEST(PgOutput, FramesAreTakenApart) {
  std::string keepalive = Bytes('k').Int<uint64_t>(0x1'00000002).Int<int64_t>(5).Byte(1).get();
  ReplicationFrame frame = DecodeReplicationFrame(keepalive);
  EXPECT_TRUE(frame.keepalive && frame.reply_requested);
  EXPECT_EQ(LsnText(frame.wal_end), "1/2");
  EXPECT_EQ(ParseLsn("1/2"), frame.wal_end);
  EXPECT_THROW(ParseLsn("12"), QueryError);
  EXPECT_THROW(ParseLsn("1/2x"), QueryError);
  std::string data = Bytes('w').Int<uint64_t>(1).Int<uint64_t>(2).Int<int64_t>(3).get() + "B";
  frame = DecodeReplicationFrame(data);
  EXPECT_FALSE(frame.keepalive);
  EXPECT_EQ(frame.payload, "B");
  EXPECT_THROW(DecodeReplicationFrame(data.substr(0, 20)), QueryError);
  EXPECT_THROW(DecodeReplicationFrame("?"), QueryError);
}

}  // namespace
}  // namespace sluice
