#include "optimizer/plan_text.h"

#include "catalog/builtin.h"
#include "optimizer/describe.h"

namespace sluice {
namespace {

std::string JoinWord(JoinType type) {
  switch (type) {
    case JoinType::kInner:
      return "";
    case JoinType::kLeft:
      return " Left";
    case JoinType::kRight:
      return " Right";
    case JoinType::kFull:
      return " Full";
    case JoinType::kSemi:
      return " Semi";
    case JoinType::kAnti:
      return " Anti";
  }
  return "";
}

// "(outer = inner) AND (…)"; keys of both sides over the join's children.
std::string KeyCondition(const HashJoinPlan& join) {
  std::string text;
  for (size_t i = 0; i < join.outer_keys.size(); i++) {
    text += (i == 0 ? "(" : " AND (") + DescribePlanExpr(*join.outer_keys[i], join) + " = " +
            DescribePlanExpr(*join.inner_keys[i], join) + ")";
  }
  return join.outer_keys.size() > 1 ? "(" + text + ")" : text;
}

std::string AggregateTitle(const AggregatePlan& plan) {
  std::string title = plan.mode == AggregateMode::kPartial ? "Partial "
                      : plan.mode == AggregateMode::kFinal ? "Finalize "
                                                           : "";
  return title + (plan.group_by.empty() ? "Aggregate" : "HashAggregate");
}

std::string ExprList(std::span<const Expr* const> exprs, const Plan& plan) {
  std::string text;
  for (const Expr* expr : exprs) text += (text.empty() ? "" : ", ") + DescribePlanExpr(*expr, plan);
  return text;
}

void DescribeScan(const ForeignScanPlan& scan, bool verbose, NodeText* text) {
  bool is_join = scan.relation_names.find(" JOIN ") != std::string_view::npos ||
                 scan.relation_names.find(", ") != std::string_view::npos;
  text->title = "Foreign Scan";
  if (is_join)
    text->details.emplace_back("Relations", scan.relation_names);
  else
    text->title += " on " + std::string(scan.relation_names);
  if (!verbose) return;
  text->details.emplace_back("Server", scan.server_name);
  if (scan.lines)
    text->details.emplace_back("Format", "csv lines");
  else
    text->details.emplace_back("Remote SQL", scan.sql);
}

void DescribeModify(const ModifyPlan& plan, bool verbose, NodeText* text) {
  text->title = plan.command == QueryCommand::kInsert   ? "Insert"
                : plan.command == QueryCommand::kUpdate ? "Update"
                                                        : "Delete";
  text->title += " on " + std::string(plan.relation_name);
  if (!verbose || plan.method == ModifyMethod::kRemote || plan.targets.empty()) return;
  const ModifyTarget& first = plan.targets[0];
  auto statement = [](std::string_view head, std::string_view tail) {
    return std::string(head) + (head.ends_with("VALUES ") ? "(...)" : "") + std::string(tail);
  };
  if (plan.method == ModifyMethod::kInsert) {
    text->details.emplace_back("Remote SQL", statement(first.insert_head, first.insert_tail));
    if (plan.may_copy) text->details.emplace_back("Remote SQL for many rows", first.copy_sql);
  } else {
    text->details.emplace_back("Remote SQL", statement(first.change_head, first.change_tail));
    if (plan.moves)
      text->details.emplace_back("Remote SQL for rows that move",
                                 statement(first.delete_head, first.delete_tail) + "; " +
                                     statement(first.insert_head, first.insert_tail));
  }
}

void DescribeOwn(const Plan& plan, bool verbose, NodeText* text) {
  auto add = [&](const char* name, std::string value) {
    text->details.emplace_back(name, std::move(value));
  };
  switch (plan.kind) {
    case PlanKind::kResult: {
      const auto& node = static_cast<const ResultPlan&>(plan);
      text->title = "Result";
      if (node.one_time_filter != nullptr)
        add("One-Time Filter", DescribePlanExpr(*node.one_time_filter, plan));
      break;
    }
    case PlanKind::kValuesScan:
      text->title = "Values Scan";
      break;
    case PlanKind::kFunctionScan: {
      const auto& node = static_cast<const FunctionScanPlan&>(plan);
      text->title = "Function Scan";
      add("Function Call", DescribePlanExpr(*node.call, plan));
      break;
    }
    case PlanKind::kVirtualScan:
      text->title =
          "Virtual Scan on " + std::string(static_cast<const VirtualScanPlan&>(plan).name);
      break;
    case PlanKind::kViewScan: {
      const auto& scan = static_cast<const ViewScanPlan&>(plan);
      text->title = scan.index == kInvalidOid ? fmt::format("View Scan on {}", scan.relation_name)
                                              : fmt::format("View Index Scan using {} on {}",
                                                            scan.index_name, scan.relation_name);
      break;
    }
    case PlanKind::kForeignScan:
      DescribeScan(static_cast<const ForeignScanPlan&>(plan), verbose, text);
      break;
    case PlanKind::kAppend: {
      const auto& node = static_cast<const AppendPlan&>(plan);
      text->title = node.parallel ? "Parallel Append" : "Append";
      if (node.claim_whole) add("Claim", "whole plans");
      break;
    }
    case PlanKind::kMergeAppend:
      text->title = "Merge Append";
      add("Sort Key",
          DescribeSortKeys(static_cast<const MergeAppendPlan&>(plan).keys, plan.output));
      break;
    case PlanKind::kProject:
      text->title = "Project";
      break;
    case PlanKind::kFilter:
      text->title = "Filter";
      add("Filter", DescribePlanExpr(*static_cast<const FilterPlan&>(plan).condition, plan));
      break;
    case PlanKind::kAggregate: {
      const auto& node = static_cast<const AggregatePlan&>(plan);
      text->title = AggregateTitle(node);
      if (node.grouping_sets.empty()) {
        if (!node.group_by.empty()) add("Group Key", ExprList(node.group_by, plan));
        break;
      }
      text->title = "MixedAggregate";
      for (std::span<const int> set : node.grouping_sets) {
        std::vector<const Expr*> members;
        for (int member : set) members.push_back(node.group_by[static_cast<size_t>(member)]);
        add("Group Key", members.empty() ? "()" : ExprList(members, plan));
      }
      break;
    }
    case PlanKind::kHashJoin: {
      const auto& node = static_cast<const HashJoinPlan&>(plan);
      text->title = (node.shared_build ? "Parallel Hash" : "Hash") + JoinWord(node.type) + " Join";
      add("Hash Cond", KeyCondition(node));
      if (node.condition != nullptr) add("Join Filter", DescribePlanExpr(*node.condition, plan));
      if (node.null_aware) add("Null Aware", "true");
      break;
    }
    case PlanKind::kNestLoop: {
      const auto& node = static_cast<const NestLoopPlan&>(plan);
      text->title = "Nested Loop";
      if (node.type != JoinType::kInner) text->title += JoinWord(node.type) + " Join";
      if (node.condition != nullptr) add("Join Filter", DescribePlanExpr(*node.condition, plan));
      break;
    }
    case PlanKind::kApply: {
      const auto& node = static_cast<const ApplyPlan&>(plan);
      text->title = "Nested Loop";
      if (node.type != JoinType::kInner) text->title += JoinWord(node.type) + " Join";
      if (node.condition != nullptr) add("Join Filter", DescribePlanExpr(*node.condition, plan));
      std::string params;
      for (size_t i = 0; i < node.params.size(); i++)
        params += fmt::format("{}${} = {}", i == 0 ? "" : ", ", node.params[i] + 1,
                              DescribePlanExpr(*node.arguments[i], plan));
      add("Parameters", params);
      break;
    }
    case PlanKind::kMaterialize: {
      const auto& node = static_cast<const MaterializePlan&>(plan);
      text->title = "Materialize";
      if (!node.index_keys.empty())
        add("Hash Key", ExprList(node.index_keys, plan) + " = " + ExprList(node.lookup, plan));
      break;
    }
    case PlanKind::kSort: {
      const auto& node = static_cast<const SortPlan&>(plan);
      text->title = "Sort";
      add("Sort Key", DescribeSortKeys(node.keys, plan.output));
      if (node.bound != nullptr) add("Top", DescribePlanExpr(*node.bound, plan));
      break;
    }
    case PlanKind::kLimit: {
      text->title = "Limit";
      if (static_cast<const LimitPlan&>(plan).with_ties) add("With Ties", "true");
      break;
    }
    case PlanKind::kDistinct: {
      const auto& node = static_cast<const DistinctPlan&>(plan);
      text->title = node.sorted_input ? "Unique" : "Distinct";
      std::string columns;
      for (int column : node.columns)
        columns += (columns.empty() ? "" : ", ") +
                   std::string(plan.output[static_cast<size_t>(column)].name);
      if (!columns.empty()) add("Group Key", columns);
      break;
    }
    case PlanKind::kSetOp: {
      const auto& node = static_cast<const SetOpPlan&>(plan);
      text->title = std::string("HashSetOp ") +
                    (node.op == SetOpKind::kIntersect ? "Intersect"
                     : node.op == SetOpKind::kExcept  ? "Except"
                                                      : "Union") +
                    (node.all ? " All" : "");
      break;
    }
    case PlanKind::kRecursiveUnion:
      text->title = "Recursive Union";
      break;
    case PlanKind::kWorkTableScan:
      text->title = "WorkTable Scan";
      break;
    case PlanKind::kWindowAgg: {
      const auto& node = static_cast<const WindowAggPlan&>(plan);
      text->title = "WindowAgg";
      if (!node.partition_by.empty())
        add("Partition Key", DescribeSortKeys(node.partition_by, plan.children[0]->output));
      if (!node.order_by.empty())
        add("Order Key", DescribeSortKeys(node.order_by, plan.children[0]->output));
      break;
    }
    case PlanKind::kGather:
      text->title = "Gather";
      add("Workers Planned", fmt::format("{}", static_cast<const GatherPlan&>(plan).workers));
      break;
    case PlanKind::kGatherMerge: {
      const auto& node = static_cast<const GatherMergePlan&>(plan);
      text->title = "Gather Merge";
      add("Workers Planned", fmt::format("{}", node.workers));
      add("Sort Key", DescribeSortKeys(node.keys, plan.output));
      break;
    }
    case PlanKind::kCteScan:
      text->title =
          fmt::format("CTE Scan on cte {}", static_cast<const CteScanPlan&>(plan).cte + 1);
      break;
    case PlanKind::kModify:
      DescribeModify(static_cast<const ModifyPlan&>(plan), verbose, text);
      break;
    case PlanKind::kCompletion: {
      const auto& node = static_cast<const CompletionPlan&>(plan);
      text->title = "Completion on " + std::string(node.server_name);
      if (verbose) add("Remote SQL", std::string(node.sql));
      break;
    }
  }
}

void PrintTree(const PlannedStatement& statement, const Plan& plan, bool verbose, int indent,
               bool arrow, std::string* out) {
  NodeText text = DescribeNode(plan, verbose);
  if (arrow) *out += std::string(static_cast<size_t>(indent), ' ') + "->  ";
  *out += text.title + "\n";
  int inside = arrow ? indent + 6 : indent + 2;
  for (const auto& [name, value] : text.details)
    *out += std::string(static_cast<size_t>(inside), ' ') + name + ": " + value + "\n";
  for (const Plan* child : plan.children) PrintTree(statement, *child, verbose, inside, true, out);
  for (int number : plan.sub_plans) {
    *out += std::string(static_cast<size_t>(inside), ' ') + fmt::format("SubPlan {}\n", number + 1);
    PrintTree(statement, *statement.sub_plans[static_cast<size_t>(number)].plan, verbose,
              inside + 2, true, out);
  }
}

}  // namespace

NodeText DescribeNode(const Plan& plan, bool verbose) {
  NodeText text;
  DescribeOwn(plan, verbose, &text);
  if (!verbose || plan.output.empty()) return text;
  std::string output;
  for (const OutputColumn& column : plan.output)
    output += (output.empty() ? "" : ", ") + std::string(column.name);
  text.details.insert(text.details.begin(), {"Output", output});
  return text;
}

bool IsScattered(const Plan& plan, const Plan& child) {
  return plan.kind == PlanKind::kAppend && static_cast<const AppendPlan&>(plan).parallel &&
         !child.partial;
}

std::string PlanTreeText(const PlannedStatement& statement, bool verbose) {
  std::string text;
  PrintTree(statement, *statement.root, verbose, 0, false, &text);
  for (size_t i = 0; i < statement.init_plans.size(); i++) {
    text += fmt::format("  InitPlan {}\n", statement.init_plans[i].param + 1);
    PrintTree(statement, *statement.init_plans[i].plan, verbose, 4, true, &text);
  }
  for (size_t i = 0; i < statement.ctes.size(); i++) {
    text += fmt::format("  CTE {}\n", i + 1);
    PrintTree(statement, *statement.ctes[i].plan, verbose, 4, true, &text);
  }
  if (statement.pass_through) text += "  Pass-Through: true\n";
  return text;
}

}  // namespace sluice
