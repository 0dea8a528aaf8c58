#include "fdw/chunk_writer.h"

#include "common/assert.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

ChunkPool* Pool() {
  return &shared_memory->chunks;
}

// The io worker alone writes these counters, so no read-modify-write is needed.
template <typename Counter>
void Add(Counter* counter, uint64_t n) {
  counter->store(counter->load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}  // namespace

ChunkWriter::ChunkWriter(Stream* stream, SliceKind kind)
    : stream_(stream), kind_(kind), producer_(stream->output), size_(Pool()->chunk_size_bytes) {}

ChunkWriter::~ChunkWriter() {
  SLUICE_ASSERT(base_ == nullptr);
}

bool ChunkWriter::TakeQuota() {
  auto room = [this] {
    return stream_->chunks_in_use.load(std::memory_order_seq_cst) < stream_->chunk_quota;
  };
  if (!room()) {
    // S2: the flag first, then the second look: a consumer that drops a chunk in between sees it.
    stream_->held_back.store(1, std::memory_order_seq_cst);
    if (!room()) {
      if (held_back_since_us_ == 0) held_back_since_us_ = MonotonicMicros();
      return false;
    }
  }
  if (stream_->held_back.load(std::memory_order_relaxed) != 0) {
    stream_->held_back.store(0, std::memory_order_relaxed);
  }
  if (held_back_since_us_ != 0) {
    int64_t before = stream_->held_back_us.load(std::memory_order_relaxed);
    stream_->held_back_us.store(before + MonotonicMicros() - held_back_since_us_,
                                std::memory_order_relaxed);
    held_back_since_us_ = 0;
  }
  return true;
}

bool ChunkWriter::Ready(bool may_buffer) {
  if (base_ != nullptr) {
    if (end_ < size_) return true;
    Leave();
  }
  if (FlushBacklog() && TakeQuota()) {
    chunk_ = AcquireChunk(Pool(), stream_);
    base_ = ChunkData(*Pool(), chunk_);
    Add(&stream_->chunks, 1);
  } else {
    if (!may_buffer) return false;
    buffer_.resize(size_);
    base_ = buffer_.data();
  }
  SLUICE_ASSERT(carry_.size() < size_);
  std::memcpy(base_, carry_.data(), carry_.size());
  begin_ = parsed_ = rows_ = slices_ = 0;
  end_ = static_cast<uint32_t>(carry_.size());
  carry_.clear();
  return true;
}

bool ChunkWriter::FlushBacklog() {
  while (!backlog_.empty()) {
    if (!TakeQuota()) return false;
    Buffered& next = backlog_.front();
    ChunkId chunk = AcquireChunk(Pool(), stream_);
    Add(&stream_->chunks, 1);
    char* data = ChunkData(*Pool(), chunk);
    std::memcpy(data, next.bytes.data(), next.bytes.size());
    Push({kind_, stream_->index, chunk, data, next.bytes.size(), next.rows});
    backlog_bytes_ -= next.bytes.size();
    backlog_.pop_front();
  }
  return true;
}

void ChunkWriter::Remove(size_t bytes) {
  SLUICE_ASSERT(bytes <= unparsed_bytes());
  if (rows_ == 0) {  // no row before it in this slice: start the slice behind it
    parsed_ += static_cast<uint32_t>(bytes);
    begin_ = parsed_;
    return;
  }
  std::memmove(base_ + parsed_, base_ + parsed_ + bytes, end_ - parsed_ - bytes);
  end_ -= static_cast<uint32_t>(bytes);
}

void ChunkWriter::Push(const Slice& slice) {
  if (stream_->first_row_us.load(std::memory_order_relaxed) == 0) {
    stream_->first_row_us.store(MonotonicMicros(), std::memory_order_relaxed);
  }
  Add(&stream_->rows, slice.rows);
  Add(&stream_->bytes, slice.size_bytes);
  Add(&stream_->slices, 1);
  producer_.Push(slice);
}

void ChunkWriter::Publish() {
  if (rows_ == 0 || chunk_ == kNoChunk) return;  // what is buffered goes as a whole, in Finish
  SLUICE_ASSERT(slices_ < kSlicesPerChunkMax);
  slices_++;
  AddReference(Pool(), chunk_);
  Push({kind_, stream_->index, chunk_, base_ + begin_, parsed_ - begin_, rows_});
  begin_ = parsed_;
  rows_ = 0;
  // A slice more could not be published: go on in another chunk.
  if (slices_ == kSlicesPerChunkMax) Leave();
}

void ChunkWriter::DropChunk() {
  if (chunk_ != kNoChunk) DropReference(Pool(), chunk_);
  ForgetChunk();
}

void ChunkWriter::ForgetChunk() {
  chunk_ = kNoChunk;
  base_ = nullptr;
  begin_ = parsed_ = end_ = rows_ = slices_ = 0;
}

void ChunkWriter::Leave() {
  if (base_ == nullptr) return;
  carry_.assign(base_ + parsed_, end_ - parsed_);
  Finish();
}

void ChunkWriter::TakeUnparsed(std::string* rest) {
  if (rest == nullptr) return;
  rest->append(carry_);
  if (base_ != nullptr) rest->append(base_ + parsed_, end_ - parsed_);
  carry_.clear();
}

void ChunkWriter::Finish(std::string* rest) {
  TakeUnparsed(rest);
  if (base_ == nullptr) return;
  if (rows_ == 0) return DropChunk();
  if (chunk_ == kNoChunk) {
    backlog_.push_back({std::string(base_ + begin_, parsed_ - begin_), rows_});
    backlog_bytes_ += parsed_ - begin_;
    return ForgetChunk();
  }
  // The last slice takes over the producer's own reference.
  SLUICE_ASSERT(slices_ < kSlicesPerChunkMax);
  Slice slice{kind_, stream_->index, chunk_, base_ + begin_, parsed_ - begin_, rows_};
  ForgetChunk();
  Push(slice);
}

void ChunkWriter::Abandon(std::string* rest) {
  TakeUnparsed(rest);
  carry_.clear();
  backlog_.clear();
  backlog_bytes_ = 0;
  if (base_ != nullptr) DropChunk();
}

bool ChunkWriter::PublishOversized(char* data, size_t size_bytes) {
  SLUICE_ASSERT(unparsed_bytes() == 0 && carry_.empty());
  Finish();
  if (!FlushBacklog() || !TakeQuota()) return false;
  ChunkId chunk = AcquireChunk(Pool(), stream_);  // never touched: it stands for the quota
  Add(&stream_->chunks, 1);
  Push({SliceKind::kOversized, stream_->index, chunk, data, size_bytes, 1});
  return true;
}

}  // namespace sluice
