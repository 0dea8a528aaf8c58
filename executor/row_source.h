// Rows that come from outside the shards, as batches: what a live view stores (stream/).
#pragma once

#include <span>
#include <string_view>

#include "types/column.h"

namespace sluice {

class RowSource {
 public:
  virtual ~RowSource() = default;

  // Rows whose `column` (by name) does not compare to `value` (a one-row column, not NULL) as said
  // are not wanted. The source may give them all the same: whoever asks applies the condition too.
  enum class Comparison { kEqual, kAtLeast, kAtMost };
  struct Condition {
    std::string_view column;
    Comparison comparison;
    Column value;
  };
  // Before the first Next.
  virtual void Restrict(std::span<const Condition>) {}

  // rows == 0 at the end. Valid until the next call. Throws QueryError.
  virtual void Next(Batch* batch) = 0;
  virtual void Rescan() = 0;
};

}  // namespace sluice
