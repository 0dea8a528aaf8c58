// Rows that come from outside the shards, as batches: what a live view stores (stream/).
#pragma once

#include "types/column.h"

namespace sluice {

class RowSource {
 public:
  virtual ~RowSource() = default;
  // rows == 0 at the end. Valid until the next call. Throws QueryError.
  virtual void Next(Batch* batch) = 0;
  virtual void Rescan() = 0;
};

}  // namespace sluice
