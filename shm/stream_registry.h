// What the io worker is doing, for operators (sluice.streams): one slot for every stream between
// its submission and the end of its group, and for every connection that is lent.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "shm/stream.h"

namespace sluice {

inline constexpr uint32_t kStreamSlots = 1024;  // what is beyond is not shown

struct StreamSlot {
  // T1: a seqlock, as ProcSlot's activity_version. Odd: being written.
  std::atomic<uint32_t> version;
  // T2: written by the io worker only, under T1.
  std::atomic<bool> used;
  ProcNumber backend;
  bool lent;
  StreamKind kind;
  // In the query's arena: to be looked at only while the version stands. Null: lent. The arena is
  // never unmapped, so that a late look reads nonsense, which the version then tells.
  const Stream* stream;
  int64_t since_us;  // CLOCK_MONOTONIC
  char server_name[64];
  char sql[512];
};

struct StreamRegistry {
  StreamSlot slots[kStreamSlots];
};

// Io worker only. Returns the slot's number, or kStreamSlots where none is free.
uint32_t ShowStream(const Stream& stream);
uint32_t ShowLent(ProcNumber backend, std::string_view server_name);
void HideStream(uint32_t slot);  // REQUIRES: before the stream's memory may be freed

// Anyone: a row of each, its numbers as they are now.
struct StreamRow {
  ProcNumber backend;
  bool lent;
  StreamKind kind;
  StreamState state;

  uint64_t rows, bytes, chunks, slices;
  uint32_t chunks_in_use, chunk_quota;
  bool held_back;
  int64_t held_back_us, age_us, first_row_us;  // first_row_us: since submission, 0: none yet
  char server_name[64];
  char sql[512];
};
std::vector<StreamRow> ReadStreams();

}  // namespace sluice
