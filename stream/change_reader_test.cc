#include "stream/change_reader.h"

#include <gtest/gtest.h>

#include "common/bytes.h"
#include "executor/file_blocks.h"

namespace sluice {
namespace {

template <typename T>
std::string Int(T value) {
  std::string bytes(sizeof(T), '\0');
  StoreBig<T>(bytes.data(), value);
  return bytes;
}

std::string Text(std::string_view text) {
  return std::string(text) + '\0';
}

// A pgoutput message as a slice has it.
std::string Slice(const std::string& message) {
  std::string body = 'w' + Int<uint64_t>(1) + Int<uint64_t>(2) + Int<int64_t>(3) + message;
  return 'd' + Int<uint32_t>(static_cast<uint32_t>(body.size() + 4)) + body;
}

std::string Relation() {
  return 'R' + Int<uint32_t>(16384) + Text("public") + Text("t") + 'd' + Int<uint16_t>(1) + '\1' +
         Text("v") + Int<uint32_t>(25) + Int<int32_t>(-1);
}

std::string Begin(uint32_t xid) {
  return 'B' + Int<uint64_t>(100) + Int<int64_t>(5) + Int<uint32_t>(xid);
}

std::string Commit() {
  return 'C' + std::string(1, '\0') + Int<uint64_t>(100) + Int<uint64_t>(110) + Int<int64_t>(5);
}

std::string Insert(const std::string& value) {
  return 'I' + Int<uint32_t>(16384) + 'N' + Int<uint16_t>(1) + 'b' +
         Int<uint32_t>(static_cast<uint32_t>(value.size())) + value;
}

std::string ValueOf(int i) {
  return std::to_string(i) + std::string(100, static_cast<char>('a' + i % 26));
}

void Feed(ChangeReader* reader, const std::string& message) {
  std::string slice = Slice(message);
  reader->Take(slice.data(), slice.size());
}

TEST(ChangeReader, ATransactionThatIsTooLargeForMemoryGoesOnInFiles) {
  FileBlocks blocks(0, "/tmp");
  ChangeReader reader("instance");
  reader.SetSpill(64 << 10, &blocks);
  Feed(&reader, Relation());
  for (int transaction = 0; transaction < 3; transaction++) {
    // The second one is large.
    int rows = transaction == 1 ? 20'000 : 20;
    Feed(&reader, Begin(static_cast<uint32_t>(transaction)));
    for (int i = 0; i < rows; i++) Feed(&reader, Insert(ValueOf(i)));
    Feed(&reader, Commit());
  }
  ASSERT_EQ(reader.ready().size(), 3u);
  EXPECT_GT(blocks.file_bytes(), size_t{2} << 20);
  for (int transaction = 0; transaction < 3; transaction++) {
    int i = 0;
    for (const RowChange& change : reader.ready()[static_cast<size_t>(transaction)].changes) {
      const WireValue& value = change.new_row[0];
      ASSERT_EQ(std::string_view(value.data, static_cast<size_t>(value.length)), ValueOf(i++));
    }
    EXPECT_EQ(i, transaction == 1 ? 20'000 : 20);
  }
  reader.PopReady(2);
  Feed(&reader, Begin(9));
  Feed(&reader, Insert("x"));
  Feed(&reader, Commit());
  EXPECT_EQ(blocks.file_bytes(), 0u);
}

}  // namespace
}  // namespace sluice
