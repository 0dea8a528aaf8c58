// What the postmaster forks for a connection.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/fd.h"

namespace sluice {

class Settings;
class TlsContext;
struct HbaLine;

// Who is let in: read at start and by a reload, by the postmaster.
struct AuthenticationConfig {
  std::vector<HbaLine> hba;
  std::shared_ptr<TlsContext> tls;  // null: ssl = off
  std::string mock_secret;          // for the exchange with users that do not exist
};

// All as inherited by the fork.
struct BackendConfig {
  std::string directory;
  const Settings* settings;
  const AuthenticationConfig* authentication;
};

// A client backend: REQUIRES InitChild with a slot. Serves the client until it leaves.
[[noreturn]] void BackendMain(UniqueFd client, const BackendConfig& config);

// A child without a slot, for a connection that is not served: it carries out a CancelRequest, or
// answers the start-up packet with an error.
enum class Rejection { kTooManyClients, kStartingUp, kShuttingDown, kRecovering };
[[noreturn]] void RejectMain(UniqueFd client, Rejection reason);

}  // namespace sluice
