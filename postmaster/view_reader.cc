#include "postmaster/view_reader.h"

#include "postmaster/view_definition.h"
#include "shm/live_views.h"
#include "shm/shared_memory.h"

namespace sluice {

ViewStore* SharedViewStore(const std::string& directory) {
  static std::unique_ptr<ViewStore> store;  // one environment must not be opened twice
  if (store == nullptr) {
    Result<std::unique_ptr<ViewStore>> opened = ViewStore::Open(directory + "/views", {});
    if (!opened.ok()) {
      if (opened.error().state == MakeSqlState("58P01")) return nullptr;
      throw QueryError(opened.error());
    }
    store = std::move(*opened);
  }
  return store.get();
}

std::unique_ptr<ViewSnapshot> LookAtViews(const std::string& directory) {
  ViewStore* store = SharedViewStore(directory);
  if (store == nullptr) return nullptr;
  try {
    return store->Snapshot();
  } catch (const QueryError& error) {
    // Made just now, and still without anything in it.
    if (error.error.state == sqlstate::kObjectNotInPrerequisiteState) return nullptr;
    throw;
  }
}

const char* NameOf(ViewState state) {
  switch (state) {
    case ViewState::kCreating:
      return "creating";
    case ViewState::kCaughtUp:
      return "caught up";
    case ViewState::kCreated:
      return "created";
    case ViewState::kFailed:
      return "failed";
  }
  return "";
}

ViewStatus StatusOfView(const ViewSnapshot* snapshot, const Relation& view) {
  ViewStatus status;
  if (snapshot == nullptr) return status;
  std::optional<RelationInfo> info = snapshot->Relation(view.oid);
  if (!info || info->definition != ViewDefinitionText(view)) {
    std::optional<std::string> text = snapshot->Get(JobKey(view.oid));
    if (!text) return status;
    JobFailure failure = JobFailure::Parse(*text);
    if (failure.definition != ViewDefinitionText(view)) return status;
    status.state = ViewState::kFailed;
    status.error = failure.error;
    return status;
  }
  status.rows = info->rows;
  switch (info->state) {
    case RelationState::kCreating:
      status.state = ViewState::kCreating;
      break;
    case RelationState::kCaughtUp:
      status.state = ViewState::kCaughtUp;
      // It is fed by a table's copy while that grows: that is its own backfill.
      for (Oid input : info->inputs) {
        std::optional<RelationInfo> source = snapshot->Relation(input);
        if (source && source->kind == StoredRelationKind::kSource &&
            source->state != RelationState::kCreated)
          status.state = ViewState::kCreating;
      }
      break;
    case RelationState::kCreated:
      status.state = ViewState::kCreated;
      break;
    case RelationState::kFailed:
      status.state = ViewState::kFailed;
      status.error = info->failure;
      break;
  }
  return status;
}

void WaitForViews(const std::string& directory,
                  const std::function<std::shared_ptr<const Catalog>()>& catalog,
                  std::span<const Oid> views) {
  ViewNewsWaiter waiter;
  for (;;) {
    ResetLatch(&my_proc->latch);
    std::shared_ptr<const Catalog> now = catalog();
    std::unique_ptr<ViewSnapshot> snapshot = LookAtViews(directory);
    bool all = true;
    for (Oid oid : views) {
      const Relation* view = now->FindRelation(oid);
      if (view == nullptr)
        Throw(sqlstate::kUndefinedTable,
              "the materialized view was dropped while it was waited for");
      ViewStatus status = StatusOfView(snapshot.get(), *view);
      if (status.state == ViewState::kFailed) throw QueryError(*status.error);
      all = all && status.state == ViewState::kCreated;
    }
    if (all) return;
    snapshot.reset();
    WaitInterruptibly(WaitEvent::kViewProgress);
  }
}

void WaitForViewWorker() {
  ViewNewsWaiter waiter;
  for (;;) {
    ResetLatch(&my_proc->latch);
    if (shared_memory->live_views.catalog_generation.load(std::memory_order_acquire) != 0) return;
    WaitInterruptibly(WaitEvent::kViewProgress);
  }
}

void WaitForPositions(std::span<const ServerPosition> positions) {
  ViewNewsWaiter waiter;
  for (;;) {
    ResetLatch(&my_proc->latch);
    bool reached = true;
    for (const ServerPosition& position : positions) {
      const ReplicatedServer* server = FindReplicatedServer(position.server);
      if (server == nullptr) continue;
      reached =
          reached && server->applied_lsn.load(std::memory_order_acquire) > position.lsn;  // W2
    }
    if (reached) return;
    WaitInterruptibly(WaitEvent::kViewProgress);
  }
}

}  // namespace sluice
