// Sort: in memory; past work_mem by sorted runs in temporary files, merged at the end. With a bound
// (ORDER BY … LIMIT) it keeps only the rows that can still be among the first.
#pragma once

#include "common/arena.h"
#include "executor/column_buffer.h"
#include "executor/node.h"
#include "executor/row_comparator.h"
#include "executor/row_layout.h"
#include "executor/spill.h"

namespace sluice {

class Sort : public Node {
 public:
  Sort(const SortPlan& plan, ExecutionState& state, std::unique_ptr<Node> child = nullptr);
  ~Sort() override;
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  struct Entry {
    uint64_t prefix;
    char* row;
  };
  class Merge;

  void ReadInput();
  void Add(const Batch& input);
  size_t DropBeyondBound(const Batch& input, uint32_t* kept) const;
  void CutToBound();
  void SortEntries();
  void WriteRun();
  void MergeDownTo(size_t runs_max);
  size_t memory_bytes() const;
  bool Less(const Entry& a, const Entry& b);
  void Reset();

  const SortPlan& sort_plan_;
  std::unique_ptr<Node> child_;
  RowLayout layout_;
  RowComparator comparator_;
  uint64_t bound_ = UINT64_MAX;
  bool sorted_ = false;
  bool null_seen_ = false;  // in the first key

  std::unique_ptr<Arena> arena_;
  std::vector<Entry> entries_;
  bool has_threshold_ = false;
  uint64_t threshold_ = 0;  // prefix of the last row that counts: rows beyond it are not wanted

  std::vector<std::unique_ptr<SpillFile>> runs_;
  std::unique_ptr<Merge> merge_;
  uint64_t given_ = 0;
  BatchBuffer output_;
  Arena output_arena_;
};

}  // namespace sluice
