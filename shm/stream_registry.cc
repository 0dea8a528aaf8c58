#include "shm/stream_registry.h"

#include "common/assert.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

template <size_t N>
void CopyText(char (&to)[N], std::string_view from) {
  size_t size = std::min(from.size(), N - 1);
  while (size < from.size() && size > 0 && (from[size] & 0xc0) == 0x80) size--;  // whole characters
  std::memcpy(to, from.data(), size);
  to[size] = 0;
}

// T1: the RMWs order the plain stores between them, as in process_table.cc.
template <typename Write>
void WriteSlot(StreamSlot* slot, Write&& write) {
  slot->version.fetch_add(1, std::memory_order_acq_rel);
  write();
  slot->version.fetch_add(1, std::memory_order_acq_rel);
}

uint32_t Take(ProcNumber backend, const Stream* stream, std::string_view server_name,
              std::string_view sql) {
  static thread_local uint32_t next = 0;  // where the last search ended
  StreamRegistry* registry = &shared_memory->streams;
  for (uint32_t i = 0; i < kStreamSlots; i++) {
    uint32_t number = (next + i) % kStreamSlots;
    StreamSlot* slot = &registry->slots[number];
    if (slot->used.load(std::memory_order_relaxed)) continue;
    WriteSlot(slot, [&] {
      slot->backend = backend;
      slot->lent = stream == nullptr;
      slot->kind = stream == nullptr ? StreamKind::kQuery : stream->kind;
      slot->stream = stream;
      slot->since_us = MonotonicUs();
      CopyText(slot->server_name, server_name);
      CopyText(slot->sql, sql);
      slot->used.store(true, std::memory_order_relaxed);
    });
    next = number + 1;
    return number;
  }
  return kStreamSlots;
}

void ReadNumbers(const Stream& stream, StreamRow* row) {
  auto load = [](const auto& value) { return value.load(std::memory_order_relaxed); };  // S3
  row->state = load(stream.state);
  row->rows = load(stream.rows);
  row->bytes = load(stream.bytes);
  row->chunks = load(stream.chunks);
  row->slices = load(stream.slices);
  row->chunks_in_use = load(stream.chunks_in_use);
  row->chunk_quota = stream.chunk_quota;
  row->held_back = load(stream.held_back) != 0;
  row->held_back_us = load(stream.held_back_us);
  int64_t submitted = load(stream.submitted_us), first = load(stream.first_row_us);
  row->first_row_us = first == 0 ? 0 : first - submitted;
}

bool ReadSlot(StreamSlot* slot, StreamRow* row) {
  constexpr int kTriesMax = 1000;
  for (int i = 0; i < kTriesMax; i++) {
    uint32_t before = slot->version.load(std::memory_order_acquire);
    if (before % 2 == 0) {
      if (!slot->used.load(std::memory_order_relaxed)) return false;
      *row = {};
      row->backend = slot->backend;
      row->lent = slot->lent;
      row->kind = slot->kind;
      row->age_us = MonotonicUs() - slot->since_us;
      std::memcpy(row->server_name, slot->server_name, sizeof row->server_name);
      std::memcpy(row->sql, slot->sql, sizeof row->sql);
      if (slot->stream != nullptr) ReadNumbers(*slot->stream, row);
      if (slot->version.fetch_add(0, std::memory_order_acq_rel) == before) return true;
    }
    sched_yield();
  }
  return false;
}

}  // namespace

uint32_t ShowStream(const Stream& stream) {
  return Take(stream.group->backend, &stream, stream.connection->server_name, stream.sql);
}

uint32_t ShowLent(ProcNumber backend, std::string_view server_name) {
  return Take(backend, nullptr, server_name, {});
}

void HideStream(uint32_t number) {
  if (number == kStreamSlots) return;
  StreamSlot* slot = &shared_memory->streams.slots[number];
  SLUICE_ASSERT(slot->used.load(std::memory_order_relaxed));
  WriteSlot(slot, [&] {
    slot->used.store(false, std::memory_order_relaxed);
    slot->stream = nullptr;
  });
}

std::vector<StreamRow> ReadStreams() {
  std::vector<StreamRow> rows;
  StreamRow row;
  for (StreamSlot& slot : shared_memory->streams.slots)
    if (ReadSlot(&slot, &row)) rows.push_back(row);
  return rows;
}

}  // namespace sluice
