#include "executor/executor.h"

#include "common/assert.h"
#include "executor/cte_scan.h"
#include "executor/fragment.h"
#include "executor/node.h"
#include "executor/plan_streams.h"
#include "executor/remote_end.h"
#include "executor/row_store.h"
#include "executor/sub_plan.h"

namespace sluice {

// Destroyed from the bottom up: nodes let go of their slices and workers before the streams are
// closed.
struct Executor::Impl {
  Impl(const PlannedStatement& planned, const ExecutorContext& given)
      : statement(planned), context(given), statistics(static_cast<size_t>(planned.node_count)) {
    Arena& arena = *context.shared_arena;
    state.statement = &statement;
    state.context = &context;
    state.statistics = &statistics;
    state.gathers = &gathers;
    state.shared_states = arena.NewArray<void*>(static_cast<size_t>(planned.node_count)).data();
    state.exec_params = arena.NewArray<Column>(static_cast<size_t>(planned.exec_param_count));
    state.cte_rows = &cte_rows;
    sub_plans.resize(planned.sub_plans.size());
    state.sub_plans = &sub_plans;
    ShareSnapshots();
    RunBeforehand(planned, state);
    streams = std::make_unique<PlanStreams>(*planned.root, state);
    streams->AwaitAdmission();
    if (planned.pass_through) {
      consumer.emplace(PassThroughQueue(), 0);
    } else {
      root = MakeNode(*planned.root, state);
    }
  }

  // Parts that are read one after the other shall see the same. Where the statement writes, what it
  // reads is in its transaction.
  void ShareSnapshots() {
    if (context.share_snapshots == nullptr || statement.writes || statement.init_plans.empty())
      return;
    std::map<Oid, uint32_t> most;
    int parts = 0;
    auto add = [&](const Plan& root) {
      auto streams = PlanStreams::Count(root, state);
      if (!streams.empty()) parts++;
      for (auto [server, count] : streams) most[server] = std::max(most[server], count);
    };
    for (const InitPlan& init_plan : statement.init_plans) add(*init_plan.plan);
    add(*statement.root);
    if (parts < 2) return;
    std::vector<ServerStreams> servers;
    for (auto [server, count] : most) servers.push_back({server, count});
    context.snapshots = context.share_snapshots(servers);
  }

  ReadyQueue* PassThroughQueue() const {
    void* shared = state.shared_states[statement.root->id];
    if (statement.root->kind == PlanKind::kAppend) {
      // Nobody claims children here: all of them have to come into the one queue.
      SLUICE_ASSERT(!static_cast<const AppendPlan*>(statement.root)->claim_whole);
      return static_cast<AppendShared*>(shared)->copies[0].queue;
    }
    SLUICE_ASSERT(statement.root->kind == PlanKind::kForeignScan);
    return static_cast<ScanShared*>(shared)->copies[0].queue;
  }

  void CountPassedThrough(const Slice& slice);

  // Workers of a statement that was ended early (LIMIT) tell what they counted when they are
  // stopped.
  void StopWorkers() {
    for (Workers* workers : gathers) {
      workers->Stop();
      workers->CollectStatistics();
    }
  }

  const PlannedStatement& statement;
  ExecutorContext context;
  std::vector<NodeStatistics> statistics;
  std::vector<std::vector<std::unique_ptr<RowStore>>> cte_rows;
  std::vector<Workers*> gathers;
  ExecutionState state{};
  std::unique_ptr<PlanStreams> streams;
  std::vector<std::unique_ptr<SubPlanRunner>> sub_plans;
  std::unique_ptr<Node> root;
  std::optional<ChunkConsumer> consumer;  // pass-through
};

Executor::Executor(const PlannedStatement& statement, const ExecutorContext& context)
    : impl_(std::make_unique<Impl>(statement, context)) {}

Executor::~Executor() {
  HoldInterrupts hold;
  impl_.reset();
}

void Executor::Next(Batch* batch) {
  SLUICE_ASSERT(impl_->root != nullptr);
  impl_->root->Next(batch);
}

void Executor::Impl::CountPassedThrough(const Slice& slice) {
  const Plan& plan = *statement.root;
  NodeStatistics& of_root = statistics[static_cast<size_t>(plan.id)];
  of_root.loops = 1;
  of_root.rows += slice.rows;
  of_root.batches++;
  if (plan.kind != PlanKind::kAppend) return;
  auto* shared = static_cast<AppendShared*>(state.shared_states[plan.id]);
  size_t child = shared->scans[slice.stream - shared->copies[0].first_stream];
  shared->Claimed(state, child).slices++;
  shared->Claimed(state, child).rows += slice.rows;
  NodeStatistics& of_scan = statistics[static_cast<size_t>(plan.children[child]->id)];
  of_scan.loops = 1;
  of_scan.rows += slice.rows;
  of_scan.batches++;
}

Claim Executor::TryNextSlice(Slice* slice) {
  SLUICE_ASSERT(impl_->consumer.has_value());
  for (;;) {
    Claim claim = impl_->consumer->TryClaim(slice);
    if (claim != Claim::kSlice) return claim;
    if (slice->kind != SliceKind::kEnd) {
      impl_->CountPassedThrough(*slice);
      return claim;
    }
    CheckStreamEnd(impl_->streams->group()->streams[slice->stream]);
  }
}

bool Executor::NextSlice(Slice* slice) {
  SLUICE_ASSERT(impl_->consumer.has_value());
  while (impl_->consumer->ClaimOrWait(slice, WaitEvent::kAppendReady)) {
    if (slice->kind != SliceKind::kEnd) {
      impl_->CountPassedThrough(*slice);
      return true;
    }
    CheckStreamEnd(impl_->streams->group()->streams[slice->stream]);
  }
  return false;
}

Claim Executor::NextSliceUnless(pollfd fd, Slice* slice) {
  for (;;) {
    CheckForInterrupts();
    pollfd now = fd;
    if (poll(&now, 1, 0) > 0) return Claim::kEmpty;
    Claim claim = TryNextSlice(slice);
    if (claim != Claim::kEmpty) return claim;
    ResetLatch(&my_proc->latch);
    impl_->consumer->PrepareToWait();
    claim = TryNextSlice(slice);
    if (claim != Claim::kEmpty) {
      impl_->consumer->CancelWait();
      return claim;
    }
    WaitInterruptibly(WaitEvent::kAppendReady, fd, 0);
    impl_->consumer->EndWait();
  }
}

NodeStatistics Executor::Statistics(int32_t node_id) const {
  impl_->StopWorkers();
  NodeStatistics statistics = impl_->statistics[static_cast<size_t>(node_id)];
  // A scan below an Append has no node that could be timed; its stream knows.
  if (statistics.total_us != 0) return statistics;
  for (const StreamInfo& info : impl_->streams->infos()) {
    if (info.node_id != node_id) continue;
    int64_t submitted = info.stream->submitted_us.load(std::memory_order_relaxed);
    int64_t first = info.stream->first_row_us.load(std::memory_order_relaxed);
    int64_t ended = info.stream->ended_us.load(std::memory_order_relaxed);
    // Each participant that took rows of it had it running for this time: sums, as of all nodes.
    auto loops = static_cast<int64_t>(statistics.loops);
    if (first != 0) statistics.startup_us = (first - submitted) * loops;
    if (ended != 0)
      statistics.total_us = std::max(statistics.total_us, (ended - submitted) * loops);
  }
  return statistics;
}

uint64_t Executor::rows_modified() const {
  const Plan* plan = impl_->statement.root;
  while (plan->kind == PlanKind::kProject) plan = plan->children[0];
  return impl_->statistics[static_cast<size_t>(plan->id)].rows_modified;
}

int32_t Executor::WorkersLaunched(int32_t gather_node_id) const {
  auto* fragment = static_cast<Fragment*>(impl_->state.shared_states[gather_node_id]);
  return fragment == nullptr ? 0 : static_cast<int32_t>(fragment->launched);
}

std::vector<Executor::StreamInfo> Executor::Streams() const {
  return {impl_->streams->infos().begin(), impl_->streams->infos().end()};
}

std::vector<std::vector<Executor::ClaimCount>> Executor::Claims(int32_t append_node_id) const {
  auto* shared = static_cast<AppendShared*>(impl_->state.shared_states[append_node_id]);
  std::vector<std::vector<ClaimCount>> claims;
  if (shared == nullptr) return claims;
  for (size_t at = 0; at < shared->claims.size(); at += shared->children)
    claims.emplace_back(shared->claims.begin() + static_cast<ptrdiff_t>(at),
                        shared->claims.begin() + static_cast<ptrdiff_t>(at + shared->children));
  return claims;
}

Executor::ReadyTime Executor::Ready(int32_t append_node_id) const {
  auto* shared = static_cast<AppendShared*>(impl_->state.shared_states[append_node_id]);
  ReadyTime time;
  if (shared == nullptr) return time;
  for (const AppendShared::Copy& copy : shared->copies)
    if (copy.queue != nullptr) time.ready_us += ReadyTimeUs(*copy.queue);
  time.idle_us.assign(shared->idle_us.begin(), shared->idle_us.end());
  return time;
}

}  // namespace sluice
