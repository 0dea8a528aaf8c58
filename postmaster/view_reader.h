// A session's look at live views: their state, and waiting for it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "postmaster/remote_query.h"
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

// How far the building of a view is.
struct ViewProgress {
  uint64_t rows_done = 0;  // of its inputs' rows, that it has taken in
  std::optional<uint64_t> rows_estimated;
  std::string shards;                 // "shard1 500/1000, …": rows read of the tables, if any
  std::optional<int64_t> started_at;  // as PostgresNow() has it
  int64_t now = 0;

  std::optional<double> Percent() const;
  std::optional<double> RowsPerSecond() const;
  std::optional<int64_t> SecondsLeft() const;
};
ViewProgress ProgressOfView(const ViewSnapshot* snapshot, const Catalog& catalog,
                            const Relation& view);

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
// Sleeps until the view worker follows the shards, as after a crash, and what the catalog of that
// generation says.
void WaitForViewWorker(uint64_t generation);
// Sleeps until the views are there. Servers whose changes are not followed are passed over.
void WaitForPositions(std::span<const ServerPosition> positions);
// Sleeps until all that is committed on these servers now is in the views.
void FlushServers(const Catalog& catalog, const RemoteSession& session,
                  std::span<const Oid> servers);

// A materialized view by a name as SQL text has it.
const Relation& FindViewByText(const Catalog& catalog, const std::vector<std::string>& search_path,
                               std::string_view text);

}  // namespace sluice
