// sluice.verify('view'): is the view what its query gives over the shards' tables?
//
// Both sides are taken at one cut: the stored rows at an epoch, the query under snapshots of the
// shards that are exactly what that epoch has taken in (view_hold.cc). So writers are not held up,
// and there are no false differences under them. The tables are locked in ACCESS SHARE mode: what a
// TRUNCATE takes away is gone for older snapshots too.
#pragma once

#include <string_view>

#include "postmaster/virtual_rows.h"

namespace sluice {

// The view that a virtual table's name asks to verify; empty: none.
std::string_view VerifiedView(std::string_view virtual_name);

// REQUIRES: the view is created. Gives a row (the row as JSON, how often it is stored, how often it
// should be) for each difference. Views that it reads are computed too, down to the tables, unless
// they were made under other settings. Throws what computing the view throws; 40001 where no such
// epoch was found.
void VerifyView(const QuerySession& session, std::string_view name, const VirtualRowSink& sink);

}  // namespace sluice
