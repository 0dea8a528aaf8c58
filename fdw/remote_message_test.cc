#include <gtest/gtest.h>
#include <random>
#include <sys/wait.h>

#include "fdw/parse_harness.h"

namespace sluice {
namespace {

std::string Message(char type, std::string_view body) {
  std::string message(5, type);
  StoreBig<uint32_t>(message.data() + 1, static_cast<uint32_t>(body.size() + 4));
  return message.append(body);
}

std::string Row(std::string_view value) {
  std::string body("\0\1\0\0\0\0", 6);
  StoreBig<uint32_t>(body.data() + 2, static_cast<uint32_t>(value.size()));
  return Message('D', body.append(value));
}

const std::string kDescription = Message('T', std::string("\0\1x\0", 4) + std::string(6, '\0') +
                                                  std::string("\0\0\0\x19\0\4\0\0\0\1\0\0", 12));
const std::string kError =
    Message('E', std::string("SERROR\0VERROR\0C22012\0Mdivision by zero\0Rint4div\0\0", 49));

// A whole answer to an extended query.
std::string Answer(int rows) {
  std::string answer = Message('1', "") + Message('2', "") + kDescription;
  for (int i = 0; i < rows; i++) answer += Row(std::string(static_cast<size_t>(i) * 7 % 200, 'x'));
  return answer + Message('C', std::string("SELECT 1\0", 9)) + Message('Z', "I");
}

TEST(RemoteMessage, walking_stops_at_other_messages_partial_ones_and_impossible_lengths) {
  std::string bytes = Row("a") + Row("bc");
  uint32_t rows = 0;
  EXPECT_EQ(WalkMessages(bytes.data(), bytes.size(), 'D', &rows), bytes.size());
  EXPECT_EQ(rows, 2u);
  for (size_t cut = 0; cut < bytes.size(); cut++) {
    rows = 0;
    size_t expected = cut < Row("a").size() ? 0 : Row("a").size();
    EXPECT_EQ(WalkMessages(bytes.data(), cut, 'D', &rows), expected);
  }
  std::string other = Row("a") + Message('C', "x") + Row("b");
  rows = 0;
  EXPECT_EQ(WalkMessages(other.data(), other.size(), 'D', &rows), Row("a").size());
  std::string short_length("D\0\0\0\3", 5);
  EXPECT_EQ(WalkMessages(short_length.data(), 5, 'D', &rows), 0u);
  std::string huge("D\xff\xff\xff\xff", 5);
  EXPECT_EQ(WalkMessages(huge.data(), 5, 'D', &rows), 0u);
  MessageHeader header;
  EXPECT_EQ(ReadHeader(huge.data(), 5, &header), HeaderState::kMalformed);
  EXPECT_EQ(ReadHeader(short_length.data(), 5, &header), HeaderState::kMalformed);
  EXPECT_EQ(ReadHeader(short_length.data(), 4, &header), HeaderState::kIncomplete);
}

TEST(RemoteMessage, reads_an_error_and_refuses_a_cut_one) {
  std::string_view body = std::string_view(kError).substr(5);
  std::optional<RemoteError> error = ReadErrorResponse(body);
  ASSERT_TRUE(error);
  EXPECT_EQ(SqlStateText(error->error.state), "22012");
  EXPECT_EQ(error->error.message, "division by zero");
  EXPECT_EQ(error->routine, "int4div");
  for (size_t cut = 0; cut < body.size(); cut++)
    EXPECT_FALSE(ReadErrorResponse(body.substr(0, cut)));
}

TEST(RemoteMessage, reads_a_row_description_and_refuses_a_cut_one) {
  std::string_view body = std::string_view(kDescription).substr(5);
  uint32_t types[2] = {};
  EXPECT_EQ(ReadRowDescription(body, types), 1u);
  EXPECT_EQ(types[0], 25u);
  for (size_t cut = 0; cut < body.size(); cut++)
    EXPECT_FALSE(ReadRowDescription(body.substr(0, cut), types));
}

TEST(RemoteMessage, a_shard_that_says_what_it_should_not_is_an_error) {
  ParseHarness harness;
  auto run = [&](const std::string& bytes, uint8_t kind = 0) {
    StreamState state{};
    for (uint8_t chunk = 0; chunk < 4; chunk++) {
      for (uint8_t piece : {0, 1, 3, 250}) {
        std::string input = {static_cast<char>(kind), static_cast<char>(chunk),
                             static_cast<char>(piece), 0};
        input += bytes;
        state = harness.Run({reinterpret_cast<const uint8_t*>(input.data()), input.size()});
      }
    }
    return state;
  };
  EXPECT_EQ(run(Answer(200)), StreamState::kEnded);
  EXPECT_EQ(run(Message('1', "") + kError + Message('Z', "I")), StreamState::kFailed);
  std::string answer = Answer(5);
  for (size_t cut = 0; cut < answer.size(); cut++) {
    EXPECT_EQ(run(answer.substr(0, cut)), StreamState::kFailed) << "cut at " << cut;
  }
  for (const std::string& bad :
       {std::string("D\xff\xff\xff\xff", 5), std::string("\0\0\0\0\0", 5), Message('Z', "?"),
        Message('Z', ""), Message('T', "\xff"), Message('E', "C"), Message('W', ""),
        Message('?', "x"), Message('R', std::string(4, '\0')),
        std::string("E\x3f\xff\xff\xff", 5)}) {
    EXPECT_EQ(run(bad + Answer(1)), StreamState::kFailed);
    EXPECT_EQ(run(Message('1', "") + Message('2', "") + kDescription + Row("a") + bad),
              StreamState::kFailed);
  }
  EXPECT_EQ(run(Message('C', std::string("BEGIN\0", 6)) + Message('Z', "I"), 3),
            StreamState::kEnded);
}

TEST(RemoteMessage, survives_mutated_answers) {
  uint64_t seed = std::random_device()();
  if (const char* given = getenv("SLUICE_TEST_SEED")) seed = strtoull(given, nullptr, 10);
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
  printf("SLUICE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  ParseHarness harness;
  for (int i = 0; i < 3000; i++) {
    std::string input;
    for (int k = 0; k < 4; k++) input.push_back(static_cast<char>(random()));
    input += Answer(static_cast<int>(random() % 40));
    if (random() % 2 == 0) input += Message('N', std::string("SNOTICE\0\0", 9)) + Answer(3);
    for (uint64_t n = random() % 6; n > 0; n--) {
      size_t at = random() % input.size();
      switch (random() % 3) {
        case 0:
          input[at] = static_cast<char>(random());
          break;
        case 1:
          input.erase(at, random() % 20);
          break;
        case 2:
          input.insert(at, input.substr(random() % input.size(), random() % 30));
          break;
      }
      if (input.empty()) input = "x";
    }
    harness.Run({reinterpret_cast<const uint8_t*>(input.data()), input.size()});
  }
}

}  // namespace
}  // namespace sluice
