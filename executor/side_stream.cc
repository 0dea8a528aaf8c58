#include "executor/side_stream.h"

#include "common/assert.h"
#include "executor/remote_end.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

constexpr uint32_t kChunks = 4;

}  // namespace

SideStream::SideStream(const Options& options, Arena* arena) : group_(arena->New<StreamGroup>()) {
  group_->backend = my_proc_number;
  group_->streams = arena->NewArray<Stream>(1);
  stream_ = &group_->streams[0];
  stream_->kind = options.kind;
  stream_->group = group_;
  stream_->connection = options.connection;
  stream_->sql = options.sql;
  stream_->pin = options.transaction.pin;
  stream_->begin_sql = options.transaction.begin_sql;
  stream_->params = options.params;
  stream_->result_formats = options.result_formats;
  stream_->prepare = options.prepare;
  group_->admission_timeout_us = options.admission_timeout_us;
  stream_->chunk_quota = kChunks;
  stream_->output = MakeReadyQueue(arena, SlicesMax(kChunks), 1);
  if (options.kind == StreamKind::kCopyIn) {
    stream_->input = MakeReadyQueue(arena, SlicesMax(kChunks), 1);
    feed_ = arena->NewArray<Stream>(1).data();
    feed_->chunk_quota = kChunks;
    feed_->producer = my_proc_number;
    group_->extra_chunks = kChunks;
  }
  consumer_.emplace(stream_->output, 0);
  OpenStreams(group_);
}

bool SideStream::Next(Slice* slice, WaitEvent event) {
  while (consumer_->ClaimOrWait(slice, event)) {
    if (slice->kind != SliceKind::kEnd) return true;
    CheckStreamEnd(*stream_);
  }
  return false;
}

void SideStream::Finish(WaitEvent event) {
  Slice slice;
  while (Next(&slice, event)) ReleaseSlice(slice);
}

// Until the group is admitted (its chunks are promised) and one of them is free; or the statement
// fails.
void SideStream::AwaitRoom() {
  for (;;) {
    ResetLatch(&my_proc->latch);
    consumer_->PrepareToWait();
    Slice slice;
    if (consumer_->TryClaim(&slice) == Claim::kSlice) {
      consumer_->EndWait();
      SLUICE_ASSERT(slice.kind == SliceKind::kEnd);  // a COPY FROM has no rows
      CheckStreamEnd(*stream_);
      Throw(sqlstate::kProtocolViolation, "server \"{}\" ended a COPY before its end",
            stream_->connection->server_name);
    }
    admitted_ |= group_->state.load(std::memory_order_acquire) == GroupState::kAdmitted;
    feed_->held_back.store(1, std::memory_order_seq_cst);  // S2
    if (admitted_ && feed_->chunks_in_use.load(std::memory_order_seq_cst) < kChunks) break;
    WaitInterruptibly(WaitEvent::kCopyInQueue);
    consumer_->EndWait();
  }
  consumer_->EndWait();
  feed_->held_back.store(0, std::memory_order_relaxed);
}

void SideStream::Put(std::string_view bytes) {
  ChunkPool* pool = &shared_memory->chunks;
  while (!bytes.empty()) {
    AwaitRoom();
    size_t size = std::min<size_t>(bytes.size(), pool->chunk_size_bytes);
    ChunkId chunk = AcquireChunk(pool, feed_);
    char* data = ChunkData(*pool, chunk);
    std::memcpy(data, bytes.data(), size);
    ChunkProducer(stream_->input).Push({SliceKind::kCopyData, 0, chunk, data, size, 0});
    bytes.remove_prefix(size);
  }
}

void SideStream::EndInput() {
  ChunkProducer(stream_->input).End(0);
}

}  // namespace sluice
