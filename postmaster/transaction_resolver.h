// The process that finishes what backends left: transactions that are prepared on servers and whose
// backend is gone, or could not reach a server after the decision.
#pragma once

#include <string>

namespace sluice {

class Settings;

// Until terminated.
[[noreturn]] void TransactionResolverMain(const std::string& directory, const Settings* settings);

}  // namespace sluice
