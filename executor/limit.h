// Limit: LIMIT, OFFSET and FETCH FIRST … WITH TIES. Stops asking its child as soon as it has its
// rows.
#pragma once

#include "common/arena.h"
#include "executor/node.h"

namespace sluice {

class Limit : public Node {
 public:
  Limit(const LimitPlan& plan, ExecutionState& state, std::unique_ptr<Node> child = nullptr);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  void Start();
  size_t CountTies(const Batch& batch, size_t from) const;
  void SaveKeys(const Batch& batch, size_t row);

  const LimitPlan& limit_plan_;
  std::unique_ptr<Node> child_;
  bool started_ = false;
  int64_t to_skip_ = 0;
  int64_t to_give_ = 0;  // of an unlimited one: as many as there can be
  bool ties_ = false;    // the limit is reached; rows equal to `last_keys_` still belong to it
  bool done_ = false;
  std::vector<Column> last_keys_;
  std::vector<Column> columns_;
  Arena arena_;
};

}  // namespace sluice
