// A columnar batch inside a chunk: what Scatter children and workers' results travel as. Everything
// it refers to lies in the chunk, so that its rows need no copying where they are read:
//
//   [BatchChunk][null map, data array: per column][bytes of kBytes values]
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "shm/ready_queue.h"
#include "shm/stream.h"
#include "types/column.h"

namespace sluice {

// Writes as many rows of `batch`, from `first` on, as fit into `size_bytes`; returns how many (at
// least one if SizeOfRow(batch, first) does not exceed `size_bytes`).
size_t WriteBatchChunk(const Batch& batch, size_t first, char* to, size_t size_bytes);
// Bytes that this one row needs.
size_t SizeOfRow(const Batch& batch, size_t row);

// The batch that was written at `data`; `columns` holds its columns.
Batch ReadBatchChunk(const char* data, std::vector<Column>* columns);

// Publishes batches as slices of a stream whose chunks this process fills. A row that is larger
// than a chunk goes into a range of its own (kOversized).
class BatchPublisher {
 public:
  // `stream->producer` is set to this process.
  BatchPublisher(ReadyQueue* queue, Stream* stream);
  // Whether a chunk can be had now. If not, the stream is marked as held back: this process's latch
  // is set when a consumer lets one go.
  bool Ready();
  // REQUIRES: Ready(). Publishes rows of `batch` from `first` on; returns how many.
  size_t Publish(const Batch& batch, size_t first);
  void End() { producer_.End(stream_->index); }

 private:
  ChunkProducer producer_;
  Stream* stream_;
};

}  // namespace sluice
