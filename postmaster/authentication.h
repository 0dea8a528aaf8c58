// pg_hba.conf and the TLS files, read by the postmaster; what both protocols of session start-up
// need of them is in session_authentication.cc.
#pragma once

#include <string>

#include "postmaster/backend.h"
#include "postmaster/settings.h"
#include "wire/hba.h"
#include "wire/tls.h"

namespace sluice {

// Changes `to` only where all of it could be read.
Status LoadAuthentication(const std::string& directory, const Settings& settings,
                          AuthenticationConfig* to);

}  // namespace sluice
