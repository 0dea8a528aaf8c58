// The view worker's main loop, and what it derives from the catalog.
#include "postmaster/view_worker.h"

#include <algorithm>
#include <random>

#include "common/assert.h"
#include "common/log.h"
#include "parser/analyze.h"
#include "postmaster/config_file.h"
#include "postmaster/server_config.h"
#include "postmaster/view_definition.h"
#include "postmaster/view_source.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

constexpr int64_t kRetryUs = 500'000;
constexpr int64_t kConfirmUs = 1'000'000;
constexpr int64_t kRestartUs = 5'000'000;

std::string NewInstance() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

// Where the server may have our slot: by whom it was made.
std::string SlotKey(Oid server) {
  return fmt::format("slot/{}", server);
}

}  // namespace

ViewWorker::ViewWorker(const std::string& directory, Settings* settings)
    : directory_(directory),
      settings_(settings),
      follower_(directory),
      spilled_(0, TempDirectory(*settings, directory)) {
  DeriveSessionSettings(*settings_, &session_settings_);
  ViewStoreOptions options;
  options.writer = true;
  store_ = ViewStore::Open(directory + "/views", options).OrThrow();
  graph_ = std::make_unique<ViewGraph>(store_.get());
  catalog_ = follower_.Refresh();
  Load();
}

ViewWorker::~ViewWorker() = default;

// What the store has, before anything is followed.
void ViewWorker::Load() {
  {
    auto epoch = graph_->Begin();  // a new store has nothing to take a snapshot of
    instance_ = epoch->Get("instance").value_or("");
    if (instance_.empty()) {
      instance_ = NewInstance();
      epoch->Put("instance", instance_);
      epoch->Commit();
    }
  }
  std::unique_ptr<ViewSnapshot> snapshot = store_->Snapshot();
  std::vector<RelationInfo> views;
  for (const RelationInfo& info : snapshot->Relations()) {
    if (info.kind == StoredRelationKind::kSource)
      RestoreSource(info);
    else
      views.push_back(info);
  }
  // Also where no view is left: what was being dropped is dropped now.
  snapshot->ForEach("slot/", [&](std::string_view key, std::string_view user) {
    Oid server = static_cast<Oid>(std::stoul(std::string(key.substr(5))));
    if (catalog_->servers.contains(server)) FeedOf(server, std::string(user));
  });
  snapshot->ForEach("job/", [&](std::string_view key, std::string_view value) {
    Oid view = static_cast<Oid>(std::stoul(std::string(key.substr(4))));
    failed_.emplace(view, JobFailure::Parse(value));
  });
  // Inputs have the smaller oids but where a view was rebuilt; so until nothing moves any more.
  for (bool moved = true; moved;) {
    moved = false;
    for (const RelationInfo& info : views) {
      bool ready = !views_.contains(info.oid) &&
                   std::all_of(info.inputs.begin(), info.inputs.end(), [&](Oid input) {
                     return views_.contains(input) || sources_.contains(input);
                   });
      if (!ready) continue;
      moved = true;
      LiveView& view = views_[info.oid];
      view.oid = info.oid;
      view.stored = true;
      view.definition = info.definition;
      const Relation* relation = catalog_->FindRelation(info.oid);
      // Gone or changed: Reconcile drops it.
      if (relation == nullptr || ViewDefinitionText(*relation) != info.definition) continue;
      try {
        view.plan = PlanViewRelation(catalog_, *relation, *settings_);
        Status status = graph_->Attach(info.oid, view.plan);
        if (!status.ok()) throw QueryError(status.error());
      } catch (const QueryError& error) {
        // By another version's plan, for instance: made again from its inputs.
        Log(LogLevel::kLog, "materialized view \"{}\" is built again: {}", relation->name,
            error.error.message);
        view.definition.clear();
      }
    }
  }
}

void ViewWorker::RestoreSource(const RelationInfo& info) {
  const Relation* table = catalog_->FindRelation(info.oid);
  auto source = std::make_unique<ViewSource>();
  source->stored = true;
  source->definition = {info.oid, info.columns, info.key_columns};
  source->complete = info.state == RelationState::kCreated;
  if (table != nullptr) source->table = *table;
  source->table.oid = info.oid;
  // As it was when the copy was made: later columns are not in it.
  std::vector<ColumnInfo> columns;
  for (const StoredColumn& stored : info.columns) {
    ColumnInfo column;
    int at = table == nullptr ? -1 : table->FindColumn(stored.name);
    if (at >= 0) column = table->columns[static_cast<size_t>(at)];
    column.name = stored.name;
    column.type = stored.type;
    column.typmod = stored.typmod;
    column.collation = stored.collation;
    columns.push_back(std::move(column));
  }
  source->table.columns = std::move(columns);
  if (table != nullptr) RestoreParts(source.get());
  PrepareDecoder(source.get());
  sources_[info.oid] = std::move(source);
}

void ViewWorker::PrepareDecoder(ViewSource* source) {
  std::vector<int16_t> formats = PieceFormats(*catalog_, source->table);
  source->binary = std::make_unique<bool[]>(formats.size());
  for (size_t i = 0; i < formats.size(); i++) source->binary[i] = formats[i] == 1;
  source->columns.clear();
  for (const ColumnInfo& column : source->table.columns)
    source->columns.push_back({column.name, column.type, column.typmod, column.collation});
  source->scan.kind = PlanKind::kForeignScan;
  source->scan.output = source->columns;
  source->scan.binary = {source->binary.get(), formats.size()};
  source->decoder = std::make_unique<RowDecoder>(source->columns, session_settings_);
}

const ConnectionSpec* ViewWorker::Connect(const Catalog& catalog, Oid server,
                                          const std::string& user, bool replication,
                                          Arena* arena) const {
  ConnectionLimits limits;
  limits.connections_max = static_cast<uint32_t>(settings_->Integer("connections_per_server"));
  return MakeConnectionSpec(catalog, server, user, RemoteSettings{}, limits, arena, replication);
}

ShardFeed* ViewWorker::FeedOf(Oid server, const std::string& user) {
  std::unique_ptr<ShardFeed>& feed = feeds_[server];
  if (feed == nullptr) {
    std::unique_ptr<ViewSnapshot> snapshot = store_->Snapshot();
    std::optional<std::string> record = snapshot->Get(fmt::format("feed/{}", server));
    feed = std::make_unique<ShardFeed>(
        server, catalog_->servers.at(server).name, instance_,
        record ? FeedRecord::Parse(*record) : FeedRecord{},
        [this, server, user, known = catalog_](bool replication, Arena* arena) mutable {
          // A server that was dropped still has our slot.
          if (catalog_->servers.contains(server)) known = catalog_;
          return Connect(*known, server, user, replication, arena);
        });
    if (snapshot->Get(SlotKey(server)) == user)
      feed->Announced();
    else
      new_slots_[server] = user;
  }
  return feed.get();
}

// --- the catalog's wishes

void ViewWorker::Reconcile() {
  reconciled_generation_ = shared_memory->catalog_generation.load(std::memory_order_acquire);
  catalog_ = follower_.Refresh();
  reconcile_again_ = false;
  edges_open_ = true;  // a limit may have changed
  DropUnwanted();
  FollowParts();
  std::set<Oid> needed;
  for (const auto& [oid, view] : views_)
    if (view.plan != nullptr) needed.insert(view.plan->inputs.begin(), view.plan->inputs.end());
  size_t places = static_cast<size_t>(settings_->Integer("max_backfills"));
  size_t building = Building();
  queued_ = false;
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& [oid, relation] : catalog_->relations) {
      if (relation.kind != RelationKind::kMaterializedView || views_.contains(oid) ||
          failed_.contains(oid))
        continue;
      if (building >= places) {
        queued_ = true;
        break;
      }
      // One that is dropped in the next epoch is made again after it.
      if (std::find(drop_views_.begin(), drop_views_.end(), oid) != drop_views_.end()) continue;
      moved |= TryAdd(relation, &needed);
      if (views_.contains(oid) && BackfillRateLimit(relation) != 0) building++;
    }
  }
  DropUnneededSources(needed);
  DivideMemory();
}

// Views that are not created. One that is paused takes nobody's place.
size_t ViewWorker::Building() const {
  std::unique_ptr<ViewSnapshot> snapshot = store_->Snapshot();
  size_t building = 0;
  for (const auto& [oid, view] : views_) {
    const Relation* relation = catalog_->FindRelation(oid);
    if (relation != nullptr && BackfillRateLimit(*relation) == 0) continue;
    std::optional<RelationInfo> info = snapshot->Relation(oid);
    if (!info || info->state == RelationState::kCreating || info->state == RelationState::kCaughtUp)
      building++;
  }
  return building;
}

// Whether the view was added, or failed.
bool ViewWorker::TryAdd(const Relation& relation, std::set<Oid>* needed) {
  try {
    std::shared_ptr<const ViewPlan> plan = PlanViewRelation(catalog_, relation, *settings_);
    bool ready = true;
    for (Oid input : plan->inputs) {
      const Relation* table = catalog_->FindRelation(input);
      if (table == nullptr)
        Throw(sqlstate::kUndefinedTable, "relation with OID {} does not exist", input);
      if (table->kind == RelationKind::kMaterializedView) {
        if (auto failed = failed_.find(input); failed != failed_.end())
          throw QueryError(failed->second.error);
        ready = ready && views_.contains(input);
        continue;
      }
      ready = PrepareSource(*table, *plan) && ready;
      needed->insert(input);
    }
    if (!ready) return false;  // until a leaf is described (see PollAll)
    LiveView& view = views_[relation.oid];
    view.oid = relation.oid;
    view.plan = std::move(plan);
    view.definition = ViewDefinitionText(relation);
    return true;
  } catch (const QueryError& error) {
    FailJob(relation.oid, error.error);
    return true;
  }
}

// Whether the copy has what the plan uses of the table as it is now. Throws where a server has it
// no more.
bool ViewWorker::HasColumns(const ViewSource& source, const Relation& table,
                            const ViewPlan& plan) const {
  const std::vector<StoredColumn>& stored = source.definition.columns;
  if (stored.empty()) return true;
  for (const ColumnInfo& column : table.columns) {
    if (!UsesColumn(plan, table.oid, column.name)) continue;
    auto found = std::find_if(stored.begin(), stored.end(), [&](const StoredColumn& s) {
      return s.name == column.name && s.type == column.type;
    });
    if (found == stored.end()) return false;
    for (const auto& leaf : source.leaves)
      if (int at = static_cast<int>(found - stored.begin()); leaf->dropped_columns().contains(at))
        throw QueryError(leaf->NoSuchColumn(at));
  }
  return true;
}

// True: it is described, and can be added to the store. Throws what its servers refuse.
bool ViewWorker::PrepareSource(const Relation& table, const ViewPlan& plan) {
  if (auto known = sources_.find(table.oid);
      known != sources_.end() && !HasColumns(*known->second, table, plan)) {
    // The copy is made again, and with it what reads it.
    std::set<Oid> readers;
    for (const auto& [oid, view] : views_) {
      std::vector<Oid> inputs = InputsOf(view);
      if (std::find(inputs.begin(), inputs.end(), table.oid) != inputs.end()) readers.insert(oid);
    }
    Log(LogLevel::kLog, "table \"{}\" has other columns than its copy, and is read again",
        table.name);
    DropFromStore(WithReaders(std::move(readers)));
    DropSource(table.oid);
  }
  std::unique_ptr<ViewSource>& source = sources_[table.oid];
  if (source == nullptr) {
    source = std::make_unique<ViewSource>();
    source->table = table;
    for (const Relation* part : PartsOf(table)) AddPart(source.get(), *part);
  }
  bool described = true;
  for (const auto& leaf : source->leaves) {
    if (leaf->error()) throw QueryError(*leaf->error());
    if (leaf->feed()->refused()) throw QueryError(*leaf->feed()->error());
    described = described && leaf->described();
  }
  if (source->stored || !source->definition.columns.empty()) return true;
  if (!described) return false;
  CheckSourceTable(*catalog_, table);
  SourceDefinition& definition = source->definition;
  definition.key_columns = source->leaves[0]->KeyColumns();
  for (const auto& leaf : source->leaves) RequireSameKey(*source, *leaf);
  definition.oid = table.oid;
  for (const ColumnInfo& column : source->table.columns)
    definition.columns.push_back({column.name, column.type, column.typmod, column.collation});
  PrepareDecoder(source.get());
  return true;
}

void ViewWorker::FailJob(Oid view, const Error& error) {
  const Relation* relation = catalog_->FindRelation(view);
  if (relation == nullptr) return;
  Log(LogLevel::kWarning, "materialized view \"{}\" has failed: {}", relation->name, error.message);
  failed_[view] = {error, ViewDefinitionText(*relation)};
  new_failures_.push_back(view);
}

// A view that cannot go on, and what reads it; or what reads a table that cannot be followed.
// Nothing of them stays behind but the error.
void ViewWorker::SetAside(Oid relation, const Error& error) {
  std::set<Oid> views;
  if (views_.contains(relation)) views.insert(relation);
  if (auto source = sources_.find(relation); source != sources_.end()) {
    source->second->broken = true;
    for (const auto& leaf : source->second->leaves) leaf->Stop(error);
    for (const auto& [oid, view] : views_) {
      std::vector<Oid> inputs = InputsOf(view);
      if (std::find(inputs.begin(), inputs.end(), relation) != inputs.end()) views.insert(oid);
    }
  }
  std::set<Oid> all = WithReaders(std::move(views));
  for (Oid view : all) FailJob(view, error);
  DropFromStore(std::move(all));
  routes_.clear();
  reconcile_again_ = true;
}

std::vector<Oid> ViewWorker::InputsOf(const LiveView& view) const {
  if (view.plan != nullptr) return view.plan->inputs;
  std::optional<RelationInfo> info = store_->Snapshot()->Relation(view.oid);
  return info ? info->inputs : std::vector<Oid>{};
}

std::set<Oid> ViewWorker::WithReaders(std::set<Oid> views) const {
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& [oid, view] : views_) {
      if (views.contains(oid)) continue;
      std::vector<Oid> inputs = InputsOf(view);
      if (std::none_of(inputs.begin(), inputs.end(), [&](Oid i) { return views.contains(i); }))
        continue;
      views.insert(oid);
      moved = true;
    }
  }
  return views;
}

// In the next epoch: those first that nobody reads.
void ViewWorker::DropFromStore(std::set<Oid> views) {
  while (!views.empty()) {
    auto last = std::find_if(views.begin(), views.end(), [&](Oid oid) {
      return std::none_of(views.begin(), views.end(), [&](Oid other) {
        std::vector<Oid> inputs = InputsOf(views_.at(other));
        return std::find(inputs.begin(), inputs.end(), oid) != inputs.end();
      });
    });
    SLUICE_ASSERT(last != views.end());
    Oid view = *last;
    if (views_.at(view).stored) drop_views_.push_back(view);
    views_.erase(view);
    views.erase(view);
  }
}

// Views that the catalog has no more, or otherwise; and those that read them.
void ViewWorker::DropUnwanted() {
  std::set<Oid> unwanted;
  for (const auto& [oid, view] : views_) {
    const Relation* relation = catalog_->FindRelation(oid);
    if (relation == nullptr || ViewDefinitionText(*relation) != view.definition)
      unwanted.insert(oid);
  }
  DropFromStore(WithReaders(std::move(unwanted)));
  for (auto it = failed_.begin(); it != failed_.end();) {
    const Relation* relation = catalog_->FindRelation(it->first);
    bool gone = relation == nullptr || ViewDefinitionText(*relation) != it->second.definition;
    if (gone) forgotten_failures_.push_back(it->first);
    it = gone ? failed_.erase(it) : std::next(it);
  }
}

void ViewWorker::DropSource(Oid table) {
  auto at = sources_.find(table);
  if (at->second->stored) drop_sources_.push_back(table);
  std::erase_if(removed_parts_, [&](const auto& part) { return part.first == table; });
  for (const auto& leaf : at->second->leaves) {
    dropped_leaves_.push_back(LeafKey(table, leaf->oid()));
    LeavePublication(*leaf);
  }
  routes_.clear();
  sources_.erase(at);
}

void ViewWorker::DropUnneededSources(const std::set<Oid>& needed) {
  for (auto it = sources_.begin(); it != sources_.end();) {
    if (needed.contains(it->first)) {
      ++it;
      continue;
    }
    DropSource((it++)->first);
  }
  std::set<ShardFeed*> used;
  for (const auto& [oid, source] : sources_)
    for (const auto& leaf : source->leaves) used.insert(leaf->feed());
  for (const auto& [server, feed] : feeds_)
    if (!used.contains(feed.get())) feed->Unwant();
}

// --- the loop

size_t ViewWorker::WorkerMemory() const {
  return static_cast<size_t>(settings_->Integer("view_worker_memory")) * 1024;
}

// A quarter for changes that wait, a quarter for groups that are held; epochs copy what they take.
void ViewWorker::DivideMemory() {
  constexpr size_t kReadyMin = 256 * 1024;
  size_t quarter = WorkerMemory() / 4;
  for (const auto& [server, feed] : feeds_)
    feed->SetReadyBytesMax(std::max(kReadyMin, quarter / feeds_.size()), &spilled_);
  graph_->SetHeldBytesMax(quarter);
}

uint64_t ViewWorker::PieceRows(const ViewSource& source, const ViewLeaf& leaf, int64_t now_us) {
  // The slowest of the views that wait for it: they are fed as it grows. Those that are paused are
  // fed later; if all that read the table are, it is not read.
  std::optional<int64_t> rate;
  bool paused = true;
  std::set<Oid> readers{source.table.oid};
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& [oid, view] : views_) {
      if (view.plan == nullptr || readers.contains(oid)) continue;
      const Relation* relation = catalog_->FindRelation(oid);
      std::optional<int64_t> limit;
      if (relation != nullptr) limit = BackfillRateLimit(*relation);
      if (limit == 0) continue;
      const std::vector<Oid>& inputs = view.plan->inputs;
      if (std::none_of(inputs.begin(), inputs.end(), [&](Oid i) { return readers.contains(i); }))
        continue;
      readers.insert(oid);
      moved = true;
      paused = false;
      if (limit) rate = rate ? std::min(*rate, *limit) : *limit;
    }
  }
  if (paused) return 0;
  if (!rate) return leaf.PieceRows();
  int64_t& next_us = source_next_us_[source.table.oid];
  if (now_us < next_us) return 0;
  uint64_t rows = std::min(leaf.PieceRows(), static_cast<uint64_t>(*rate));
  next_us = now_us + static_cast<int64_t>(rows * 1'000'000 / static_cast<uint64_t>(*rate));
  return rows;
}

bool ViewWorker::PollAll(int64_t now_us) {
  bool more = false;
  std::vector<std::pair<Oid, Error>> broken;
  for (const auto& [server, feed] : feeds_) {
    bool was_refused = feed->refused();
    more |= feed->Poll(now_us);
    if (feed->refused() != was_refused) reconcile_again_ = true;
    if (feed->TakeReplayLost())
      for (const auto& [oid, source] : sources_)
        for (const auto& leaf : source->leaves)
          if (leaf->feed() == feed.get() && leaf->described()) leaf->backfill().ForgetKept();
    if (!feed->TakeLost()) continue;
    for (const auto& [oid, source] : sources_)
      for (const auto& leaf : source->leaves)
        if (leaf->feed() == feed.get() && leaf->described()) leaf->Restart(true);
  }
  for (const auto& [oid, source] : sources_) {
    for (const auto& leaf : source->leaves) {
      // A table that has just left the publication must not join it before it is out.
      if (leaf->phase() == ViewLeaf::Phase::kJoin && !farewells_.empty()) continue;
      bool reads = source->stored && !source->broken && leaf->WantsPiece(now_us);
      bool was_described = leaf->described();
      more |= leaf->Poll(now_us, reads ? PieceRows(*source, *leaf, now_us) : 0);
      if (leaf->described() == was_described && !leaf->error()) continue;
      reconcile_again_ = true;
      routes_.clear();
      if (leaf->error() && source->stored && !source->broken)
        broken.emplace_back(oid, *leaf->error());
    }
  }
  for (const auto& [oid, error] : broken) SetAside(oid, error);
  PollMissingParts(now_us);
  PollWatches(now_us);
  std::erase_if(farewells_, [](const auto& task) {
    std::vector<std::vector<RemoteRow>> rows;
    task->PollText(&rows);
    return task->ended();
  });
  return more;
}

int ViewWorker::TimeoutMs(int64_t now_us) const {
  int64_t at_us = now_us + (feeds_.empty() ? 30 : 1) * kConfirmUs;
  auto consider = [&](int64_t us) {
    if (us != 0) at_us = std::min(at_us, us);
  };
  for (const auto& [server, feed] : feeds_) consider(feed->wake_at_us());
  for (const auto& [oid, source] : sources_)
    for (const auto& leaf : source->leaves) consider(leaf->wake_at_us());
  if (MoreToShare(now_us)) consider(last_epoch_us_ + kPieceWaitUs);
  for (const auto& [oid, us] : source_next_us_) consider(us > now_us ? us : 0);
  for (const auto& [oid, us] : edge_next_us_) consider(us > now_us ? us : 0);
  consider(WatchAtUs());
  if (holder_ != 0) consider(hold_until_us_);
  for (const auto& [key, part] : missing_parts_)
    if (part.question == nullptr && part.until == 0) consider(std::max(part.ask_at_us, now_us + 1));
  return static_cast<int>(std::max<int64_t>(0, (at_us - now_us + 999) / 1000));
}

void ViewWorker::Run() {
  for (;;) {
    ResetLatch(&my_proc->latch);
    CheckForInterrupts();
    if (my_proc->reload_requested.exchange(0, std::memory_order_relaxed) != 0) {
      if (auto lines = ReadConfigFile(settings_->Text("config_file")))
        ApplyConfig(*lines, true, settings_);
      reconcile_again_ = true;
    }
    int64_t now_us = MonotonicUs();
    bool more = PollAll(now_us);
    bool changed =
        shared_memory->catalog_generation.load(std::memory_order_acquire) != reconciled_generation_;
    if (changed || (reconcile_again_ && now_us >= reconcile_at_us_)) {
      reconcile_at_us_ = now_us + kRetryUs / 100;
      Reconcile();
      more = true;
    }
    if (Hold(now_us)) {
      // Until the holder lets go.
    } else if (EpochIsDue(now_us)) {
      RunEpoch(Cut(now_us), now_us);
      more = true;
    } else if (published_generation_ != reconciled_generation_) {
      PublishGeneration();
    }
    if (more) continue;
    WaitLatch(&my_proc->latch, {}, TimeoutMs(now_us), WaitEvent::kViewWorkerMain);
  }
}

void ViewWorker::PublishGeneration() {
  published_generation_ = reconciled_generation_;
  shared_memory->live_views.catalog_generation.store(published_generation_ + 1,
                                                     std::memory_order_release);  // W5
  PublishViewNews();
}

void ViewWorkerMain(const std::string& directory, Settings* settings) {
  SetLogProcessName("view worker");
  // A store that cannot be read must not take the server down with it: views stand still, and their
  // readers get the error.
  for (;;) {
    try {
      ViewWorker(directory, settings).Run();
      return;
    } catch (const QueryError& e) {
      if (e.error.state == sqlstate::kAdminShutdown) throw;
      Error error = e.error;
      LogError(LogLevel::kError,
               error.Hint(fmt::format("Live views stand still; the next attempt is in {} s.",
                                      kRestartUs / 1'000'000)));
    }
    for (int64_t until_us = MonotonicUs() + kRestartUs; MonotonicUs() < until_us;) {
      ResetLatch(&my_proc->latch);
      CheckForInterrupts();
      WaitLatch(&my_proc->latch, {}, static_cast<int>((until_us - MonotonicUs()) / 1000 + 1),
                WaitEvent::kViewWorkerMain);
    }
  }
}

}  // namespace sluice
