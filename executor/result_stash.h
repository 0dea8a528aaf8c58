// Workers' rows that the leader takes before it can use them.
//
// A leader that waits for something else, its own share of the work or one particular worker's
// rows, would keep the workers waiting whose results fill their quota; and what it waits for may be
// theirs to produce. So while it waits it goes on taking their rows, copied, into memory and then
// into a file.
#pragma once

#include <deque>
#include <memory>

#include "executor/row_store.h"

namespace sluice {

class ResultStash {
 public:
  ResultStash(std::span<const OutputColumn> columns, int64_t memory_bytes_max,
              std::string_view temp_directory)
      : columns_(columns), memory_bytes_max_(memory_bytes_max), temp_directory_(temp_directory) {}

  void Append(const Batch& batch) {
    if (stores_.empty() || stores_.back()->reading())
      stores_.push_back(std::make_unique<RowStore>(columns_, memory_bytes_max_, temp_directory_));
    stores_.back()->Append(batch);
  }

  // The next rows, valid until the next call of Next; false: none here.
  bool Next(Batch* batch) {
    while (!stores_.empty()) {
      stores_.front()->Next(batch);
      if (batch->rows > 0) return true;
      stores_.pop_front();
    }
    return false;
  }

 private:
  std::span<const OutputColumn> columns_;
  int64_t memory_bytes_max_;
  std::string_view temp_directory_;
  std::deque<std::unique_ptr<RowStore>> stores_;  // one is read while the next is written
};

}  // namespace sluice
