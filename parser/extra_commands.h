// Commands that Postgres's grammar does not have: FLUSH, WAIT [MATERIALIZED VIEW name], CANCEL JOBS
// id, …, SUBSCRIBE TO name. They are written as calls of procedures, so that everything behind the
// grammar treats them as any statement.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// The CALL that the text stands for; nullopt: it is no such command (or no single one). Throws
// 42601 where it begins as one and goes on otherwise.
std::optional<std::string> TranslateExtraCommand(std::string_view text);

}  // namespace sluice
