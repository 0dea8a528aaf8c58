// What this backend shows of itself in pg_stat_activity.
#pragma once

#include <string_view>

#include "shm/process_table.h"

namespace sluice {

void ReportSession(std::string_view user, std::string_view database, std::string_view address,
                   int port);
void ReportApplicationName(std::string_view name);
// A statement begins: state active, its text (`shown`: which is shown already) and start.
void ReportQuery(std::string_view text, bool shown, int64_t started_at);
void ReportState(ActivityState state, int64_t xact_start);

}  // namespace sluice
