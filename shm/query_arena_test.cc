#include "shm/query_arena.h"

#include <random>

#include "shm/test_memory.h"

namespace sluice {
namespace {

using QueryArenaTest = SharedMemoryTest;

TEST_F(QueryArenaTest, GivesRunsThatDoNotOverlapAndTakesThemBack) {
  std::mt19937 random(20260711);
  std::vector<std::pair<char*, size_t>> held;
  for (int round = 0; round < 2000; round++) {
    if (held.size() < 40 && random() % 3 != 0) {
      size_t size = random() % (5 * kExtentBytes) + 1;
      char* data = AllocateExtents(size);
      for (auto& [other, other_size] : held)
        ASSERT_TRUE(data + size <= other || other + other_size <= data);
      data[0] = data[size - 1] = 1;
      held.emplace_back(data, size);
    } else if (!held.empty()) {
      size_t at = random() % held.size();
      FreeExtents(held[at].first, held[at].second);
      held.erase(held.begin() + static_cast<ptrdiff_t>(at));
    }
  }
  for (auto& [data, size] : held) FreeExtents(data, size);
  EXPECT_EQ(shared_memory->extents.used_bytes.load(), 0u);
  EXPECT_NE(AllocateExtents(size_t{shared_memory->extents.extent_count} * kExtentBytes), nullptr);
}

TEST_F(QueryArenaTest, MoreThanThereIsIsAnErrorAndTakesNothing) {
  size_t all = size_t{shared_memory->extents.extent_count} * kExtentBytes;
  EXPECT_THROW(AllocateExtents(all + 1), QueryError);
  EXPECT_THROW(AllocateExtents(~size_t{0}), QueryError);
  char* one = AllocateExtents(1);
  EXPECT_THROW(AllocateExtents(all), QueryError);
  FreeExtents(one, 1);
  EXPECT_EQ(shared_memory->extents.used_bytes.load(), 0u);
}

TEST_F(QueryArenaTest, FreedRunsReadAsZeroAgain) {
  char* data = AllocateExtents(8 * kExtentBytes);
  std::memset(data, 7, 8 * kExtentBytes);
  FreeExtents(data, 8 * kExtentBytes);
  for (size_t i = 0; i < 8 * kExtentBytes; i += 4096) ASSERT_EQ(data[i], 0);
}

TEST_F(QueryArenaTest, ProcessesAllocateAtTheSameTimeAndSeeEachOthersBytes) {
  auto* list = new (AllocateExtents(1)) SharedExtentList{};
  std::vector<pid_t> children;
  for (uint32_t c = 0; c < 4; c++)
    children.push_back(Fork(Backend(1 + c), ProcessKind::kParallelWorker, [&] {
      SharedListBlocks blocks(list);
      for (int i = 0; i < 50; i++) {
        auto block = blocks.Acquire(100);
        std::memset(block.data, static_cast<int>(c + 1), block.size_bytes);
      }
      return 0;
    }));
  for (pid_t child : children) EXPECT_EQ(ExitCode(child), 0);
  int blocks_of[5] = {};
  for (auto* node = list->head.load(); node != nullptr; node = node->next) {
    auto* bytes = reinterpret_cast<char*>(node + 1);
    for (size_t i = 0; i < node->size_bytes - sizeof *node; i++) ASSERT_EQ(bytes[i], bytes[0]);
    blocks_of[static_cast<int>(bytes[0])]++;
  }
  for (int c = 1; c <= 4; c++) EXPECT_EQ(blocks_of[c], 50);
  FreeExtentList(list);
  EXPECT_EQ(shared_memory->extents.used_bytes.load(), kExtentBytes);
}

}  // namespace
}  // namespace sluice
