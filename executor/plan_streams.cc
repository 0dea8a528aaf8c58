#include "executor/plan_streams.h"

#include <set>

#include "common/assert.h"
#include "executor/expression.h"
#include "executor/remote_end.h"
#include "shm/shared_memory.h"
#include "types/codec.h"

namespace sluice {

// First a walk that says which streams and queues there are to be, then, with their number known,
// the quotas, the queues and the group.
class StreamsBuilder {
 public:
  StreamsBuilder(PlanStreams* streams, ExecutionState& state)
      : streams_(streams), state_(state), arena_(*state.context->shared_arena) {}

  std::map<Oid, uint32_t> Count(const Plan& root) {
    group_ = arena_.New<StreamGroup>();
    Walk(root, 1);
    std::map<Oid, uint32_t> streams;
    for (const ScanSpec& scan : scans_)
      if (!scan.plan->lines) streams[scan.plan->server]++;
    return streams;
  }

  void Build(const Plan& root) {
    group_ = arena_.New<StreamGroup>();
    Walk(root, 1);
    SLUICE_ASSERT(scans_.size() < kScatterSlice);
    uint32_t quota = ChooseQuota();
    MakeQueues(quota);
    MakeStreams(quota);
  }

 private:
  struct QueueSpec {
    ReadyQueue** place;
    uint32_t scans = 0, scatters = 0;
  };
  struct ScanSpec {
    const ForeignScanPlan* plan;
    ReadyQueue** queue;
  };

  // `participants`: how many processes run this node.
  void Walk(const Plan& plan, uint32_t participants) {
    switch (plan.kind) {
      case PlanKind::kForeignScan:
        state_.shared_states[plan.id] =
            AddScan(static_cast<const ForeignScanPlan&>(plan), participants);
        return;
      case PlanKind::kAppend:
        return AddAppend(static_cast<const AppendPlan&>(plan), participants);
      case PlanKind::kGather:
        return WalkGather(plan, static_cast<const GatherPlan&>(plan).workers);
      case PlanKind::kGatherMerge:
        return WalkGather(plan, static_cast<const GatherMergePlan&>(plan).workers);
      default:
        for (const Plan* child : plan.children) Walk(*child, participants);
    }
    for (int number : plan.sub_plans) {
      const SubPlan& sub_plan = state_.statement->sub_plans[static_cast<size_t>(number)];
      if (sub_plans_.insert(number).second) Walk(*sub_plan.plan, participants);
    }
  }

  void WalkGather(const Plan& plan, int32_t workers) {
    uint32_t participants = static_cast<uint32_t>(workers) + 1;
    SLUICE_ASSERT(participants <= kParticipantsMax);
    participants_max_ = std::max(participants_max_, participants);
    group_->extra_chunks += participants * kResultChunks;
    Walk(*plan.children[0], participants);
  }

  static uint32_t CopiesOf(const Plan& plan, uint32_t participants) {
    return plan.partial ? 1 : participants;
  }

  uint32_t AddStream(const ForeignScanPlan& plan, ReadyQueue** queue) {
    scans_.push_back({&plan, queue});
    return static_cast<uint32_t>(scans_.size() - 1);
  }

  ScanShared* AddScan(const ForeignScanPlan& plan, uint32_t participants) {
    auto* shared = arena_.New<ScanShared>();
    shared->group = group_;
    shared->copies = arena_.NewArray<ScanShared::Copy>(CopiesOf(plan, participants));
    for (ScanShared::Copy& copy : shared->copies) {
      copy.stream = AddStream(plan, &copy.queue);
      queues_.push_back({&copy.queue, 1, 0});
    }
    return shared;
  }

  void AddAppend(const AppendPlan& plan, uint32_t participants) {
    auto* shared = arena_.New<AppendShared>();
    state_.shared_states[plan.id] = shared;
    shared->group = group_;
    shared->children = static_cast<uint32_t>(plan.children.size());
    shared->claims = arena_.NewArray<Executor::ClaimCount>(participants * plan.children.size());
    shared->idle_us = arena_.NewArray<int64_t>(participants);
    shared->copies = arena_.NewArray<AppendShared::Copy>(plan.parallel ? 1 : participants);

    std::vector<uint16_t> scans, scatters;
    for (uint16_t i = 0; i < plan.children.size(); i++) {
      const Plan& child = *plan.children[i];
      if (child.kind == PlanKind::kForeignScan)
        scans.push_back(i);
      else if (plan.parallel && !child.partial)
        scatters.push_back(i);
    }
    if (plan.claim_whole) {
      AddWholeScans(plan, shared, scans);
    } else {
      shared->scans = arena_.CopyArray(scans);
      AddScatters(shared, scatters);
      for (AppendShared::Copy& copy : shared->copies) {
        queues_.push_back({&copy.queue, static_cast<uint32_t>(scans.size()),
                           static_cast<uint32_t>(scatters.size())});
        copy.first_stream = static_cast<uint32_t>(scans_.size());
        for (uint16_t i : scans)
          AddStream(static_cast<const ForeignScanPlan&>(*plan.children[i]), &copy.queue);
      }
    }
    // A child that one participant runs for all needs what one process needs.
    for (const Plan* child : plan.children)
      if (child->kind != PlanKind::kForeignScan)
        Walk(*child, plan.parallel && !child->partial ? 1 : participants);
  }

  void AddWholeScans(const AppendPlan& plan, AppendShared* shared,
                     std::span<const uint16_t> scans) {
    shared->whole = arena_.NewArray<ScanShared*>(plan.children.size());
    uint32_t copies = static_cast<uint32_t>(shared->copies.size());
    for (uint16_t i : scans) {
      const auto& scan = static_cast<const ForeignScanPlan&>(*plan.children[i]);
      shared->whole[i] = AddScan(scan, copies);
      state_.shared_states[scan.id] = shared->whole[i];
    }
  }

  void AddScatters(AppendShared* shared, std::span<const uint16_t> children) {
    shared->scatters = arena_.NewArray<ScatterShared>(children.size());
    for (size_t i = 0; i < children.size(); i++) {
      ScatterShared& scatter = shared->scatters[i];
      scatter.child = children[i];
      scatter.stream.index = static_cast<uint16_t>(children[i] | kScatterSlice);
      scatter.stream.chunk_quota = kScatterChunks;
      group_->extra_chunks += kScatterChunks;
    }
  }

  // As many chunks a stream as configured, fewer where there are very many streams: one query shall
  // not take more than half of the pool. Below a Gather each participant may sit on a chunk of
  // every stream while it waits for the leader, and the leader must still get more.
  uint32_t ChooseQuota() {
    if (scans_.empty()) return 0;
    uint32_t pool = shared_memory->chunks.chunk_count;
    auto streams = static_cast<uint32_t>(scans_.size());
    uint32_t least = participants_max_ > 1 ? participants_max_ + 2 : 2;
    uint32_t fair = pool / 2 / streams;
    uint32_t quota = std::max(least, std::min(state_.context->chunks_per_stream, fair));
    uint64_t wanted = uint64_t{quota} * streams + group_->extra_chunks;
    if (wanted > pool) {
      throw QueryError(
          MakeError(sqlstate::kOutOfMemory, "out of chunks")
              .Detail(fmt::format("The query reads {} streams at once and needs {} chunks; "
                                  "the pool has {}.",
                                  streams, wanted, pool))
              .Hint("Increase chunk_pool_size."));
    }
    return quota;
  }

  void MakeQueues(uint32_t quota) {
    for (const QueueSpec& spec : queues_) {
      uint32_t slices = spec.scans * SlicesMax(quota) + spec.scatters * SlicesMax(kScatterChunks);
      *spec.place = MakeReadyQueue(&arena_, slices, spec.scans + spec.scatters);
    }
  }

  // Whether it reads under a snapshot that the statement has taken already.
  bool SetTransaction(Stream* stream, Oid server, uint32_t nth) {
    const ExecutorContext& context = *state_.context;
    StreamTransaction transaction;
    if (context.snapshots != nullptr) transaction = context.snapshots(server, nth);
    bool taken = transaction.pin != 0;
    if (!taken) transaction = TransactionOn(context, server);
    stream->pin = transaction.pin;
    stream->begin_sql = transaction.begin_sql;
    return taken;
  }

  void MakeStreams(uint32_t quota) {
    group_->backend = my_proc_number;
    group_->admission_timeout_us = state_.context->admission_timeout_us;
    group_->streams = arena_.NewArray<Stream>(scans_.size());
    std::map<Oid, uint32_t> streams_on;
    std::set<Oid> postgres;  // those whose snapshots are taken by this group
    for (size_t i = 0; i < scans_.size(); i++) {
      const ForeignScanPlan& plan = *scans_[i].plan;
      Stream& stream = group_->streams[i];
      stream.kind = plan.lines  ? StreamKind::kLines
                    : plan.copy ? StreamKind::kCopyOut
                                : StreamKind::kQuery;
      stream.index = static_cast<uint16_t>(i);
      stream.group = group_;
      stream.connection = state_.context->connect(plan.server);
      stream.sql = plan.sql;
      stream.params = MakeStreamParams(plan.params, state_);
      stream.result_formats = MakeResultFormats(plan.binary, &arena_);
      stream.row_limit = plan.row_limit;
      stream.prepare = !plan.params.empty();
      stream.chunk_quota = quota;
      stream.output = *scans_[i].queue;
      stream.silence_timeout_us = state_.context->silence_timeout_us;
      uint32_t nth = streams_on[plan.server]++;
      bool taken = !plan.lines && SetTransaction(&stream, plan.server, nth);
      if (scans_.size() == 1) stream.lease = state_.context->lease;
      if (nth > 0) group_->shared_snapshot = true;
      if (!plan.lines && !taken) postgres.insert(plan.server);
      streams_->infos_.push_back({plan.id, &stream});
    }
    if (state_.context->gate_snapshots && postgres.size() > 1) {
      group_->gate = StreamGate::kSnapshot;
      group_->snapshot_first = true;
    }
    streams_->group_ = group_;
  }

  PlanStreams* streams_;
  ExecutionState& state_;
  Arena& arena_;
  StreamGroup* group_ = nullptr;
  uint32_t participants_max_ = 1;
  std::set<int> sub_plans_;  // walked: several nodes may run one
  std::vector<ScanSpec> scans_;
  std::vector<QueueSpec> queues_;
};

std::span<const StreamParam> MakeStreamParams(std::span<const Expr* const> exprs,
                                              ExecutionState& state) {
  Arena& arena = *state.context->shared_arena;
  std::span<StreamParam> params = arena.NewArray<StreamParam>(exprs.size());
  Arena scratch;
  for (size_t i = 0; i < exprs.size(); i++) {
    Column value = EvaluateConstant(*exprs[i], state, &scratch);
    StreamParam& param = params[i];
    // Types of users and extensions have other oids on the shards: let them infer it.
    param.type = value.type < kFirstUserOid ? value.type : 0;
    param.is_null = value.IsNull(0);
    param.binary = HasBinaryCodec(value.type);
    if (param.is_null) continue;
    if (param.binary) {
      std::string bytes;
      AppendBinary(value, 0, &bytes);
      param.value = arena.CopyString(bytes);
    } else {
      param.value = arena.CopyString(value.At<std::string_view>(0));
    }
  }
  return params;
}

std::span<const int16_t> MakeResultFormats(std::span<const bool> binary, Arena* arena) {
  bool all_same =
      std::adjacent_find(binary.begin(), binary.end(), std::not_equal_to<>()) == binary.end();
  std::span<int16_t> formats =
      arena->NewArray<int16_t>(all_same ? std::min<size_t>(binary.size(), 1) : binary.size());
  for (size_t i = 0; i < formats.size(); i++) formats[i] = binary[i] ? 1 : 0;
  return formats;
}

namespace {

// A reservation without a stream whose admission would make it.
void ReserveHere(uint32_t chunks) {
  while (!TryReserve(&shared_memory->chunks, chunks)) {
    CheckForInterrupts();
    constexpr int kRetryMs = 10;
    ResetLatch(&my_proc->latch);
    WaitLatch(&my_proc->latch, {}, kRetryMs, WaitEvent::kStreamAdmission);
  }
}

}  // namespace

std::map<Oid, uint32_t> PlanStreams::Count(const Plan& root, ExecutionState& state) {
  return StreamsBuilder(nullptr, state).Count(root);
}

PlanStreams::PlanStreams(const Plan& root, ExecutionState& state) {
  StreamsBuilder(this, state).Build(root);
  if (!group_->streams.empty()) {
    OpenStreams(group_);
  } else if (group_->extra_chunks > 0) {
    ReserveHere(group_->extra_chunks);
    reserved_here_ = group_->extra_chunks;
  }
}

void PlanStreams::AwaitAdmission() {
  if (group_->streams.empty() || group_->extra_chunks == 0) return;
  Stream& first = group_->streams[0];
  ChunkConsumer consumer(first.output, 0);
  for (;;) {
    ResetLatch(&my_proc->latch);
    consumer.PrepareToWait();  // a refused group only ends its streams
    if (group_->state.load(std::memory_order_acquire) != GroupState::kSubmitted) break;
    if (first.state.load(std::memory_order_acquire) == StreamState::kFailed)
      throw QueryError(ErrorOf(first));
    WaitInterruptibly(WaitEvent::kStreamAdmission);
  }
  consumer.EndWait();
}

PlanStreams::~PlanStreams() {
  if (!group_->streams.empty()) CloseStreams(group_);
  if (reserved_here_ > 0) Unreserve(&shared_memory->chunks, reserved_here_);
}

}  // namespace sluice
