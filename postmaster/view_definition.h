// A materialized view as the catalog has it → what the view worker and CREATE make of it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "catalog/catalog.h"
#include "optimizer/view_plan.h"
#include "postmaster/settings.h"

namespace sluice {

// Everything by which its state is made: a view in the store with another text is built again.
std::string ViewDefinitionText(const Relation& view);

// Its plan, under the settings that CREATE kept. Holds all that it points at. Throws what analysis
// and planning refuse.
std::shared_ptr<const ViewPlan> PlanViewRelation(std::shared_ptr<const Catalog> catalog,
                                                 const Relation& view, const Settings& settings);

// The settings that CREATE keeps with the view.
Options ViewSettings(const Settings& settings);

// Rows a second; 0: paused; none: no limit.
std::optional<int64_t> BackfillRateLimit(const Relation& view);

// Why a view could not be built or go on; of the definition that it had then (REFRESH changes it).
struct JobFailure {
  Error error;
  std::string definition;
  std::string Text() const;  // as the store keeps it, under JobKey
  static JobFailure Parse(std::string_view text);
};
std::string JobKey(Oid view);
// When its building began, as PostgresNow() has it.
std::string JobStartKey(Oid view);

}  // namespace sluice
