// The store's own limits: what happens when the map or the readers' table is full.
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/column_buffer.h"
#include "stream/view_graph.h"
#include "stream/view_store.h"

namespace sluice {
namespace {

constexpr Oid kTable = 20000;

class StoreLimitsTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sluice-store-XXXXXX";
    directory_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<ViewStore> Open(ViewStoreOptions options) {
    Result<std::unique_ptr<ViewStore>> store = ViewStore::Open(directory_, options);
    if (!store.ok()) throw QueryError(store.error());
    return std::move(*store);
  }

  std::string directory_;
};

void AddTable(ViewGraph* graph) {
  auto epoch = graph->Begin();
  epoch->AddSource({kTable, {{"id", kInt4Oid}, {"text", kTextOid}}, {0}});
  epoch->Commit();
}

// `rows` rows of 1 kB; the SQLSTATE that it fails with, or empty.
std::string InsertRows(ViewGraph* graph, int first, int rows) {
  const std::string text(1000, 'x');
  auto epoch = graph->Begin();
  try {
    const Oid types[] = {kInt4Oid, kTextOid};
    BatchBuffer buffer(types);
    for (int i = 0; i < rows; i++) {
      buffer.Clear();
      buffer[0].column.Data<int32_t>()[0] = first + i;
      buffer[1].column.Data<std::string_view>()[0] = text;
      Batch batch;
      buffer.Show(1, &batch);
      epoch->Insert(kTable, 1, batch);
    }
    epoch->Commit();
  } catch (const QueryError& e) {
    return SqlStateText(e.error.state);
  }
  return {};
}

size_t CountRows(const ViewSnapshot& snapshot) {
  const std::string_view columns[] = {"id"};
  std::unique_ptr<RowSource> scan = snapshot.Scan(kTable, columns);
  size_t rows = 0;
  Batch batch;
  for (scan->Next(&batch); batch.rows > 0; scan->Next(&batch)) rows += batch.rows;
  return rows;
}

TEST_F(StoreLimitsTest, AFullMapIsLargerInTheNextEpochAndReadersFollow) {
  // Another process that reads before and after.
  int to_child[2], to_parent[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(to_parent), 0);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    size_t before = 0, after = 0;
    try {
      if (read(to_child[0], &byte, 1) != 1) _exit(3);
      std::unique_ptr<ViewStore> store = Open({.map_bytes = 1 << 20});
      before = CountRows(*store->Snapshot());
      if (write(to_parent[1], "r", 1) != 1 || read(to_child[0], &byte, 1) != 1) _exit(4);
      after = CountRows(*store->Snapshot());
    } catch (const QueryError& e) {
      fprintf(stderr, "the reader: %s\n", e.error.message.c_str());
      _exit(2);
    }
    _exit(before == 100 && after == 10000 ? 0 : 1);
  }
  std::unique_ptr<ViewStore> store = Open({.writer = true, .map_bytes = 1 << 20});
  ViewGraph graph(store.get());
  AddTable(&graph);
  ASSERT_EQ(InsertRows(&graph, 0, 100), "");
  char byte;
  ASSERT_EQ(write(to_child[1], "g", 1), 1);
  ASSERT_EQ(read(to_parent[0], &byte, 1), 1);
  int failures = 0;
  while (failures < 10) {
    std::string state = InsertRows(&graph, 100, 9900);
    if (state.empty()) break;
    EXPECT_EQ(state, "53100");
    failures++;
    EXPECT_EQ(CountRows(*store->Snapshot()), 100u);  // nothing happened
  }
  EXPECT_GT(failures, 0);
  EXPECT_EQ(CountRows(*store->Snapshot()), 10000u);
  ASSERT_EQ(write(to_child[1], "g", 1), 1);
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(fd);
}

TEST_F(StoreLimitsTest, AFullReadersTableIsAnErrorAndTheDeadAreClearedOut) {
  {
    std::unique_ptr<ViewStore> store = Open({.writer = true, .readers_max = 2});
    ViewGraph graph(store.get());
    AddTable(&graph);
    std::unique_ptr<ViewSnapshot> first = store->Snapshot(), second = store->Snapshot();
    try {
      store->Snapshot();
      ADD_FAILURE() << "there was room";
    } catch (const QueryError& e) {
      EXPECT_EQ(SqlStateText(e.error.state), "53400");
      EXPECT_FALSE(e.error.hint.empty());
    }
    second.reset();
    EXPECT_EQ(CountRows(*store->Snapshot()), 0u);
  }
  // Two that died while they read.
  for (int i = 0; i < 2; i++) {
    pid_t child = fork();
    if (child == 0) {
      std::unique_ptr<ViewStore> store = Open({});
      std::unique_ptr<ViewSnapshot> snapshot = store->Snapshot();
      kill(getpid(), SIGKILL);
    }
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  EXPECT_EQ(CountRows(*Open({})->Snapshot()), 0u);
}

}  // namespace
}  // namespace sluice
