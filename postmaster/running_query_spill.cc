// What becomes of rows that nobody reads: a client that is slow, a portal that is suspended. They
// hold their query's chunks and connections until other statements wait for such; then the rest of
// the result goes to a temporary file as fast as it comes, and all that the query held is given
// back. Rows are taken from the file first, then from where they come.
#include <poll.h>

#include "postmaster/running_query.h"
#include "postmaster/statement_snapshots.h"
#include "postmaster/view_reader.h"
#include "shm/process_table.h"

namespace sluice {
namespace {

constexpr int64_t kMemoryBytesMax = 256 * 1024;  // rows beyond it are in the file

bool IsReady(pollfd fd) {
  return poll(&fd, 1, 0) > 0;
}

}  // namespace

bool RunningQuery::spillable() const {
  // EXPLAIN ANALYZE looks at the executor afterwards, as do statements that write.
  return executor_ != nullptr && !done_ && !plan_->writes && !context_.instrument;
}

void RunningQuery::SpillSuspended(pollfd client) {
  if (!spillable()) return;
  try {
    Spill(client);
  } catch (const QueryError& e) {
    failed_ = e.error;
    LetGo();
  }
}

void RunningQuery::Spill(pollfd client) {
  if (plan_->pass_through)
    SpillSlices(client);
  else
    SpillBatches(client);
}

void RunningQuery::SpillSlices(pollfd client) {
  if (slice_file_ == nullptr) slice_file_ = std::make_unique<SliceFile>(context_.temp_directory);
  if (slice_ && !slice_is_filed_) {  // claimed and not all of it given: it comes first
    Slice rest = *slice_;
    rest.data += slice_next_bytes_;
    rest.size_bytes -= slice_next_bytes_;
    slice_file_->Append(rest);
    ReleaseSlice(*slice_);
    slice_.reset();
  }
  for (;;) {
    Slice slice;
    Claim claim = executor_->NextSliceUnless(client, &slice);
    if (claim == Claim::kEmpty) return;
    if (claim == Claim::kDone) return LetGo();
    try {
      slice_file_->Append(slice);
    } catch (...) {
      ReleaseSlice(slice);
      throw;
    }
    ReleaseSlice(slice);
  }
}

void RunningQuery::SpillBatches(pollfd client) {
  auto file =
      std::make_unique<RowStore>(plan_->root->output, kMemoryBytesMax, context_.temp_directory);
  bool given_in_part = batch_next_ < batch_.rows && !batch_is_filed_;
  if (given_in_part) {
    file->Append(batch_);
    skip_rows_ = batch_next_;
    batch_next_ = batch_.rows;
  }
  auto keep = [&] {
    if (!file->empty()) row_files_.push_back(std::move(file));
  };
  Batch batch;
  try {
    while (!IsReady(client)) {
      CheckForInterrupts();
      executor_->Next(&batch);
      if (batch.rows == 0) {
        keep();
        return LetGo();
      }
      file->Append(batch);
    }
  } catch (...) {
    keep();
    throw;
  }
  keep();
}

void RunningQuery::LetGo() {
  let_go_ = true;
  if (snapshots_ != nullptr) snapshots_->Cancel();
  executor_.reset();
  snapshots_.reset();
  view_snapshot_.reset();
}

// What can be had without waiting; kEmpty: nothing now.
Claim RunningQuery::TryTakeSlice(Slice* slice) {
  slice_is_filed_ = slice_file_ != nullptr && slice_file_->Take(slice);
  if (slice_is_filed_) return Claim::kSlice;
  if (!let_go_) return executor_->TryNextSlice(slice);
  if (failed_) throw QueryError(*failed_);
  return Claim::kDone;
}

// batch_, and the first row of it that was not given.
void RunningQuery::NextBatch() {
  batch_next_ = 0;
  batch_is_filed_ = true;
  for (; !row_files_.empty(); row_files_.pop_front()) {
    row_files_.front()->Next(&batch_);
    if (batch_.rows == 0) continue;
    batch_next_ = std::exchange(skip_rows_, 0);
    return;
  }
  batch_is_filed_ = false;
  if (let_go_) {
    batch_.rows = 0;
    if (failed_) throw QueryError(*failed_);
    return;
  }
  executor_->Next(&batch_);
}

// The client has not read for a while, and others wait.
void RunningQuery::SpillBehind(ClientSocket* client) {
  if (spillable()) Spill(client->OutputPoll());
  // It takes something again, or nothing is held for it any more.
  client->LetFallBehind(spillable() ? spill_delay_ms_ : -1);
}

}  // namespace sluice
