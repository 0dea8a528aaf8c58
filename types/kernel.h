// Scalar functions over columns. Postgres's pg_proc oid names a function (int4pl is 177 on every
// Postgres); a kernel computes it for many rows. Functions without a kernel are the shards' to
// compute, or are refused.
#pragma once

#include <span>

#include "common/arena.h"
#include "types/column.h"

namespace sluice {

class Collator;  // types/collation.h

// What a kernel may depend on besides its arguments: the session's settings. Plain data, so that it
// can be handed to workers in shared memory.
struct SessionSettings {
  int64_t now = 0;  // transaction start, µs since 2000-01-01 UTC: now(), CURRENT_DATE, …
  int64_t statement_now = 0;  // statement start
  char time_zone[64] = "UTC";
  int8_t date_style = 0;  // types/datetime.h DateStyle
  int8_t date_order = 1;  // 0 YMD, 1 MDY, 2 DMY
  int8_t interval_style = 0;
  int8_t extra_float_digits = 1;
  bool bytea_escape = false;
};

struct EvalContext {
  Arena* arena = nullptr;  // results that are views live here; reset by the caller, per batch
  const SessionSettings* settings = nullptr;
};

// One evaluation. The kernel writes out->data[i] (and out->nulls[i], if the kernel may return NULL)
// for exactly the rows listed: rows[0..count), or 0..count if rows is null. `out` has its arrays
// allocated, nulls zeroed. Of strict functions, rows with a NULL argument were left out already.
struct KernelCall {
  std::span<const Column* const> args;
  Column* out;
  const uint32_t* rows;  // nullptr: all of 0..count
  size_t count;
  const Collator* collation;  // nullptr: the type has none
  EvalContext* context;
};

template <typename Fn>
inline void ForEachRow(const KernelCall& call, Fn&& fn) {
  if (call.rows == nullptr) {
    for (size_t i = 0; i < call.count; i++) fn(i);
  } else {
    for (size_t i = 0; i < call.count; i++) fn(size_t{call.rows[i]});
  }
}

using KernelFn = void (*)(const KernelCall& call);  // throws QueryError

struct Kernel {
  Oid function;      // pg_proc.oid
  const char* name;  // for EXPLAIN and tests
  bool strict;       // pg_proc.proisstrict
  KernelFn fn;
};

// nullptr where there is none.
const Kernel* FindKernel(Oid function);
std::span<const Kernel* const> AllKernels();

}  // namespace sluice
