#include "stream/delta_scan.h"

#include <algorithm>

#include "common/error.h"

namespace sluice {

DeltaScan::DeltaScan(const ViewScanPlan& plan, const RelationInfo& input, ViewContext& context)
    : DeltaOperator(context),
      input_(plan.relation),
      keyed_(input.keyed),
      by_shard_(input.keyed && input.by_shard),
      columns_(plan.columns.size()) {
  for (std::string_view name : plan.columns) {
    auto found = std::find_if(input.columns.begin(), input.columns.end(),
                              [&](const StoredColumn& column) { return column.name == name; });
    if (found == input.columns.end())
      Throw(sqlstate::kUndefinedColumn, "column \"{}\" is not among the stored ones", name);
    size_t output = stored_.size();
    if (found->type != plan.output[output].type)
      Throw(sqlstate::kDatatypeMismatch, "column \"{}\" is stored with another type", name);
    stored_.push_back(static_cast<size_t>(found - input.columns.begin()));
  }
  for (int key : input.key_columns) {
    auto found = std::find(stored_.begin(), stored_.end(), static_cast<size_t>(key));
    if (found == stored_.end()) {
      key_columns_.clear();
      break;
    }
    key_columns_.push_back(static_cast<int>(found - stored_.begin()));
  }
}

void DeltaScan::Push(size_t, const DeltaBatch& batch) {
  for (size_t i = 0; i < stored_.size(); i++) columns_[i] = batch.rows.columns[stored_[i]];
  Emit({{batch.rows.rows, columns_}, batch.weights, batch.keys});
}

void DeltaConstant::Start() {
  std::vector<int64_t> ones(kBatchRows, 1);
  std::unique_ptr<Node> node = MakeNode(plan_, *context_.state);
  Batch batch;
  for (node->Next(&batch); batch.rows > 0; node->Next(&batch)) Emit({batch, ones.data()});
}

}  // namespace sluice
