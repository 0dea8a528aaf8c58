#include "executor/completion.h"

#include <algorithm>

#include "common/assert.h"
#include "executor/copy_rows.h"
#include "executor/plan_streams.h"
#include "shm/shared_memory.h"
#include "types/codec.h"
#include "wire/copy_format.h"

namespace sluice {
namespace {

bool IsOfScans(const Plan& plan) {
  if (plan.kind == PlanKind::kForeignScan) return !static_cast<const ForeignScanPlan&>(plan).lines;
  bool passes = plan.kind == PlanKind::kAppend || plan.kind == PlanKind::kGather;
  return passes &&
         std::ranges::all_of(plan.children, [](const Plan* child) { return IsOfScans(*child); });
}

// Values of a built-in type without a codec here are text, which is not their binary format, but
// those that shards were asked for in it (optimizer/completion.cc).
void CheckTypes(const Plan& child) {
  if (IsOfScans(child)) return;
  for (const OutputColumn& column : child.output)
    if (column.type < kFirstUserOid && !HasBinaryCodec(column.type))
      Refuse("completing a statement on a shard with values of type OID {} is not supported",
             column.type);
}

}  // namespace

Completion::Completion(const CompletionPlan& plan, ExecutionState& state)
    : Node(plan, state), completion_(plan), reader_(plan.output, *state.context->settings) {
  SLUICE_ASSERT(plan.children.size() == plan.inputs.size());
  rows_.kind = PlanKind::kForeignScan;
  rows_.output = plan.output;
  rows_.binary = plan.binary;
  rows_.server = plan.server;
  rows_.server_name = plan.server_name;
}

Completion::~Completion() {
  HoldInterrupts hold;
  reader_.Release();
  stream_.reset();
  // The reset that follows drops the temporary tables.
  if (pin_ != 0) SubmitRequest({RequestKind::kUnpin, nullptr, pin_, 0});
}

// The set-up and the tables, in one simple query.
void Completion::RunSimple() {
  std::string sql;
  for (std::string_view statement : completion_.setup) sql.append(statement).append("; ");
  for (const CompletionPlan::Input& input : completion_.inputs)
    sql.append(input.create_sql).append("; ");
  if (sql.empty()) return;
  Arena& arena = *state_.context->shared_arena;
  SideStream({StreamKind::kSimple, connection_, arena.CopyString(sql), {pin_, {}}}, &arena)
      .Finish(WaitEvent::kAppendReady);
}

void Completion::CopyChild(size_t child) {
  CheckTypes(*completion_.children[child]);
  std::unique_ptr<Node> node = MakeNode(*completion_.children[child], state_);
  SideStream copy(
      {StreamKind::kCopyIn, connection_, completion_.inputs[child].copy_sql, {pin_, {}}},
      state_.context->shared_arena);
  const size_t piece_bytes = shared_memory->chunks.chunk_size_bytes;
  std::string bytes(CopyBinaryHeader());
  Batch batch;
  for (node->Next(&batch); batch.rows > 0; node->Next(&batch)) {
    for (size_t row = 0; row < batch.rows; row++) {
      AppendCopyBinaryRow(batch.columns, row, &bytes);
      if (bytes.size() < piece_bytes) continue;
      copy.Put(bytes);
      bytes.clear();
    }
  }
  bytes.append(kCopyBinaryTrailer);
  copy.Put(bytes);
  copy.EndInput();
  copy.Finish(WaitEvent::kCopyInQueue);
}

void Completion::StartQuery() {
  Arena& arena = *state_.context->shared_arena;
  stream_ = std::make_unique<SideStream>(
      SideStream::Options{StreamKind::kQuery,
                          connection_,
                          completion_.sql,
                          {pin_, {}},
                          MakeStreamParams(completion_.params, state_),
                          MakeResultFormats(completion_.binary, &arena)},
      &arena);
}

void Completion::Start() {
  connection_ = state_.context->connect(completion_.server);
  pin_ = shared_memory->next_pin.fetch_add(1, std::memory_order_relaxed);
  RunSimple();
  for (size_t i = 0; i < completion_.children.size(); i++) CopyChild(i);
  StartQuery();
}

void Completion::NextBatch(Batch* batch) {
  if (pin_ == 0) Start();
  while (!reader_.Next(batch)) {
    reader_.Release();
    Slice slice;
    if (!stream_->Next(&slice, WaitEvent::kAppendReady)) {
      batch->rows = 0;
      return;
    }
    reader_.Start(slice, &rows_);
  }
}

void Completion::Rescan() {
  // The planner puts a Materialize above what is read twice.
  if (pin_ != 0) Throw(sqlstate::kInternalError, "a completion on a shard cannot be run twice");
}

}  // namespace sluice
