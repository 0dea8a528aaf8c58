// COPY … FROM STDIN: where each row goes, found from the few of its fields that say so; the rows'
// bytes are handed on to the shards as they came.
#pragma once

#include <functional>
#include <string>

#include "optimizer/planner.h"

namespace sluice {

struct CopyFromTarget {
  Oid server;
  std::string_view sql;  // COPY … FROM STDIN (…)
};

struct CopyFromPlan {
  Oid relation;
  std::string_view table_name;  // for messages, as all names of columns
  std::span<const std::string_view> field_names;
  // The fields that are needed here, ascending, and their columns. Behind them, in the row that
  // `where` and `keys` are over, come the values of columns that were not sent.
  std::span<const int> fields;
  std::span<const OutputColumn> inputs;
  std::span<const Expr* const> defaults;
  const Expr* where = nullptr;
  std::span<const Expr* const> keys;
  bool replicated = false, even = false;
  std::span<const CopyFromTarget> targets;
};

struct CopyFromRequest {
  const Query* insert;  // INSERT INTO the table (the columns that are sent) VALUES (…)
  size_t fields;        // how many that are
  const Expr* where;    // over the table (rel 0); or null
  // A shard's options, given the names of the columns sent as that shard has them.
  std::function<std::string(std::span<const std::string> names)> options;
};

const CopyFromPlan* PlanCopyFrom(const CopyFromRequest& copy, const PlanRequest& request);

}  // namespace sluice
