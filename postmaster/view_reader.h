// A session's look at live views: their state, and waiting for it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "stream/view_store.h"

namespace sluice {

// The process's one handle on the view store; null while no view worker has made it yet.
ViewStore* SharedViewStore(const std::string& directory);

// Its newest epoch; null while there is none.
std::unique_ptr<ViewSnapshot> LookAtViews(const std::string& directory);

// SHOW JOBS' states.
enum class ViewState { kCreating, kCaughtUp, kCreated, kFailed };
struct ViewStatus {
  ViewState state = ViewState::kCreating;
  std::optional<Error> error;  // kFailed
  uint64_t rows = 0;
};
// `snapshot`: as LookAtViews gives it.
ViewStatus StatusOfView(const ViewSnapshot* snapshot, const Relation& view);
const char* NameOf(ViewState state);

// Sleeps until all are created, without polling; throws the first failure, and what interrupts it.
// Views that are dropped meanwhile throw 42P01. `catalog`: gives the newest one.
void WaitForViews(const std::string& directory,
                  const std::function<std::shared_ptr<const Catalog>()>& catalog,
                  std::span<const Oid> views);

// A position in each server's WAL, by which everything committed before is in every created view.
struct ServerPosition {
  Oid server;
  uint64_t lsn;
};
// Sleeps until the view worker follows the shards, as after a crash.
void WaitForViewWorker();
// Sleeps until the views are there. Servers whose changes are not followed are passed over.
void WaitForPositions(std::span<const ServerPosition> positions);

}  // namespace sluice
