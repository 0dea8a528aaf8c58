// Completion on a shard: what no node here can compute. The children's rows, reduced as far as
// possible, are copied into temporary tables on one server, and the rest of the statement runs
// there; its rows are this node's output.
#pragma once

#include "executor/node.h"
#include "executor/side_stream.h"
#include "executor/slice_reader.h"

namespace sluice {

class Completion : public Node {
 public:
  Completion(const CompletionPlan& plan, ExecutionState& state);
  ~Completion() override;
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  void Start();
  void RunSimple();
  void CopyChild(size_t child);
  void StartQuery();

  const CompletionPlan& completion_;
  ForeignScanPlan rows_;  // how the statement's rows are to be read
  const ConnectionSpec* connection_ = nullptr;
  uint64_t pin_ = 0;  // keeps the connection, and with it the temporary tables
  std::unique_ptr<SideStream> stream_;
  SliceReader reader_;
};

}  // namespace sluice
