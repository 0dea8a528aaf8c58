// Rows that come from outside the shards, as batches: what a live view stores (stream/).
#pragma once

#include <span>
#include <string_view>

#include "types/column.h"

namespace sluice {

class RowSource {
 public:
  virtual ~RowSource() = default;

  // Rows whose `column` (by name) is not equal to `value` (a one-row column, not NULL) are not
  // wanted. The source may give them all the same: whoever asks applies the condition too.
  struct Equality {
    std::string_view column;
    Column value;
  };
  // Before the first Next.
  virtual void Restrict(std::span<const Equality>) {}

  // rows == 0 at the end. Valid until the next call. Throws QueryError.
  virtual void Next(Batch* batch) = 0;
  virtual void Rescan() = 0;
};

}  // namespace sluice
