#include "stream/compiled_view.h"

#include "common/error.h"
#include "executor/sub_plan.h"
#include "optimizer/plan_text.h"
#include "stream/delta_aggregate.h"
#include "stream/delta_filter.h"
#include "stream/delta_join.h"
#include "stream/delta_set_op.h"
#include "stream/delta_top_n.h"
#include "stream/delta_window.h"
#include "stream/stored_relation.h"
#include "stream/view_index.h"

namespace sluice {

// Where the root's deltas go: as stored bytes into the view's net change.
class CompiledView::Sink : public DeltaOperator {
 public:
  Sink(ViewContext& context, std::span<const Oid> types, DeltaBuffer* delta)
      : DeltaOperator(context), codec_(types), delta_(delta) {}

  void SendTo(const Emitted* to) { to_ = to; }

  void Push(size_t, const DeltaBatch& batch) override {
    if (to_ != nullptr) return (*to_)(batch);
    for (size_t row = 0; row < batch.rows.rows; row++) {
      row_.clear();
      codec_.Append(batch.rows.columns, row, &row_);
      delta_->Add(batch.keys == nullptr ? std::string_view(row_) : batch.keys[row], row_,
                  batch.weights[row]);
    }
  }

 private:
  RowCodec codec_;
  std::string row_;
  DeltaBuffer* delta_;
  const Emitted* to_ = nullptr;
};

CompiledView::CompiledView(Oid view, std::shared_ptr<const ViewPlan> plan,
                           StoreTransaction* transaction, bool create,
                           const std::function<const RelationInfo&(Oid)>& info,
                           std::function<const StoredRelation&(Oid)> stored)
    : plan_(std::move(plan)),
      info_(info),
      statistics_(static_cast<size_t>(plan_->statement->node_count)),
      exec_params_(static_cast<size_t>(plan_->statement->exec_param_count)),
      sub_plans_(plan_->statement->sub_plans.size()),
      context_{view, transaction, create, &state_, {}} {
  executor_context_.shared_arena = &arena_;
  executor_context_.settings = &plan_->settings;
  const char* directory = nullptr;  // what the executor's nodes spill goes beside the store
  mdb_env_get_path(mdb_txn_env(transaction->txn), &directory);
  executor_context_.temp_directory = directory;
  executor_context_.scan_view = [this, stored](const ViewScanPlan& scan) {
    return ScanStored(stored(scan.relation),
                      std::make_shared<const RelationInfo>(info_(scan.relation)), scan.columns);
  };
  state_.exec_params = exec_params_;
  state_.sub_plans = &sub_plans_;
  state_.statement = plan_->statement;
  state_.context = &executor_context_;
  state_.statistics = &statistics_;
  for (const ResultColumn& column : plan_->statement->columns)
    columns_.push_back({std::string(column.name), column.type, column.typmod, column.collation});
  sink_ = std::make_unique<Sink>(context_, TypesOf(columns_), &delta_);
  root_ = Compile(*plan_->statement->root);
  root_->SetParent(sink_.get(), 0);
}

CompiledView::~CompiledView() = default;

DeltaOperator* CompiledView::Compile(const Plan& plan) {
  std::vector<DeltaOperator*> children;
  std::unique_ptr<DeltaOperator> made = Make(plan, &children);
  if (made == nullptr) return children[0];  // the node does nothing to a bag
  for (size_t i = 0; i < children.size(); i++) children[i]->SetParent(made.get(), i);
  operators_.push_back(std::move(made));
  return operators_.back().get();
}

// The operator of a node, whose inputs go to `children`; nullptr: the node's only input will do.
std::unique_ptr<DeltaOperator> CompiledView::Make(const Plan& plan,
                                                  std::vector<DeltaOperator*>* children) {
  switch (plan.kind) {
    case PlanKind::kViewScan:
    case PlanKind::kAppend:
    case PlanKind::kFilter:
    case PlanKind::kProject:
    case PlanKind::kSort:
    case PlanKind::kMaterialize:
    case PlanKind::kAggregate:
    case PlanKind::kDistinct:
      break;
    default:
      row_by_row_ = false;
  }
  auto compile_children = [&] {
    for (const Plan* child : plan.children) children->push_back(Compile(*child));
  };
  switch (plan.kind) {
    case PlanKind::kViewScan: {
      const auto& scan = static_cast<const ViewScanPlan&>(plan);
      auto made = std::make_unique<DeltaScan>(scan, info_(scan.relation), context_);
      scans_.push_back(made.get());
      return made;
    }
    case PlanKind::kResult:
    case PlanKind::kValuesScan:
    case PlanKind::kFunctionScan:
      return std::make_unique<DeltaConstant>(plan, context_);
    case PlanKind::kAppend:
      compile_children();
      return std::make_unique<DeltaAppend>(context_);
    case PlanKind::kFilter:
      compile_children();
      return std::make_unique<DeltaFilter>(static_cast<const FilterPlan&>(plan), *children->front(),
                                           context_);
    case PlanKind::kProject:
      compile_children();
      return std::make_unique<DeltaProject>(static_cast<const ProjectPlan&>(plan),
                                            *children->front(), context_);
    case PlanKind::kAggregate: {
      compile_children();
      auto made =
          std::make_unique<DeltaAggregate>(static_cast<const AggregatePlan&>(plan), context_);
      aggregates_ = true;
      row_by_row_ = row_by_row_ && made->in_memory();
      return made;
    }
    case PlanKind::kDistinct: {
      const auto& distinct = static_cast<const DistinctPlan&>(plan);
      compile_children();
      row_by_row_ = row_by_row_ && !distinct.sorted_input;
      aggregates_ = true;
      if (distinct.sorted_input)
        return std::make_unique<DeltaTopN>(DeltaTopN::Of(distinct), context_);
      if (!distinct.columns.empty() && distinct.columns.size() < plan.output.size())
        Refuse("DISTINCT over some columns is not supported in a live view");
      return std::make_unique<DeltaAggregate>(*DeltaAggregate::AsAggregate(distinct, &arena_),
                                              context_);
    }
    case PlanKind::kHashJoin:
    case PlanKind::kNestLoop:
      compile_children();
      return std::make_unique<DeltaJoin>(plan, context_);
    case PlanKind::kApply: {
      children->push_back(Compile(*plan.children[0]));
      auto made = std::make_unique<DeltaApply>(static_cast<const ApplyPlan&>(plan), context_);
      ReadStored(*plan.children[1], made.get());
      return made;
    }
    case PlanKind::kSetOp:
      compile_children();
      return std::make_unique<DeltaSetOp>(static_cast<const SetOpPlan&>(plan), context_);
    case PlanKind::kWindowAgg:
      compile_children();
      return std::make_unique<DeltaWindow>(static_cast<const WindowAggPlan&>(plan), context_);
    case PlanKind::kLimit:
      compile_children();
      return std::make_unique<DeltaTopN>(
          DeltaTopN::Of(static_cast<const LimitPlan&>(plan), context_), context_);
    case PlanKind::kSort:  // the order of stored rows is their key's
    case PlanKind::kMaterialize:
      compile_children();
      return nullptr;
    default:
      Refuse("{} is not supported in a live view", DescribeNode(plan, false).title);
  }
}

Oid CompiledView::SameRowsAs() const {
  const Plan* plan = plan_->statement->root;
  if (plan->output.size() != columns_.size()) return kInvalidOid;
  for (; plan->kind != PlanKind::kViewScan; plan = plan->children[0]) {
    if (plan->kind == PlanKind::kSort || plan->kind == PlanKind::kMaterialize) continue;
    if (plan->kind != PlanKind::kProject) return kInvalidOid;
    const auto& expressions = static_cast<const ProjectPlan*>(plan)->expressions;
    if (expressions.size() != plan->children[0]->output.size()) return kInvalidOid;
    for (size_t i = 0; i < expressions.size(); i++) {
      const Expr& expr = *expressions[i];
      if (expr.kind != ExprKind::kColumn || expr.rel != kInput ||
          expr.column != static_cast<int>(i))
        return kInvalidOid;
    }
  }
  const auto& scan = *static_cast<const ViewScanPlan*>(plan);
  const RelationInfo& input = info_(scan.relation);
  if (scan.columns.size() != input.columns.size() || columns_.size() != input.columns.size())
    return kInvalidOid;
  for (size_t i = 0; i < scan.columns.size(); i++)
    if (scan.columns[i] != input.columns[i].name || columns_[i].type != input.columns[i].type)
      return kInvalidOid;
  return scan.relation;
}

size_t CompiledView::memory_bytes() const {
  size_t bytes = delta_.memory_bytes();
  for (const auto& op : operators_) bytes += op->memory_bytes();
  return bytes;
}

bool CompiledView::keyed() const {
  return root_->keyed();
}

bool CompiledView::keyed_by_shard() const {
  return root_->keyed_by_shard();
}

std::vector<int> CompiledView::key_columns() const {
  std::vector<int> keys = root_->key_columns();
  for (int key : keys)
    if (key >= static_cast<int>(columns_.size())) return {};  // junk: not stored
  return keys;
}

void CompiledView::Start() {
  for (auto& op : operators_) op->Start();
}

// Notes which relations an inner plan reads.
void CompiledView::ReadStored(const Plan& plan, DeltaApply* apply) {
  if (plan.kind == PlanKind::kViewScan)
    inner_scans_.emplace_back(static_cast<const ViewScanPlan&>(plan).relation, apply);
  for (const Plan* child : plan.children) ReadStored(*child, apply);
  for (int number : plan.sub_plans)
    ReadStored(*plan_->statement->sub_plans[static_cast<size_t>(number)].plan, apply);
}

void CompiledView::Push(Oid input, const DeltaBatch& rows) {
  for (auto& [relation, apply] : inner_scans_)
    if (relation == input) apply->InnerChanged();
  for (DeltaScan* scan : scans_)
    if (scan->input() == input) scan->Push(0, rows);
}

void CompiledView::PushTo(Oid input, const DeltaBatch& rows, const Emitted& to) {
  sink_->SendTo(&to);
  try {
    Push(input, rows);
  } catch (...) {
    sink_->SendTo(nullptr);
    throw;
  }
  sink_->SendTo(nullptr);
}

void CompiledView::Finish(bool building) {
  context_.building = building;
  context_.more = false;
  for (auto& op : operators_) op->Finish();
}

}  // namespace sluice
