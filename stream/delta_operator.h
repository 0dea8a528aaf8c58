// What maintains one node of a view's plan: rows with weights in, rows with weights out.
//
// A *delta* is a bag of rows with weights, +1 a row that came, -1 one that went. An operator keeps
// the state that it needs so that, whatever deltas it got, in whatever order and portions,
//
//     sum of what it emitted  =  Q(sum of what was pushed)        Q: the plan node's meaning
//
// holds after every Finish. What is pushed is at every moment the change from one bag to another:
// no prefix of it makes a multiplicity negative. The same holds for what is emitted, so operators
// can be stacked without thinking of order.
#pragma once

#include <map>
#include <memory>

#include "executor/column_buffer.h"
#include "executor/expression.h"
#include "stream/lmdb_table.h"

namespace sluice {

// At most kBatchRows rows. Valid until Push returns.
struct DeltaBatch {
  Batch rows;
  const int64_t* weights;
  // Each row's key, where the operator that emits has one: no two rows have the same at the same
  // time. See DeltaOperator::keyed.
  const std::string_view* keys = nullptr;
};

// The errors of expressions, by text, as a multiset: a row on which an expression fails is not
// passed on but counted, until it is retracted (and fails again).
class ErrorTally {
 public:
  void Add(const Error& error, int64_t weight);
  // Adds the step's net change to the view's durable counts; XX001 if one becomes negative.
  void Apply(const LmdbTable& table, Oid view);
  void Clear() { changes_.clear(); }

 private:
  struct Change {
    Error error;
    int64_t weight = 0;
  };
  std::map<std::string, Change> changes_;
};
std::string ErrorKeyPrefix(Oid view);
Error LoadTalliedError(std::string_view value);

// Whether the error says something about a row's values, rather than about this server.
bool IsRowError(const Error& error);

// What the operators of one view share.
struct ViewContext {
  Oid view;
  StoreTransaction* transaction;
  bool create;  // the view is being made: so are the operators' tables
  ExecutionState* state;
  ErrorTally errors;
  // Some input has not been delivered whole yet, so nobody reads the view: what is dear to compute
  // for each piece may wait.
  bool building = false;
  // An operator has not said all in this Finish, for memory's sake: Finish again.
  bool more = false;

  LmdbTable StateTable(int32_t node, std::string_view part);
};
std::string StateTablePrefix(Oid view);
// So many rows an operator that computes a view at once emits in one Finish.
inline constexpr size_t kFinishRows = 64 * 1024;

class DeltaOperator {
 public:
  explicit DeltaOperator(ViewContext& context) : context_(context) {}
  virtual ~DeltaOperator() = default;
  DeltaOperator(const DeltaOperator&) = delete;
  DeltaOperator& operator=(const DeltaOperator&) = delete;

  // Once in the view's life: emits Q(nothing), if that is something.
  virtual void Start() {}
  virtual void Push(size_t input, const DeltaBatch& batch) = 0;
  // After the last Push of a step: emits what was held back. Inputs were finished before.
  virtual void Finish() {}
  // Of what waits for Finish.
  virtual size_t memory_bytes() const { return 0; }
  // Whether what it emits has keys, and which output columns the keys say (may be empty although it
  // has: keys of columns that are not put out).
  virtual bool keyed() const { return false; }
  virtual std::vector<int> key_columns() const { return {}; }
  virtual bool keyed_by_shard() const { return false; }

  void SetParent(DeltaOperator* parent, size_t input) {
    parent_ = parent;
    parent_input_ = input;
  }

 protected:
  void Emit(const DeltaBatch& batch) {
    if (batch.rows.rows > 0) parent_->Push(parent_input_, batch);
  }

  ViewContext& context_;

 private:
  DeltaOperator* parent_ = nullptr;
  size_t parent_input_ = 0;
};

// Some rows of a delta, gathered.
class DeltaSelection {
 public:
  explicit DeltaSelection(std::span<const Oid> types) : buffer_(types) {}
  // A column's type may differ from those given only in being a constant's.
  DeltaBatch Select(const DeltaBatch& from, const uint32_t* rows, size_t count);

 private:
  BatchBuffer buffer_;
  int64_t weights_[kBatchRows];
  std::string_view keys_[kBatchRows];
};

// Expressions over a delta's rows, which count as a join's inner ones too. Rows on which one fails
// go to the tally.
class GuardedExpressions {
 public:
  GuardedExpressions(std::span<const Expr* const> exprs, std::span<const OutputColumn> input,
                     ViewContext& context);
  // The rows that are fine; their values are in columns(). Valid until the next call.
  DeltaBatch Evaluate(const DeltaBatch& batch);
  std::span<const Column> columns() const { return columns_; }

 private:
  void EvaluateAll(const Batch& batch);

  ViewContext& context_;
  std::vector<std::unique_ptr<CompiledExpression>> expressions_;
  std::vector<Column> columns_;
  Arena arena_;
  DeltaSelection good_;
};

// Rows put together one by one, emitted in full batches.
class DeltaOutput {
 public:
  explicit DeltaOutput(std::span<const Oid> types) : buffer_(types) {}
  bool full() const { return rows_ == kBatchRows; }
  size_t rows() const { return rows_; }
  BatchBuffer& buffer() { return buffer_; }
  // Row `Next` of the buffer is to be filled by the caller.
  size_t Add(int64_t weight) {
    weights_[rows_] = weight;
    return rows_++;
  }
  // Shows the rows and starts anew with the next Add after Clear.
  DeltaBatch Show() {
    DeltaBatch batch{{}, weights_};
    buffer_.Show(rows_, &batch.rows);
    return batch;
  }
  void Clear() {
    rows_ = 0;
    buffer_.Clear();
  }

 private:
  BatchBuffer buffer_;
  int64_t weights_[kBatchRows];
  size_t rows_ = 0;
};

}  // namespace sluice
