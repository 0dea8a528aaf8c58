// Statements that write rows of a batch to ModifyTargets: several at once, one a target, each with
// a list of VALUES. And what a shard says it has done.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "executor/node.h"
#include "executor/row_store.h"
#include "executor/side_stream.h"
#include "executor/slice_reader.h"
#include "shm/query_arena.h"

namespace sluice {

// The rows that a stream's command tag tells ("INSERT 0 5", "UPDATE 5", "COPY 5").
uint64_t RowsOfTag(const Stream& stream);
uint64_t RowsOfTag(std::string_view tag, std::string_view server_name);

// Parameters of one statement: `params` of the target, then the rows' values.
struct WriteStatement {
  uint32_t target;  // index into ModifyPlan::targets
  const ModifyTarget* place;
  std::string_view head, tail;
  std::span<const int> columns;             // of the batch, in the order of the VALUES list
  std::span<const std::string_view> types;  // their SQL names
  std::span<const uint32_t> rows;           // of the batch
  bool numbered = false;  // the list's first item is the row's number in the batch (int4)
};

class RowWriter {
 public:
  RowWriter(const ModifyPlan& plan, ExecutionState& state);
  ~RowWriter();

  // A statement takes no more rows than this: Bind's parameters are counted in 16 bits.
  static size_t RowsMax(size_t columns);

  // Runs the statements at once. `returned` gets what each gives back, in order, as whole batches;
  // its columns are the row's number if that is asked for, then the plan's shard_output (or nothing
  // but that number). Returns how many rows the shards have written, a statement each.
  using Returned = std::function<void(size_t statement, const Batch& batch)>;
  std::vector<uint64_t> Run(const Batch& batch, std::span<const WriteStatement> statements,
                            bool with_number, bool with_output, const Returned& returned);

 private:
  std::string Text(const WriteStatement& statement) const;
  std::span<const StreamParam> Params(const Batch& batch, const WriteStatement& statement,
                                      Arena* arena) const;

  const ModifyPlan& plan_;
  ExecutionState& state_;
};

}  // namespace sluice
