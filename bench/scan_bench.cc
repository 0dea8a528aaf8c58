// Decoding rows: DataRow messages in a slice → batches, as every scan does it.
#include <benchmark/benchmark.h>

#include "common/bytes.h"
#include "executor/row_decoder.h"
#include "types/codec.h"

namespace sluice {
namespace {

struct Shape {
  std::vector<Oid> types;
  std::vector<std::string> texts;  // one value of each; "" is NULL
};

// A slice's bytes: `rows` rows of the shape's values, in binary format.
std::string MakeRows(const Shape& shape, size_t rows) {
  SessionSettings settings;
  Arena arena;
  std::string body;
  auto append = [&body](auto number) {
    char bytes[sizeof number];
    StoreBig(bytes, number);
    body.append(bytes, sizeof number);
  };
  append(static_cast<int16_t>(shape.types.size()));
  for (size_t i = 0; i < shape.types.size(); i++) {
    if (shape.texts[i].empty()) {
      append(int32_t{-1});
      continue;
    }
    std::string_view value = ParseText(shape.types[i], -1, shape.texts[i], settings, &arena);
    append(static_cast<int32_t>(value.size()));
    body += value;
  }
  char length[4];
  StoreBig(length, static_cast<int32_t>(body.size() + 4));
  std::string message = "D" + std::string(length, 4) + body, all;
  for (size_t i = 0; i < rows; i++) all += message;
  return all;
}

void Decode(benchmark::State& state, const Shape& shape) {
  constexpr size_t kRows = 4000;  // about a chunk
  std::string bytes = MakeRows(shape, kRows);
  SessionSettings settings;
  std::vector<OutputColumn> columns;
  for (Oid type : shape.types) columns.push_back({"c", type, -1, kInvalidOid});
  std::unique_ptr<bool[]> binary = std::make_unique<bool[]>(columns.size());
  std::fill_n(binary.get(), columns.size(), true);
  ForeignScanPlan scan{};
  scan.output = columns;
  scan.binary = {binary.get(), columns.size()};
  RowDecoder decoder(columns, settings);
  for (auto _ : state) {
    const char* at = bytes.data();
    const char* end = at + bytes.size();
    Batch batch;
    while (at < end) {
      decoder.Decode(scan, &at, end, &batch);
      benchmark::DoNotOptimize(batch.rows);
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kRows));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}

// The three columns of the aggregates in the standard workload.
void BM_DecodeTextNumericInt(benchmark::State& state) {
  Decode(state, {{kTextOid, kNumericOid, kInt4Oid}, {"emea", "123.45", "17"}});
}
BENCHMARK(BM_DecodeTextNumericInt);

void BM_DecodeThreeInt8(benchmark::State& state) {
  Decode(state, {{kInt8Oid, kInt8Oid, kInt8Oid}, {"1", "22", "333"}});
}
BENCHMARK(BM_DecodeThreeInt8);

void BM_DecodeOneInt4(benchmark::State& state) {
  Decode(state, {{kInt4Oid}, {"1"}});
}
BENCHMARK(BM_DecodeOneInt4);

// The whole table.
void BM_DecodeOrders(benchmark::State& state) {
  Decode(state, {{kInt8Oid, kInt4Oid, kTextOid, kNumericOid, kInt4Oid, kFloat8Oid, kTimestamptzOid,
                  kTextOid},
                 {"1", "2", "apac", "37.21", "5", "1.25", "2024-01-01 00:00:00+00", ""}});
}
BENCHMARK(BM_DecodeOrders);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
