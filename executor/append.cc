#include "executor/append.h"

#include "common/assert.h"
#include "executor/remote_end.h"

namespace sluice {

struct Append::Produced {
  Produced(ScatterShared* scatter, ReadyQueue* queue, std::unique_ptr<Node> made)
      : shared(scatter), node(std::move(made)), publisher(queue, &scatter->stream) {}

  ScatterShared* shared;
  std::unique_ptr<Node> node;
  BatchPublisher publisher;
  Batch batch;           // being published
  size_t published = 0;  // rows of it
  bool ended = false;
};

namespace {

AppendShared* SharedOf(const Plan& plan, const ExecutionState& state) {
  auto* shared = static_cast<AppendShared*>(state.shared_states[plan.id]);
  SLUICE_ASSERT(shared != nullptr);
  return shared;
}

}  // namespace

Append::Append(const AppendPlan& plan, ExecutionState& state)
    : Node(plan, state),
      append_(plan),
      shared_(SharedOf(plan, state)),
      reader_(plan.output, *state.context->settings) {
  if (!plan.claim_whole) {
    queue_ = shared_->Mine(state).queue;
    consumer_.emplace(queue_, state.participant);
  }
  for (uint16_t i = 0; i < plan.children.size(); i++) {
    const Plan& child = *plan.children[i];
    bool claimed_whole = plan.claim_whole && !(plan.parallel && child.partial);
    if (child.kind != PlanKind::kForeignScan && !claimed_whole && (!plan.parallel || child.partial))
      in_place_.push_back(i);
  }
}

Append::~Append() = default;

void Append::Count(size_t child, size_t rows) {
  Executor::ClaimCount& claimed = shared_->Claimed(state_, child);
  claimed.slices++;
  claimed.rows += rows;
  const Plan& plan = *append_.children[child];
  if (plan.kind != PlanKind::kForeignScan) return;  // others count for themselves
  NodeStatistics& statistics = (*state_.statistics)[static_cast<size_t>(plan.id)];
  statistics.loops = 1;
  statistics.rows += rows;
  statistics.batches++;
}

void Append::NextBatch(Batch* batch) {
  started_ = true;
  if (append_.claim_whole) return NextWhole(batch);
  for (;;) {
    CheckForInterrupts();
    Step step = TryNext(batch);
    if (step == Step::kNothing) {
      // Look again after announcing the sleep, so that nothing that comes in between is lost.
      ResetLatch(&my_proc->latch);
      consumer_->PrepareToWait();
      step = TryNext(batch);
      if (step == Step::kNothing) {
        Sleep();
        continue;
      }
      consumer_->CancelWait();
    }
    if (step == Step::kBatch) return;
    if (step == Step::kDone) {
      batch->rows = 0;
      return;
    }
  }
}

// Until something is ready. What was ready meanwhile, and how soon we were awake for it, is
// counted.
void Append::Sleep() {
  int64_t ready_us = ReadyTimeUs(*queue_);
  WaitInterruptibly(WaitEvent::kAppendReady);
  shared_->idle_us[shared_->RowOf(state_)] += ReadyTimeUs(*queue_) - ready_us;
  consumer_->EndWait();
}

Append::Step Append::TryNext(Batch* batch) {
  if (reader_.Next(batch)) return Step::kBatch;
  reader_.Release();
  Slice slice;
  Claim claim = consumer_->TryClaim(&slice);
  if (claim == Claim::kSlice) return StartSlice(slice);
  Step scattered = RunScatters(batch);
  if (scattered == Step::kBatch || scattered == Step::kAgain) return scattered;
  if (RunInPlace(batch) == Step::kBatch) return Step::kBatch;
  return claim == Claim::kDone && scattered == Step::kDone ? Step::kDone : Step::kNothing;
}

Append::Step Append::StartSlice(const Slice& slice) {
  bool scattered = (slice.stream & kScatterSlice) != 0;
  if (slice.kind == SliceKind::kEnd) {
    if (!scattered) CheckStreamEnd(shared_->group->streams[slice.stream]);
    return Step::kAgain;
  }
  size_t child = scattered ? slice.stream & ~kScatterSlice
                           : shared_->scans[slice.stream - shared_->Mine(state_).first_stream];
  const Plan& plan = *append_.children[child];
  reader_.Start(slice, scattered ? nullptr : static_cast<const ForeignScanPlan*>(&plan));
  Count(child, slice.rows);
  return Step::kAgain;
}

bool Append::OthersTakePart() const {
  for (uint32_t i = 0; i < state_.participants_max; i++)
    if (i != state_.participant &&
        queue_->participants[i].load(std::memory_order_relaxed) != kNoProc)
      return true;
  return false;
}

bool Append::ClaimScatter() {
  for (ScatterShared& scatter : shared_->scatters) {
    if (!scatter.producer.TryTake(state_.participant)) continue;
    produced_.push_back(std::make_unique<Produced>(
        &scatter, queue_, MakeNode(*append_.children[scatter.child], state_)));
    return true;
  }
  return false;
}

// Goes on with a child of ours, or claims another. kNothing: all that are ours wait for their
// quota.
Append::Step Append::RunScatters(Batch* batch) {
  if (shared_->scatters.empty()) return Step::kDone;
  bool waits = false;
  for (auto& produced : produced_) {
    if (produced->ended) continue;
    Step step = RunScatter(produced.get(), batch);
    if (step != Step::kNothing) return step;
    waits = true;
  }
  if (!waits && ClaimScatter()) return Step::kAgain;
  return waits ? Step::kNothing : Step::kDone;
}

// Publishes one chunk for the others; where there are none, or the queue holds something for them
// already, the rows are used here.
Append::Step Append::RunScatter(Produced* produced, Batch* batch) {
  if (produced->published < produced->batch.rows) {
    if (!produced->publisher.Ready()) return Step::kNothing;
    produced->published += produced->publisher.Publish(produced->batch, produced->published);
    return Step::kAgain;
  }
  bool for_others = OthersTakePart() && queue_->waiting.load(std::memory_order_relaxed) != 0;
  if (for_others && !produced->publisher.Ready()) return Step::kNothing;
  produced->published = 0;
  produced->node->Next(&produced->batch);
  if (produced->batch.rows == 0) {
    produced->ended = true;
    produced->node.reset();
    produced->publisher.End();
    return Step::kAgain;
  }
  if (for_others) return Step::kAgain;
  *batch = produced->batch;
  produced->published = produced->batch.rows;
  Count(produced->shared->child, batch->rows);
  return Step::kBatch;
}

Append::Step Append::RunInPlace(Batch* batch) {
  while (!in_place_.empty()) {
    uint16_t child = in_place_.front();
    if (running_ == nullptr && child < kept_.size()) running_ = std::move(kept_[child]);
    if (running_ == nullptr) running_ = MakeNode(*append_.children[child], state_);
    running_->Next(batch);
    if (batch->rows > 0) {
      Count(child, batch->rows);
      return Step::kBatch;
    }
    Keep(child);
    in_place_.erase(in_place_.begin());
  }
  return Step::kDone;
}

bool Append::ClaimWhole() {
  while (true) {
    uint32_t child = append_.parallel ? shared_->next_child.Take() : next_child_++;
    if (child >= append_.children.size()) return false;
    const Plan& plan = *append_.children[child];
    if (append_.parallel && plan.partial && plan.kind != PlanKind::kForeignScan) continue;
    whole_child_ = static_cast<int32_t>(child);
    if (shared_->whole[child] != nullptr) {
      consumer_.emplace(shared_->whole[child]->Mine(state_).queue, state_.participant);
    } else {
      running_ = MakeNode(plan, state_);
    }
    return true;
  }
}

// SET parallel_append_claim = 'plan': a participant stays with a child to its end.
void Append::NextWhole(Batch* batch) {
  for (;;) {
    if (reader_.Next(batch)) return;
    reader_.Release();
    if (whole_child_ < 0 && !ClaimWhole()) break;
    auto child = static_cast<size_t>(whole_child_);
    const ScanShared* scan = shared_->whole[child];
    if (scan == nullptr) {
      running_->Next(batch);
      if (batch->rows > 0) return Count(child, batch->rows);
      running_.reset();
      whole_child_ = -1;
      continue;
    }
    Slice slice;
    if (!consumer_->ClaimOrWait(&slice, WaitEvent::kAppendReady)) {
      whole_child_ = -1;
    } else if (slice.kind == SliceKind::kEnd) {
      CheckStreamEnd(scan->group->streams[slice.stream]);
    } else {
      reader_.Start(slice, static_cast<const ForeignScanPlan*>(append_.children[child]));
      Count(child, slice.rows);
    }
  }
  batch->rows = 0;
  RunInPlace(batch);
}

// A child that has ended. Below a node that rescans it will be wanted again.
void Append::Keep(size_t child) {
  if (append_.depends_on.empty()) {
    running_.reset();
    return;
  }
  kept_.resize(append_.children.size());
  kept_[child] = std::move(running_);
}

// Where streams feed it directly it can be read once: the planner puts a Materialize above.
void Append::Rescan() {
  if (!started_) return;
  if (append_.depends_on.empty() || append_.claim_whole || !shared_->scans.empty())
    Throw(sqlstate::kInternalError, "an Append over remote streams cannot be read twice");
  if (running_ != nullptr) Keep(in_place_.front());
  in_place_.clear();
  for (size_t i = 0; i < append_.children.size(); i++) {
    in_place_.push_back(static_cast<uint16_t>(i));
    if (i < kept_.size() && kept_[i] != nullptr) kept_[i]->Rescan();
  }
}

}  // namespace sluice
