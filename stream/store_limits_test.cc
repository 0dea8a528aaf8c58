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

size_t CountRows(const ViewSnapshot& snapshot) {
  const std::string_view columns[] = {"id"};
  std::unique_ptr<RowSource> scan = snapshot.Scan(kTable, columns);
  size_t rows = 0;
  Batch batch;
  for (scan->Next(&batch); batch.rows > 0; scan->Next(&batch)) rows += batch.rows;
  return rows;
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
