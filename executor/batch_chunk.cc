#include "executor/batch_chunk.h"

#include "common/assert.h"
#include "executor/column_buffer.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

struct StoredColumn {
  Oid type;
  Physical physical;
  bool constant;
  uint8_t* nulls;  // may be null; an absolute address, as all addresses in shared memory
  void* data;
};

struct BatchChunk {
  uint32_t rows;
  uint32_t column_count;
  StoredColumn columns[];
};

constexpr size_t kAlignment = 16;
size_t Aligned(size_t size_bytes) {
  return (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

size_t HeaderBytes(const Batch& batch) {
  return Aligned(sizeof(BatchChunk) + batch.columns.size() * sizeof(StoredColumn));
}

// What `rows` rows need without the bytes of their kBytes values.
size_t FixedBytes(const Batch& batch, size_t rows) {
  size_t bytes = HeaderBytes(batch);
  for (const Column& column : batch.columns) {
    size_t values = column.constant() ? 1 : rows;
    bytes += Aligned(values * WidthOf(column.physical));
    if (column.nulls != nullptr) bytes += Aligned(values);
  }
  return bytes;
}

size_t BytesOfConstants(const Batch& batch) {
  size_t bytes = 0;
  for (const Column& column : batch.columns)
    if (column.physical == Physical::kBytes && column.constant() && !column.IsNull(0))
      bytes += column.At<std::string_view>(0).size();
  return bytes;
}

size_t BytesOfRow(const Batch& batch, size_t row) {
  size_t bytes = 0;
  for (const Column& column : batch.columns)
    if (column.physical == Physical::kBytes && !column.constant() && !column.IsNull(row))
      bytes += column.At<std::string_view>(row).size();
  return bytes;
}

// How many rows from `first` on fit.
size_t RowsThatFit(const Batch& batch, size_t first, size_t size_bytes) {
  size_t row_bytes = 0;
  for (const Column& column : batch.columns)
    if (!column.constant()) row_bytes += WidthOf(column.physical) + (column.nulls != nullptr);
  // Aligning the arrays may cost this much more than the rows themselves.
  size_t base =
      HeaderBytes(batch) + BytesOfConstants(batch) + 4 * kAlignment * batch.columns.size();
  size_t used = base, rows = 0;
  while (first + rows < batch.rows) {
    used += row_bytes + BytesOfRow(batch, first + rows);
    if (used > size_bytes) break;
    rows++;
  }
  return rows;
}

class Writer {
 public:
  Writer(char* to, size_t size_bytes) : at_(to), end_(to + size_bytes) {}
  char* Take(size_t size_bytes) {
    char* taken = at_;
    at_ += size_bytes;
    SLUICE_ASSERT(at_ <= end_);
    return taken;
  }

 private:
  char* at_;
  char* end_;
};

void WriteColumn(const Column& from, size_t first, size_t rows, StoredColumn* to, Writer* writer) {
  size_t values = from.constant() ? 1 : rows;
  if (from.constant()) first = 0;
  size_t width = WidthOf(from.physical);
  *to = {from.type, from.physical, from.constant(), nullptr, writer->Take(Aligned(values * width))};
  std::memcpy(to->data, static_cast<const char*>(from.data) + first * width, values * width);
  if (from.nulls == nullptr) return;
  to->nulls = reinterpret_cast<uint8_t*>(writer->Take(Aligned(values)));
  std::memcpy(to->nulls, from.nulls + first, values);
}

// After all arrays, the bytes of the values; the views in the chunk are turned to them.
void WriteBytes(StoredColumn* column, size_t rows, Writer* writer) {
  if (column->physical != Physical::kBytes) return;
  auto* views = static_cast<std::string_view*>(column->data);
  size_t values = column->constant ? 1 : rows;
  for (size_t i = 0; i < values; i++) {
    if (column->nulls != nullptr && column->nulls[i] != 0) {
      views[i] = {};
      continue;
    }
    char* bytes = writer->Take(views[i].size());
    std::memcpy(bytes, views[i].data(), views[i].size());
    views[i] = {bytes, views[i].size()};
  }
}

}  // namespace

size_t SizeOfRow(const Batch& batch, size_t row) {
  return FixedBytes(batch, 1) + BytesOfConstants(batch) + BytesOfRow(batch, row) +
         4 * kAlignment * batch.columns.size();
}

size_t WriteBatchChunk(const Batch& batch, size_t first, char* to, size_t size_bytes) {
  size_t rows = RowsThatFit(batch, first, size_bytes);
  if (rows == 0) return 0;
  Writer writer(to, size_bytes);
  auto* chunk = reinterpret_cast<BatchChunk*>(writer.Take(HeaderBytes(batch)));
  chunk->rows = static_cast<uint32_t>(rows);
  chunk->column_count = static_cast<uint32_t>(batch.columns.size());
  for (size_t i = 0; i < batch.columns.size(); i++)
    WriteColumn(batch.columns[i], first, rows, &chunk->columns[i], &writer);
  for (size_t i = 0; i < batch.columns.size(); i++) WriteBytes(&chunk->columns[i], rows, &writer);
  return rows;
}

Batch ReadBatchChunk(const char* data, std::vector<Column>* columns) {
  const auto* chunk = reinterpret_cast<const BatchChunk*>(data);
  columns->resize(chunk->column_count);
  for (size_t i = 0; i < chunk->column_count; i++) {
    const StoredColumn& stored = chunk->columns[i];
    (*columns)[i] = {stored.type, stored.physical, stored.constant ? 0 : ~size_t{0}, stored.nulls,
                     stored.data};
  }
  return {chunk->rows, *columns};
}

BatchPublisher::BatchPublisher(ReadyQueue* queue, Stream* stream)
    : producer_(queue), stream_(stream) {
  stream->producer = my_proc_number;
}

bool BatchPublisher::Ready() {
  auto room = [this] {
    return stream_->chunks_in_use.load(std::memory_order_seq_cst) < stream_->chunk_quota;
  };
  if (!room()) {
    stream_->held_back.store(1, std::memory_order_seq_cst);  // S2: the flag, then the second look
    if (!room()) return false;
  }
  stream_->held_back.store(0, std::memory_order_relaxed);
  return true;
}

size_t BatchPublisher::Publish(const Batch& batch, size_t first) {
  ChunkPool* pool = &shared_memory->chunks;
  ChunkId chunk = AcquireChunk(pool, stream_);
  char* data = ChunkData(*pool, chunk);
  size_t rows = WriteBatchChunk(batch, first, data, pool->chunk_size_bytes);
  Slice slice{SliceKind::kBatch,          stream_->index, chunk, data, pool->chunk_size_bytes,
              static_cast<uint32_t>(rows)};
  if (rows == 0) {  // the chunk then only stands for the quota
    size_t size_bytes = SizeOfRow(batch, first);
    try {
      data = AllocateExtents(size_bytes);
    } catch (...) {
      DropReference(pool, chunk);
      throw;
    }
    std::vector<Column> columns;
    Batch row = SliceBatch(batch, first, 1, &columns);
    rows = WriteBatchChunk(row, 0, data, size_bytes);
    SLUICE_ASSERT(rows == 1);
    slice = {SliceKind::kOversized, stream_->index, chunk, data, size_bytes, 1};
  }
  stream_->rows.fetch_add(rows, std::memory_order_relaxed);
  stream_->slices.fetch_add(1, std::memory_order_relaxed);
  producer_.Push(slice);
  return rows;
}

}  // namespace sluice
