#include "postmaster/transaction.h"

#include "common/assert.h"

namespace sluice {

void Transaction::Start(int64_t now) {
  SLUICE_ASSERT(state_ == TransactionState::kNone);
  state_ = TransactionState::kImplicit;
  started_at_ = now;
}

void Transaction::BeginBlock() {
  SLUICE_ASSERT(state_ == TransactionState::kImplicit);
  state_ = TransactionState::kBlock;
}

void Transaction::End() {
  state_ = TransactionState::kNone;
  started_at_ = 0;
  savepoints_.clear();
}

int Transaction::LevelOf(std::string_view name) const {
  for (size_t i = savepoints_.size(); i-- > 0;)
    if (savepoints_[i] == name) return static_cast<int>(i) + 2;
  Throw(MakeSqlState("3B001"), "savepoint \"{}\" does not exist", name);
}

void Transaction::RollbackTo(int level) {
  savepoints_.resize(static_cast<size_t>(level) - 1);
  state_ = TransactionState::kBlock;
}

}  // namespace sluice
