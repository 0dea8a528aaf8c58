// What the postmaster forks for a connection.
#pragma once

#include <string>

#include "common/fd.h"

namespace sluice {

class Settings;

struct BackendConfig {
  std::string directory;
  const Settings* settings;  // the postmaster's, as inherited by the fork
};

// A client backend: REQUIRES InitChild with a slot. Serves the client until it leaves.
[[noreturn]] void BackendMain(UniqueFd client, const BackendConfig& config);

// A child without a slot, for a connection that is not served: it carries out a CancelRequest, or
// answers the start-up packet with an error.
enum class Rejection { kTooManyClients, kStartingUp, kShuttingDown, kRecovering };
[[noreturn]] void RejectMain(UniqueFd client, Rejection reason);

}  // namespace sluice
