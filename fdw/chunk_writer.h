// The receiving end of a stream: the chunk that is being filled, and its cutting into slices.
//
//      chunk  |  published slices  |  whole rows  |  partial  |      room      |
//             0                  begin          parsed       end            size
//
// Bytes are received straight into the room. The framing's parser moves `parsed` over whole rows;
// what is between `begin` and `parsed` is the next slice. When the chunk is full the partial row
// moves on to a fresh chunk. If the quota has none left, the partial row waits here, not in the
// chunk, and the stream is held back until a consumer lets a chunk go.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "fdw/timer.h"
#include "shm/chunk_pool.h"
#include "shm/ready_queue.h"
#include "shm/stream.h"

namespace sluice {

class ChunkWriter {
 public:
  ChunkWriter(Stream* stream, SliceKind kind);
  ChunkWriter(const ChunkWriter&) = delete;
  ~ChunkWriter();  // gives back without publishing what is still here

  // Makes sure of a chunk with room in it. False: the quota is used up, and the stream is held
  // back; ask again after this process's latch was set.
  // With `may_buffer` it is always true: rows go to memory of our own, the backlog, until there is
  // room again. That is for connections that others wait for.
  bool Ready(bool may_buffer = false);
  // Publishes what of the backlog the quota allows; whether that is all of it.
  bool FlushBacklog();
  size_t backlog_bytes() const { return backlog_bytes_; }
  bool held_back() const { return held_back_since_us_ != 0; }

  // REQUIRES (all below): Ready() was true.
  char* room() { return base_ + end_; }
  size_t room_bytes() const { return size_ - end_; }
  void Received(size_t bytes) { end_ += static_cast<uint32_t>(bytes); }

  // The bytes that are not parsed yet.
  char* unparsed() { return base_ + parsed_; }
  size_t unparsed_bytes() const { return end_ - parsed_; }
  // The parser has found `rows` whole rows in the next `bytes`.
  void AddRows(size_t bytes, uint32_t rows) {
    parsed_ += static_cast<uint32_t>(bytes);
    rows_ += rows;
  }
  // Takes the next `bytes` out: they are no rows. A slice stays one contiguous run of rows.
  void Remove(size_t bytes);

  size_t chunk_bytes() const { return size_; }
  uint32_t pending_rows() const { return rows_; }
  // Publishes the pending rows if there are any. May leave the chunk: then the unparsed bytes are
  // out of sight until Ready().
  void Publish();
  // The same if a consumer has nothing else to do.
  void PublishIfAwaited() {
    if (rows_ != 0 && producer_.ConsumerWaits()) Publish();
  }
  // Publishes, and leaves this chunk; the unparsed bytes are carried to the next.
  void Leave();
  // A row larger than a chunk: a message in AllocateExtents memory. Counts against the quota as one
  // chunk. REQUIRES: nothing unparsed. False: held back, try again.
  bool PublishOversized(char* data, size_t size_bytes);

  // Publishes what is pending and gives the chunk back; the unparsed bytes go to `rest` if it is
  // given.
  void Finish(std::string* rest = nullptr);
  // The same without publishing.
  void Abandon(std::string* rest = nullptr);

 private:
  bool TakeQuota();  // whether one more chunk may be acquired; else held back
  void Push(const Slice& slice);
  void DropChunk();
  void ForgetChunk();
  void TakeUnparsed(std::string* rest);

  Stream* const stream_;
  const SliceKind kind_;
  ChunkProducer producer_;

  struct Buffered {
    std::string bytes;
    uint32_t rows;
  };
  std::deque<Buffered> backlog_;
  size_t backlog_bytes_ = 0;
  std::string buffer_;

  ChunkId chunk_ = kNoChunk;  // none while `base_` is `buffer_`
  char* base_ = nullptr;
  uint32_t size_ = 0;
  uint32_t begin_ = 0, parsed_ = 0, end_ = 0;
  uint32_t rows_ = 0;
  uint32_t slices_ = 0;  // cut from this chunk
  std::string carry_;    // the partial row between two chunks
  int64_t held_back_since_us_ = 0;
};

}  // namespace sluice
