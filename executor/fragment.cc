#include "executor/fragment.h"

#include "executor/batch_chunk.h"
#include "executor/column_buffer.h"
#include "executor/plan_streams.h"
#include "shm/shared_memory.h"

namespace sluice {

Workers::Workers(const Plan& gather, int32_t workers, bool ordered, ExecutionState& state)
    : state_(state), leader_state_(state), wanted_(static_cast<uint32_t>(workers)) {
  Arena& arena = *state.context->shared_arena;
  query_ = arena.New<ParallelQuery>();
  query_->leader = my_proc_number;
  query_->query_id = my_proc->query_id;
  leader_state_.parallel = query_;
  leader_state_.participant = 0;
  leader_state_.participants_max = wanted_ + 1;
  MakeFragment(gather, ordered);
  state.shared_states[gather.id] = fragment_;
  PrepareShared(*gather.children[0], leader_state_);
}

void Workers::MakeFragment(const Plan& gather, bool ordered) {
  const ExecutorContext& context = *state_.context;
  Arena& arena = *context.shared_arena;
  size_t participants = wanted_ + 1;
  fragment_ = arena.New<Fragment>();
  fragment_->statement = state_.statement;
  fragment_->plan = gather.children[0];
  fragment_->settings = arena.New<SessionSettings>(*context.settings);
  fragment_->work_mem_bytes = context.work_mem_bytes;
  fragment_->chunks_per_stream = context.chunks_per_stream;
  fragment_->instrument = context.instrument;
  fragment_->temp_directory = arena.CopyString(context.temp_directory);
  fragment_->query_text = arena.CopyString(context.query_text);
  std::span<Column> params = arena.NewArray<Column>(context.params.size());
  for (size_t i = 0; i < params.size(); i++) params[i] = CopyValue(context.params[i], 0, &arena);
  fragment_->params = params;
  fragment_->exec_params = state_.exec_params;
  fragment_->shared_states = state_.shared_states;
  fragment_->participants_max = wanted_ + 1;
  fragment_->statistics = arena.NewArray<std::span<NodeStatistics>>(participants);
  for (auto& statistics : fragment_->statistics)
    statistics = arena.NewArray<NodeStatistics>(state_.statistics->size());

  fragment_->results = arena.NewArray<Stream>(participants);
  fragment_->queues = arena.NewArray<ReadyQueue*>(participants);
  uint32_t slices = SlicesMax(kResultChunks);
  ReadyQueue* shared = ordered ? nullptr : MakeReadyQueue(&arena, slices * wanted_, wanted_);
  for (size_t i = 1; i < participants; i++) {
    fragment_->results[i].index = static_cast<uint16_t>(i);
    fragment_->results[i].chunk_quota = kResultChunks;
    fragment_->queues[i] = ordered ? MakeReadyQueue(&arena, slices, 1) : shared;
  }
  query_->fragment = fragment_->plan;
  query_->query_context = fragment_;
  query_->node_states = fragment_->shared_states;
  query_->results = shared;
  size_t length = context.query_text.copy(query_->query_text, sizeof query_->query_text - 1);
  query_->query_text[length] = 0;
}

void Workers::Launch() {
  if (state_.gathers != nullptr) state_.gathers->push_back(this);
  launched_ = fragment_->launched = LaunchWorkers(query_, wanted_);
  // Those that did not come give no rows.
  for (uint32_t i = launched_ + 1; i <= wanted_; i++)
    ChunkProducer(fragment_->queues[i]).End(static_cast<uint16_t>(i));
}

void Workers::CheckError() const {
  if (query_->error_state.load(std::memory_order_acquire) != 2) return;  // W4
  throw QueryError(query_->error.Load());
}

void Workers::CollectStatistics() {
  if (collected_) return;
  collected_ = true;
  for (size_t p = 1; p < fragment_->statistics.size(); p++)
    for (size_t i = 0; i < state_.statistics->size(); i++) {
      const NodeStatistics& from = fragment_->statistics[p][i];
      NodeStatistics& to = (*state_.statistics)[i];
      to.loops += from.loops;
      to.rows += from.rows;
      to.batches += from.batches;
      to.startup_us += from.startup_us;
      to.total_us += from.total_us;
      to.memory_bytes_max = std::max(to.memory_bytes_max, from.memory_bytes_max);
      to.spilled_bytes += from.spilled_bytes;
    }
}

// A worker may have let go and taken other work since the look: a latch set for nothing does no
// harm.
void Workers::WakeWorkers() const {
  ProcessTable& table = shared_memory->processes;
  for (uint32_t i = 0; i < table.parallel_workers; i++) {
    ProcSlot& slot = table.slots[table.first_parallel_worker + i];
    if (slot.assignment.load(std::memory_order_relaxed) == query_) SetLatch(&slot.latch);
  }
}

void Workers::Stop() {
  HoldInterrupts hold;
  query_->stop.store(1, std::memory_order_seq_cst);
  WakeWorkers();
  for (;;) {
    ResetLatch(&my_proc->latch);
    if (query_->running.load(std::memory_order_acquire) == 0) break;  // W2
    WaitLatch(&my_proc->latch, {}, -1, WaitEvent::kParallelFinish);
  }
}

Workers::~Workers() {
  Stop();
  if (state_.gathers != nullptr) std::erase(*state_.gathers, this);
  for (size_t i = 1; i < fragment_->queues.size(); i++) DrainQueue(fragment_->queues[i]);
  FreeExtentList(&query_->extents);
}

// --- the worker's side ---

namespace {

class Worker {
 public:
  Worker(ParallelQuery* query, uint32_t participant)
      : fragment_(*static_cast<const Fragment*>(query->query_context)),
        participant_(participant),
        statistics_(static_cast<size_t>(fragment_.statement->node_count)),
        publisher_(fragment_.queues[participant], &fragment_.results[participant]) {
    context_.shared_arena = nullptr;
    context_.settings = fragment_.settings;
    context_.work_mem_bytes = fragment_.work_mem_bytes;
    context_.chunks_per_stream = fragment_.chunks_per_stream;
    context_.temp_directory = fragment_.temp_directory;
    context_.query_text = fragment_.query_text;
    context_.instrument = fragment_.instrument;
    context_.params = fragment_.params;
    state_.statement = fragment_.statement;
    state_.context = &context_;
    state_.parallel = query;
    state_.participant = participant;
    state_.participants_max = fragment_.participants_max;
    state_.shared_states = fragment_.shared_states;
    state_.exec_params = fragment_.exec_params;
    state_.statistics = &statistics_;
  }

  void Run() {
    std::unique_ptr<Node> node = MakeNode(*fragment_.plan, state_);
    Batch batch;
    for (node->Next(&batch); batch.rows > 0; node->Next(&batch)) Publish(batch);
  }

  // In any case, after all else: the leader counts on the kEnd.
  void End() {
    std::copy(statistics_.begin(), statistics_.end(), fragment_.statistics[participant_].begin());
    publisher_.End();
  }

 private:
  void Publish(const Batch& batch) {
    for (size_t row = 0; row < batch.rows;) {
      CheckForInterrupts();
      if (publisher_.Ready()) {
        row += publisher_.Publish(batch, row);
        continue;
      }
      ResetLatch(&my_proc->latch);
      if (!publisher_.Ready()) WaitInterruptibly(WaitEvent::kGatherQueueFull);
    }
  }

  const Fragment& fragment_;
  uint32_t participant_;
  std::vector<NodeStatistics> statistics_;
  BatchPublisher publisher_;
  ExecutorContext context_{};
  ExecutionState state_{};
};

}  // namespace

void RunFragment(ParallelQuery* query) {
  uint32_t participant = query->participants.fetch_add(1, std::memory_order_relaxed);  // W1
  interrupt_stop_flag = &query->stop;
  {
    Worker worker(query, participant);
    auto report = [query](const Error& error) {
      if (query->stop.load(std::memory_order_seq_cst) == 0) ReportError(query, error);
    };
    try {
      worker.Run();
    } catch (const QueryError& e) {
      report(e.error);
    } catch (const std::bad_alloc&) {
      report(MakeError(sqlstate::kOutOfMemory, "out of memory"));
    } catch (const std::exception& e) {
      report(MakeError(sqlstate::kInternalError, "{}", e.what()));
    }
    interrupt_stop_flag = nullptr;
    HoldInterrupts hold;
    worker.End();
  }
  FinishAssignment(query);
}

}  // namespace sluice
