#include "fdw/io_ring.h"

#include "common/assert.h"

namespace sluice {

void IoRing::Complete(IoOperation* operation, int result) {
  SLUICE_ASSERT(!operation->in_flight);
  operation->in_flight = true;
  Enqueue(operation, result);
}

void IoRing::Enqueue(IoOperation* operation, int result) {
  SLUICE_ASSERT(operation->in_flight);
  operation->result = result;
  operation->next = nullptr;
  if (last_ != nullptr) {
    last_->next = operation;
  } else {
    first_ = operation;
  }
  last_ = operation;
}

IoOperation* IoRing::TakeCompletion() {
  IoOperation* operation = first_;
  if (operation == nullptr) return nullptr;
  first_ = operation->next;
  if (first_ == nullptr) last_ = nullptr;
  return operation;
}

void IoRing::HandleCompletions() {
  IoOperation* operation = first_;
  first_ = last_ = nullptr;
  while (operation != nullptr) {
    // The handler may submit the operation again or free its owner: take all from it first.
    IoOperation* next = operation->next;
    int result = operation->result;
    operation->in_flight = false;
    operation->handler(operation->owner, result);
    operation = next;
  }
}

}  // namespace sluice
