// Whether a role may run a query: looked at when it is run, as Postgres does, not when it is
// prepared.
#pragma once

#include "catalog/catalog.h"
#include "optimizer/completion.h"
#include "parser/query.h"

namespace sluice {

// Throws 42501. What a view reads is its owner's business.
void RequireMayRun(const Catalog& catalog, const Role& role, const Query& query);
// A statement that a shard completes: all tables that it reads, also through views.
void RequireMayRun(const Catalog& catalog, const Role& role, const CompletionRequest& completion);

}  // namespace sluice
