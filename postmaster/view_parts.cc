// The tables on servers that a source consists of. They come and go with the catalog, and no stream
// says so: partitions are attached and detached, a foreign table stands for another.
#include <algorithm>

#include "catalog/options.h"
#include "catalog/quote.h"
#include "common/log.h"
#include "postmaster/view_source.h"
#include "postmaster/view_worker.h"

namespace sluice {

std::string ViewWorker::LeafKey(Oid source, Oid leaf) {
  return fmt::format("leaf/{}/{}", source, leaf);
}

std::vector<const Relation*> ViewWorker::PartsOf(const Relation& table) const {
  std::vector<const Relation*> parts = catalog_->Leaves(table);
  // The same rows on every server: one stream is enough.
  if (table.kind == RelationKind::kReplicated) parts.resize(std::min<size_t>(parts.size(), 1));
  return parts;
}

ViewLeaf* ViewWorker::AddPart(ViewSource* source, const Relation& part) {
  const Server& server = catalog_->servers.at(part.server);
  if (server.wrapper != kPostgresWrapper)
    Refuse(
        "a materialized view over \"{}\", which is not a table of a Postgres server, is not "
        "supported",
        part.name);
  routes_.clear();
  ShardFeed* feed = FeedOf(part.server, catalog_->FindRelation(source->table.oid)->owner);
  feed->Want();
  source->leaves.push_back(std::make_unique<ViewLeaf>(*catalog_, source->table, part, feed));
  return source->leaves.back().get();
}

// A stored source: parts that the store does not know are new, and the rows of those that are no
// more are to go.
void ViewWorker::RestoreParts(ViewSource* source) {
  Oid oid = source->table.oid;
  std::unique_ptr<ViewSnapshot> snapshot = store_->Snapshot();
  for (const Relation* part : PartsOf(*catalog_->FindRelation(oid))) {
    if (catalog_->servers.at(part->server).wrapper != kPostgresWrapper) continue;  // FollowParts'
    ViewLeaf* leaf = AddPart(source, *part);
    std::optional<std::string> record = snapshot->Get(LeafKey(oid, part->oid));
    if (!record || !leaf->Restore(*record)) leaf->MakeDirty();
  }
  snapshot->ForEach(fmt::format("leaf/{}/", oid), [&](std::string_view key, std::string_view) {
    bool known = std::any_of(source->leaves.begin(), source->leaves.end(),
                             [&](const auto& leaf) { return LeafKey(oid, leaf->oid()) == key; });
    if (known) return;
    dropped_leaves_.emplace_back(key);
    removed_parts_.emplace_back(
        oid, static_cast<Oid>(std::stoul(std::string(key.substr(key.rfind('/') + 1)))));
  });
}

void ViewWorker::FollowParts() {
  std::vector<std::pair<Oid, Error>> broken;
  for (const auto& [oid, source] : sources_) {
    const Relation* table = catalog_->FindRelation(oid);
    if (table == nullptr || source->broken) continue;
    try {
      FollowParts(source.get(), *table);
    } catch (const QueryError& error) {
      if (source->stored) broken.emplace_back(oid, error.error);  // else the next TryAdd says it
    }
  }
  for (const auto& [oid, error] : broken) SetAside(oid, error);
}

// In the next epoch rows of parts that are gone go from the copy; new ones are read into it, and
// until that is done the views on it are not created.
void ViewWorker::FollowParts(ViewSource* source, const Relation& table) {
  std::vector<const Relation*> parts = PartsOf(table);
  for (size_t i = 0; i < source->leaves.size();) {
    const ViewLeaf& leaf = *source->leaves[i];
    auto now = std::find_if(parts.begin(), parts.end(),
                            [&](const Relation* part) { return part->oid == leaf.oid(); });
    if (now != parts.end() && leaf.IsStill(**now, source->table)) {
      if (leaf.described() && !source->definition.columns.empty()) RequireSameKey(*source, leaf);
      parts.erase(now);
      i++;
      continue;
    }
    Log(LogLevel::kLog, "{} of server \"{}\" is no part of table \"{}\" any more",
        RemoteName(leaf.relation()), leaf.feed()->server_name(), table.name);
    dropped_leaves_.push_back(LeafKey(table.oid, leaf.oid()));
    if (source->stored) removed_parts_.emplace_back(table.oid, leaf.oid());
    std::unique_ptr<ViewLeaf> gone = std::move(source->leaves[i]);
    source->leaves.erase(source->leaves.begin() + static_cast<ptrdiff_t>(i));
    routes_.clear();
    LeavePublication(*gone);
  }
  for (const Relation* part : parts) {
    ViewLeaf* leaf = AddPart(source, *part);
    if (!source->stored) continue;
    Log(LogLevel::kLog, "{} of server \"{}\" is now part of table \"{}\", and is read",
        RemoteName(*part), leaf->feed()->server_name(), table.name);
    leaf->MakeDirty();
  }
}

void ViewWorker::RequireSameKey(const ViewSource& source, const ViewLeaf& leaf) const {
  if (leaf.KeyColumns() != source.definition.key_columns)
    Throw(sqlstate::kObjectNotInPrerequisiteState,
          "the tables of \"{}\" have different keys on their servers", source.table.name);
}

// Best effort: of a table that is still there. The publication itself goes with the last view.
void ViewWorker::LeavePublication(const ViewLeaf& leaf) {
  bool elsewhere = false;
  for (const auto& [oid, source] : sources_)
    for (const auto& other : source->leaves)
      elsewhere |= other.get() != &leaf && other->feed() == leaf.feed() &&
                   RemoteName(other->relation()) == RemoteName(leaf.relation());
  if (elsewhere || leaf.phase() <= ViewLeaf::Phase::kJoin) return;
  try {
    RemoteStatement statement;
    statement.sql = fmt::format("ALTER PUBLICATION {} DROP TABLE {}", leaf.feed()->publication(),
                                RemoteName(leaf.relation()));
    const auto& connect = leaf.feed()->connect();
    farewells_.push_back(
        std::make_unique<RemoteTask>([&](Arena* arena) { return connect(false, arena); },
                                     std::vector<RemoteStatement>{std::move(statement)}));
  } catch (const QueryError& error) {
    LogError(LogLevel::kLog, error.error);
  }
}

}  // namespace sluice
