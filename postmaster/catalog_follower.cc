#include "postmaster/catalog_follower.h"

#include "shm/shared_memory.h"
#include "types/collation.h"

namespace sluice {

CatalogFollower::CatalogFollower(const std::string& directory)
    : store_(CatalogStore::Open(directory + "/catalog", false).OrThrow()) {}

const std::shared_ptr<const Catalog>& CatalogFollower::Refresh() {
  uint64_t generation = shared_memory->catalog_generation.load(std::memory_order_acquire);
  if (generation == seen_generation_) return catalog_;
  catalog_ = store_->Load();
  catalog_->MakeCurrent();
  // Before any shard was asked for its default there are no tables either, only what the server
  // itself knows.
  if (!catalog_->collations.contains(kDefaultCollationOid))
    RegisterCollation({kDefaultCollationOid, CollationProvider::kC, "C", ""});
  seen_generation_ = generation;
  return catalog_;
}

std::shared_ptr<const Catalog> CatalogFollower::Newest() {
  uint64_t generation = shared_memory->catalog_generation.load(std::memory_order_acquire);
  if (generation != newest_generation_) newest_ = store_->Load();
  newest_generation_ = generation;
  return newest_;
}

}  // namespace sluice
