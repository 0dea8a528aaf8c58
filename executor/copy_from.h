// The rows of a COPY … FROM STDIN on their way to the shards: one COPY a target that gets any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/expression.h"
#include "executor/node.h"
#include "executor/side_stream.h"
#include "optimizer/copy_from.h"

namespace sluice {

// Which lines of the client's a shard's lines are: for the CONTEXT of its errors.
class LineMap {
 public:
  void Add(uint64_t line, uint32_t lines);
  // The client's line of the shard's line `line`; 0: not known (any more).
  uint64_t Find(uint64_t line) const;
  bool empty() const { return last_ == 0; }

 private:
  std::string bytes_;  // a row: how far its last line is behind the last row's, and its lines
  uint64_t last_ = 0;
  bool full_ = false;
};

// A line or a value as an error's CONTEXT shows it: long ones are cut.
std::string ShownInContext(std::string_view data);

class CopyFrom {
 public:
  struct Row {
    std::string_view bytes;  // as it is to be sent, without a line's end
    uint64_t line;           // of the client's: its last
    uint32_t lines;          // that it takes
    bool terminated = true;  // false: without a line's end, the last one
  };
  struct Format {
    bool binary = false;
    std::string_view line_end = "\n";
    // The values of columns that the client did not send, appended to a row.
    std::function<void(std::span<const Column> values, size_t row, std::string* out)> append;
  };

  CopyFrom(const CopyFromPlan& plan, const ExecutorContext& context, Format format);

  // `inputs`: the plan's. Throws what a row or a shard is at fault for, the CONTEXT telling where.
  void Add(const Batch& inputs, std::span<const Row> rows);
  // The end of all rows: returns how many the shards have taken.
  uint64_t Finish();

 private:
  struct Target {
    std::unique_ptr<SideStream> stream;
    std::string bytes;
    LineMap lines;
  };
  void Open(size_t target);
  [[noreturn]] void ThrowForRow(const Batch& batch, std::span<const Row> rows, Error error);
  void Route(const Batch& batch);
  void Send(size_t target, const Row& row, std::string_view appended);
  // Of the shard's: its line and its table's name become the client's.
  [[noreturn]] void Rethrow(const Error& error, const Target& target) const;
  template <typename Fn>
  void OnTarget(Target& target, Fn&& fn);

  const CopyFromPlan& plan_;
  const ExecutorContext& context_;
  Format format_;
  PlannedStatement no_statement_;
  std::vector<NodeStatistics> no_statistics_;
  ExecutionState state_{};
  std::vector<std::unique_ptr<CompiledExpression>> defaults_, keys_;
  std::unique_ptr<CompiledExpression> where_;
  RouteRows route_;
  std::vector<Target> targets_;
  std::vector<Column> row_columns_, key_columns_;
  std::vector<uint32_t> targets_of_rows_, selected_;
  uint32_t next_even_ = 0;
  size_t piece_bytes_;
  Arena arena_;
};

}  // namespace sluice
