#include "types/aggregate_list.h"

namespace sluice {
namespace {

using K = AggregateKind;

constexpr AggregateInfo kAggregates[] = {
    {1, K::kSumInt8ToInt8, kInt8Oid, kInt8Oid},  // optimizer/plan.h kSumInt8ToInt8
    {2147, K::kCount, kAnyOid, kInt8Oid},
    {2803, K::kCountStar, kInvalidOid, kInt8Oid},
    {2107, K::kSum, kInt8Oid, kNumericOid},
    {2108, K::kSum, kInt4Oid, kInt8Oid},
    {2109, K::kSum, kInt2Oid, kInt8Oid},
    {2110, K::kSum, kFloat4Oid, kFloat4Oid},
    {2111, K::kSum, kFloat8Oid, kFloat8Oid},
    {2113, K::kSum, kIntervalOid, kIntervalOid},
    {2114, K::kSum, kNumericOid, kNumericOid},
    {2100, K::kAvg, kInt8Oid, kNumericOid},
    {2101, K::kAvg, kInt4Oid, kNumericOid},
    {2102, K::kAvg, kInt2Oid, kNumericOid},
    {2103, K::kAvg, kNumericOid, kNumericOid},
    {2104, K::kAvg, kFloat4Oid, kFloat8Oid},
    {2105, K::kAvg, kFloat8Oid, kFloat8Oid},
    {2106, K::kAvg, kIntervalOid, kIntervalOid},
    {2050, K::kMax, kAnyarrayOid, kInvalidOid},
    {2115, K::kMax, kInt8Oid, kInt8Oid},
    {2116, K::kMax, kInt4Oid, kInt4Oid},
    {2117, K::kMax, kInt2Oid, kInt2Oid},
    {2118, K::kMax, kOidOid, kOidOid},
    {2119, K::kMax, kFloat4Oid, kFloat4Oid},
    {2120, K::kMax, kFloat8Oid, kFloat8Oid},
    {2122, K::kMax, kDateOid, kDateOid},
    {2123, K::kMax, kTimeOid, kTimeOid},
    {2126, K::kMax, kTimestampOid, kTimestampOid},
    {2127, K::kMax, kTimestamptzOid, kTimestamptzOid},
    {2128, K::kMax, kIntervalOid, kIntervalOid},
    {2129, K::kMax, kTextOid, kTextOid},
    {2130, K::kMax, kNumericOid, kNumericOid},
    {2244, K::kMax, kBpcharOid, kBpcharOid},
    {2051, K::kMin, kAnyarrayOid, kInvalidOid},
    {2131, K::kMin, kInt8Oid, kInt8Oid},
    {2132, K::kMin, kInt4Oid, kInt4Oid},
    {2133, K::kMin, kInt2Oid, kInt2Oid},
    {2134, K::kMin, kOidOid, kOidOid},
    {2135, K::kMin, kFloat4Oid, kFloat4Oid},
    {2136, K::kMin, kFloat8Oid, kFloat8Oid},
    {2138, K::kMin, kDateOid, kDateOid},
    {2139, K::kMin, kTimeOid, kTimeOid},
    {2142, K::kMin, kTimestampOid, kTimestampOid},
    {2143, K::kMin, kTimestamptzOid, kTimestamptzOid},
    {2144, K::kMin, kIntervalOid, kIntervalOid},
    {2145, K::kMin, kTextOid, kTextOid},
    {2146, K::kMin, kNumericOid, kNumericOid},
    {2245, K::kMin, kBpcharOid, kBpcharOid},
    {2517, K::kBoolAnd, kBoolOid, kBoolOid},
    {2519, K::kBoolAnd, kBoolOid, kBoolOid},  // every
    {2518, K::kBoolOr, kBoolOid, kBoolOid},
    {2724, K::kStddevPop, kInt8Oid, kNumericOid},
    {2725, K::kStddevPop, kInt4Oid, kNumericOid},
    {2726, K::kStddevPop, kInt2Oid, kNumericOid},
    {2727, K::kStddevPop, kFloat4Oid, kFloat8Oid},
    {2728, K::kStddevPop, kFloat8Oid, kFloat8Oid},
    {2729, K::kStddevPop, kNumericOid, kNumericOid},
    {2712, K::kStddevSamp, kInt8Oid, kNumericOid},
    {2713, K::kStddevSamp, kInt4Oid, kNumericOid},
    {2714, K::kStddevSamp, kInt2Oid, kNumericOid},
    {2715, K::kStddevSamp, kFloat4Oid, kFloat8Oid},
    {2716, K::kStddevSamp, kFloat8Oid, kFloat8Oid},
    {2717, K::kStddevSamp, kNumericOid, kNumericOid},
    {2154, K::kStddevSamp, kInt8Oid, kNumericOid},  // stddev
    {2155, K::kStddevSamp, kInt4Oid, kNumericOid},
    {2156, K::kStddevSamp, kInt2Oid, kNumericOid},
    {2157, K::kStddevSamp, kFloat4Oid, kFloat8Oid},
    {2158, K::kStddevSamp, kFloat8Oid, kFloat8Oid},
    {2159, K::kStddevSamp, kNumericOid, kNumericOid},
    {2718, K::kVarPop, kInt8Oid, kNumericOid},
    {2719, K::kVarPop, kInt4Oid, kNumericOid},
    {2720, K::kVarPop, kInt2Oid, kNumericOid},
    {2721, K::kVarPop, kFloat4Oid, kFloat8Oid},
    {2722, K::kVarPop, kFloat8Oid, kFloat8Oid},
    {2723, K::kVarPop, kNumericOid, kNumericOid},
    {2641, K::kVarSamp, kInt8Oid, kNumericOid},
    {2642, K::kVarSamp, kInt4Oid, kNumericOid},
    {2643, K::kVarSamp, kInt2Oid, kNumericOid},
    {2644, K::kVarSamp, kFloat4Oid, kFloat8Oid},
    {2645, K::kVarSamp, kFloat8Oid, kFloat8Oid},
    {2646, K::kVarSamp, kNumericOid, kNumericOid},
    {2148, K::kVarSamp, kInt8Oid, kNumericOid},  // variance
    {2149, K::kVarSamp, kInt4Oid, kNumericOid},
    {2150, K::kVarSamp, kInt2Oid, kNumericOid},
    {2151, K::kVarSamp, kFloat4Oid, kFloat8Oid},
    {2152, K::kVarSamp, kFloat8Oid, kFloat8Oid},
    {2153, K::kVarSamp, kNumericOid, kNumericOid},
    {3538, K::kStringAgg, kTextOid, kTextOid},
    {3545, K::kStringAgg, kByteaOid, kByteaOid},
    {2335, K::kArrayAgg, kAnynonarrayOid, kAnyarrayOid},
};

}  // namespace

const AggregateInfo* FindAggregate(Oid function) {
  static const auto* by_function = [] {
    auto* map = new std::unordered_map<Oid, const AggregateInfo*>();
    for (const AggregateInfo& aggregate : kAggregates) map->emplace(aggregate.function, &aggregate);
    return map;
  }();
  auto found = by_function->find(function);
  return found == by_function->end() ? nullptr : found->second;
}

}  // namespace sluice
