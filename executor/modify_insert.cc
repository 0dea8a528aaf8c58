// INSERT: few rows as statements with VALUES, many by COPY.
#include "executor/copy_rows.h"
#include "executor/modify.h"
#include "shm/shared_memory.h"
#include "wire/copy_format.h"

namespace sluice {
namespace {

// Up to here the rows of an INSERT go as statements: fewer round trips, and only where rows go.
constexpr size_t kRowsBeforeCopy = 100;

// Row `row` alone, as a batch over the same memory.
class OneRow {
 public:
  Batch Of(const Batch& batch, size_t row) {
    columns_.assign(batch.columns.begin(), batch.columns.end());
    for (Column& column : columns_) {
      if (column.constant()) continue;
      column.data = static_cast<char*>(column.data) + row * WidthOf(column.physical);
      if (column.nulls != nullptr) column.nulls += row;
    }
    return {1, columns_};
  }

 private:
  std::vector<Column> columns_;
};

bool ReadsInTransaction(const Plan& plan, const ExecutorContext& context) {
  if (plan.kind == PlanKind::kForeignScan) {
    const auto& scan = static_cast<const ForeignScanPlan&>(plan);
    return !scan.lines && TransactionOn(context, scan.server).pin != 0;
  }
  for (const Plan* child : plan.children)
    if (ReadsInTransaction(*child, context)) return true;
  return false;
}

// What a COPY's error says of its lines is nothing that the client has written.
[[noreturn]] void RethrowWithoutCopyContext(const QueryError& e) {
  Error error = e.error;
  size_t at = error.context.find("COPY ");
  if (at == 0) {
    size_t end = error.context.find('\n');
    error.context.erase(0, end == std::string::npos ? end : end + 1);
  }
  throw QueryError(error);
}

}  // namespace

std::span<const uint32_t> Modify::Route(const Batch& batch) {
  targets_of_rows_.resize(batch.rows);
  if (modify_.even) {
    uint32_t target = next_even_++ % static_cast<uint32_t>(modify_.targets.size());
    std::fill(targets_of_rows_.begin(), targets_of_rows_.end(), target);
    return targets_of_rows_;
  }
  if (!route_) route_ = state_.context->partition_rule(modify_.relation);
  arena_.Reset();
  key_columns_.resize(keys_.size());
  for (size_t i = 0; i < keys_.size(); i++)
    key_columns_[i] = keys_[i]->Evaluate(batch, nullptr, batch.rows, &arena_);
  route_({batch.rows, key_columns_}, targets_of_rows_);
  return targets_of_rows_;
}

// The servers of these targets take part in the transaction from now on.
void Modify::JoinTargets(std::span<const uint32_t> targets, bool one_statement) {
  std::vector<Oid> servers;
  for (uint32_t t : targets) {
    Oid server = modify_.targets[t].server;
    if (std::find(servers.begin(), servers.end(), server) == servers.end())
      servers.push_back(server);
    else
      one_statement = false;
  }
  bool alone = one_statement && servers.size() == 1 && state_.statement->ctes.empty();
  state_.context->join_for_write(servers, alone);
}

void Modify::RunInsert() {
  RowStore first(modify_.children[0]->output, state_.context->work_mem_bytes,
                 state_.context->temp_directory);
  Batch batch;
  size_t rows = 0;
  bool ended = false;
  // In a transaction what is read may come over the connection that is to be written on.
  bool read_all = ReadsInTransaction(*modify_.children[0], *state_.context);
  while (!ended && (read_all || rows <= kRowsBeforeCopy)) {
    CheckForInterrupts();
    child_->Next(&batch);
    ended = batch.rows == 0;
    rows += batch.rows;
    if (!ended) first.Append(batch);
  }
  if (rows > kRowsBeforeCopy && modify_.may_copy) return CopyRows(&first, ended);
  for (first.Next(&batch); batch.rows > 0; first.Next(&batch))
    InsertValues(batch, ended && batch.rows == rows);
  if (ended) return;
  for (child_->Next(&batch); batch.rows > 0; child_->Next(&batch)) InsertValues(batch, false);
}

// `all`: the statement's only rows.
void Modify::InsertValues(const Batch& batch, bool all) {
  std::span<const uint32_t> targets = Route(batch);
  std::vector<std::vector<uint32_t>> rows_of(modify_.targets.size());
  size_t most = 0;
  for (uint32_t row = 0; row < batch.rows; row++) {
    for (size_t t = 0; modify_.replicated && t < rows_of.size(); t++) rows_of[t].push_back(row);
    if (!modify_.replicated) rows_of[targets[row]].push_back(row);
  }
  for (const auto& rows : rows_of) most = std::max(most, rows.size());
  size_t step = RowWriter::RowsMax(modify_.row_columns.size());
  std::vector<uint32_t> used;
  for (uint32_t t = 0; t < rows_of.size(); t++)
    if (!rows_of[t].empty()) used.push_back(t);
  JoinTargets(used, all && most <= step);
  for (size_t from = 0; from < most; from += step) InsertRound(batch, rows_of, from);
}

// The next rows of each target, from its `from`th on, in one statement a target.
void Modify::InsertRound(const Batch& batch, std::span<const std::vector<uint32_t>> rows_of,
                         size_t from) {
  size_t step = RowWriter::RowsMax(modify_.row_columns.size());
  std::vector<WriteStatement> statements;
  for (uint32_t t = 0; t < rows_of.size(); t++) {
    if (from >= rows_of[t].size()) continue;
    const ModifyTarget& place = modify_.targets[t];
    std::span<const uint32_t> rows(rows_of[t]);
    rows = rows.subspan(from, std::min(step, rows.size() - from));
    statements.push_back({t, &place, place.insert_head, place.insert_tail, modify_.row_columns,
                          modify_.row_types, rows});
  }
  std::vector<std::unique_ptr<RowStore>> returned;
  std::vector<uint64_t> returned_rows(statements.size());
  for (size_t i = 0; i < statements.size(); i++)
    returned.push_back(std::make_unique<RowStore>(
        modify_.shard_output, state_.context->work_mem_bytes, state_.context->temp_directory));
  std::vector<uint64_t> written =
      writer_.Run(batch, statements, false, true, [&](size_t i, const Batch& rows) {
        returned_rows[i] += rows.rows;
        if (!modify_.output.empty()) returned[i]->Append(rows);
      });
  for (size_t i = 0; i < written.size(); i++)
    if (!modify_.replicated || i == 0) count_ += written[i];
  if (modify_.output.empty()) return;

  // In the order of the rows inserted, where each gave one back.
  std::vector<std::pair<uint32_t, size_t>> order;  // row, statement
  bool all = true;
  for (size_t i = 0; i < statements.size(); i++) {
    if (modify_.replicated && i > 0) break;
    all = all && returned_rows[i] == statements[i].rows.size();
    for (uint32_t row : statements[i].rows) order.push_back({row, i});
  }
  Batch rows;
  if (!all || statements.size() == 1 || modify_.replicated) {
    size_t kept = modify_.replicated ? 1 : returned.size();
    for (size_t i = 0; i < kept; i++)
      for (returned[i]->Next(&rows); rows.rows > 0; returned[i]->Next(&rows)) rows_.Append(rows);
    return;
  }
  std::sort(order.begin(), order.end());
  std::vector<Batch> heads(statements.size());
  std::vector<size_t> next(statements.size(), 0);
  OneRow one;
  for (auto [row, i] : order) {
    if (next[i] == heads[i].rows) {
      returned[i]->Next(&heads[i]);
      next[i] = 0;
    }
    rows_.Append(one.Of(heads[i], next[i]++));
  }
}

// One COPY a target that gets rows, all at once. `all`: the child has no more than `first`.
void Modify::CopyRows(RowStore* first, bool all) {
  struct Copy {
    std::unique_ptr<SideStream> stream;
    std::string bytes;
  };
  const size_t piece_bytes = shared_memory->chunks.chunk_size_bytes;
  std::vector<Copy> copies(modify_.targets.size());
  auto open = [&](uint32_t t) {
    JoinTargets(std::span(&t, 1), false);
    const ModifyTarget& place = modify_.targets[t];
    SideStream::Options options{StreamKind::kCopyIn, state_.context->connect(place.server),
                                place.copy_sql, TransactionOn(*state_.context, place.server)};
    options.admission_timeout_us = state_.context->admission_timeout_us;
    copies[t].stream = std::make_unique<SideStream>(options, state_.context->shared_arena);
    if (modify_.copy_binary) copies[t].bytes = CopyBinaryHeader();
  };
  std::vector<Column> columns(modify_.row_columns.size());
  auto add = [&](uint32_t t, size_t row) {
    if (copies[t].stream == nullptr) open(t);
    std::string& bytes = copies[t].bytes;
    if (modify_.copy_binary)
      AppendCopyBinaryRow(columns, row, &bytes);
    else
      AppendCopyTextRow(columns, row, *state_.context->settings, &bytes);
    if (bytes.size() < piece_bytes) return;
    copies[t].stream->Put(bytes);
    bytes.clear();
  };
  auto write = [&](const Batch& batch) {
    CheckForInterrupts();
    std::span<const uint32_t> targets = Route(batch);
    for (size_t i = 0; i < columns.size(); i++)
      columns[i] = batch.columns[static_cast<size_t>(modify_.row_columns[i])];
    for (size_t row = 0; row < batch.rows; row++) {
      if (!modify_.replicated) {
        add(targets[row], row);
        continue;
      }
      for (uint32_t t = 0; t < copies.size(); t++) add(t, row);
    }
  };
  try {
    Batch batch;
    for (first->Next(&batch); batch.rows > 0; first->Next(&batch)) write(batch);
    if (!all)
      for (child_->Next(&batch); batch.rows > 0; child_->Next(&batch)) write(batch);
    for (Copy& copy : copies) {
      if (copy.stream == nullptr) continue;
      if (modify_.copy_binary) copy.bytes.append(kCopyBinaryTrailer);
      copy.stream->Put(copy.bytes);
      copy.stream->EndInput();
    }
    bool counted = false;
    for (Copy& copy : copies) {
      if (copy.stream == nullptr) continue;
      copy.stream->Finish(WaitEvent::kCopyInQueue);
      if (!modify_.replicated || !counted) count_ += RowsOfTag(copy.stream->stream());
      counted = true;
    }
  } catch (const QueryError& e) {
    RethrowWithoutCopyContext(e);
  }
}

}  // namespace sluice
