#include "stream/delta_top_n.h"

#include <algorithm>

#include "catalog/builtin.h"
#include "common/error.h"

namespace sluice {
namespace {

constexpr char kRow = 't';  // begins every key: LMDB has no empty ones

std::vector<KeyColumn> Columns(const DeltaTopN::Definition& definition) {
  std::vector<KeyColumn> columns;
  for (const SortKey& key : definition.keys) {
    const OutputColumn& column = definition.plan->output[static_cast<size_t>(key.target)];
    if (!EncodesOrder(column.type, key.collation))
      Refuse(
          "LIMIT or DISTINCT ON over rows ordered by a column of type {} under this collation "
          "is not supported in a live view",
          FormatType(column.type));
    columns.push_back({column.type, key.descending, key.nulls_first, key.collation});
  }
  return columns;
}

// The order of a plan's rows, in terms of its output; empty: none.
std::vector<SortKey> OrderOf(const Plan& plan) {
  switch (plan.kind) {
    case PlanKind::kSort: {
      const auto& sort = static_cast<const SortPlan&>(plan);
      return {sort.keys.begin(), sort.keys.end()};
    }
    case PlanKind::kDistinct:
      if (!static_cast<const DistinctPlan&>(plan).sorted_input) return {};
      return OrderOf(*plan.children[0]);
    case PlanKind::kFilter:
    case PlanKind::kLimit:
    case PlanKind::kMaterialize:
      return OrderOf(*plan.children[0]);
    case PlanKind::kProject: {
      std::vector<SortKey> keys = OrderOf(*plan.children[0]);
      const auto& project = static_cast<const ProjectPlan&>(plan);
      for (SortKey& key : keys) {
        int place = -1;
        for (size_t i = 0; i < project.expressions.size(); i++)
          if (project.expressions[i]->kind == ExprKind::kColumn &&
              project.expressions[i]->column == key.target)
            place = static_cast<int>(i);
        if (place < 0) Refuse("LIMIT over this ORDER BY is not supported in a live view");
        key.target = place;
      }
      return keys;
    }
    default:
      return {};
  }
}

}  // namespace

DeltaTopN::Definition DeltaTopN::Of(const LimitPlan& plan, ViewContext& context) {
  Definition definition;
  definition.plan = &plan;
  definition.keys = OrderOf(*plan.children[0]);
  definition.with_ties = plan.with_ties;
  Arena arena;
  auto number = [&](const Expr* expr, int64_t* to) {
    if (expr == nullptr) return true;
    Column value = EvaluateConstant(*expr, *context.state, &arena);
    if (value.IsNull(0)) return true;
    *to = value.At<int64_t>(0);
    return *to >= 0;
  };
  if (!number(plan.offset, &definition.offset))
    Throw(sqlstate::kInvalidRowCountInResultOffsetClause, "OFFSET must not be negative");
  if (!number(plan.limit, &definition.limit))
    Throw(sqlstate::kInvalidRowCountInLimitClause, "LIMIT must not be negative");
  return definition;
}

DeltaTopN::Definition DeltaTopN::Of(const DistinctPlan& plan) {
  Definition definition;
  definition.plan = &plan;
  definition.keys = OrderOf(*plan.children[0]);
  definition.group_keys = plan.columns.size();
  definition.limit = 1;
  for (size_t i = 0; i < definition.group_keys; i++)
    if (i >= definition.keys.size() || std::find(plan.columns.begin(), plan.columns.end(),
                                                 definition.keys[i].target) == plan.columns.end())
      Refuse("DISTINCT ON over this ORDER BY is not supported in a live view");
  return definition;
}

DeltaTopN::DeltaTopN(Definition definition, ViewContext& context)
    : DeltaOperator(context),
      definition_(std::move(definition)),
      encoder_(Columns(definition_)),
      codec_(ColumnTypes(definition_.plan->output)),
      table_(context.StateTable(definition_.plan->id, "")),
      output_(ColumnTypes(definition_.plan->output)) {}

std::string DeltaTopN::SortKeyOf(std::span<const Column> columns, size_t row,
                                 size_t* group_bytes) const {
  std::string key(1, kRow);
  *group_bytes = 1;
  for (size_t i = 0; i < definition_.keys.size(); i++) {
    encoder_.AppendColumn(i, columns[static_cast<size_t>(definition_.keys[i].target)], row, &key);
    if (i + 1 == definition_.group_keys) *group_bytes = key.size();
  }
  return key;
}

void DeltaTopN::Push(size_t, const DeltaBatch& batch) {
  std::string row_bytes;
  for (size_t row = 0; row < batch.rows.rows; row++) {
    size_t group_bytes;
    std::string sort_key = SortKeyOf(batch.rows.columns, row, &group_bytes);
    std::string group = sort_key.substr(0, group_bytes);
    if (!touched_.contains(group)) touched_.emplace(group, First(group));
    row_bytes.clear();
    codec_.Append(batch.rows.columns, row, &row_bytes);
    Add(sort_key, row_bytes, batch.weights[row]);
  }
}

// value: multiplicity, bytes of the sort key, the whole key where it is cut.
void DeltaTopN::Add(const std::string& sort_key, std::string_view row, int64_t weight) {
  std::string key = sort_key, buffer, bytes;
  key += row;
  std::string_view stored = StoredKey(key, &buffer);
  int64_t count = weight;
  if (std::optional<std::string_view> value = table_.Get(stored)) {
    Entry old = Unpack(stored, *value);
    if (old.key != key) Throw(sqlstate::kInternalError, "two rows have the same digest");
    count += old.count;
  }
  if (count < 0)
    Throw(sqlstate::kDataCorrupted, "a row is to be removed that is not among the sorted ones");
  if (count == 0) {
    table_.Delete(stored);
    return;
  }
  AppendVarint(static_cast<uint64_t>(count), &bytes);
  AppendVarint(sort_key.size(), &bytes);
  if (IsLongKey(key)) bytes += key;
  table_.Put(stored, bytes);
}

DeltaTopN::Entry DeltaTopN::Unpack(std::string_view stored, std::string_view value) {
  Entry entry;
  entry.count = static_cast<int64_t>(TakeVarint(&value));
  entry.sort_bytes = TakeVarint(&value);
  entry.key = IsLongKey(stored) ? value : stored;
  return entry;
}

template <typename Fn>
void DeltaTopN::ForEach(std::string_view group, Fn&& fn) const {
  // Long keys that agree as far as they are kept are not in order: such a run is sorted here.
  std::vector<Entry> run;
  auto give_run = [&] {
    std::sort(run.begin(), run.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
    for (const Entry& entry : run)
      if (entry.key.starts_with(group) && !fn(entry)) return false;
    run.clear();
    return true;
  };
  std::string_view start = group.substr(0, kCutKeyBytes);
  LmdbCursor cursor(table_);
  for (bool found = cursor.Seek(start); found && cursor.key().starts_with(start);
       found = cursor.Next()) {
    bool is_long = IsLongKey(cursor.key());
    bool same = !run.empty() && is_long &&
                cursor.key().substr(0, kCutKeyBytes) ==
                    std::string_view(run.front().key).substr(0, kCutKeyBytes);
    if (!same && !give_run()) return;
    run.push_back(Unpack(cursor.key(), cursor.value()));
  }
  give_run();
}

DeltaTopN::Rows DeltaTopN::First(std::string_view group) const {
  Rows rows;
  int64_t skip = definition_.offset, wanted = definition_.limit;
  std::string last_sort_key;
  if (wanted == 0) return rows;
  ForEach(group, [&](const Entry& entry) {
    int64_t skipped = std::min(skip, entry.count);
    skip -= skipped;
    int64_t available = entry.count - skipped;
    bool tie = wanted == 0 && entry.sort_key() == last_sort_key;
    if (wanted == 0 && !tie) return false;
    int64_t taken =
        tie || (definition_.with_ties && available > 0) ? available : std::min(available, wanted);
    if (taken > 0) rows[std::string(entry.row())] += taken;
    if (!tie) wanted -= std::min(wanted, taken);
    if (taken > 0) last_sort_key = entry.sort_key();
    return wanted > 0 || definition_.with_ties;
  });
  return rows;
}

void DeltaTopN::Finish() {
  auto emit = [this](const std::string& row, int64_t weight) {
    codec_.Decode(row, output_.Add(weight), &output_.buffer());
    if (!output_.full()) return;
    Emit(output_.Show());
    output_.Clear();
  };
  for (auto& [group, before] : touched_) {
    Rows after = First(group), gone;
    for (const auto& [row, count] : before) {
      auto found = after.find(row);
      int64_t change = count - (found == after.end() ? 0 : found->second);
      if (change > 0) gone[row] = change;
    }
    for (const auto& [row, count] : gone) emit(row, -count);
    Emit(output_.Show());
    output_.Clear();
    for (const auto& [row, count] : after) {
      auto found = before.find(row);
      int64_t change = count - (found == before.end() ? 0 : found->second);
      if (change > 0) emit(row, change);
    }
    Emit(output_.Show());
    output_.Clear();
  }
  touched_.clear();
}

}  // namespace sluice
