// The vectors that all local work runs on. A Batch is up to kBatchRows rows, column by column;
// a Column is a typed array with a null map. Neither owns memory: values live in an Arena, or are
// views into the pinned chunk they came from, and are valid until the producer's next next().
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/assert.h"
#include "types/oid.h"

namespace sluice {

inline constexpr size_t kBatchRows = 2048;

// How a type's values lie in memory.
//   kBytes: std::string_view over the value in *Postgres's binary wire format*: text as its bytes,
//   numeric as its base-10000 digits (types/numeric.h), jsonb and arrays likewise. Types without a
//   codec here (Type::has_binary == false) hold the *text* format instead and are only passed on.
enum class Physical : uint8_t {
  kBool,      // uint8_t, 0 or 1
  kInt2,      // int16_t
  kInt4,      // int32_t; also date (days since 2000-01-01)
  kInt8,      // int64_t; also time, timestamp, timestamptz (microseconds, since 2000-01-01)
  kUint4,     // uint32_t: oid, regclass and the like
  kFloat4,    // float
  kFloat8,    // double
  kInterval,  // Interval
  kUuid,      // Uuid
  kBytes,     // std::string_view
};

struct Interval {
  int64_t microseconds;
  int32_t days;
  int32_t months;
};
struct Uuid {
  uint8_t bytes[16];
};
static_assert(sizeof(Interval) == 16 && sizeof(Uuid) == 16);

constexpr Physical PhysicalOf(Oid type) {
  switch (type) {
    case kBoolOid:
      return Physical::kBool;
    case kInt2Oid:
      return Physical::kInt2;
    case kInt4Oid:
    case kDateOid:
      return Physical::kInt4;
    case kInt8Oid:
    case kTimeOid:
    case kTimestampOid:
    case kTimestamptzOid:
      return Physical::kInt8;
    case kOidOid:
    case kRegclassOid:
    case kRegtypeOid:
    case kRegprocOid:
    case kXidOid:
    case kCidOid:
      return Physical::kUint4;
    case kFloat4Oid:
      return Physical::kFloat4;
    case kFloat8Oid:
      return Physical::kFloat8;
    case kIntervalOid:
      return Physical::kInterval;
    case kUuidOid:
      return Physical::kUuid;
    default:
      return Physical::kBytes;
  }
}

constexpr size_t WidthOf(Physical physical) {
  switch (physical) {
    case Physical::kBool:
      return 1;
    case Physical::kInt2:
      return 2;
    case Physical::kInt4:
    case Physical::kUint4:
    case Physical::kFloat4:
      return 4;
    case Physical::kInt8:
    case Physical::kFloat8:
      return 8;
    case Physical::kInterval:
    case Physical::kUuid:
    case Physical::kBytes:
      return 16;
  }
  return 0;
}

struct Column {
  Oid type = kInvalidOid;
  Physical physical = Physical::kBytes;
  // All rows share the value at index 0 (constants, parameters). `mask` is 0 then, ~0 otherwise:
  // the value of row i is at i & mask, in `data` and in `nulls` alike.
  size_t mask = ~size_t{0};
  uint8_t* nulls = nullptr;  // one byte a row, 1 = NULL; nullptr = no row is NULL
  void* data = nullptr;      // WidthOf(physical) bytes a row

  bool constant() const { return mask == 0; }
  bool IsNull(size_t row) const { return nulls != nullptr && nulls[row & mask] != 0; }
  template <typename T>
  T* Data() const {
    return static_cast<T*>(data);
  }
  template <typename T>
  const T& At(size_t row) const {
    return static_cast<const T*>(data)[row & mask];
  }
};

// A column's data at a NULL row is unspecified: never read it.
struct Batch {
  size_t rows = 0;
  std::span<Column> columns;
};

}  // namespace sluice
