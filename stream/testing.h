// For tests: tables and live views in a store of their own, changed as a shard's stream would, and
// compared with what the executor makes of each view's plan over the same stored inputs.
#pragma once

#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "stream/view_graph.h"

namespace sluice::testing {

using TextRow = std::vector<std::optional<std::string>>;
using TextRows = std::vector<TextRow>;
std::string Print(const TextRows& rows);

class ViewHarness {
 public:
  ViewHarness();
  ~ViewHarness();

  // Columns as "name type", types by name.
  void AddTable(const std::string& name, const std::vector<std::string>& columns,
                std::vector<int> key_columns, bool complete = true);
  void SetComplete(const std::string& table);
  // In an epoch of its own; its edges are built right away unless `backfill` is false.
  void CreateView(const std::string& name, const std::string& sql, bool backfill = true,
                  FirstRows first_rows = FirstRows::kAtOnce);
  void AddView(const std::string& name, const std::string& sql,  // in the epoch that runs
               FirstRows first_rows = FirstRows::kAtOnce);
  void DropView(const std::string& name);
  void Build(const std::string& name, size_t rows_a_step = 1000);

  // Changes wait for the next Commit. `null` and text values as SQL text; "(1,a,null)".
  void Insert(const std::string& table, const TextRows& rows, uint32_t shard = 0);
  void InsertPiece(const std::string& table, const TextRows& rows, uint32_t shard = 0);
  void Delete(const std::string& table, const TextRow& row, uint32_t shard = 0);
  void Update(const std::string& table, const TextRow& old_row, const TextRow& new_row,
              uint32_t shard = 0);
  void Truncate(const std::string& table, uint32_t shard = 0);
  void Commit();
  void Rollback();  // the epoch, as a crash would
  void Reopen();    // a new process's graph over the same files
  void Close();
  ViewGraph::Epoch& epoch();
  Oid OidOf(const std::string& relation) const;
  ViewStore& store() { return *store_; }
  ViewGraph& graph() { return *graph_; }

  // Sorted. Throw what a read of the view, or its recomputation, raises.
  TextRows Stored(const std::string& relation);
  TextRows Recomputed(const std::string& view);
  // Of every created view: stored = recomputed, error or rows.
  void Check(const std::string& what = {});
  void Expect(const std::string& view, TextRows rows);

 private:
  struct Table {
    Relation relation;
  };
  std::shared_ptr<const ViewPlan> Plan(const std::string& sql);
  void Change(ChangeKind kind, const std::string& table, const TextRow* old_row,
              const TextRow* new_row, uint32_t shard);
  std::vector<std::string> Wire(const Relation& relation, const TextRow& row,
                                std::vector<WireValue>* values);

  std::string directory_;
  Catalog catalog_;
  SessionSettings settings_;
  std::map<std::string, std::string> view_sql_;
  std::vector<std::string> views_;  // in order of creation
  std::map<std::string, std::shared_ptr<const ViewPlan>> plans_;
  std::unique_ptr<ViewStore> store_;
  std::unique_ptr<ViewGraph> graph_;
  std::unique_ptr<ViewGraph::Epoch> epoch_;
};

// Printed when a test that uses it fails.
uint64_t TestSeed();

}  // namespace sluice::testing
