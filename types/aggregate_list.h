// The aggregates that the executor computes, by pg_proc oid of the aggregate.
#pragma once

#include "types/oid.h"

namespace sluice {

enum class AggregateKind : uint8_t {
  kCount,
  kCountStar,
  kSum,
  kAvg,
  kMin,
  kMax,
  kBoolAnd,
  kBoolOr,
  kStddevPop,
  kStddevSamp,
  kVarPop,
  kVarSamp,
  kStringAgg,
  kArrayAgg,
  kSumInt8ToInt8,
};

struct AggregateInfo {
  Oid function;
  AggregateKind kind;
  Oid input;   // type of the first argument; kInvalidOid for count(*), kAnyOid for any
  Oid result;  // kInvalidOid: that of the input
};

// nullptr where the executor has none.
const AggregateInfo* FindAggregate(Oid function);

}  // namespace sluice
