// INSERT, UPDATE, DELETE. Writes everything before it gives the first of RETURNING's rows, so that
// whoever stops reading early stops nothing.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "executor/expression.h"
#include "executor/node.h"
#include "executor/row_store.h"
#include "executor/row_writer.h"

namespace sluice {

class Modify : public Node {
 public:
  Modify(const ModifyPlan& plan, ExecutionState& state);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  void Run();
  void RunRemote();
  void CountRemote(const Plan& plan);

  // modify_insert.cc
  void RunInsert();
  void JoinTargets(std::span<const uint32_t> targets, bool one_statement);
  void InsertValues(const Batch& batch, bool all);
  void InsertRound(const Batch& batch, std::span<const std::vector<uint32_t>> rows_of, size_t from);
  void CopyRows(RowStore* first, bool all);
  std::span<const uint32_t> Route(const Batch& batch);

  // modify_by_id.cc
  void RunById();
  void WriteById(const Batch& batch);
  void ChangeRows(const Batch& batch, std::span<const std::vector<uint32_t>> rows_of);
  void MoveRows(const Batch& batch, std::span<const std::vector<uint32_t>> rows_of);
  void Return(const Batch& batch, std::span<const uint32_t> rows, const Batch& written);

  const ModifyPlan& modify_;
  std::unique_ptr<Node> child_;
  RowWriter writer_;
  RowStore rows_;  // RETURNING's
  bool ran_ = false;
  uint64_t count_ = 0;

  RouteRows route_;
  std::vector<std::unique_ptr<CompiledExpression>> keys_, returning_;
  std::vector<Column> key_columns_;
  std::vector<uint32_t> targets_of_rows_;
  uint32_t next_even_ = 0;
  Arena arena_;
  // By id. A join may find a row twice; what it becomes is what was found first.
  std::unordered_map<Oid, uint32_t> targets_by_leaf_;
  std::unordered_set<std::string> moved_;
};

}  // namespace sluice
