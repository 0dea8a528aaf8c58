// A process's view of the durable catalog: loaded again when somebody has committed a change, its
// types and collations then known to this process.
#pragma once

#include <memory>
#include <string>

#include "catalog/store.h"

namespace sluice {

class CatalogFollower {
 public:
  // Opens the store: after the fork. Throws 58030.
  explicit CatalogFollower(const std::string& directory);

  const std::shared_ptr<const Catalog>& Refresh();
  // The newest too, for a look at it: this process's types and collations stay another's.
  std::shared_ptr<const Catalog> Newest();
  // After a commit of this process, or when changes that were never committed have been registered.
  void Forget() { seen_generation_ = ~uint64_t{0}; }
  CatalogStore* store() { return store_.get(); }

 private:
  std::unique_ptr<CatalogStore> store_;
  std::shared_ptr<const Catalog> catalog_;
  uint64_t seen_generation_ = ~uint64_t{0};  // of shared memory, when catalog_ was loaded
  std::shared_ptr<const Catalog> newest_;
  uint64_t newest_generation_ = ~uint64_t{0};  // the same, of newest_
};

}  // namespace sluice
