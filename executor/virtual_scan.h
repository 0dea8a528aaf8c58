// VirtualScan: the rows of a view that the server itself answers (pg_stat_activity, sluice.…). The
// session gives them as text.
#pragma once

#include <optional>
#include <string>

#include "common/arena.h"
#include "executor/column_buffer.h"
#include "executor/node.h"

namespace sluice {

class VirtualScan : public Node {
 public:
  VirtualScan(const VirtualScanPlan& plan, ExecutionState& state);
  void Rescan() override { next_ = 0; }

 protected:
  void NextBatch(Batch* batch) override;

 private:
  using TextRow = std::vector<std::optional<std::string>>;
  void ReadAll();
  void StoreValue(const std::optional<std::string>& text, size_t row, ColumnBuffer* to);

  const VirtualScanPlan& scan_;
  std::vector<TextRow> rows_;  // one moment's, read again by Rescan
  bool read_ = false;
  size_t next_ = 0;
  BatchBuffer output_;
  Arena arena_;
};

}  // namespace sluice
