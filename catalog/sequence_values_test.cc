#include "catalog/sequence_values.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sys/wait.h>

#include "common/error.h"

namespace sluice {
namespace {

class SequenceValuesTest : public testing::Test {
 protected:
  SequenceValuesTest() {
    char name[] = "/tmp/sluice_sequences_XXXXXX";
    directory_ = mkdtemp(name);
    sequence_.name = "s";
    sequence_.storage = 20000;
  }
  ~SequenceValuesTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  Sequence sequence_;
};

TEST_F(SequenceValuesTest, GoOnWhereAnotherProcessStopped) {
  SequenceValues values(directory_), other(directory_);
  EXPECT_EQ(values.Next(sequence_, 1).first, 1);
  EXPECT_EQ(other.Next(sequence_, 1).first, 2);
  SequenceValues::Range many = values.Next(sequence_, 1000);
  EXPECT_EQ(many.first, 3);
  EXPECT_EQ(many.count, 1000);
  EXPECT_EQ(other.Next(sequence_, 1).first, 1003);
  values.Set(sequence_, {7, false});
  EXPECT_EQ(other.Next(sequence_, 1).first, 7);
  values.Set(sequence_, {7, true});
  EXPECT_EQ(other.Next(sequence_, 1).first, 8);
}

TEST_F(SequenceValuesTest, EndAtTheirBoundsOrStartAgain) {
  sequence_.max = 5;
  sequence_.increment = 2;
  SequenceValues values(directory_);
  SequenceValues::Range range = values.Next(sequence_, 10);
  EXPECT_EQ(range.first, 1);
  EXPECT_EQ(range.count, 3);  // 1, 3, 5
  try {
    values.Next(sequence_, 1);
    FAIL();
  } catch (const QueryError& failure) {
    EXPECT_EQ(SqlStateText(failure.error.state), "2200H");
    EXPECT_EQ(failure.error.message, "nextval: reached maximum value of sequence \"s\" (5)");
  }
  sequence_.cycle = true;
  EXPECT_EQ(values.Next(sequence_, 1).first, 1);
  Sequence down;
  down.name = "down";
  down.storage = 20001;
  down.increment = -1;
  down.min = INT64_MIN;
  down.max = down.start = down.restart = -1;
  EXPECT_EQ(values.Next(down, 2).first, -1);
  EXPECT_EQ(values.Next(down, 1).first, -3);
  values.Set(down, {INT64_MIN, true});
  EXPECT_THROW(values.Next(down, 1), QueryError);
}

// What the page cache alone knew is lost with the machine: another boot id goes on behind what was
// reserved on disk.
TEST_F(SequenceValuesTest, AfterACrashOfTheMachineNoValueComesTwice) {
  int64_t last = 0;
  {
    SequenceValues values(directory_);
    for (int i = 0; i < 10; i++) last = values.Next(sequence_, 1).first;
  }
  std::string path = directory_ + "/20000";
  std::string record;
  {
    std::ifstream file(path, std::ios::binary);
    record.assign(std::istreambuf_iterator<char>(file), {});
  }
  size_t boot_id = record.find('-');
  ASSERT_NE(boot_id, std::string::npos);
  record[boot_id - 1] = record[boot_id - 1] == '0' ? '1' : '0';
  {
    std::ofstream file(path, std::ios::binary);
    file << record;
  }
  // The checksum tells a damaged file.
  SequenceValues damaged(directory_);
  EXPECT_THROW(damaged.Next(sequence_, 1), QueryError);
  constexpr size_t kChecksumAt = 8 * 5 + 4;  // see Record
  uint32_t hash = 2166136261;
  std::memset(&record[kChecksumAt], 0, 4);
  for (char c : record) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  std::memcpy(&record[kChecksumAt], &hash, 4);
  {
    std::ofstream file(path, std::ios::binary);
    file << record;
  }
  SequenceValues after(directory_);
  int64_t next = after.Next(sequence_, 1).first;
  EXPECT_GT(next, last);
  EXPECT_LE(next, last + 64);
}

// Processes that are killed at any moment neither give a value twice nor lose one.
TEST_F(SequenceValuesTest, KilledProcessesLeaveNoGap) {
  for (int round = 0; round < 5; round++) {
    pid_t child = fork();
    if (child == 0) {
      SequenceValues values(directory_);
      for (;;) values.Next(sequence_, 3);
    }
    usleep(5000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    SequenceValues values(directory_);
    EXPECT_EQ(values.Next(sequence_, 1).first % 3, (round + 1) % 3);
  }
}

}  // namespace
}  // namespace sluice
