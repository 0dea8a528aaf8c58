// The postmaster: makes the shared memory, listens, forks a process for everything and looks after
// them. It never waits for a child and never takes anything from shared memory but what it put
// there itself, so that no child can bring it down.
#pragma once

#include <string>

namespace sluice {

// Serves `directory` until shutdown; returns the exit status. Writes "ready" to postmaster.pid when
// clients can connect.
int PostmasterMain(const std::string& directory);

}  // namespace sluice
