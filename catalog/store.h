// The durable catalog: one LMDB environment in DIR/catalog, opened after fork only. One write
// transaction per commit (LMDB syncs it); readers load whole snapshots.
#pragma once

#include <memory>
#include <string>

#include "catalog/catalog.h"

namespace sluice {

class CatalogStore {
 public:
  // Creates the files if `create`. Errors: 58030, 53100.
  static Result<std::unique_ptr<CatalogStore>> Open(const std::string& directory, bool create);
  ~CatalogStore();

  std::shared_ptr<const Catalog> Load();
  // Commits `changed` if the durable generation is still `base_generation`, else 40001. Raises
  // shared_memory->catalog_generation.
  Status Commit(const Catalog& changed, uint64_t base_generation);

 private:
  struct Impl;
  explicit CatalogStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
