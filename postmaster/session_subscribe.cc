// SUBSCRIBE: a view's rows and then its changes, epoch by epoch, as a COPY that ends when it is
// cancelled. What is read from the store is copied out before it is sent: a slow client holds no
// snapshot, and whoever is slower than subscription_retention gets an error.
#include <pg_query/pg_query.pb-c.h>

#include "common/assert.h"
#include "executor/row_store.h"
#include "postmaster/copy_sink.h"
#include "postmaster/query_privileges.h"
#include "postmaster/session.h"
#include "postmaster/view_definition.h"
#include "postmaster/view_reader.h"
#include "shm/live_views.h"
#include "shm/shared_memory.h"
#include "stream/row_codec.h"
#include "stream/stored_relation.h"

namespace sluice {
namespace {

constexpr size_t kReadBytes = 1 << 20;
// Before a row's own columns: epoch and weight.
constexpr size_t kOwnColumns = 2;

std::vector<Oid> SentTypes(const RelationInfo& view) {
  std::vector<Oid> types(kOwnColumns, kInt8Oid);
  for (const StoredColumn& column : view.columns) types.push_back(column.type);
  return types;
}

// The COPY: rows with epoch and weight in front.
class SubscriptionSink {
 public:
  SubscriptionSink(ClientSocket* client, const RelationInfo& view, const SessionSettings& settings)
      : codec_(TypesOf(view.columns)),
        buffer_(SentTypes(view)),
        sink_(client, kOwnColumns + view.columns.size(), {}, settings) {
    for (size_t c = 0; c < view.columns.size(); c++)
      place_.push_back(static_cast<int>(c + kOwnColumns));
    sink_.Begin({});
  }

  void Row(uint64_t epoch, int64_t weight, std::string_view row) {
    codec_.Decode(row, count_, place_, &buffer_);
    AddOwn(epoch, weight);
  }
  // All up to the epoch has been sent.
  void Progress(uint64_t epoch) {
    for (size_t c = kOwnColumns; c < buffer_.size(); c++) AppendNulls(1, count_, &buffer_[c]);
    AddOwn(epoch, 0);
  }
  void Snapshot(uint64_t epoch, const Batch& rows) {
    int64_t own[kOwnColumns] = {static_cast<int64_t>(epoch), 1};
    std::vector<Column> columns;
    for (int64_t& value : own)
      columns.push_back({.type = kInt8Oid, .physical = Physical::kInt8, .mask = 0, .data = &value});
    columns.insert(columns.end(), rows.columns.begin(), rows.columns.end());
    sink_.Rows({rows.rows, columns}, 0, rows.rows);
  }
  void Send() {
    Batch batch;
    buffer_.Show(count_, &batch);
    if (count_ > 0) sink_.Rows(batch, 0, count_);
    buffer_.Clear();
    count_ = 0;
  }
  void Flush() {
    Send();
    sink_.BeforeWait();
  }

 private:
  void AddOwn(uint64_t epoch, int64_t weight) {
    buffer_[0].column.Data<int64_t>()[count_] = static_cast<int64_t>(epoch);
    buffer_[1].column.Data<int64_t>()[count_] = weight;
    if (++count_ == kBatchRows) Send();
  }

  RowCodec codec_;
  BatchBuffer buffer_;
  CopySink sink_;
  std::vector<int> place_;
  size_t count_ = 0;
};

struct Change {
  uint64_t epoch;
  int64_t weight;
  std::string_view row;
};

std::string_view TextArgument(const PgQuery__FuncCall& call, size_t i) {
  if (call.n_args != 3 || call.args[i]->node_case != PG_QUERY__NODE__NODE_A_CONST ||
      call.args[i]->a_const->val_case != PG_QUERY__A__CONST__VAL_SVAL)
    Throw(sqlstate::kSyntaxError, "SUBSCRIBE TO name is wanted");
  return call.args[i]->a_const->sval->sval;
}

[[noreturn]] void ThrowForgotten(const Relation& view, uint64_t epoch, uint64_t kept_after) {
  throw QueryError(
      MakeError(sqlstate::kObjectNotInPrerequisiteState,
                "changes of materialized view \"{}\" behind epoch {} are not kept any more",
                view.name, epoch)
          .Detail(fmt::format("They are kept behind epoch {}.", kept_after))
          .Hint("Subscribe WITH SNAPSHOT; subscription_retention says how long changes are kept."));
}

// Sleeps until the view worker keeps the view's changes, and the view can be read. `view`: the
// newest.
std::unique_ptr<ViewSnapshot> ReadableSnapshot(const std::string& directory, const Relation& view) {
  std::unique_ptr<ViewSnapshot> snapshot = LookAtViews(directory);
  ViewStatus status = StatusOfView(snapshot.get(), view);
  if (status.state == ViewState::kFailed) throw QueryError(*status.error);
  if (status.state != ViewState::kCreated || !snapshot->ChangesKeptAfter(view.oid)) return nullptr;
  snapshot->CheckReadable(view.oid);
  return snapshot;
}

}  // namespace

void Session::RunSubscribe(const PgQuery__FuncCall& call) {
  if (transaction_.in_block())
    Throw(sqlstate::kActiveSqlTransaction, "SUBSCRIBE cannot run inside a transaction block");
  std::string_view options = TextArgument(call, 1), as_of = TextArgument(call, 2);
  bool with_snapshot = options.find("snapshot") != std::string_view::npos;
  bool with_progress = options.find("progress") != std::string_view::npos;
  if (with_snapshot && !as_of.empty())
    Throw(sqlstate::kSyntaxError, "WITH SNAPSHOT and AS OF exclude each other");
  // The name is read by the grammar.
  auto parsed =
      std::make_shared<const ParsedSql>(ParseSql("TABLE " + std::string(TextArgument(call, 0))));
  auto statement = MakeStatement(parsed, parsed->statements()[0], parsed->statements()[0].node);
  Analyze(statement.get());
  const Query* query = statement->query;
  if (query == nullptr || query->rels.size() != 1 || query->rels[0].table == nullptr ||
      query->rels[0].table->kind != RelationKind::kMaterializedView)
    throw QueryError(MakeError(sqlstate::kWrongObjectType, "\"{}\" is not a materialized view",
                               TextArgument(call, 0))
                         .Hint("Only materialized views can be subscribed to."));
  RequireMayRun(*catalog_, CurrentRole(), *query);
  Oid oid = query->rels[0].table->oid;
  RefuseOwnViews(std::span(&oid, 1));

  ViewNewsWaiter waiter;
  ViewSubscription subscription(oid);
  if (!subscription.ok())
    throw QueryError(MakeError(sqlstate::kConfigurationLimitExceeded,
                               "too many materialized views are subscribed to")
                         .Hint("There can be 256 at a time; end another subscription."));
  WakeViewWorker();
  std::optional<SubscriptionSink> sink;
  ChangePlace place{};  // where the next changes are
  std::unique_ptr<Arena> arena;
  for (;;) {
    CheckForInterrupts();
    ResetLatch(&my_proc->latch);
    const Relation* view = CommittedCatalog()->FindRelation(oid);
    if (view == nullptr)
      Throw(sqlstate::kUndefinedTable,
            "the materialized view was dropped while it was subscribed to");
    std::unique_ptr<ViewSnapshot> snapshot = ReadableSnapshot(config_.directory, *view);
    if (snapshot == nullptr) {
      WaitInterruptibly(WaitEvent::kSubscription);
      continue;
    }
    uint64_t newest = snapshot->epoch(), kept_after = *snapshot->ChangesKeptAfter(oid);
    if (!sink) {
      place = {newest + 1, 0};
      if (!as_of.empty()) {
        uint64_t epoch = std::strtoull(as_of.data(), nullptr, 10);
        if (epoch > newest)
          throw QueryError(
              MakeError(sqlstate::kInvalidParameterValue, "epoch {} has not come yet", epoch)
                  .Detail(fmt::format("The newest is {}.", newest)));
        if (epoch < kept_after) ThrowForgotten(*view, epoch, kept_after);
        place.epoch = epoch + 1;
      }
      RelationInfo info = *snapshot->Relation(oid);
      sink.emplace(&client_, info, session_settings_);
      if (with_snapshot) {
        SendSnapshot(std::move(snapshot), info,
                     [&](const Batch& rows) { sink->Snapshot(newest, rows); });
        if (with_progress) sink->Progress(newest);
        sink->Flush();
        continue;
      }
      if (with_progress) sink->Progress(place.epoch - 1);
    }
    if (kept_after >= place.epoch) ThrowForgotten(*view, place.epoch - 1, kept_after);
    arena = std::make_unique<Arena>();
    std::vector<Change> changes;
    bool more = snapshot->ReadChanges(oid, kReadBytes, &place,
                                      [&](uint64_t epoch, int64_t weight, std::string_view row) {
                                        changes.push_back({epoch, weight, arena->CopyString(row)});
                                      });
    if (!more) place = {newest + 1, 0};
    snapshot.reset();
    for (const Change& change : changes) sink->Row(change.epoch, change.weight, change.row);
    if (!more && with_progress && !changes.empty()) sink->Progress(newest);
    sink->Flush();
    if (!more) WaitInterruptibly(WaitEvent::kSubscription);
  }
}

// All rows of the view at the snapshot, which is let go of before the first is sent.
void Session::SendSnapshot(std::unique_ptr<ViewSnapshot> snapshot, const RelationInfo& view,
                           const std::function<void(const Batch&)>& send) {
  std::vector<OutputColumn> output;
  std::vector<std::string_view> names;
  for (const StoredColumn& column : view.columns) {
    output.push_back({column.name, column.type, column.typmod, column.collation});
    names.push_back(column.name);
  }
  std::string temp_directory = MakeQuerySession().temp_directory;
  RowStore rows(output, settings_.Integer("work_mem") * 1024, temp_directory);
  {
    std::unique_ptr<RowSource> scan = snapshot->Scan(view.oid, names);
    Batch batch;
    for (scan->Next(&batch); batch.rows > 0; scan->Next(&batch)) {
      CheckForInterrupts();
      rows.Append(batch);
    }
  }
  snapshot.reset();
  Batch batch;
  for (rows.Next(&batch); batch.rows > 0; rows.Next(&batch)) send(batch);
}

}  // namespace sluice
