// Statements as they may be logged and shown.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// The text with every literal that follows the word PASSWORD replaced, also in a statement that is
// no valid SQL.
std::string RedactPasswords(std::string_view statement);

}  // namespace sluice
