// Functions that act on the server's processes, once for each row: pg_cancel_backend,
// pg_terminate_backend, pg_sleep.
#pragma once

namespace sluice {

// Before anything asks for a kernel.
void RegisterServerKernels();

}  // namespace sluice
