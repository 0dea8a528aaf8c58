// Where rows belong: the partition keys' values of many rows → the leaf of each. What FindPartition
// answers for one row, with the bounds prepared once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "catalog/catalog.h"
#include "common/arena.h"
#include "types/column.h"

namespace sluice {

class PartitionRouter {
 public:
  // Throws 0A000 where a key cannot be compared or hashed here.
  PartitionRouter(const Catalog& catalog, const Relation& root);
  ~PartitionRouter();
  PartitionRouter(const PartitionRouter&) = delete;
  PartitionRouter& operator=(const PartitionRouter&) = delete;

  // `keys`: a column each key of the root, then those of its partitioned partitions, each table
  // before what is below it, in the order of their children. to[i]: an index into
  // Catalog::Leaves(root). Throws 23514 for a row that no partition takes.
  void Route(const Batch& keys, std::span<uint32_t> to);

 private:
  struct Table;
  std::unique_ptr<Table> MakeTable(const Relation& relation);
  uint32_t RouteRow(const Table& table, const Batch& keys, size_t row);

  const Catalog& catalog_;
  Arena arena_;
  size_t next_key_ = 0;
  uint32_t next_leaf_ = 0;
  std::unique_ptr<Table> root_;
  std::vector<std::string> buffers_;
};

}  // namespace sluice
