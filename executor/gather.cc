#include "executor/gather.h"

#include "common/assert.h"

namespace sluice {

Gather::Gather(const GatherPlan& plan, ExecutionState& state)
    : Node(plan, state),
      gather_(plan),
      reader_(plan.output, *state.context->settings),
      stash_reader_(plan.output, *state.context->settings),
      stash_(plan.output, state.context->work_mem_bytes, state.context->temp_directory) {}

Gather::~Gather() {
  // Our own share first: it holds slices of streams that only close when all are released.
  HoldInterrupts hold;
  own_.reset();
}

void Gather::Start() {
  workers_ = std::make_unique<Workers>(gather_, gather_.workers, false, state_);
  workers_->Launch();
  if (workers_->wanted() > 0) consumer_.emplace(workers_->queue(0), 0);
  own_ = MakeNode(*gather_.children[0], workers_->leader_state());
}

// False: the slice holds no rows.
bool Gather::TakeSlice(const Slice& slice, Batch* batch) {
  if (slice.kind == SliceKind::kEnd) {
    workers_->CheckError();
    return false;
  }
  reader_.Start(slice, nullptr);
  return reader_.Next(batch);
}

// While our own share makes us wait, workers' results go aside (see result_stash.h).
bool Gather::NextOwn(Batch* batch) {
  BeforeWait hook(consumer_ ? &StashBeforeWait : nullptr, this);
  workers_->Guarded([&] { own_->Next(batch); });
  if (consumer_) consumer_->EndWait();
  if (batch->rows > 0) return true;
  own_.reset();
  return false;
}

// True: there were some.
bool Gather::StashResults() {
  consumer_->PrepareToWait();  // the next result sets our latch, whatever we wait for
  bool any = false;
  Slice slice;
  Batch batch;
  while (consumer_->TryClaim(&slice) == Claim::kSlice) {
    any = true;
    if (slice.kind == SliceKind::kEnd) continue;  // an error also stops what we wait in
    stash_reader_.Start(slice, nullptr);
    if (stash_reader_.Next(&batch)) stash_.Append(batch);
    stash_reader_.Release();
  }
  return any;
}

void Gather::NextBatch(Batch* batch) {
  if (workers_ == nullptr) Start();
  for (;;) {
    CheckForInterrupts();
    workers_->CheckError();
    if (stash_.Next(batch)) return;
    reader_.Release();
    Slice slice;
    Claim claim = consumer_ ? consumer_->TryClaim(&slice) : Claim::kDone;
    if (claim == Claim::kSlice) {
      if (TakeSlice(slice, batch)) return;
      continue;
    }
    if (own_ != nullptr) {
      if (NextOwn(batch)) return;
      continue;
    }
    if (claim == Claim::kDone) break;
    ResetLatch(&my_proc->latch);
    consumer_->PrepareToWait();
    claim = consumer_->TryClaim(&slice);
    if (claim == Claim::kEmpty) {
      workers_->CheckError();
      WaitInterruptibly(WaitEvent::kGatherReady);
      consumer_->EndWait();
      continue;
    }
    consumer_->EndWait();
    if (claim == Claim::kSlice && TakeSlice(slice, batch)) return;
  }
  workers_->CheckError();
  workers_->CollectStatistics();
  batch->rows = 0;
}

void Gather::Rescan() {
  // The planner puts a Materialize above what is read twice.
  if (workers_ != nullptr) Throw(sqlstate::kInternalError, "a Gather cannot be run twice");
}

}  // namespace sluice
