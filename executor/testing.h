// For tests of nodes: tables written as text, a node that gives their rows in batches of any size,
// and the rows of a node as text again.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "executor/node.h"
#include "types/codec.h"

namespace sluice::testing {

using Row = std::vector<std::optional<std::string>>;  // text format; nullopt is NULL
using Rows = std::vector<Row>;
inline constexpr std::nullopt_t kNull = std::nullopt;

// One statement's surroundings. Plans and expressions are made in its arena.
class Harness {
 public:
  Harness();

  Arena arena;
  SessionSettings settings;
  ExecutorContext context;
  ExecutionState state;
  std::vector<NodeStatistics> statistics;

  std::span<const OutputColumn> Columns(std::initializer_list<Oid> types);
  std::span<const OutputColumn> Columns(const std::vector<Oid>& types);

  const Expr* Input(int column, Oid type);
  const Expr* Inner(int column, Oid type);
  const Expr* Constant(Oid type, std::optional<std::string> text);
  const Expr* Call(Oid function, Oid type, std::vector<const Expr*> args,
                   Oid collation = kInvalidOid);
  Expr* Make(ExprKind kind, Oid type, std::vector<const Expr*> args);
  std::span<const Expr* const> List(std::vector<const Expr*> exprs);
  std::span<const SortKey> Keys(std::vector<SortKey> keys);

  // A plan that only says what a source's columns are.
  const Plan* SourcePlan(const std::vector<Oid>& types);
  template <typename PlanType>
  PlanType* NewPlan(PlanKind kind, const std::vector<Oid>& output,
                    std::vector<const Plan*> children) {
    PlanType* plan = arena.New<PlanType>();
    plan->kind = kind;
    plan->id = static_cast<int32_t>(statistics.size());
    statistics.emplace_back();
    plan->output = Columns(output);
    plan->children = arena.CopyArray(children);
    return plan;
  }
  // Gives `rows` in batches of `batch_rows`. A batch's memory is freed as soon as the next is asked
  // for, so that a node that keeps views of it fails under ASan.
  std::unique_ptr<Node> Source(const std::vector<Oid>& types, const Rows& rows,
                               size_t batch_rows = kBatchRows);

  Rows Run(Node& node);
};

Rows Sorted(Rows rows);
// Prints so that gtest's difference can be read.
std::string Text(const Rows& rows);

// A generator whose seed is printed when the test fails.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed), engine_(seed) {}
  uint64_t seed() const { return seed_; }
  int Below(int bound) { return static_cast<int>(engine_() % static_cast<uint64_t>(bound)); }
  bool Chance(int percent) { return Below(100) < percent; }
  std::mt19937_64& engine() { return engine_; }

 private:
  uint64_t seed_;
  std::mt19937_64 engine_;
};
uint64_t RandomSeed();  // SLUICE_TEST_SEED, or a new one

}  // namespace sluice::testing
