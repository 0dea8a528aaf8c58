// For tests: an io worker without sockets, and plans made by hand. A stream's SQL says what its
// "shard" sends, for example "rows=1000 start=0 step=4 fail=500 pause=100 slice=64":
//   rows   how many rows of (int8: start + i × step, text: "row " and that number; NULL every
//   `null`-th) fail   after so many rows the shard reports 22012 lie    the command tag claims so
//   many rows more than were sent pause  µs before each slice slice  rows a slice at most
// A kCopyIn stream keeps what it is sent, by pin; "copied" gives these rows back. kSimple does
// nothing.
#pragma once

#include <map>
#include <string>

#include "common/bytes.h"
#include "executor/executor.h"
#include "executor/node.h"
#include "shm/test_memory.h"

namespace sluice {

struct FakeScript {
  int64_t rows = 0, start = 0, step = 1, fail = -1, lie = 0, pause = 0, slice = 1000, null = 0;

  explicit FakeScript(const Stream& stream) {
    if (stream.kind == StreamKind::kQuery && stream.sql != "copied") Parse(stream.sql);
  }
  void Parse(std::string_view sql) {
    std::map<std::string, int64_t*> fields{{"rows", &rows},   {"start", &start}, {"step", &step},
                                           {"fail", &fail},   {"lie", &lie},     {"pause", &pause},
                                           {"slice", &slice}, {"null", &null}};
    while (!sql.empty()) {
      size_t equals = sql.find('='), end = std::min(sql.find(' '), sql.size());
      *fields.at(std::string(sql.substr(0, equals))) =
          std::stoll(std::string(sql.substr(equals + 1, end - equals - 1)));
      sql.remove_prefix(std::min(end + 1, sql.size()));
    }
  }
};

inline std::string FakeText(int64_t value) {
  return "row " + std::to_string(value);
}

// One DataRow message.
inline void AppendFakeRow(std::string* out, int64_t value, bool is_null) {
  std::string body;
  auto integer = [&body](auto number) {
    char bytes[sizeof number];
    StoreBig(bytes, number);
    body.append(bytes, sizeof number);
  };
  integer(int16_t{2});
  if (is_null) {
    integer(int32_t{-1});
  } else {
    integer(int32_t{8});
    integer(value);
  }
  std::string text = FakeText(value);
  integer(static_cast<int32_t>(text.size()));
  body += text;
  char length[4];
  StoreBig(length, static_cast<int32_t>(body.size() + 4));
  out->push_back('D');
  out->append(length, 4);
  out->append(body);
}

// The process that plays the io worker: keeps to quotas, cancels on close.
class FakeIoWorker {
 public:
  [[noreturn]] void Main() {
    for (;;) {
      ResetLatch(&my_proc->latch);
      if (my_proc->terminate_requested.load() != 0) _exit(0);
      Request request;
      while (TakeRequest(&request)) {
        if (request.kind == RequestKind::kOpen) Open(request.group);
        if (request.kind == RequestKind::kClose) Close(request.group);
      }
      bool progress = false;
      int64_t next_us = INT64_MAX;
      for (auto& running : running_) progress |= Send(&running, &next_us);
      std::erase_if(running_, [](const Running& r) { return r.ended; });
      if (progress) continue;
      int64_t now = MonotonicUs();
      int timeout_ms = next_us == INT64_MAX
                           ? -1
                           : static_cast<int>(std::max<int64_t>(next_us - now, 0) / 1000 + 1);
      WaitLatch(&my_proc->latch, {}, timeout_ms, WaitEvent::kIoWorkerMain);
    }
  }

 private:
  struct Running {
    Stream* stream;
    FakeScript script;
    int64_t sent = 0;
    int64_t next_us = 0;
    bool ended = false;
  };

  void Open(StreamGroup* group) {
    if (!TryReserveGroup(group)) _exit(3);
    group->state.store(GroupState::kAdmitted, std::memory_order_release);
    SetLatch(&shared_memory->processes.slots[group->backend].latch);
    for (Stream& stream : group->streams) running_.push_back({&stream, FakeScript(stream)});
  }

  void Close(StreamGroup* group) {
    for (auto& running : running_)
      if (running.stream->group == group) End(&running, StreamState::kCancelled);
    std::erase_if(running_, [](const Running& r) { return r.ended; });
    ProcNumber backend = group->backend;
    group->state.store(GroupState::kClosed, std::memory_order_release);
    SetLatch(&shared_memory->processes.slots[backend].latch);
  }

  void End(Running* running, StreamState state) {
    running->ended = true;
    running->stream->state.store(state, std::memory_order_release);
    ChunkProducer(running->stream->output).End(running->stream->index);
  }

  // Sends one slice if the quota and the pace allow.
  bool Send(Running* running, int64_t* next_us) {
    Stream* stream = running->stream;
    const FakeScript& script = running->script;
    if (stream->kind == StreamKind::kCopyIn) return TakeCopy(running);
    if (stream->sql == "copied") return SendCopied(running);
    if (script.fail >= 0 && running->sent >= script.fail) {
      stream->error.Store(MakeError(sqlstate::kDivisionByZero, "division by zero"));
      End(running, StreamState::kFailed);
      return true;
    }
    if (running->sent == script.rows) {
      snprintf(stream->command_tag, sizeof stream->command_tag, "SELECT %ld",
               static_cast<long>(script.rows + script.lie));
      End(running, StreamState::kEnded);
      return true;
    }
    int64_t now = MonotonicUs();
    if (now < running->next_us) {
      *next_us = std::min(*next_us, running->next_us);
      return false;
    }
    if (stream->chunks_in_use.load(std::memory_order_seq_cst) >= stream->chunk_quota) {
      stream->held_back.store(1, std::memory_order_seq_cst);
      if (stream->chunks_in_use.load(std::memory_order_seq_cst) >= stream->chunk_quota)
        return false;
    }
    stream->held_back.store(0);
    SendSlice(running);
    running->next_us = MonotonicUs() + script.pause;
    return true;
  }

  bool TakeCopy(Running* running) {
    ChunkConsumer input(running->stream->input, 0);
    input.PrepareToWait();
    Slice slice;
    if (input.TryClaim(&slice) != Claim::kSlice) return false;
    input.EndWait();
    if (slice.kind == SliceKind::kEnd) {
      End(running, StreamState::kEnded);
    } else {
      copied_[running->stream->pin].append(slice.data, slice.size_bytes);
      ReleaseSlice(slice);
    }
    return true;
  }

  // Every tuple of COPY's binary format is the body of a DataRow.
  bool SendCopied(Running* running) {
    std::string bytes = copied_[running->stream->pin];
    constexpr size_t kHeaderBytes = 19;
    if (!bytes.starts_with("PGCOPY\n") || bytes.size() < kHeaderBytes + 2) _exit(4);
    std::string rows;
    uint32_t count = 0;
    size_t at = kHeaderBytes;
    while (LoadBig<int16_t>(&bytes[at]) != -1) {
      size_t end = at + 2;
      for (int fields = LoadBig<int16_t>(&bytes[at]); fields > 0; fields--)
        end += 4 + static_cast<size_t>(std::max(0, LoadBig<int32_t>(&bytes[end])));
      char length[4];
      StoreBig(length, static_cast<int32_t>(end - at + 4));
      rows += 'D';
      rows.append(length, 4).append(bytes, at, end - at);
      count++;
      at = end;
    }
    char* data = AllocateExtents(rows.size());
    std::memcpy(data, rows.data(), rows.size());
    ChunkProducer(running->stream->output)
        .Push({SliceKind::kOversized, running->stream->index, kNoChunk, data, rows.size(), count});
    End(running, StreamState::kEnded);
    return true;
  }

  void SendSlice(Running* running) {
    ChunkPool* pool = &shared_memory->chunks;
    const FakeScript& script = running->script;
    std::string bytes;
    int64_t limit = script.fail >= 0 ? std::min(script.fail, script.rows) : script.rows;
    uint32_t rows = 0;
    while (rows < script.slice && running->sent < limit &&
           bytes.size() + 128 < pool->chunk_size_bytes) {
      int64_t at = running->sent++;
      AppendFakeRow(&bytes, script.start + at * script.step,
                    script.null > 0 && at % script.null == 0);
      rows++;
    }
    ChunkId chunk = AcquireChunk(pool, running->stream);
    char* data = ChunkData(*pool, chunk);
    std::memcpy(data, bytes.data(), bytes.size());
    running->stream->rows.fetch_add(rows, std::memory_order_relaxed);
    ChunkProducer(running->stream->output)
        .Push({SliceKind::kDataRows, running->stream->index, chunk, data, bytes.size(), rows});
  }

  std::vector<Running> running_;
  std::map<uint64_t, std::string> copied_;  // by pin
};

// Shared memory, a fake io worker, parallel workers, and a query arena to build plans in.
class ExecutorTest : public SharedMemoryTest {
 protected:
  void SetUp() override {
    SharedMemoryTest::SetUp();
    io_ = Fork(kIoWorkerProc, ProcessKind::kIoWorker, []() -> int { FakeIoWorker().Main(); });
    arena_ = std::make_unique<Arena>(blocks_);
    context_.shared_arena = arena_.get();
    context_.settings = arena_->New<SessionSettings>();
    context_.chunks_per_stream = 4;
    context_.temp_directory = "/tmp";
    context_.connect = [this](Oid server) {
      auto* spec = arena_->New<ConnectionSpec>();
      spec->server_name = arena_->CopyString("s" + std::to_string(server));
      return spec;
    };
  }
  void TearDown() override {
    arena_.reset();
    for (ProcNumber number : stopped_at_end_) Slot(number).terminate_requested.store(1);
    Slot(kIoWorkerProc).terminate_requested.store(1);
    SetLatch(&Slot(kIoWorkerProc).latch);
    EXPECT_EQ(ExitCode(io_), 0);
    for (ProcNumber number : stopped_at_end_) SetLatch(&Slot(number).latch);
    for (pid_t worker : workers_) EXPECT_EQ(ExitCode(worker), 0);
    EXPECT_EQ(shared_memory->chunks.in_use.load(), 0u);
    EXPECT_EQ(shared_memory->chunks.unreserved.load(), kChunks);
    EXPECT_EQ(shared_memory->extents.used_bytes.load(), 0u);
    SharedMemoryTest::TearDown();
  }

  void StartWorkers(uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
      ProcNumber number = Worker(i);
      stopped_at_end_.push_back(number);
      workers_.push_back(
          Fork(number, ProcessKind::kParallelWorker, []() -> int { ParallelWorkerMain(); }));
      while (Slot(number).pid.load() == 0) usleep(100);
    }
  }

  // --- plans ---

  template <typename PlanType>
  PlanType* NewPlan(PlanKind kind, std::vector<const Plan*> children = {}) {
    auto* plan = arena_->New<PlanType>();
    plan->kind = kind;
    plan->id = node_count_++;
    plan->output = Columns();
    plan->children = arena_->CopyArray(children);
    return plan;
  }
  std::span<const OutputColumn> Columns() {
    return arena_->CopyArray(std::vector<OutputColumn>{{"id", kInt8Oid, -1, kInvalidOid},
                                                       {"t", kTextOid, -1, kCCollationOid}});
  }
  const Plan* Scan(std::string_view script, Oid server = 1) {
    auto* scan = NewPlan<ForeignScanPlan>(PlanKind::kForeignScan);
    scan->server = server;
    scan->server_name = "s";
    scan->sql = arena_->CopyString(script);
    std::span<bool> binary = arena_->NewArray<bool>(2);
    binary[0] = binary[1] = true;
    scan->binary = binary;
    return scan;
  }
  AppendPlan* AppendOf(std::vector<const Plan*> children) {
    return NewPlan<AppendPlan>(PlanKind::kAppend, std::move(children));
  }
  const Plan* MergeOf(std::vector<const Plan*> children) {
    auto* plan = NewPlan<MergeAppendPlan>(PlanKind::kMergeAppend, std::move(children));
    plan->keys = Keys();
    return plan;
  }
  std::span<const SortKey> Keys() {
    return arena_->CopyArray(std::vector<SortKey>{{nullptr, 0, 412, false, false, kInvalidOid}});
  }
  const Plan* GatherOf(Plan* child, int32_t workers) {
    child->partial = true;
    auto* plan = NewPlan<GatherPlan>(PlanKind::kGather, {child});
    plan->workers = workers;
    return plan;
  }
  const Plan* GatherMergeOf(Plan* child, int32_t workers) {
    child->partial = true;
    auto* plan = NewPlan<GatherMergePlan>(PlanKind::kGatherMerge, {child});
    plan->workers = workers;
    plan->keys = Keys();
    return plan;
  }
  // VALUES (start, 'row start'), …: a local child.
  const Plan* Values(int64_t start, int64_t rows) {
    auto* plan = NewPlan<ValuesScanPlan>(PlanKind::kValuesScan);
    auto expressions = arena_->NewArray<std::span<const Expr* const>>(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; i++) {
      char bytes[8];
      StoreBig(bytes, start + i);
      auto* id = arena_->New<Expr>();
      id->kind = ExprKind::kConst;
      id->type = kInt8Oid;
      id->value = arena_->CopyString({bytes, 8});
      auto* text = arena_->New<Expr>();
      text->kind = ExprKind::kConst;
      text->type = kTextOid;
      text->value = arena_->CopyString(FakeText(start + i));
      expressions[static_cast<size_t>(i)] = arena_->CopyArray(std::vector<const Expr*>{id, text});
    }
    plan->rows_of_expressions = expressions;
    return plan;
  }

  const PlannedStatement* Statement(const Plan* root) {
    auto* statement = arena_->New<PlannedStatement>();
    statement->root = root;
    statement->node_count = node_count_;
    return statement;
  }

  // --- running ---

  struct Outcome {
    std::vector<int64_t> ids;  // INT64_MIN: NULL
    std::string error;         // SQLSTATE, if it ended with one
    std::string message, context;
  };
  // Reads to the end (or up to `rows_max`); checks that each text belongs to its id.
  Outcome Read(Executor* executor, size_t rows_max = SIZE_MAX) {
    Outcome outcome;
    try {
      Batch batch;
      for (executor->Next(&batch); batch.rows > 0; executor->Next(&batch)) {
        for (size_t i = 0; i < batch.rows; i++) {
          bool null = batch.columns[0].IsNull(i);
          int64_t id = null ? INT64_MIN : batch.columns[0].At<int64_t>(i);
          if (!null && batch.columns[1].At<std::string_view>(i) != FakeText(id))
            ADD_FAILURE() << id;
          outcome.ids.push_back(id);
        }
        if (outcome.ids.size() >= rows_max) break;
      }
    } catch (const QueryError& e) {
      outcome.error = SqlStateText(e.error.state);
      outcome.message = e.error.message;
      outcome.context = e.error.context;
    }
    return outcome;
  }
  Outcome Run(const Plan* root) {
    Executor executor(*Statement(root), context_);
    return Read(&executor);
  }
  static std::vector<int64_t> Sorted(std::vector<int64_t> ids) {
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  static std::vector<int64_t> Upto(int64_t end, int64_t start = 0) {
    std::vector<int64_t> ids;
    for (int64_t i = start; i < end; i++) ids.push_back(i);
    return ids;
  }

  std::unique_ptr<Arena> arena_;
  ExecutorContext context_{};
  int32_t node_count_ = 0;
  pid_t io_ = 0;
  std::vector<pid_t> workers_;
  std::vector<ProcNumber> stopped_at_end_;
};

}  // namespace sluice
