#include "stream/testing.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

#include "executor/node.h"
#include "executor/sub_plan.h"
#include "parser/analyze.h"
#include "parser/raw.h"
#include "types/codec.h"
#include "types/collation.h"

namespace sluice::testing {
namespace {

constexpr Oid kServer = 20001;

std::string ErrorText(const QueryError& e) {
  return SqlStateText(e.error.state) + " " + e.error.message;
}

TextRows Texts(const std::function<void(Batch*)>& next, const SessionSettings& settings,
               size_t columns) {
  TextRows rows;
  Batch batch;
  for (next(&batch); batch.rows > 0; next(&batch))
    for (size_t i = 0; i < batch.rows; i++) {
      TextRow& row = rows.emplace_back();
      for (size_t c = 0; c < columns; c++) {
        const Column& column = batch.columns[c];
        if (column.IsNull(i)) {
          row.emplace_back();
          continue;
        }
        std::string text;
        AppendText(column, i, settings, &text);
        row.emplace_back(text);
      }
    }
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace

std::string Print(const TextRows& rows) {
  std::string text;
  for (const TextRow& row : rows) {
    text += "(";
    for (const auto& value : row) text += (text.back() == '(' ? "" : ", ") + value.value_or("NULL");
    text += ")\n";
  }
  return text;
}

uint64_t TestSeed() {
  const char* given = std::getenv("SLUICE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

ViewHarness::ViewHarness() {
  LoadBuiltinCatalog();
  RegisterCollation({kDefaultCollationOid, CollationProvider::kC, "C", ""});
  static int count = 0;
  directory_ =
      "/tmp/sluice_stream_test." + std::to_string(getpid()) + "." + std::to_string(count++);
  Server server{};
  server.oid = kServer;
  server.name = "s1";
  server.wrapper = "postgres_fdw";
  catalog_.servers[kServer] = server;
  Reopen();
}

ViewHarness::~ViewHarness() {
  epoch_ = nullptr;
  graph_ = nullptr;
  store_ = nullptr;
  std::filesystem::remove_all(directory_);
}

void ViewHarness::Close() {
  epoch_ = nullptr;
  graph_ = nullptr;
  store_ = nullptr;
}

void ViewHarness::Reopen() {
  Close();
  ViewStoreOptions options;
  options.writer = true;
  options.map_bytes = size_t{1} << 30;
  store_ = ViewStore::Open(directory_, options).OrThrow();
  graph_ = std::make_unique<ViewGraph>(store_.get());
  for (const std::string& view : views_) {
    plans_[view] = Plan(view_sql_[view]);
    Status attached = graph_->Attach(OidOf(view), plans_[view]);
    if (!attached) throw QueryError(attached.error());
  }
}

Oid ViewHarness::OidOf(const std::string& relation) const {
  const Relation* found = catalog_.FindRelation("public", relation);
  if (found == nullptr) throw std::runtime_error("no relation " + relation);
  return found->oid;
}

ViewGraph::Epoch& ViewHarness::epoch() {
  if (epoch_ == nullptr) epoch_ = graph_->Begin();
  return *epoch_;
}

void ViewHarness::AddTable(const std::string& name, const std::vector<std::string>& columns,
                           std::vector<int> key_columns, bool complete) {
  Relation relation{};
  relation.oid = catalog_.next_oid++;
  relation.schema = "public";
  relation.name = name;
  relation.kind = RelationKind::kForeignTable;
  relation.server = kServer;
  SourceDefinition source{relation.oid, {}, key_columns};
  for (const std::string& text : columns) {
    size_t space = text.find(' ');
    ColumnInfo column;
    column.name = text.substr(0, space);
    const TypeInfo* type = catalog_.FindTypeByName("", text.substr(space + 1));
    if (type == nullptr) throw std::runtime_error("no type for " + text);
    column.type = type->oid;
    if (column.type == kTextOid) column.collation = kCCollationOid;
    source.columns.push_back({column.name, column.type, -1, column.collation});
    relation.columns.push_back(column);
  }
  relation.primary_key = key_columns;
  catalog_.relations[relation.oid] = relation;
  epoch().AddSource(source);
  epoch().SetSourceComplete(relation.oid, complete);
  Commit();
}

void ViewHarness::SetComplete(const std::string& table) {
  epoch().SetSourceComplete(OidOf(table), true);
}

std::shared_ptr<const ViewPlan> ViewHarness::Plan(const std::string& sql) {
  ParsedSql parsed = ParseSql(sql);
  Arena arena;
  std::vector<Oid> params;
  AnalyzeContext context{&catalog_, &settings_, {"public"}, "me", "db", &arena, &params};
  const Query* query = AnalyzeSelect(parsed.statements().at(0), context);
  return PlanView(*query, catalog_, settings_);
}

void ViewHarness::AddView(const std::string& name, const std::string& sql, FirstRows first_rows) {
  std::shared_ptr<const ViewPlan> plan = Plan(sql);
  Relation relation{};
  relation.oid = catalog_.next_oid++;
  relation.schema = "public";
  relation.name = name;
  relation.kind = RelationKind::kForeignTable;
  relation.server = kServer;
  for (const ResultColumn& column : plan->statement->columns) {
    ColumnInfo info;
    info.name = column.name;
    info.type = column.type;
    info.collation = column.collation;
    relation.columns.push_back(info);
  }
  epoch().AddView(relation.oid, plan, sql, first_rows);
  catalog_.relations[relation.oid] = relation;
  view_sql_[name] = sql;
  plans_[name] = plan;
  views_.push_back(name);
}

void ViewHarness::CreateView(const std::string& name, const std::string& sql, bool backfill,
                             FirstRows first_rows) {
  AddView(name, sql, first_rows);
  Commit();
  if (backfill) Build(name);
}

void ViewHarness::Build(const std::string& name, size_t rows_a_step) {
  Oid view = OidOf(name);
  for (bool more = true; more;) {
    more = false;
    for (const EdgeInfo& edge : epoch().Edges(view)) {
      if (edge.at_end) continue;
      epoch().Backfill(view, edge.input, rows_a_step);
      more = true;
    }
    Commit();
  }
}

void ViewHarness::DropView(const std::string& name) {
  epoch().DropView(OidOf(name));
  catalog_.relations.erase(OidOf(name));
  std::erase(views_, name);
}

std::vector<std::string> ViewHarness::Wire(const Relation& relation, const TextRow& row,
                                           std::vector<WireValue>* values) {
  std::vector<std::string> bytes;
  Arena arena;
  for (size_t c = 0; c < relation.columns.size(); c++)
    bytes.emplace_back(row.at(c)
                           ? ParseText(relation.columns[c].type, -1, *row[c], settings_, &arena)
                           : std::string_view());
  for (size_t c = 0; c < bytes.size(); c++)
    values->push_back(row[c] ? WireValue{bytes[c].data(), static_cast<int32_t>(bytes[c].size())}
                             : WireValue{});
  return bytes;
}

void ViewHarness::Change(ChangeKind kind, const std::string& table, const TextRow* old_row,
                         const TextRow* new_row, uint32_t shard) {
  const Relation& relation = *catalog_.FindRelation("public", table);
  ChangeBatch batch(relation.columns.size());
  std::vector<WireValue> old_values, new_values;
  std::vector<std::string> old_bytes, new_bytes;
  if (old_row != nullptr) old_bytes = Wire(relation, *old_row, &old_values);
  if (new_row != nullptr) new_bytes = Wire(relation, *new_row, &new_values);
  batch.Add(kind, old_values, new_values);
  epoch().Apply(relation.oid, shard, batch);
}

void ViewHarness::Insert(const std::string& table, const TextRows& rows, uint32_t shard) {
  for (const TextRow& row : rows) Change(ChangeKind::kInsert, table, nullptr, &row, shard);
}

void ViewHarness::InsertPiece(const std::string& table, const TextRows& rows, uint32_t shard) {
  const Relation& relation = *catalog_.FindRelation("public", table);
  std::vector<Oid> types;
  for (const ColumnInfo& column : relation.columns) types.push_back(column.type);
  BatchBuffer buffer(types);
  std::vector<std::vector<std::string>> bytes;
  for (size_t row = 0; row < rows.size(); row++) {
    std::vector<WireValue> values;
    bytes.push_back(Wire(relation, rows[row], &values));
    for (size_t c = 0; c < types.size(); c++) {
      if (!rows[row][c])
        buffer[c].Nulls()[row] = 1;
      else
        DecodeBinaryValue(types[c], bytes.back()[c], &buffer[c].column, row);
    }
  }
  Batch batch;
  buffer.Show(rows.size(), &batch);
  epoch().Insert(relation.oid, shard, batch);
}

void ViewHarness::Delete(const std::string& table, const TextRow& row, uint32_t shard) {
  Change(ChangeKind::kDelete, table, &row, nullptr, shard);
}

void ViewHarness::Update(const std::string& table, const TextRow& old_row, const TextRow& new_row,
                         uint32_t shard) {
  Change(ChangeKind::kUpdate, table, &old_row, &new_row, shard);
}

void ViewHarness::Truncate(const std::string& table, uint32_t shard) {
  epoch().Truncate(OidOf(table), shard);
}

void ViewHarness::Commit() {
  epoch().Commit();
  epoch_ = nullptr;
}

void ViewHarness::Rollback() {
  epoch_ = nullptr;
}

TextRows ViewHarness::Stored(const std::string& relation) {
  std::unique_ptr<ViewSnapshot> snapshot = store_->Snapshot();
  Oid oid = OidOf(relation);
  snapshot->CheckReadable(oid);
  std::vector<std::string_view> columns;
  std::optional<RelationInfo> info = snapshot->Relation(oid);
  for (const StoredColumn& column : info->columns) columns.emplace_back(column.name);
  std::unique_ptr<RowSource> rows = snapshot->Scan(oid, columns);
  return Texts([&](Batch* batch) { rows->Next(batch); }, settings_, columns.size());
}

TextRows ViewHarness::Recomputed(const std::string& view) {
  std::unique_ptr<ViewSnapshot> snapshot = store_->Snapshot();
  std::shared_ptr<const ViewPlan> plan = Plan(view_sql_.at(view));
  const PlannedStatement& statement = *plan->statement;
  Arena arena;
  ExecutionState state;
  ExecutorContext context;
  context.shared_arena = &arena;
  context.settings = &settings_;
  context.temp_directory = "/tmp";
  context.scan_view = [&](const ViewScanPlan& scan) -> std::unique_ptr<RowSource> {
    snapshot->CheckReadable(scan.relation);
    return snapshot->Scan(scan.relation, scan.columns, scan.index);
  };
  std::vector<NodeStatistics> statistics(static_cast<size_t>(statement.node_count));
  std::vector<Column> params(static_cast<size_t>(statement.exec_param_count));
  std::vector<std::unique_ptr<SubPlanRunner>> sub_plans(statement.sub_plans.size());
  state.exec_params = params;
  state.sub_plans = &sub_plans;
  state.statement = &statement;
  state.context = &context;
  state.statistics = &statistics;
  std::unique_ptr<Node> root = MakeNode(*statement.root, state);
  return Texts([&](Batch* batch) { root->Next(batch); }, settings_, statement.columns.size());
}

void ViewHarness::Check(const std::string& what) {
  for (const std::string& view : views_) {
    SCOPED_TRACE(what + " view " + view + ": " + view_sql_[view]);
    std::string expected, actual;
    try {
      expected = Print(Recomputed(view));
    } catch (const QueryError& e) {
      expected = ErrorText(e);
    }
    try {
      actual = Print(Stored(view));
    } catch (const QueryError& e) {
      actual = ErrorText(e);
    }
    EXPECT_EQ(actual, expected);
    if (actual != expected) return;
  }
}

void ViewHarness::Expect(const std::string& view, TextRows rows) {
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(Print(Stored(view)), Print(rows)) << view;
}

}  // namespace sluice::testing
