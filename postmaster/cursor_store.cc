#include "postmaster/cursor_store.h"

#include "common/assert.h"
#include "shm/process_table.h"

namespace sluice {
namespace {

std::vector<Oid> TypesOf(std::span<const ResultColumn> columns) {
  std::vector<Oid> types;
  for (const ResultColumn& column : columns) types.push_back(column.type);
  return types;
}

}  // namespace

CursorStore::CursorStore(std::span<const ResultColumn> columns, uint64_t first,
                         size_t memory_bytes_max, std::string temp_directory)
    : columns_(columns.begin(), columns.end()),
      first_(first),
      temp_directory_(std::move(temp_directory)),
      blocks_(memory_bytes_max, temp_directory_),
      arena_(blocks_, 64 * 1024),
      layout_(TypesOf(columns), 0) {
  for (const ResultColumn& column : columns) names_.emplace_back(column.name);
  for (size_t i = 0; i < columns_.size(); i++) columns_[i].name = names_[i];
}

void CursorStore::Rows(const Batch& batch, size_t from, size_t to) {
  std::vector<uint32_t> numbers;
  for (size_t row = from; row < to; row++) numbers.push_back(static_cast<uint32_t>(row));
  size_t before = rows_.size();
  rows_.resize(before + numbers.size());
  layout_.Store(batch.columns.first(columns_.size()), numbers.data(), numbers.size(), &arena_,
                rows_.data() + before);
}

void CursorStore::Messages(std::string_view) {
  SLUICE_ASSERT(false);  // a cursor's plan passes nothing through
}

void CursorStore::Give(uint64_t from, uint64_t count, bool forward, RowSink* sink) {
  SLUICE_ASSERT(count == 0 || (from >= first_ && from <= last()));
  std::vector<ColumnBuffer> buffers;
  for (const ResultColumn& column : columns_) buffers.emplace_back(column.type);
  std::vector<Column> columns(columns_.size());
  std::vector<char*> places;
  for (uint64_t given = 0; given < count; given += places.size()) {
    CheckForInterrupts();
    places.clear();
    while (places.size() < kBatchRows && given + places.size() < count) {
      uint64_t step = given + places.size();
      places.push_back(rows_[(forward ? from + step : from - step) - first_]);
    }
    for (size_t i = 0; i < buffers.size(); i++) {
      buffers[i].Clear();
      layout_.Load(places.data(), places.size(), i, &buffers[i]);
      columns[i] = buffers[i].column;
    }
    sink->Rows(Batch{places.size(), columns}, 0, places.size());
  }
}

}  // namespace sluice
