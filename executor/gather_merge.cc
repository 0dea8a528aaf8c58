#include "executor/gather_merge.h"

namespace sluice {

struct GatherMerge::Source {
  Source(ReadyQueue* queue, const Plan& plan, ExecutionState& state)
      : consumer(queue, 0),
        reader(plan.output, *state.context->settings),
        stash(plan.output, state.context->work_mem_bytes, state.context->temp_directory) {}

  ChunkConsumer consumer;
  SliceReader reader;
  ResultStash stash;
};

GatherMerge::GatherMerge(const GatherMergePlan& plan, ExecutionState& state)
    : Node(plan, state), gather_(plan), stash_reader_(plan.output, *state.context->settings) {}

GatherMerge::~GatherMerge() {
  HoldInterrupts hold;
  merger_.reset();
  sources_.clear();
  own_.reset();
}

void GatherMerge::Start() {
  workers_ = std::make_unique<Workers>(gather_, gather_.workers, true, state_);
  workers_->Launch();
  for (uint32_t i = 0; i < workers_->launched(); i++)
    sources_.push_back(std::make_unique<Source>(workers_->queue(i), gather_, state_));
  own_ = MakeNode(*gather_.children[0], workers_->leader_state());
  // Input 0 is our own share: the merge asks for it first, so we work while the workers do.
  merger_ = std::make_unique<Merger>(gather_.output, gather_.keys, sources_.size() + 1,
                                     [this](size_t input, Batch* batch) { Refill(input, batch); });
}

// Whatever we wait for, the rows of all workers are taken meanwhile (see result_stash.h): the merge
// may need a row whose worker waits for one that waits for us.
bool GatherMerge::StashResults() {
  bool any = false;
  for (auto& source : sources_) {
    source->consumer.PrepareToWait();
    Slice slice;
    Batch batch;
    while (source->consumer.TryClaim(&slice) == Claim::kSlice) {
      any = true;
      if (slice.kind == SliceKind::kEnd) continue;
      stash_reader_.Start(slice, nullptr);
      if (stash_reader_.Next(&batch)) source->stash.Append(batch);
      stash_reader_.Release();
    }
  }
  return any;
}

void GatherMerge::Refill(size_t input, Batch* batch) {
  BeforeWait hook(&StashBeforeWait, this);
  workers_->Guarded([&] {
    if (input == 0) {
      own_->Next(batch);
    } else {
      RefillFromWorker(sources_[input - 1].get(), batch);
    }
  });
  for (auto& source : sources_) source->consumer.EndWait();
}

void GatherMerge::RefillFromWorker(Source* source, Batch* batch) {
  for (;;) {
    CheckForInterrupts();
    source->reader.Release();
    ResetLatch(&my_proc->latch);
    if (source->stash.Next(batch)) return;
    Slice slice;
    Claim claim = source->consumer.TryClaim(&slice);
    if (claim == Claim::kSlice && slice.kind != SliceKind::kEnd) {
      source->reader.Start(slice, nullptr);
      if (source->reader.Next(batch)) return;
    }
    if (claim == Claim::kDone) {
      workers_->CheckError();
      batch->rows = 0;
      return;
    }
    // The hook takes what comes; it is looked at when we are awake again.
    if (claim == Claim::kEmpty) WaitInterruptibly(WaitEvent::kMergeReady);
  }
}

void GatherMerge::NextBatch(Batch* batch) {
  if (workers_ == nullptr) Start();
  merger_->Next(batch);
  if (batch->rows > 0) return;
  workers_->CheckError();
  workers_->CollectStatistics();
}

void GatherMerge::Rescan() {
  // The planner puts a Materialize above what is read twice.
  if (workers_ != nullptr) Throw(sqlstate::kInternalError, "a Gather Merge cannot be run twice");
}

}  // namespace sluice
