// One epoch: which transactions of which shards it takes in, what they do to the source copies, and
// what is written with them.
#include <algorithm>
#include <chrono>

#include "common/assert.h"
#include "common/log.h"
#include "postmaster/child_process.h"
#include "postmaster/view_definition.h"
#include "postmaster/view_worker.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

// An epoch takes in so much from each shard; the rest waits for the next.
constexpr size_t kEpochBytesMax = 16 << 20;
// Rows along an edge in an epoch: few while somebody reads views, who is to see changes soon; else
// as memory allows.
constexpr size_t kEdgeRows = 16 * 1024, kEdgeRowsUnread = 256 * 1024;
constexpr size_t kEdgeRowBytes = 2048;  // what a row takes until the epoch is committed, about
// Changes of a table's shard that are applied together.
constexpr size_t kBatchChanges = 64 * 1024;
// Rows of an epoch's batches that are copied; beyond it, into a file.
constexpr size_t kCopiedBytes = 16 << 20;
constexpr size_t kIndexRows = 32 * 1024;
constexpr int64_t kConfirmUs = 1'000'000;
constexpr int kFullStoreRetryMs = 1000;
// More than can wait for one standby at a time.
constexpr size_t kRecentXids = 100'000;

}  // namespace

// Transactions of the shard that can be taken: up to the mark of a piece whose rows are on their
// way.
size_t ViewWorker::ReadyOf(ShardFeed& feed) const {
  std::vector<const ViewLeaf*> reading;
  for (const auto& [oid, source] : sources_)
    for (const auto& leaf : source->leaves)
      if (leaf->feed() == &feed && leaf->reading()) reading.push_back(leaf.get());
  const std::deque<ShardTransaction>& ready = feed.reader().ready();
  if (reading.empty()) return ready.size();
  for (size_t i = 0; i < ready.size(); i++)
    for (const std::string& mark : ready[i].marks)
      for (const ViewLeaf* leaf : reading)
        if (leaf->Awaits(mark)) return i;
  return ready.size();
}

bool ViewWorker::EpochIsDue(int64_t now_us) const {
  if (edges_open_ || !new_slots_.empty() || !drop_views_.empty() || !drop_sources_.empty() ||
      !removed_parts_.empty() || !dropped_leaves_.empty() || !new_failures_.empty() ||
      !forgotten_failures_.empty())
    return true;
  for (const auto& [oid, view] : views_)
    if (!view.stored) return true;
  if (SubscriptionIsNew()) return true;
  for (const auto& [oid, us] : edge_next_us_)
    if (now_us >= us) return true;
  bool unconfirmed = false;
  size_t ready = 0;
  for (const auto& [server, feed] : feeds_) {
    ready += ReadyOf(*feed);
    if (feed->state() != ShardFeed::State::kStreaming) continue;
    unconfirmed |= feed->reader().received_lsn() > feed->record().applied_lsn ||
                   feed->confirmed_lsn() < feed->record().applied_lsn ||
                   !feed->reader().ready().empty();
  }
  // What was left waits for the other part of a transaction: until something else has come.
  if (part_settled_) return true;
  if (((ready > 0 && missing_parts_.empty()) || ready != ready_left_) && !MoreToShare(now_us))
    return true;
  if (unconfirmed && now_us - last_epoch_us_ >= kConfirmUs) return true;
  for (const auto& [oid, source] : sources_) {
    if (!source->stored) continue;
    for (const auto& leaf : source->leaves)
      if (leaf->dirty() || leaf->HasRowsToInsert()) return true;
  }
  return false;
}

// Whether nothing has come but marks of pieces, and others that are being read will come soon.
bool ViewWorker::MoreToShare(int64_t now_us) const {
  if (now_us - last_epoch_us_ >= kPieceWaitUs) return false;
  for (const auto& [server, feed] : feeds_)
    for (const ShardTransaction& transaction : feed->reader().ready())
      if (!transaction.changes.empty() || transaction.marks.empty()) return false;
  for (const auto& [oid, source] : sources_)
    for (const auto& leaf : source->leaves)
      if (leaf->phase() == ViewLeaf::Phase::kRead && leaf->reading()) return true;
  return false;
}

// The longest prefix of every shard's transactions that is closed under those over several shards:
// all parts of one are in, or none.
ViewWorker::EpochCut ViewWorker::Cut(int64_t now_us, const EpochCut& exactly) {
  EpochCut cut;
  std::map<uint64_t, ShardFeed*> by_system;
  for (const auto& [server, feed] : feeds_) {
    const auto& ready = feed->reader().ready();
    size_t count = 0, bytes = 0;
    size_t takeable = ReadyOf(*feed);
    while (count < takeable && (count == 0 || bytes < kEpochBytesMax))
      bytes += ready[count++].bytes;
    if (auto wanted = exactly.find(feed.get()); wanted != exactly.end()) count = wanted->second;
    cut[feed.get()] = count;
    if (feed->wanted() && !feed->record().system_identifier.empty())
      by_system[feed->system_identifier()] = feed.get();
  }
  for (auto& [key, part] : missing_parts_) part.wanted = false;
  auto has = [&](ShardFeed* feed, const std::string& gid) {
    const auto& ready = feed->reader().ready();
    return std::any_of(ready.begin(), ready.begin() + static_cast<ptrdiff_t>(cut[feed]),
                       [&](const ShardTransaction& t) { return t.gid == gid; });
  };
  auto closed = [&](ShardFeed* feed, const ShardTransaction& transaction) {
    if (transaction.end_lsn <= feed->record().applied_lsn) return true;
    for (uint64_t participant : transaction.participants) {
      auto other = by_system.find(participant);
      if (other == by_system.end() || other->second == feed) continue;
      if (has(other->second, transaction.gid)) continue;
      MissingPart& part = MissPart(other->second, transaction.gid, now_us);
      part.wanted = true;
      if (!part.never) return false;
    }
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& [feed, count] : cut) {
      const auto& ready = feed->reader().ready();
      for (size_t i = 0; i < count; i++) {
        if (ready[i].gid.empty() || closed(feed, ready[i])) continue;
        count = i;
        moved = true;
        break;
      }
    }
  }
  std::erase_if(missing_parts_, [](const auto& entry) { return !entry.second.wanted; });
  return cut;
}

// --- subscriptions

bool ViewWorker::SubscriptionIsNew() const {
  bool is_new = false;
  ForEachSubscribedView(shared_memory->live_views, [&](Oid oid) {
    auto view = views_.find(oid);
    is_new |= view != views_.end() && view->second.stored && !graph_->KeepsChanges(oid);
  });
  return is_new;
}

// The views have the indexes that the catalog says. False: all are complete.
bool ViewWorker::KeepIndexes(ViewGraph::Epoch* epoch) {
  for (const auto& [oid, view] : views_) {
    const Relation* relation = catalog_->FindRelation(oid);
    if (relation == nullptr) continue;
    std::vector<StoredIndex> indexes;
    for (const Index& index : relation->indexes) indexes.push_back({index.oid, index.columns});
    epoch->SetIndexes(oid, indexes);
  }
  return epoch->BuildIndexes(kIndexRows);
}

// Changes are kept of views that somebody subscribes to, or has within the retention.
void ViewWorker::KeepChanges(ViewGraph::Epoch* epoch) {
  int64_t now_us = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  ForEachSubscribedView(shared_memory->live_views, [&](Oid oid) {
    if (epoch->Relation(oid)) epoch->KeepChanges(oid, now_us);
  });
  epoch->ForgetChanges(now_us - settings_->Integer("subscription_retention") * 1'000'000);
}

// --- changes → steps

std::vector<ViewWorker::Route>& ViewWorker::RoutesOf(ShardFeed* feed, const PublishedTable* table) {
  auto [found, is_new] = routes_.try_emplace({feed, table});
  if (!is_new) return found->second;
  for (const auto& [oid, source] : sources_)
    for (const auto& leaf : source->leaves)
      // Of one that is not stored yet, changes are kept from when it is in the publication.
      if (leaf->described() && leaf->feed() == feed && leaf->Is(*table)) {
        try {
          Route route{source.get(), leaf.get(), leaf->MapColumns(*table)};
          route.in_order = route.columns.size() == table->columns.size();
          for (size_t i = 0; i < route.columns.size(); i++)
            route.in_order = route.in_order && route.columns[i] == static_cast<int>(i);
          found->second.push_back(std::move(route));
        } catch (const QueryError& error) {
          throw ViewFailure(oid, error.error);
        }
      }
  return found->second;
}

std::span<const WireValue> ViewWorker::CopyRow(std::span<const WireValue> row, Input* input) {
  if (!input->spilled_rows && input->rows.allocated_bytes() > kCopiedBytes) {
    input->spilled_rows.emplace(spilled_, kCopiedBytes);
    input->rows_in = &*input->spilled_rows;
  }
  return input->rows_in->CopyArray(row);
}

void ViewWorker::AddChange(const Route& route, ChangeKind kind, std::span<const WireValue> old_row,
                           std::span<const WireValue> new_row, Input* input) {
  if (auto full = input->open_batch.find(route.leaf);
      full != input->open_batch.end() && input->steps[full->second].batch->size() >= kBatchChanges)
    input->open_batch.erase(full);
  auto [open, is_new] = input->open_batch.try_emplace(route.leaf, input->steps.size());
  if (is_new)
    input->steps.push_back({Step::kApply,
                            route.source,
                            route.leaf,
                            std::make_unique<ChangeBatch>(route.source->table.columns.size()),
                            {}});
  if (!route.in_order) {
    old_row = CopyRow(old_row, input);
    new_row = CopyRow(new_row, input);
  }
  input->steps[open->second].batch->Add(kind, old_row, new_row);
}

void ViewWorker::TakeTransaction(ShardFeed* feed, const ShardTransaction& transaction,
                                 Input* input) {
  bool replayed = transaction.end_lsn <= feed->record().applied_lsn;
  if (!transaction.changes.empty()) {
    std::deque<uint32_t>& recent = recent_xids_[feed];
    recent.push_back(transaction.xid);
    if (recent.size() > kRecentXids) recent.pop_front();
  }
  for (const RowChange& change : transaction.changes) {
    for (const Route& route : RoutesOf(feed, change.table)) {
      LeafBackfill& backfill = route.leaf->backfill();
      if (change.kind == RowChange::kTruncate) {
        backfill.TakeTruncate(transaction);
        route.leaf->Truncated();
        if (replayed || !route.source->stored) continue;
        input->open_batch.erase(route.leaf);
        input->steps.push_back({Step::kTruncate, route.source, route.leaf, nullptr, {}});
        continue;
      }
      auto map = [&](std::span<const WireValue> row, std::vector<WireValue>* mapped) {
        if (row.empty() || route.in_order) return row;
        mapped->clear();
        for (int column : route.columns)
          mapped->push_back(column < 0 ? WireValue{} : row[static_cast<size_t>(column)]);
        return std::span<const WireValue>(*mapped);
      };
      RowChange mapped = change;
      mapped.old_row = map(change.old_row, &input->old_row);
      mapped.new_row = map(change.new_row, &input->new_row);
      backfill.Take(mapped, transaction, replayed,
                    [&](ChangeKind kind, std::span<const WireValue> old_row,
                        std::span<const WireValue> new_row) {
                      AddChange(route, kind, old_row, new_row, input);
                    });
    }
  }
  if (replayed) return;
  for (const std::string& mark : transaction.marks) TakeMark(feed, mark, input);
}

// The piece whose mark it is counts now.
void ViewWorker::TakeMark(ShardFeed* feed, const std::string& mark, Input* input) {
  for (const auto& [oid, source] : sources_) {
    for (const auto& leaf : source->leaves) {
      ViewLeaf::Piece* piece = leaf->oldest_piece();
      if (leaf->feed() == feed && leaf->Awaits(mark)) leaf->MarkPassed();
      if (leaf->feed() != feed || piece == nullptr || piece->mark != mark) continue;
      Route route{source.get(), leaf.get(), {}};
      if (leaf->backfill().TruncatedAfter(piece->snapshot)) {
        leaf->ReadAgain();
        return;
      }
      input->open_batch.erase(leaf.get());
      input->steps.push_back(
          {Step::kInsert, source.get(), leaf.get(), nullptr, std::move(piece->rows)});
      bool whole = leaf->backfill().Count(
          piece->snapshot, piece->end,
          [&](ChangeKind kind, std::span<const WireValue> old_row,
              std::span<const WireValue> new_row) {
            AddChange(route, kind, old_row, new_row, input);
          },
          &input->memory);
      if (whole)
        leaf->Counted();
      else
        leaf->Restart(false);
      return;
    }
  }
}

// Views that use a column of a table.
std::vector<Oid> ViewWorker::UsersOf(Oid table, const std::string& column) const {
  std::vector<Oid> users;
  for (const auto& [oid, view] : views_)
    if (view.plan != nullptr && UsesColumn(*view.plan, table, column)) users.push_back(oid);
  return users;
}

// A change without some of the source's columns is to be applied: they were dropped, and views that
// use them cannot go on. (One that comes before the table's rows were read is from before ADD
// COLUMN, and what is read has it.) False: some were set aside.
bool ViewWorker::DropColumns(Route route) {  // a copy: routes go with the views
  LeafBackfill& backfill = route.leaf->backfill();
  if (!backfill.complete() && !backfill.cursor()) return true;
  bool none = true;
  for (size_t i = 0; i < route.columns.size(); i++) {
    int column = static_cast<int>(i);
    if (route.columns[i] >= 0 || route.leaf->dropped_columns().contains(column)) continue;
    Error error = route.leaf->NoSuchColumn(column);
    for (Oid view : UsersOf(route.source->table.oid, route.source->table.columns[i].name)) {
      if (views_.contains(view)) SetAside(view, error);
      none = false;
    }
    route.leaf->DropColumn(column);
    if (!none) return false;  // routes are made anew
  }
  return none;
}

// What may fail comes before anything is taken. False: views were set aside.
bool ViewWorker::CheckChanges(const EpochCut& cut) {
  for (const auto& [feed, count] : cut) {
    const PublishedTable* last = nullptr;
    for (size_t i = 0; i < count; i++) {
      const ShardTransaction& transaction = feed->reader().ready()[i];
      if (transaction.end_lsn <= feed->record().applied_lsn) last = nullptr;
      for (const RowChange& change : transaction.changes) {
        if (std::exchange(last, change.table) == change.table) continue;
        for (const Route& route : RoutesOf(feed, change.table))
          if (transaction.end_lsn > feed->record().applied_lsn && !DropColumns(route)) return false;
      }
    }
  }
  return true;
}

void ViewWorker::Gather(const EpochCut& cut, Input* input) {
  for (const auto& [oid, source] : sources_) {
    if (!source->stored) continue;
    for (const auto& leaf : source->leaves) {
      if (leaf->dirty()) {
        input->steps.push_back({Step::kTruncate, source.get(), leaf.get(), nullptr, {}});
        leaf->Cleaned();
      } else if (leaf->HasRowsToInsert()) {
        input->steps.push_back(
            {Step::kInsert, source.get(), leaf.get(), nullptr, leaf->TakeRows()});
      }
    }
  }
  for (const auto& [feed, count] : cut) {
    const auto& ready = feed->reader().ready();
    input->taken[feed] = count;
    for (size_t i = 0; i < count; i++) TakeTransaction(feed, ready[i], input);
    Lsn reached = feed->record().applied_lsn;
    if (count > 0) {
      reached = std::max(reached, ready[count - 1].end_lsn);
      input->commit_time_us[feed] = ready[count - 1].commit_time_us;
    }
    // Idle: nothing for us up to where the shard is.
    if (count == ready.size() && !feed->reader().in_transaction())
      reached = std::max(reached, feed->reader().received_lsn());
    input->reached[feed] = reached;
  }
  // Those of one table's shard as they came; the shards in the order that their rows are stored in.
  std::stable_sort(input->steps.begin(), input->steps.end(),
                   [](const Step& a, const Step& b) { return a.leaf->oid() < b.leaf->oid(); });
}

// --- steps → the graph

void ViewWorker::InsertRows(const Step& step, ViewGraph::Epoch* epoch) {
  ViewSource& source = *step.source;
  const char* at = step.rows.data();
  const char* end = at + step.rows.size();
  Batch batch;
  while (at < end) {
    source.decoder->Decode(source.scan, &at, end, &batch);
    epoch->Insert(source.table.oid, step.leaf->oid(), batch);
  }
}

void ViewWorker::Execute(const Input& input, ViewGraph::Epoch* epoch) {
  for (const Step& step : input.steps) {
    if (step.source->broken) continue;
    Oid source = step.source->table.oid;
    try {
      switch (step.kind) {
        case Step::kApply:
          epoch->Apply(source, step.leaf->oid(), *step.batch);
          break;
        case Step::kTruncate:
          epoch->Truncate(source, step.leaf->oid());
          break;
        case Step::kInsert:
          InsertRows(step, epoch);
          break;
      }
    } catch (const ViewFailure&) {
      throw;
    } catch (const QueryError& error) {
      // A value that is none of its type, for instance: the table cannot be followed.
      if (error.error.state == sqlstate::kDiskFull) throw;
      throw ViewFailure(source, error.error);
    }
  }
}

void ViewWorker::WriteRecords(const Input& input, ViewGraph::Epoch* epoch) {
  for (const auto& [feed, reached] : input.reached) {
    FeedRecord record = feed->record();
    record.applied_lsn = reached;
    std::string key = fmt::format("feed/{}", feed->server());
    if (record.system_identifier.empty())
      epoch->Delete(key);
    else
      epoch->Put(key, record.Text());
  }
  for (const auto& [server, user] : new_slots_) epoch->Put(fmt::format("slot/{}", server), user);
  for (const std::string& key : dropped_leaves_) epoch->Delete(key);
  for (const auto& [oid, source] : sources_) {
    if (!source->stored) continue;
    bool complete = true;
    for (const auto& leaf : source->leaves) {
      complete = complete && leaf->phase() == ViewLeaf::Phase::kComplete;
      if (leaf->described())
        epoch->Put(fmt::format("leaf/{}/{}", oid, leaf->oid()), leaf->Record());
    }
    if (complete != source->complete) epoch->SetSourceComplete(oid, complete);
  }
  for (Oid view : new_failures_)
    if (failed_.contains(view)) epoch->Put(JobKey(view), failed_.at(view).Text());
  for (Oid view : forgotten_failures_) epoch->Delete(JobKey(view));
}

// Sources and views that are to be added. False: one was refused, and the epoch is spoilt.
bool ViewWorker::AddWaiting(ViewGraph::Epoch* epoch) {
  for (const auto& [oid, source] : sources_) {
    if (source->stored || source->broken || source->definition.columns.empty()) continue;
    try {
      epoch->AddSource(source->definition);
    } catch (const ViewFailure&) {
      throw;
    } catch (const QueryError& error) {
      SetAside(oid, error.error);
      return false;
    }
  }
  std::set<Oid> waiting;
  for (const auto& [oid, view] : views_)
    if (!view.stored) waiting.insert(oid);
  while (!waiting.empty()) {
    auto next = std::find_if(waiting.begin(), waiting.end(), [&](Oid oid) {
      const auto& inputs = views_.at(oid).plan->inputs;
      return std::none_of(inputs.begin(), inputs.end(),
                          [&](Oid input) { return waiting.contains(input); });
    });
    SLUICE_ASSERT(next != waiting.end());
    LiveView& view = views_.at(*next);
    try {
      const Relation* relation = catalog_->FindRelation(view.oid);
      std::optional<int64_t> rate =
          relation == nullptr ? std::nullopt : BackfillRateLimit(*relation);
      epoch->AddView(view.oid, view.plan, view.definition,
                     !rate        ? FirstRows::kCheapest
                     : *rate == 0 ? FirstRows::kByBackfill
                                  : FirstRows::kAtOnce);
      epoch->Put(JobStartKey(view.oid), std::to_string(PostgresNow()));
    } catch (const ViewFailure&) {
      throw;
    } catch (const QueryError& error) {
      SetAside(view.oid, error.error);
      return false;
    }
    waiting.erase(next);
  }
  return true;
}

// Delivers further rows along edges that are not at their end.
bool ViewWorker::AdvanceEdges(ViewGraph::Epoch* epoch, int64_t now_us) {
  bool open = false;
  std::optional<bool> read;  // some view is created
  std::map<Oid, int64_t> next = std::exchange(edge_next_us_, {});
  for (const auto& [oid, view] : views_) {
    if (view.plan == nullptr) continue;
    for (const EdgeInfo& edge : epoch->Edges(oid)) {
      if (edge.at_end) continue;
      if (!read)
        read = std::any_of(views_.begin(), views_.end(), [&](const auto& other) {
          std::optional<RelationInfo> info = epoch->Relation(other.first);
          return info && info->state == RelationState::kCreated;
        });
      size_t rows = *read ? kEdgeRows
                          : std::clamp(WorkerMemory() / kEdgeRowBytes, kEdgeRows, kEdgeRowsUnread);
      const Relation* relation = catalog_->FindRelation(oid);
      std::optional<int64_t> rate =
          relation == nullptr ? std::nullopt : BackfillRateLimit(*relation);
      // Not before the table is in (AddView): its pieces become durable the sooner.
      auto source = sources_.find(edge.input);
      std::optional<RelationInfo> shown = epoch->Relation(edge.input);
      if (source == sources_.end() && shown) source = sources_.find(shown->storage);
      if (!rate && source != sources_.end() && !source->second->complete) continue;
      if (rate) {
        if (*rate == 0) continue;  // paused, until it is altered
        int64_t& next_us = edge_next_us_[oid];
        next_us = next[oid];
        if (now_us < next_us) continue;
        rows = std::min(rows, static_cast<size_t>(*rate));
        next_us = now_us + static_cast<int64_t>(rows) * 1'000'000 / *rate;
      }
      size_t delivered = epoch->Backfill(oid, edge.input, rows);
      // A limited one goes on when its time has come (see TimeoutMs).
      if (delivered == rows && !rate) open = true;
    }
  }
  return open;
}

void ViewWorker::RunEpoch(const EpochCut& cut, int64_t now_us) {
  part_settled_ = false;
  Input input;
  try {
    if (!CheckChanges(cut)) return;
    Gather(cut, &input);
  } catch (const ViewFailure& failure) {
    // A table is not what it was. Without its source the same changes go through.
    SetAside(failure.view, failure.error);
    return;
  }
  // A view that fails is set aside, and the rest of the epoch is done again without it.
  for (;;) {
    std::unique_ptr<ViewGraph::Epoch> epoch = graph_->Begin();
    try {
      for (Oid view : drop_views_) {
        epoch->DropView(view);
        epoch->Delete(JobStartKey(view));
      }
      for (Oid source : drop_sources_) epoch->DropSource(source);
      for (const auto& [source, part] : removed_parts_) epoch->Truncate(source, part);
      if (!AddWaiting(epoch.get())) continue;
      Execute(input, epoch.get());
      bool open = AdvanceEdges(epoch.get(), now_us);
      open |= KeepIndexes(epoch.get());
      WriteRecords(input, epoch.get());
      KeepChanges(epoch.get());
      epoch->Commit();
      last_epoch_ = epoch->number();
      edges_open_ = graph_->TakeLetGo() || open;
      break;
    } catch (const ViewFailure& failure) {
      epoch.reset();
      SetAside(failure.view, failure.error);
    } catch (const QueryError& error) {
      if (error.error.state != sqlstate::kDiskFull) throw;
      Log(LogLevel::kWarning, "views wait for room in their store: {}", error.error.message);
      epoch.reset();
      ResetLatch(&my_proc->latch);
      WaitLatch(&my_proc->latch, {}, kFullStoreRetryMs, WaitEvent::kViewWorkerMain);
      CheckForInterrupts();
    }
  }
  Committed(input, now_us);
}

// What was read is in the store now.
void ViewWorker::Committed(const Input& input, int64_t now_us) {
  for (const auto& [oid, source] : sources_) {
    if (!source->stored && !source->broken && !source->definition.columns.empty()) {
      source->stored = true;
      routes_.clear();
    }
    bool complete = true;
    for (const auto& leaf : source->leaves)
      complete = complete && leaf->phase() == ViewLeaf::Phase::kComplete;
    complete = complete && source->stored;
    if (complete && !source->complete) edges_open_ = true;
    source->complete = complete;
  }
  for (auto& [oid, view] : views_) {
    if (!view.stored) edges_open_ = true;
    view.stored = true;
  }
  if (!drop_views_.empty()) reconcile_again_ = true;
  if (queued_ && Building() < static_cast<size_t>(settings_->Integer("max_backfills")))
    reconcile_again_ = true;
  for (const auto& [server, user] : new_slots_) feeds_.at(server)->Announced();
  new_slots_.clear();
  drop_views_.clear();
  drop_sources_.clear();
  removed_parts_.clear();
  dropped_leaves_.clear();
  new_failures_.clear();
  forgotten_failures_.clear();
  for (const auto& [feed, count] : input.taken) {
    // The store's previous state is durable now: the shard may forget what is in it, but for what
    // is kept for backfills in this process only.
    Lsn confirmed = durable_[feed];
    for (const auto& [oid, source] : sources_)
      for (const auto& leaf : source->leaves)
        if (leaf->feed() == feed && leaf->described())
          if (std::optional<Lsn> hold = leaf->backfill().HoldLsn())
            confirmed = std::min(confirmed, *hold);
    if (!feed->replaying()) feed->Confirm(confirmed);
    durable_[feed] = input.reached.at(feed);
    auto commit_time = input.commit_time_us.find(feed);
    feed->Applied(input.reached.at(feed),
                  commit_time == input.commit_time_us.end() ? 0 : commit_time->second);
    feed->reader().PopReady(count);
  }
  ready_left_ = 0;
  for (const auto& [server, feed] : feeds_) ready_left_ += ReadyOf(*feed);
  last_epoch_us_ = now_us;
  // A job may have moved on, or a view be complete, with any epoch.
  if (published_generation_ != reconciled_generation_)
    PublishGeneration();
  else
    PublishViewNews();
}

}  // namespace sluice
