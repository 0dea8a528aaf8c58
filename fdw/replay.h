// A fake shard for tests and benchmarks: rows from a file at memory speed, or at a given rate.
//
// Spec keywords: file (DataRow messages one after the other, repeated as often as needed),
// total_rows, rows_per_second (default: no limit).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fdw/chunk_writer.h"
#include "fdw/stream_task.h"

namespace sluice {

class ReplayStream final : public StreamTask {
 public:
  ReplayStream(Worker* worker, Group* group, Stream* stream);
  void Start() override;
  void Resume() override { Produce(); }
  void Detach() override;

 private:
  // Row i is [offsets[i], offsets[i + 1]).
  struct Rows {
    std::string bytes;
    std::vector<size_t> offsets;
    size_t count() const { return offsets.size() - 1; }
  };
  static std::shared_ptr<const Rows> Load(const std::string& file, Error* error);

  std::string Option(std::string_view keyword) const;
  void Produce();
  uint64_t DueRows() const;
  void Fail(const Error& error);

  ChunkWriter writer_;
  Timer timer_;
  std::shared_ptr<const Rows> rows_;
  size_t next_ = 0;
  uint64_t produced_ = 0, total_ = 0;
  double rows_per_us_ = 0;  // 0: no limit
  int64_t start_us_ = 0;
};

}  // namespace sluice
