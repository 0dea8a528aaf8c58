// The options of COPY, checked as Postgres checks them.
#pragma once

#include <span>
#include <string>

#include "wire/copy_format.h"

struct PgQuery__CopyStmt;

namespace sluice {

// `columns`: the names that FORCE_QUOTE and the like may use; `table`: whose they are, if a
// table's.
CopyOptions ReadCopyOptions(const PgQuery__CopyStmt& command, std::span<const std::string> columns,
                            std::string_view table = {});

}  // namespace sluice
