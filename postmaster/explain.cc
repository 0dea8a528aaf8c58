#include "postmaster/explain.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <pg_query/pg_query.pb-c.h>
#include <strings.h>

#include "common/error.h"
#include "executor/executor.h"
#include "optimizer/plan_text.h"
#include "postmaster/row_sink.h"
#include "postmaster/running_query.h"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

bool BooleanOption(const PgQuery__DefElem& option) {
  if (option.arg == nullptr) return true;
  std::string_view word;
  switch (option.arg->node_case) {
    case PG_QUERY__NODE__NODE_INTEGER:
      if (option.arg->integer->ival == 0 || option.arg->integer->ival == 1)
        return option.arg->integer->ival == 1;
      break;
    case PG_QUERY__NODE__NODE_BOOLEAN:
      return option.arg->boolean->boolval;
    case PG_QUERY__NODE__NODE_STRING:
      word = option.arg->string->sval;
      break;
    default:
      break;
  }
  auto is = [&](const char* other) {
    return word.size() == strlen(other) && strncasecmp(word.data(), other, word.size()) == 0;
  };
  if (is("true") || is("on")) return true;
  if (is("false") || is("off")) return false;
  Throw(sqlstate::kSyntaxError, "{} requires a Boolean value", option.defname);
}

// The numbers of one node and of its streams.
class Numbers {
 public:
  Numbers(const PlannedStatement& statement, Executor* executor)
      : statement_(statement), executor_(executor) {
    if (executor != nullptr) streams_ = executor->Streams();
  }

  const Plan* SubPlanRoot(int number) const {
    return statement_.sub_plans[static_cast<size_t>(number)].plan;
  }

  bool measured() const { return executor_ != nullptr; }

  NodeStatistics Of(const Plan& plan) const {
    NodeStatistics own = executor_->Statistics(plan.id);
    if (!statement_.pass_through) return own;
    // Nobody here looked at the rows: the io worker counted them.
    own.loops = 1;
    own.rows = 0;
    for (const auto& info : streams_)
      if (plan.kind == PlanKind::kAppend || info.node_id == plan.id)
        own.rows += info.stream->rows.load(std::memory_order_relaxed);
    return own;
  }

  std::vector<const Stream*> StreamsOf(int32_t node_id) const {
    std::vector<const Stream*> found;
    for (const auto& info : streams_)
      if (info.node_id == node_id) found.push_back(info.stream);
    return found;
  }

  std::vector<std::vector<Executor::ClaimCount>> Claims(int32_t append) const {
    return executor_->Claims(append);
  }
  Executor::ReadyTime Ready(int32_t append) const { return executor_->Ready(append); }
  int32_t Launched(const Plan& gather) const { return executor_->WorkersLaunched(gather.id); }

 private:
  const PlannedStatement& statement_;
  Executor* executor_;
  std::vector<Executor::StreamInfo> streams_;
};

struct StreamNumbers {
  uint64_t rows, chunks, bytes;
  double first_row_ms, total_ms, held_back_ms;
};

StreamNumbers NumbersOf(const Stream& stream) {
  auto load = [](const auto& atomic) { return atomic.load(std::memory_order_relaxed); };
  int64_t submitted = load(stream.submitted_us), first = load(stream.first_row_us),
          ended = load(stream.ended_us);
  auto since = [&](int64_t at) {
    return at > 0 && submitted > 0 ? static_cast<double>(at - submitted) / 1000 : 0.0;
  };
  return {load(stream.rows),  load(stream.chunks),
          load(stream.bytes), since(first),
          since(ended),       static_cast<double>(load(stream.held_back_us)) / 1000};
}

std::string ScanName(const Plan& plan) {
  if (plan.kind != PlanKind::kForeignScan) return fmt::format("child {}", plan.id);
  const auto& scan = static_cast<const ForeignScanPlan&>(plan);
  return std::string(scan.server_name);
}

bool IsGather(const Plan& plan) {
  return plan.kind == PlanKind::kGather || plan.kind == PlanKind::kGatherMerge;
}

std::string Kilobytes(uint64_t bytes) {
  return fmt::format("{}kB", (bytes + 1023) / 1024);
}

double Milliseconds(int64_t microseconds) {
  return static_cast<double>(microseconds) / 1000;
}

double PerLoop(int64_t microseconds, uint64_t loops) {
  return static_cast<double>(microseconds) / 1000 /
         static_cast<double>(std::max<uint64_t>(1, loops));
}

// ---- text

class TextExplainer {
 public:
  TextExplainer(const ExplainOptions& options, const Numbers& numbers)
      : options_(options), numbers_(numbers) {}

  void Node(const Plan& plan, size_t indent, bool arrow) {
    NodeText text = DescribeNode(plan, options_.verbose);
    std::string line = arrow ? std::string(indent, ' ') + "->  " : "";
    lines_.push_back(line + text.title + Costs(plan) + Actual(plan));
    size_t inside = arrow ? indent + 6 : indent + 2;
    for (const auto& [name, value] : text.details) Line(inside, name + ": " + value);
    if (numbers_.measured()) Measured(plan, inside);
    for (const Plan* child : plan.children) {
      if (!IsScattered(plan, *child)) {
        Node(*child, inside, true);
        continue;
      }
      Line(inside, "->  Scatter");
      Node(*child, inside + 6, true);
    }
    for (int number : plan.sub_plans) {
      Line(inside, fmt::format("SubPlan {}", number + 1));
      Node(*numbers_.SubPlanRoot(number), inside + 2, true);
    }
  }

  void Line(size_t indent, const std::string& text) {
    lines_.push_back(std::string(indent, ' ') + text);
  }
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  std::string Costs(const Plan& plan) const {
    if (!options_.costs) return "";
    return fmt::format("  (cost={:.2f}..{:.2f} rows={:.0f} width={})", plan.startup_cost,
                       plan.total_cost, plan.rows, plan.width_bytes);
  }

  std::string Actual(const Plan& plan) const {
    if (!numbers_.measured()) return "";
    NodeStatistics n = numbers_.Of(plan);
    if (n.loops == 0) return " (never executed)";
    uint64_t rows = (n.rows + n.loops / 2) / n.loops;
    if (!options_.timing) return fmt::format(" (actual rows={} loops={})", rows, n.loops);
    return fmt::format(" (actual time={:.3f}..{:.3f} rows={} loops={})",
                       PerLoop(n.startup_us, n.loops), PerLoop(n.total_us, n.loops), rows, n.loops);
  }

  void Measured(const Plan& plan, size_t indent) {
    if (IsGather(plan)) Line(indent, fmt::format("Workers Launched: {}", numbers_.Launched(plan)));
    NodeStatistics n = numbers_.Of(plan);
    if (n.memory_bytes_max > 0 || n.spilled_bytes > 0) {
      std::string text = "Memory Usage: " + Kilobytes(n.memory_bytes_max);
      if (n.spilled_bytes > 0) text += "  Disk Usage: " + Kilobytes(n.spilled_bytes);
      Line(indent, text);
    }
    for (const Stream* stream : numbers_.StreamsOf(plan.id)) {
      StreamNumbers s = NumbersOf(*stream);
      std::string text = fmt::format("Stream: rows={} chunks={}", s.rows, s.chunks);
      if (options_.timing)
        text += fmt::format(" first row={:.3f} ms held back={:.3f} ms total={:.3f} ms",
                            s.first_row_ms, s.held_back_ms, s.total_ms);
      Line(indent, text);
    }
    if (plan.kind != PlanKind::kAppend) return;
    auto claims = numbers_.Claims(plan.id);
    Executor::ReadyTime ready = numbers_.Ready(plan.id);
    if (options_.timing && ready.ready_us > 0)
      Line(indent, fmt::format("Ready: {:.3f} ms", Milliseconds(ready.ready_us)));
    for (size_t participant = 0; participant < claims.size(); participant++) {
      std::string text;
      for (size_t i = 0; i < claims[participant].size() && i < plan.children.size(); i++) {
        const auto& claim = claims[participant][i];
        if (claim.slices == 0 && claim.rows == 0) continue;
        text += fmt::format("{}{} slices={} rows={}", text.empty() ? "" : ", ",
                            ScanName(*plan.children[i]), claim.slices, claim.rows);
      }
      if (text.empty() && claims.size() == 1) continue;
      std::string who = participant == 0 ? "Leader" : fmt::format("Worker {}", participant - 1);
      if (text.empty()) text = "nothing claimed";
      if (options_.timing && participant < ready.idle_us.size())
        text +=
            fmt::format("; idle while ready={:.3f} ms", Milliseconds(ready.idle_us[participant]));
      Line(indent, who + ": " + text);
    }
  }

  const ExplainOptions& options_;
  const Numbers& numbers_;
  std::vector<std::string> lines_;
};

// ---- JSON

Json JsonNode(const Plan& plan, const ExplainOptions& options, const Numbers& numbers) {
  NodeText text = DescribeNode(plan, options.verbose);
  Json node;
  size_t on = text.title.find(" on ");
  node["Node Type"] = text.title.substr(0, on);
  if (on != std::string::npos) node["Relation Name"] = text.title.substr(on + 4);
  node["Parallel Aware"] =
      plan.kind == PlanKind::kAppend && static_cast<const AppendPlan&>(plan).parallel;
  if (options.costs) {
    node["Startup Cost"] = plan.startup_cost;
    node["Total Cost"] = plan.total_cost;
    node["Plan Rows"] = static_cast<int64_t>(plan.rows);
    node["Plan Width"] = plan.width_bytes;
  }
  for (const auto& [name, value] : text.details) node[name] = value;
  if (numbers.measured()) {
    if (IsGather(plan)) node["Workers Launched"] = numbers.Launched(plan);
    NodeStatistics n = numbers.Of(plan);
    if (options.timing) {
      node["Actual Startup Time"] = PerLoop(n.startup_us, n.loops);
      node["Actual Total Time"] = PerLoop(n.total_us, n.loops);
    }
    node["Actual Rows"] = n.loops == 0 ? 0 : (n.rows + n.loops / 2) / n.loops;
    node["Actual Loops"] = n.loops;
    if (n.memory_bytes_max > 0) node["Memory Usage"] = (n.memory_bytes_max + 1023) / 1024;
    if (n.spilled_bytes > 0) node["Disk Usage"] = (n.spilled_bytes + 1023) / 1024;
    for (const Stream* stream : numbers.StreamsOf(plan.id)) {
      StreamNumbers s = NumbersOf(*stream);
      node["Streams"].push_back({{"Rows", s.rows},
                                 {"Chunks", s.chunks},
                                 {"Bytes", s.bytes},
                                 {"First Row Time", s.first_row_ms},
                                 {"Held Back Time", s.held_back_ms},
                                 {"Total Time", s.total_ms}});
    }
    if (plan.kind == PlanKind::kAppend) {
      for (const auto& participant : numbers.Claims(plan.id)) {
        Json claims = Json::array();
        for (size_t i = 0; i < participant.size() && i < plan.children.size(); i++)
          claims.push_back({{"Server", ScanName(*plan.children[i])},
                            {"Slices", participant[i].slices},
                            {"Rows", participant[i].rows}});
        node["Claims"].push_back(claims);
      }
      if (options.timing) {
        Executor::ReadyTime ready = numbers.Ready(plan.id);
        node["Ready Time"] = Milliseconds(ready.ready_us);
        for (int64_t idle_us : ready.idle_us)
          node["Idle While Ready Times"].push_back(Milliseconds(idle_us));
      }
    }
  }
  for (const Plan* child : plan.children)
    node["Plans"].push_back(JsonNode(*child, options, numbers));
  for (int number : plan.sub_plans) {
    Json child = JsonNode(*numbers.SubPlanRoot(number), options, numbers);
    child["Parent Relationship"] = "SubPlan";
    child["Subplan Name"] = fmt::format("SubPlan {}", number + 1);
    node["Plans"].push_back(child);
  }
  return node;
}

std::string JsonText(const PlannedStatement& statement, const ExplainOptions& options,
                     const Numbers& numbers, double planning_ms, double execution_ms) {
  Json plan = JsonNode(*statement.root, options, numbers);
  for (const InitPlan& init : statement.init_plans) {
    Json child = JsonNode(*init.plan, options, numbers);
    child["Parent Relationship"] = "InitPlan";
    child["Subplan Name"] = fmt::format("InitPlan {}", init.param + 1);
    plan["Plans"].push_back(child);
  }
  for (size_t i = 0; i < statement.ctes.size(); i++) {
    Json child = JsonNode(*statement.ctes[i].plan, options, numbers);
    child["Parent Relationship"] = "InitPlan";
    child["Subplan Name"] = fmt::format("CTE {}", i + 1);
    plan["Plans"].push_back(child);
  }
  Json entry;
  entry["Plan"] = plan;
  if (statement.pass_through) entry["Pass-Through"] = true;
  if (options.summary) entry["Planning Time"] = planning_ms;
  if (options.analyze && options.summary) entry["Execution Time"] = execution_ms;
  return Json::array({entry}).dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

ExplainOptions ReadExplainOptions(const PgQuery__ExplainStmt& statement) {
  ExplainOptions options;
  bool summary_set = false, timing_set = false;
  for (size_t i = 0; i < statement.n_options; i++) {
    const PgQuery__DefElem& option = *statement.options[i]->def_elem;
    std::string_view name = option.defname;
    if (name == "analyze")
      options.analyze = BooleanOption(option);
    else if (name == "verbose")
      options.verbose = BooleanOption(option);
    else if (name == "costs")
      options.costs = BooleanOption(option);
    else if (name == "timing")
      options.timing = BooleanOption(option), timing_set = true;
    else if (name == "summary")
      options.summary = BooleanOption(option), summary_set = true;
    else if (name == "buffers" || name == "settings" || name == "wal") {
      if (BooleanOption(option) && name != "settings")
        Refuse("EXPLAIN option {} is not supported", name);
    } else if (name == "format") {
      const char* format =
          option.arg != nullptr && option.arg->node_case == PG_QUERY__NODE__NODE_STRING
              ? option.arg->string->sval
              : "";
      if (strcasecmp(format, "json") == 0)
        options.json = true;
      else if (strcasecmp(format, "xml") == 0 || strcasecmp(format, "yaml") == 0)
        Refuse("EXPLAIN format {} is not supported", format);
      else if (strcasecmp(format, "text") != 0)
        Throw(sqlstate::kInvalidParameterValue,
              "unrecognized value for EXPLAIN option \"{}\": \"{}\"", name, format);
    } else {
      Throw(sqlstate::kSyntaxError, "unrecognized EXPLAIN option \"{}\"", name);
    }
  }
  if (timing_set && options.timing && !options.analyze)
    Throw(sqlstate::kInvalidParameterValue, "EXPLAIN option TIMING requires ANALYZE");
  if (!summary_set) options.summary = options.analyze;
  return options;
}

std::vector<std::string> Explain(RunningQuery* query, const ExplainOptions& options,
                                 double planning_ms) {
  double execution_ms = 0;
  Executor* executor = nullptr;
  if (options.analyze) {
    auto start = std::chrono::steady_clock::now();
    CountingSink sink;
    query->Run(&sink, 0);
    execution_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    executor = &query->executor();
  }
  const PlannedStatement& statement = query->plan();
  Numbers numbers(statement, executor);
  if (options.json) return {JsonText(statement, options, numbers, planning_ms, execution_ms)};
  TextExplainer text(options, numbers);
  text.Node(*statement.root, 0, false);
  for (const InitPlan& init : statement.init_plans) {
    text.Line(2, fmt::format("InitPlan {}", init.param + 1));
    text.Node(*init.plan, 4, true);
  }
  for (size_t i = 0; i < statement.ctes.size(); i++) {
    text.Line(2, fmt::format("CTE {}", i + 1));
    text.Node(*statement.ctes[i].plan, 4, true);
  }
  if (statement.pass_through) text.Line(0, "Pass-Through: true");
  if (options.summary) {
    text.Line(0, fmt::format("Planning Time: {:.3f} ms", planning_ms));
    if (options.analyze) text.Line(0, fmt::format("Execution Time: {:.3f} ms", execution_ms));
  }
  return text.Take();
}

}  // namespace sluice
