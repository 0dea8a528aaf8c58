// The transaction block as the client sees it: BEGIN … COMMIT, savepoints, the failed state.
//
//   kNone ──statement──► kImplicit ──end of the message (Sync)──► kNone
//     │                      │
//     └──────BEGIN───────────┴──► kBlock ──error──► kFailed ──ROLLBACK──► kNone
//                                   └──COMMIT, ROLLBACK──► kNone          └──ROLLBACK TO──► kBlock
#pragma once

#include <string>
#include <vector>

#include "common/error.h"

namespace sluice {

enum class TransactionState { kNone, kImplicit, kBlock, kFailed };

class Transaction {
 public:
  TransactionState state() const { return state_; }
  bool in_block() const {
    return state_ == TransactionState::kBlock || state_ == TransactionState::kFailed;
  }
  bool failed() const { return state_ == TransactionState::kFailed; }
  int64_t started_at() const { return started_at_; }
  // 'I', 'T' or 'E' of ReadyForQuery.
  char status() const { return failed() ? 'E' : in_block() ? 'T' : 'I'; }
  // 1 in a transaction without savepoints; what was made at a level goes when the level goes.
  int level() const {
    return state_ == TransactionState::kNone ? 0 : 1 + static_cast<int>(savepoints_.size());
  }

  void Start(int64_t now);  // kNone → kImplicit
  void BeginBlock();        // kImplicit → kBlock
  void Fail() { state_ = TransactionState::kFailed; }
  void End();  // → kNone
  void Savepoint(std::string name) { savepoints_.push_back(std::move(name)); }
  // The level that the savepoint opened. Throws 3B001.
  int LevelOf(std::string_view name) const;
  // RELEASE: back to below `level`. ROLLBACK TO: the savepoint itself stays, and the block goes on.
  void Release(int level) { savepoints_.resize(static_cast<size_t>(level) - 2); }
  void RollbackTo(int level);

 private:
  TransactionState state_ = TransactionState::kNone;
  int64_t started_at_ = 0;
  std::vector<std::string> savepoints_;
};

}  // namespace sluice
