#include "postmaster/remote_task.h"

#include "common/assert.h"

namespace sluice {

RemoteTask::RemoteTask(const Connect& connect, std::vector<RemoteStatement> statements,
                       uint64_t pin, int64_t silence_timeout_us)
    : statements_(std::move(statements)) {
  SLUICE_ASSERT(!statements_.empty());
  group_ = arena_.New<StreamGroup>();
  group_->backend = my_proc_number;
  group_->streams = arena_.NewArray<Stream>(statements_.size());
  const ConnectionSpec* connection = connect(&arena_);
  uint32_t slices = 0;
  for (size_t i = 0; i < statements_.size(); i++) {
    const RemoteStatement& statement = statements_[i];
    Stream& stream = group_->streams[i];
    stream.kind = statement.kind;
    stream.index = static_cast<uint16_t>(i);
    stream.group = group_;
    stream.connection = connection;
    stream.sql = arena_.CopyString(statement.sql);
    std::span<StreamParam> params = arena_.NewArray<StreamParam>(statement.params.size());
    for (size_t p = 0; p < params.size(); p++) {
      params[p] = statement.params[p];
      params[p].value = arena_.CopyString(params[p].value);
    }
    stream.params = params;
    stream.result_formats = arena_.CopyArray(statement.result_formats);
    stream.chunk_quota = statement.chunk_quota;
    stream.pin = pin;
    stream.silence_timeout_us = silence_timeout_us;
    slices += SlicesMax(statement.chunk_quota);
  }
  ReadyQueue* queue = MakeReadyQueue(&arena_, slices, static_cast<uint32_t>(statements_.size()));
  for (Stream& stream : group_->streams) stream.output = queue;
  OpenStreams(group_);
  consumer_.emplace(queue, 0);
}

RemoteTask::~RemoteTask() {
  consumer_.reset();
  CloseStreams(group_);
}

bool RemoteTask::Poll(const Rows& rows, size_t slices_max) {
  Slice slice;
  for (size_t i = 0; !ended_ && i < slices_max; i++) {
    Claim claim = consumer_->TryClaim(&slice);
    if (claim == Claim::kEmpty) {
      // From now on a slice wakes us; one that came just before is found by the second look.
      consumer_->PrepareToWait();
      claim = consumer_->TryClaim(&slice);
      if (claim == Claim::kEmpty) return false;
      consumer_->CancelWait();
    }
    if (claim == Claim::kDone) {
      ended_ = true;
      return false;
    }
    struct Guard {
      const Slice& slice;
      ~Guard() { ReleaseSlice(slice); }
    } guard{slice};
    bool has_rows = slice.kind == SliceKind::kDataRows || slice.kind == SliceKind::kCopyData ||
                    slice.kind == SliceKind::kOversized;
    if (has_rows) rows(slice.stream, slice.data, slice.size_bytes);
  }
  return !ended_;
}

void RemoteTask::PollText(std::vector<std::vector<RemoteRow>>* rows) {
  rows->resize(statements_.size());
  while (Poll([&](size_t index, const char* data, size_t size_bytes) {
    AppendRemoteRows(data, size_bytes, &(*rows)[index]);
  })) {
  }
}

std::optional<Error> RemoteTask::error() const {
  for (const Stream& stream : group_->streams) {
    StreamState state = stream.state.load(std::memory_order_acquire);
    if (state == StreamState::kFailed) return stream.error.Load();
    if (state == StreamState::kCancelled)
      return MakeError(sqlstate::kQueryCanceled, "canceling statement due to user request");
  }
  return std::nullopt;
}

}  // namespace sluice
